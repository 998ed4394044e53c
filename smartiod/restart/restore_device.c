/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: borrows, and what depends on them, as a library restores them after smartiod was started
 * again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/barview.h"
#include "smartiod/restart/restore.h"
#include "smartiod/segment/restore.h"

/* ---- borrows ---- */

static bool is_its(const struct smartiod_loan *l, const struct smartiod_session *s)
{
	return (l->state == SMARTIOD_LOAN_OLD || l->state == SMARTIOD_LOAN_LIVE) &&
	       l->parent == s->owner;
}

static struct smartiod_loan *loan_of(struct smartiod *d, const struct smartiod_borrow *b,
				     struct sio_err *reterr)
{
	struct smartiod_loan *l = smartiod_loan_find(d, b->id);

	if (l && !smartiod_loan_ended(l))
		return l;
	sio_fail(reterr, -ENOENT, "borrow %" PRIu64 " has ended", b->id);
	return NULL;
}

static int restore_borrow(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_borrow *r = (const void *)m->request;
	struct smartiod_loan *l = smartiod_loan_find(d, sio_from_le64(m->key));
	struct sio_policy_thing thing;
	struct smartiod_device *dev;
	struct smartiod_borrow *b;

	if (sio_topology_fdid_node(sio_from_le32(r->fdid)) != d->node)
		return smartiod_borrow_again(d, s, m, reterr);
	dev = smartiod_device_ours(d, sio_from_le32(r->fdid), reterr);
	if (!dev)
		return reterr->code;
	if (!l || l->device != dev || l->state != SMARTIOD_LOAN_OLD || !is_its(l, s))
		return sio_fail(reterr, -ENOENT, "%s: borrow %" PRIu64 " is none of this program's",
				dev->topo->name, sio_from_le64(m->key));
	thing = smartiod_thing_device(d, dev->node, dev->topo->name);
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	b = smartiod_borrow_new(d, s, dev, reterr);
	if (!b)
		return reterr->code;
	smartiod_borrow_lent(d, b, l->id);
	b->generation = sio_from_le32(m->number);
	b->ticket = l->ticket = d->ops->random(d->ctx) | 1; /* the one of before is forgotten */
	smartiod_loan_enter(d, l, SMARTIOD_LOAN_CLAIM);
	l->session = s->client;
	l->pid = s->pid;
	sio_ledger_restore(&dev->ledger, l->id, s->client,
			   sio_from_le32(m->flags) & SIO_RESTORE_RELEASED);
	smartiod_device_announce_later(d, dev);
	smartiod_borrow_unpin(d, b);
	return 0;
}

static int restore_dev_seg(struct smartiod *d, struct smartiod_session *s,
			   const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_create *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_unclaimed *left;
	struct smartiod_loan *l;

	if (b && b->node != d->node)
		return smartiod_dev_seg_placed_again(d, s, b, m, reterr);
	l = b ? loan_of(d, b, reterr) : NULL;
	if (!l)
		return reterr->code;
	left = smartiod_unclaimed_get(d, SIO_KIND_MEM, l->owner, sio_from_le64(m->key), reterr);
	if (!left)
		return reterr->code;
	if (smartiod_unclaimed_check(left, reterr) < 0)
		return reterr->code;
	return smartiod_dev_seg_again(d, l, sio_from_le32(r->segment_id), sio_from_le32(r->memtype),
				      left, reterr);
}

/* ---- maps ---- */

/* @v NULL: a reset took its pages away. Then it has no number: that may be another's one day. */
static struct smartiod_bar_piece piece_again(const struct smartiod_view *v)
{
	if (!v)
		return (struct smartiod_bar_piece){.gone = true, .fd = -1};
	return (struct smartiod_bar_piece){.view = v->id,
					   .doorbells = v->doorbells,
					   .offset = v->offset,
					   .bytes = v->length,
					   .fd_offset = v->fd_offset,
					   .fd = -1};
}

/* Pages of what could not be restored whole are given back: it is lost, also for want of memory. */
static int given_back(struct sio_err *reterr)
{
	return reterr->code == -ENOMEM
		       ? sio_fail(reterr, -ECONNRESET, "its pages were given back: no memory")
		       : reterr->code;
}

