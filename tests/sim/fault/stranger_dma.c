/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA channels of the stranger. Where each byte comes from and goes to is computed by a search
 * through all that was granted and mapped, and all memory is compared after each transfer, so a
 * byte that must not arrive is noticed. Transfers that could touch memory of others are not
 * started.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "heap/alloc.h"
#include "edge/edge.h"
#include "emu/device/device.h"
#include "fault/stranger.h"

#define PAGE 4096u
#define CHANNELS 4u
#define RANGES 12u
#define STEPS 10000u

static bool is_of(const struct thing *t, const void *arg)
{
	return t->channel == arg;
}

static bool reads(const struct thing *t, const void *arg)
{
	return t->channel == arg && t->access & SIO_ACCESS_READ && !t->source->sender;
}

static bool writes(const struct thing *t, const void *arg)
{
	return t->channel == arg && t->access & SIO_ACCESS_WRITE && !t->source->sender;
}

static unsigned count(uint32_t kind)
{
	const struct thing *t;
	unsigned n = 0;

	DL_FOREACH (stranger.things, t)
		n += t->kind == kind;
	return n;
}

/* ---- channels and ranges ---- */
static void new_channel(unsigned host)
{
	const struct sio_topo_host *h = &sim_cluster->topology->host[host];
	struct sio_req_dma req = {.h.owner = stranger_owner(host)};
	struct thing *c;

	if (!req.h.owner || count(SIO_KIND_DMA) >= CHANNELS)
		return;
	req.adapter = (uint32_t)stranger_draw(h->n_adapters);
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_DMA, NULL) != 0)
		return;
	c = stranger_new(SIO_KIND_DMA, host, stranger.answer.dma.id, req.h.owner);
	c->adapter = req.adapter;
	c->fd = sim_fd_dup(stranger.fds[0]);
}

/* Can channel @arg reach it? Others are tried less often, and refused. */
static bool can_be_reached(const struct thing *t, const void *arg)
{
	const struct thing *c = arg;
	bool leaves = t->kind == SIO_KIND_MAP || t->sender;

	return t->host == c->host && !t->ended && (!leaves || t->adapter == c->adapter);
}

struct thing *stranger_attach(struct thing *c, struct thing *target, uint64_t owner,
			      struct sio_req_dma_attach *req)
{
	struct errors want = {0};
	struct thing *g;

	req->h.owner = owner;
	req->channel = c->id;
	req->target = target->id;
	req->target_kind = target->kind;
	errors_add(&want, owner != c->owner, -EPERM);
	errors_add(&want, target->ended, -EPERM);
	errors_add(&want, target->sender && req->access != SIO_ACCESS_WRITE, -EINVAL);
	errors_add(&want, target->kind == SIO_KIND_MAP && target->adapter != c->adapter, -EINVAL);
	errors_add(&want, req->offset + req->length > target->length, -EINVAL);
	if (count(SIO_KIND_DMA_RANGE) >= RANGES ||
	    stranger_ask(c->host, req, sizeof(*req), SIO_OP_DMA_ATTACH, want.e) != 0)
		return NULL;
	g = stranger_new(SIO_KIND_DMA_RANGE, c->host, stranger.answer.range.id, owner);
	g->channel = c;
	g->source = target;
	g->offset = req->offset;
	g->length = req->length;
	g->access = req->access;
	g->slot = stranger.answer.range.slot;
	return g;
}

static void attach(unsigned host)
{
	struct thing *c = stranger_any(SIO_KIND_DMA, stranger_is_on, &host), *target;
	uint32_t kind = stranger_draw(3) ? SIO_KIND_MAP : SIO_KIND_MEM;
	struct sio_req_dma_attach req = {0};
	uint64_t pages, owner;

	if (c && stranger_draw(8))
		target = stranger_any(kind, can_be_reached, c);
	else
		target = c ? stranger_any(kind, stranger_is_on, &host) : NULL;
	if (!target)
		return;
	pages = target->length / PAGE;
	owner = stranger_draw(8) ? c->owner : stranger_owner(host);
	req.access = 1 + (uint32_t)stranger_draw(3);
	req.offset = PAGE * stranger_draw(pages);
	req.length = PAGE * (1 + stranger_draw(pages));
	if (stranger_draw(2)) { /* the whole target */
		req.offset = 0;
		req.length = target->length;
	}
	stranger_attach(c, target, owner, &req);
}

