/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts with and without data, the receiver's side. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/interrupt/dint.h"

#define CREATE_FLAGS (SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO | SCI_FLAG_BROADCAST)
#define PLAIN_FLAGS                                                                                \
	(SIO_DINT_PLAIN | SIO_DINT_EVENTFD | SCI_FLAG_COUNTING_INT | SCI_FLAG_SHARED_INT)

/* Two spaces of numbers per adapter, with data and without. Keys are never 0. */
static uint64_t number_key(bool plain, uint32_t adapter, uint32_t number)
{
	return ((uint64_t)plain << 63) | ((uint64_t)(adapter + 1) << 32) | number;
}

/*
 * SIO_DINT_ALL_ADAPTERS: all that the host may ever have; else @adapter alone: from *@ret_first on,
 * before *@ret_end.
 */
static void adapters_of(uint32_t adapter, uint32_t *ret_first, uint32_t *ret_end)
{
	bool all = adapter == SIO_DINT_ALL_ADAPTERS;

	*ret_first = all ? 0 : adapter;
	*ret_end = all ? SIO_MAX_ADAPTERS : adapter + 1;
}

struct smartiod_dint *smartiod_dint_at(struct smartiod *d, bool plain, uint32_t adapter,
				       uint32_t number)
{
	struct smartiod_dint_number *n = NULL;
	uint32_t a, end;

	for (adapters_of(adapter, &a, &end); a < end && !n; a++)
		n = SMARTIOD_OF(smartiod_tree_find(&d->dint_numbers, number_key(plain, a, number)),
				struct smartiod_dint_number, node);
	return n ? n->dint : NULL;
}

const char *smartiod_dint_adapter(const struct smartiod_dint *dint, char *text, size_t size)
{
	if (dint->adapter == SIO_DINT_ALL_ADAPTERS)
		snprintf(text, size, "all adapters");
	else
		snprintf(text, size, "adapter %u", dint->adapter);
	return text;
}

/* The first number from @number on that is free at all of them. */
static uint32_t free_number(struct smartiod *d, bool plain, uint32_t adapter, uint32_t number)
{
	uint32_t first, a, end;

	do {
		first = number;
		for (adapters_of(adapter, &a, &end); a < end; a++)
			number = (uint32_t)smartiod_tree_gap(&d->dint_numbers,
							     number_key(plain, a, number));
	} while (number != first);
	return number;
}

struct smartiod_dint *smartiod_dint_find(struct smartiod *d, uint32_t flags, uint32_t adapter,
					 uint32_t number)
{
	struct smartiod_dint *dint;

	if (adapter >= d->host->n_adapters)
		return NULL;
	dint = smartiod_dint_at(d, flags & SIO_DINT_PLAIN, adapter, number);
	if (!dint || !dint->ready || (flags & SCI_FLAG_BROADCAST && !dint->broadcast))
		return NULL;
	return dint;
}

struct smartiod_dint *smartiod_dint_by_irq(struct smartiod *d, uint64_t irq)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dints, key))) {
		struct smartiod_dint *dint = SMARTIOD_OF(n, struct smartiod_dint, by_uid);

		key = n->key;
		if (dint->irq == irq && dint->published && dint->ready)
			return dint;
	}
	return NULL;
}

static void irq_free(struct smartiod *d, uint64_t irq)
{
	struct sio_req_irq_free req = {.h.op = SIO_OP_IRQ_FREE, .id = irq};

	if (!irq)
		return;
	smartiod_irq_ends(d, irq);
	smartiod_port_send(d, &req, sizeof(req));
}

static void dint_free(struct smartiod *d, struct smartiod_dint *dint)
{
	smartiod_hub_unwatch(d, dint);
	smartiod_close_fd(d, &dint->trigger_fd);
	smartiod_tree_remove(&d->dints, &dint->by_uid);
	free(dint);
}

void smartiod_dint_unpin(struct smartiod *d, struct smartiod_dint *dint)
{
	if (--dint->pins > 0 || !dint->removed)
		return;
	if (!dint->owner_gone)
		irq_free(d, dint->irq);
	dint_free(d, dint);
}

