/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: segments that are members, and connections to all of them. The port knows the
 * groups and their members; the daemons do not ask each other.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/group.h"

int smartiod_group_check(struct smartiod *d, uint32_t group, struct sio_err *reterr)
{
	if (group >= SMARTIOD_GROUPS)
		return sio_fail(reterr, -EINVAL, "group %u; 0 to %u are right", group,
				SMARTIOD_GROUPS - 1);
	if (d->member[group])
		return sio_fail(reterr, -EEXIST, "%s has a segment of group %u already",
				d->host->name, group);
	return 0;
}

void smartiod_group_ask_memory(struct smartiod *d, struct smartiod_op *op,
			       const struct smartiod_segment *seg)
{
	struct sio_req_mcast req = {
		.h = {.op = SIO_OP_MCAST, .owner = seg->owner},
		.group = seg->id,
		.what = SIO_MCAST_JOIN,
		.length = seg->bytes,
	};

	smartiod_port_ask(d, op, &req, sizeof(req));
}

/* ---- publishing ---- */

struct publish_op {
	struct smartiod_op op;
	struct smartiod_segment *segment; /* pinned */
	uint32_t adapter, turn;
	bool on;
};

/* The port carries out in order, but answers as it likes: the latest that it did counts. */
static void published(struct smartiod_segment *seg, const struct publish_op *p)
{
	uint32_t bit = 1u << p->adapter;

	if ((int32_t)(p->turn - seg->published_turn[p->adapter]) < 0)
		return;
	seg->published_turn[p->adapter] = p->turn;
	seg->published = p->on ? seg->published | bit : seg->published & ~bit;
}

static void publish_step(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	struct publish_op *p = (struct publish_op *)op;
	struct smartiod_segment *seg = p->segment;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "group %u: %s", seg->id, a->text);
	} else {
		published(seg, p);
		smartiod_op_ok(d, op);
	}
	/* While others are on their way, what the last of them wants stays. */
	if (--seg->publishing == 0 && seg->state == SMARTIOD_SEGMENT_OWNED)
		seg->available = seg->published;
	smartiod_segment_unpin(d, seg);
	smartiod_op_free(d, op);
}

int smartiod_group_publish(struct smartiod *d, struct smartiod_session *s, const void *msg,
			   struct smartiod_segment *seg, uint32_t adapter, bool on,
			   struct sio_err *reterr)
{
	uint32_t bit = 1u << adapter;
	uint32_t available = on ? seg->available | bit : seg->available & ~bit;
	struct sio_req_mcast req = {
		.h = {.op = SIO_OP_MCAST, .owner = s->owner},
		.group = seg->id,
		.what = available ? SIO_MCAST_PUBLISH : SIO_MCAST_UNPUBLISH,
		.target = seg->mem,
	};
	struct publish_op *p = smartiod_op_new(d, s, msg, sizeof(*p), publish_step, reterr);

	if (!p)
		return reterr->code;
	p->segment = seg;
	p->adapter = adapter;
	p->turn = ++seg->publish_turn;
	p->on = on;
	/* At once: another request may come before the port's answer, and must build on this. */
	seg->available = available;
	seg->publishing++;
	smartiod_segment_pin(seg);
	smartiod_port_ask(d, &p->op, &req, sizeof(req));
	return 0;
}

void smartiod_group_adapter_gone(struct smartiod *d, struct smartiod_segment *seg, uint32_t adapter)
{
	uint32_t bit = 1u << adapter;
	struct sio_req_mcast req = {
		.h = {.op = SIO_OP_MCAST, .owner = seg->owner},
		.group = seg->id,
		.what = SIO_MCAST_UNPUBLISH,
		.target = seg->mem,
	};

	if (seg->ready && seg->available == bit)
		smartiod_port_send(d, &req, sizeof(req));
	seg->published_turn[adapter] = ++seg->publish_turn; /* what is on its way counts no more */
	seg->published &= ~bit;
}

/* ---- connections ---- */

struct group_op {
	struct smartiod_op op;
	struct smartiod_connection *connection; /* pinned */
};

static void group_reply(struct smartiod *d, struct smartiod_op *op,
			const struct smartiod_connection *c)
{
	struct sio_rep_seg_connect rep = {
		.handle = sio_to_le32(smartiod_handle(&c->o)),
		.node = sio_to_le32(c->node),
		.segment_id = sio_to_le32(c->segment_id),
		.path = sio_to_le32(c->exact ? SIO_PATH_EXACT : SIO_PATH_NONE),
		.bytes = sio_to_le64(c->bytes),
		.key = sio_to_le64(c->map),
	};

	smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
}

