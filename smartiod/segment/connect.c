/* SPDX-License-Identifier: BSD-2-Clause */
/* The importer's side of segments: connections to segments of this host and of others. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/group.h"
#include "smartiod/segment/requests.h"

/* ---- life of a connection ---- */

void smartiod_connection_enter(struct smartiod *d, struct smartiod_connection *c,
			       enum smartiod_connection_event event)
{
	enum smartiod_connection_state before = c->state;

	if (!smartiod_connection_next(before, event, &c->state))
		smartiod_fatal(d, "connection %" PRIu64 ": event %u in state %u", c->id, event,
			       before);
	SIO_PROBE(smartiod, connection_state, c->id, before, c->state, event);
}

static void connection_free(struct smartiod *d, struct smartiod_connection *c)
{
	smartiod_ranges_free(c);
	smartiod_close_fd(d, &c->map_fd);
	smartiod_tree_remove(&d->connections, &c->by_id);
	free(c);
}

struct smartiod_connection *smartiod_connection_nobodys(struct smartiod *d,
							enum smartiod_route route, uint64_t id)
{
	struct smartiod_connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->route = route;
	c->map_fd = -1;
	c->id = id;
	smartiod_tree_add(&d->connections, &c->by_id, c->id);
	return c;
}

struct smartiod_connection *smartiod_connection_again(struct smartiod *d,
						      struct smartiod_session *s,
						      enum smartiod_route route, uint64_t id,
						      struct sio_err *reterr)
{
	struct smartiod_connection *c = smartiod_connection_nobodys(d, route, id);

	if (!c) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	if (smartiod_object_add(s, &c->o, SMARTIOD_CONNECTION, reterr) < 0) {
		connection_free(d, c);
		return NULL;
	}
	c->pid = s->pid;
	return c;
}

struct smartiod_connection *smartiod_connection_new(struct smartiod *d, struct smartiod_session *s,
						    enum smartiod_route route,
						    struct sio_err *reterr)
{
	return smartiod_connection_again(d, s, route, smartiod_uid(d), reterr);
}

uint64_t smartiod_connection_seal(const struct smartiod_session *s,
				  const struct smartiod_connection *c)
{
	const uint64_t words[] = {
		smartiod_handle(&c->o),
		c->uid,
		c->id,
		(uint64_t)c->node << 32 | c->segment_id,
		c->adapter << 16 | c->peer_adapter,
		c->bytes,
		c->peer_boot,
		c->via,
		(uint64_t)c->lender << 32 | c->memtype,
	};

	return smartiod_seal_words(s, SIO_MSG_SEG_CONNECT, words, sizeof(words) / sizeof(words[0]));
}

void smartiod_connection_via(struct smartiod_connection *c, const struct smartiod_wanted *w)
{
	c->borrow = w->borrow;
	c->via = w->via;
	c->lender = w->lender;
	c->fdid = w->device;
	c->memtype = w->memtype;
}

bool smartiod_connection_stale(struct smartiod *d, const struct smartiod_connection *c)
{
	return c->peer_boot != smartiod_path_start(d, c->node, c->adapter, c->peer_adapter);
}

void smartiod_connection_check(struct smartiod *d, struct smartiod_connection *c)
{
	if (c->state == SMARTIOD_CONNECTION_CLOSED && c->pins == 0 && !c->prev_unmapping)
		connection_free(d, c);
}

void smartiod_connection_unpin(struct smartiod *d, struct smartiod_connection *c)
{
	c->pins--;
	smartiod_connection_check(d, c);
}

static void seg_release(struct smartiod *d, uint32_t node, sio_le64 uid, sio_le64 connection,
			uint32_t reason)
{
	struct sio_peer_seg_release msg = {
		.h.type = sio_to_le32(SIO_PEER_SEG_RELEASE),
		.uid = uid,
		.connection = connection,
		.reason = sio_to_le32(reason),
	};

	smartiod_peer_send(d, node, &msg, sizeof(msg));
}

void smartiod_connection_close(struct smartiod *d, struct smartiod_connection *c, uint32_t reason)
{
	smartiod_ranges_end(d, c, c->o.session && !c->o.session->ending);
	smartiod_object_remove(&c->o);
	smartiod_window_release(d, c);
	if (c->route == SMARTIOD_BAR)
		c->ops->close(d, c);
	else if (c->route == SMARTIOD_GROUP)
		smartiod_port_free(d, c->map);
	else if (!smartiod_connection_is_lost(c) && c->route == SMARTIOD_LOCAL)
		smartiod_segment_unref(d, c->segment, d->node, c->id, reason);
	else if (!smartiod_connection_is_lost(c))
		seg_release(d, c->node, sio_to_le64(c->uid), sio_to_le64(c->id), reason);
	c->segment = NULL;
	smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_CLOSE);
	smartiod_connection_check(d, c);
}

