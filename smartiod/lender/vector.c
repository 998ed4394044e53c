/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt vectors of devices, the lender's side (borrower/vector_ask.c: the borrower's). A
 * borrower asks that a vector triggers a plain interrupt that the borrower is connected to, of any
 * host. The device then is one more sender of that interrupt: the lender connects it, maps its
 * trigger for the device, and sets the vector. All of this is owned by the borrow's owner at the
 * port. When the borrow ends the port silences the vector at once, so nothing has to be waited for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

struct vector_op {
	struct smartiod_lend lend;
	struct smartiod_vector *v;
	struct smartiod_requester_user user;
	struct sio_wire_grant trigger;
};

/* An event that cannot come is an error of ours: it ends the daemon. */
static void enter(struct smartiod *d, struct smartiod_vector *v, enum smartiod_vector_event event)
{
	enum smartiod_vector_state before = v->state;

	if (!smartiod_vector_next(before, event, &v->state))
		smartiod_fatal(d, "%s, vector %" PRIu32 ": event %u in state %u",
			       v->device->topo->name, v->number, event, before);
	SIO_PROBE(smartiod, vector_state, v->link.id, before, v->state, event);
}

/* The port has it, or was asked for it. */
static bool is_set(const struct smartiod_vector *v)
{
	return v->state == SMARTIOD_VECTOR_SETTING || v->state == SMARTIOD_VECTOR_LIVE;
}

static struct smartiod_vector *find(const struct smartiod_device *dev, uint32_t number)
{
	struct smartiod_vector *v = dev->lent->vectors;

	while (v && v->number != number)
		v = v->next;
	return v;
}

static void fill_off(struct sio_req_vector *ret, const struct smartiod_device *dev, uint32_t number)
{
	*ret = (struct sio_req_vector){
		.h.op = SIO_OP_VECTOR, .device = dev->port.id, .vector = number};
}

/*
 * Give all back: first the device sends no more, then what it sent through goes. An ended borrow's
 * owner is closed, and the port did these two by itself.
 */
static void cut(struct smartiod *d, struct smartiod_vector *v)
{
	struct smartiod_vector **at = &v->device->lent->vectors;
	struct sio_req_vector off;

	fill_off(&off, v->device, v->number);
	if (is_set(v) && !smartiod_loan_ended(v->loan))
		smartiod_port_send(d, &off, sizeof(off));
	if (!smartiod_loan_ended(v->loan))
		smartiod_port_unmap(d, v->link.irq_map);
	if (v->window)
		smartiod_requester_put(d, &v->device->lent->requester[v->link.adapter]);
	enter(d, v, SMARTIOD_VECTOR_CUT);
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	smartiod_tree_remove(&d->dint_links, &v->link.by_id);
	if (v->link.ring_uid || v->link.trigger_grant)
		smartiod_dint_release(d, v->link.node, v->link.ring_uid, v->link.id);
	free(v);
}

void smartiod_vector_notify_gone(struct smartiod *d, const struct smartiod_loan *l, uint32_t number)
{
	struct sio_peer_resume_vector msg = {.h.type = sio_to_le32(SIO_PEER_VECTOR_GONE),
					     .borrower = sio_to_le64(l->id),
					     .fdid = sio_to_le32(l->device->fdid),
					     .vector = sio_to_le32(number)};

	smartiod_notify(d, l->node, &msg, sizeof(msg));
}

/* Its interrupt is gone. A borrower that has not named it yet is told when it does. */
static void vector_lost(struct smartiod *d, struct smartiod_dint_link *link)
{
	struct smartiod_vector *v = (struct smartiod_vector *)link;

	_Static_assert(offsetof(struct smartiod_vector, link) == 0,
		       "a link is freed as what it is");
	if (v->state != SMARTIOD_VECTOR_LIVE) /* the operation sees that it is lost */
		return;
	if (!v->adopted && !smartiod_loan_ended(v->loan))
		smartiod_vector_notify_gone(d, v->loan, v->number);
	cut(d, v);
}

