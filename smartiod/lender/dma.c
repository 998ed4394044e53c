/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA mappings of devices of this host: what each refers to at its exporter and at the port, which
 * borrow owns it, and how it ends. dmalend.c has the requests.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/lend.h"

/*
 * Objects that only an operation knows, before they are in the loan's list or after: kept here so
 * that the daemon's end finds them.
 */
static void keep_loose(struct smartiod *d, struct smartiod_dma *dma)
{
	dma->next = d->loose;
	d->loose = dma;
}

static void take_loose(struct smartiod *d, struct smartiod_dma *dma)
{
	struct smartiod_dma **at = &d->loose;

	while (*at != dma)
		at = &(*at)->next;
	*at = dma->next;
}

/* What it holds is given back. */
static void forget(struct smartiod *d, struct smartiod_dma *dma)
{
	take_loose(d, dma);
	smartiod_holds_drop(dma);
	smartiod_charge_drop(&dma->charge);
	free(dma);
}

/* What the exporter and the port gave for @dma, in reverse order; not the DMA map itself. */
static void give_back(struct smartiod *d, struct smartiod_dma *dma)
{
	/* The port frees an ended owner's windows by itself. */
	if (dma->map && !smartiod_loan_ended(dma->loan))
		smartiod_port_unmap(d, dma->map);
	if (dma->group && !smartiod_loan_ended(dma->loan))
		smartiod_port_free(d, dma->group);
	if (dma->window)
		smartiod_requester_put(d, &dma->loan->device->lent->requester[dma->adapter]);
	smartiod_dma_bar_release(d, dma);
	smartiod_grant_release(d, dma->exporter, dma->grant);
	if (dma->segment)
		smartiod_segment_dma_put(d, dma->segment);
	dma->map = 0;
	dma->group = 0;
	dma->window = false;
	dma->grant = 0;
	dma->segment = NULL;
}

struct smartiod_dma *smartiod_dma_new(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_dma *dma = calloc(1, sizeof(*dma));

	if (!dma)
		return NULL;
	dma->loan = l;
	keep_loose(d, dma);
	return dma;
}

static void link_dma(struct smartiod *d, struct smartiod_dma *dma, uint64_t id)
{
	dma->next = dma->loan->dmas;
	dma->loan->dmas = dma;
	smartiod_tree_add(&d->dmas, &dma->by_id, id);
}

void smartiod_dma_made(struct smartiod *d, struct smartiod_dma *dma, uint64_t id)
{
	take_loose(d, dma);
	link_dma(d, dma, id);
	SIO_PROBE(smartiod, dma_map, dma->loan->device->fdid, dma->loan->id, dma->iova.addr,
		  dma->bytes);
}

void smartiod_dma_abandon(struct smartiod *d, struct smartiod_dma *dma)
{
	give_back(d, dma);
	forget(d, dma);
}

static void unlink_dma(struct smartiod *d, struct smartiod_dma *dma)
{
	struct smartiod_dma **at = &dma->loan->dmas;

	while (*at != dma)
		at = &(*at)->next;
	*at = dma->next;
	smartiod_tree_remove(&d->dmas, &dma->by_id);
}

void smartiod_dma_release(struct smartiod *d, struct smartiod_dma *dma)
{
	SIO_PROBE(smartiod, dma_unmap, dma->loan->device->fdid, dma->loan->id, dma->iova.addr,
		  dma->bytes);
	unlink_dma(d, dma);
	give_back(d, dma);
	if (!dma->unmapping) {
		smartiod_holds_drop(dma);
		smartiod_charge_drop(&dma->charge);
		free(dma);
		return;
	}
	dma->loan = NULL; /* the operation that waits for DMAUNMAP frees it */
	keep_loose(d, dma);
}

void smartiod_dma_cut(struct smartiod *d, struct smartiod_dma *dma)
{
	struct sio_req_dmaunmap req = {
		.h = {.op = SIO_OP_DMAUNMAP, .flags = SIO_DMAUNMAP_KEEP_ADDRESS},
		.id = dma->by_id.key,
	};

	dma->cut = dma->lost = true;
	if (!req.id) /* its operation sees to the rest */
		return;
	smartiod_port_send(d, &req, sizeof(req));
	if (dma->loan)
		give_back(d, dma);
}