void smartiod_ring_notify_sender(struct smartiod *d, struct smartiod_ring *ring)
{
	struct sio_peer_dint_event msg = {.h.type = sio_to_le32(SIO_PEER_DINT_EVENT),
					  .link = sio_to_le64(ring->link)};

	if (!ring->link) /* of before, and its sender is not back */
		smartiod_ring_drop(d, ring);
	else
		smartiod_notify(d, ring->node, &msg, sizeof(msg));
}

void smartiod_dint_publish(struct smartiod *d, struct smartiod_dint *dint)
{
	uint32_t a, end;

	for (adapters_of(dint->adapter, &a, &end); a < end; a++) {
		dint->at[a].dint = dint;
		smartiod_tree_add(&d->dint_numbers, &dint->at[a].node,
				  number_key(dint->plain, a, dint->number));
	}
	dint->published = true;
}

static void unpublish(struct smartiod *d, struct smartiod_dint *dint)
{
	uint32_t a, end;

	if (!dint->published)
		return;
	for (adapters_of(dint->adapter, &a, &end); a < end; a++)
		smartiod_tree_remove(&d->dint_numbers, &dint->at[a].node);
	dint->published = false;
}

void smartiod_dint_end(struct smartiod *d, struct smartiod_dint *dint, bool owner_gone)
{
	struct smartiod_ring *ring, *next;

	if (dint->o.session && !dint->plain)
		dint->o.session->n_rings -= dint->n_rings;
	smartiod_object_remove(&dint->o);
	dint->removed = true;
	dint->owner_gone = owner_gone;
	dint->pins++;
	unpublish(d, dint);
	smartiod_hub_leave(d, dint);
	smartiod_hub_unwatch(d, dint);
	for (ring = dint->rings; ring; ring = next) {
		uint64_t uid = ring->uid;

		next = ring->next;
		if (ring->state == SMARTIOD_RING_PLAIN || ring->state == SMARTIOD_RING_USED ||
		    ring->state == SMARTIOD_RING_FREED)
			smartiod_ring_notify_sender(d, ring);
		if (smartiod_tree_find(&d->rings, uid)) /* a sender of this host is gone already */
			smartiod_ring_free(d, ring);
	}
	smartiod_dint_unpin(d, dint);
}

void smartiod_dint_free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	smartiod_dint_link_free_all(d);
	while ((n = smartiod_tree_after(&d->rings, 0))) {
		smartiod_tree_remove(&d->rings, n);
		free(SMARTIOD_OF(n, struct smartiod_ring, by_uid));
	}
	while ((n = smartiod_tree_after(&d->dints, 0)))
		dint_free(d, SMARTIOD_OF(n, struct smartiod_dint, by_uid));
}

/* ---- requests ---- */

struct create_op {
	struct smartiod_op op;	    /* fd[0]: for the library */
	struct smartiod_dint *dint; /* pinned */
};

static void create_reply(struct smartiod *d, struct smartiod_op *op, struct smartiod_dint *dint)
{
	uint64_t hub = dint->hub ? dint->hub->irq : 0;
	struct sio_rep_dint_create rep = {
		.handle = sio_to_le32(smartiod_handle(&dint->o)),
		.number = sio_to_le32(dint->number),
		.key = sio_to_le64(dint->irq),
		.extra = sio_to_le64(hub),
		.seal = sio_to_le64(smartiod_seal(
			op->session, SIO_MSG_DINT_CREATE, smartiod_handle(&dint->o), dint->irq,
			smartiod_dint_seal_number(dint->plain, dint->adapter, dint->number), hub)),
	};

	dint->ready = true;
	smartiod_op_reply(d, op, &rep, sizeof(rep), op->fd, 1);
}

/* Called for the port's answer, and again when the hub is ready, for those that had to wait. */
static void create_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_dint *dint = ((struct create_op *)op)->dint, *hub = dint->hub;
	bool full = false;

	dint->parked = NULL;
	if (a->msg) {
		dint->irq = ((const struct sio_evt_irq_new *)a->msg)->id;
		dint->trigger_fd = smartiod_take_fd(a, 1);
		op->fd[0] = smartiod_take_fd(a, 0);
		full = op->fd[0] < 0 || dint->trigger_fd < 0;
	}
	if (dint->removed) {
		smartiod_op_error(d, op, -ECANCELED, "the interrupt was removed meanwhile");
	} else if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
		smartiod_dint_end(d, dint, false);
	} else if (full) {
		smartiod_op_error(d, op, -EMFILE, "%s", smartiod_no_descriptor(d));
		smartiod_dint_end(d, dint, false);
	} else if (hub && hub->failed) {
		smartiod_op_error(d, op, hub->failed, "interrupt %u cannot be shared",
				  dint->number);
		smartiod_dint_end(d, dint, false);
	} else if (hub && !hub->ready) {
		dint->parked = op;
		smartiod_op_park(op);
		return;
	} else {
		create_reply(d, op, dint);
	}
	smartiod_dint_unpin(d, dint);
	smartiod_op_free(d, op);
}

