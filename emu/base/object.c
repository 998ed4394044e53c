/* SPDX-License-Identifier: BSD-2-Clause */
/* Things that have ids: made, found, counted, and freed in one order. */
#include "emu/engine/engine.h"

const char *emu_kind_name(uint32_t kind)
{
	static const char *const name[] = {
		[SIO_KIND_OWNER] = "owner",
		[SIO_KIND_MEM] = "memory",
		[SIO_KIND_GRANT] = "grant",
		[SIO_KIND_MAP] = "map",
		[SIO_KIND_REQUESTER] = "requester entry",
		[SIO_KIND_DEVICE] = "open device",
		[SIO_KIND_BAR] = "BAR view",
		[SIO_KIND_DMAMAP] = "DMA mapping",
		[SIO_KIND_IRQ] = "interrupt",
		[SIO_KIND_WATCH] = "watch",
		[SIO_KIND_DMA] = "DMA channel",
		[SIO_KIND_DMA_RANGE] = "range of a DMA channel",
		[SIO_KIND_VECTOR] = "interrupt vector",
	};

	return kind < sizeof(name) / sizeof(name[0]) && name[kind] ? name[kind] : "object";
}

/*
 * The order in which unreferenced objects fall: what sends before what it goes through, windows
 * before memory, the device last.
 */
static unsigned rank(uint32_t kind)
{
	switch (kind) {
	case SIO_KIND_DMAMAP:
	case SIO_KIND_VECTOR:
	case SIO_KIND_WATCH: /* before what it watches */
	case SIO_KIND_DMA_RANGE:
		return 0;
	case SIO_KIND_DMA:
	case SIO_KIND_GRANT:
		return 1;
	case SIO_KIND_REQUESTER:
		return 2;
	case SIO_KIND_MAP:
		return 3;
	case SIO_KIND_BAR:
		return 4;
	case SIO_KIND_IRQ:
		return 5;
	case SIO_KIND_MEM:
		return 6;
	case SIO_KIND_DEVICE:
		return 7;
	default:
		return EMU_RANKS - 1;
	}
}

/* Objects of these kinds hold descriptors of the edge, as long as they live. */
static const struct {
	uint32_t kind, descriptors;
} holders[] = {{SIO_KIND_OWNER, 1},
	       {SIO_KIND_MEM, 1},
	       {SIO_KIND_IRQ, 1},
	       {SIO_KIND_WATCH, 1},
	       {SIO_KIND_DMA, 3}};
#define N_HOLDERS (sizeof(holders) / sizeof(holders[0]))

static int check_share(struct emu_request *rq, uint32_t kind)
{
	const struct emu_host *h = rq->host;
	uint64_t held = 0;
	uint32_t more = 0;

	for (unsigned i = 0; i < N_HOLDERS; i++) {
		if (holders[i].kind == kind)
			more = holders[i].descriptors;
		held += h->n_of_kind[holders[i].kind] * holders[i].descriptors;
	}
	if (more == 0 || held + more <= h->room->descriptors)
		return 0;
	return sio_fail(&rq->err, -EMFILE,
			"no %s: %s holds %" PRIu64 " of its share of %" PRIu64
			" descriptors; free some, or raise the machine room's hard limit (ulimit "
			"-Hn) and start it anew",
			emu_kind_name(kind), h->topo->name, held, h->room->descriptors);
}

void *emu_object_new(struct emu_request *rq, uint32_t kind, size_t size, uint64_t id)
{
	struct emu_host *h = rq->host;
	struct emu_object *o;

	if (check_share(rq, kind) < 0)
		return NULL;
	o = calloc(1, size);
	if (!o)
		goto fail;
	o->host = h;
	o->owner = rq->owner;
	o->kind = kind;
	o->state = SIO_STATE_LIVE;
	o->id = id ? id : ++h->last_id;
	HASH_ADD(hh, h->objects, id, sizeof(o->id), o);
	if (!o->hh.tbl) {
		free(o);
		goto fail;
	}
	if (kind != SIO_KIND_OWNER) {
		DL_APPEND(o->owner->objects, o);
		o->owner->n_objects++;
	}
	h->n_of_kind[kind]++;
	h->room->watch_dirty = true;
	return o;

fail:
	sio_fail(&rq->err, -ENOMEM, "out of memory for another %s", emu_kind_name(kind));
	return NULL;
}

void emu_object_drop(struct emu_object *o)
{
	struct emu_host *h = o->host;

	HASH_DEL(h->objects, o);
	if (o->kind != SIO_KIND_OWNER) {
		DL_DELETE(o->owner->objects, o);
		o->owner->n_objects--;
	}
	h->n_of_kind[o->kind]--;
	h->room->watch_dirty = true;
	free(o);
}

