/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's tables, list by list: the one place of the simulator that looks inside smartiod. */
#include "edge/daemon_state.h"
#include "edge/edge.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/lender/lend.h"
#include "smartiod/dma/queue.h"
#include "smartiod/restart/restore.h"

#define EACH(node, tree)                                                                           \
	for (struct smartiod_tree_node *node = smartiod_tree_after(&(tree), 0); node;              \
	     node = smartiod_tree_after(&(tree), node->key))

/* One that waits for something other than the port or a peer has all that it got in the tables. */
bool tables_quiet(unsigned host)
{
	const struct smartiod *d = sim_host[host].daemon;

	if (!d || !d->ready)
		return false;
	EACH(n, d->ops_all)
	{
		const struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		if (op->wait != SMARTIOD_PARKED && op->wait != SMARTIOD_DOZING)
			return false;
	}
	return true;
}

/* Does an operation wait @slack or more beyond its deadline? Then the daemon has forgotten it. */
bool tables_late(unsigned host, uint64_t slack, uint32_t *ret_type)
{
	const struct smartiod *d = sim_host[host].daemon;

	if (!d || !d->ready)
		return false;
	EACH(n, d->ops_all)
	{
		const struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		*ret_type = op->type;
		if ((op->wait == SMARTIOD_WAIT_PEER || op->wait == SMARTIOD_DOZING) &&
		    op->deadline < UINT64_MAX - slack &&
		    sim_from_clock(host, op->deadline) + slack < sim_now())
			return true;
	}
	return false;
}

uint32_t tables_own_reset(unsigned host, uint64_t cookie)
{
	struct smartiod *d = sim_host[host].daemon;

	if (!d)
		return 0;
	EACH(n, d->devices)
	{
		const struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);
		const struct smartiod_reset *r = &dev->lent->reset;

		if (dev->state == SIO_DEV_RUNNING && r->word.lend.op.by_cookie.key == cookie)
			return (uint32_t)dev->by_fdid.key;
	}
	return 0;
}

const char *tables_unclaimed(unsigned host, uint64_t *ret_owner)
{
	struct smartiod *d = sim_host[host].daemon;

	EACH(n, d->sessions)
	{
		const struct smartiod_session *s =
			SMARTIOD_OF(n, struct smartiod_session, by_client);

		if (s->state != SMARTIOD_OPEN || s->ending || s->owner == 0)
			continue;
		*ret_owner = s->owner;
		EACH(k, d->recovery.unclaimed)
		if (SMARTIOD_OF(k, struct smartiod_unclaimed, by_id)->owner == s->owner)
			return "something at the port";
		EACH(k, d->loans)
		{
			const struct smartiod_loan *l = SMARTIOD_OF(k, struct smartiod_loan, by_id);

			if (l->parent == s->owner && l->state == SMARTIOD_LOAN_OLD)
				return "a borrow";
		}
	}
	return NULL;
}

/* Called for each thing that tables_read() finds. */
static tables_note *note;

static void sessions(const struct smartiod *d)
{
	EACH(n, d->sessions)
	{
		const struct smartiod_session *s =
			SMARTIOD_OF(n, struct smartiod_session, by_client);

		note(SIO_KIND_OWNER, s->owner, !s->ending);
	}
	for (const struct smartiod_expected *a = d->recovery.expected; a; a = a->next)
		note(SIO_KIND_OWNER, a->owner, false);
	EACH(n, d->recovery.unclaimed)
	{
		const struct smartiod_unclaimed *l =
			SMARTIOD_OF(n, struct smartiod_unclaimed, by_id);

		note(l->kind, l->by_id.key, false);
	}
}

static void memory(const struct smartiod *d)
{
	EACH(n, d->segments)
	{
		const struct smartiod_segment *s = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		note(SIO_KIND_MEM, s->mem, !s->owner_gone);
	}
	EACH(n, d->rings)
	{
		const struct smartiod_ring *r = SMARTIOD_OF(n, struct smartiod_ring, by_uid);

		note(SIO_KIND_MEM, r->mem, !r->dint->owner_gone);
	}
	EACH(n, d->grants)
	{
		const struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		bool address = g->orphaned && !g->segment && !g->ring && !g->mem;

		note(address ? RECORDS_ADDRESS : SIO_KIND_GRANT, n->key, true);
		note(SIO_KIND_MEM, g->mem, false);
	}
	EACH(n, d->dints)
	{
		const struct smartiod_dint *i = SMARTIOD_OF(n, struct smartiod_dint, by_uid);

		note(SIO_KIND_IRQ, i->irq, !i->owner_gone);
	}
}

