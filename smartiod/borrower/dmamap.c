/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA mappings, the borrower's side: handles. The lender makes and ends the mappings
 * (lender/dmalend.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

struct dma_op {
	struct smartiod_op op;
	struct smartiod_dma_handle *handle;
};

static void handle_free(struct smartiod *d, struct smartiod_dma_handle *h)
{
	struct smartiod_borrow *b = h->borrow;
	struct smartiod_connection *c = h->connection;
	struct smartiod_dma_handle **at = &b->dma;

	smartiod_charge_drop(&h->charge);
	smartiod_object_remove(&h->o);
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	free(h);
	if (c) {
		c->dma--;
		smartiod_connection_unpin(d, c);
	}
	smartiod_borrow_unuse(d, b);
}

/* The client is gone; its borrows end next, and all mappings with them. */
void smartiod_dma_handles_end(struct smartiod *d, struct smartiod_session *s)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&s->objects, key))) {
		struct smartiod_object *o = SMARTIOD_OF(n, struct smartiod_object, by_handle);
		struct smartiod_dma_handle *h = (struct smartiod_dma_handle *)o;

		key = n->key;
		if (o->kind != SMARTIOD_DMA_MAP)
			continue;
		if (h->busy)
			smartiod_object_remove(o); /* its operation frees it */
		else
			handle_free(d, h);
	}
}

/* ---- map ---- */

static void ask_unmap(struct smartiod *d, struct smartiod_op *op, uint32_t node, sio_le64 borrower,
		      sio_le64 map, sio_le32 fdid)
{
	struct sio_peer_dma_unmap ask = {.h.type = sio_to_le32(SIO_PEER_DMA_UNMAP),
					 .borrower = borrower,
					 .map = map,
					 .fdid = fdid};

	smartiod_ask(d, op, node, &ask, sizeof(ask));
}

void smartiod_dma_ask_unmap(struct smartiod *d, struct smartiod_op *op,
			    const struct smartiod_borrow *b, uint64_t map)
{
	ask_unmap(d, op, b->node, sio_to_le64(b->id), sio_to_le64(map),
		  sio_to_le32(b->device->fdid));
}

static void late_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	(void)a; /* if it failed, the mapping ends with the borrow */
	smartiod_op_free(d, op);
}

void smartiod_dma_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_dma_map *rep = reply;
	struct sio_err err;
	struct smartiod_op *op = smartiod_op_new(d, NULL, NULL, sizeof(*op), late_step, &err);

	if (op)
		ask_unmap(d, op, node, rep->borrower, rep->map, rep->fdid);
}

static void map_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_dma_handle *h = ((struct dma_op *)op)->handle;
	const struct sio_prep_dma_map *rep = a->msg;
	struct sio_rep_dma_map reply;

	h->busy = false;
	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
		handle_free(d, h);
	} else if (!op->session) {
		handle_free(d, h); /* the mapping ends with the borrow */
	} else {
		h->map = sio_from_le64(rep->map);
		reply = (struct sio_rep_dma_map){
			.map = sio_to_le32(smartiod_handle(&h->o)),
			.ioaddr = rep->ioaddr,
			.bytes = rep->bytes,
			.key = rep->map,
		};
		smartiod_op_reply(d, op, &reply, sizeof(reply), NULL, 0);
	}
	smartiod_op_free(d, op);
}

/* What is to be mapped, as it is sent to the lender. */
struct source {
	uint32_t exporter, adapter;
	uint32_t target, bar; /* target 0: memory, not a BAR */
	uint64_t uid, connection_id, bytes;
	struct smartiod_connection *connection;
};

static int local_source(struct smartiod *d, struct smartiod_session *s,
			const struct sio_msg_dma_map *m, const struct smartiod_borrow *b,
			struct source *ret, struct sio_err *reterr)
{
	uint32_t adapter = sio_from_le32(m->adapter);
	struct smartiod_segment *seg;

	seg = smartiod_segment_get_ready(s, sio_from_le32(m->segment), reterr);
	if (!seg)
		return reterr->code;
	ret->adapter = SIO_PEER_ANY_ADAPTER;
	if (b->node != d->node) {
		if (adapter >= d->host->n_adapters)
			return sio_fail(reterr, -ENXIO,
					"%s has no adapter %" PRIu32 "; it has %u from 0 on",
					d->host->name, adapter, d->host->n_adapters);
		if (!(seg->prepared & 1u << adapter))
			return sio_fail(reterr, -EPERM,
					"segment %#" PRIx32 " is not prepared on adapter %" PRIu32,
					seg->id, adapter);
		ret->adapter = adapter;
	}
	ret->exporter = d->node;
	ret->uid = seg->uid;
	ret->bytes = seg->bytes;
	return 0;
}

