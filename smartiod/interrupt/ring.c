/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of data interrupts, at the receiver: one ring for each sender. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/interrupt/dint.h"
#include "wire/ring.h"

#define MAX_RINGS 1024 /* of one interrupt, those that the library drains included */
#define RAM_PART 4u    /* of a program's interrupts, of a peer's: this part of the host's memory */

enum { RING_ALLOC, RING_GRANT_MEMORY, RING_GRANT_IRQ };

/* ---- life ---- */

/* An event that cannot come is an error of ours: it ends the daemon. */
static void enter(struct smartiod *d, struct smartiod_ring *ring, enum smartiod_ring_event event)
{
	enum smartiod_ring_state before = ring->state;

	if (!smartiod_ring_next(before, event, &ring->state))
		smartiod_fatal(d, "ring %" PRIu64 ": event %u in state %u", ring->uid, event,
			       before);
	SIO_PROBE(smartiod, ring_state, ring->uid, before, ring->state, event);
}

static void ring_check(struct smartiod *d, struct smartiod_ring *ring)
{
	struct smartiod_dint *dint = ring->dint;
	struct smartiod_ring **link = &dint->rings;

	if (ring->state != SMARTIOD_RING_GONE)
		return;
	if (!smartiod_grant_take(d, ring->orphaned, ring->mem) && !dint->owner_gone)
		smartiod_port_free(d, ring->mem);
	while (*link != ring)
		link = &(*link)->next;
	*link = ring->next;
	dint->n_rings--;
	if (dint->o.session && !dint->plain)
		dint->o.session->n_rings--;
	smartiod_tree_remove(&d->rings, &ring->by_uid);
	free(ring);
	smartiod_dint_unpin(d, dint);
}

static void notify_library(struct smartiod *d, const struct smartiod_ring *ring, uint32_t type,
			   const int *fd)
{
	struct sio_evm_dint_ring evm = {
		.handle = sio_to_le32(smartiod_handle(&ring->dint->o)),
		.ring = sio_to_le32(ring->number),
		.node = sio_to_le32(ring->node),
		.bytes = sio_to_le64(SIO_RING_TOTAL),
		.key = sio_to_le64(ring->mem),
	};

	smartiod_event(d, ring->dint->o.session, type, &evm, sizeof(evm), fd, fd ? 1 : 0);
}

void smartiod_ring_end(struct smartiod *d, struct smartiod_ring *ring)
{
	if (smartiod_ring_ended(ring))
		return;
	enter(d, ring, SMARTIOD_RING_END);
	smartiod_grant_end(d, ring->memory_grant);
	smartiod_grant_end(d, ring->irq_grant);
	if (ring->state == SMARTIOD_RING_DRAINED)
		notify_library(d, ring, SIO_EVM_DINT_RING_END, NULL);
	ring_check(d, ring);
}

void smartiod_ring_drop(struct smartiod *d, struct smartiod_ring *ring)
{
	uint64_t uid = ring->uid;

	smartiod_grant_orphan(d, ring->memory_grant); /* this may end it */
	ring = SMARTIOD_OF(smartiod_tree_find(&d->rings, uid), struct smartiod_ring, by_uid);
	if (ring)
		smartiod_ring_end(d, ring);
}

static bool ring_orphaned(struct smartiod *d, struct smartiod_ring *ring, uint64_t grant)
{
	if (ring->memory_grant != grant)
		return false;
	ring->orphaned = grant;
	ring->memory_grant = 0;
	smartiod_ring_end(d, ring);
	return true;
}

void smartiod_ring_free(struct smartiod *d, struct smartiod_ring *ring)
{
	enter(d, ring, SMARTIOD_RING_FREE);
	ring_check(d, ring);
}

static void grant_gone(struct smartiod *d, struct smartiod_ring *ring, uint64_t grant)
{
	if (ring->memory_grant == grant)
		ring->memory_grant = 0;
	if (ring->irq_grant == grant)
		ring->irq_grant = 0;
	if (ring->orphaned == grant)
		ring->orphaned = 0;
	smartiod_ring_end(d, ring);
}

