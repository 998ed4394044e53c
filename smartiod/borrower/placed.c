/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device segments, the borrower's side: the placement by access hints, the creation here or at the
 * lender, and the connection. The directory of device segments is the lender's (lender/devseg.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/hops.h"
#include "core/placement.h"
#include "smartio/ext.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

struct create_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
	struct smartiod_placed *placed; /* being made here; NULL: it is the lender's, or gone */
	uint64_t uid;			/* its segment's */
	uint32_t id, memtype;
	bool lasting;
	uint64_t bytes;
	unsigned order[SIO_PLACE_SITES], n_places, at;
	bool registering; /* the memory is there, the lender is asked to know it */
};

enum { PLACE_BORROWER, PLACE_LENDER };

static void create_next(struct smartiod *d, struct create_op *c);

static void create_end(struct smartiod *d, struct create_op *c)
{
	struct smartiod_borrow *b = c->borrow;

	smartiod_op_free(d, &c->op);
	smartiod_borrow_unpin(d, b);
}

/* The lender's directory has it, or will have it, if it was only too late with its answer. */
static void notify_end(struct smartiod *d, const struct smartiod_borrow *b,
		       const struct smartiod_segment *seg)
{
	struct sio_peer_dev_seg_end msg = {
		.h.type = sio_to_le32(SIO_PEER_DEV_SEG_END),
		.uid = sio_to_le64(seg->uid),
		.fdid = sio_to_le32(b->device->fdid),
	};

	smartiod_notify(d, b->node, &msg, sizeof(msg));
}

/* The segment in our memory is not to be. */
static void unplace(struct smartiod *d, struct create_op *c)
{
	struct smartiod_placed **at = &c->borrow->placed, *p = c->placed;

	if (!p)
		return;
	c->placed = NULL;
	while (*at && *at != p)
		at = &(*at)->next;
	if (!*at)
		return; /* the borrow's end has freed it */
	*at = p->next;
	smartiod_segment_end(d, p->segment, SCI_CB_DISCONNECT, false);
	free(p);
}

static bool still_placed(const struct create_op *c)
{
	const struct smartiod_placed *p = c->borrow->placed;

	/* Another one may lie where it was. */
	while (p && (p != c->placed || p->segment->uid != c->uid))
		p = p->next;
	return p;
}

static void ask_lender(struct smartiod *d, struct create_op *c, uint64_t uid)
{
	struct sio_peer_dev_seg_create ask = {
		.h.type = sio_to_le32(SIO_PEER_DEV_SEG_CREATE),
		.borrower = sio_to_le64(c->borrow->id),
		.bytes = sio_to_le64(c->bytes),
		.uid = sio_to_le64(uid),
		.fdid = sio_to_le32(c->borrow->device->fdid),
		.segment_id = sio_to_le32(c->id),
		.memtype = sio_to_le32(c->memtype),
		.flags = sio_to_le32(c->lasting ? SIO_PEER_LASTING : 0),
	};

	smartiod_ask(d, &c->op, c->borrow->node, &ask, sizeof(ask));
}

static void created(struct smartiod *d, struct create_op *c, const struct sio_prep_dev_seg *made)
{
	struct smartiod_segment *seg = c->placed ? c->placed->segment : NULL;
	uint64_t uid = sio_from_le64(made->uid);
	struct sio_rep_dev_seg_create rep = {.key = sio_to_le64(0)};

	if (seg)
		c->placed->known = true;
	else if (c->borrow->node == d->node)
		seg = smartiod_segment_by_uid(d, uid);
	if (seg) {
		rep.key = sio_to_le64(seg->mem);
	} else if (uid & SMARTIOD_UID_MEM) {
		rep.key = made->uid;
		smartiod_made_note(c->borrow, uid);
	}
	smartiod_op_reply(d, &c->op, &rep, sizeof(rep), NULL, 0);
}

/*
 * The end of a session takes placed segments before it wakes us, and so does the end of a
 * connection that another borrower had before the lender's answer was here: look before touching
 * one.
 */
