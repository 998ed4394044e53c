/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory in a BAR of a device of this host as a member of a multicast group. What is written to the
 * group arrives at the adapter of this host and goes on to the device, whichever host has borrowed
 * the device. The member belongs to the port. It is recorded as a grant of the view (barview.c) is;
 * GROUP_LEAVE or the end of the borrow ends it.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/allow.h"
#include "smartiod/lender/barview.h"
#include "smartiod/lender/requests.h"

#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)

struct join_op {
	struct smartiod_lend lend;
	enum { JOIN_VIEW, JOIN_MEMBER, JOIN_PUBLISH } state;
	struct smartiod_bar_run run;
	uint32_t bar, group, node;
	uint64_t offset, bytes;
	struct smartiod_view *view; /* in use by us; NULL: not yet */
	uint64_t member;
};

/* What is there goes back, in reverse order. With the borrow the port has all of it back. */
static void fail(struct smartiod *d, struct join_op *j, int error, const char *text)
{
	struct smartiod_loan *l = j->lend.loan;

	if (j->member && !smartiod_loan_ended(l))
		smartiod_port_free(d, j->member);
	if (j->view && !smartiod_loan_ended(l))
		smartiod_view_put(d, l, j->view);
	smartiod_lend_fail(d, &j->lend, error, "BAR %" PRIu32 " of %s in group %" PRIu32 ": %s",
			   j->bar, l->device->topo->name, j->group, text);
}

static void ask_member(struct smartiod *d, struct join_op *j)
{
	struct sio_req_mcast req = {
		.h = {.op = SIO_OP_MCAST, .owner = j->lend.loan->owner},
		.group = j->group,
		.what = SIO_MCAST_JOIN,
		.length = j->bytes,
		.source_kind = SIO_KIND_BAR,
		.source = j->view->id,
		.offset = j->offset - j->run.offset,
	};

	j->state = JOIN_MEMBER;
	smartiod_port_ask(d, &j->lend.op, &req, sizeof(req));
}

static void have_view(struct smartiod *d, struct join_op *j, const struct smartiod_answer *a)
{
	struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE,
					.id = ((const struct sio_evt_bar *)a->msg)->id};

	j->view = smartiod_view_new(j->lend.loan, j->bar, BOTH, &j->run, a);
	if (!j->view) {
		smartiod_port_send(d, &req, sizeof(req));
		fail(d, j, -ENOMEM, "the lender's daemon is out of memory: " SIO_MORE_MEMORY);
		return;
	}
	j->view->users++;
	if (j->node == d->node && j->view->fd < 0) /* whoever maps the same pages next wants it */
		fail(d, j, -EMFILE, smartiod_no_descriptor(d));
	else if (j->view->holds && j->lend.loan->device->ledger.holder != j->lend.loan->id)
		fail(d, j, -EACCES,
		     "its borrow has released the registers meanwhile: only who holds them joins "
		     "a group");
	else
		ask_member(d, j);
}

static void publish(struct smartiod *d, struct join_op *j)
{
	struct sio_req_mcast req = {
		.h = {.op = SIO_OP_MCAST, .owner = j->lend.loan->owner},
		.group = j->group,
		.what = SIO_MCAST_PUBLISH,
		.target = j->member,
	};

	j->state = JOIN_PUBLISH;
	smartiod_port_ask(d, &j->lend.op, &req, sizeof(req));
}

/* One of a group for each borrow: what is written to it is copied as often as there are members. */
static bool has_member(const struct smartiod_loan *l, uint32_t group)
{
	for (const struct smartiod_view_grant *g = l->grants; g; g = g->next)
		if (g->member && g->group == group)
			return true;
	return false;
}

static int record_view(const struct join_op *j)
{
	const struct smartiod_view_grant what = {
		.view = j->view->id,
		.grant = j->member,
		.node = j->node,
		.member = true,
		.group = j->group,
	};

	return smartiod_view_grant_add(j->lend.loan, &what);
}

