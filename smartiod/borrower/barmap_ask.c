/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection to a BAR, the borrower's side: pieces of it are asked for at the lender and mapped
 * through the adapter of this host, for a program, or one of memory for a DMA queue.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"

#define AGAIN 8u /* times that a lender is asked for what it takes back */

struct map_op {
	struct smartiod_op op;
	struct smartiod_connection *connection; /* pinned */
	struct smartiod_bar_map *bar;
	struct sio_peer_bar_grant ask;
	struct sio_prep_bar_grant granted;
	struct sio_path path;
	bool asked; /* the lender has answered: pieces are being mapped */
	unsigned at, again;
	smartiod_reached_fn *done; /* a DMA queue is to reach it; NULL: a program maps it */
	void *arg;
	uint64_t from, bytes; /* and this of it */
};

static void bar_unmap(struct smartiod *d, struct smartiod_map *m)
{
	struct smartiod_bar_map *bar = m->bar;

	m->bar = NULL;
	if (bar)
		smartiod_bar_map_close(d, bar);
}

static void map_end(struct smartiod *d, struct map_op *m)
{
	struct smartiod_connection *c = m->connection;

	if (m->done)
		m->done(d, &m->op, c, m->arg, NULL);
	if (m->bar)
		smartiod_bar_map_close(d, m->bar);
	smartiod_op_free(d, &m->op);
	smartiod_connection_unpin(d, c);
}

static void map_fail(struct smartiod *d, struct map_op *m, int error, const char *text)
{
	smartiod_op_error(d, &m->op, error, "%s", text);
	map_end(d, m);
}

/*
 * What of piece @i the program asked for: the lender grants registers and doorbells in whole runs
 * of pages. 0 bytes, which the library refuses: it was granted something else.
 */
static struct sio_wire_piece asked_part(const struct map_op *m, unsigned i)
{
	const struct sio_wire_bar_piece *g = &m->granted.piece[i];
	uint64_t asked = sio_from_le64(m->ask.offset), at = sio_from_le64(g->offset);
	uint64_t asked_end = asked + sio_from_le64(m->ask.bytes);
	uint64_t end = at + sio_from_le64(g->bytes), from = at < asked ? asked : at;

	end = end < asked_end ? end : asked_end;
	return (struct sio_wire_piece){
		.offset = sio_to_le64(from),
		.bytes = sio_to_le64(from < end ? end - from : 0),
		.fd_offset = sio_to_le64(m->bar->piece[i].fd_offset + (from - at)),
		.fd_index = sio_to_le32(i),
		.access = g->access,
		.bar_id_lo = sio_to_le32((uint32_t)m->bar->piece[i].view),
		.flags = g->flags,
	};
}

/* By which a library has it again at the next smartiod. */
static void claims(struct smartiod *d, const struct smartiod_session *s,
		   const struct smartiod_map *map, struct sio_rep_seg_map *ret)
{
	const struct smartiod_bar_map *bar = map->bar;
	bool far = bar->borrow->node != d->node;

	for (unsigned i = 0; i < bar->n; i++)
		ret->claim[i] = (struct sio_wire_claim){
			.view = sio_to_le64(bar->piece[i].view),
			.grant = sio_to_le64(bar->piece[i].grant),
			.map = sio_to_le64(bar->piece[i].map),
		};
	ret->path = sio_to_le32(far ? bar->adapter << 16 | bar->peer_adapter : SIO_PATH_NONE);
	ret->doorbells = sio_to_le32(smartiod_bar_doorbells(bar));
	ret->seal = sio_to_le64(far ? smartiod_bar_seal(s, smartiod_handle(&map->o), bar) : 0);
}

/* All pieces have a descriptor, @fds. */
static void map_reply(struct smartiod *d, struct map_op *m, const int *fds)
{
	struct sio_rep_seg_map rep = {.n_pieces = sio_to_le32(m->bar->n)};
	struct sio_err err = {.text = ""};
	struct smartiod_map *map = smartiod_map_new(d, m->op.session, m->connection, &err);

	if (!map) {
		smartiod_op_fail(d, &m->op, &err);
		map_end(d, m);
		return;
	}
	rep.map = sio_to_le32(smartiod_handle(&map->o));
	for (unsigned i = 0; i < m->bar->n; i++)
		rep.piece[i] = asked_part(m, i);
	map->bar = m->bar;
	claims(d, m->op.session, map, &rep);
	smartiod_op_reply(d, &m->op, &rep, sizeof(rep), fds, m->bar->n);
	m->bar = NULL;
	map_end(d, m);
}

