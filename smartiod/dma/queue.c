/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA queues: a channel of the port's DMA engine for a program, and the ranges that the channel may
 * reach. Once a channel has been made and its ranges are attached, the daemon takes no part in
 * transfers. A connection lists its ranges, so that they end with it. Ranges of a program's own
 * segment end with the segment's memory, at the port.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/dma/queue.h"
#include "smartiod/segment/connection.h"

/* ---- life of a queue ---- */

static void queue_free(struct smartiod *d, struct smartiod_queue *q)
{
	smartiod_tree_remove(&d->queues, &q->by_uid);
	free(q);
}

static void queue_unpin(struct smartiod *d, struct smartiod_queue *q)
{
	if (--q->pins == 0 && q->closed)
		queue_free(d, q);
}

static void queue_free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->queues, 0)))
		queue_free(d, SMARTIOD_OF(n, struct smartiod_queue, by_uid));
}

/* The ranges of it are the port's to end; those who remember them forget. */
static void forget_queue(struct smartiod *d, struct smartiod_queue *q)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->connections, key))) {
		struct smartiod_connection *c = SMARTIOD_OF(n, struct smartiod_connection, by_id);
		struct smartiod_range *g = c->ranges, *next;

		key = n->key;
		for (; g; g = next) {
			next = g->next;
			if (g->queue == q && g->id) /* else its operation forgets it */
				smartiod_range_forget(d, c, g);
		}
	}
}

static void queue_drop(struct smartiod *d, struct smartiod_object *o)
{
	struct smartiod_queue *q = (struct smartiod_queue *)o;

	smartiod_object_remove(o);
	forget_queue(d, q);
	q->closed = true;
	q->pins++;
	queue_unpin(d, q);
}

static void send_free(struct smartiod *d, uint64_t channel)
{
	struct sio_req_dma_free req = {.h.op = SIO_OP_DMA_FREE, .id = channel};

	if (channel)
		smartiod_port_send(d, &req, sizeof(req));
}

struct create_op {
	struct smartiod_op op;
	struct smartiod_queue *queue; /* pinned */
};

static void create_reply(struct smartiod *d, struct create_op *c, const struct sio_evt_dma *evt)
{
	struct sio_rep_queue_create rep = {
		.handle = sio_to_le32(smartiod_handle(&c->queue->o)),
		.bytes = sio_to_le64(evt->size),
		.channel = sio_to_le64(evt->id),
	};

	smartiod_op_reply(d, &c->op, &rep, sizeof(rep), c->op.fd, 3);
}

static void create_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct create_op *c = (struct create_op *)op;
	struct smartiod_queue *q = c->queue;
	bool full = false;

	for (unsigned i = 0; !a->error && i < 3; i++) {
		op->fd[i] = smartiod_take_fd(a, i);
		full |= op->fd[i] < 0;
	}
	if (!a->error)
		q->channel = ((const struct sio_evt_dma *)a->msg)->id;
	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else if (full) {
		smartiod_op_error(d, op, -EMFILE, "%s", smartiod_no_descriptor(d));
	} else if (!q->closed) {
		create_reply(d, c, a->msg);
		queue_unpin(d, q);
		smartiod_op_free(d, op);
		return;
	}
	if (!op->session || !q->closed)
		send_free(d, q->channel);
	if (!q->closed)
		queue_drop(d, &q->o);
	queue_unpin(d, q);
	smartiod_op_free(d, op);
}

struct smartiod_queue *smartiod_queue_new(struct smartiod *d, struct smartiod_session *s,
					  uint32_t adapter, struct sio_err *reterr)
{
	struct smartiod_queue *q;

	if (adapter >= d->host->n_adapters) {
		sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on", d->host->name,
			 adapter, d->host->n_adapters);
		return NULL;
	}
	q = calloc(1, sizeof(*q));
	if (!q) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	if (smartiod_object_add(s, &q->o, SMARTIOD_QUEUE, reterr) < 0) {
		free(q);
		return NULL;
	}
	smartiod_tree_add(&d->queues, &q->by_uid, smartiod_uid(d));
	q->adapter = adapter;
	q->pins = 1;
	return q;
}

int smartiod_queue_create(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_queue_create *m = msg;
	struct sio_req_dma req = {.h = {.op = SIO_OP_DMA, .owner = s->owner},
				  .adapter = sio_from_le32(m->adapter)};
	struct create_op *c;

	if (m->flags)
		return sio_fail(reterr, -EINVAL, "SCICreateDMAQueue takes no flags here");
	c = smartiod_op_new(d, s, msg, sizeof(*c), create_step, reterr);
	if (!c)
		return reterr->code;
	c->queue = smartiod_queue_new(d, s, req.adapter, reterr);
	if (!c->queue) {
		smartiod_op_free(d, &c->op);
		return reterr->code;
	}
	smartiod_port_ask(d, &c->op, &req, sizeof(req));
	return 0;
}

