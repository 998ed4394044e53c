/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resynchronisation with a borrower's daemon (wire/peer.h, RESUME_*). What the other daemon sends
 * is compared with the lender's tables. If this daemon was restarted, the tables have what the port
 * has, and the borrower's daemon says what it is for. Its messages are checked like requests: the
 * port's object must exist, and must belong to that borrow.
 *
 * What the other daemon does not name ends, as if its program had given it back; what a device may
 * still reach of it waits in quarantine.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/barview.h"
#include "smartiod/lender/requests.h"

static uint32_t meeting_with(struct smartiod *d, uint32_t node)
{
	return smartiod_peer_find(d, node)->meeting;
}

/* The map that follows @dma, which is still there; NULL: the first one. */
static struct smartiod_dma *dma_after(struct smartiod *d, const struct smartiod_dma *dma)
{
	struct smartiod_tree_node *n = smartiod_tree_after(&d->dmas, dma ? dma->by_id.key : 0);

	return n ? SMARTIOD_OF(n, struct smartiod_dma, by_id) : NULL;
}

/* ---- what the port has of before our start ---- */

bool smartiod_dma_adopt_map(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_dma *dma = NULL;
	bool some = false;

	while ((dma = dma_after(d, dma))) {
		if (dma->target != e->id)
			continue;
		some = true;
		dma->map = e->id;
		dma->exporter = e->node;
		dma->adapter = (uint32_t)(e->device >> 32);
		dma->peer_adapter = (uint32_t)e->device & ~SIO_LIST_BAR;
		dma->of_bar = e->device & SIO_LIST_BAR;
		dma->bus_addr = e->cookie;
		dma->there_grant = e->grant;
	}
	return some;
}

/* Each mapping of a group has its own way there, which belongs to the borrow. */
bool smartiod_dma_adopt_group(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_dma *dma = NULL;

	if (e->kind != SIO_KIND_MEM || !(e->device & SIO_LIST_SENDER))
		return false;
	while ((dma = dma_after(d, dma)) && dma->target != e->id)
		;
	if (!dma)
		return false;
	dma->group = e->id;
	dma->uid = e->device & (SIO_LIST_SENDER - 1);
	dma->exporter = SIO_PEER_GROUP;
	dma->adapter = (uint32_t)(e->device >> 32);
	return true;
}

bool smartiod_requester_adopt(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_device *dev = smartiod_device_by_port(d, e->device);
	struct smartiod_requester *r;
	struct smartiod_dma *dma = NULL;

	if (!dev || e->length >= SIO_MAX_ADAPTERS || dev->lent->requester[e->length].id)
		return false;
	r = &dev->lent->requester[e->length];
	while ((dma = dma_after(d, dma))) {
		if (dma->loan->device != dev || (!dma->map && !dma->group) ||
		    dma->adapter != e->length)
			continue;
		dma->window = true;
		r->users++;
	}
	r->users += smartiod_vectors_admitted(dev, (uint32_t)e->length);
	if (r->users)
		r->id = e->id;
	return r->users;
}

/* ---- grants that our devices reach through ---- */

/* Of before our start, into memory of @node, which has not reported the grant. */
static bool is_ungranted(const struct smartiod_dma *dma, uint32_t node)
{
	return dma->map && dma->target && !dma->grant && dma->exporter == node;
}

/*
 * It has reported the grant of @dma. Where it keeps the address alone, what its BAR's pages were
 * mapped for is cut here, unless the address is the device's, too (smartiod_peer_bar_cut()).
 */
static void note_granted(struct smartiod *d, struct smartiod_dma *dma, uint32_t node,
			 const struct sio_peer_resume_grant *q)
{
	if (dma->exporter == node && dma->grant && dma->grant == sio_from_le64(q->grant) &&
	    (!sio_from_le32(q->empty) || dma->loan->device->port.iommu_mode == SIO_IOMMU_OFF))
		dma->granted_at = meeting_with(d, node);
}