/* ---- for a DMA queue ---- */

/* The piece that all that is to be reached lies in; -1: there is none that may be written. */
static int piece_to_reach(const struct map_op *m)
{
	for (unsigned i = 0; i < m->bar->n; i++) {
		const struct smartiod_bar_piece *p = &m->bar->piece[i];

		if (m->from >= p->offset && m->from - p->offset <= p->bytes &&
		    m->bytes <= p->bytes - (m->from - p->offset) &&
		    sio_from_le32(m->granted.piece[i].access) & SIO_ACCESS_WRITE)
			return (int)i;
	}
	return -1;
}

/* The lender has granted the memory that what was asked for lies in: the one piece stays. */
static bool keep_one(struct smartiod *d, struct map_op *m)
{
	struct smartiod_bar_map *bar = m->bar;
	int keep = piece_to_reach(m);

	for (unsigned i = 0; i < bar->n; i++)
		if ((int)i != keep)
			smartiod_bar_piece_release(d, bar, &bar->piece[i]);
	if (keep < 0) {
		bar->n = 0;
		return false;
	}
	bar->piece[0] = bar->piece[keep];
	m->granted.piece[0] = m->granted.piece[keep];
	bar->n = 1;
	return true;
}

static void reached(struct smartiod *d, struct map_op *m)
{
	struct smartiod_bar_map *bar = m->bar;
	struct smartiod_bar_piece *p = &bar->piece[0];
	const struct smartiod_reached r = {
		.kind = p->map ? SIO_KIND_MAP : SIO_KIND_BAR,
		.target = p->map ? p->map : p->view,
		.offset = p->map ? 0 : sio_from_le64(m->granted.piece[0].view_offset),
		.first = p->offset,
		.bytes = p->bytes,
		.bar = bar,
	};
	smartiod_reached_fn *done = m->done;

	smartiod_close_fd(d, &p->fd); /* no program maps it */
	m->bar = NULL;
	m->done = NULL;
	done(d, &m->op, m->connection, m->arg, &r);
	map_end(d, m);
}

static void bar_reach_claim(struct smartiod *d, const struct smartiod_session *s, uint32_t queue,
			    const void *arg, struct sio_rep_queue_attach *ret)
{
	const struct smartiod_bar_map *bar = arg;
	const struct smartiod_bar_piece *p = &bar->piece[0];
	bool far = bar->borrow->node != d->node;

	ret->claim = (struct sio_wire_claim){.view = sio_to_le64(p->view),
					     .grant = sio_to_le64(p->grant),
					     .map = sio_to_le64(p->map)};
	ret->path = sio_to_le32(far ? bar->adapter << 16 | bar->peer_adapter : SIO_PATH_NONE);
	ret->seal = sio_to_le64(far ? smartiod_bar_seal(s, queue, bar) : 0);
}

static void bar_unreach(struct smartiod *d, void *bar)
{
	smartiod_bar_map_close(d, bar);
}

/* ---- for a program ---- */

/* Of another host: map piece after piece through the adapter. */
static void map_next(struct smartiod *d, struct map_op *m)
{
	const struct smartiod_borrow *b = m->bar->borrow;
	int fds[SIO_MAP_PIECES];

	if (m->at < m->bar->n) {
		const struct sio_wire_bar_piece *p = &m->granted.piece[m->at];

		if (!smartiod_grant_holds(&p->g, sio_from_le64(p->bytes)))
			map_fail(d, m, -EPROTO, "the lender granted less than a piece of the BAR");
		else if (m->bar->piece[m->at].doorbells)
			smartiod_port_ask_doorbells(d, &m->op, m->op.session->owner, b->node,
						    m->path.adapter, m->path.peer_adapter, &p->g);
		else
			smartiod_port_ask_map(d, &m->op, m->op.session->owner, b->node,
					      m->path.adapter, m->path.peer_adapter, &p->g);
		return;
	}
	if (m->done) {
		reached(d, m);
		return;
	}
	for (unsigned i = 0; i < m->bar->n; i++)
		fds[i] = m->bar->piece[i].fd;
	map_reply(d, m, fds);
}