/* One that is made. */
static struct smartiod_queue *get_queue(struct smartiod_session *s, sio_le32 handle,
					struct sio_err *reterr)
{
	struct smartiod_queue *q;

	q = smartiod_object_get(s, sio_from_le32(handle), SMARTIOD_QUEUE, reterr);
	if (q && !q->channel) {
		sio_fail(reterr, -EBADF, "this DMA queue " SMARTIOD_NOT_YET);
		return NULL;
	}
	return q;
}

int smartiod_queue_remove(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct smartiod_queue *q = get_queue(s, m->handle, reterr);

	if (!q)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "SCIRemoveDMAQueue takes no flags");
	send_free(d, q->channel);
	queue_drop(d, &q->o);
	smartiod_reply_ok(d, s, msg);
	return 0;
}

/* ---- attach ---- */

/*
 * A range of a connection may first need its window. From then on it is booked, so that the window
 * stays; the port's number comes with its answer.
 */
struct attach_op {
	struct smartiod_window_op w;
	struct smartiod_queue *queue;	  /* pinned */
	struct smartiod_segment *segment; /* the program's own, or a local connection's: pinned */
	struct smartiod_range *range;	  /* of the connection, in its list while that lives */
	uint64_t first, bytes;		  /* of the segment or BAR, that are attached */
};

static void attach_end(struct smartiod *d, struct attach_op *t)
{
	struct smartiod_connection *c = t->w.connection;

	if (t->segment)
		smartiod_segment_unpin(d, t->segment);
	if (c)
		smartiod_connection_unpin(d, c);
	queue_unpin(d, t->queue);
	smartiod_op_free(d, &t->w.op);
}

/* Is the booked range still in the connection's list? Else it ended, and @range is no more. */
static bool range_lives(const struct attach_op *t)
{
	const struct smartiod_range *g = t->w.connection->ranges;

	while (g && g != t->range)
		g = g->next;
	return g;
}

static void attached(struct smartiod *d, struct attach_op *t, const struct sio_evt_dma_attach *evt)
{
	struct smartiod_connection *c = t->w.connection;
	struct sio_rep_queue_attach rep = {
		.slot = sio_to_le32(evt->slot),
		.range = sio_to_le64(evt->id),
		.first = sio_to_le64(t->first),
		.length = sio_to_le64(t->bytes),
	};

	if (t->queue->closed || !t->w.op.session || (c && !range_lives(t))) {
		smartiod_port_detach(d, 0, evt->id);
		if (c && range_lives(t))
			smartiod_range_forget(d, c, t->range);
		smartiod_op_error(d, &t->w.op, -ECONNRESET, "the queue or the connection is gone");
		return;
	}
	if (c)
		t->range->id = evt->id;
	if (c && c->route == SMARTIOD_BAR)
		c->ops->reach_claim(d, t->w.op.session, smartiod_handle(&t->queue->o),
				    t->range->bar, &rep);
	if (c && c->route == SMARTIOD_REMOTE) {
		rep.window = sio_to_le64(c->map);
		rep.seal = sio_to_le64(smartiod_window_seal(
			t->w.op.session, smartiod_handle(&t->queue->o), c, c->map));
	}
	smartiod_op_reply(d, &t->w.op, &rep, sizeof(rep), NULL, 0);
}

static void attach_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct attach_op *t = (struct attach_op *)op;
	struct smartiod_connection *c = t->w.connection;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
		if (c && range_lives(t))
			smartiod_range_forget(d, c, t->range);
	} else {
		attached(d, t, a->msg);
	}
	attach_end(d, t);
}

static void ask_attach(struct smartiod *d, struct attach_op *t, uint32_t kind, uint64_t target,
		       uint64_t offset, uint64_t length)
{
	struct sio_req_dma_attach req = {
		.h = {.op = SIO_OP_DMA_ATTACH, .owner = t->w.op.session->owner},
		.channel = t->queue->channel,
		.target = target,
		.offset = offset,
		.length = length,
		.target_kind = kind,
		.access = SIO_ACCESS_WRITE,
	};

	if (!t->w.connection || !t->w.connection->exact)
		req.access |= SIO_ACCESS_READ;
	t->bytes = length;
	t->w.op.step = attach_step;
	smartiod_port_ask(d, &t->w.op, &req, sizeof(req));
}