static struct smartiod_vector *vector_new(struct smartiod *d, struct smartiod_loan *l,
					  uint32_t number, const struct sio_peer_vector *m)
{
	struct smartiod_vector *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->loan = l;
	v->device = l->device;
	v->number = number;
	v->link.of_device = vector_lost;
	v->link.plain = true;
	v->link.node = sio_from_le32(m->node);
	v->link.number = sio_from_le32(m->number);
	v->link.pid = l->pid;
	v->link.id = smartiod_uid(d);
	smartiod_tree_add(&d->dint_links, &v->link.by_id, v->link.id);
	v->next = l->device->lent->vectors;
	l->device->lent->vectors = v;
	return v;
}

void smartiod_vectors_end(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_vector *v, *next;

	for (v = l->device->lent->vectors; v; v = next) {
		next = v->next;
		if (v->loan == l && v->state == SMARTIOD_VECTOR_LIVE)
			cut(d, v);
	}
}

bool smartiod_vector_resume(struct smartiod_loan *l, uint32_t number)
{
	struct smartiod_vector *v = find(l->device, number);

	if (!v || v->loan != l || v->state != SMARTIOD_VECTOR_LIVE)
		return false;
	v->meeting = l->meeting;
	v->adopted = false;
	return true;
}

int smartiod_vector_adopt(struct smartiod *d, struct smartiod_loan *l, uint32_t number,
			  const struct sio_list_entry *e)
{
	struct sio_peer_vector m = {.node = sio_to_le32(e->node)};
	struct smartiod_vector *v = vector_new(d, l, number, &m);

	if (!v)
		return -ENOMEM;
	v->adopted = true;
	v->link.adapter = (uint32_t)(e->device >> 32);
	v->link.peer_adapter = (uint32_t)e->device;
	v->link.irq_map = e->id;
	v->link.there = e->cookie;
	v->link.there_grant = e->grant;
	enter(d, v, SMARTIOD_VECTOR_AGAIN);
	smartiod_dint_link_enter(d, &v->link, SMARTIOD_SENDER_MADE);
	return 0;
}

unsigned smartiod_vectors_admitted(struct smartiod_device *dev, uint32_t adapter)
{
	unsigned n = 0;

	for (struct smartiod_vector *v = dev->lent->vectors; v; v = v->next) {
		if (!v->adopted || v->link.adapter != adapter)
			continue;
		v->window = true;
		n++;
	}
	return n;
}

void smartiod_vectors_away(struct smartiod_loan *l)
{
	for (struct smartiod_vector *v = l->device->lent->vectors; v; v = v->next)
		if (v->loan == l && !is_set(v))
			v->number = SIO_VECTOR_ANY;
}

void smartiod_vectors_unnamed_end(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_vector *v, *next;

	for (v = l->device->lent->vectors; v; v = next) {
		next = v->next;
		if (v->loan == l && v->state == SMARTIOD_VECTOR_LIVE && v->meeting != l->meeting)
			cut(d, v);
	}
}

static void vector_fail(struct smartiod *d, struct vector_op *o, int error, const char *text)
{
	const char *name = o->v->device->topo->name;
	uint32_t number = o->v->number;

	cut(d, o->v);
	smartiod_lend_fail(d, &o->lend, error, "%s, vector %" PRIu32 ": %s", name, number, text);
}

/* @irq: the port's interrupt, or its map of a peer's. */
static void ask_set(struct smartiod *d, struct vector_op *o, uint64_t irq)
{
	struct sio_req_vector req = {
		.h = {.op = SIO_OP_VECTOR, .owner = o->v->loan->owner},
		.device = o->v->device->port.id,
		.irq = irq,
		.vector = o->v->number,
	};

	enter(d, o->v, SMARTIOD_VECTOR_SET);
	smartiod_port_ask(d, &o->lend.op, &req, sizeof(req));
}

static const char *unwanted(const struct vector_op *o)
{
	const struct smartiod_vector *v = o->v;

	if (smartiod_lend_orphan(&o->lend))
		return "the borrower's host asks again";
	if (smartiod_loan_ended(v->loan))
		return "the borrow ended";
	return v->link.state == SMARTIOD_SENDER_CONNECTING_LOST
		       ? "the interrupt, or the way to it, is gone"
		       : NULL;
}