static void create_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct create_op *c = (struct create_op *)op;
	struct smartiod_segment *seg = NULL;
	bool short_of = a->error == -ENOMEM || a->error == -ENOSPC;

	if (c->placed && !still_placed(c))
		c->placed = NULL;
	if (c->placed)
		seg = c->placed->segment;
	if (!op->session || smartiod_borrow_ended(c->borrow)) {
		unplace(d, c);
		smartiod_op_error(d, op, -ECONNRESET, "the device was returned");
		create_end(d, c);
	} else if (a->error && short_of && !c->registering && c->at + 1 < c->n_places) {
		unplace(d, c);
		c->at++;
		create_next(d, c);
	} else if (a->error) {
		if (seg && c->registering)
			notify_end(d, c->borrow, seg);
		unplace(d, c);
		smartiod_op_error(d, op, a->error, "%s", a->text);
		create_end(d, c);
	} else if (seg && !c->registering) {
		smartiod_segment_ready(d, seg, a);
		if (seg->fd < 0) {
			unplace(d, c);
			smartiod_op_error(d, op, -EMFILE, "%s", smartiod_no_descriptor(d));
			create_end(d, c);
			return;
		}
		seg->device = c->borrow->device->fdid;
		c->uid = seg->uid; /* on a real host it is its memory's now */
		c->registering = true;
		c->bytes = seg->bytes;
		ask_lender(d, c, seg->uid);
	} else {
		created(d, c, a->msg);
		create_end(d, c);
	}
}

struct smartiod_placed *smartiod_placed_new(struct smartiod *d, struct smartiod_session *s,
					    struct smartiod_borrow *b, uint32_t id,
					    uint32_t memtype, uint64_t bytes,
					    struct sio_err *reterr)
{
	struct smartiod_placed *p = calloc(1, sizeof(*p));

	if (!p) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	if (smartiod_segment_new(d, NULL, s->owner, false, id, bytes, &p->segment, reterr) < 0) {
		free(p);
		return NULL;
	}
	p->segment->pid = s->pid;
	smartiod_account_add(&s->program->account, &p->segment->charge, SIO_QUOTA_EXPORTED, bytes);
	p->memtype = memtype;
	p->next = b->placed;
	b->placed = p;
	return p;
}

/* Make it in this host's memory, then tell the lender. Return: -errno: nothing was asked. */
static int place_here(struct smartiod *d, struct create_op *c, struct sio_err *reterr)
{
	struct smartiod_session *s = c->op.session;
	struct sio_req_alloc req = {
		.h = {.op = SIO_OP_ALLOC, .flags = SIO_ALLOC_PART, .owner = s->owner},
		.size = c->bytes,
		.highest = SIO_PORT_ANY,
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
	};

	if (c->bytes > d->host->ram_size)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_RAM,
					  "%" PRIu64 " bytes; %s has %" PRIu64 " bytes of memory",
					  c->bytes, d->host->name, d->host->ram_size);
	if (smartiod_quota_program(d, s, SIO_QUOTA_EXPORTED, c->bytes, reterr) < 0)
		return reterr->code;
	c->placed = smartiod_placed_new(d, s, c->borrow, c->id, c->memtype, c->bytes, reterr);
	if (!c->placed)
		return reterr->code;
	c->uid = c->placed->segment->uid;
	smartiod_port_ask(d, &c->op, &req, sizeof(req));
	return 0;
}

static void create_next(struct smartiod *d, struct create_op *c)
{
	struct sio_err err = {.text = ""};
	struct smartiod_answer a = {.text = err.text};

	if (c->order[c->at] == PLACE_LENDER || c->borrow->node == d->node) {
		ask_lender(d, c, 0);
		return;
	}
	a.error = place_here(d, c, &err);
	if (a.error == 0)
		return;
	a.reason = err.reason;
	smartiod_op_step(d, &c->op, &a);
}

/*
 * Which hosts' memory may be taken, nearest to all accesses first. Ways are counted in links: the
 * lender's memory is not at no distance from a device in a chassis of the lender's.
 */
static int rank(struct smartiod *d, struct create_op *c, uint32_t hints, uint32_t flags,
		struct sio_err *reterr)
{
	const struct smartiod_borrow *b = c->borrow;
	const struct smartiod_hops *dev = &b->device->hops;
	const bool far = b->node != d->node;
	struct sio_place place[2] = {
		[PLACE_BORROWER] = {.node = d->node, .borrower = true, .lender = !far},
		[PLACE_LENDER] = {
			.node = b->node, .lender = true, .device_hops = dev->memory + 1u}};
	struct sio_path path;
	int n;

