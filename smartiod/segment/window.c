/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of connections: one window through the adapter, shared by all mappings of a connection.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/requests.h"

struct map_op {
	struct smartiod_window_op w;
	uint64_t offset, bytes;
	uint32_t flags;
};

/* An exporter that has started again has no such grant, but perhaps another with that number. */
static void give_grant(struct smartiod *d, const struct smartiod_connection *c, uint64_t grant,
		       uint64_t start)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, c->node);

	if (p && p->generation == start) /* it may have left the cluster's file */
		smartiod_grant_release(d, c->node, grant);
}

static void resume_parked(struct smartiod *d, struct smartiod_connection *c);

/* Whatever the port says: its owner may have ended before, and the window with it. */
static void unmapped(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_connection *c = SMARTIOD_OF((void *)op, struct smartiod_connection, unmap);

	(void)a;
	*c->prev_unmapping = c->next_unmapping;
	if (c->next_unmapping)
		c->next_unmapping->prev_unmapping = c->prev_unmapping;
	c->prev_unmapping = NULL;
	give_grant(d, c, c->old_grant, c->old_start);
	c->old_grant = 0;
	c->pins++;
	resume_parked(d, c);
	smartiod_connection_unpin(d, c);
}

/* As long as the port has the window, stores and transfers may be on their way through it. */
void smartiod_window_unmap(struct smartiod *d, struct smartiod_connection *c, uint64_t map,
			   uint64_t grant)
{
	struct sio_req_unmap req = {.h.op = SIO_OP_UNMAP, .id = map};

	c->old_grant = grant;
	c->old_start = c->start;
	c->old_there = c->there;
	c->old_there_grant = c->there_grant;
	c->next_unmapping = d->unmapping;
	c->prev_unmapping = &d->unmapping;
	if (c->next_unmapping)
		c->next_unmapping->prev_unmapping = &c->next_unmapping;
	d->unmapping = c;
	c->unmap.step = unmapped;
	SIO_PROBE(smartiod, unmap, c->node, map);
	smartiod_port_ask(d, &c->unmap, &req, sizeof(req));
}

void smartiod_window_release(struct smartiod *d, struct smartiod_connection *c)
{
	if (c->window != SMARTIOD_MAPPED)
		return;
	c->window = SMARTIOD_UNMAPPED;
	smartiod_close_fd(d, &c->map_fd);
	smartiod_window_unmap(d, c, c->map, c->grant);
	c->map = 0;
	c->grant = 0;
}

bool smartiod_window_has(struct smartiod *d, uint32_t node, uint64_t grant)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	for (const struct smartiod_connection *c = d->unmapping; c; c = c->next_unmapping)
		if (c->node == node && c->old_grant == grant)
			return true;
	while ((n = smartiod_tree_after(&d->connections, key))) {
		const struct smartiod_connection *c =
			SMARTIOD_OF(n, struct smartiod_connection, by_id);

		key = n->key;
		if (c->node == node && c->window == SMARTIOD_MAPPED && c->grant == grant &&
		    c->start == smartiod_peer_find(d, node)->generation)
			return true;
	}
	key = 0;
	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		const struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);
		const struct smartiod_window_op *w = (const struct smartiod_window_op *)op;

		key = n->key;
		if (op->step == smartiod_window_step && w->connection->node == node &&
		    sio_from_le64(w->grant.grant) == grant)
			return true;
	}
	return false;
}

struct smartiod_map *smartiod_map_new(struct smartiod *d, struct smartiod_session *s,
				      struct smartiod_connection *c, struct sio_err *reterr)
{
	bool far = c->node != d->node && c->route != SMARTIOD_GROUP;
	struct smartiod_map *m;

	if (far && smartiod_quota_program(d, s, SIO_QUOTA_WINDOWS, 1, reterr) < 0)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	if (smartiod_object_add(s, &m->o, SMARTIOD_MAP, reterr) < 0) {
		free(m);
		return NULL;
	}
	if (far)
		smartiod_account_add(&s->program->account, &m->charge, SIO_QUOTA_WINDOWS, 1);
	m->connection = c;
	c->n_maps++;
	return m;
}

