/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts with several owners (SCI_FLAG_SHARED_INT). Senders connect to a hub; the daemon reads
 * the hub's count and adds it to the interrupt of each member. This is the only trigger that passes
 * through a daemon: a count that one program has read from a descriptor is not seen by the others.
 */
#include <errno.h>
#include <stdlib.h>

#include "smartiod/interrupt/dint.h"

struct hub_op {
	struct smartiod_op op;
	struct smartiod_dint *hub; /* pinned */
};

/* Its creation goes on, or fails: then it leaves, so begin again after each. */
static void resume_members(struct smartiod *d, struct smartiod_dint *hub)
{
	struct smartiod_dint *m;

	do {
		for (m = hub->members; m && !m->parked; m = m->next_member)
			;
		if (m)
			smartiod_op_resume(d, m->parked);
	} while (m);
}

static void hub_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_dint *hub = ((struct hub_op *)op)->hub;
	int rc = a->error;

	if (!rc) {
		hub->irq = ((const struct sio_evt_irq_new *)a->msg)->id;
		hub->trigger_fd = smartiod_take_fd(a, 1);
		hub->watched_fd = smartiod_take_fd(a, 0);
		if (!hub->removed)
			rc = d->ops->irq_watch(d->ctx, hub->watched_fd, hub->uid);
		if (hub->removed || rc < 0)
			smartiod_close_fd(d, &hub->watched_fd);
	}
	hub->failed = rc;
	hub->ready = rc == 0;
	resume_members(d, hub);
	smartiod_dint_unpin(d, hub);
	smartiod_op_free(d, op);
}

struct smartiod_dint *smartiod_hub_new(struct smartiod *d, uint32_t adapter, uint32_t number,
				       struct sio_err *reterr)
{
	/* The daemon's own: it must outlive each of its members. */
	struct sio_req_irq_new req = {.h = {.op = SIO_OP_IRQ_NEW, .owner = 0}};
	struct hub_op *o = smartiod_op_new(d, NULL, NULL, sizeof(*o), hub_step, reterr);

	if (!o)
		return NULL;
	o->hub = smartiod_dint_alloc(d, true, adapter, number, reterr);
	if (!o->hub) {
		smartiod_op_free(d, &o->op);
		return NULL;
	}
	o->hub->is_hub = true;
	smartiod_dint_publish(d, o->hub);
	o->hub->pins++;
	smartiod_port_ask(d, &o->op, &req, sizeof(req));
	return o->hub;
}

struct smartiod_dint *smartiod_hub_again(struct smartiod *d, uint32_t adapter, uint32_t number,
					 uint64_t irq, int watched_fd, int trigger_fd,
					 struct sio_err *reterr)
{
	struct smartiod_dint *hub = smartiod_dint_alloc(d, true, adapter, number, reterr);
	int rc;

	if (!hub)
		return NULL;
	hub->is_hub = true;
	hub->ready = true;
	rc = d->ops->irq_watch(d->ctx, watched_fd, hub->uid);
	if (rc < 0) {
		smartiod_dint_end(d, hub, true); /* its interrupt is not its own yet */
		sio_fail(reterr, rc, "interrupt %u cannot be shared", number);
		return NULL;
	}
	hub->irq = irq;
	hub->trigger_fd = trigger_fd;
	hub->watched_fd = watched_fd;
	smartiod_dint_publish(d, hub);
	return hub;
}

void smartiod_hub_join(struct smartiod_dint *hub, struct smartiod_dint *member)
{
	member->hub = hub;
	member->next_member = hub->members;
	hub->members = member;
}

void smartiod_hub_leave(struct smartiod *d, struct smartiod_dint *member)
{
	struct smartiod_dint *hub = member->hub, **p;

	if (!hub)
		return;
	for (p = &hub->members; *p != member; p = &(*p)->next_member)
		;
	*p = member->next_member;
	member->hub = NULL;
	if (member->parked)
		smartiod_op_resume(d, member->parked);
	if (!hub->members)
		smartiod_dint_end(d, hub, false);
}

void smartiod_hub_unwatch(struct smartiod *d, struct smartiod_dint *hub)
{
	if (hub->watched_fd < 0)
		return;
	d->ops->irq_unwatch(d->ctx, hub->uid);
	smartiod_close_fd(d, &hub->watched_fd);
}

void smartiod_irq(struct smartiod *d, uint64_t irq, uint64_t count)
{
	struct smartiod_dint *hub =
		SMARTIOD_OF(smartiod_tree_find(&d->dints, irq), struct smartiod_dint, by_uid);

	if (!hub || d->failed)
		return;
	for (struct smartiod_dint *m = hub->members; m; m = m->next_member)
		if (m->ready)
			d->ops->irq_signal(d->ctx, m->trigger_fd, count);
}