/* ---- memory ---- */
static struct fabric_mem *memory(const struct thing *t)
{
	return sim_fd(t->fd)->mem;
}

void stranger_compare_memory(void)
{
	const struct thing *m;

	DL_FOREACH (stranger.things, m) {
		const uint8_t *now;

		if (m->kind != SIO_KIND_MEM || m->sender)
			continue;
		now = memory(m)->bytes;
		for (uint64_t i = 0; i < m->length; i++)
			if (now[i] != m->bytes[i])
				sim_fail("stranger",
					 "memory %llu of node %u has %#x at %#llx, not %#x",
					 (unsigned long long)m->id, sim_node(m->host), now[i],
					 (unsigned long long)i, m->bytes[i]);
	}
}

static void learn(struct thing *m)
{
	memcpy(m->bytes, memory(m)->bytes, m->length);
}

/* A processor of the host fills one of its memories. */
static void fill(unsigned host)
{
	struct thing *m = stranger_any(SIO_KIND_MEM, stranger_is_on, &host);

	if (!m || m->sender)
		return;
	for (uint64_t i = 0; i < m->length; i++)
		m->bytes[i] = (uint8_t)stranger_draw(256);
	fabric_store(memory(m), 0, m->bytes, m->length, sim_now());
}

/* ---- where a byte lies ---- */
enum where { OURS, NOWHERE, OTHERS }; /* the later ones prevail in a range of bytes */

static bool in(uint64_t at, uint64_t from, uint64_t length)
{
	return at >= from && at - from < length;
}

/* What lies at a physical address of @host. OURS: *ret_offset in *ret. */
static enum where at_physical(unsigned host, uint64_t at, struct thing **ret, uint64_t *ret_offset)
{
	struct thing *m;

	DL_FOREACH (stranger.things, m) {
		if (m->kind != SIO_KIND_MEM || m->host != host || !in(at, m->bus, m->length))
			continue;
		*ret = m;
		*ret_offset = at - m->bus;
		return m->sender ? NOWHERE : OURS;
	}
	return sio_addrmap_find(&sim_cluster->room->host[host].map, at) ? OTHERS : NOWHERE;
}

static bool granted_to_others(const struct emu_adapter *a, uint64_t at)
{
	const struct emu_grant *g, *next;

	HASH_ITER (by_token, a->host->grants, g, next)
		if (g->adapter == a->index && in(at, g->bus_addr, g->length) &&
		    g->source->kind != SIO_KIND_IRQ && !stranger_find(a->host->index, g->o.id))
			return true;
	return false;
}

/* What window @m reaches at bus address @at of the host that it leads to. */
static enum where at_bus(const struct thing *m, uint64_t at, uint32_t access, struct thing **ret,
			 uint64_t *ret_offset)
{
	const struct emu_host *peer = &sim_cluster->room->host[m->peer];
	const struct emu_path *path = stranger_path(m);
	const struct thing *g;

	if (path->state != SIO_LINK_UP ||
	    emu_path_start(&sim_cluster->room->host[m->host], path) != m->generation)
		return NOWHERE;
	if (!peer->topo->iommu)
		return at_physical(m->peer, at, ret, ret_offset);
	if (granted_to_others(&peer->adapter[m->peer_adapter], at))
		return OTHERS;
	DL_FOREACH (stranger.things, g) {
		if (g->kind != SIO_KIND_GRANT || g->host != m->peer ||
		    g->adapter != m->peer_adapter || !in(at, g->bus, g->length))
			continue;
		*ret = g->source;
		*ret_offset = g->offset + (at - g->bus);
		return g->access & access ? OURS : NOWHERE;
	}
	return NOWHERE;
}

/* Where byte @at of the DMA range @g lies. */
static enum where at_range(const struct thing *g, uint64_t at, uint32_t access, struct thing **ret,
			   uint64_t *ret_offset)
{
	if (g->source->kind == SIO_KIND_MAP)
		return at_bus(g->source, g->source->bus + g->offset + at, access, ret, ret_offset);
	*ret = g->source;
	*ret_offset = g->offset + at;
	return OURS;
}