void smartiod_map_drop(struct smartiod *d, struct smartiod_map *m)
{
	struct smartiod_connection *c = m->connection;

	smartiod_object_remove(&m->o);
	if (c->route == SMARTIOD_BAR)
		c->ops->unmap(d, m);
	smartiod_charge_drop(&m->charge);
	free(m);
	if (--c->n_maps == 0 && !c->ranges)
		smartiod_window_release(d, c);
}

uint64_t smartiod_window_seal(const struct smartiod_session *s, uint32_t handle,
			      const struct smartiod_connection *c, uint64_t window)
{
	const uint64_t words[] = {handle, smartiod_handle(&c->o), window};

	return smartiod_seal_words(s, SIO_MSG_SEG_MAP, words, sizeof(words) / sizeof(words[0]));
}

/* The range [offset, offset + bytes) of @fd, mapped. */
static int map_reply(struct smartiod *d, struct smartiod_session *s, const void *request,
		     struct smartiod_connection *c, uint64_t offset, uint64_t bytes, uint32_t flags,
		     struct sio_err *reterr)
{
	struct smartiod_map *m = smartiod_map_new(d, s, c, reterr);
	bool local = c->route == SMARTIOD_LOCAL;
	int fd = local ? c->segment->fd : c->map_fd;
	struct sio_rep_seg_map rep = {.n_pieces = sio_to_le32(1)};

	if (!m)
		return reterr->code;
	rep.map = sio_to_le32(smartiod_handle(&m->o));
	if (c->exact) { /* no page of it is anybody's */
		rep.n_pieces = sio_to_le32(0);
		smartiod_reply(d, s, request, &rep, sizeof(rep), NULL, 0);
		return 0;
	}
	rep.address = sio_to_le64((local ? c->segment->phys : c->map_bus_addr) + offset);
	if (c->route == SMARTIOD_REMOTE) {
		rep.key = sio_to_le64(c->map);
		rep.seal = sio_to_le64(smartiod_window_seal(s, smartiod_handle(&m->o), c, c->map));
	}
	rep.piece[0].offset = sio_to_le64(offset);
	rep.piece[0].bytes = sio_to_le64(bytes);
	rep.piece[0].fd_offset =
		sio_to_le64((local ? c->segment->fd_offset : c->map_offset) + offset);
	rep.piece[0].access =
		sio_to_le32(flags & SCI_FLAG_READONLY_MAP ? SIO_ACCESS_READ
							  : SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	smartiod_reply(d, s, request, &rep, sizeof(rep), &fd, 1);
	return 0;
}

/* The window is there (or not): go on with those that wait for it. */
static void resume_parked(struct smartiod *d, struct smartiod_connection *c)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		key = n->key;
		if (op->wait == SMARTIOD_PARKED && op->step == smartiod_window_step &&
		    ((struct smartiod_window_op *)op)->connection == c)
			smartiod_op_resume(d, op);
	}
}

static void map_end(struct smartiod *d, struct smartiod_window_op *w)
{
	smartiod_connection_unpin(d, w->connection);
	smartiod_op_free(d, &w->op);
}

/* Reply from a connection that has its window. */
static void map_done(struct smartiod *d, struct smartiod_window_op *w)
{
	struct sio_msg request = {.type = sio_to_le32(w->op.type), .id = sio_to_le32(w->op.id)};
	struct smartiod_connection *c = w->connection;
	const struct map_op *m = (const struct map_op *)w;
	struct sio_err err = {.text = ""};

	if (map_reply(d, w->op.session, &request, c, m->offset, m->bytes, m->flags, &err) < 0) {
		smartiod_op_fail(d, &w->op, &err);
		if (c->n_maps == 0 && !c->ranges)
			smartiod_window_release(d, c);
	}
	map_end(d, w);
}

static void no_window(struct smartiod *d, struct smartiod_window_op *w, int error, const char *text)
{
	smartiod_op_error(d, &w->op, error, "segment %#x of node %u: %s", w->connection->segment_id,
			  w->connection->node, text);
	w->failed(d, w);
}