static void take_pieces(struct smartiod *d, struct map_op *m, const struct sio_prep_bar_grant *rep)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, m->bar->borrow->node);
	uint32_t n = sio_from_le32(rep->n_pieces);

	m->asked = true;
	m->at = 0;
	m->granted = *rep;
	m->bar->start = p ? p->generation : 0;
	m->bar->n = n < SIO_MAP_PIECES ? n : SIO_MAP_PIECES;
	for (unsigned i = 0; i < m->bar->n; i++)
		m->bar->piece[i] = (struct smartiod_bar_piece){
			.view = sio_from_le64(rep->piece[i].view),
			.grant = sio_from_le64(rep->piece[i].g.grant),
			.fd_offset = sio_from_le64(rep->piece[i].fd_offset),
			.offset = sio_from_le64(rep->piece[i].offset),
			.bytes = sio_from_le64(rep->piece[i].bytes),
			.doorbells = sio_from_le32(rep->piece[i].access) & SIO_ACCESS_WRITE &&
				     !(sio_from_le32(rep->piece[i].flags) &
				       (SIO_BAR_REGISTERS | SIO_BAR_MEMORY)),
			.fd = -1,
		};
}

/*
 * Were the doorbells that the lender gave us taken away by a reset, before all of it was mapped?
 * Our port may know before we do.
 */
static bool was_reset(const struct map_op *m, int error)
{
	const struct smartiod_bar_map *bar = m->bar;

	for (unsigned i = 0; m->asked && i < bar->n; i++)
		if (bar->piece[i].gone)
			return true;
	return m->asked && (error == -EACCES || error == -ENODEV) && bar->piece[m->at].doorbells &&
	       m->again < AGAIN;
}

/* The lender reports the reset before it answers. */
static void ask_again(struct smartiod *d, struct map_op *m)
{
	struct smartiod_bar_map *before = m->bar;
	uint32_t node = before->borrow->node;

	m->bar = smartiod_bar_map_new(d, m->connection->device, m->connection, &m->path);
	smartiod_bar_map_close(d, before);
	if (!m->bar) {
		map_fail(d, m, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return;
	}
	m->again++;
	m->asked = false;
	smartiod_ask(d, &m->op, node, &m->ask, sizeof(m->ask));
}

/*
 * Our port knows the grant no more: the lender took it back with the device, and its word is on its
 * way.
 */
static int grant_gone(const struct map_op *m, int error)
{
	return m->asked && (error == -EACCES || error == -ENODEV) ? -ENOTCONN : error;
}

/* Our port has a window for the next piece. 0, or what is wrong with it. */
static int take_window(struct map_op *m, const struct smartiod_answer *a, const char **ret_why)
{
	const struct sio_evt_map *evt = a->msg;
	struct smartiod_bar_piece *p = &m->bar->piece[m->at];

	p->map = evt->id;
	p->fd_offset = evt->offset;
	p->fd = smartiod_take_fd(a, 0);
	*ret_why = "the lender granted something else than the BAR";
	if (!smartiod_map_is_memory(a, sio_from_le32(m->granted.piece[m->at].access)))
		return -EPROTO;
	*ret_why = "the daemon has no descriptor left";
	if (p->fd < 0)
		return -EMFILE;
	m->at++;
	return 0;
}

static void map_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct map_op *m = (struct map_op *)op;
	struct smartiod_connection *c = m->connection;
	struct smartiod_borrow *b = m->bar->borrow;
	const char *why;
	bool first = !m->asked;
	int rc = 0;

	if (a->error && !was_reset(m, a->error)) {
		map_fail(d, m, grant_gone(m, a->error), a->text);
		return;
	}
	if (!m->asked)
		take_pieces(d, m, a->msg);
	else if (!a->error)
		rc = take_window(m, a, &why);
	if (rc < 0)
		map_fail(d, m, rc, why);
	else if (!op->session || smartiod_connection_over(c) || smartiod_borrow_ended(b))
		map_fail(d, m, -ECONNRESET, "the connection is gone");
	else if (was_reset(m, a->error))
		ask_again(d, m);
	else if (m->done && first && !keep_one(d, m))
		map_fail(d, m, -EACCES,
			 "not all of it is memory of the BAR in one piece that this borrow may "
			 "write, which DMA queues reach");
	else if (b->node == d->node && m->done)
		reached(d, m);
	else if (b->node == d->node)
		map_reply(d, m, a->fds);
	else
		map_next(d, m);
}

/* @adapter: which this has to be through; SIO_ADAPTER_ANY. */
static int find_path(struct smartiod *d, const struct smartiod_borrow *b, uint32_t adapter,
		     struct sio_path *ret, struct sio_err *reterr)
{
	if (adapter == SIO_ADAPTER_ANY || adapter == b->adapter)
		return smartiod_borrow_path(d, b, ret, reterr);
	if (b->adapter != SIO_ADAPTER_ANY)
		return sio_fail(reterr, -ENOTCONN,
				"the device is borrowed through adapter %" PRIu32
				", the queue is of adapter %" PRIu32,
				b->adapter, adapter);
	return smartiod_path_between(d, b->node, adapter, SIO_ADAPTER_ANY, &d->hops,
				     &b->device->hops, ret, reterr);
}

