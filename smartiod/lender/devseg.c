/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lender's directory of device segments: memory that belongs to a device, in the lender's
 * memory or in a borrower's. An entry ends with its last connection, or with the borrow that made
 * it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/devseg.h"
#include "smartiod/lender/requests.h"

struct smartiod_dev_seg *smartiod_dev_seg_find(const struct smartiod_device *dev,
					       uint64_t private_to, uint32_t id)
{
	struct smartiod_dev_seg *s = dev->lent->segs;

	while (s && (s->private_to != private_to || s->id != id))
		s = s->next;
	return s;
}

unsigned smartiod_dev_seg_count(const struct smartiod_loan *l)
{
	unsigned n = 0;

	for (const struct smartiod_dev_seg *s = l->device->lent->segs; s; s = s->next)
		n += s->creator == l->id;
	return n;
}

void smartiod_dev_seg_notify_gone(struct smartiod *d, const struct smartiod_device *dev,
				  uint32_t node, uint64_t uid)
{
	struct sio_peer_dev_seg_end msg = {
		.h.type = sio_to_le32(SIO_PEER_DEV_SEG_GONE),
		.uid = sio_to_le64(uid),
		.fdid = sio_to_le32(dev->fdid),
	};

	smartiod_notify(d, node, &msg, sizeof(msg));
}

/* So that its maker's daemon does not name it any more. */
static void notify_gone(struct smartiod *d, const struct smartiod_device *dev,
			const struct smartiod_dev_seg *s)
{
	const struct smartiod_loan *l = smartiod_loan_find(d, s->creator);

	if (s->segment && l && l->node != d->node && !smartiod_loan_ended(l))
		smartiod_dev_seg_notify_gone(d, dev, l->node, s->uid);
}

void smartiod_dev_seg_drop(struct smartiod *d, struct smartiod_device *dev,
			   struct smartiod_dev_seg *s, bool owner_gone)
{
	struct smartiod_dev_seg **at = &dev->lent->segs;

	notify_gone(d, dev, s);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	/* What lasts is ours: the port has not freed it. */
	if (s->segment)
		smartiod_segment_end(d, s->segment, owner_gone ? SCI_CB_LOST : SCI_CB_DISCONNECT,
				     owner_gone && !s->lasting);
	free(s);
}

static void end_all(struct smartiod *d, const struct smartiod_loan *l, bool lasting)
{
	struct smartiod_dev_seg *s, *next;

	for (s = l->device->lent->segs; s; s = next) {
		next = s->next;
		if (s->creator == l->id && (lasting || !s->lasting))
			smartiod_dev_seg_drop(d, l->device, s, true);
	}
}

static bool outlives(struct smartiod *d, const struct smartiod_dev_seg *s);

/* Those of makers that have ended: who had the registers since may live, and go on with them. */
static void end_inherited(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_dev_seg *s, *next;

	for (s = dev->lent->segs; s; s = next) {
		next = s->next;
		if (outlives(d, s))
			smartiod_dev_seg_drop(d, dev, s, true);
	}
}

bool smartiod_dev_seg_is_for(const struct smartiod_dev_seg *s, const struct smartiod_loan *l)
{
	return !s->only_session || (s->only_session == l->session && s->only_node == l->node);
}

/*
 * The program of @l may live, and store by what it had mapped: nobody goes on with what lasts but
 * that program itself, which knows what it does.
 */
static void reserve(struct smartiod *d, const struct smartiod_loan *l, bool held)
{
	for (struct smartiod_dev_seg *s = l->device->lent->segs; s; s = s->next) {
		if (!s->lasting || !smartiod_dev_seg_is_for(s, l) ||
		    (s->creator != l->id && !(held && outlives(d, s))))
			continue;
		s->only_session = l->session;
		s->only_node = l->node;
	}
}

/* The program of @l is known to have ended. */
static void unreserve(const struct smartiod_loan *l)
{
	for (struct smartiod_dev_seg *s = l->device->lent->segs; s; s = s->next)
		if (smartiod_dev_seg_is_for(s, l))
			s->only_session = 0;
}

void smartiod_dev_segs_end(struct smartiod *d, struct smartiod_loan *l, bool held)
{
	end_all(d, l, l->lost);
	if (l->lost && held)
		end_inherited(d, l->device);
	else if (l->cut_off)
		reserve(d, l, held);
	else if (l->program_over)
		unreserve(l);
}