/* Ask the exporter for the whole segment; as the one operation that makes the window. */
static int ask_grant(struct smartiod *d, struct smartiod_window_op *w)
{
	struct smartiod_connection *c = w->connection;
	struct sio_peer_seg_grant msg = {
		.h.type = sio_to_le32(SIO_PEER_SEG_GRANT),
		.uid = sio_to_le64(c->uid),
		.ref_connection = sio_to_le64(c->id),
		.bytes = sio_to_le64(c->bytes),
		.ref_node = sio_to_le32(d->node),
		.purpose = sio_to_le32(SIO_GRANT_CPU),
		.adapter = sio_to_le32(c->peer_adapter),
		.peer_adapter = sio_to_le32(c->adapter),
		.access = sio_to_le32(SIO_ACCESS_READ | SIO_ACCESS_WRITE),
	};
	int rc = smartiod_peer_ask(d, &w->op, c->node, &msg, sizeof(msg));

	if (rc < 0)
		return rc;
	c->window = SMARTIOD_MAPPING;
	w->leads = true;
	return 0;
}

void smartiod_window_go(struct smartiod *d, struct smartiod_window_op *w)
{
	struct smartiod_connection *c = w->connection;
	int rc;

	if (smartiod_connection_over(c) || !w->op.session) {
		no_window(d, w, -ECONNRESET, "the connection is lost");
		return;
	}
	switch (c->window) {
	case SMARTIOD_MAPPED:
		w->ready(d, w);
		return;
	case SMARTIOD_MAPPING:
		smartiod_op_park(&w->op);
		return;
	case SMARTIOD_UNMAPPED:
		if (c->prev_unmapping) { /* one after the other */
			smartiod_op_park(&w->op);
			return;
		}
		rc = ask_grant(d, w);
		if (rc < 0)
			no_window(d, w, rc, "its host cannot be reached");
		return;
	}
}

/* The one that makes the window could not: the next in line tries. */
static void window_failed(struct smartiod *d, struct smartiod_window_op *w, int error,
			  const char *text)
{
	struct smartiod_connection *c = w->connection;

	if (w->grant.grant)
		give_grant(d, c, sio_from_le64(w->grant.grant), c->start);
	c->window = SMARTIOD_UNMAPPED;
	c->pins++;
	no_window(d, w, error, text);
	resume_parked(d, c);
	smartiod_connection_unpin(d, c);
}