static void remote_event(struct smartiod *d, struct smartiod_connection *c, uint32_t reason,
			 enum sio_segment_loss loss)
{
	struct sio_evm_segment evm = {
		.handle = sio_to_le32(smartiod_handle(&c->o)),
		.reason = sio_to_le32(reason),
		.node = sio_to_le32(c->node),
		.adapter = sio_to_le32(c->adapter),
		.loss = sio_to_le32(loss),
	};

	smartiod_event(d, c->o.session, SIO_EVM_SEGMENT_REMOTE, &evm, sizeof(evm), NULL, 0);
}

void smartiod_connection_lost(struct smartiod *d, struct smartiod_connection *c, uint32_t reason)
{
	if (smartiod_connection_over(c))
		return;
	smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_LOSE);
	c->segment = NULL;
	if (c->state == SMARTIOD_CONNECTION_LOST)
		remote_event(d, c, reason, SIO_LOSS_LOST);
	smartiod_ranges_end(d, c, c->o.session && !c->o.session->ending);
	smartiod_window_release(d, c);
}

void smartiod_connection_event(struct smartiod *d, uint32_t node, uint64_t connection,
			       uint32_t reason, enum sio_segment_loss loss)
{
	struct smartiod_connection *c;

	c = SMARTIOD_OF(smartiod_tree_find(&d->connections, connection), struct smartiod_connection,
			by_id);
	if (!c || c->node != node || c->state == SMARTIOD_CONNECTION_CLOSED)
		return; /* released meanwhile */
	if (loss == SIO_LOSS_LOST)
		smartiod_connection_lost(d, c, reason);
	else if (!smartiod_connection_is_lost(c))
		remote_event(d, c, reason, loss);
}

int smartiod_peer_seg_event(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_peer_seg_event *m = msg;
	uint32_t reason = sio_from_le32(m->reason), loss = sio_from_le32(m->loss);

	if (loss > SIO_LOSS_REMOVED)
		return sio_fail(reterr, -EPROTO, "a segment event of loss %u", loss);
	if (reason < SCI_CB_CONNECT || reason > SCI_CB_LOST)
		return sio_fail(reterr, -EPROTO, "a segment event for reason %u", reason);
	smartiod_connection_event(d, from->node, sio_from_le64(m->connection), reason,
				  (enum sio_segment_loss)loss);
	return 0;
}

static struct smartiod_connection *next_remote(struct smartiod *d, uint32_t node, uint64_t *key)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->connections, *key))) {
		struct smartiod_connection *c = SMARTIOD_OF(n, struct smartiod_connection, by_id);

		*key = n->key;
		if (c->route == SMARTIOD_REMOTE && c->node == node)
			return c;
	}
	return NULL;
}

void smartiod_connection_node_down(struct smartiod *d, uint32_t node)
{
	struct smartiod_connection *c;
	uint64_t key = 0;

	while ((c = next_remote(d, node, &key)))
		smartiod_connection_lost(d, c, SCI_CB_LOST);
}

static bool is_down(const struct smartiod_connection *c)
{
	return c->state == SMARTIOD_CONNECTION_DOWN ||
	       c->state == SMARTIOD_CONNECTION_CONNECTING_DOWN;
}

void smartiod_connection_path(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter, bool up)
{
	struct smartiod_connection *c;
	uint64_t key = 0;

	while ((c = next_remote(d, node, &key))) {
		if (c->adapter != adapter || c->peer_adapter != peer_adapter || is_down(c) != up ||
		    smartiod_connection_over(c))
			continue;
		if (up && smartiod_connection_stale(d, c)) {
			smartiod_connection_lost(d, c, SCI_CB_LOST);
			continue;
		}
		smartiod_connection_enter(
			d, c, up ? SMARTIOD_CONNECTION_PATH_UP : SMARTIOD_CONNECTION_PATH_DOWN);
		if (!smartiod_connection_connecting(c))
			remote_event(d, c, up ? SCI_CB_OPERATIONAL : SCI_CB_NOT_OPERATIONAL,
				     SIO_LOSS_NONE);
	}
}

void smartiod_connection_free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->connections, 0)))
		connection_free(d, SMARTIOD_OF(n, struct smartiod_connection, by_id));
}

/* ---- connect ---- */

struct connect_op {
	struct smartiod_op op;
	struct smartiod_connection *connection; /* pinned */
};

