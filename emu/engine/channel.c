/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels of DMA engines and the ranges that they may reach: creation and end. A range ends with
 * its target and does not delay the target's end: the engines stand still while the room changes
 * anything, so a piece that was begun has ended, and the next one finds an empty slot.
 */
#include <stdio.h>

#include "emu/engine/engine.h"
#include "smartio/io.h"

#define FIRST_IOVA 0x20000000ull
#define LAST_IOVA ((1ull << 48) - 1)

static int new_domain(struct emu_engine *e, struct sio_err *reterr)
{
	struct emu_device *d = &e->d;
	uint64_t first = FIRST_IOVA + d->host->topo->node * 0x100000ull;
	int rc;

	sio_iommu_init(&d->iommu, e->topo.name);
	rc = sio_range_init(&d->iova, e->topo.name, first, LAST_IOVA - first + 1, reterr);
	if (rc == 0)
		rc = sio_range_reserve(&d->iova, EMU_MSI_BASE, EMU_MSI_SIZE, reterr);
	return rc;
}

static void free_engine(struct emu_engine *e)
{
	if (e->d.host->topo->iommu) {
		sio_iommu_done(&e->d.iommu);
		sio_range_done(&e->d.iova);
	}
	free(e);
}

void emu_engine_power_off(struct emu_adapter *a)
{
	if (a->engine)
		free_engine(a->engine);
	a->engine = NULL;
}

/* Made with an adapter's first channel: most have none. */
static int get_engine(struct emu_request *rq, struct emu_adapter *a, struct emu_engine **ret)
{
	struct emu_room *r = rq->host->room;
	struct emu_engine *e = a->engine;
	int rc = 0;

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return sio_no_memory(&rq->err, "a DMA engine");
		snprintf(e->topo.name, sizeof(e->topo.name), "%.16s/dma%u", rq->host->topo->name,
			 a->index);
		e->topo.bdf = a->topo->bdf;
		e->topo.in = a->topo->in;
		e->topo.dma_bits = 64;
		e->adapter = a;
		e->d = (struct emu_device){
			.room = r, .host = rq->host, .topo = &e->topo, .engine_of = a};
		if (rq->host->topo->iommu)
			rc = new_domain(e, &rq->err);
		if (rc < 0) {
			free_engine(e);
			return rc;
		}
		a->engine = e;
	}
	if (!rq->host->engine_runs && r->ops->engine_start) {
		rc = r->ops->engine_start(r->ctx, rq->host->index);
		if (rc < 0)
			return sio_fail(&rq->err, rc, "DMA: no thread for the engines of %s",
					rq->host->topo->name);
	}
	rq->host->engine_runs = true;
	*ret = e;
	return 0;
}

static void close_channel(struct emu_channel *c)
{
	struct emu_room *r = c->o.host->room;

	if (c->doorbell >= 0) {
		if (r->ops->engine_unwatch)
			r->ops->engine_unwatch(r->ctx, c->o.host->index, c->doorbell);
		r->ops->close(r->ctx, c->doorbell);
	}
	if (c->finished >= 0)
		r->ops->close(r->ctx, c->finished);
	if (c->mem.data)
		r->ops->mem_free(r->ctx, &c->mem);
}

static int open_channel(struct emu_channel *c)
{
	uint64_t size = (sizeof(struct sio_dma_ring) + EMU_PAGE - 1) & ~(EMU_PAGE - 1);
	struct emu_room *r = c->o.host->room;
	int rc = r->ops->mem_new(r->ctx, "dma", size, &c->mem);

	if (rc < 0) {
		memset(&c->mem, 0, sizeof(c->mem));
		return rc;
	}
	rc = r->ops->event_new(r->ctx, &c->finished);
	if (rc < 0) {
		c->finished = -1;
		return rc;
	}
	rc = r->ops->event_new(r->ctx, &c->doorbell);
	if (rc < 0) {
		c->doorbell = -1;
		return rc;
	}
	return r->ops->engine_watch ? r->ops->engine_watch(r->ctx, c->o.host->index, c->doorbell)
				    : 0;
}