static int restore_bar_map(struct smartiod *d, struct smartiod_session *s,
			   const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_map *r = (const void *)m->request;
	struct smartiod_connection *c =
		smartiod_object_get(s, sio_from_le32(r->handle), SMARTIOD_CONNECTION, reterr);
	struct smartiod_borrow *b = c ? c->device : NULL;
	struct smartiod_bar_map *bar;
	struct smartiod_view *v;
	struct smartiod_loan *l;
	struct smartiod_map *map;
	bool reset;

	if (b && b->node != d->node)
		return smartiod_bar_map_again(d, s, c, m, reterr);
	l = b ? loan_of(d, b, reterr) : NULL;
	reset = l && b->generation != l->device->generation;
	if (!l)
		return c && !b ? sio_fail(reterr, -ECONNRESET, "the device is lost") : reterr->code;
	bar = calloc(1, sizeof(*bar));
	if (!bar)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	map = smartiod_map_new(d, s, c, reterr);
	if (!map) {
		free(bar);
		return reterr->code;
	}
	bar->borrow = b;
	bar->connection = c;
	bar->next = b->maps;
	b->maps = bar;
	b->pins++;
	map->bar = bar;
	for (unsigned i = 0; i < SIO_MAP_PIECES && m->claim[i].view; i++) {
		const struct smartiod_view_grant what = {.view = sio_from_le64(m->claim[i].view),
							 .node = d->node};

		if (smartiod_view_again(d, l, c->segment_id, &what, reset, &v, reterr)) {
			smartiod_map_drop(d, map);
			return given_back(reterr);
		}
		bar->piece[bar->n++] = piece_again(v);
	}
	return 0;
}

static int restore_member(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_group_join *r = (const void *)m->request;
	const struct smartiod_view_grant what = {.view = sio_from_le64(m->claim[0].view),
						 .grant = sio_from_le64(m->claim[0].grant),
						 .node = d->node,
						 .member = true,
						 .group = sio_from_le32(r->group)};
	struct smartiod_connection *c =
		smartiod_object_get(s, sio_from_le32(r->handle), SMARTIOD_CONNECTION, reterr);
	struct smartiod_borrow *b = c ? c->device : NULL;
	struct smartiod_map *map;
	struct smartiod_loan *l;
	int rc;

	if (!c)
		return reterr->code;
	if (c->route != SMARTIOD_BAR || !b)
		return sio_fail(reterr, -ECONNRESET, "the device of this BAR is lost");
	l = b->node == d->node ? loan_of(d, b, reterr) : NULL;
	if (b->node == d->node && !l)
		return reterr->code;
	rc = smartiod_member_map_again(d, s, c, m, &map, reterr);
	if (rc < 0 || !l)
		return rc;
	rc = smartiod_member_again(d, l, c->segment_id, &what,
				   b->generation != l->device->generation, reterr);
	if (rc == 0)
		return 0;
	smartiod_map_drop(d, map);
	return given_back(reterr);
}

static int restore_dev_connection(struct smartiod *d, struct smartiod_session *s,
				  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_connect *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	const struct smartiod_dev_seg *ds;
	struct smartiod_segment *seg;

	if (!b)
		return reterr->code;
	if (b->node != d->node)
		return smartiod_dev_connection_again(d, s, b, m, reterr);
	if (sio_from_le32(r->memtype) == SCI_MEMTYPE_BAR)
		return smartiod_connect_bar(d, s, b, sio_from_le32(r->segment_id), reterr)
			       ? 0
			       : reterr->code;
	if (smartiod_seal_check(s, m, SIO_MSG_SEG_CONNECT, 0, 0, reterr) < 0)
		return reterr->code;
	seg = smartiod_segment_by_mem(d, sio_from_le64(m->key), reterr);
	if (!seg)
		return reterr->code;
	ds = b->device->lent->segs;
	while (ds && ds->segment != seg)
		ds = ds->next;
	if (!ds || (ds->private_to && ds->private_to != b->id))
		return sio_fail(reterr, -EACCES,
				"it is no device segment that this borrow can have");
	return smartiod_restore_connect(d, s, seg, 0, m, reterr);
}