static void release(struct emu_object *o)
{
	switch (o->kind) {
	case SIO_KIND_MEM:
		emu_ram_release((struct emu_ram *)o);
		break;
	case SIO_KIND_GRANT:
		emu_grant_release((struct emu_grant *)o);
		break;
	case SIO_KIND_MAP:
		emu_map_release((struct emu_map *)o);
		break;
	case SIO_KIND_REQUESTER:
		emu_requester_release((struct emu_requester *)o);
		break;
	case SIO_KIND_DEVICE:
		emu_opened_release((struct emu_opened *)o);
		break;
	case SIO_KIND_BAR:
		emu_bar_release((struct emu_bar *)o);
		break;
	case SIO_KIND_DMAMAP:
		emu_dmamap_release((struct emu_dmamap *)o);
		break;
	case SIO_KIND_IRQ:
		emu_irq_release((struct emu_irq *)o);
		break;
	case SIO_KIND_WATCH:
		emu_watch_release((struct emu_watch *)o);
		break;
	case SIO_KIND_DMA:
		emu_channel_release((struct emu_channel *)o);
		break;
	case SIO_KIND_DMA_RANGE:
		emu_dma_range_release((struct emu_dma_range *)o);
		break;
	case SIO_KIND_VECTOR:
		emu_vector_release((struct emu_vector *)o);
		break;
	default:
		break;
	}
}

void emu_object_free(struct emu_object *o)
{
	release(o);
	emu_check_forget(o->host, o->kind, o->id);
	emu_object_drop(o);
}

static void falls(struct emu_object *o)
{
	if (o->falling || o->refs != 0 || o->state != SIO_STATE_QUARANTINED)
		return;
	if (o->kind == SIO_KIND_GRANT ||
	    (o->kind == SIO_KIND_DMAMAP && ((const struct emu_dmamap *)o)->placed))
		return;
	o->falling = true;
	LL_PREPEND2(o->host->falling[rank(o->kind)], o, falling_next);
}

void emu_object_give(struct emu_object *o, struct emu_owner *to)
{
	DL_DELETE(o->owner->objects, o);
	o->owner->n_objects--;
	o->owner = to;
	DL_APPEND(to->objects, o);
	to->n_objects++;
}

void emu_object_ref(struct emu_object *o)
{
	o->refs++;
}

void emu_object_unref(struct emu_object *o)
{
	o->refs--;
	falls(o);
}

/* The falling object of the lowest rank, taken out of the list; NULL: none. */
static struct emu_object *next_falling(struct emu_host *h)
{
	for (unsigned i = 0; i < EMU_RANKS; i++) {
		struct emu_object *o = h->falling[i];

		if (o) {
			h->falling[i] = o->falling_next;
			return o;
		}
	}
	return NULL;
}

void emu_objects_fall(struct emu_host *h)
{
	struct emu_object *o;

	while ((o = next_falling(h)))
		emu_object_free(o);
}

void emu_object_quarantine(struct emu_object *o)
{
	o->state = SIO_STATE_QUARANTINED;
	o->host->room->watch_dirty = true;
	falls(o);
}

void *emu_object_find_any(struct emu_request *rq, uint32_t kind, uint64_t id)
{
	struct emu_object *o;

	HASH_FIND(hh, rq->host->objects, &id, sizeof(id), o);
	if (o && o->kind == kind)
		return o;
	sio_fail(&rq->err, -ENOENT, "no %s %#" PRIx64, emu_kind_name(kind), id);
	return NULL;
}

void *emu_object_find(struct emu_request *rq, uint32_t kind, uint64_t id)
{
	struct emu_object *o = emu_object_find_any(rq, kind, id);

	if (!o || rq->h->owner == 0 || o->owner == rq->owner)
		return o;
	sio_fail(&rq->err, -EPERM,
		 "%s %#" PRIx64 " belongs to owner %#" PRIx64 ", not to %#" PRIx64,
		 emu_kind_name(kind), id, o->owner->o.id, (uint64_t)rq->h->owner);
	return NULL;
}

void emu_objects_clear(struct emu_host *h)
{
	struct emu_object *o, *tmp;

	memset(h->falling, 0, sizeof(h->falling));
	h->ended = NULL;
	h->daemon.children = NULL;
	for (unsigned i = 0; i < EMU_RANKS; i++)
		HASH_ITER (hh, h->objects, o, tmp) {
			if (rank(o->kind) != i)
				continue;
			if (o->kind == SIO_KIND_OWNER) {
				emu_owner_forget((struct emu_owner *)o);
				continue;
			}
			release(o);
			emu_check_forget(h, o->kind, o->id);
			emu_object_drop(o);
		}
	memset(h->falling, 0, sizeof(h->falling));
}