int emu_op_dma(struct emu_request *rq, const void *msg)
{
	const struct sio_req_dma *m = msg;
	struct emu_adapter *a = NULL;
	struct emu_engine *e = NULL;
	struct emu_channel *c;
	struct sio_evt_dma evt;
	int rc = emu_adapter_use(rq, m->adapter, &a);

	if (rc == 0)
		rc = get_engine(rq, a, &e);
	if (rc < 0)
		return rc;
	if (e->n_channels == EMU_CHANNELS)
		return sio_fail_exhausted(&rq->err, -ENOSPC, SIO_OUT_OF_DMA_CHANNELS,
					  "DMA: the engine of adapter %u has %u channels, "
					  "all in use",
					  a->index, EMU_CHANNELS);
	c = emu_object_new(rq, SIO_KIND_DMA, sizeof(*c), 0);
	if (!c)
		return rq->err.code;
	c->engine = e;
	c->doorbell = c->finished = -1;
	rc = open_channel(c);
	if (rc < 0) {
		close_channel(c);
		emu_object_drop(&c->o);
		return sio_fail(&rq->err, rc, "DMA: no memory or descriptors for a channel");
	}
	/* The engine may be asleep, and looks at this word of no one: it is woken by the doorbell.
	 */
	sio_write32(&((struct sio_dma_ring *)c->mem.data)->asleep, 1);
	DL_APPEND(e->channels, c);
	e->n_channels++;
	memset(&evt, 0, sizeof(evt));
	evt.id = c->o.id;
	evt.size = c->mem.size;
	emu_answer(rq, &evt, sizeof(evt), (int[]){c->mem.fd, c->doorbell, c->finished}, 3);
	return 0;
}

static void release_channel(struct emu_object *o)
{
	struct emu_channel *c = (struct emu_channel *)o;
	struct emu_engine *e = c->engine;

	for (unsigned i = 0; i < SIO_DMA_SLOTS; i++)
		if (c->slot[i])
			emu_object_free(&c->slot[i]->m.o);
	if (e->turn == c)
		e->turn = c->next;
	DL_DELETE(e->channels, c);
	e->n_channels--;
	close_channel(c);
}

static void channel_row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_channel *c = (const struct emu_channel *)o;

	e->device = c->engine->adapter->index;
	e->length = c->mem.size;
}

const struct emu_kind emu_kind_dma = {.name = "DMA channel",
				      .rank = EMU_RANK_GRANT,
				      .descriptors = 3,
				      .release = release_channel,
				      .row = channel_row};

int emu_op_dma_free(struct emu_request *rq, const void *msg)
{
	const struct sio_req_dma_free *m = msg;
	struct emu_channel *c = emu_object_find(rq, SIO_KIND_DMA, m->id);

	if (!c)
		return rq->err.code;
	emu_object_free(&c->o);
	emu_answer_ok(rq);
	return 0;
}

/* Memory of a device, not pages that it looks at: what an engine stores would wake nobody. */
static int check_bar(struct emu_request *rq, const struct sio_req_dma_attach *m,
		     const struct emu_object *o)
{
	const struct emu_bar *b = (const struct emu_bar *)o;
	const struct emu_map *map = (const struct emu_map *)o;

	if (emu_bar_check(rq, "DMA_ATTACH", o) < 0)
		return rq->err.code;
	if (o->kind == SIO_KIND_BAR ? emu_run_polled(b->run)
				    : o->kind == SIO_KIND_MAP && map->polled)
		return sio_fail(
			&rq->err, -EOPNOTSUPP,
			"DMA_ATTACH: %s %#" PRIx64
			" is of registers or doorbells; DMA engines reach memory of devices",
			emu_object_name(o), o->id);
	if (o->kind == SIO_KIND_BAR && m->access & ~b->access)
		return sio_fail(&rq->err, -EACCES,
				"DMA_ATTACH: access %#x of BAR view %#" PRIx64 ", which is for %#x",
				m->access, o->id, b->access);
	return 0;
}

static int check_target(struct emu_request *rq, const struct sio_req_dma_attach *m,
			const struct emu_channel *c, struct emu_object **ret)
{
	const uint32_t both = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	const struct emu_map *map;

	if (m->access == 0 || m->access & ~both)
		return sio_fail(&rq->err, -EINVAL, "DMA_ATTACH: access %#x, 1 to %u are right",
				m->access, both);
	if (m->target_kind != SIO_KIND_MEM && m->target_kind != SIO_KIND_MAP &&
	    m->target_kind != SIO_KIND_BAR)
		return sio_fail(
			&rq->err, -EINVAL,
			"DMA_ATTACH: target kind %u, %d (memory), %d (map) or %d (BAR view) "
			"is right",
			m->target_kind, SIO_KIND_MEM, SIO_KIND_MAP, SIO_KIND_BAR);
	*ret = emu_object_find_any(rq, m->target_kind, m->target);
	if (!*ret)
		return rq->err.code;
	if ((*ret)->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"DMA_ATTACH: owner %#" PRIx64 " of %s %#" PRIx64 " has ended",
				(*ret)->owner->o.id, emu_object_name(*ret), (*ret)->id);
	if (emu_group_access(rq, "DMA_ATTACH", *ret, m->access) < 0 || check_bar(rq, m, *ret) < 0)
		return rq->err.code;
	map = (const struct emu_map *)*ret;
	if (m->target_kind == SIO_KIND_MAP && map->trigger)
		return sio_fail(&rq->err, -EINVAL,
				"DMA_ATTACH: map %#" PRIx64 " is of an interrupt", (*ret)->id);
	if (m->target_kind == SIO_KIND_MAP && map->adapter != c->engine->adapter->index)
		return sio_fail(&rq->err, -EINVAL,
				"DMA_ATTACH: map %#" PRIx64 " goes through adapter %u, the "
				"channel's engine is in adapter %u",
				(*ret)->id, map->adapter, c->engine->adapter->index);
	return emu_range_check(rq, "DMA_ATTACH", *ret, m->offset, m->length);
}