static int restore_map(struct smartiod *d, struct smartiod_session *s,
		       const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_map *r = (const void *)m->request;
	struct smartiod_connection *c =
		smartiod_object_get(s, sio_from_le32(r->handle), SMARTIOD_CONNECTION, reterr);

	if (!c)
		return reterr->code;
	if (smartiod_connection_is_lost(c))
		return sio_fail(reterr, -ECONNRESET, "the connection is lost");
	if (c->route == SMARTIOD_BAR)
		return restore_bar_map(d, s, m, reterr);
	if (c->route == SMARTIOD_REMOTE && smartiod_window_again(d, s, c, m, reterr) < 0)
		return reterr->code;
	if (smartiod_map_new(d, s, c, reterr))
		return 0;
	if (c->n_maps == 0)
		smartiod_window_release(d, c);
	return reterr->code;
}

/*
 * The memory of the segment or connection that was mapped; 0: it is gone, or another host's, with
 * *reterr.
 */
static uint64_t memory_of(struct smartiod_session *s, const struct sio_msg_dma_map *r,
			  struct smartiod_segment **ret, struct smartiod_connection **ret_c,
			  struct sio_err *reterr)
{
	struct smartiod_connection *c = NULL;
	struct smartiod_segment *seg;

	if (sio_from_le32(r->remote)) {
		c = smartiod_object_get(s, sio_from_le32(r->segment), SMARTIOD_CONNECTION, reterr);
		seg = c ? c->segment : NULL;
		if (c && !seg)
			sio_fail(reterr, -ECONNRESET, "the connection is lost");
	} else {
		seg = smartiod_segment_get_ready(s, sio_from_le32(r->segment), reterr);
	}
	*ret = seg;
	*ret_c = c;
	return seg ? seg->mem : 0;
}

/* A BAR of another host's device, whose host knows whose pages these are. */
static int restore_far_bar(struct smartiod *d, struct smartiod_dma *dma,
			   const struct smartiod_borrow *b, struct sio_err *reterr)
{
	if (dma->cut) /* the program is notified of the cause */
		return 0;
	if (!dma->map || dma->exporter != b->node)
		return sio_fail(reterr, -EINVAL, "mapping %" PRIu64 " is of nothing of node %u",
				dma->by_id.key, b->node);
	smartiod_dma_far_again(d, dma);
	return 0;
}

/* The target of @dma: memory, which it keeps from now on; or another device's BAR. */
static int restore_target(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_dma_map *r, struct smartiod_dma *dma,
			  struct smartiod_segment **ret, struct smartiod_connection **ret_c,
			  struct sio_err *reterr)
{
	uint64_t mem = memory_of(s, r, ret, ret_c, reterr);
	const struct smartiod_borrow *b;
	struct smartiod_loan *l;

	if (*ret) { /* memory that is gone is 0, as what is cut leads to */
		if (mem && mem == dma->target)
			return 0;
		return sio_fail(reterr, -EINVAL, "mapping %" PRIu64 " is of other memory",
				dma->by_id.key);
	}
	if (!*ret_c || smartiod_connection_is_lost(*ret_c))
		return reterr->code;
	if ((*ret_c)->route == SMARTIOD_REMOTE) /* through a window, whose grant its host knows */
		return dma->window ? 0
				   : sio_fail(reterr, -EINVAL,
					      "mapping %" PRIu64 " is of memory of this host",
					      dma->by_id.key);
	if ((*ret_c)->route == SMARTIOD_GROUP)
		return dma->group && dma->uid == (*ret_c)->segment_id
			       ? 0
			       : sio_fail(reterr, -EINVAL, "mapping %" PRIu64 " is not of group %u",
					  dma->by_id.key, (*ret_c)->segment_id);
	if ((*ret_c)->route != SMARTIOD_BAR)
		return reterr->code;
	b = (*ret_c)->device;
	if (!b)
		return sio_fail(reterr, -ECONNRESET, "the device of this BAR is lost");
	if (b->node != d->node)
		return restore_far_bar(d, dma, b, reterr);
	l = loan_of(d, b, reterr);
	if (!l)
		return reterr->code;
	return smartiod_dma_bar_again(d, dma, l, (*ret_c)->segment_id,
				      b->generation != l->device->generation, reterr);
}

