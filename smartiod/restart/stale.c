/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of unclaimed resources: what no program has claimed when the recovery is over is released
 * at the port. What a shadow consists of waits until its driver is unbound.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/restart/restore.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/restore.h"

static void end_at_port(struct smartiod *d, const struct smartiod_unclaimed *l)
{
	struct sio_req_bar_close bar = {.h.op = SIO_OP_BAR_CLOSE, .id = l->by_id.key};
	struct sio_req_irq_free irq = {.h.op = SIO_OP_IRQ_FREE, .id = l->by_id.key};
	struct sio_req_dma_free dma = {.h.op = SIO_OP_DMA_FREE, .id = l->by_id.key};

	switch (l->kind) {
	case SIO_KIND_MEM:
		if (!smartiod_grants_take(d, l->by_id.key))
			smartiod_port_free(d, l->by_id.key);
		return;
	case SIO_KIND_BAR:
		smartiod_grants_cut(d, l->by_id.key);
		smartiod_dma_view_ends(d, l->owner, l->by_id.key);
		smartiod_port_send(d, &bar, sizeof(bar));
		return;
	case SIO_KIND_MAP:
		smartiod_window_unclaimed(d, l);
		return;
	case SIO_KIND_IRQ:
		smartiod_irq_ends(d, l->by_id.key);
		smartiod_port_send(d, &irq, sizeof(irq));
		return;
	case SIO_KIND_DMA:
		smartiod_port_send(d, &dma, sizeof(dma));
		return;
	case SIO_KIND_DMA_RANGE: /* which may have ended with its channel, or its window */
		smartiod_port_detach(d, 0, l->by_id.key);
		return;
	}
}

static bool is_mapped(struct smartiod *d, uint64_t mem)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		key = n->key;
		if (SMARTIOD_OF(n, struct smartiod_dma, by_id)->target == mem)
			return true;
	}
	return false;
}

/*
 * Nobody claimed this memory, and devices reach it: it ends when none does any more, as its owner's
 * end is far, or there is no owner. Takes @l. false: none does, or no memory for that.
 */
static bool end_mapped(struct smartiod *d, struct smartiod_unclaimed *l)
{
	struct smartiod_segment *seg;
	struct sio_err err;

	if (!is_mapped(d, l->by_id.key) ||
	    smartiod_segment_new(d, NULL, l->owner, false, 0, l->length, &seg, &err) < 0)
		return false;
	seg->memory = SIO_MEMORY_UNKNOWN;
	smartiod_segment_take_unclaimed(d, seg, l);
	smartiod_segment_end(d, seg, SCI_CB_LOST, false);
	return true;
}

/* A member of a group in a view of a BAR, which does not end before it. */
static bool is_overlay(const struct smartiod_unclaimed *l)
{
	return l->kind == SIO_KIND_MEM && (uint32_t)l->device & SIO_LIST_MEMBER && l->cookie;
}

static void drop_overlays(struct smartiod *d, uint64_t owner)
{
	struct smartiod_unclaimed *l, *next;

	for (l = smartiod_unclaimed_after(d, 0); l; l = next) {
		next = smartiod_unclaimed_after(d, l->by_id.key);
		if (l->owner != owner || !is_overlay(l))
			continue;
		smartiod_port_free(d, l->by_id.key);
		smartiod_unclaimed_done(d, l);
	}
}

static void drop(struct smartiod *d, uint64_t owner, bool give_back)
{
	struct smartiod_unclaimed *l, *next;

	if (give_back)
		drop_overlays(d, owner);
	for (l = smartiod_unclaimed_after(d, 0); l; l = next) {
		next = smartiod_unclaimed_after(d, l->by_id.key);
		if (l->owner != owner)
			continue;
		if (give_back && l->kind == SIO_KIND_MEM &&
		    (smartiod_segment_reserve(d, l) || end_mapped(d, l)))
			continue;
		if (give_back)
			end_at_port(d, l);
		smartiod_unclaimed_done(d, l);
	}
}

void smartiod_unclaimed_owner_gone(struct smartiod *d, uint64_t owner)
{
	drop(d, owner, false);
}

static bool any_shadow(struct smartiod *d)
{
	struct smartiod_unclaimed *l = smartiod_unclaimed_after(d, 0);

	while (l && l->kind != SIO_KIND_SHADOW)
		l = smartiod_unclaimed_after(d, l->by_id.key);
	return l;
}

/* @owner 0: everybody's, but of those whose shadow goes first. */
static void end_windows(struct smartiod *d, uint64_t owner)
{
	bool shadows = owner == 0 && any_shadow(d);
	struct smartiod_unclaimed *l, *next;

	for (l = smartiod_unclaimed_after(d, 0); l; l = next) {
		next = smartiod_unclaimed_after(d, l->by_id.key);
		if (l->kind != SIO_KIND_MAP || (owner && l->owner != owner) ||
		    (shadows && smartiod_unclaimed_shadow(d, l->owner)))
			continue;
		end_at_port(d, l);
		smartiod_unclaimed_done(d, l);
	}
}

/* ---- shadows: their drivers need the rest until they have gone ---- */

struct shadow_op {
	struct smartiod_op op;
	uint64_t owner;
};

static void shadow_gone(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	uint64_t owner = ((struct shadow_op *)op)->owner;
	struct smartiod_unclaimed *l = smartiod_unclaimed_shadow(d, owner);
	bool all = l && l->then_all;

	(void)a;
	smartiod_op_free(d, op);
	if (!l) /* its owner has ended */
		return;
	smartiod_unclaimed_done(d, l);
	if (all)
		smartiod_unclaimed_give_back(d, owner);
	else
		end_windows(d, owner);
	smartiod_shadow_unclaimed_gone(d, owner);
}

/* Nobody claimed the shadow of @owner. false: there is none, or none any more. */
static bool end_shadow(struct smartiod *d, uint64_t owner, bool then_all)
{
	struct smartiod_unclaimed *l = owner ? smartiod_unclaimed_shadow(d, owner) : NULL;
	struct sio_req_shadow_del req = {.h = {.op = SIO_OP_SHADOW_DEL, .flags = SIO_SHADOW_LOST}};
	struct shadow_op *o;
	struct sio_err err;

	if (!l)
		return false;
	l->then_all |= then_all;
	if (l->ending)
		return true;
	req.id = l->by_id.key;
	o = smartiod_op_new(d, NULL, NULL, sizeof(*o), shadow_gone, &err);
	if (!o) {
		smartiod_port_send(d, &req, sizeof(req));
		smartiod_unclaimed_done(d, l);
		return false;
	}
	o->owner = owner;
	l->ending = true;
	smartiod_port_ask(d, &o->op, &req, sizeof(req));
	return true;
}

void smartiod_unclaimed_give_back(struct smartiod *d, uint64_t owner)
{
	if (!end_shadow(d, owner, true))
		drop(d, owner, true);
}

void smartiod_unclaimed_windows_end(struct smartiod *d)
{
	struct smartiod_unclaimed *l, *next;

	for (l = smartiod_unclaimed_after(d, 0); l; l = next) {
		next = smartiod_unclaimed_after(d, l->by_id.key);
		if (l->kind == SIO_KIND_SHADOW)
			end_shadow(d, l->owner, false);
	}
	end_windows(d, 0);
}

void smartiod_unclaimed_resumed(struct smartiod *d, uint32_t node)
{
	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->node == node && l->state == SMARTIOD_LOAN_LIVE)
			smartiod_unclaimed_give_back(d, l->owner);
}