static void have_requester(struct smartiod *d, struct smartiod_requester_user *user,
			   const struct smartiod_answer *a)
{
	struct vector_op *o = (struct vector_op *)((char *)user - offsetof(struct vector_op, user));
	const char *why = unwanted(o);

	smartiod_op_note(&o->lend.op, a->error, a->reason);
	if (a->error || why)
		vector_fail(d, o, a->error ? a->error : -ECONNRESET, a->error ? a->text : why);
	else
		ask_set(d, o, o->v->link.irq_map);
}

static void vector_done(struct smartiod *d, struct vector_op *o)
{
	struct smartiod_vector *v = o->v;
	struct sio_prep_vector rep = {
		.borrower = sio_to_le64(v->loan->id),
		.fdid = sio_to_le32(v->device->fdid),
		.vector = sio_to_le32(v->number),
	};

	v->setting = NULL;
	enter(d, v, SMARTIOD_VECTOR_MADE);
	smartiod_dint_link_enter(d, &v->link, SMARTIOD_SENDER_MADE);
	smartiod_lend_done(d, &o->lend, &rep, sizeof(rep), NULL, 0);
}

/* Keep what the answer brought, so that one way gives all back. */
static void take_answer(struct vector_op *o, const struct smartiod_answer *a)
{
	const struct sio_prep_dint_lookup *found = a->msg;

	if (o->v->state == SMARTIOD_VECTOR_LOOKUP) {
		o->v->link.ring_uid = sio_from_le64(found->ring);
		o->v->link.trigger_grant = sio_from_le64(found->trigger.grant);
		o->trigger = found->trigger;
	} else if (o->v->state == SMARTIOD_VECTOR_MAPPING) {
		o->v->link.irq_map = ((const struct sio_evt_map *)a->msg)->id;
	}
}

static void vector_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct vector_op *o = (struct vector_op *)op;
	struct smartiod_vector *v = o->v;
	const char *why;

	if (v->state == SMARTIOD_VECTOR_ADMITTING) {
		smartiod_requester_answer(d, &v->device->lent->requester[v->link.adapter], a,
					  &o->user);
		return;
	}
	if (!a->error)
		take_answer(o, a);
	why = unwanted(o);
	if (a->error || why) {
		vector_fail(d, o, a->error ? smartiod_gone(a->error) : -ECONNRESET,
			    a->error ? a->text : why);
		return;
	}
	if (v->state == SMARTIOD_VECTOR_MAPPING && !smartiod_map_triggers(a)) {
		vector_fail(d, o, -EPROTO, "its host granted memory, not an interrupt");
		return;
	}
	if (v->state == SMARTIOD_VECTOR_LOOKUP) {
		enter(d, v, SMARTIOD_VECTOR_FOUND);
		smartiod_port_ask_map(d, op, v->loan->owner, v->link.node, v->link.adapter,
				      v->link.peer_adapter, &o->trigger);
	} else if (v->state == SMARTIOD_VECTOR_MAPPING) {
		enter(d, v, SMARTIOD_VECTOR_MAPPED);
		v->window = true;
		o->user.have = have_requester;
		smartiod_requester_get(d, v->device, v->link.adapter, op, &o->user);
	} else {
		vector_done(d, o);
	}
}

static int interrupt_here(struct smartiod *d, struct vector_op *o, uint32_t adapter,
			  struct sio_err *reterr)
{
	struct smartiod_dint_link *l = &o->v->link;
	struct smartiod_dint *dint = smartiod_dint_find(d, SIO_DINT_PLAIN, adapter, l->number);
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_INTERRUPTS, d->node, l->number);
	struct smartiod_ring *ring;

	if (!dint)
		return sio_fail(reterr, -ENOENT,
				"%s has no interrupt %" PRIu32 " on adapter %" PRIu32,
				d->host->name, l->number, adapter);
	if (dint->own && o->v->loan->node != d->node)
		return smartiod_dint_not_own(d, dint, reterr);
	/* That it is connected to it is the borrower's word. */
	if (smartiod_allow_node(d, &thing, o->v->loan->node, reterr) < 0)
		return reterr->code;
	ring = smartiod_ring_plain(d, dint, l->id, reterr);
	if (!ring)
		return reterr->code;
	l->adapter = adapter;
	l->ring_uid = ring->uid;
	ask_set(d, o, dint->irq);
	return 0;
}