bool smartiod_dma_grant_again(struct smartiod *d, uint32_t node,
			      const struct sio_peer_resume_grant *q)
{
	struct smartiod_dma *dma = NULL;
	bool some = false;

	while ((dma = dma_after(d, dma))) {
		note_granted(d, dma, node, q);
		if (!is_ungranted(dma, node) || dma->disowned ||
		    dma->there_grant != sio_from_le64(q->grant) ||
		    dma->bus_addr != sio_from_le64(q->bus_addr) ||
		    dma->adapter != sio_from_le32(q->peer_adapter) ||
		    dma->peer_adapter != sio_from_le32(q->adapter))
			continue;
		dma->grant = sio_from_le64(q->grant);
		smartiod_dma_bar_known(d, dma, q);
		note_granted(d, dma, node, q);
		some = true;
	}
	/* That are being mapped, so no device has their addresses; not of what ended. */
	for (dma = d->loose; dma; dma = dma->next)
		if (dma->loan && !sio_from_le32(q->empty))
			note_granted(d, dma, node, q);
	return some;
}

/*
 * A grant that @node makes from now on is another one, be it of the same address. Pages of a BAR
 * that it has not reported it has taken back, and its word of that was lost. Memory stays mapped,
 * though it is gone, until its borrow unmaps it.
 */
static void disown(struct smartiod *d, uint32_t node)
{
	struct smartiod_dma *dma = NULL;

	while ((dma = dma_after(d, dma))) {
		bool reported = dma->granted_at == meeting_with(d, node);

		if (!dma->map || dma->exporter != node)
			continue;
		dma->disowned |= !reported || is_ungranted(dma, node);
		if (!reported && dma->of_bar && dma->target)
			smartiod_dma_far_again(d, dma);
		else if (!reported)
			smartiod_dma_bar_lost(d, dma);
	}
	for (dma = d->loose; dma; dma = dma->next) /* its operation fails */
		if (dma->loan && dma->bar_borrow && dma->exporter == node && dma->grant &&
		    dma->granted_at != meeting_with(d, node))
			smartiod_dma_cut(d, dma);
}

static void fill_held(const struct smartiod_dma *dma, uint32_t node,
		      struct sio_peer_resume_held *held)
{
	if (dma->exporter != node || !dma->grant || dma->grant != sio_from_le64(held->grant))
		return;
	held->purpose = sio_to_le32(SIO_GRANT_DEVICE);
	held->own = sio_to_le32(dma->loan->node == node);
}

void smartiod_dma_fill_held(struct smartiod *d, uint32_t node, struct sio_peer_resume_held *held)
{
	const struct smartiod_dma *dma = NULL;

	while ((dma = dma_after(d, dma)))
		fill_held(dma, node, held);
	for (dma = d->loose; dma; dma = dma->next) /* that are being mapped; of none that ended */
		if (dma->loan)
			fill_held(dma, node, held);
}

/* ---- borrows ---- */

static void notify_lost(struct smartiod *d, const struct smartiod_from *from,
			const struct sio_peer_resume_borrow *m)
{
	struct sio_peer_borrower msg = {.h.type = sio_to_le32(SIO_PEER_BORROW_LOST),
					.borrower = m->borrower,
					.fdid = m->fdid};

	smartiod_notify(d, from->node, &msg, sizeof(msg));
}

/* The file may be another than when it was lent. What was not interrupted is not asked about. */
static bool may_again(struct smartiod *d, uint32_t node, const struct smartiod_loan *l)
{
	const struct sio_policy_thing thing =
		smartiod_thing_device(d, d->node, l->device->topo->name);
	struct sio_err err;

	return l->state != SMARTIOD_LOAN_DISTANT || smartiod_allow_node(d, &thing, node, &err) == 0;
}

int smartiod_resume_borrow(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			   struct sio_err *reterr)
{
	const struct sio_peer_resume_borrow *m = msg;
	struct smartiod_loan *l = smartiod_loan_find(d, sio_from_le64(m->borrower));
	uint32_t flags = sio_from_le32(m->flags);

	(void)reterr;
	if (!l || l->node != from->node || l->device->fdid != sio_from_le32(m->fdid) ||
	    (l->state != SMARTIOD_LOAN_LIVE && l->state != SMARTIOD_LOAN_DISTANT) ||
	    !may_again(d, from->node, l)) {
		notify_lost(d, from, m);
		return 0;
	}
	if (l->state == SMARTIOD_LOAN_DISTANT) {
		smartiod_loan_enter(d, l, SMARTIOD_LOAN_CLAIM);
		sio_ledger_restore(&l->device->ledger, l->id, sio_from_le64(m->session),
				   flags & SIO_RESUME_RELEASED);
		smartiod_dev_segs_alone(d, l);
		smartiod_device_announce_later(d, l->device);
		/* Its views follow: until then its registers are nobody else's. */
		sio_ledger_known(&l->device->ledger, l->id, false);
	}
	sio_ledger_heard(&l->device->ledger, l->id, flags & SIO_RESUME_RELEASED);
	/* A borrower that was started again has made another one: the first of a meeting counts. */
	if (l->meeting != meeting_with(d, from->node))
		l->ticket = sio_from_le64(m->ticket);
	l->session = sio_from_le64(m->session);
	l->pid = sio_from_le32(m->pid);
	l->heard = sio_from_le32(m->generation);
	l->peers = flags & SIO_RESUME_PEERS;
	l->meeting = meeting_with(d, from->node);
	return 0;
}