int smartiod_dma_adopt(struct smartiod *d, struct smartiod_loan *l, const struct sio_list_entry *e)
{
	struct smartiod_dma *dma = calloc(1, sizeof(*dma));

	if (!dma)
		return -ENOMEM;
	dma->loan = l;
	dma->exporter = d->node; /* nothing is left to give back anywhere */
	dma->iova.addr = e->address;
	dma->bytes = e->length;
	dma->target = e->cookie;
	dma->chosen = e->node & SIO_LIST_CHOSEN;
	dma->outlives = e->node & SIO_LIST_HELD;
	dma->cut = dma->lost = !dma->target;
	dma->adopted = dma->before = true;
	smartiod_charge_node(d, l->node, &dma->charge, SIO_QUOTA_DMA, dma->bytes);
	link_dma(d, dma, e->id);
	return 0;
}

void smartiod_dma_unmapped(struct smartiod *d, struct smartiod_dma *dma, int error)
{
	dma->unmapping = false;
	if (!dma->loan) /* settled meanwhile: all but the object itself went */
		forget(d, dma);
	else if (!error)
		smartiod_dma_release(d, dma);
	/* Else it stays: SETTLE ends what is in quarantine. */
}

struct drop_op {
	struct smartiod_op op;
	struct smartiod_dma *dma;
};

static void drop_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	smartiod_dma_unmapped(d, ((struct drop_op *)op)->dma, a->error);
	smartiod_op_free(d, op);
}

void smartiod_dma_drop(struct smartiod *d, struct smartiod_dma *dma)
{
	struct sio_req_dmaunmap req = {.h = {.op = SIO_OP_DMAUNMAP, .owner = dma->loan->owner},
				       .id = dma->by_id.key};
	struct sio_err err;
	struct drop_op *o = smartiod_op_new(d, NULL, NULL, sizeof(*o), drop_step, &err);

	if (!o) /* no memory: it stays as long as its loan */
		return;
	o->dma = dma;
	dma->unmapping = true;
	smartiod_port_ask(d, &o->op, &req, sizeof(req));
}

void smartiod_dma_free_all(struct smartiod *d)
{
	while (d->loose)
		forget(d, d->loose);
}

/* ---- chosen addresses ---- */

const struct smartiod_dma *smartiod_dma_chosen(const struct smartiod *d,
					       const struct smartiod_loan *l)
{
	for (const struct smartiod_dma *dma = l->dmas; dma; dma = dma->next)
		if (dma->chosen)
			return dma;
	for (const struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		if (dma->loan == l && dma->chosen)
			return dma;
	return NULL;
}

/* ---- who else has what is mapped ---- */

/* Calls @fn for all that maps memory of @node, what an operation is still making included. */
static void each_dma(struct smartiod *d, uint32_t node, void (*fn)(struct smartiod_dma *dma))
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->exporter == node)
			fn(dma);
	}
	for (struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		if (dma->exporter == node)
			fn(dma);
}

static void set_lost(struct smartiod_dma *dma)
{
	dma->lost = true;
}

/* The grant is still ours to give back, as soon as its exporter can be talked to. */
void smartiod_dma_node_down(struct smartiod *d, uint32_t node)
{
	each_dma(d, node, set_lost);
}

static void forget_grant(struct smartiod_dma *dma)
{
	dma->grant = 0;
}

bool smartiod_dma_has_grant(struct smartiod *d, uint32_t node, uint64_t grant)
{
	for (struct smartiod_tree_node *n = smartiod_tree_after(&d->dmas, 0); n;
	     n = smartiod_tree_after(&d->dmas, n->key)) {
		const struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		if (dma->exporter == node && dma->grant == grant)
			return true;
	}
	for (const struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		if (dma->exporter == node && dma->grant == grant)
			return true;
	return false;
}

void smartiod_dma_new_start(struct smartiod *d, uint32_t node)
{
	each_dma(d, node, forget_grant);
}

static unsigned count_own(const struct smartiod_dma *dma, const struct smartiod *d,
			  const struct smartiod_segment *seg)
{
	return dma->segment == seg && dma->loan->node == d->node && !smartiod_loan_ended(dma->loan);
}

unsigned smartiod_dma_own_mappings(struct smartiod *d, const struct smartiod_segment *seg)
{
	struct smartiod_tree_node *n;
	unsigned found = 0;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		key = n->key;
		found += count_own(SMARTIOD_OF(n, struct smartiod_dma, by_id), d, seg);
	}
	for (const struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		found += count_own(dma, d, seg);
	return found;
}

void smartiod_dma_claim(struct smartiod *d, struct smartiod_segment *seg)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	if (!smartiod_is_real(d) || !seg->mem)
		return;
	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->target == seg->mem && !dma->segment) {
			dma->segment = seg;
			smartiod_segment_dma_get(seg);
		}
	}
}