static void joined(struct smartiod *d, struct join_op *j)
{
	struct smartiod_loan *l = j->lend.loan;
	struct sio_prep_group_join rep = {
		.borrower = sio_to_le64(l->id),
		.view = sio_to_le64(j->view->id),
		.member = sio_to_le64(j->member),
		.fdid = sio_to_le32(l->device->fdid),
	};

	if (has_member(l, j->group)) /* by another request, meanwhile */
		fail(d, j, -EEXIST, "this borrow has a member of it");
	else if (smartiod_lend_orphan(&j->lend))
		fail(d, j, -ECONNRESET, "who asked is gone");
	else if (record_view(j) < 0)
		fail(d, j, -ENOMEM, "the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	else
		smartiod_lend_done(d, &j->lend, &rep, sizeof(rep), NULL, 0);
}

static void join_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct join_op *j = (struct join_op *)op;

	if (smartiod_loan_ended(j->lend.loan)) {
		fail(d, j, -ECONNRESET, "the borrow ended");
	} else if (a->error) {
		fail(d, j, a->error, a->text);
	} else if (j->state == JOIN_VIEW) {
		have_view(d, j, a);
	} else if (j->state == JOIN_MEMBER) {
		j->member = ((const struct sio_evt_mcast *)a->msg)->id;
		publish(d, j);
	} else {
		joined(d, j);
	}
}

/* What a class that smartiod does not know has in its BARs, the port can tell: memory or not. */
static bool may_be_memory(const struct smartiod_device *dev, enum smartiod_bar_use use)
{
	return use >= SMARTIOD_BAR_MEMORY ||
	       (use == SMARTIOD_BAR_REGISTERS && !smartiod_devclass_known(&dev->port));
}

/* All of it is memory of one kind, and its borrower may write there. */
static int find_run(struct join_op *j, struct sio_err *reterr)
{
	const struct smartiod_device *dev = j->lend.loan->device;
	struct smartiod_bar_run run[SMARTIOD_BAR_RUNS];
	unsigned n = smartiod_devclass_runs(&dev->port, j->bar, run);
	uint64_t end = j->offset + j->bytes;

	for (unsigned i = 0; i < n; i++) {
		if (run[i].offset > j->offset || run[i].offset + run[i].length < end ||
		    !may_be_memory(dev, run[i].use))
			continue;
		j->run = run[i];
		if (run[i].use != SMARTIOD_BAR_MEMORY && dev->ledger.holder != j->lend.loan->id)
			return sio_fail(reterr, -EACCES,
					"memory of %s is for who holds its registers, and borrow "
					"%" PRIu64 " does not",
					dev->topo->name, j->lend.loan->id);
		return 0;
	}
	return sio_fail(reterr, -EACCES,
			"BAR %" PRIu32 " of %s: not all of %#" PRIx64 " to %#" PRIx64
			" is memory of the device, which alone can be a member of a group",
			j->bar, dev->topo->name, j->offset, end);
}

static int check(struct smartiod *d, const struct smartiod_from *from,
		 const struct smartiod_loan *l, const struct sio_peer_group_join *m,
		 struct sio_err *reterr)
{
	uint64_t offset = sio_from_le64(m->offset), bytes = sio_from_le64(m->bytes), end;
	uint32_t bar = sio_from_le32(m->bar), group = sio_from_le32(m->group);
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, group);
	const uint64_t mask = SIO_PAGE_SIZE - 1;

	if (!(d->served & 1ULL << SIO_OP_MCAST))
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s has no multicast groups: hosts have them by smartio.ko, where "
				"a bridge has them",
				d->host->name);
	if (group >= SMARTIOD_GROUPS)
		return sio_fail(reterr, -EINVAL, "group %" PRIu32 "; 0 to %u are right", group,
				SMARTIOD_GROUPS - 1);
	if (bar >= SIO_DEVICE_BARS || !l->device->port.bar_size[bar])
		return sio_fail(reterr, -EINVAL, "%s has no BAR %" PRIu32, l->device->topo->name,
				bar);
	if ((offset | bytes) & mask || !bytes)
		return sio_fail(reterr, -EINVAL, "%s: a member is whole pages",
				l->device->topo->name);
	if (__builtin_add_overflow(offset, bytes, &end) || end > l->device->port.bar_size[bar])
		return sio_fail(reterr, -ERANGE,
				"%" PRIu64 " bytes at %#" PRIx64 " of a BAR of %#" PRIx64, bytes,
				offset, (uint64_t)l->device->port.bar_size[bar]);
	if (has_member(l, group))
		return sio_fail(reterr, -EEXIST,
				"borrow %" PRIu64 " of %s has a member of group %" PRIu32, l->id,
				l->device->topo->name, group);
	return from->node == d->node ? 0 : smartiod_allow_node(d, &thing, from->node, reterr);
}