static const struct smartiod_grant_ops grant_ops = {.gone = grant_gone, .orphaned = ring_orphaned};

uint64_t smartiod_ring_key(struct smartiod *d, uint64_t uid)
{
	const struct smartiod_ring *ring =
		SMARTIOD_OF(smartiod_tree_find(&d->rings, uid), struct smartiod_ring, by_uid);

	if (!ring)
		return 0;
	return ring->dint->plain ? ring->dint->irq : ring->mem;
}

struct smartiod_ring *smartiod_ring_of(struct smartiod *d, uint32_t node, uint64_t link,
				       uint64_t trigger)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->rings, key))) {
		struct smartiod_ring *ring = SMARTIOD_OF(n, struct smartiod_ring, by_uid);

		key = n->key;
		if (ring->node == node && !smartiod_ring_ended(ring) &&
		    ((link && ring->link == link) || (trigger && ring->irq_grant == trigger)))
			return ring;
	}
	return NULL;
}

struct smartiod_ring *smartiod_ring_called(struct smartiod *d, uint32_t node, uint64_t uid)
{
	struct smartiod_ring *ring =
		SMARTIOD_OF(smartiod_tree_find(&d->rings, uid), struct smartiod_ring, by_uid);
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	if (ring && ring->node == node && !ring->old_uid)
		return ring;
	while ((n = smartiod_tree_after(&d->rings, key))) {
		ring = SMARTIOD_OF(n, struct smartiod_ring, by_uid);
		key = n->key;
		if (ring->node == node && uid && ring->old_uid == uid)
			return ring;
	}
	return NULL;
}

static void ring_release(struct smartiod *d, uint32_t node, uint64_t uid, uint64_t link)
{
	struct smartiod_ring *ring =
		uid ? smartiod_ring_called(d, node, uid) : smartiod_ring_of(d, node, link, 0);

	if (ring)
		smartiod_ring_end(d, ring);
}

/* ---- making one ---- */

static void ask_alloc(struct smartiod *d, struct smartiod_ring_op *r)
{
	struct sio_req_alloc req = {
		.h = {.op = SIO_OP_ALLOC, .owner = r->ring->dint->owner},
		.size = SIO_RING_TOTAL,
		.highest = SIO_PORT_ANY,
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
	};

	r->state = RING_ALLOC;
	smartiod_port_ask(d, &r->op, &req, sizeof(req));
}

static void ask_grant(struct smartiod *d, struct smartiod_ring_op *r, uint32_t kind,
		      uint64_t source, uint64_t length)
{
	struct sio_req_grant req = {
		.h = {.op = SIO_OP_GRANT, .owner = r->ring->dint->owner},
		.source_kind = kind,
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
		.source = source,
		.length = length,
		.adapter = r->adapter,
		.peer_node = r->ring->node,
		.peer_adapter = r->peer_adapter,
	};

	r->state = kind == SIO_KIND_MEM ? RING_GRANT_MEMORY : RING_GRANT_IRQ;
	smartiod_port_ask(d, &r->op, &req, sizeof(req));
}

static void build_done(struct smartiod *d, struct smartiod_ring_op *r);

/*
 * Rings of senders that are gone stay until the receiver has read them, so one that is stopped
 * could have any number: they are bounded by a part of the host's memory, too.
 */
static int check_room(struct smartiod *d, const struct smartiod_dint *dint, struct sio_err *reterr)
{
	const struct smartiod_session *s = dint->plain ? NULL : dint->o.session;

	if (dint->n_rings >= MAX_RINGS)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_SENDERS,
					  "%s %u of %s has %u senders already",
					  smartiod_dint_word(dint->plain), dint->number,
					  d->host->name, dint->n_rings);
	if (s && (uint64_t)(s->n_rings + 1) * SIO_RING_TOTAL > d->host->ram_size / RAM_PART)
		return sio_fail_exhausted(
			reterr, -ENOSPC, SIO_OUT_OF_RINGS,
			"the receivers of program %u of %s have %u senders, those included "
			"that left something to read: 1/%u of the host's memory",
			s->pid, d->host->name, s->n_rings, RAM_PART);
	return 0;
}