/* Its programs have ended, or nobody will know: a host that comes back may count them anew. */
void smartiod_dev_segs_node_down(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);
		struct smartiod_dev_seg *s, *next;

		key = n->key;
		for (s = dev->lent->segs; s; s = next) {
			next = s->next;
			if (s->only_session && s->only_node == node)
				smartiod_dev_seg_drop(d, dev, s, true);
		}
	}
}

void smartiod_dev_segs_over(struct smartiod *d, struct smartiod_loan *l)
{
	end_all(d, l, true);
}

/* Its creator has ended, and the device may still reach what that had mapped. */
static bool outlives(struct smartiod *d, const struct smartiod_dev_seg *s)
{
	const struct smartiod_loan *l = smartiod_loan_find(d, s->creator);

	return s->lasting && l && smartiod_loan_ended(l);
}

void smartiod_dev_segs_free(struct smartiod_device *dev)
{
	while (dev->lent->segs) {
		struct smartiod_dev_seg *s = dev->lent->segs;

		dev->lent->segs = s->next;
		free(s);
	}
}

bool smartiod_all_have_reported(const struct smartiod *d)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (d->peer[i].expected)
			return false;
	return true;
}

bool smartiod_dev_seg_is_known(struct smartiod *d, const struct smartiod_dev_seg *s)
{
	const struct smartiod_loan *l = smartiod_loan_find(d, s->creator);
	const struct smartiod_peer *p = l ? smartiod_peer_find(d, l->node) : NULL;

	return s->private_to ? p && !p->expected : smartiod_all_have_reported(d);
}

/*
 * Its last connection that is known ended. Is it of before our start, and may another host have one
 * that it has not reported? Then it ends when all have, if there is none.
 */
static bool is_expected(struct smartiod *d, struct smartiod_dev_seg *s)
{
	if (!s->adopted || smartiod_dev_seg_is_known(d, s))
		return false;
	s->connected = true;
	return true;
}

/* Return: it is one of ours. */
bool smartiod_dev_seg_idle(struct smartiod *d, struct smartiod_segment *seg)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		for (struct smartiod_dev_seg *s = dev->lent->segs; s; s = s->next)
			if (s->segment == seg) {
				if (!outlives(d, s) && !is_expected(d, s))
					smartiod_dev_seg_drop(d, dev, s, false);
				return true;
			}
	}
	return false;
}

/* ---- CREATE ---- */

struct create_op {
	struct smartiod_lend lend;
	struct smartiod_segment *segment; /* pinned */
};

static void fill_reply(const struct smartiod_loan *l, const struct smartiod_dev_seg *s,
		       struct sio_prep_dev_seg *ret)
{
	*ret = (struct sio_prep_dev_seg){
		.borrower = sio_to_le64(l->id),
		.uid = sio_to_le64(s->uid),
		.bytes = sio_to_le64(s->bytes),
		.fdid = sio_to_le32(l->device->fdid),
		.node = sio_to_le32(s->node),
		.segment_id = sio_to_le32(s->id),
	};
}

static struct smartiod_dev_seg *by_segment(struct smartiod_device *dev,
					   const struct smartiod_segment *seg)
{
	struct smartiod_dev_seg *s = dev->lent->segs;

	while (s && s->segment != seg)
		s = s->next;
	return s;
}

static void create_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct create_op *c = (struct create_op *)op;
	struct smartiod_loan *l = c->lend.loan;
	struct smartiod_segment *seg = c->segment;
	struct smartiod_dev_seg *s = by_segment(l->device, seg);
	struct sio_prep_dev_seg rep;

	if (!a->error)
		smartiod_segment_ready(d, seg, a);
	if (s)
		s->making = NULL;
	if (!s) { /* the borrow ended meanwhile, and the port has the memory back */
		smartiod_segment_unpin(d, seg);
		smartiod_lend_fail(d, &c->lend, -ECONNRESET, "the borrow ended");
		return;
	}
	if (a->error || seg->fd < 0 || smartiod_lend_orphan(&c->lend)) {
		smartiod_dev_seg_drop(d, l->device, s, false);
		smartiod_segment_unpin(d, seg);
		smartiod_lend_fail(d, &c->lend, a->error ? a->error : -EMFILE,
				   "memory beside %s: %s", l->device->topo->name,
				   a->error ? a->text : smartiod_no_descriptor(d));
		return;
	}
	seg->device = l->device->fdid;
	s->bytes = seg->bytes;
	s->uid = seg->uid;
	fill_reply(l, s, &rep);
	smartiod_segment_unpin(d, seg);
	smartiod_lend_done(d, &c->lend, &rep, sizeof(rep), NULL, 0);
}

