/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of multicast groups in BARs, the borrower's side. Each is a mapping of the BAR with one
 * piece that is not mapped into any process. The member itself belongs to the lender
 * (lender/overlay.c).
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"
#include "smartiod/segment/restore.h"

struct join_op {
	struct smartiod_op op;
	struct smartiod_connection *connection; /* pinned */
	struct smartiod_borrow *borrow;		/* the same */
	uint32_t group;
};

static void end(struct smartiod *d, struct join_op *j)
{
	struct smartiod_connection *c = j->connection;
	struct smartiod_borrow *b = j->borrow;

	smartiod_op_free(d, &j->op);
	smartiod_connection_unpin(d, c);
	smartiod_borrow_unpin(d, b);
}

void smartiod_member_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_group_join *rep = reply;
	struct sio_peer_bar_release msg = {
		.h.type = sio_to_le32(SIO_PEER_BAR_RELEASE),
		.borrower = rep->borrower,
		.view = rep->view,
		.grant = rep->member,
		.fdid = rep->fdid,
	};

	smartiod_notify(d, node, &msg, sizeof(msg));
}

/* The lender has it, and nobody here wants it. */
static void give_back(struct smartiod *d, const struct smartiod_borrow *b,
		      const struct sio_prep_group_join *rep)
{
	if (!smartiod_borrow_lost(b))
		smartiod_member_late(d, b->node, rep);
}

static int keep(struct smartiod *d, struct smartiod_session *s, struct smartiod_connection *c,
		const struct smartiod_bar_piece *piece, uint32_t group, struct smartiod_map **ret,
		struct sio_err *reterr)
{
	/* Nothing of it goes over a path, so none takes it along. */
	const struct sio_path none = {.adapter = SIO_ADAPTER_ANY, .peer_adapter = SIO_ADAPTER_ANY};
	struct smartiod_bar_map *bar;
	struct smartiod_map *map;

	map = smartiod_map_new(d, s, c, reterr);
	if (!map)
		return reterr->code;
	bar = smartiod_bar_map_new(d, c->device, c, &none);
	if (!bar) {
		smartiod_map_drop(d, map);
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	}
	bar->n = 1;
	bar->is_member = true;
	bar->group = group;
	bar->piece[0] = *piece;
	map->bar = bar;
	*ret = map;
	return 0;
}

static struct smartiod_bar_piece piece_of(sio_le64 view, sio_le64 member)
{
	return (struct smartiod_bar_piece){
		.view = sio_from_le64(view),
		.grant = sio_from_le64(member),
		.released = true, /* it has no address that is kept for us */
		.fd = -1,
	};
}

static void fill_reply(struct smartiod *d, const struct smartiod_map *map,
		       const struct sio_prep_group_join *made, struct sio_rep_group_join *ret)
{
	const struct smartiod_bar_map *bar = map->bar;
	uint32_t handle = smartiod_handle(&map->o);

	ret->map = sio_to_le32(handle);
	ret->claim.view = made->view;
	ret->claim.grant = made->member;
	if (bar->borrow->node != d->node)
		ret->seal = sio_to_le64(smartiod_bar_seal(map->o.session, handle, bar));
}

static void join_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct join_op *j = (struct join_op *)op;
	struct sio_rep_group_join rep = {.reserved = sio_to_le32(0)};
	const struct sio_prep_group_join *made = a->msg;
	struct sio_err err = {.text = ""};
	struct smartiod_bar_piece piece;
	struct smartiod_map *map = NULL;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else if (!op->session || smartiod_connection_over(j->connection) ||
		   smartiod_borrow_ended(j->borrow) || smartiod_borrow_lost(j->borrow)) {
		give_back(d, j->borrow, made);
		smartiod_op_error(d, op, -ECONNRESET, "the connection is gone");
	} else {
		piece = piece_of(made->view, made->member);
		if (keep(d, op->session, j->connection, &piece, j->group, &map, &err) < 0) {
			give_back(d, j->borrow, made);
			smartiod_op_fail(d, op, &err);
		} else {
			fill_reply(d, map, made, &rep);
			smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
		}
	}
	end(d, j);
}

static struct smartiod_connection *get_bar(struct smartiod_session *s, sio_le32 handle,
					   struct sio_err *reterr)
{
	struct smartiod_connection *c;
	const struct smartiod_borrow *b;

	c = smartiod_object_get(s, sio_from_le32(handle), SMARTIOD_CONNECTION, reterr);
	if (!c)
		return NULL;
	b = c->device;
	if (c->route != SMARTIOD_BAR) {
		sio_fail(reterr, -EINVAL,
			 "segment %#" PRIx32 " is not a BAR of a device: memory of hosts is a "
			 "member as a segment with SCI_FLAG_BROADCAST",
			 c->segment_id);
		return NULL;
	}
	if (!b || smartiod_borrow_ended(b) || smartiod_borrow_lost(b)) {
		sio_fail(reterr, -ECONNRESET, "the device is lost");
		return NULL;
	}
	return c;
}