	if (far) {
		n = smartiod_borrow_path(d, b, &path, reterr);
		if (n < 0)
			return n;
		place[PLACE_BORROWER].device_hops =
			sio_hops_over(&path, d->hops.adapter[path.adapter],
				      dev->adapter[path.peer_adapter]) +
			1;
		n = smartiod_path(d, b->node, b->adapter, &path, reterr);
		if (n < 0)
			return n;
		place[PLACE_LENDER].host_hops =
			sio_hops_over(
				&path, d->hops.adapter[path.adapter],
				smartiod_peer_find(d, b->node)->hops.adapter[path.peer_adapter]) +
			1;
	}
	n = sio_placement_rank(place, far ? 2 : 1, hints, flags, c->order, reterr);
	if (n > 0)
		c->n_places = (unsigned)n;
	return n;
}

int smartiod_dev_seg_create(struct smartiod *d, struct smartiod_session *s, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_create *m = msg;
	uint32_t memtype = sio_from_le32(m->memtype), flags = sio_from_le32(m->flags);
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct create_op *c;
	int rc;

	if (!b)
		return reterr->code;
	if (memtype != SCI_MEMTYPE_PRIVATE && memtype != SCI_MEMTYPE_SHARED)
		return sio_fail(reterr, -EINVAL,
				"memory type %" PRIu32 "; SCI_MEMTYPE_PRIVATE or _SHARED is right",
				memtype);
	if (m->bytes == 0)
		return sio_fail(reterr, -EINVAL, "a segment has at least 1 byte");
	if (flags & SMARTIO_FLAG_LASTING && memtype != SCI_MEMTYPE_SHARED)
		return sio_fail(reterr, -EINVAL, "a segment that lasts must be shared");
	c = smartiod_op_new(d, s, msg, sizeof(*c), create_step, reterr);
	if (!c)
		return reterr->code;
	c->borrow = b;
	c->id = sio_from_le32(m->segment_id);
	c->memtype = memtype;
	c->lasting = flags & SMARTIO_FLAG_LASTING;
	c->bytes = sio_from_le64(m->bytes);
	/* One that lasts is in nobody's hands but the lender's. */
	if (c->lasting)
		flags = (flags & ~SMARTIO_FLAG_LASTING) | SCI_FLAG_DEVICE_SIDE_ONLY;
	rc = rank(d, c, sio_from_le32(m->hints), flags, reterr);
	if (rc < 0) {
		smartiod_op_free(d, &c->op);
		return rc;
	}
	b->pins++;
	create_next(d, c);
	return 0;
}

/* The last connection to a segment in our memory is gone. Return: it is one of those. */
bool smartiod_borrow_segment_idle(struct smartiod *d, struct smartiod_segment *seg)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		for (struct smartiod_placed **at = &b->placed; *at; at = &(*at)->next) {
			struct smartiod_placed *p = *at;

			if (p->segment != seg)
				continue;
			*at = p->next;
			free(p);
			notify_end(d, b, seg);
			smartiod_segment_end(d, seg, SCI_CB_DISCONNECT, false);
			return true;
		}
	return false;
}

/* ---- connect ---- */

struct connect_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
	bool private;			/* the segment is that borrow's alone */
};

/* Where its lender says that it is: whatever is there by this number must be the device's. */
static int connect_there(struct smartiod *d, const struct connect_op *o, const void *request,
			 const struct sio_prep_dev_seg *rep, struct sio_err *reterr)
{
	const struct smartiod_borrow *b = o->borrow;
	const uint32_t node = sio_from_le32(rep->node);
	const struct smartiod_wanted wanted = {.uid = sio_from_le64(rep->uid),
					       .id = sio_from_le32(rep->segment_id),
					       .device = b->device->fdid,
					       .borrow = o->private ? b->id : 0,
					       .via = b->id,
					       .lender = b->node,
					       .memtype = o->private ? SCI_MEMTYPE_PRIVATE
								     : SCI_MEMTYPE_SHARED};

	if (!wanted.uid)
		return sio_fail(reterr, -EPROTO, "the lender of %s names no segment",
				b->device->topo->name);
	smartiod_made_connected(d, b->node, wanted.uid);
	/* Memory of a third host may not be reached over the adapter that leads to the lender. */
	return smartiod_connect_open(d, o->op.session, request, node, &wanted,
				     node == b->node ? b->adapter : SIO_ADAPTER_ANY, reterr);
}