static void connect_reply(struct smartiod *d, struct smartiod_session *s, const void *request,
			  const struct smartiod_connection *c)
{
	bool far = c->route == SMARTIOD_REMOTE;
	uint64_t mem = c->segment ? c->segment->mem : 0;
	uint64_t seal = far ? smartiod_connection_seal(s, c)
			    : smartiod_seal(s, SIO_MSG_SEG_CONNECT, smartiod_handle(&c->o), mem,
					    c->adapter, 0);
	struct sio_rep_seg_connect rep = {
		.handle = sio_to_le32(smartiod_handle(&c->o)),
		.node = sio_to_le32(c->node),
		.segment_id = sio_to_le32(c->segment_id),
		.path = sio_to_le32(far ? c->adapter << 16 | c->peer_adapter : SIO_PATH_NONE),
		.bytes = sio_to_le64(c->bytes),
		.peer_boot = sio_to_le64(c->peer_boot),
		.key = sio_to_le64(far ? c->uid : mem),
		.seal = sio_to_le64(seal),
		.connection = sio_to_le64(far ? c->id : 0),
	};

	smartiod_reply(d, s, request, &rep, sizeof(rep), NULL, 0);
}

/* The connection never came about: nobody is to be notified. */
static void connect_failed(struct smartiod *d, struct smartiod_connection *c)
{
	smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_LOSE);
	if (c->state != SMARTIOD_CONNECTION_CLOSED)
		smartiod_connection_close(d, c, SCI_CB_LOST);
}

static void connect_step(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	struct connect_op *o = (struct connect_op *)op;
	struct smartiod_connection *c = o->connection;
	const struct sio_prep_seg_lookup *rep = a->msg;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
		connect_failed(d, c);
	} else if (c->state != SMARTIOD_CONNECTION_CONNECTING) {
		seg_release(d, c->node, rep->uid, sio_to_le64(c->id), SCI_CB_LOST);
		smartiod_op_error(d, op, -ENETDOWN, "the link to node %u went down", c->node);
		connect_failed(d, c);
	} else {
		struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};

		c->uid = sio_from_le64(rep->uid);
		c->bytes = sio_from_le64(rep->bytes);
		c->segment_id = sio_from_le32(rep->segment_id);
		c->peer_boot = smartiod_path_start(d, c->node, c->adapter, c->peer_adapter);
		smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_CONNECTED);
		if (op->session) /* else its end will release the connection */
			connect_reply(d, op->session, &request, c);
	}
	smartiod_connection_unpin(d, c);
	smartiod_op_free(d, op);
}

static int connect_local(struct smartiod *d, struct smartiod_session *s, const void *request,
			 const struct smartiod_wanted *w, uint32_t adapter, struct sio_err *reterr)
{
	struct smartiod_segment *seg = smartiod_segment_lookup(d, w, adapter, reterr);
	struct smartiod_connection *c;

	if (!seg)
		return reterr->code;
	c = smartiod_connection_new(d, s, SMARTIOD_LOCAL, reterr);
	if (!c)
		return reterr->code;
	c->node = d->node;
	/* Nobody comes to a device's segment here by an adapter, whichever its borrow goes over. */
	c->adapter = adapter == SIO_ADAPTER_ANY || w->device ? 0 : adapter;
	c->segment = seg;
	c->segment_id = seg->id;
	c->uid = seg->uid;
	c->bytes = seg->bytes;
	if (smartiod_segment_ref(seg, d->node, c->adapter, c->id, reterr) < 0) {
		connect_failed(d, c);
		return reterr->code;
	}
	connect_reply(d, s, request, c);
	smartiod_segment_connected(d, seg, d->node, c->adapter);
	return 0;
}

static int connect_remote(struct smartiod *d, struct smartiod_session *s, const void *request,
			  uint32_t node, const struct smartiod_wanted *w,
			  const struct sio_path *path, struct sio_err *reterr)
{
	struct sio_peer_seg_lookup msg = {
		.h.type = sio_to_le32(SIO_PEER_SEG_LOOKUP),
		.uid = sio_to_le64(w->uid),
		.segment_id = sio_to_le32(w->id),
		.adapter = sio_to_le32(path->peer_adapter),
		.fdid = sio_to_le32(w->device),
	};
	struct smartiod_connection *c;
	struct connect_op *o;
	int rc;

	o = smartiod_op_new(d, s, request, sizeof(*o), connect_step, reterr);
	if (!o)
		return reterr->code;
	c = smartiod_connection_new(d, s, SMARTIOD_REMOTE, reterr);
	if (!c) {
		smartiod_op_free(d, &o->op);
		return reterr->code;
	}
	c->node = node;
	c->segment_id = w->id;
	smartiod_connection_via(c, w);
	c->adapter = path->adapter;
	c->peer_adapter = path->peer_adapter;
	smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_CONNECT);
	msg.connection = sio_to_le64(c->id);
	rc = smartiod_peer_ask(d, &o->op, node, &msg, sizeof(msg));
	if (rc < 0) {
		connect_failed(d, c);
		smartiod_op_free(d, &o->op);
		return sio_fail(reterr, rc, "node %u cannot be reached", node);
	}
	o->connection = c;
	c->pins++;
	return 0;
}