static struct smartiod_loan *loan_of(struct smartiod *d, const struct smartiod_from *from,
				     sio_le64 borrower, sio_le32 fdid)
{
	return smartiod_loan_of(d, from, sio_from_le64(borrower), sio_from_le32(fdid));
}

/* ---- BARs ---- */

static struct smartiod_view_grant *view_grant(const struct smartiod_loan *l,
					      const struct smartiod_view_grant *what)
{
	struct smartiod_view_grant *g = l->grants;

	while (g && (g->node != what->node || g->view != what->view || g->grant != what->grant))
		g = g->next;
	return g;
}

/*
 * Of a group: it has no path. One that the port does not have is being given back. Of another one
 * that is lost the program could not hear otherwise.
 */
static void resume_member(struct smartiod *d, struct smartiod_loan *l,
			  const struct sio_peer_resume_view *m, struct smartiod_view_grant *what)
{
	struct sio_err err;
	int rc;

	what->adapter = what->peer_adapter = 0;
	what->member = true;
	what->group = sio_from_le32(m->group);
	rc = smartiod_member_again(d, l, sio_from_le32(m->bar), what,
				   l->heard != l->device->generation, &err);
	if (rc == 0 || rc == -ENOENT)
		return;
	smartiod_log(d, SMARTIOD_WARNING,
		     "%s: borrow %" PRIu64 " is lost, for it has its member of group %" PRIu32
		     " no more: %s",
		     l->device->topo->name, l->id, what->group, err.text);
	smartiod_loan_give_up(d, l);
}

int smartiod_resume_view(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_resume_view *m = msg;
	struct smartiod_loan *l = loan_of(d, from, m->borrower, m->fdid);
	struct smartiod_view_grant what = {.view = sio_from_le64(m->view),
					   .grant = sio_from_le64(m->grant),
					   .node = from->node,
					   .adapter = sio_from_le32(m->adapter),
					   .peer_adapter = sio_from_le32(m->peer_adapter),
					   .meeting = meeting_with(d, from->node)};
	struct smartiod_view_grant *known = l ? view_grant(l, &what) : NULL;
	struct smartiod_view *v;
	struct sio_err err;

	(void)reterr;
	if (known) {
		known->meeting = what.meeting;
		known->device = known->pending = false;
	}
	if (l && !known && sio_from_le32(m->member)) {
		resume_member(d, l, m, &what);
		return 0;
	}
	if (!l || known || what.adapter >= d->host->n_adapters ||
	    !smartiod_grant_resume(d, what.grant, from->node, what.view))
		return 0; /* a reset took it: that is told at the end */
	if (smartiod_view_again(d, l, sio_from_le32(m->bar), &what,
				l->heard != l->device->generation, &v, &err) < 0 ||
	    !v) {
		/* It leads where nobody knows of; the borrower loses nothing else. */
		smartiod_grant_cut(d, what.grant);
		smartiod_log(d, SMARTIOD_WARNING,
			     "%s: pages that borrow %" PRIu64
			     " had before we were started are lost",
			     l->device->topo->name, l->id);
	}
	return 0;
}

/* ---- DMA maps; of queues that lie in them: hold.c ---- */

static struct smartiod_dma *dma_of(struct smartiod *d, uint64_t map)
{
	return SMARTIOD_OF(smartiod_tree_find(&d->dmas, map), struct smartiod_dma, by_id);
}