/* Where @length bytes lie, page by page. OURS: all of them, in one run, in *ret. */
static enum where stretch(const struct thing *g, uint64_t at, uint64_t length, uint32_t access,
			  struct thing **ret, uint64_t *ret_offset)
{
	enum where first = at_range(g, at, access, ret, ret_offset), worst = first;

	for (uint64_t i = 1; i < length; i++) {
		struct thing *m = NULL;
		uint64_t offset = 0;
		enum where w;

		if ((g->offset + at + i) % PAGE)
			continue;
		w = at_range(g, at + i, access, &m, &offset);
		if (w == OURS && (first != OURS || m != *ret || offset != *ret_offset + i))
			return OTHERS; /* in several runs, which are not followed */
		if (w > worst)
			worst = w;
	}
	return worst;
}

/* ---- transfers ---- */
static int32_t result_of(const struct thing *c, const struct fabric_mem *ring)
{
	int32_t result;

	memcpy(&result,
	       ring->bytes + offsetof(struct sio_dma_ring, result) +
		       (c->tail - 1) % SIO_DMA_RESULTS * sizeof(result),
	       sizeof(result));
	return result;
}

/* The result that a program reads which polls "done" without pause. */
static int32_t result_when_over(const struct thing *c, const struct fabric_mem *ring)
{
	struct fabric_queue *q = fabric_path(c->host, c->host);
	uint32_t done;

	do {
		memcpy(&done, ring->bytes + offsetof(struct sio_dma_ring, done), sizeof(done));
		if (done == c->tail)
			break;
		fabric_queue_take(q);
	} while (q->first);
	return result_of(c, ring);
}

int stranger_transfer(struct thing *c, const struct sio_dma_entry *entry)
{
	struct fabric_mem *ring = memory(c);
	struct emu_room *room = sim_cluster->room;
	struct emu_object *o = NULL;
	const struct emu_channel *channel;
	uint32_t at = c->tail++ % SIO_DMA_ENTRIES;
	uint64_t fail_in = sim_alloc_fail_in;
	int32_t result, early;

	HASH_FIND(hh, room->host[c->host].objects, &c->id, sizeof(c->id), o);
	assert(o);
	channel = (const struct emu_channel *)o;
	fabric_path_all(c->host, UINT64_MAX);
	fabric_store(ring, offsetof(struct sio_dma_ring, entry) + at * sizeof(*entry), entry,
		     sizeof(*entry), sim_now());
	fabric_store(ring, offsetof(struct sio_dma_ring, tail), &c->tail, sizeof(c->tail),
		     sim_now());
	sim_alloc_fail_in = 0;
	stranger.acting = true;
	for (unsigned i = 0; i < STEPS && channel->done != c->tail; i++) {
		fabric_act(c->host);
		emu_room_engine_step(room, c->host);
		fabric_act(FABRIC_NOBODY);
		emu_room_engines_collect(room);
	}
	stranger.acting = false;
	sim_alloc_fail_in = fail_in;
	if (channel->done != c->tail)
		sim_fail("stranger", "an engine of node %u does not copy", sim_node(c->host));
	early = result_when_over(c, ring);
	for (unsigned h = 0; h < sim_hosts(); h++)
		fabric_path_all(h, UINT64_MAX);
	result = result_of(c, ring);
	if (early != result)
		sim_fail("stranger", "a transfer is over with result %d, and then with %d", early,
			 result);
	sim_trace("stranger: a transfer of %llu bytes at node %u gives %d",
		  (unsigned long long)entry->length, sim_node(c->host), result);
	return result;
}

/* Draws an offset: anywhere; one with which @length ends where @g does; a byte more. */
static uint64_t an_offset(const struct thing *g, uint64_t length)
{
	uint64_t kind = stranger_draw(8), room = g->length >= length ? g->length - length : 0;

	if (kind == 0)
		return room + 1;
	if (kind == 1)
		return stranger_draw(g->length + 1);
	return kind < 4 ? room : stranger_draw(room + 1);
}

static bool bad(const struct thing *g, uint32_t access, uint64_t offset, uint64_t length)
{
	return !g || !(g->access & access) || offset > g->length || length > g->length - offset;
}

static void judge(int got, int want, const struct thing *c)
{
	if (got != want)
		sim_fail("stranger", "a transfer at node %u gives %d, not %d", sim_node(c->host),
			 got, want);
}