/* Another device's pages: its lender knows which of them are this borrower's. */
static int bar_source(const struct smartiod_connection *c, struct source *ret,
		      struct sio_err *reterr)
{
	const struct smartiod_borrow *b = c->device;

	if (!b || smartiod_borrow_ended(b) || smartiod_borrow_lost(b))
		return sio_fail(reterr, -ECONNRESET, "the device of this BAR is lost");
	ret->exporter = b->node;
	ret->adapter = SIO_PEER_ANY_ADAPTER;
	ret->target = b->device->fdid;
	ret->bar = c->segment_id;
	ret->uid = b->id;
	ret->connection_id = b->ticket;
	ret->bytes = c->bytes;
	return 0;
}

static int remote_source(struct smartiod *d, struct smartiod_session *s,
			 const struct sio_msg_dma_map *m, const struct smartiod_borrow *b,
			 struct source *ret, struct sio_err *reterr)
{
	struct smartiod_connection *c;

	c = smartiod_object_get(s, sio_from_le32(m->segment), SMARTIOD_CONNECTION, reterr);
	if (!c)
		return reterr->code;
	if (smartiod_connection_connecting(c))
		return sio_fail(reterr, -EBADF, "this connection " SMARTIOD_NOT_YET);
	if (smartiod_connection_is_lost(c))
		return sio_fail(reterr, -ECONNRESET,
				"the connection to segment %#" PRIx32 " of node %" PRIu32
				" is lost",
				c->segment_id, c->node);
	ret->connection = c;
	if (c->route == SMARTIOD_BAR)
		return bar_source(c, ret, reterr);
	ret->exporter = c->route == SMARTIOD_GROUP ? SIO_PEER_GROUP : c->node;
	if (c->route == SMARTIOD_GROUP)
		ret->adapter = c->adapter;
	else if (c->node == d->node && b->node != d->node && b->adapter != SIO_ADAPTER_ANY)
		ret->adapter = b->adapter; /* our memory, on the way that the borrow has chosen */
	else
		ret->adapter = SIO_PEER_ANY_ADAPTER;
	ret->uid = c->route == SMARTIOD_GROUP ? c->segment_id : c->uid;
	ret->connection_id = c->route == SMARTIOD_GROUP ? 0 : c->id;
	ret->bytes = c->bytes;
	return 0;
}

/* Whole pages of the segment: what a device is given starts and ends at pages. */
static int check_range(const struct source *src, uint64_t offset, uint64_t *bytes,
		       struct sio_err *reterr)
{
	uint64_t mask = SIO_PAGE_SIZE - 1, end;

	if (*bytes == 0)
		return sio_fail(reterr, -EINVAL, "a mapping has at least 1 byte");
	if (offset & mask)
		return sio_fail(reterr, -EINVAL, "offset %" PRIu64 " is not a multiple of %u",
				offset, SIO_PAGE_SIZE);
	if (__builtin_add_overflow(*bytes, mask, bytes) ||
	    __builtin_add_overflow(offset, *bytes &= ~mask, &end) || end > src->bytes)
		return sio_fail(reterr, -ERANGE,
				"%" PRIu64 " bytes at %" PRIu64 " of a segment of %" PRIu64, *bytes,
				offset, src->bytes);
	return 0;
}

struct smartiod_dma_handle *smartiod_dma_handle_new(struct smartiod_session *s,
						    struct smartiod_borrow *b,
						    struct smartiod_connection *c,
						    struct sio_err *reterr)
{
	struct smartiod_dma_handle *h = calloc(1, sizeof(*h));

	if (!h) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	if (smartiod_object_add(s, &h->o, SMARTIOD_DMA_MAP, reterr) < 0) {
		free(h);
		return NULL;
	}
	h->borrow = b;
	h->busy = true;
	h->next = b->dma;
	b->dma = h;
	b->users++;
	h->connection = c;
	if (c) {
		c->dma++;
		c->pins++;
	}
	return h;
}

int smartiod_dma_map(struct smartiod *d, struct smartiod_session *s, const void *msg,
		     struct sio_err *reterr)
{
	const struct sio_msg_dma_map *m = msg;
	struct sio_peer_dma_map ask = {.h.type = sio_to_le32(SIO_PEER_DMA_MAP),
				       .offset = m->offset};
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	uint64_t bytes = sio_from_le64(m->bytes);
	struct source src = {.exporter = 0};
	struct dma_op *op;
	int rc;