static int restore_dma_map(struct smartiod *d, struct smartiod_session *s,
			   const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dma_map *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_connection *c = NULL;
	struct smartiod_segment *seg = NULL;
	struct smartiod_dma_handle *h;
	struct smartiod_loan *l;
	struct smartiod_dma *dma;

	if (b && b->node != d->node)
		return smartiod_dma_again(s, b, m, reterr);
	l = b ? loan_of(d, b, reterr) : NULL;
	if (!l)
		return reterr->code;
	dma = SMARTIOD_OF(smartiod_tree_find(&d->dmas, sio_from_le64(m->key)), struct smartiod_dma,
			  by_id);
	if (!dma || dma->loan != l || !dma->adopted)
		return sio_fail(reterr, -ENOENT, "borrow %" PRIu64 " has no mapping %" PRIu64,
				l->id, sio_from_le64(m->key));
	dma->adopted = false; /* a queue may lie there: it stays, whatever comes */
	if (restore_target(d, s, r, dma, &seg, &c, reterr) < 0) {
		smartiod_dma_bar_lost(d, dma);
		return reterr->code;
	}
	h = smartiod_dma_handle_new(s, b, c, reterr);
	if (!h) {
		/* Nothing has changed yet, but of a BAR's pages: it may be told again. */
		dma->adopted = !(c && c->route == SMARTIOD_BAR) &&
			       !(sio_from_le32(m->flags) & SIO_RESTORE_LAST);
		return reterr->code;
	}
	smartiod_account_add(&s->program->account, &h->charge, SIO_QUOTA_DMA, dma->bytes);
	h->busy = false;
	h->map = dma->by_id.key;
	if (!seg)
		return 0;
	dma->uid = seg->uid;
	if (!dma->segment)
		smartiod_segment_dma_get(seg);
	dma->segment = seg;
	return 0;
}

/* ---- vectors, holds ---- */

static int restore_vector(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_vector *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_loan *l;

	if (b && b->node != d->node) {
		smartiod_vector_sender(d, s, sio_from_le32(r->link), b->node);
		return smartiod_vector_known(b, sio_from_le32(m->number),
					     sio_from_le32(m->flags) & SIO_RESTORE_LEAVING, reterr);
	}
	l = b ? loan_of(d, b, reterr) : NULL;
	if (!l)
		return reterr->code;
	return smartiod_vector_again(d, l, sio_from_le32(m->number), reterr);
}

static int restore_hold(struct smartiod *d, struct smartiod_session *s,
			const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_hold *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_loan *l;
	struct smartiod_dma *dma;

	if (!b)
		return reterr->code;
	/* Who has it need not own the registers any more: a hold outlives that. */
	if (r->device != m->handle || smartiod_seal_check(s, m, SIO_MSG_DEV_HOLD, 0, 0, reterr) < 0)
		return sio_fail(reterr, -EACCES,
				"this borrow has taken no hold with number %" PRIu64,
				sio_from_le64(m->key));
	if (b->node != d->node)
		return smartiod_held_add(d, b, sio_from_le64(m->key), b->generation);
	l = loan_of(d, b, reterr);
	if (!l)
		return reterr->code;
	dma = SMARTIOD_OF(smartiod_tree_find(&d->dmas, sio_from_le64(m->key)), struct smartiod_dma,
			  by_id);
	if (!dma || dma->loan->device != l->device || dma->unmapping ||
	    (dma->bar_borrow && !dma->outlives))
		return sio_fail(reterr, -ENOENT, "no memory is held by number %" PRIu64,
				sio_from_le64(m->key));
	return smartiod_hold_add(dma, d->node, l->id, reterr);
}

/* ---- when all is said ---- */

/* What was made by requests whose answers never came. */
static void drop_unclaimed(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_dma *dma, *next;

	for (dma = l->dmas; dma; dma = next) {
		next = dma->next;
		if (dma->adopted && !smartiod_held(dma)) /* a queue that lies there keeps it */
			smartiod_dma_drop(d, dma);
	}
	smartiod_vectors_drop(d, l);
	smartiod_unclaimed_give_back(d, l->owner);
}

