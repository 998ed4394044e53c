/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR pages of one device that are mapped for another device which the same program has borrowed.
 * The lender of the second device asks the lender of the first for a view of the pages (bargrant.c)
 * or, from another host, for a grant of a view. It shows the ticket that came with the borrow,
 * because only the first device's lender knows which pages this borrower may write.
 *
 * The pages are taken away when they may belong to another borrower: with a reset, and with the end
 * of their borrow, their device or a path. The mapping is cut then: its address leads nowhere and
 * stays reserved, because the device that uses it is not notified and may still access it.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

void smartiod_dma_bar_release(struct smartiod *d, struct smartiod_dma *dma)
{
	struct sio_peer_bar_release msg = {
		.h.type = sio_to_le32(SIO_PEER_BAR_RELEASE),
		.borrower = sio_to_le64(dma->bar_borrow),
		.view = sio_to_le64(dma->view),
		.grant = sio_to_le64(dma->grant),
		.fdid = sio_to_le32(dma->target_fdid),
	};

	if (!dma->view)
		return;
	if (dma->kept) {
		struct smartiod_device *dev = smartiod_kept_release(d, dma);

		if (dev)
			smartiod_reset_borrow_over(d, dev);
		return;
	}
	dma->view = 0;
	smartiod_notify(d, dma->exporter, &msg, sizeof(msg));
}

/* Which pages these are the exporter of what was mapped before our start has perhaps not said. */
static bool is_bar(const struct smartiod_dma *dma)
{
	return dma->bar_borrow || (dma->of_bar && dma->target);
}

/*
 * Can the other end hold off what still comes through the window? A program has none otherwise; a
 * kernel's driver may, and of before our start its host says what it is for when we have met.
 */
static bool is_held(const struct smartiod_dma *dma)
{
	if (dma->target)
		return dma->loan->state == SMARTIOD_LOAN_LIVE && !dma->loan->peers;
	return !dma->whole;
}

/*
 * Without an IOMMU the device keeps the address of the window, and may send there yet. A window
 * that was given back would be somebody else's next, so it stays until the mapping ends.
 */
static void take_away(struct smartiod *d, struct smartiod_dma *dma)
{
	if (smartiod_is_real(d) && dma->map && is_held(dma) &&
	    dma->loan->device->port.iommu_mode == SIO_IOMMU_OFF)
		dma->cut = dma->lost = true;
	else
		smartiod_dma_cut(d, dma);
}

/* The first that is to be cut, of those made and of those that an operation makes; NULL. */
static struct smartiod_dma *find(struct smartiod *d, const void *arg,
				 bool (*is)(const struct smartiod *d,
					    const struct smartiod_dma *dma, const void *arg))
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (is_bar(dma) && !dma->cut && is(d, dma, arg))
			return dma;
	}
	for (struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		if (is_bar(dma) && !dma->cut && is(d, dma, arg))
			return dma;
	return NULL;
}

struct pages {
	uint64_t borrow, view;
};

static bool is_view(const struct smartiod *d, const struct smartiod_dma *dma, const void *arg)
{
	const struct pages *p = arg;

	return dma->exporter == d->node && dma->bar_borrow == p->borrow && !dma->kept &&
	       (!p->view || dma->view == p->view);
}

void smartiod_dma_bars_cut(struct smartiod *d, uint64_t bar_borrow, uint64_t view)
{
	const struct pages p = {.borrow = bar_borrow, .view = view};
	struct smartiod_dma *dma;

	while ((dma = find(d, &p, is_view)))
		smartiod_dma_cut(d, dma);
}

void smartiod_dma_bars_gone(struct smartiod *d, struct smartiod_device *dev)
{
	struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE};
	uint64_t borrow, view;

	dev->lent->was_gone = true;
	while (smartiod_kept_take(d, dev, &borrow, &view)) {
		smartiod_dma_bars_cut(d, borrow, view);
		req.id = view;
		if (!smartiod_is_real(d)) /* else it has ended by itself */
			smartiod_port_send(d, &req, sizeof(req));
	}
}

