/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR pages that devices reach, after a restart of a daemon: those that programs and drivers of
 * other hosts have mapped. Their daemon says which mappings they have (resume.c); whose pages these
 * are the port knows, as it does what each mapping leads to. So a view that only a device uses is
 * claimed here, when all that the borrower has is known. What nobody claims is cut.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/lender/barview.h"
#include "smartiod/segment/grant.h"

/* ---- which BAR ---- */

bool smartiod_view_bar(struct smartiod *d, const struct smartiod_loan *l, uint64_t id,
		       uint32_t *ret)
{
	const struct sio_evt_device *port = &l->device->port;
	const struct smartiod_view *v = l->views;
	const struct smartiod_unclaimed *left;
	struct sio_err err;

	while (v && v->id != id)
		v = v->next;
	if (v) {
		*ret = v->bar;
		return true;
	}
	left = smartiod_unclaimed_get(d, SIO_KIND_BAR, l->owner, id, &err);
	for (uint32_t bar = 0; left && bar < SIO_DEVICE_BARS; bar++)
		if (left->address - port->bar_addr[bar] < port->bar_size[bar]) {
			*ret = bar;
			return true;
		}
	return false;
}

/* ---- what devices of this host reach ---- */

/*
 * What maps a BAR through a window is adopted without the borrow that the BAR is of, and what was
 * cut without anything: its address stays taken.
 */
bool smartiod_dma_is_peers(const struct smartiod_loan *l, const struct smartiod_dma *dma)
{
	return l->peers && (dma->bar_borrow || dma->cut || (dma->map && dma->exporter != l->node));
}

void smartiod_dma_far_again(struct smartiod *d, struct smartiod_dma *dma)
{
	if (!dma->bar_borrow)
		dma->bar_borrow = UINT64_MAX;
	if (dma->lost || dma->disowned ||
	    !smartiod_path_up(d, dma->exporter, dma->adapter, dma->peer_adapter))
		smartiod_dma_bar_lost(d, dma);
}

void smartiod_dma_bar_known(struct smartiod *d, struct smartiod_dma *dma,
			    const struct sio_peer_resume_grant *q)
{
	uint32_t fdid = sio_from_le32(q->fdid);

	if (!fdid || sio_topology_fdid_node(fdid) != dma->exporter || dma->cut || dma->view)
		return;
	dma->bar_borrow = sio_from_le64(q->borrower);
	dma->view = sio_from_le64(q->view);
	dma->target_fdid = fdid;
	if (!smartiod_path_up(d, dma->exporter, dma->adapter, dma->peer_adapter))
		smartiod_dma_bar_lost(d, dma);
}

/* The borrow of @node that the pages are of has been reported, too. */
static struct smartiod_loan *borrow_of(struct smartiod *d, const struct smartiod_loan *l,
				       const struct smartiod_dma *dma)
{
	struct smartiod_loan *of = smartiod_loan_find(d, dma->bar_borrow);

	return of && of->node == l->node && of->state == SMARTIOD_LOAN_LIVE &&
			       of->meeting == l->meeting
		       ? of
		       : NULL;
}

/*
 * Of a device beside it. A program whose device reaches pages that nobody can cut any more, or none
 * where it believes some, has to hear of it: it loses the device that they are of.
 */
static void near_again(struct smartiod *d, struct smartiod_loan *l, struct smartiod_dma *dma)
{
	struct smartiod_loan *of = borrow_of(d, l, dma);
	struct sio_err err;
	uint32_t bar;

	if (of && smartiod_view_bar(d, of, dma->view, &bar)) {
		if (smartiod_dma_bar_again(d, dma, of, bar, of->heard != of->device->generation,
					   &err) == 0)
			return;
		smartiod_log(d, SMARTIOD_WARNING,
			     "%s: pages of borrow %" PRIu64
			     " that another device reached before we were started are lost: %s",
			     of->device->topo->name, of->id, err.text);
		smartiod_dma_bar_lost(d, dma);
		if (!l->peers)
			smartiod_loan_give_up(d, of);
		return;
	}
	smartiod_dma_bar_lost(d, dma);
}

/* ---- what devices of other hosts reach ---- */

static struct smartiod_view_grant *record(const struct smartiod_loan *l, uint64_t grant)
{
	struct smartiod_view_grant *r = l->grants;

	while (r && (r->grant != grant || r->member))
		r = r->next;
	return r;
}

void smartiod_view_fill_grant(struct smartiod *d, uint64_t target, struct sio_peer_resume_grant *q)
{
	uint64_t grant = sio_from_le64(q->grant), view = target;
	uint32_t bar;

	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id)) {
		const struct smartiod_view_grant *r = record(l, grant);

		if (r)
			view = r->view;
		else if (!target || !smartiod_view_bar(d, l, target, &bar))
			continue;
		q->borrower = sio_to_le64(l->id);
		q->view = sio_to_le64(view);
		q->fdid = sio_to_le32(l->device->fdid);
		return;
	}
}