static void group_failed(struct smartiod *d, struct smartiod_op *op, struct smartiod_connection *c,
			 int error, const char *text)
{
	smartiod_op_error(d, op, error, "group %u: %s", c->segment_id, text);
	if (c->state != SMARTIOD_CONNECTION_CLOSED)
		smartiod_connection_close(d, c, SCI_CB_LOST);
}

static void group_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_connection *c = ((struct group_op *)op)->connection;
	const struct sio_evt_mcast *evt = a->msg;

	if (a->error) {
		group_failed(d, op, c, a->error, a->text);
	} else if (c->state == SMARTIOD_CONNECTION_CLOSED) {
		smartiod_port_free(d, evt->id);
	} else {
		c->map = evt->id;
		c->bytes = evt->size;
		c->map_bus_addr = evt->address;
		c->exact = evt->mode == SIO_MCAST_EXACT;
		c->map_fd = c->exact ? -1 : smartiod_take_fd(a, 0);
		smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_CONNECTED);
		if (c->map_fd < 0 && !c->exact)
			group_failed(d, op, c, -EMFILE, smartiod_no_descriptor(d));
		else if (op->session) /* else its end will release the connection */
			group_reply(d, op, c);
	}
	smartiod_connection_unpin(d, c);
	smartiod_op_free(d, op);
}

int smartiod_group_connect(struct smartiod *d, struct smartiod_session *s, const void *msg,
			   struct sio_err *reterr)
{
	const struct sio_msg_seg_connect *m = msg;
	struct sio_req_mcast req = {
		.h = {.op = SIO_OP_MCAST, .owner = s->owner},
		.adapter = sio_from_le32(m->adapter),
		.group = sio_from_le32(m->segment_id),
		.what = SIO_MCAST_CONNECT,
	};
	struct smartiod_connection *c;
	struct group_op *g;

	if (sio_from_le32(m->node) != DIS_BROADCAST_NODEID_GROUP_ALL)
		return sio_fail(reterr, -EHOSTUNREACH, "a group has node id %d, not %u",
				DIS_BROADCAST_NODEID_GROUP_ALL, sio_from_le32(m->node));
	if (req.adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, req.adapter, d->host->n_adapters);
	if (smartiod_allow_group(d, s, d->node, req.group, reterr) < 0)
		return reterr->code;
	g = smartiod_op_new(d, s, msg, sizeof(*g), group_step, reterr);
	if (!g)
		return reterr->code;
	c = smartiod_connection_new(d, s, SMARTIOD_GROUP, reterr);
	if (!c) {
		smartiod_op_free(d, &g->op);
		return reterr->code;
	}
	c->node = DIS_BROADCAST_NODEID_GROUP_ALL;
	c->segment_id = req.group;
	c->adapter = req.adapter;
	smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_CONNECT);
	c->pins++;
	g->connection = c;
	smartiod_port_ask(d, &g->op, &req, sizeof(req));
	return 0;
}

/*
 * What a program sends through is the port's, and its own; that needs no seal. On a real host each
 * member has memory of its own.
 */
int smartiod_group_again(struct smartiod *d, struct smartiod_session *s,
			 const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_connect *r = (const void *)m->request;
	uint32_t group = sio_from_le32(r->segment_id), handle = s->forced;
	struct smartiod_connection *c;
	struct smartiod_unclaimed *l;

	l = smartiod_unclaimed_get(d, SIO_KIND_MEM, s->owner, sio_from_le64(m->key), reterr);
	if (!l)
		return reterr->code;
	if (!smartiod_unclaimed_in_group(l, SIO_LIST_SENDER, group) ||
	    l->device >> 32 != sio_from_le32(r->adapter))
		return sio_fail(reterr, -EINVAL,
				"memory %" PRIu64 " is no way to group %u by adapter %u",
				l->by_id.key, group, sio_from_le32(r->adapter));
	if (smartiod_allow_group(d, s, d->node, group, reterr) < 0)
		return reterr->code;
	s->forced = handle;
	c = smartiod_connection_new(d, s, SMARTIOD_GROUP, reterr);
	if (!c)
		return reterr->code;
	c->node = DIS_BROADCAST_NODEID_GROUP_ALL;
	c->segment_id = group;
	c->adapter = sio_from_le32(r->adapter);
	c->map = l->by_id.key;
	c->bytes = l->length;
	c->map_bus_addr = l->address;
	c->exact = true;
	smartiod_unclaimed_done(d, l);
	return 0;
}