/* Let the engine reach @target; the range is in no list yet. */
static int place(struct emu_request *rq, struct emu_dma_range *g)
{
	const struct sio_req_dmamap anywhere = {.iova = SIO_PORT_ANY, .highest = SIO_PORT_ANY};
	int rc = emu_dmamap_place(rq, &g->m, &anywhere);

	if (rc < 0)
		return rc;
	rc = emu_check_dmamap(&g->m);
	if (rc < 0)
		emu_dmamap_unplace(&g->m);
	return rc;
}

static void link_range(struct emu_dma_range *g)
{
	g->channel->slot[g->slot] = g;
	emu_object_attach(&g->m.o, g->m.target);
	DL_APPEND2(g->m.device->dmamaps, &g->m, dev_prev, dev_next);
}

int emu_op_dma_attach(struct emu_request *rq, const void *msg)
{
	const struct sio_req_dma_attach *m = msg;
	struct sio_evt_dma_attach evt;
	struct emu_object *target = NULL;
	struct emu_dma_range *g;
	struct emu_channel *c;
	unsigned slot = 0;
	int rc;

	c = emu_object_find(rq, SIO_KIND_DMA, m->channel);
	if (!c)
		return rq->err.code;
	rc = check_target(rq, m, c, &target);
	if (rc < 0)
		return rc;
	while (slot < SIO_DMA_SLOTS && c->slot[slot])
		slot++;
	if (slot == SIO_DMA_SLOTS)
		return sio_fail_exhausted(&rq->err, -ENOSPC, SIO_OUT_OF_DMA_SLOTS,
					  "DMA_ATTACH: all %d slots of channel %#" PRIx64
					  " are in use",
					  SIO_DMA_SLOTS, c->o.id);
	g = emu_object_new(rq, SIO_KIND_DMA_RANGE, sizeof(*g), 0);
	if (!g)
		return rq->err.code;
	g->m.device = &c->engine->d;
	g->m.target = target;
	g->m.offset = m->offset;
	g->m.length = m->length;
	g->m.access = m->access;
	g->m.physical = emu_source_physical(target, m->offset);
	g->channel = c;
	g->slot = slot;
	rc = place(rq, g);
	if (rc < 0) {
		emu_object_drop(&g->m.o);
		return rc;
	}
	link_range(g);
	memset(&evt, 0, sizeof(evt));
	evt.id = g->m.o.id;
	evt.slot = slot;
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}

static void release_range(struct emu_object *o)
{
	struct emu_dma_range *g = (struct emu_dma_range *)o;

	g->channel->slot[g->slot] = NULL;
	emu_object_detach(o, g->m.target);
	DL_DELETE2(g->m.device->dmamaps, &g->m, dev_prev, dev_next);
	emu_dmamap_unplace(&g->m);
	emu_invalidate(g->m.o.host->room);
	emu_check_forget(o->host, o->kind, o->id);
}

static void range_row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_dma_range *g = (const struct emu_dma_range *)o;

	e->cookie = g->m.target->id;
	e->address = g->m.iova;
	e->length = g->m.length;
}

const struct emu_kind emu_kind_dma_range = {.name = "range of a DMA channel",
					    .rank = EMU_RANK_SENDER,
					    .release = release_range,
					    .row = range_row};

int emu_op_dma_detach(struct emu_request *rq, const void *msg)
{
	const struct sio_req_dma_detach *m = msg;
	struct emu_dma_range *g = emu_object_find(rq, SIO_KIND_DMA_RANGE, m->id);

	if (!g)
		return rq->err.code;
	emu_object_free(&g->m.o);
	emu_answer_ok(rq);
	return 0;
}
