/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Naive lists of everything that was allocated, granted, mapped or let through, one line for each,
 * and a look-up in them that can be followed by eye. They share nothing with the tables that
 * translate.c uses; where the two differ, one of them is wrong, and the room stops.
 */
#include <stdio.h>

#include "emu/memory/memory.h"

enum line_kind { LINE_MEM, LINE_GRANT, LINE_MAP, LINE_REQUESTER, LINE_DMAMAP, LINE_KINDS };

struct line {
	struct line_name {
		const struct emu_host *host;
		uint64_t key;
	} name;
	UT_hash_handle hh;
	uint64_t from, length; /* the addresses that it is about */
	uint64_t to;	       /* where they lead */
	uint8_t *data;	       /* mem */
	const void *device;    /* dmamap */
	uint32_t access, adapter, bdf;
	unsigned peer, peer_adapter;
	uint64_t generation;
};

/* Lists are hash tables by the names of their lines; read, they are walked through. */
struct emu_check {
	struct line *list[LINE_KINDS];
	void (*fail)(void *arg, const char *text);
	void *arg;
};

struct emu_check *emu_check_new(void)
{
	return calloc(1, sizeof(struct emu_check));
}

void emu_check_free(struct emu_check *c)
{
	for (unsigned i = 0; c && i < LINE_KINDS; i++) {
		struct line *l, *tmp;

		HASH_ITER (hh, c->list[i], l, tmp) {
			HASH_DEL(c->list[i], l);
			free(l);
		}
	}
	free(c);
}

void emu_check_hook(struct emu_check *c, void (*fail)(void *arg, const char *text), void *arg)
{
	c->fail = fail;
	c->arg = arg;
}

static int append(struct emu_host *h, enum line_kind kind, uint64_t key, const struct line *line)
{
	struct line **list = &h->room->check->list[kind];
	struct line *l = malloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	*l = *line;
	memset(&l->name, 0, sizeof(l->name));
	l->name.host = h;
	l->name.key = key;
	HASH_ADD(hh, *list, name, sizeof(l->name), l);
	if (l->hh.tbl)
		return 0;
	free(l);
	return -ENOMEM;
}

int emu_check_mem(struct emu_host *h, uint64_t key, uint64_t physical, uint64_t len, uint8_t *data)
{
	return append(h, LINE_MEM, key,
		      &(struct line){.from = physical, .length = len, .data = data});
}

int emu_check_grant(struct emu_grant *g, uint64_t physical)
{
	if (g->source->kind == SIO_KIND_IRQ)
		return 0;
	return append(g->o.host, LINE_GRANT, g->o.id,
		      &(struct line){.from = g->bus_addr,
				     .length = g->length,
				     .to = physical,
				     .access = g->access,
				     .adapter = g->adapter});
}

/* A window opens in whole entries: what lies beside the range in its first and last one, too. */
int emu_check_map(struct emu_map *m)
{
	const struct sio_topo_adapter *t = m->o.host->adapter[m->adapter].topo;
	uint64_t entry = t->window_size / t->lut_entries;
	uint64_t before = m->bus_addr % entry;
	uint64_t length = (before + m->length + entry - 1) / entry * entry;

	return append(m->o.host, LINE_MAP, m->o.id,
		      &(struct line){.from = t->window_base + m->at.offset - before,
				     .length = length,
				     .to = m->bus_addr - before,
				     .adapter = m->adapter,
				     .peer = m->peer_host,
				     .peer_adapter = m->peer_adapter,
				     .generation = m->peer_generation});
}

int emu_check_requester(struct emu_requester *q, uint32_t bdf)
{
	return append(q->o.host, LINE_REQUESTER, q->o.id,
		      &(struct line){.adapter = q->adapter, .bdf = bdf});
}

int emu_check_dmamap(struct emu_dmamap *m)
{
	return append(m->o.host, LINE_DMAMAP, m->o.id,
		      &(struct line){.from = m->iova,
				     .length = m->length,
				     .to = m->physical,
				     .device = m->device,
				     .access = m->access});
}

static int line_kind(uint32_t object)
{
	switch (object) {
	case SIO_KIND_MEM:
		return LINE_MEM;
	case SIO_KIND_GRANT:
		return LINE_GRANT;
	case SIO_KIND_MAP:
		return LINE_MAP;
	case SIO_KIND_REQUESTER:
		return LINE_REQUESTER;
	case SIO_KIND_DMAMAP:
	case SIO_KIND_DMA_RANGE:
		return LINE_DMAMAP;
	default:
		return -1;
	}
}

static struct line *by_name(struct emu_host *h, int kind, uint64_t key)
{
	struct line_name name;
	struct line *l;