struct way {
	uint32_t node;
	const struct smartiod_path_change *path;
};

static bool is_over(const struct smartiod *d, const struct smartiod_dma *dma, const void *arg)
{
	const struct way *w = arg;

	(void)d;
	return dma->exporter == w->node &&
	       (!w->path ||
		(dma->adapter == w->path->adapter && dma->peer_adapter == w->path->peer_adapter));
}

void smartiod_dma_bars_lost(struct smartiod *d, uint32_t node,
			    const struct smartiod_path_change *path)
{
	const struct way w = {.node = node, .path = path};
	struct smartiod_dma *dma;

	while ((dma = find(d, &w, is_over)))
		take_away(d, dma);
}

struct granted {
	uint32_t node;
	uint64_t grant;
};

static bool is_grant(const struct smartiod *d, const struct smartiod_dma *dma, const void *arg)
{
	const struct granted *g = arg;

	(void)d;
	return dma->exporter == g->node && dma->grant == g->grant;
}

/*
 * Without an IOMMU here the address is that of the window, which goes back with the cut. Where the
 * other end holds off what still comes, better the window stays, too, until the mapping ends.
 */
int smartiod_peer_bar_cut(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_peer_bar_cut *m = msg;
	const struct granted g = {.node = from->node, .grant = sio_from_le64(m->grant)};
	struct smartiod_dma *dma = g.grant ? find(d, &g, is_grant) : NULL;

	(void)reterr;
	if (!dma)
		return 0;
	if (m->held && dma->loan->device->port.iommu_mode == SIO_IOMMU_OFF)
		dma->cut = dma->lost = true;
	else
		smartiod_dma_cut(d, dma);
	return 0;
}

/* ---- of before we were started ---- */

/*
 * Of a device of ours nothing of it is ours to give back, but the address, which the other device
 * may still use.
 */
static void cut_adopted(struct smartiod *d, struct smartiod_dma *dma)
{
	if (!dma->map)
		dma->view = 0;
	take_away(d, dma);
}

bool smartiod_dma_adopt_view(struct smartiod *d, const struct sio_list_entry *e)
{
	const struct smartiod_loan *l = smartiod_loan_by_owner(d, e->owner);
	struct smartiod_tree_node *n;
	bool outlives = false;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->target != e->id)
			continue;
		outlives |= dma->outlives;
		dma->bar_borrow = l ? l->id : UINT64_MAX;
		dma->target_fdid = l ? l->device->fdid : 0;
		dma->view = e->id;
		dma->old_view = true;
		if (!l) /* else it is cut when that borrow ends, if it has not yet */
			cut_adopted(d, dma);
	}
	return outlives;
}

void smartiod_dma_view_ends(struct smartiod *d, uint64_t owner, uint64_t view)
{
	const struct smartiod_loan *l = smartiod_loan_by_owner(d, owner);

	if (l)
		smartiod_dma_bars_cut(d, l->id, view);
}

void smartiod_dma_bar_lost(struct smartiod *d, struct smartiod_dma *dma)
{
	if (dma->bar_borrow && !dma->cut && !dma->kept)
		cut_adopted(d, dma);
}

int smartiod_dma_bar_again(struct smartiod *d, struct smartiod_dma *dma, struct smartiod_loan *l,
			   uint32_t bar, bool reset, struct sio_err *reterr)
{
	const struct smartiod_view_grant what = {
		.view = dma->view, .node = d->node, .device = true};
	struct smartiod_view *v = NULL;
	int rc;

	dma->old_view = false;
	if (dma->cut) /* the program is notified of the cause */
		return 0;
	if (dma->bar_borrow != l->id)
		return sio_fail(reterr, -EINVAL,
				"mapping %" PRIu64 " is of no pages of borrow %" PRIu64,
				dma->by_id.key, l->id);
	rc = smartiod_view_again(d, l, bar, &what, reset, &v, reterr);
	if (!v)
		smartiod_dma_bar_lost(d, dma);
	return rc;
}