int smartiod_dint_check_adapter(const struct smartiod *d, bool plain, uint32_t adapter,
				struct sio_err *reterr)
{
	if (adapter < d->host->n_adapters || (adapter == SIO_DINT_ALL_ADAPTERS && !plain))
		return 0;
	return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on", d->host->name,
			adapter, d->host->n_adapters);
}

static int check_create(struct smartiod *d, const struct smartiod_session *s,
			const struct sio_msg_dint_create *m, struct sio_err *reterr)
{
	uint32_t flags = sio_from_le32(m->flags);
	bool plain = flags & SIO_DINT_PLAIN;

	if (smartiod_dint_check_adapter(d, plain, sio_from_le32(m->adapter), reterr) < 0)
		return reterr->code;
	if (plain && flags & SCI_FLAG_BROADCAST)
		return sio_fail(reterr, -EOPNOTSUPP, "SCI_FLAG_BROADCAST is not supported for %ss",
				smartiod_dint_word(plain));
	if (!(flags & SIO_DINT_EVENTFD) != (s->request_fd < 0) ||
	    (flags & SIO_DINT_EVENTFD && flags & SCI_FLAG_SHARED_INT))
		return sio_fail(reterr, -EINVAL,
				"an eventfd belongs to interrupts that are made with one, and are "
				"not shared");
	if (flags & ~(CREATE_FLAGS | (plain ? PLAIN_FLAGS : 0)))
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to the creation of %ss",
				flags, smartiod_dint_word(plain));
	return 0;
}

/* The first free one from 1 on that this program may have; if it may have none, a free one. */
static uint32_t any_number(struct smartiod *d, const struct smartiod_session *s, bool plain,
			   uint32_t adapter)
{
	uint32_t number = free_number(d, plain, adapter, 1);
	struct sio_policy_thing thing = smartiod_thing(d, SIO_POLICY_INTERRUPTS, d->node, number);
	const struct sio_policy_rule *rule;

	/* Each rule refuses once at most: none is about what is behind its last number. */
	for (unsigned i = 0; i < d->policy->n_rules; i++) {
		if (sio_policy_program(d->policy, &thing, &s->who, NULL) == 0)
			break;
		rule = sio_policy_rule_of(d->policy, &thing);
		if (rule->last == UINT32_MAX)
			break;
		thing.number = free_number(d, plain, adapter, rule->last + 1);
	}
	return thing.number;
}

/* The number wanted, or one that nobody has. *ret_hub: set if owners share it already. */
static int choose_number(struct smartiod *d, const struct smartiod_session *s,
			 const struct sio_msg_dint_create *m, uint32_t *ret_number,
			 struct smartiod_dint **ret_hub, struct sio_err *reterr)
{
	uint32_t adapter = sio_from_le32(m->adapter), number = sio_from_le32(m->number);
	uint32_t flags = sio_from_le32(m->flags);
	bool plain = flags & SIO_DINT_PLAIN;
	struct smartiod_dint *there;
	char text[24];

	if (flags & SCI_FLAG_FIXED_INTNO) {
		there = smartiod_dint_at(d, plain, adapter, number);
		if (there && !(there->is_hub && flags & SCI_FLAG_SHARED_INT))
			return sio_fail(reterr, -EEXIST, "%s %u is taken on %s of %s%s",
					smartiod_dint_word(plain), number,
					smartiod_dint_adapter(there, text, sizeof(text)),
					d->host->name,
					there->is_hub ? " by those who share it" : "");
		*ret_hub = there;
	} else {
		number = any_number(d, s, plain, adapter);
	}
	*ret_number = number;
	return 0;
}