static void connect_step(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct connect_op *)op)->borrow;
	struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};
	struct sio_err err = {.text = ""};

	if (a->error)
		smartiod_op_error(d, op, a->error, "%s", a->text);
	else if (op->session &&
		 connect_there(d, (struct connect_op *)op, &request, a->msg, &err) < 0)
		smartiod_op_fail(d, op, &err);
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

struct smartiod_connection *smartiod_bar_connection(struct smartiod *d, struct smartiod_session *s,
						    struct smartiod_borrow *b, uint32_t bar,
						    uint64_t bytes, struct sio_err *reterr)
{
	struct smartiod_connection *c;

	if (bar >= SIO_DEVICE_BARS || bytes == 0) {
		sio_fail(reterr, -ENOENT, "%s has no BAR %" PRIu32, b->device->topo->name, bar);
		return NULL;
	}
	c = smartiod_connection_new(d, s, SMARTIOD_BAR, reterr);
	if (!c)
		return NULL;
	c->node = b->node;
	c->segment_id = bar;
	c->bytes = bytes;
	c->device = b;
	c->ops = &smartiod_bar_ops;
	b->users++;
	return c;
}

/* A BAR: its size came with the borrow; nobody is asked. */
struct smartiod_connection *smartiod_connect_bar(struct smartiod *d, struct smartiod_session *s,
						 struct smartiod_borrow *b, uint32_t bar,
						 struct sio_err *reterr)
{
	const struct sio_rep_dev_list *info = &b->device->info;

	return smartiod_bar_connection(
		d, s, b, bar, bar < SIO_DEVICE_BARS ? sio_from_le64(info->bar_size[bar]) : 0,
		reterr);
}

static int connect_bar(struct smartiod *d, struct smartiod_session *s, const void *msg,
		       struct smartiod_borrow *b, uint32_t bar, struct sio_err *reterr)
{
	struct smartiod_connection *c = smartiod_connect_bar(d, s, b, bar, reterr);
	struct sio_rep_seg_connect rep;

	if (!c)
		return reterr->code;
	rep = (struct sio_rep_seg_connect){
		.handle = sio_to_le32(smartiod_handle(&c->o)),
		.node = sio_to_le32(b->node),
		.segment_id = sio_to_le32(bar),
		.path = sio_to_le32(SIO_PATH_NONE),
		.bytes = sio_to_le64(c->bytes),
		.bar_addr = b->device->info.bar_addr[bar],
	};
	smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
	return 0;
}

int smartiod_dev_seg_connect(struct smartiod *d, struct smartiod_session *s, const void *msg,
			     struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_connect *m = msg;
	uint32_t memtype = sio_from_le32(m->memtype), flags = sio_from_le32(m->flags);
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_dev_seg_lookup ask = {
		.h.type = sio_to_le32(SIO_PEER_DEV_SEG_LOOKUP),
		.segment_id = m->segment_id,
		.memtype = m->memtype,
	};
	struct connect_op *op;

	if (!b)
		return reterr->code;
	if (flags & ~SCI_FLAG_USE_CALLBACK)
		return sio_fail(reterr, -EINVAL,
				"flags %#" PRIx32 " do not belong to "
				"SCIConnectDeviceSegment",
				flags);
	if (memtype == SCI_MEMTYPE_BAR)
		return connect_bar(d, s, msg, b, sio_from_le32(m->segment_id), reterr);
	op = smartiod_op_new(d, s, msg, sizeof(*op), connect_step, reterr);
	if (!op)
		return reterr->code;
	op->borrow = b;
	op->private = memtype == SCI_MEMTYPE_PRIVATE;
	b->pins++;
	ask.borrower = sio_to_le64(b->id);
	ask.fdid = sio_to_le32(b->device->fdid);
	smartiod_ask(d, &op->op, b->node, &ask, sizeof(ask));
	return 0;
}