/* The program of this host that has borrowed; NULL: it is another host's. */
static struct smartiod_session *program_of(struct smartiod *d, const struct smartiod_loan *l)
{
	return l->node == d->node ? smartiod_session_find(d, l->session) : NULL;
}

static int check_quota(struct smartiod *d, const struct smartiod_loan *l, uint64_t bytes,
		       struct sio_err *reterr)
{
	const struct smartiod_session *s = program_of(d, l);

	return s ? smartiod_quota_program(d, s, SIO_QUOTA_EXPORTED, bytes, reterr)
		 : smartiod_quota_node(d, l->node, SIO_QUOTA_EXPORTED, bytes, reterr);
}

/* Memory of ours is whose borrow made it. */
void smartiod_dev_seg_charge(struct smartiod *d, const struct smartiod_loan *l,
			     struct smartiod_segment *seg)
{
	struct smartiod_session *s = program_of(d, l);

	if (s)
		smartiod_account_add(&s->program->account, &seg->charge, SIO_QUOTA_EXPORTED,
				     seg->bytes);
	else
		smartiod_charge_node(d, l->node, &seg->charge, SIO_QUOTA_EXPORTED, seg->bytes);
}

/* Memory of this host for @s; the answer follows. */
static int place_here(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		      struct smartiod_loan *l, struct smartiod_dev_seg *s, struct sio_err *reterr)
{
	struct sio_req_alloc req = {
		.h = {.op = SIO_OP_ALLOC,
		      .flags = SIO_ALLOC_PART,
		      .owner = s->lasting ? 0 : l->owner},
		.size = s->bytes,
		.highest = SIO_PORT_ANY,
		.near_device = l->device->port.id,
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
		.user_cookie = smartiod_dev_seg_cookie(s),
	};
	struct create_op *c;
	int rc;

	if (s->bytes > d->host->ram_size)
		return sio_fail_exhausted(
			reterr, -ENOSPC, SIO_OUT_OF_RAM,
			"%" PRIu64 " bytes beside %s; %s has %" PRIu64 " bytes of memory", s->bytes,
			l->device->topo->name, d->host->name, d->host->ram_size);
	rc = check_quota(d, l, s->bytes, reterr);
	if (rc < 0)
		return rc;
	c = smartiod_lend_new(d, from, msg, sizeof(*c), l, create_step, reterr);
	if (!c)
		return reterr->code;
	rc = smartiod_segment_new(d, NULL, req.h.owner, false, s->id, s->bytes, &c->segment,
				  reterr);
	if (rc < 0) {
		l->pins--; /* the caller has it: it is not freed here */
		smartiod_op_free(d, &c->lend.op);
		return rc;
	}
	smartiod_dev_seg_charge(d, l, c->segment);
	smartiod_segment_pin(c->segment);
	s->node = d->node;
	s->uid = c->segment->uid;
	s->segment = c->segment;
	s->making = &c->lend;
	smartiod_port_ask(d, &c->lend.op, &req, sizeof(req));
	return 0;
}

/*
 * The same request, whose answer was lost with the connection. A borrower's own memory has one
 * number; of ours it is one that is being made for nobody any more, or of which its borrower has
 * not reported that its program knows it (devseg_again.c).
 */
static bool is_asked_again(const struct smartiod_dev_seg *s, const struct smartiod_loan *l,
			   const struct sio_peer_dev_seg_create *m)
{
	const uint64_t mask = SIO_PAGE_SIZE - 1;
	bool same = s->creator == l->id &&
		    ((s->bytes + mask) & ~mask) == ((sio_from_le64(m->bytes) + mask) & ~mask);

	if (!same || m->uid || !s->segment)
		return same && m->uid && !s->segment && s->uid == sio_from_le64(m->uid);
	return s->making ? smartiod_lend_orphan(s->making) : s->unheard;
}

/* It is answered by what there is, or will be. */
static void answer_again(struct smartiod *d, const struct smartiod_from *from,
			 const struct smartiod_loan *l, struct smartiod_dev_seg *s, const void *msg)
{
	struct sio_prep_dev_seg rep;

	s->unheard = false;
	if (s->making) {
		smartiod_lend_take_over(s->making, from, msg);
		return;
	}
	fill_reply(l, s, &rep);
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
}

int smartiod_dev_seg_check_type(uint32_t memtype, struct sio_err *reterr)
{
	if (memtype == SCI_MEMTYPE_PRIVATE || memtype == SCI_MEMTYPE_SHARED)
		return 0;
	return sio_fail(reterr, -EINVAL,
			"memory type %" PRIu32 "; SCI_MEMTYPE_PRIVATE or _SHARED is right",
			memtype);
}