/* Nothing is asked yet; NULL: *reterr says why. */
static struct map_op *map_new(struct smartiod *d, struct smartiod_session *s, const void *msg,
			      struct smartiod_connection *c, uint32_t adapter,
			      struct sio_err *reterr)
{
	struct smartiod_borrow *b = c->device;
	struct map_op *m;

	if (!b || smartiod_borrow_ended(b) || smartiod_borrow_lost(b)) {
		sio_fail(reterr, -ECONNRESET, "the device is lost");
		return NULL;
	}
	m = smartiod_op_new(d, s, msg, sizeof(*m), map_step, reterr);
	if (!m)
		return NULL;
	if (b->node != d->node && find_path(d, b, adapter, &m->path, reterr) < 0) {
		smartiod_op_free(d, &m->op);
		return NULL;
	}
	m->bar = smartiod_bar_map_new(d, b, c, &m->path);
	if (!m->bar) {
		smartiod_op_free(d, &m->op);
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	m->connection = c;
	c->pins++;
	return m;
}

static void map_ask(struct smartiod *d, struct map_op *m, uint64_t offset, uint64_t bytes,
		    uint32_t access)
{
	const struct smartiod_borrow *b = m->bar->borrow;

	m->ask = (struct sio_peer_bar_grant){
		.h.type = sio_to_le32(SIO_PEER_BAR_GRANT),
		.borrower = sio_to_le64(b->id),
		.fdid = sio_to_le32(b->device->fdid),
		.offset = sio_to_le64(offset),
		.bytes = sio_to_le64(bytes),
		.bar = sio_to_le32(m->connection->segment_id),
		.access = sio_to_le32(access),
		.adapter = sio_to_le32(m->path.peer_adapter),
		.peer_adapter = sio_to_le32(m->path.adapter),
	};
	smartiod_ask(d, &m->op, b->node, &m->ask, sizeof(m->ask));
}

static int bar_map(struct smartiod *d, struct smartiod_session *s, const void *msg,
		   struct sio_err *reterr)
{
	const struct sio_msg_seg_map *r = msg;
	uint32_t access = SIO_ACCESS_READ;
	struct smartiod_connection *c;
	struct map_op *m;

	c = smartiod_object_get(s, sio_from_le32(r->handle), SMARTIOD_CONNECTION, reterr);
	m = c ? map_new(d, s, msg, c, SIO_ADAPTER_ANY, reterr) : NULL;
	if (!m)
		return reterr->code;
	if (!(sio_from_le32(r->flags) & SCI_FLAG_READONLY_MAP))
		access |= SIO_ACCESS_WRITE;
	map_ask(d, m, sio_from_le64(r->offset), sio_from_le64(r->bytes), access);
	return 0;
}

static int bar_reach(struct smartiod *d, struct smartiod_connection *c, const void *msg,
		     uint32_t adapter, smartiod_reached_fn *done, void *arg, struct sio_err *reterr)
{
	const struct sio_msg_queue_attach *r = msg;
	struct map_op *m = map_new(d, c->o.session, msg, c, adapter, reterr);
	uint64_t at;

	if (!m)
		return reterr->code;
	m->done = done;
	m->arg = arg;
	m->from = sio_from_le64(r->offset);
	m->bytes = sio_from_le64(r->bytes);
	/* Nothing, which may be at the end, is asked for as the byte there, or before it. */
	at = m->bytes || m->from < c->bytes ? m->from : m->from - 1;
	map_ask(d, m, at, m->bytes ? m->bytes : 1,
		SIO_ACCESS_READ | SIO_ACCESS_WRITE | SIO_PEER_BAR_MEMORY);
	return 0;
}

static void bar_close(struct smartiod *d, struct smartiod_connection *c)
{
	struct smartiod_borrow *b = c->device;

	c->device = NULL;
	if (b)
		smartiod_borrow_unuse(d, b);
}

const struct smartiod_connection_ops smartiod_bar_ops = {
	.map = bar_map,
	.unmap = bar_unmap,
	.reach = bar_reach,
	.reach_claim = bar_reach_claim,
	.reach_again = smartiod_bar_reach_again,
	.unreach = bar_unreach,
	.close = bar_close,
};