static int interrupt_there(struct smartiod *d, struct vector_op *o, uint32_t adapter,
			   struct sio_err *reterr)
{
	struct smartiod_dint_link *l = &o->v->link;
	struct sio_peer_dint_lookup ask = {
		.h.type = sio_to_le32(SIO_PEER_DINT_LOOKUP),
		.link = sio_to_le64(l->id),
		.number = sio_to_le32(l->number),
		.flags = sio_to_le32(SIO_DINT_PLAIN | SIO_PEER_DINT_DEVICE),
		.borrower = sio_to_le32(o->v->loan->node),
	};
	struct sio_path path;
	int rc = smartiod_lend_path(d, o->lend.loan, l->node, NULL, adapter, &path, reterr);

	if (rc < 0)
		return rc;
	l->adapter = path.adapter;
	l->peer_adapter = path.peer_adapter;
	ask.adapter = sio_to_le32(path.peer_adapter);
	ask.peer_adapter = sio_to_le32(path.adapter);
	enter(d, o->v, SMARTIOD_VECTOR_ASK);
	rc = smartiod_peer_ask(d, &o->lend.op, l->node, &ask, sizeof(ask));
	if (rc < 0)
		return sio_fail(reterr, rc, "node %" PRIu32 " cannot be reached", l->node);
	return 0;
}

static bool taken(const struct smartiod_device *dev, uint32_t number)
{
	return find(dev, number) || smartiod_old_vector_has(dev, number);
}

/* The number asked for, if it is free, or a free one. */
static int choose(struct smartiod *d, const struct smartiod_loan *l, uint32_t wanted, uint32_t *ret,
		  struct sio_err *reterr)
{
	const struct smartiod_device *dev = l->device;
	uint32_t count = dev->port.msix_count, number = wanted;

	if (!(d->served & 1ULL << SIO_OP_VECTOR) || count == 0)
		return sio_fail(reterr, -EOPNOTSUPP, "%s has no interrupt vectors",
				dev->topo->name);
	if (wanted == SIO_VECTOR_ANY)
		for (number = 1; number < count && taken(dev, number);)
			number++;
	else if (wanted >= count)
		return sio_fail(reterr, -EINVAL,
				"%s has no vector %" PRIu32 "; it has %" PRIu32 " from 0 on",
				dev->topo->name, wanted, count);
	if (number >= count)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_VECTORS,
					  "all %" PRIu32 " vectors of %s are taken", count,
					  dev->topo->name);
	if (taken(dev, number))
		return sio_fail(reterr, -EBUSY, "vector %" PRIu32 " of %s is taken", number,
				dev->topo->name);
	*ret = number;
	return 0;
}

/*
 * The same as @m, which the port is setting for nobody any more: the connection to the borrower's
 * daemon broke meanwhile, and it asks again. If any number will do, it gets another one: what has
 * no number any more (smartiod_vectors_away()) ends.
 */
static struct smartiod_vector *asked_again(const struct smartiod_loan *l,
					   const struct sio_peer_vector *m)
{
	struct smartiod_vector *v = find(l->device, sio_from_le32(m->vector));

	if (!v || v->number == SIO_VECTOR_ANY || v->loan != l || !v->setting ||
	    !smartiod_lend_orphan(v->setting) || v->link.node != sio_from_le32(m->node) ||
	    v->link.number != sio_from_le32(m->number))
		return NULL;
	return v;
}