int smartiod_lend_dev_seg_create(struct smartiod *d, const struct smartiod_from *from,
				 const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_dev_seg_create *m = msg;
	uint32_t id = sio_from_le32(m->segment_id), memtype = sio_from_le32(m->memtype);
	struct sio_prep_dev_seg rep;
	struct smartiod_dev_seg *s;
	struct smartiod_loan *l;
	uint64_t private_to;
	int rc;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l || smartiod_dev_seg_check_type(memtype, reterr) < 0)
		return reterr->code;
	if (m->bytes == 0)
		return sio_fail(reterr, -EINVAL, "a segment has at least 1 byte");
	private_to = memtype == SCI_MEMTYPE_PRIVATE ? l->id : 0;
	s = smartiod_dev_seg_find(l->device, private_to, id);
	if (s && is_asked_again(s, l, m)) {
		answer_again(d, from, l, s, msg);
		return 0;
	}
	if (s)
		return sio_fail(reterr, -EEXIST, "device segment id %#" PRIx32 " of %s is taken",
				id, l->device->topo->name);
	if (smartiod_dev_seg_count(l) >= SMARTIOD_MAX_OBJECTS)
		return sio_fail_exhausted(reterr, -EMFILE, SIO_OUT_OF_DEVICE_SEGMENTS,
					  "this borrow has made %u device segments",
					  SMARTIOD_MAX_OBJECTS);
	s = calloc(1, sizeof(*s));
	if (!s)
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	s->private_to = private_to;
	s->creator = l->id;
	s->id = id;
	s->node = from->node;
	s->bytes = sio_from_le64(m->bytes);
	s->uid = sio_from_le64(m->uid);
	/* A smartiod that is started again knows nobody to ask for memory that is its own. */
	s->lasting = sio_from_le32(m->flags) & SIO_PEER_LASTING && !s->uid && !smartiod_is_real(d);
	s->next = l->device->lent->segs;
	l->device->lent->segs = s;
	if (s->uid) {
		fill_reply(l, s, &rep);
		smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
		return 0;
	}
	rc = place_here(d, from, msg, l, s, reterr);
	if (rc < 0) {
		l->device->lent->segs = s->next;
		free(s);
	}
	return rc;
}

/* ---- LOOKUP, END ---- */

int smartiod_lend_dev_seg_lookup(struct smartiod *d, const struct smartiod_from *from,
				 const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_dev_seg_lookup *m = msg;
	uint32_t id = sio_from_le32(m->segment_id), memtype = sio_from_le32(m->memtype);
	struct sio_prep_dev_seg rep;
	struct smartiod_dev_seg *s;
	struct smartiod_loan *l;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l || smartiod_dev_seg_check_type(memtype, reterr) < 0)
		return reterr->code;
	s = smartiod_dev_seg_find(l->device, memtype == SCI_MEMTYPE_PRIVATE ? l->id : 0, id);
	if (!s || (s->segment && !s->segment->ready))
		return sio_fail(reterr, -ENOENT, "%s has no %s device segment %#" PRIx32,
				l->device->topo->name,
				memtype == SCI_MEMTYPE_PRIVATE ? "private" : "shared", id);
	/* What its maker wrote down its successor believes: nobody else writes there, or reads. */
	if (s->lasting && s->creator != l->id && l->device->ledger.holder != l->id)
		return sio_fail(
			reterr, -EACCES,
			"device segment %#" PRIx32
			" of %s lasts for the owner of the device's registers; nobody else may "
			"connect to it",
			id, l->device->topo->name);
	if (!smartiod_dev_seg_is_for(s, l))
		return sio_fail(reterr, -EACCES,
				"device segment %#" PRIx32
				" of %s is kept for the program at node %" PRIu32
				" that lost its path to it and may go on over another one",
				id, l->device->topo->name, s->only_node);
	fill_reply(l, s, &rep);
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
	return 0;
}

int smartiod_lend_dev_seg_end(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_dev_seg_end *m = msg;
	struct smartiod_device *dev;
	struct smartiod_dev_seg *s;

	dev = smartiod_device_ours(d, sio_from_le32(m->fdid), reterr);
	if (!dev)
		return 0; /* gone, and its directory with it */
	for (s = dev->lent->segs; s; s = s->next)
		if (s->node == from->node && !s->segment && s->uid == sio_from_le64(m->uid)) {
			smartiod_dev_seg_drop(d, dev, s, false);
			return 0;
		}
	return 0;
}
