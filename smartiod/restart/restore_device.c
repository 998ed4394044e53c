/* SPDX-License-Identifier: BSD-2-Clause */
/* What a library had before smartiod was started again: borrows, and what hangs on them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/restart/restore.h"

/* ---- borrows ---- */

static bool is_its(const struct smartiod_loan *l, const struct smartiod_session *s)
{
	return !l->ended && !l->gone && !l->distant && l->parent == s->owner;
}

static struct smartiod_loan *loan_of(struct smartiod *d, const struct smartiod_borrow *b,
				     struct sio_err *reterr)
{
	struct smartiod_loan *l = smartiod_loan_find(d, b->id);

	if (l && !l->ended)
		return l;
	sio_fail(reterr, -ENOENT, "borrow %" PRIu64 " has ended", b->id);
	return NULL;
}

int smartiod_restore_borrow(struct smartiod *d, struct smartiod_session *s,
			    const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_borrow *r = (const void *)m->request;
	struct smartiod_device *dev = smartiod_device_ours(d, sio_from_le32(r->fdid), reterr);
	struct smartiod_loan *l = smartiod_loan_find(d, sio_from_le64(m->key));
	struct smartiod_borrow *b;

	if (!dev)
		return reterr->code;
	if (!l || l->device != dev || l->ready || !is_its(l, s))
		return sio_fail(reterr, -ENOENT, "%s: borrow %" PRIu64 " is none of this program's",
				dev->topo->name, sio_from_le64(m->key));
	b = smartiod_borrow_new(d, s, dev, reterr);
	if (!b)
		return reterr->code;
	b->id = l->id;
	b->generation = sio_from_le32(m->number);
	l->ready = true;
	l->session = s->client;
	l->pid = s->pid;
	sio_ledger_restore(&dev->ledger, l->id, s->client,
			   sio_from_le32(m->flags) & SIO_RESTORE_RELEASED);
	smartiod_borrow_unpin(d, b);
	return 0;
}

int smartiod_restore_dev_seg(struct smartiod *d, struct smartiod_session *s,
			     const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_create *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_loan *l = b ? loan_of(d, b, reterr) : NULL;
	struct smartiod_leftover *left;

	if (!l)
		return reterr->code;
	left = smartiod_leftover_get(d, SIO_KIND_MEM, l->owner, sio_from_le64(m->key), reterr);
	if (!left)
		return reterr->code;
	if (left->fd[0] < 0)
		return sio_fail(reterr, -EMFILE, "its descriptor could not be had again");
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

int smartiod_restore_bar_map(struct smartiod *d, struct smartiod_session *s,
			     const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_map *r = (const void *)m->request;
	struct smartiod_connection *c =
		smartiod_object_get(s, sio_from_le32(r->handle), SMARTIOD_CONNECTION, reterr);
	struct smartiod_borrow *b = c ? c->device : NULL;
	struct smartiod_loan *l = b ? loan_of(d, b, reterr) : NULL;
	struct smartiod_bar_map *bar;
	struct smartiod_map *map;
	bool reset = l && b->generation != l->device->generation;
	struct smartiod_view *v;

	if (!l)
		return c && !b ? sio_fail(reterr, -ECONNRESET, "the device is lost") : reterr->code;
	bar = calloc(1, sizeof(*bar));
	if (!bar)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory");
	map = smartiod_map_new(s, c, reterr);
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
	for (unsigned i = 0; i < SIO_RESTORE_VIEWS && i < SIO_MAP_PIECES && m->view[i]; i++) {
		if (smartiod_view_again(d, l, c->segment_id, sio_from_le32(m->view[i]), reset, &v,
					reterr)) {
			smartiod_map_drop(d, map);
			return reterr->code;
		}
		bar->piece[bar->n++] = piece_again(v);
	}
	return 0;
}

/* The memory of the segment or connection that was mapped; 0: it is gone, with *reterr. */
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

int smartiod_restore_dma_map(struct smartiod *d, struct smartiod_session *s,
			     const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dma_map *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_loan *l = b ? loan_of(d, b, reterr) : NULL;
	struct smartiod_connection *c = NULL;
	struct smartiod_segment *seg = NULL;
	struct smartiod_dma_handle *h;
	struct smartiod_dma *dma;

	if (!l)
		return reterr->code;
	dma = SMARTIOD_OF(smartiod_tree_find(&d->dmas, sio_from_le64(m->key)), struct smartiod_dma,
			  by_id);
	if (!dma || dma->loan != l || !dma->adopted)
		return sio_fail(reterr, -ENOENT, "borrow %" PRIu64 " has no mapping %" PRIu64,
				l->id, sio_from_le64(m->key));
	dma->adopted = false; /* a queue may lie there: it stays, whatever comes */
	if (memory_of(s, r, &seg, &c, reterr) == 0)
		return reterr->code;
	if (seg->mem != dma->target)
		return sio_fail(reterr, -EINVAL, "mapping %" PRIu64 " is of other memory",
				dma->by_id.key);
	h = smartiod_dma_handle_new(s, b, c, reterr);
	if (!h)
		return reterr->code;
	h->busy = false;
	h->map = dma->by_id.key;
	dma->uid = seg->uid;
	if (!dma->segment)
		smartiod_segment_dma_get(seg);
	dma->segment = seg;
	return 0;
}

/* ---- vectors, holds ---- */

int smartiod_restore_vector(struct smartiod *d, struct smartiod_session *s,
			    const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_vector *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_loan *l = b ? loan_of(d, b, reterr) : NULL;

	if (!l)
		return reterr->code;
	return smartiod_vector_again(d, l, sio_from_le32(m->number), reterr);
}

int smartiod_restore_hold(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_hold *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	struct smartiod_loan *l = b ? loan_of(d, b, reterr) : NULL;
	struct smartiod_dma *dma;
	int rc;

	if (!l)
		return reterr->code;
	rc = sio_ledger_may_settle(&l->device->ledger, l->id, reterr);
	if (rc < 0)
		return rc;
	dma = SMARTIOD_OF(smartiod_tree_find(&d->dmas, sio_from_le64(m->key)), struct smartiod_dma,
			  by_id);
	if (!dma || dma->loan->device != l->device || dma->unmapping)
		return sio_fail(reterr, -ENOENT, "no memory is held by number %" PRIu64,
				sio_from_le64(m->key));
	return smartiod_hold_add(dma, d->node, reterr);
}

/* ---- when all is said ---- */

/* What was made by requests whose answers never came. */
static void drop_unclaimed(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_dma *dma, *next;

	for (dma = l->dmas; dma; dma = next) {
		next = dma->next;
		if (dma->adopted && !dma->holds) /* a queue that lies there keeps it */
			smartiod_dma_drop(d, dma);
	}
	smartiod_vectors_drop(d, l);
	smartiod_leftovers_give_back(d, l->owner);
}

static void finish_loan(struct smartiod *d, struct smartiod_loan *l)
{
	if (!l->ready) {
		smartiod_loan_end(d, l);
		return;
	}
	drop_unclaimed(d, l);
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->id == l->id && b->generation != l->device->generation)
			smartiod_loan_notify(d, l, SIO_DEVICE_EV_RESET, 0);
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