int smartiod_group_join(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_group_join *m = msg;
	struct smartiod_connection *c = get_bar(s, m->handle, reterr);
	struct sio_peer_group_join ask = {.h.type = sio_to_le32(SIO_PEER_GROUP_JOIN),
					  .offset = m->offset,
					  .bytes = m->bytes,
					  .group = m->group};
	struct sio_policy_thing thing;
	struct smartiod_borrow *b;
	struct join_op *j;

	if (!c)
		return reterr->code;
	b = c->device;
	thing = smartiod_thing(d, SIO_POLICY_SEGMENTS, b->node, sio_from_le32(m->group));
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	j = smartiod_op_new(d, s, msg, sizeof(*j), join_step, reterr);
	if (!j)
		return reterr->code;
	j->connection = c;
	j->borrow = b;
	j->group = sio_from_le32(m->group);
	c->pins++;
	b->pins++;
	ask.borrower = sio_to_le64(b->id);
	ask.fdid = sio_to_le32(b->device->fdid);
	ask.bar = sio_to_le32(c->segment_id);
	smartiod_ask(d, &j->op, b->node, &ask, sizeof(ask));
	return 0;
}

/* ---- of before we were started ---- */

int smartiod_member_map_again(struct smartiod *d, struct smartiod_session *s,
			      struct smartiod_connection *c, const struct sio_msg_restore *m,
			      struct smartiod_map **ret, struct sio_err *reterr)
{
	const struct sio_msg_group_join *r = (const void *)m->request;
	const struct smartiod_bar_piece piece = piece_of(m->claim[0].view, m->claim[0].grant);
	struct smartiod_bar_map *bar;
	int rc = keep(d, s, c, &piece, sio_from_le32(r->group), ret, reterr);

	if (rc < 0 || ((const struct smartiod_borrow *)c->device)->node == d->node)
		return rc;
	bar = (*ret)->bar;
	bar->start = 0; /* not known before the lender is met */
	rc = smartiod_seal_compare(s, m, smartiod_bar_seal(s, smartiod_handle(&(*ret)->o), bar),
				   reterr);
	if (rc < 0) {
		bar->n = 0;
		smartiod_map_drop(d, *ret);
	}
	return rc;
}

/* ---- leave ---- */

struct leave_op {
	struct smartiod_op op;
	uint32_t map; /* a handle of the session's */
};

static struct smartiod_map *get_member(struct smartiod_session *s, uint32_t handle,
				       struct sio_err *reterr)
{
	struct smartiod_map *map = smartiod_object_get(s, handle, SMARTIOD_MAP, reterr);

	if (!map || (map->bar && ((struct smartiod_bar_map *)map->bar)->is_member))
		return map;
	sio_fail(reterr, -EBADF,
		 "map %#" PRIx32 " is no member of a group: what GROUP_JOIN returned is right",
		 handle);
	return NULL;
}

/* With the lender, or the link to it, the borrow is lost, or will be when all asked have heard. */
static bool is_over(const struct smartiod_borrow *b, int error)
{
	return smartiod_borrow_lost(b) || error == -ENETDOWN;
}

/* @map may be gone, by another request or with its program. */
static void leave_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct leave_op *l = (struct leave_op *)op;
	struct sio_err err = {.text = ""};
	struct smartiod_map *map = op->session ? get_member(op->session, l->map, &err) : NULL;
	struct smartiod_bar_map *bar = map ? map->bar : NULL;

	if (op->session && !map) {
		smartiod_op_fail(d, op, &err);
	} else if (map && a->error && !is_over(bar->borrow, a->error)) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else if (map) {
		bar->n = a->error ? bar->n : 0; /* 0: the lender has it back */
		smartiod_map_drop(d, map);
		smartiod_op_ok(d, op);
	}
	smartiod_op_free(d, op);
}

int smartiod_group_leave(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct smartiod_map *map = get_member(s, sio_from_le32(m->handle), reterr);
	struct sio_peer_group_leave ask = {.h.type = sio_to_le32(SIO_PEER_GROUP_LEAVE)};
	const struct smartiod_bar_map *bar;
	struct leave_op *l;

	if (!map)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "flags %#" PRIx32 ": there are none for this",
				sio_from_le32(m->flags));
	bar = map->bar;
	if (smartiod_borrow_lost(bar->borrow)) {
		smartiod_map_drop(d, map);
		smartiod_reply_ok(d, s, msg);
		return 0;
	}
	l = smartiod_op_new(d, s, msg, sizeof(*l), leave_step, reterr);
	if (!l)
		return reterr->code;
	l->map = sio_from_le32(m->handle);
	ask.borrower = sio_to_le64(bar->borrow->id);
	ask.view = sio_to_le64(bar->piece[0].view);
	ask.member = sio_to_le64(bar->piece[0].grant);
	ask.fdid = sio_to_le32(bar->borrow->device->fdid);
	smartiod_ask(d, &l->op, bar->borrow->node, &ask, sizeof(ask));
	return 0;
}