int smartiod_resume_dma(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_peer_resume_dma *m = msg;
	struct smartiod_loan *l = loan_of(d, from, m->borrower, m->fdid);
	struct smartiod_dma *dma = dma_of(d, sio_from_le64(m->map));
	struct smartiod_segment *seg;

	(void)reterr;
	if (!l || !dma || dma->loan != l)
		return 0; /* it was unmapped, and the answer has not arrived */
	dma->meeting = l->meeting;
	if (!dma->adopted)
		return 0;
	dma->adopted = false;
	if (sio_from_le32(m->bar) && dma->map)
		smartiod_dma_far_again(d, dma);
	seg = dma->map ? NULL : smartiod_segment_by_uid(d, SMARTIOD_UID_MEM | dma->target);
	if (seg && !dma->segment) {
		dma->segment = seg;
		dma->uid = seg->uid;
		smartiod_segment_dma_get(seg);
	}
	return 0;
}

/* ---- vectors ---- */

/*
 * One that is no more ended with its interrupt, as it does without a restart: whoever is connected
 * to that is told. If it cannot be taken over, its program would wait for ever, and hears that it
 * has lost the device.
 */
int smartiod_resume_vector(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			   struct sio_err *reterr)
{
	const struct sio_peer_resume_vector *m = msg;
	struct smartiod_loan *l = loan_of(d, from, m->borrower, m->fdid);
	uint32_t number = sio_from_le32(m->vector);
	struct sio_err err;
	int rc;

	(void)reterr;
	if (!l || smartiod_vector_resume(l, number))
		return 0;
	/* Of before our start, to an interrupt of a program of ours. */
	rc = smartiod_vector_again(d, l, number, &err);
	if (rc == -ENOENT)
		smartiod_vector_notify_gone(d, l, number);
	else if (rc < 0 || !smartiod_vector_resume(l, number))
		smartiod_loan_give_up(d, l);
	return 0;
}

/* ---- device segments ---- */

int smartiod_resume_placed(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			   struct sio_err *reterr)
{
	const struct sio_peer_resume_placed *m = msg;
	struct smartiod_loan *l = loan_of(d, from, m->borrower, m->fdid);

	if (l && smartiod_dev_seg_placed(d, l, m, reterr) < 0)
		smartiod_log(d, SMARTIOD_WARNING, "%s", reterr->text);
	return 0;
}

/* ---- the rest ends ---- */

/* Grants of views that it has no more. */
static void drop_views(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_view_grant *g = l->grants;

	while (g)
		if (g->node == l->node && !g->device && g->meeting != l->meeting) {
			smartiod_view_grant_put(d, l, g->node, g->view, g->grant);
			g = l->grants; /* the list is another one */
		} else {
			g = g->next;
		}
}

/* A queue that lies there keeps it. */
static void drop_dmas(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_dma *dma, *next;

	for (dma = l->dmas; dma; dma = next) {
		next = dma->next;
		if (dma->meeting != l->meeting && !smartiod_held(dma) && !dma->unmapping &&
		    !smartiod_dma_is_peers(l, dma))
			smartiod_dma_drop(d, dma);
	}
}

static void loan_resumed(struct smartiod *d, struct smartiod_loan *l)
{
	struct sio_err err;

	l->pins++;
	if (l->meeting != meeting_with(d, l->node)) {
		l->cut_off = true;
		smartiod_loan_end(d, l);
		smartiod_loan_unpin(d, l);
		return;
	}
	sio_ledger_known(&l->device->ledger, l->id, true);
	drop_views(d, l);
	if (smartiod_views_held_again(d, l, l->heard != l->device->generation, &err) < 0) {
		smartiod_loan_give_up(d, l);
		smartiod_loan_unpin(d, l);
		return;
	}
	drop_dmas(d, l);
	smartiod_dma_bars_resumed(d, l);
	smartiod_vectors_unnamed_end(d, l);
	smartiod_vectors_drop(d, l);
	if (l->heard != l->device->generation)
		smartiod_loan_notify(d, l, SIO_DEVICE_EV_RESET, 0);
	smartiod_notice_again(d, l);
	if (l->device->ledger.holder == l->id)
		smartiod_holder_welcome(d, l);
	smartiod_loan_unpin(d, l);
}

void smartiod_loans_resumed(struct smartiod *d, uint32_t node)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	disown(d, node);
	smartiod_holds_resumed(d, node);
	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->node == node &&
		    (l->state == SMARTIOD_LOAN_LIVE || l->state == SMARTIOD_LOAN_DISTANT))
			loan_resumed(d, l);
	}
	smartiod_dev_segs_resumed(d, node, meeting_with(d, node));
}