/* Is @g, of before our start, of pages of @l's? *ret: of which BAR. */
static bool is_of(struct smartiod *d, const struct smartiod_loan *l, const struct smartiod_grant *g,
		  uint32_t *ret)
{
	return g->target && g->orphaned && !g->segment && !g->irq && !record(l, g->by_id.key) &&
	       smartiod_view_bar(d, l, g->target, ret);
}

/* Its importer has said that it has it for a device, or may do so yet. */
static int hold_again(struct smartiod *d, struct smartiod_loan *l, const struct smartiod_grant *g,
		      uint32_t bar, bool reset, struct sio_err *reterr)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, g->node);
	const struct smartiod_view_grant what = {.view = g->target,
						 .grant = g->by_id.key,
						 .node = g->node,
						 .adapter = g->adapter,
						 .peer_adapter = g->peer_adapter,
						 .device = true,
						 .pending = g->purpose != SIO_GRANT_DEVICE};
	struct smartiod_view *v = NULL;
	int rc;

	if (!smartiod_path_up(d, g->node, g->adapter, g->peer_adapter)) {
		smartiod_grant_resume(d, what.grant, what.node, what.view);
		smartiod_grant_cut(d, what.grant);
		return 0;
	}
	if (what.pending && !(p && p->unmet))
		return 0;
	rc = smartiod_view_again(d, l, bar, &what, reset, &v, reterr);
	if (rc == 0 && v && !what.pending)
		smartiod_grant_resume(d, what.grant, what.node, what.view);
	return rc;
}

int smartiod_view_again_of(struct smartiod *d, uint64_t borrower, uint32_t generation, uint32_t bar,
			   uint64_t view, struct sio_err *reterr)
{
	const struct smartiod_view_grant what = {.view = view, .node = d->node};
	struct smartiod_loan *l = smartiod_loan_find(d, borrower);
	struct smartiod_view *v = NULL;
	int rc;

	if (!l || smartiod_loan_ended(l))
		return sio_fail(reterr, -ENOENT, "borrow %" PRIu64 " has ended", borrower);
	rc = smartiod_view_again(d, l, bar, &what, generation != l->device->generation, &v, reterr);
	return rc == 0 && !v ? sio_fail(reterr, -ENOENT, "a reset took these pages away") : rc;
}

int smartiod_views_held_again(struct smartiod *d, struct smartiod_loan *l, bool reset,
			      struct sio_err *reterr)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;
	uint32_t bar;
	int rc = 0;

	while (rc == 0 && (n = smartiod_tree_after(&d->grants, key))) {
		const struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		key = n->key;
		if (is_of(d, l, g, &bar))
			rc = hold_again(d, l, g, bar, reset, reterr);
	}
	if (rc < 0)
		smartiod_log(d, SMARTIOD_WARNING,
			     "%s: pages of borrow %" PRIu64
			     " that a device of another host had before we were started are "
			     "lost: %s",
			     l->device->topo->name, l->id, reterr->text);
	return rc;
}

void smartiod_view_held(struct smartiod *d, uint32_t node, uint64_t grant)
{
	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id)) {
		struct smartiod_view_grant *r = record(l, grant);

		if (!r || !r->pending || r->node != node)
			continue;
		r->pending = false;
		smartiod_grant_resume(d, grant, node, r->view);
		return;
	}
}

/* The next one that has ended at @node; NULL. */
static const struct smartiod_view_grant *given_back(struct smartiod *d,
						    const struct smartiod_loan *l, uint32_t node)
{
	const struct smartiod_view_grant *r = l->grants;

	while (r && (r->node != node || node == d->node || !r->device || r->member ||
		     (!r->pending && smartiod_tree_find(&d->grants, r->grant))))
		r = r->next;
	return r;
}

void smartiod_views_answered(struct smartiod *d, uint32_t node)
{
	const struct smartiod_view_grant *r;

	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		while ((r = given_back(d, l, node))) {
			smartiod_grant_resume(d, r->grant, node, r->view);
			smartiod_view_grant_put(d, l, node, r->view, r->grant);
		}
}

/* ---- when all that a borrower has is known ---- */

void smartiod_dma_bars_resumed(struct smartiod *d, struct smartiod_loan *l)
{
	for (struct smartiod_dma *dma = l->dmas; dma; dma = dma->next) {
		bool peers = dma->adopted && smartiod_dma_is_peers(l, dma);

		if (dma->cut || dma->unmapping || dma->kept || (!peers && !dma->old_view))
			continue;
		dma->adopted = false;
		if (dma->map)
			smartiod_dma_far_again(d, dma);
		else
			near_again(d, l, dma);
		dma->old_view = false;
	}
}