/* Return: it was copied. */
static bool copy(struct thing *c, const struct thing *from, const struct thing *to,
		 const struct sio_dma_entry *e)
{
	struct thing *a = NULL, *b = NULL;
	uint64_t a_at = 0, b_at = 0;
	enum where w, source, target;

	source = stretch(from, e->source_offset, e->length, SIO_ACCESS_READ, &a, &a_at);
	target = stretch(to, e->target_offset, e->length, SIO_ACCESS_WRITE, &b, &b_at);
	w = source > target ? source : target;
	/* Overlapping bytes may be copied in any order, so the result is not known. */
	if (w == OTHERS ||
	    (w == OURS && a == b && a_at < b_at + e->length && b_at < a_at + e->length))
		return false;
	if (w == OURS) {
		judge(stranger_transfer(c, e), 0, c);
		memcpy(b->bytes + b_at, a->bytes + a_at, e->length);
		return true;
	}
	judge(stranger_transfer(c, e), -EFAULT, c);
	/* It may have copied up to the first page that cannot be reached. */
	if (at_range(from, e->source_offset, SIO_ACCESS_READ, &a, &a_at) == OURS &&
	    at_range(to, e->target_offset, SIO_ACCESS_WRITE, &b, &b_at) == OURS)
		learn(b);
	return false;
}

/* Ends the grant that the window of @g leads to. */
static void take_back(const struct thing *g)
{
	const struct thing *m = g->source;
	struct thing *t;

	if (m->kind != SIO_KIND_MAP)
		return;
	DL_FOREACH (stranger.things, t)
		if (t->kind == SIO_KIND_GRANT && t->host == m->peer &&
		    t->adapter == m->peer_adapter && in(m->bus, t->bus, t->length))
			break;
	if (!t)
		return;
	stranger_end(t->host, SIO_OP_UNGRANT, t->id, t->owner, NULL);
	stranger_gone(t);
}

/* Copies once more after a grant on the way was taken back. */
static void copy_again(struct thing *c, const struct thing *from, const struct thing *to,
		       const struct sio_dma_entry *e)
{
	uint64_t from_id = from->id, to_id = to->id;

	take_back(stranger_draw(2) ? from : to);
	/* Both ranges may have ended with the grant's memory. */
	if (stranger_find(c->host, from_id) && stranger_find(c->host, to_id))
		copy(c, from, to, e);
}

static void transfer(unsigned host)
{
	struct thing *c = stranger_any(SIO_KIND_DMA, stranger_is_on, &host), *from, *to;
	struct sio_dma_entry e = {.flags = SIO_DMA_LAST};

	if (!c)
		return;
	from = stranger_any(SIO_KIND_DMA_RANGE, stranger_draw(8) ? reads : is_of, c);
	to = stranger_any(SIO_KIND_DMA_RANGE, stranger_draw(8) ? writes : is_of, c);
	if (!from || !to || to->source->sender || from->source->sender)
		return;
	e.length = stranger_draw(2) ? stranger_draw(from->length + 2) : stranger_draw(512);
	e.source = from->slot;
	e.target = to->slot;
	e.source_offset = an_offset(from, e.length);
	e.target_offset = an_offset(to, e.length);
	if (bad(from, SIO_ACCESS_READ, e.source_offset, e.length) ||
	    bad(to, SIO_ACCESS_WRITE, e.target_offset, e.length))
		judge(stranger_transfer(c, &e), -EINVAL, c);
	else if (e.length == 0)
		judge(stranger_transfer(c, &e), 0, c);
	else if (copy(c, from, to, &e) && stranger_draw(4) == 0)
		copy_again(c, from, to, &e);
	stranger_compare_memory();
}

void stranger_act_dma(unsigned host)
{
	switch (stranger_draw(12)) {
	case 0:
		new_channel(host);
		break;
	case 1:
	case 2:
		attach(host);
		break;
	case 3:
		if (stranger_draw(3) == 0)
			stranger_end_any(host, SIO_KIND_DMA_RANGE, SIO_OP_DMA_DETACH);
		if (stranger_draw(16) == 0)
			stranger_end_any(host, SIO_KIND_DMA, SIO_OP_DMA_FREE);
		break;
	case 4:
		fill(host);
		break;
	default:
		transfer(host);
	}
}