int smartiod_connect_open(struct smartiod *d, struct smartiod_session *s, const void *request,
			  uint32_t node, const struct smartiod_wanted *w, uint32_t adapter,
			  struct sio_err *reterr)
{
	struct sio_path path;
	int rc;

	if (adapter != SIO_ADAPTER_ANY && adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	if (node == d->node)
		return connect_local(d, s, request, w, adapter, reterr);
	rc = smartiod_path(d, node, adapter, &path, reterr);
	if (rc < 0)
		return rc;
	return connect_remote(d, s, request, node, w, &path, reterr);
}

int smartiod_seg_connect(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_msg_seg_connect *m = msg;
	uint32_t flags = sio_from_le32(m->flags);
	struct smartiod_wanted wanted = {.id = sio_from_le32(m->segment_id)};
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, sio_from_le32(m->node), wanted.id);

	if (flags & SCI_FLAG_ASYNCHRONOUS_CONNECT)
		return sio_fail(reterr, -EOPNOTSUPP,
				"SCI_FLAG_ASYNCHRONOUS_CONNECT is not supported");
	if (flags & ~(SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST))
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to SCIConnectSegment",
				flags);
	if (flags & SCI_FLAG_BROADCAST)
		return smartiod_group_connect(d, s, msg, reterr);
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	return smartiod_connect_open(d, s, msg, sio_from_le32(m->node), &wanted,
				     sio_from_le32(m->adapter), reterr);
}

static bool may_not(struct smartiod *d, const struct smartiod_forbid *f,
		    const struct smartiod_connection *c, struct sio_err *why)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, c->node, c->segment_id);

	if (!c->o.session || c->via || smartiod_connection_over(c))
		return false;
	if (c->route == SMARTIOD_GROUP)
		return smartiod_forbids_group(d, f->topology, c->o.session, d->node, c->segment_id,
					      why);
	return (c->route == SMARTIOD_LOCAL || c->route == SMARTIOD_REMOTE) &&
	       smartiod_forbids_program(&f->topology->policy, c->o.session, &thing, why);
}

void smartiod_connections_forbidden(struct smartiod *d, const struct smartiod_forbid *f)
{
	struct smartiod_tree_node *n;
	struct sio_err why;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->connections, key))) {
		const struct smartiod_connection *c =
			SMARTIOD_OF(n, struct smartiod_connection, by_id);

		key = n->key;
		if (may_not(d, f, c, &why))
			smartiod_report(d, SIO_RELOAD_STAYS, "connection of process %u: %s", c->pid,
					why.text);
	}
}

void smartiod_connections_parting(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->connections, key))) {
		const struct smartiod_connection *c =
			SMARTIOD_OF(n, struct smartiod_connection, by_id);

		key = n->key;
		if (c->node == node && c->route == SMARTIOD_REMOTE && c->o.session && !c->via &&
		    !smartiod_connection_over(c))
			smartiod_report(d, SIO_RELOAD_ENDS,
					"connection of process %" PRIu32 ": segment %#" PRIx32
					" of node %" PRIu32,
					c->pid, c->segment_id, node);
	}
}

/* A connection that is made. */
static struct smartiod_connection *get_connection(struct smartiod_session *s, sio_le32 handle,
						  struct sio_err *reterr)
{
	struct smartiod_connection *c;

	c = smartiod_object_get(s, sio_from_le32(handle), SMARTIOD_CONNECTION, reterr);
	if (c && smartiod_connection_connecting(c)) {
		sio_fail(reterr, -EBADF, "this connection " SMARTIOD_NOT_YET);
		return NULL;
	}
	return c;
}

int smartiod_seg_disconnect(struct smartiod *d, struct smartiod_session *s, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct smartiod_connection *c = get_connection(s, m->handle, reterr);

	if (!c)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "SCIDisconnectSegment takes no flags");
	if (c->n_maps || c->dma || c->pins)
		return sio_fail(reterr, -EBUSY,
				"segment %#x of node %u is mapped %u times, %u times for devices",
				c->segment_id, c->node, c->n_maps, c->dma);
	smartiod_connection_close(d, c, SCI_CB_DISCONNECT);
	smartiod_reply_ok(d, s, msg);
	return 0;
}