static struct smartiod_ring *ring_new(struct smartiod *d, struct smartiod_dint *dint, uint32_t node,
				      uint64_t link, struct sio_err *reterr)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct smartiod_ring *ring = NULL;

	if (check_room(d, dint, reterr) < 0)
		return NULL;
	ring = calloc(1, sizeof(*ring));
	if (!ring) {
		sio_fail(reterr, -ENOMEM,
			 "the receiver's daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	ring->dint = dint;
	ring->node = node;
	ring->link = link;
	ring->number = ++dint->next_ring;
	if (p) /* one that is asked for at a meeting is none of before */
		ring->meeting = p->meeting;
	ring->uid = smartiod_uid(d);
	smartiod_tree_add(&d->rings, &ring->by_uid, ring->uid);
	ring->next = dint->rings;
	dint->rings = ring;
	dint->n_rings++;
	if (dint->o.session && !dint->plain)
		dint->o.session->n_rings++;
	dint->pins++;
	return ring;
}

struct smartiod_ring *smartiod_ring_again(struct smartiod *d, struct smartiod_dint *dint,
					  uint64_t mem, uint32_t number, bool ended,
					  struct sio_err *reterr)
{
	uint32_t last = dint->next_ring;
	struct smartiod_ring *ring = ring_new(d, dint, d->node, 0, reterr);
	const struct smartiod_grant *g;

	if (!ring)
		return NULL;
	dint->next_ring = number > last ? number : last;
	ring->mem = mem;
	ring->number = number;
	ring->state = ended ? SMARTIOD_RING_DRAINED : SMARTIOD_RING_USED;
	g = smartiod_grant_ring_again(d, 0, mem, ring, &grant_ops, ended);
	if (g) {
		ring->node = g->node;
		*(ended ? &ring->orphaned : &ring->memory_grant) = g->by_id.key;
	}
	return ring;
}

struct smartiod_ring *smartiod_ring_resume(struct smartiod *d, struct smartiod_dint *dint,
					   uint32_t node, const struct sio_peer_resume_ring *m,
					   struct smartiod_ring *ring)
{
	uint64_t trigger = sio_from_le64(m->trigger);
	struct sio_err err;

	if (!ring && dint->plain) {
		ring = ring_new(d, dint, node, 0, &err);
		if (ring)
			enter(d, ring, SMARTIOD_RING_BUILT_PLAIN);
	}
	if (!ring)
		return NULL;
	ring->link = sio_from_le64(m->link);
	ring->old_uid = sio_from_le64(m->ring);
	smartiod_grant_ring_again(d, trigger, dint->irq, ring, &grant_ops, false);
	ring->irq_grant = trigger;
	return ring;
}

struct smartiod_ring *smartiod_ring_plain(struct smartiod *d, struct smartiod_dint *dint,
					  uint64_t link, struct sio_err *reterr)
{
	struct smartiod_ring *ring = ring_new(d, dint, d->node, link, reterr);

	if (ring)
		enter(d, ring, SMARTIOD_RING_BUILT_PLAIN);
	return ring;
}

int smartiod_ring_start(struct smartiod *d, struct smartiod_ring_op *r, struct smartiod_dint *dint,
			uint32_t node, uint64_t link, struct sio_err *reterr)
{
	r->ring = ring_new(d, dint, node, link, reterr);
	if (!r->ring)
		return reterr->code;
	if (!dint->plain)
		ask_alloc(d, r);
	else if (!r->link)
		ask_grant(d, r, SIO_KIND_IRQ, dint->irq, SIO_MSI_BYTES);
	else
		build_done(d, r);
	return 0;
}

static void build_failed(struct smartiod *d, struct smartiod_ring_op *r, int error,
			 const char *text)
{
	struct smartiod_ring *ring = r->ring;

	smartiod_ring_end(d, ring); /* stays while it is being built */
	if (r->link) {
		smartiod_dint_link_local(d, r, error, text);
	} else {
		smartiod_op_error(d, &r->op, error, "%s", text);
		smartiod_op_free(d, &r->op);
	}
	enter(d, ring, SMARTIOD_RING_ABANDON);
	ring_check(d, ring);
}

static void build_done(struct smartiod *d, struct smartiod_ring_op *r)
{
	struct smartiod_ring *ring = r->ring;
	struct sio_prep_dint_lookup rep = {
		.link = sio_to_le64(ring->link),
		.ring = sio_to_le64(ring->uid),
		.memory = r->memory,
		.trigger = r->trigger,
	};

	enter(d, ring, ring->dint->plain ? SMARTIOD_RING_BUILT_PLAIN : SMARTIOD_RING_BUILT);
	if (ring->state == SMARTIOD_RING_USED)
		notify_library(d, ring, SIO_EVM_DINT_RING, &r->op.fd[0]);
	if (r->link) {
		smartiod_dint_link_local(d, r, 0, "");
		return;
	}
	smartiod_op_reply(d, &r->op, &rep, sizeof(rep), NULL, 0);
	smartiod_op_free(d, &r->op);
}

/* Why the ring is no longer wanted; NULL: it is. */
static const char *unwanted(struct smartiod *d, const struct smartiod_ring_op *r)
{
	if (r->ring->dint->removed)
		return "the data interrupt was removed meanwhile";
	if (smartiod_ring_ended(r->ring) || smartiod_op_orphan(&r->op))
		return "the sender is gone";
	if (!r->link && !smartiod_path_up(d, r->ring->node, r->adapter, r->peer_adapter))
		return "the link is down";
	return NULL;
}

/*
 * A host that does not release rings whose receivers are gone or when it is lost itself, could have
 * any number: those are no receiver's any more. Asked when the memory's grant is there, for many
 * may be asked for at once.
 */
static int check_host(struct smartiod *d, uint32_t node, struct sio_err *reterr)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (p && (uint64_t)(p->n_rings + 1) * SIO_RING_TOTAL > d->host->ram_size / RAM_PART)
		return sio_fail_exhausted(
			reterr, -ENOSPC, SIO_OUT_OF_RINGS,
			"node %u can write to %u rings of %s and has not released them: "
			"1/%u of the host's memory",
			node, p->n_rings, d->host->name, RAM_PART);
	return 0;
}