struct smartiod_dint *smartiod_dint_alloc(struct smartiod *d, bool plain, uint32_t adapter,
					  uint32_t number, struct sio_err *reterr)
{
	struct smartiod_dint *dint = calloc(1, sizeof(*dint));

	if (!dint) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	dint->plain = plain;
	dint->adapter = adapter;
	dint->number = number;
	dint->trigger_fd = -1;
	dint->watched_fd = -1;
	dint->uid = smartiod_uid(d);
	smartiod_tree_add(&d->dints, &dint->by_uid, dint->uid);
	return dint;
}

int smartiod_dint_not_own(const struct smartiod *d, const struct smartiod_dint *dint,
			  struct sio_err *reterr)
{
	return sio_fail(reterr, -EACCES,
			"interrupt %u of %s triggers a program's own eventfd: that program alone "
			"connects to it, and devices that it has send it",
			dint->number, d->host->name);
}

struct smartiod_dint *smartiod_dint_new(struct smartiod *d, struct smartiod_session *s,
					const struct sio_msg_dint_create *m, uint32_t number,
					struct sio_err *reterr)
{
	struct smartiod_dint *dint;

	dint = smartiod_dint_alloc(d, sio_from_le32(m->flags) & SIO_DINT_PLAIN,
				   sio_from_le32(m->adapter), number, reterr);
	if (!dint)
		return NULL;
	if (smartiod_object_add(s, &dint->o, SMARTIOD_DINT, reterr) < 0) {
		dint_free(d, dint);
		return NULL;
	}
	dint->broadcast = sio_from_le32(m->flags) & SCI_FLAG_BROADCAST;
	dint->own = sio_from_le32(m->flags) & SIO_DINT_EVENTFD;
	dint->owner = s->owner;
	dint->pid = s->pid;
	return dint;
}

int smartiod_dint_create(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_msg_dint_create *m = msg;
	struct sio_req_irq_new req = {.h = {.op = SIO_OP_IRQ_NEW, .owner = s->owner}};
	bool shared = sio_from_le32(m->flags) & SCI_FLAG_SHARED_INT;
	struct smartiod_dint *hub = NULL;
	struct sio_policy_thing thing;
	struct create_op *c;
	uint32_t number = 0;
	int rc = check_create(d, s, m, reterr);

	if (rc == 0)
		rc = choose_number(d, s, m, &number, &hub, reterr);
	if (rc == 0) {
		thing = smartiod_thing(d, SIO_POLICY_INTERRUPTS, d->node, number);
		rc = smartiod_allow_program(d, s, &thing, reterr);
	}
	if (rc < 0)
		return rc;
	c = smartiod_op_new(d, s, msg, sizeof(*c), create_step, reterr);
	if (!c)
		return reterr->code;
	c->dint = smartiod_dint_new(d, s, m, number, reterr);
	if (c->dint && shared && !hub) {
		hub = smartiod_hub_new(d, sio_from_le32(m->adapter), number, reterr);
		if (!hub) {
			smartiod_object_remove(&c->dint->o);
			dint_free(d, c->dint);
			c->dint = NULL;
		}
	}
	if (!c->dint) {
		smartiod_op_free(d, &c->op);
		return reterr->code;
	}
	if (shared)
		smartiod_hub_join(hub, c->dint);
	else
		smartiod_dint_publish(d, c->dint);
	c->dint->pins++;
	if (s->request_fd < 0) {
		smartiod_port_ask(d, &c->op, &req, sizeof(req));
		return 0;
	}
	req.h.flags = SIO_IRQ_EVENTFD;
	smartiod_port_ask_fd(d, &c->op, &req, sizeof(req), s->request_fd);
	return 0;
}

/* Connections hold interrupts whose number no other has. */
static unsigned holding(const struct smartiod_dint *dint)
{
	if (!dint->hub)
		return dint->n_rings;
	return dint->hub->members->next_member ? 0 : dint->hub->n_rings;
}

int smartiod_dint_remove(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct smartiod_dint *dint;

	dint = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_DINT, reterr);
	if (!dint)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "the removal of %ss takes no flags",
				smartiod_dint_word(dint->plain));
	if (dint->plain && holding(dint))
		return sio_fail(reterr, -EBUSY, "interrupt %u has %u connections", dint->number,
				holding(dint));
	smartiod_dint_end(d, dint, false);
	smartiod_reply_ok(d, s, msg);
	return 0;
}