	if (!b)
		return reterr->code;
	if (sio_from_le32(m->flags) & ~SIO_DMA_AT)
		return sio_fail(reterr, -EINVAL, "flags %#" PRIx32 ": %#x alone is for this",
				sio_from_le32(m->flags), SIO_DMA_AT);
	if (sio_from_le32(m->remote))
		rc = remote_source(d, s, m, b, &src, reterr);
	else
		rc = local_source(d, s, m, b, &src, reterr);
	if (rc == 0)
		rc = check_range(&src, sio_from_le64(m->offset), &bytes, reterr);
	if (rc == 0)
		rc = smartiod_quota_program(d, s, SIO_QUOTA_DMA, bytes, reterr);
	if (rc < 0)
		return rc;
	op = smartiod_op_new(d, s, msg, sizeof(*op), map_step, reterr);
	if (!op)
		return reterr->code;
	op->handle = smartiod_dma_handle_new(s, b, src.connection, reterr);
	if (!op->handle) {
		smartiod_op_free(d, &op->op);
		return reterr->code;
	}
	if (!src.connection)
		op->handle->own = (struct smartiod_dma_range){
			.uid = src.uid, .offset = sio_from_le64(m->offset), .bytes = bytes};
	smartiod_account_add(&s->program->account, &op->handle->charge, SIO_QUOTA_DMA, bytes);
	ask.borrower = sio_to_le64(b->id);
	ask.uid = sio_to_le64(src.uid);
	ask.connection = sio_to_le64(src.connection_id);
	ask.bytes = sio_to_le64(bytes);
	ask.ioaddr = m->ioaddr;
	ask.at = m->flags;
	ask.fdid = sio_to_le32(b->device->fdid);
	ask.exporter = sio_to_le32(src.exporter);
	ask.adapter = sio_to_le32(src.adapter);
	ask.target = sio_to_le32(src.target);
	ask.bar = sio_to_le32(src.bar);
	smartiod_ask(d, &op->op, b->node, &ask, sizeof(ask));
	return 0;
}

static bool covers(const struct smartiod_dma_range *r, uint64_t uid, uint64_t offset,
		   uint64_t bytes)
{
	return r->uid && r->uid == uid && offset >= r->offset && offset - r->offset <= r->bytes &&
	       bytes <= r->bytes - (offset - r->offset);
}

/* The newest first: an honest lender asks while its borrower waits. */
bool smartiod_dma_maps(struct smartiod *d, uint32_t node, uint64_t uid, uint64_t offset,
		       uint64_t bytes)
{
	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next) {
		if (b->node != node || smartiod_borrow_ended(b))
			continue;
		if (covers(&b->shadow_ram, uid, offset, bytes))
			return true;
		for (const struct smartiod_dma_handle *h = b->dma; h; h = h->next)
			if (covers(&h->own, uid, offset, bytes))
				return true;
	}
	return false;
}

/* ---- unmap ---- */

static void unmap_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_dma_handle *h = ((struct dma_op *)op)->handle;

	h->busy = false;
	/*
	 * With its host down the mapping is gone, whatever the answer was. A lender that knows of
	 * none has unmapped it before: it answered when we no longer waited.
	 */
	if (a->error && a->error != -EBADF && !smartiod_borrow_lost(h->borrow) && op->session) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		smartiod_op_ok(d, op);
		handle_free(d, h);
	}
	smartiod_op_free(d, op);
}

int smartiod_dma_unmap(struct smartiod *d, struct smartiod_session *s, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct smartiod_dma_handle *h;
	struct dma_op *op;

	h = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_DMA_MAP, reterr);
	if (!h)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "flags %#" PRIx32 ": there are none for this",
				sio_from_le32(m->flags));
	if (h->busy)
		return sio_fail(reterr, -EBUSY, "another request is working on this mapping");
	if (smartiod_borrow_lost(h->borrow)) {
		handle_free(d, h);
		smartiod_reply_ok(d, s, msg);
		return 0;
	}
	op = smartiod_op_new(d, s, msg, sizeof(*op), unmap_step, reterr);
	if (!op)
		return reterr->code;
	op->handle = h;
	h->busy = true;
	smartiod_dma_ask_unmap(d, &op->op, h->borrow, h->map);
	return 0;
}