/* The window is there. */
static void attach_window(struct smartiod *d, struct smartiod_window_op *w)
{
	struct attach_op *t = (struct attach_op *)w;
	struct smartiod_connection *c = w->connection;

	t->range = t->queue->closed ? NULL : smartiod_range_new(c, t->queue);
	if (!t->range) {
		smartiod_op_error(d, &w->op, t->queue->closed ? -EBADF : -ENOMEM,
				  t->queue->closed
					  ? "the queue is gone"
					  : "the daemon is out of memory: " SIO_MORE_MEMORY);
		if (c->n_maps == 0 && !c->ranges)
			smartiod_window_release(d, c);
		attach_end(d, t);
		return;
	}
	ask_attach(d, t, SIO_KIND_MAP, c->map, 0, c->bytes);
}

static void attach_no_window(struct smartiod *d, struct smartiod_window_op *w)
{
	attach_end(d, (struct attach_op *)w);
}

static int attach_segment(struct smartiod *d, struct attach_op *t, struct smartiod_segment *seg)
{
	smartiod_segment_pin(seg);
	t->segment = seg;
	ask_attach(d, t, SIO_KIND_MEM, seg->mem, 0, seg->bytes);
	return 0;
}

static int attach_connection(struct smartiod *d, struct attach_op *t, struct smartiod_connection *c,
			     struct sio_err *reterr)
{
	if (c->route != SMARTIOD_REMOTE) {
		t->range = smartiod_range_new(c, t->queue);
		if (!t->range)
			return sio_fail(reterr, -ENOMEM,
					"the daemon is out of memory: " SIO_MORE_MEMORY);
	}
	c->pins++;
	t->w.connection = c;
	if (c->route == SMARTIOD_LOCAL)
		return attach_segment(d, t, c->segment);
	if (c->route == SMARTIOD_GROUP) {
		ask_attach(d, t, SIO_KIND_MEM, c->map, 0, c->bytes);
		return 0;
	}
	smartiod_window_go(d, &t->w);
	return 0;
}

/* ---- BARs ---- */

/* Nothing that is reached of it is anybody's. */
static void reach_fail(struct smartiod *d, struct smartiod_op *op, struct smartiod_connection *c,
		       const struct smartiod_reached *r, const struct sio_err *err)
{
	smartiod_op_fail(d, op, err);
	c->ops->unreach(d, r->bar);
}

/* As a program's map, it has a window of its own. */
static struct smartiod_range *bar_range(struct smartiod *d, struct smartiod_session *s,
					struct smartiod_connection *c, struct smartiod_queue *q,
					struct sio_err *reterr)
{
	bool far = c->node != d->node;
	struct smartiod_range *g;

	if (far && smartiod_quota_program(d, s, SIO_QUOTA_WINDOWS, 1, reterr) < 0)
		return NULL;
	g = smartiod_range_new(c, q);
	if (!g)
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	else if (far)
		smartiod_account_add(&s->program->account, &g->charge, SIO_QUOTA_WINDOWS, 1);
	return g;
}

/* The queue was pinned for it. */
static void bar_reached(struct smartiod *d, struct smartiod_op *op, struct smartiod_connection *c,
			void *arg, const struct smartiod_reached *r)
{
	const struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};
	struct smartiod_queue *q = arg;
	struct attach_op *t = NULL;
	struct sio_err err = {.text = "the queue is gone", .code = -EBADF};

	if (r && !q->closed)
		t = smartiod_op_new(d, op->session, &request, sizeof(*t), attach_step, &err);
	if (t)
		t->range = bar_range(d, op->session, c, q, &err);
	if (t && !t->range) {
		smartiod_op_free(d, &t->w.op);
		t = NULL;
	}
	if (!t) {
		if (r)
			reach_fail(d, op, c, r, &err);
		queue_unpin(d, q);
		return;
	}
	t->queue = q;
	t->range->bar = r->bar;
	t->w.connection = c;
	c->pins++;
	t->first = r->first;
	ask_attach(d, t, r->kind, r->target, r->offset, r->bytes);
}