/* Record the grant that came; -errno: it is ungranted. */
static int take_grant(struct smartiod *d, struct smartiod_ring_op *r,
		      const struct sio_evt_grant *evt, uint64_t *ret_id, struct sio_err *reterr)
{
	const struct smartiod_grant what = {.node = r->ring->node,
					    .adapter = r->adapter,
					    .peer_adapter = r->peer_adapter,
					    .purpose = SIO_GRANT_CPU,
					    .ring = r->ring,
					    .ops = &grant_ops,
					    .ring_memory = r->state == RING_GRANT_MEMORY,
					    .irq = r->state == RING_GRANT_IRQ,
					    .bus_addr = evt->bus_addr};
	int rc = what.ring_memory ? check_host(d, what.node, reterr) : 0;

	if (rc == 0)
		rc = smartiod_grant_keep(d, evt->id, &what, reterr);
	if (rc < 0)
		smartiod_port_ungrant(d, evt->id);
	else
		*ret_id = evt->id;
	return rc;
}

/* Keep what the answer brought, so that one way gives all back. */
static int take_answer(struct smartiod *d, struct smartiod_ring_op *r,
		       const struct smartiod_answer *a, struct sio_err *reterr)
{
	switch (r->state) {
	case RING_ALLOC:
		r->ring->mem = ((const struct sio_evt_alloc *)a->msg)->id;
		r->op.fd[0] = smartiod_take_fd(a, 0);
		return 0;
	case RING_GRANT_MEMORY:
		smartiod_wire_grant(a->msg, &r->memory);
		if (!smartiod_ring_ended(r->ring))
			return take_grant(d, r, a->msg, &r->ring->memory_grant, reterr);
		break;
	default:
		smartiod_wire_grant(a->msg, &r->trigger);
		if (!smartiod_ring_ended(r->ring))
			return take_grant(d, r, a->msg, &r->ring->irq_grant, reterr);
		break;
	}
	smartiod_port_ungrant(d, ((const struct sio_evt_grant *)a->msg)->id);
	return sio_fail(reterr, -ECONNRESET, "the sender is gone");
}

