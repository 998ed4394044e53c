/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST: what there is of one kind, in ascending order of id. */
#include "emu/engine/engine.h"

/* What devices and engines reach, and how they are woken and interrupt. */
static void fill_device_side(struct sio_list_entry *e, const struct emu_object *o)
{
	switch (o->kind) {
	case SIO_KIND_DMAMAP: {
		const struct emu_dmamap *m = (const struct emu_dmamap *)o;

		e->cookie = m->target ? m->target->id : 0;
		e->address = m->iova;
		e->length = m->length;
		e->device = m->device->topo->fdid;
		break;
	}
	case SIO_KIND_DMA: {
		const struct emu_channel *c = (const struct emu_channel *)o;

		e->device = c->engine->adapter->index;
		e->length = c->mem.size;
		break;
	}
	case SIO_KIND_DMA_RANGE: {
		const struct emu_dma_range *g = (const struct emu_dma_range *)o;

		e->cookie = g->m.target->id;
		e->address = g->m.iova;
		e->length = g->m.length;
		break;
	}
	case SIO_KIND_WATCH: {
		const struct emu_watch *w = (const struct emu_watch *)o;

		e->cookie = w->target->id;
		e->address = w->kind;
		e->length = w->length;
		e->device = w->run->device->topo->fdid;
		e->node = w->run->device->host->topo->node;
		e->refs = w->fired;
		break;
	}
	case SIO_KIND_VECTOR: {
		const struct emu_vector *v = (const struct emu_vector *)o;

		e->cookie = v->target ? v->target->id : 0;
		e->address = v->address;
		e->length = v->number;
		e->device = v->device->topo->fdid;
		break;
	}
	default:
		break;
	}
}

static void fill_target(struct sio_list_entry *e, const struct emu_object *o)
{
	const struct emu_room *r = o->host->room;

	switch (o->kind) {
	case SIO_KIND_GRANT: {
		const struct emu_grant *g = (const struct emu_grant *)o;

		e->cookie = g->source ? g->source->id : 0;
		e->address = g->bus_addr;
		e->length = g->length;
		e->node = r->host[g->peer_host].topo->node;
		break;
	}
	case SIO_KIND_MAP: {
		const struct emu_map *m = (const struct emu_map *)o;

		e->address = o->host->adapter[m->adapter].topo->window_base + m->window_offset;
		e->length = m->length;
		e->node = r->host[m->peer_host].topo->node;
		break;
	}
	default:
		fill_device_side(e, o);
		break;
	}
}

static void fill(struct sio_list_entry *e, const struct emu_object *o)
{
	memset(e, 0, sizeof(*e));
	e->id = o->id;
	e->owner = o->owner->o.id; /* of an owner: its parent */
	e->kind = o->kind;
	e->state = o->state;
	e->refs = o->refs;
	switch (o->kind) {
	case SIO_KIND_OWNER:
		e->cookie = ((const struct emu_owner *)o)->user_cookie;
		break;
	case SIO_KIND_MEM:
		e->address = ((const struct emu_ram *)o)->address;
		e->length = ((const struct emu_ram *)o)->mem.size;
		break;
	case SIO_KIND_REQUESTER: {
		const struct emu_requester *q = (const struct emu_requester *)o;

		e->device = q->device ? q->device->topo->fdid : 0;
		break;
	}
	case SIO_KIND_DEVICE:
		e->device = ((const struct emu_opened *)o)->device->topo->fdid;
		break;
	case SIO_KIND_BAR:
		e->device = ((const struct emu_bar *)o)->device->topo->fdid;
		e->address = emu_source_physical(o, 0);
		e->length = ((const struct emu_bar *)o)->length;
		e->cookie = ((const struct emu_bar *)o)->access;
		break;
	case SIO_KIND_IRQ:
		e->address = ((const struct emu_irq *)o)->address;
		break;
	default:
		fill_target(e, o);
	}
}

/* Keep the lowest SIO_LIST_MAX ids, in order. The table is nearly in order, so this is short. */
static void keep_lowest(const struct emu_object **best, unsigned *n, uint32_t *more,
			const struct emu_object *o)
{
	unsigned at = *n;

	while (at > 0 && best[at - 1]->id > o->id)
		at--;
	if (*n == SIO_LIST_MAX) {
		*more = 1;
		if (at == SIO_LIST_MAX)
			return;
	} else {
		(*n)++;
	}
	memmove(&best[at + 1], &best[at], (*n - 1 - at) * sizeof(*best));
	best[at] = o;
}

int emu_op_list(struct emu_request *rq, const void *msg)
{
	const struct emu_object *best[SIO_LIST_MAX];
	const struct sio_req_list *m = msg;
	struct emu_object *o, *tmp;
	struct sio_evt_list evt;
	unsigned n = 0;

	if ((m->kind < SIO_KIND_OWNER || m->kind > SIO_KIND_IRQ) &&
	    (m->kind < SIO_KIND_WATCH || m->kind > EMU_LAST_KIND))
		return sio_fail(&rq->err, -EINVAL, "LIST: kind %u, %d to %d and %d to %d are right",
				m->kind, SIO_KIND_OWNER, SIO_KIND_IRQ, SIO_KIND_WATCH,
				EMU_LAST_KIND);
	memset(&evt, 0, sizeof(evt));
	HASH_ITER (hh, rq->host->objects, o, tmp) {
		if (o->kind == m->kind && o->id > m->after)
			keep_lowest(best, &n, &evt.more, o);
	}
	evt.count = n;
	for (unsigned i = 0; i < n; i++)
		fill(&evt.entry[i], best[i]);
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}

void emu_room_each(struct emu_room *r, unsigned host,
		   void (*fn)(void *arg, const struct sio_list_entry *e), void *arg)
{
	struct emu_object *o, *tmp;
	struct sio_list_entry e;

	HASH_ITER (hh, r->host[host].objects, o, tmp) {
		fill(&e, o);
		fn(arg, &e);
	}
}