static void windows(const struct smartiod *d)
{
	EACH(n, d->connections)
	{
		const struct smartiod_connection *c =
			SMARTIOD_OF(n, struct smartiod_connection, by_id);

		note(c->route == SMARTIOD_GROUP ? SIO_KIND_MEM : SIO_KIND_MAP, c->map,
		     c->state != SMARTIOD_CONNECTION_CLOSED);
	}
	EACH(n, d->dint_links)
	{
		const struct smartiod_dint_link *l =
			SMARTIOD_OF(n, struct smartiod_dint_link, by_id);
		bool closed = l->state == SMARTIOD_SENDER_CONNECTING_CLOSED ||
			      l->state == SMARTIOD_SENDER_CLOSED ||
			      l->state == SMARTIOD_SENDER_CLOSED_UNMAPPING;

		note(SIO_KIND_MAP, l->ring_map, !closed);
		note(SIO_KIND_MAP, l->irq_map, !closed);
	}
}

static void lent(const struct smartiod_loan *l)
{
	note(SIO_KIND_OWNER, l->owner, !smartiod_loan_ended(l));
	for (const struct smartiod_view *v = l->views; v; v = v->next)
		if (!v->closed)
			note(SIO_KIND_BAR, v->id, !smartiod_loan_ended(l));
	for (const struct smartiod_view_grant *g = l->grants; g; g = g->next)
		if (g->member)
			note(SIO_KIND_MEM, g->grant, !smartiod_loan_ended(l));
	for (const struct smartiod_dma *m = l->dmas; m; m = m->next) {
		/* A reset may have settled it that was said before the end was reported. */
		note(SIO_KIND_DMAMAP, m->by_id.key, !smartiod_loan_ended(l));
		note(SIO_KIND_MAP, m->map, !smartiod_loan_ended(l));
		note(SIO_KIND_MEM, m->group, !smartiod_loan_ended(l));
	}
}

static void devices(struct smartiod *d)
{
	EACH(n, d->loans)
	lent(SMARTIOD_OF(n, struct smartiod_loan, by_id));
	EACH(n, d->devices)
	{
		const struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		for (unsigned a = 0; a < SIO_MAX_ADAPTERS; a++)
			note(SIO_KIND_REQUESTER, dev->lent->requester[a].id, true);
		for (const struct smartiod_view *v = dev->lent->kept; v; v = v->next)
			note(SIO_KIND_BAR, v->id, true);
		for (const struct smartiod_vector *v = dev->lent->vectors; v; v = v->next)
			note(SIO_KIND_VECTOR, tables_vector(dev->port.id, v->number),
			     (v->state == SMARTIOD_VECTOR_SETTING ||
			      v->state == SMARTIOD_VECTOR_LIVE) &&
				     !smartiod_loan_ended(v->loan));
		for (const struct smartiod_old_vector *v = dev->lent->old_vectors; v; v = v->next)
			note(SIO_KIND_VECTOR, tables_vector(dev->port.id, v->number), false);
	}
}

static void borrowed(struct smartiod *d)
{
	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next)
		for (const struct smartiod_bar_map *m = b->maps; m; m = m->next)
			for (unsigned i = 0; i < m->n; i++)
				note(SIO_KIND_MAP, m->piece[i].map, !smartiod_borrow_ended(b));
}

void tables_read(unsigned host, tables_note *to)
{
	struct smartiod *d = sim_host[host].daemon;

	note = to;
	sessions(d);
	memory(d);
	windows(d);
	devices(d);
	borrowed(d);
	EACH(n, d->queues)
	{
		const struct smartiod_queue *q = SMARTIOD_OF(n, struct smartiod_queue, by_uid);

		note(SIO_KIND_DMA, q->channel, !q->closed);
	}
}