void smartiod_ring_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_ring_op *r = (struct smartiod_ring_op *)op;
	struct sio_err err = {.text = ""};
	const char *why;
	int rc = smartiod_gone(a->error);

	if (rc == 0)
		rc = take_answer(d, r, a, &err);
	if (rc && !a->error)
		smartiod_op_note(op, rc, err.reason);
	why = unwanted(d, r);
	if (rc || why)
		build_failed(d, r, rc ? rc : -ENOENT, why ? why : a->error ? a->text : err.text);
	else if (r->state == RING_ALLOC && !r->link)
		ask_grant(d, r, SIO_KIND_MEM, r->ring->mem, SIO_RING_TOTAL);
	else if (r->state == RING_GRANT_MEMORY)
		ask_grant(d, r, SIO_KIND_IRQ, r->ring->dint->irq, SIO_MSI_BYTES);
	else
		build_done(d, r);
}

/* ---- requests ---- */

/*
 * May @node send @dint? A device of it that a program of this host borrows sends plain ones that
 * this program has chosen, which its lender connects to.
 */
int smartiod_dint_may_send(struct smartiod *d, uint32_t node, const struct smartiod_dint *dint,
			   struct sio_err *reterr)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_INTERRUPTS, d->node, dint->number);

	if (dint->plain && smartiod_dint_lets_devices(dint, node) && smartiod_borrows(d, node))
		return 0;
	return smartiod_allow_node(d, &thing, node, reterr);
}

static bool node_may_not(struct smartiod *d, const struct smartiod_forbid *f,
			 const struct smartiod_ring *r, struct sio_err *why)
{
	const struct smartiod_dint *dint = r->dint;
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_INTERRUPTS, d->node, dint->number);

	return !smartiod_ring_ended(r) &&
	       !(dint->plain && smartiod_dint_lets_devices(dint, r->node)) &&
	       smartiod_forbids_node(d, f->topology, &thing, r->node, why);
}

/* The sender's daemon gives the ring back; what was sent until then is still read. */
static void rings_forbidden(struct smartiod *d, const struct smartiod_forbid *f,
			    struct smartiod_dint *dint)
{
	struct smartiod_ring *r;
	struct sio_err why;

	dint->pins++;
	for (struct smartiod_ring *next = dint->rings; (r = next);) {
		next = r->next;
		if (!node_may_not(d, f, r, &why))
			continue;
		smartiod_report(d, f->enforce ? SIO_RELOAD_ENDS : SIO_RELOAD_STAYS,
				"connection: %s", why.text);
		if (!f->act)
			continue;
		if (r->state == SMARTIOD_RING_BUILDING) /* the sender's request fails */
			smartiod_ring_end(d, r);
		else
			smartiod_ring_notify_sender(d, r);
	}
	smartiod_dint_unpin(d, dint);
}

void smartiod_rings_forbidden(struct smartiod *d, const struct smartiod_forbid *f)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dints, key))) {
		key = n->key;
		rings_forbidden(d, f, SMARTIOD_OF(n, struct smartiod_dint, by_uid));
	}
}

/*
 * May @from connect as @m asks? That a program of this host lets a device send its interrupt says
 * nothing of the devices of that lender that others have: these need a right of the borrower, too.
 */