/* A reset that its program has not heard of? */
static bool was_reset(const struct smartiod *d, const struct smartiod_loan *l)
{
	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->node == d->node && b->id == l->id && b->generation != l->device->generation)
			return true;
	return false;
}

static void finish_loan(struct smartiod *d, struct smartiod_loan *l)
{
	bool reset = was_reset(d, l);
	struct sio_err err;

	if (l->state == SMARTIOD_LOAN_OLD) {
		smartiod_loan_end(d, l);
		return;
	}
	if (smartiod_views_held_again(d, l, reset, &err) < 0) {
		smartiod_loan_give_up(d, l);
		return;
	}
	drop_unclaimed(d, l);
	if (reset)
		smartiod_loan_notify(d, l, SIO_DEVICE_EV_RESET, 0);
	smartiod_notice_again(d, l);
	if (l->device->ledger.holder == l->id)
		smartiod_holder_welcome(d, l);
}

void smartiod_restore_finish_devices(struct smartiod *d, struct smartiod_session *s)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (is_its(l, s))
			finish_loan(d, l);
	}
}

/* ---- the table: what has both ends of a borrow at this host, and so is no one room's ---- */

static void borrow_lost(struct smartiod *d, struct smartiod_session *s,
			const struct sio_msg_restore *m)
{
	struct sio_evm_device evm = {.handle = m->handle, .event = sio_to_le32(SIO_DEVICE_EV_LOST)};

	smartiod_event(d, s, SIO_EVM_DEVICE, &evm, sizeof(evm), NULL, 0);
}

static void connection_lost(struct smartiod *d, struct smartiod_session *s,
			    const struct sio_msg_restore *m)
{
	smartiod_restore_notify_lost(d, s, SIO_EVM_SEGMENT_REMOTE, m->handle);
}

static void map_lost(struct smartiod *d, struct smartiod_session *s,
		     const struct sio_msg_restore *m)
{
	const struct sio_msg_seg_map *map = (const void *)m->request;

	smartiod_restore_notify_lost(d, s, SIO_EVM_SEGMENT_REMOTE, map->handle);
}

/* Of another device's BAR: of what becomes of that the program has not heard otherwise. */
static void dma_map_lost(struct smartiod *d, struct smartiod_session *s,
			 const struct sio_msg_restore *m)
{
	const struct sio_msg_dma_map *r = (const void *)m->request;
	struct sio_err err;
	const struct smartiod_connection *c = NULL;

	if (sio_from_le32(r->remote))
		c = smartiod_object_get(s, sio_from_le32(r->segment), SMARTIOD_CONNECTION, &err);
	if (c && c->route == SMARTIOD_BAR)
		smartiod_restore_notify_lost(d, s, SIO_EVM_SEGMENT_REMOTE, r->segment);
}

const struct smartiod_restorable smartiod_restores[] = {
	{SIO_MSG_DEV_BORROW, SMARTIOD_RESTORE_OWN, restore_borrow, borrow_lost},
	{SIO_MSG_DEV_SEG_CREATE, SMARTIOD_RESTORE_OWN, restore_dev_seg, NULL},
	{SIO_MSG_DEV_SEG_CONNECT, SMARTIOD_RESTORE_ALL, restore_dev_connection, connection_lost},
	{SIO_MSG_SEG_MAP, SMARTIOD_RESTORE_ALL, restore_map, map_lost},
	{SIO_MSG_GROUP_JOIN, SMARTIOD_RESTORE_ALL, restore_member, map_lost},
	{SIO_MSG_DMA_MAP, SMARTIOD_RESTORE_ALL, restore_dma_map, dma_map_lost},
	{SIO_MSG_DEV_VECTOR, SMARTIOD_RESTORE_ALL, restore_vector, NULL},
	{SIO_MSG_DEV_HOLD, SMARTIOD_RESTORE_ALL, restore_hold, NULL},
	{0, 0, NULL, NULL},
};