int smartiod_lend_group_join(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr)
{
	const struct sio_peer_group_join *m = msg;
	struct sio_req_bar req = {.h.op = SIO_OP_BAR, .access = BOTH};
	struct smartiod_loan *l;
	struct join_op *j;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l || check(d, from, l, m, reterr) < 0)
		return reterr->code;
	j = smartiod_lend_new(d, from, msg, sizeof(*j), l, join_step, reterr);
	if (!j)
		return reterr->code;
	j->bar = sio_from_le32(m->bar);
	j->group = sio_from_le32(m->group);
	j->node = from->node;
	j->offset = sio_from_le64(m->offset);
	j->bytes = sio_from_le64(m->bytes);
	if (find_run(j, reterr) < 0) {
		smartiod_op_free(d, &j->lend.op);
		smartiod_loan_unpin(d, l);
		return reterr->code;
	}
	j->view = smartiod_view_find(l, j->bar, BOTH, j->run.offset, j->run.length);
	if (j->view) {
		j->view->users++;
		ask_member(d, j);
		return 0;
	}
	req.h.owner = l->owner;
	req.device = l->device->port.id;
	req.bar = j->bar;
	req.offset = j->run.offset;
	req.length = j->run.length;
	smartiod_port_ask(d, &j->lend.op, &req, sizeof(req));
	return 0;
}

/* ---- of before we were started ---- */

int smartiod_member_again(struct smartiod *d, struct smartiod_loan *l, uint32_t bar,
			  const struct smartiod_view_grant *what, bool reset,
			  struct sio_err *reterr)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, what->group);
	struct smartiod_unclaimed *left =
		smartiod_unclaimed_get(d, SIO_KIND_MEM, l->owner, what->grant, reterr);
	struct smartiod_view *v = NULL;
	int rc;

	if (!left)
		return reterr->code;
	if (!smartiod_unclaimed_in_group(left, SIO_LIST_MEMBER, what->group) ||
	    left->cookie != what->view || has_member(l, what->group))
		return sio_fail(reterr, -EINVAL,
				"memory %" PRIu64 " is no member of group %" PRIu32
				" in view %" PRIu64 ", or is a second one of it",
				what->grant, what->group, what->view);
	if (l->node != d->node && smartiod_allow_node(d, &thing, l->node, reterr) < 0)
		return reterr->code;
	rc = smartiod_view_again(d, l, bar, what, reset, &v, reterr);
	if (rc == 0 && !v)
		rc = sio_fail(reterr, -ENOENT, "its pages are gone");
	if (rc == 0)
		smartiod_unclaimed_done(d, left);
	return rc;
}

/* ---- leave ---- */

struct leave_op {
	struct smartiod_lend lend;
	uint64_t view, member;
	uint32_t node;
};

/* In the tables until the port has released it: whoever gets an error asks once more. */
static void leave_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct leave_op *o = (struct leave_op *)op;
	struct smartiod_loan *l = o->lend.loan;
	struct smartiod_view_grant what;
	struct smartiod_view *v;

	/* With its owner's end it has gone just before. */
	if (a->error && a->error != -ENOENT && !smartiod_loan_ended(l)) {
		smartiod_lend_fail(d, &o->lend, a->error, "%s", a->text);
		return;
	}
	if (smartiod_view_grant_take(l, o->node, o->view, o->member, &what, &v) && v)
		smartiod_view_put(d, l, v);
	smartiod_lend_ok(d, &o->lend);
}

/* Grants of the same view are BAR_RELEASE's to end. */
static bool is_member(const struct smartiod_loan *l, const struct leave_op *o)
{
	const struct smartiod_view_grant *g = l->grants;

	while (g && (g->node != o->node || g->view != o->view || g->grant != o->member))
		g = g->next;
	return g && g->member;
}

int smartiod_lend_group_leave(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_group_leave *m = msg;
	struct sio_req_free req = {.h.op = SIO_OP_FREE, .id = sio_from_le64(m->member)};
	struct smartiod_loan *l;
	struct leave_op *o;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	o = smartiod_lend_new(d, from, msg, sizeof(*o), l, leave_step, reterr);
	if (!o)
		return reterr->code;
	o->node = from->node;
	o->view = sio_from_le64(m->view);
	o->member = req.id;
	if (!is_member(l, o)) {
		smartiod_lend_ok(d, &o->lend); /* asked once more: the answer was late */
		return 0;
	}
	req.h.owner = l->owner;
	smartiod_port_ask(d, &o->lend.op, &req, sizeof(req));
	return 0;
}