static void window_made(struct smartiod *d, struct smartiod_window_op *w,
			const struct smartiod_answer *a)
{
	const struct sio_evt_map *evt = a->msg;
	struct smartiod_connection *c = w->connection;
	bool lost = smartiod_connection_over(c) || !w->op.session;
	bool wrong = !smartiod_map_is_memory(a, SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	int fd = lost || wrong ? -1 : smartiod_take_fd(a, 0);

	if (fd < 0) {
		smartiod_window_unmap(d, c, evt->id, sio_from_le64(w->grant.grant));
		w->grant.grant = sio_to_le64(0);
		if (lost)
			window_failed(d, w, -ECONNRESET, "the connection is lost");
		else if (wrong)
			window_failed(d, w, -EPROTO, "its host granted something else");
		else
			window_failed(d, w, -EMFILE, smartiod_no_descriptor(d));
		return;
	}
	c->window = SMARTIOD_MAPPED;
	c->map = evt->id;
	c->map_offset = evt->offset;
	c->map_bus_addr = evt->bus_addr;
	c->map_fd = fd;
	c->grant = sio_from_le64(w->grant.grant);
	SIO_PROBE(smartiod, map, c->node, c->map, c->map_bus_addr, c->bytes);
	c->pins++;
	w->ready(d, w);
	resume_parked(d, c);
	smartiod_connection_unpin(d, c);
}

void smartiod_window_step(struct smartiod *d, struct smartiod_op *op,
			  const struct smartiod_answer *a)
{
	struct smartiod_window_op *w = (struct smartiod_window_op *)op;
	struct smartiod_connection *c = w->connection;

	if (!w->leads) { /* was parked */
		smartiod_window_go(d, w);
	} else if (a->error) {
		window_failed(d, w, a->error, a->text);
	} else if (w->grant.grant) {
		window_made(d, w, a);
	} else {
		w->grant = ((const struct sio_prep_seg_grant *)a->msg)->g;
		c->start = smartiod_peer_find(d, c->node)->generation;
		c->there = sio_from_le64(w->grant.bus_addr);
		if (!smartiod_grant_holds(&w->grant, c->bytes))
			window_failed(d, w, -EPROTO, "its host granted less than was asked for");
		else if (smartiod_connection_over(c) || !op->session)
			window_failed(d, w, -ECONNRESET, "the connection is lost");
		else
			smartiod_port_ask_map(d, op, op->session->owner, c->node, c->adapter,
					      c->peer_adapter, &w->grant);
	}
}

static int check_map(const struct sio_msg_seg_map *m, const struct smartiod_connection *c,
		     struct sio_err *reterr)
{
	uint64_t offset = sio_from_le64(m->offset), bytes = sio_from_le64(m->bytes), end;

	if (smartiod_connection_is_lost(c))
		return sio_fail(reterr, -ECONNRESET,
				"the connection to segment %#x of node %u is "
				"lost",
				c->segment_id, c->node);
	if (c->state == SMARTIOD_CONNECTION_DOWN)
		return sio_fail(reterr, -ENETDOWN, "the link to node %u is down", c->node);
	if (bytes == 0)
		return sio_fail(reterr, -EINVAL, "a map has at least 1 byte");
	if (__builtin_add_overflow(offset, bytes, &end) || end > c->bytes)
		return sio_fail(reterr, -ERANGE,
				"%" PRIu64 " bytes at %" PRIu64 " of a segment of %" PRIu64, bytes,
				offset, c->bytes);
	return 0;
}

int smartiod_seg_map(struct smartiod *d, struct smartiod_session *s, const void *msg,
		     struct sio_err *reterr)
{
	const struct sio_msg_seg_map *m = msg;
	struct smartiod_connection *c;
	struct map_op *op;
	int rc;

	c = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_CONNECTION, reterr);
	if (!c)
		return reterr->code;
	if (smartiod_connection_connecting(c))
		return sio_fail(reterr, -EBADF, "this connection " SMARTIOD_NOT_YET);
	rc = check_map(m, c, reterr);
	if (rc < 0)
		return rc;
	if (c->route == SMARTIOD_BAR)
		return c->ops->map(d, s, msg, reterr);
	if (c->exact && !(sio_from_le32(m->flags) & SCI_FLAG_READONLY_MAP))
		return sio_fail(reterr, -EOPNOTSUPP,
				"stores do not reach the members of exact group %u; "
				"SCI_FLAG_READONLY_MAP is right",
				c->segment_id);
	if (c->route == SMARTIOD_LOCAL || c->route == SMARTIOD_GROUP)
		return map_reply(d, s, msg, c, sio_from_le64(m->offset), sio_from_le64(m->bytes),
				 sio_from_le32(m->flags), reterr);
	op = smartiod_op_new(d, s, msg, sizeof(*op), smartiod_window_step, reterr);
	if (!op)
		return reterr->code;
	op->w.connection = c;
	op->w.ready = map_done;
	op->w.failed = map_end;
	op->offset = sio_from_le64(m->offset);
	op->bytes = sio_from_le64(m->bytes);
	op->flags = sio_from_le32(m->flags);
	c->pins++;
	smartiod_window_go(d, &op->w);
	return 0;
}

int smartiod_seg_unmap(struct smartiod *d, struct smartiod_session *s, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct smartiod_map *map;

	map = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_MAP, reterr);
	if (!map)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "SCIUnmapSegment takes no flags");
	smartiod_map_drop(d, map);
	smartiod_reply_ok(d, s, msg);
	return 0;
}