int smartiod_lend_vector(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_vector *m = msg;
	uint32_t number = 0, adapter = sio_from_le32(m->adapter);
	struct smartiod_vector *old;
	struct smartiod_loan *l;
	struct vector_op *o;
	int rc;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	old = asked_again(l, m);
	if (old) {
		smartiod_lend_take_over(old->setting, from, msg);
		return 0;
	}
	rc = choose(d, l, sio_from_le32(m->vector), &number, reterr);
	if (rc < 0)
		return rc;
	o = smartiod_lend_new(d, from, msg, sizeof(*o), l, vector_step, reterr);
	if (!o)
		return reterr->code;
	o->v = vector_new(d, l, number, m);
	if (o->v)
		o->v->setting = &o->lend;
	if (!o->v) {
		rc = sio_fail(reterr, -ENOMEM,
			      "the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	} else {
		rc = o->v->link.node == d->node ? interrupt_here(d, o, adapter, reterr)
						: interrupt_there(d, o, adapter, reterr);
		if (rc < 0)
			cut(d, o->v);
	}
	if (rc < 0) {
		l->pins--;
		smartiod_op_free(d, &o->lend.op);
	}
	return rc;
}

static struct smartiod_old_vector **find_old(struct smartiod_loan *l, uint32_t number)
{
	struct smartiod_old_vector **at = &l->device->lent->old_vectors;

	while (*at && ((*at)->loan != l || (*at)->number != number))
		at = &(*at)->next;
	return at;
}

int smartiod_vector_again(struct smartiod *d, struct smartiod_loan *l, uint32_t number,
			  struct sio_err *reterr)
{
	struct smartiod_old_vector **at = find_old(l, number), *old = *at;
	struct smartiod_dint *dint = old ? smartiod_dint_by_irq(d, old->irq) : NULL;
	struct sio_peer_vector m = {.node = sio_to_le32(d->node)};
	struct smartiod_ring *ring = NULL;
	struct smartiod_vector *v = find(l->device, number);

	if (v && v->loan == l && v->adopted) {
		v->adopted = false;
		return 0;
	}
	if (!dint || !dint->plain)
		return sio_fail(reterr, -ENOENT, "vector %" PRIu32 " triggers nothing", number);
	m.number = sio_to_le32(dint->number);
	v = vector_new(d, l, number, &m);
	if (v)
		ring = smartiod_ring_plain(d, dint, v->link.id, reterr);
	else
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	if (!ring) {
		if (v)
			cut(d, v);
		return reterr->code;
	}
	v->link.adapter = dint->adapter;
	v->link.ring_uid = ring->uid;
	enter(d, v, SMARTIOD_VECTOR_AGAIN);
	smartiod_dint_link_enter(d, &v->link, SMARTIOD_SENDER_MADE);
	*at = old->next;
	free(old);
	return 0;
}

void smartiod_vectors_drop(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_old_vector *v = l->device->lent->old_vectors;
	struct smartiod_vector *set, *next;
	struct sio_req_vector off;

	for (set = l->device->lent->vectors; set; set = next) {
		next = set->next;
		if (set->loan == l && set->adopted)
			cut(d, set);
	}
	for (; v; v = v->next) {
		if (v->loan != l)
			continue;
		fill_off(&off, l->device, v->number);
		smartiod_port_send(d, &off, sizeof(off));
	}
	smartiod_old_vectors_end(l);
}

static void off_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_lend *lend = (struct smartiod_lend *)op;

	if (a->error)
		smartiod_lend_fail(d, lend, a->error, "%s", a->text);
	else
		smartiod_lend_ok(d, lend);
}

int smartiod_lend_unvector(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			   struct sio_err *reterr)
{
	const struct sio_peer_vector *m = msg;
	uint32_t number = sio_from_le32(m->vector);
	struct smartiod_vector *v;
	struct smartiod_lend *lend;
	struct sio_req_vector off;
	struct smartiod_loan *l;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	v = find(l->device, number);
	/*
	 * One that is being connected is nobody's yet: a borrower that gave up on it has its
	 * undone.
	 */
	if (!v || v->loan != l || v->state != SMARTIOD_VECTOR_LIVE)
		return sio_fail(reterr, -EBADF, "%s: borrow %" PRIu64 " has no vector %" PRIu32,
				l->device->topo->name, l->id, number);
	lend = smartiod_lend_new(d, from, msg, sizeof(*lend), l, off_step, reterr);
	if (!lend)
		return reterr->code;
	cut(d, v);
	/* Once more, for its answer: then nothing is on its way any more. */
	fill_off(&off, l->device, number);
	smartiod_port_ask(d, &lend->op, &off, sizeof(off));
	return 0;
}