static int may_look_up(struct smartiod *d, const struct smartiod_from *from,
		       const struct sio_peer_dint_lookup *m, const struct smartiod_dint *dint,
		       struct sio_err *reterr)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_INTERRUPTS, d->node, dint->number);
	bool device = sio_from_le32(m->flags) & SIO_PEER_DINT_DEVICE;
	uint32_t borrower = sio_from_le32(m->borrower);
	bool ours = device && borrower == d->node;

	if (dint->own && !(ours && smartiod_dint_lets_devices(dint, from->node)))
		return smartiod_dint_not_own(d, dint, reterr);
	if (!device || ours)
		return smartiod_dint_may_send(d, from->node, dint, reterr);
	if (smartiod_allow_node(d, &thing, borrower, reterr) < 0)
		return reterr->code;
	return smartiod_allow_node(d, &thing, from->node, reterr);
}

int smartiod_peer_dint_lookup(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_dint_lookup *m = msg;
	uint32_t adapter = sio_from_le32(m->adapter), peer_adapter = sio_from_le32(m->peer_adapter);
	uint32_t flags = sio_from_le32(m->flags);
	bool plain = flags & SIO_DINT_PLAIN;
	struct smartiod_dint *dint;
	struct smartiod_ring_op *r;
	int rc;

	if (!smartiod_path_up(d, from->node, adapter, peer_adapter))
		return sio_fail(reterr, -ENETDOWN, "no link from adapter %u of %s to adapter %u",
				adapter, d->host->name, peer_adapter);
	dint = smartiod_dint_find(d, flags, adapter, sio_from_le32(m->number));
	if (!dint)
		return sio_fail(reterr, -ENOENT, "%s has no %s %u on adapter %u", d->host->name,
				smartiod_dint_word(plain), sio_from_le32(m->number), adapter);
	rc = may_look_up(d, from, m, dint, reterr);
	if (rc < 0)
		return rc;
	r = smartiod_op_new_peer(d, from->node, msg, sizeof(*r), smartiod_ring_step, reterr);
	if (!r)
		return reterr->code;
	r->adapter = adapter;
	r->peer_adapter = peer_adapter;
	rc = smartiod_ring_start(d, r, dint, from->node, sio_from_le64(m->link), reterr);
	if (rc < 0)
		smartiod_op_free(d, &r->op);
	return rc;
}

int smartiod_peer_dint_release(struct smartiod *d, const struct smartiod_from *from,
			       const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_dint_release *m = msg;

	(void)reterr;
	ring_release(d, from->node, sio_from_le64(m->ring), sio_from_le64(m->link));
	return 0;
}

int smartiod_dint_ring_free(struct smartiod *d, struct smartiod_session *s, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_msg_dint_ring_free *m = msg;
	struct smartiod_dint *dint;
	struct smartiod_ring *ring;

	dint = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_DINT, reterr);
	if (!dint)
		return reterr->code;
	ring = dint->rings;
	while (ring &&
	       (ring->number != sio_from_le32(m->ring) ||
		(ring->state != SMARTIOD_RING_USED && ring->state != SMARTIOD_RING_DRAINED)))
		ring = ring->next;
	if (!ring)
		return sio_fail(
			reterr, -EBADF,
			"data interrupt %u has no ring %u: one that DINT_RING named is right",
			dint->number, sio_from_le32(m->ring));
	if (ring->state == SMARTIOD_RING_DRAINED) {
		smartiod_ring_free(d, ring);
	} else {
		/*
		 * The receiver cuts a sender off; the memory goes when the sender has released it.
		 */
		enter(d, ring, SMARTIOD_RING_FREE);
		smartiod_ring_notify_sender(d, ring);
	}
	smartiod_reply_ok(d, s, msg);
	return 0;
}

void smartiod_rings_parting(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->rings, key))) {
		const struct smartiod_ring *r = SMARTIOD_OF(n, struct smartiod_ring, by_uid);

		key = n->key;
		if (r->node == node && r->dint && !smartiod_ring_ended(r))
			smartiod_report(d, SIO_RELOAD_ENDS,
					"connection of node %" PRIu32 ": interrupt %" PRIu32, node,
					r->dint->number);
	}
}