	memset(&name, 0, sizeof(name));
	name.host = h;
	name.key = key;
	HASH_FIND(hh, h->room->check->list[kind], &name, sizeof(name), l);
	return l;
}

void emu_check_forget(struct emu_host *h, uint32_t kind, uint64_t key)
{
	int which = line_kind(kind);
	struct line *l = which < 0 ? NULL : by_name(h, which, key);

	if (!l)
		return;
	HASH_DEL(h->room->check->list[which], l);
	free(l);
}

void emu_check_moved(struct emu_host *h, uint64_t key, uint8_t *data)
{
	struct line *l = by_name(h, LINE_MEM, key);

	if (l)
		l->data = data;
}

static bool holds(const struct line *l, uint64_t addr, uint64_t len)
{
	return addr >= l->from && len <= l->length && addr - l->from <= l->length - len;
}

/* The line of @h that holds the range; of @device's, if one is named. */
static const struct line *find(const struct emu_host *h, enum line_kind kind, const void *device,
			       uint64_t addr, uint64_t len, uint32_t adapter)
{
	const struct line *l = h->room->check->list[kind];

	while (l && (l->name.host != h || l->device != device || l->adapter != adapter ||
		     !holds(l, addr, len)))
		l = l->hh.next;
	return l;
}

static bool let_through(const struct emu_host *h, uint32_t adapter, uint32_t bdf)
{
	const struct line *l = h->room->check->list[LINE_REQUESTER];

	while (l && (l->name.host != h || l->adapter != adapter || l->bdf != bdf))
		l = l->hh.next;
	return l;
}

static const uint8_t *in_memory(const struct emu_host *h, uint64_t physical, uint64_t len)
{
	const struct line *l = find(h, LINE_MEM, NULL, physical, len, 0);

	return l ? l->data + (physical - l->from) : NULL;
}

static bool same_start(const struct emu_host *h, const struct line *map)
{
	struct emu_host *from = &h->room->host[h->index];
	const struct emu_path *p = emu_path_find(from, map->adapter, map->peer, map->peer_adapter);

	return p && emu_path_start(h, p) == map->generation;
}

static const uint8_t *at_peer(const struct emu_host *h, const struct line *map, uint64_t physical,
			      uint64_t len, uint32_t access)
{
	const struct emu_host *peer = &h->room->host[map->peer];
	uint64_t bus = map->to + (physical - map->from);
	const struct line *l;

	if (!peer->up || !same_start(h, map) ||
	    !emu_adapters_joined(&h->adapter[map->adapter], &peer->adapter[map->peer_adapter]))
		return NULL;
	if (!peer->topo->iommu)
		return in_memory(peer, bus, len);
	l = find(peer, LINE_GRANT, NULL, bus, len, map->peer_adapter);
	if (!l || !(l->access & access))
		return NULL;
	return in_memory(peer, l->to + (bus - l->from), len);
}

static const uint8_t *naive(const struct emu_device *d, uint64_t addr, uint64_t len,
			    uint32_t access)
{
	const struct emu_host *h = d->host;
	uint64_t physical = addr;
	const struct line *l;

	if (emu_device_is_out(d) || (d->topo->dma_bits < 64 && addr >> d->topo->dma_bits))
		return NULL;
	if (h->topo->iommu) {
		l = find(h, LINE_DMAMAP, d, addr, len, 0);
		if (!l || !(l->access & access))
			return NULL;
		physical = l->to + (addr - l->from);
	}
	for (unsigned i = 0; i < h->n_adapters; i++) {
		l = find(h, LINE_MAP, NULL, physical, len, i);
		if (l && (d->engine_of == &h->adapter[i] || let_through(h, i, d->topo->bdf)))
			return at_peer(h, l, physical, len, access);
	}
	return in_memory(h, physical, len);
}

void emu_check_access(struct emu_device *d, struct sio_dev_addr addr, size_t len, uint32_t access,
		      const uint8_t *data)
{
	struct emu_check *c = d->room->check;
	const uint8_t *right = naive(d, addr.addr, len, access);
	char text[256];

	if (right == data)
		return;
	snprintf(text, sizeof(text),
		 "check: %s of %zu bytes at %#" PRIx64 " by %s: the tables lead to %p, the list of "
		 "grants to %p (NULL: fault)",
		 access == SIO_ACCESS_READ ? "read" : "write", len, addr.addr, d->topo->name,
		 (const void *)data, (const void *)right);
	if (c->fail) {
		c->fail(c->arg, text);
		return;
	}
	emu_log(d->room, "%s", text);
	abort();
}