static int attach_bar(struct smartiod *d, struct smartiod_queue *q, struct smartiod_connection *c,
		      const struct sio_msg_queue_attach *m, struct sio_err *reterr)
{
	uint64_t end;
	int rc;

	if (__builtin_add_overflow(sio_from_le64(m->offset), sio_from_le64(m->bytes), &end) ||
	    end > c->bytes)
		return sio_fail(reterr, -ERANGE,
				"%" PRIu64 " bytes at %#" PRIx64 " of a BAR of %#" PRIx64,
				sio_from_le64(m->bytes), sio_from_le64(m->offset), c->bytes);
	q->pins++;
	rc = c->ops->reach(d, c, m, q->adapter, bar_reached, q, reterr);
	if (rc < 0)
		queue_unpin(d, q);
	return rc;
}

int smartiod_queue_target(struct smartiod_session *s, const struct sio_msg_queue_attach *m,
			  const struct smartiod_queue *q, struct smartiod_segment **ret_seg,
			  struct smartiod_connection **ret_connection, struct sio_err *reterr)
{
	uint32_t handle = sio_from_le32(m->segment);
	struct smartiod_connection *c;
	struct smartiod_segment *seg;

	if (!m->remote) {
		seg = smartiod_segment_get_ready(s, handle, reterr);
		if (!seg)
			return reterr->code;
		if (!(seg->prepared >> q->adapter & 1))
			return sio_fail(
				reterr, -EPERM,
				"segment %#x is not prepared on adapter %u: SCIPrepareSegment() "
				"comes first",
				seg->id, q->adapter);
		*ret_seg = seg;
		return 0;
	}
	c = smartiod_object_get(s, handle, SMARTIOD_CONNECTION, reterr);
	if (!c)
		return reterr->code;
	if (smartiod_connection_connecting(c))
		return sio_fail(reterr, -EBADF, "this connection " SMARTIOD_NOT_YET);
	if (smartiod_connection_is_lost(c))
		return sio_fail(reterr, -ECONNRESET,
				"the connection to segment %#x of node %u is lost", c->segment_id,
				c->node);
	if ((c->route == SMARTIOD_REMOTE || c->exact) && c->adapter != q->adapter)
		return sio_fail(reterr, -ENOTCONN,
				"segment %#x of node %u is connected through adapter %u, the "
				"queue is of adapter %u",
				c->segment_id, c->node, c->adapter, q->adapter);
	*ret_connection = c;
	return 0;
}

int smartiod_queue_attach(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_queue_attach *m = msg;
	struct smartiod_queue *q = get_queue(s, m->queue, reterr);
	struct smartiod_connection *c = NULL;
	struct smartiod_segment *seg = NULL;
	struct attach_op *t;
	int rc;

	if (!q)
		return reterr->code;
	rc = smartiod_queue_target(s, m, q, &seg, &c, reterr);
	if (rc < 0)
		return rc;
	if (c && c->route == SMARTIOD_BAR)
		return attach_bar(d, q, c, m, reterr);
	t = smartiod_op_new(d, s, msg, sizeof(*t), smartiod_window_step, reterr);
	if (!t)
		return reterr->code;
	t->w.ready = attach_window;
	t->w.failed = attach_no_window;
	t->queue = q;
	q->pins++;
	rc = seg ? attach_segment(d, t, seg) : attach_connection(d, t, c, reterr);
	if (rc < 0)
		attach_end(d, t);
	return rc;
}

int smartiod_queue_detach(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_queue_detach *m = msg;
	uint64_t id = sio_from_le64(m->range);
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	if (id == 0)
		return sio_fail(reterr, -EBADF,
				"there is no range 0: the one that QUEUE_ATTACH returned is right");
	smartiod_port_detach(d, s->owner, id);
	while ((n = smartiod_tree_after(&s->objects, key))) {
		struct smartiod_object *o = SMARTIOD_OF(n, struct smartiod_object, by_handle);
		struct smartiod_connection *c = (struct smartiod_connection *)o;

		key = n->key;
		if (o->kind != SMARTIOD_CONNECTION)
			continue;
		for (struct smartiod_range *g = c->ranges; g; g = g->next)
			if (g->id == id) {
				smartiod_range_forget(d, c, g);
				break;
			}
	}
	smartiod_reply_ok(d, s, msg);
	return 0;
}

/* ---- the room ---- */

static const struct smartiod_request requests[] = {
	SIO_CLIENT_DMA(SMARTIOD_OWNERS){0, false, NULL},
};

static const struct smartiod_kind_ops kinds[] = {
	{SMARTIOD_QUEUE, queue_drop, false, NULL},
	{0, NULL, false, NULL},
};

const struct smartiod_room smartiod_room_dma = {
	.name = "dma",
	.requests = requests,
	.kinds = kinds,
	.restores = smartiod_dma_restores,
	.free_all = queue_free_all,
};
