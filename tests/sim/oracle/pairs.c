/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a daemon believes to have given other hosts, its own included, and to have of them, as lists
 * of facts in which each number is one that both sides know.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "edge/daemon_state.h"
#include "edge/edge.h"
#include "emu/device/device.h"
#include "oracle/pairs.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/lender/lend.h"
#include "run/run.h"

#define EACH(node, tree)                                                                           \
	for (struct smartiod_tree_node *node = smartiod_tree_after(&(tree), 0); node;              \
	     node = smartiod_tree_after(&(tree), node->key))

static struct pair_list *giving, *having;

/* Of one fact; mixed, for they are added up. */
static uint64_t weight(enum pair_kind kind, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t state = kind;

	state = sim_draw(&state) ^ a;
	state = sim_draw(&state) ^ b;
	state = sim_draw(&state) ^ c;
	return sim_draw(&state);
}

static void note(struct pair_list *l, uint32_t node, enum pair_kind kind, uint64_t a, uint64_t b,
		 uint64_t c)
{
	unsigned other = sim_host_of(node);

	if (l->n == l->max) {
		l->max = l->max ? l->max * 2 : 64;
		l->fact = realloc(l->fact, l->max * sizeof(*l->fact));
		assert(l->fact);
	}
	l->fact[l->n++] = (struct pair_fact){.other = other, .kind = kind, .number = {a, b, c}};
	l->sum[other] += weight(kind, a, b, c);
}

uint64_t pairs_quiet(unsigned host)
{
	const struct smartiod *d = sim_host[host].daemon;
	const struct smartiod_counters *c = d ? &d->count : NULL;

	if (!d || d->later || !tables_quiet(host) || !sim_port_quiet(host) ||
	    smartiod_tree_after(&d->waiting, 0) || d->recovery.grace || d->recovery.expected)
		return 0;
	EACH(n, d->sessions)
	{
		const struct smartiod_session *s =
			SMARTIOD_OF(n, struct smartiod_session, by_client);

		if (s->ending || s->state == SMARTIOD_RESTORING)
			return 0;
	}
	return sim_host[host].life << 40 |
	       (c->client_messages + c->client_events + c->peer_received + c->peer_sent +
		c->port_requests + c->port_events);
}

/* ---- hosts and links ---- */
static void peers(const struct smartiod *d)
{
	for (unsigned i = 0; i < d->n_peers; i++) {
		const struct smartiod_peer *p = &d->peer[i];

		if (p->state != SMARTIOD_PEER_READY)
			continue;
		note(giving, p->node, PAIR_START, d->boot_generation, 0, 0);
		note(having, p->node, PAIR_START, p->generation, 0, 0);
		for (unsigned k = 0; k < p->n_paths; k++) {
			const struct smartiod_path_state *s = &p->path[k];

			if (!s->up)
				continue;
			note(giving, p->node, PAIR_LINK, s->adapter, s->peer_adapter, s->turn);
			note(having, p->node, PAIR_LINK, s->peer_adapter, s->adapter, s->turn);
		}
	}
}

/* ---- segments and interrupts ---- */
static void gives_segments(const struct smartiod *d)
{
	EACH(n, d->segments)
	{
		const struct smartiod_segment *s = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		for (const struct smartiod_ref *r = s->refs; r; r = r->next)
			note(giving, r->node, PAIR_REF, s->uid, r->connection, r->adapter);
	}
	EACH(n, d->grants)
	{
		const struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		/* A ring's trigger its sender knows as a part of the ring. */
		if (!g->ring || g->ring_memory)
			note(giving, g->node, PAIR_GRANT, n->key, 0, 0);
	}
	EACH(n, d->rings)
	{
		const struct smartiod_ring *r = SMARTIOD_OF(n, struct smartiod_ring, by_uid);
		uint64_t what = (r->memory_grant != 0) << 1 | (r->irq_grant != 0);

		if (!smartiod_ring_ended(r))
			note(giving, r->node, PAIR_RING, r->uid, r->link, what);
	}
}

/* A window that leads nowhere any more, though its way is up: it is of before the peer's start, or
 * of when the link had other addresses. */
static bool is_dead(const struct smartiod *d, uint64_t id)
{
	struct emu_host *h = &sim_cluster->room->host[sim_host_of(d->node)];
	const struct emu_map *m;
	const struct emu_path *p;
	struct emu_object *o;

	HASH_FIND(hh, h->objects, &id, sizeof(id), o);
	if (!o || o->kind != SIO_KIND_MAP)
		return false;
	m = (const struct emu_map *)o;
	p = emu_path_find(h, m->adapter, m->peer_host, m->peer_adapter);
	return p->state == SIO_LINK_UP && m->peer_generation != emu_path_start(h, p);
}

static void has_segments(const struct smartiod *d)
{
	EACH(n, d->connections)
	{
		const struct smartiod_connection *c =
			SMARTIOD_OF(n, struct smartiod_connection, by_id);
		bool remote = c->route == SMARTIOD_REMOTE;

		if (!remote && c->route != SMARTIOD_LOCAL)
			continue;
		if (c->state == SMARTIOD_CONNECTION_MADE || c->state == SMARTIOD_CONNECTION_DOWN)
			note(having, c->node, PAIR_REF, c->uid, c->id,
			     remote ? c->peer_adapter : c->adapter);
		if (c->window == SMARTIOD_MAPPED)
			note(having, c->node, PAIR_GRANT, c->grant, is_dead(d, c->map), 0);
	}
	EACH(n, d->dint_links)
	{
		const struct smartiod_dint_link *l =
			SMARTIOD_OF(n, struct smartiod_dint_link, by_id);
		uint64_t what = (l->ring_map != 0) << 1 | (l->irq_map != 0);

		if (l->ring_uid && (l->state == SMARTIOD_SENDER_CONNECTING ||
				    l->state == SMARTIOD_SENDER_CONNECTED))
			note(having, l->node, PAIR_RING, l->ring_uid, l->id, what);
		if (l->memory_grant)
			note(having, l->node, PAIR_GRANT, l->memory_grant, is_dead(d, l->ring_map),
			     0);
	}
}

/* Memory of devices that borrowers have made members. */
static void overlays(const struct smartiod *d)
{
	EACH(n, d->loans)
	{
		const struct smartiod_loan *l = SMARTIOD_OF(n, struct smartiod_loan, by_id);

		for (const struct smartiod_view_grant *g = l->grants; g; g = g->next)
			if (g->member && !smartiod_loan_ended(l))
				note(giving, d->node, PAIR_MEMBER, g->group, g->grant, true);
	}
}

/* The room alone knows all members of a group. */
static void members(const struct smartiod *d, unsigned host)
{
	struct emu_room *r = sim_cluster->room;

	for (unsigned g = 0; g < SMARTIOD_GROUPS; g++) {
		const struct smartiod_segment *s = d->member[g];

		if (s && s->ready && !s->owner_gone)
			note(giving, d->node, PAIR_MEMBER, g, s->mem, s->published != 0);
		for (const struct emu_ram *m = r->group[g].member; m; m = m->group_next)
			if (m->o.host->index == host && !sim_fault_owns(host, m->o.owner->o.id))
				note(having, d->node, PAIR_MEMBER, g, m->o.id, m->published);
	}
	overlays(d);
}

/* ---- devices ---- */
static uint64_t hash_of(const void *data, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull, word = 0;

	for (const unsigned char *p = data; len > 0;) {
		size_t n = len < sizeof(word) ? len : sizeof(word);

		memcpy(&word, p, n);
		h = (h ^ word) * 0x100000001b3ull;
		h ^= h >> 32;
		p += n;
		len -= n;
	}
	return h;
}

/* What all hosts are told alike. */
static uint64_t described(const struct smartiod_device *dev)
{
	struct sio_rep_dev_list info = dev->info;

	memset(&info.h, 0, sizeof(info.h));
	info.adapter = sio_to_le32(0);
	return dev->present ? hash_of(&info, sizeof(info)) : 0;
}

static void note_device(struct smartiod *d, struct smartiod_device *dev)
{
	struct sio_rep_dev_list info;
	uint64_t generation = dev->present ? dev->generation : UINT64_MAX, all;

	if (dev->node != d->node) {
		note(having, dev->node, PAIR_DEVICE, dev->fdid, generation, described(dev));
		return;
	}
	smartiod_device_info(d, dev, &info); /* as it is now, whether others were told or not */
	all = described(dev);
	for (unsigned i = 0; i < d->n_peers; i++)
		note(giving, d->peer[i].node, PAIR_DEVICE, dev->fdid, generation, all);
}

/* What was cut before the daemon was started has no target any more, nor is it known of what. */
static bool is_of_before(const struct smartiod_dma *m)
{
	return m->target || (m->cut && !m->uid);
}

/*
 * One of before the daemon was started. That it was refused to whoever reported it, or that nobody
 * did, does not end it: a queue may lie there.
 */
static bool is_claimed(struct smartiod *d, const struct smartiod_dma *m)
{
	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next)
		for (const struct smartiod_dma_handle *h = b->dma; h; h = h->next)
			if (b->id == m->loan->id && h->map == m->by_id.key)
				return true;
	return false;
}

/*
 * A view that another device had, and that was cut: its address stays taken. Whether it is
 * there still depends on why (a reset takes pages, the end of a borrow takes the view).
 */
static bool was_cut(const struct smartiod *d, const struct smartiod_loan *l,
		    const struct smartiod_view_grant *g)
{
	struct smartiod *taker = sim_host[sim_host_of(g->node)].daemon;

	if (!g->device || !taker)
		return false;
	EACH(n, taker->dmas)
	{
		const struct smartiod_dma *m = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		if (m->exporter == d->node && m->bar_borrow == l->id && m->view == g->view)
			return m->cut;
	}
	return false;
}

static void gives_loan(struct smartiod *d, const struct smartiod_loan *l)
{
	if (l->state != SMARTIOD_LOAN_LIVE)
		return;
	note(giving, l->node, PAIR_BORROW, l->id, l->device->fdid, 0);
	for (const struct smartiod_dma *m = l->dmas; m; m = m->next)
		if (!is_of_before(m) || is_claimed(d, m))
			note(giving, l->node, PAIR_DMA, l->id, m->by_id.key, 0);
	for (const struct smartiod_view_grant *g = l->grants; g; g = g->next)
		if (!was_cut(d, l, g))
			note(giving, g->device ? g->node : l->node, PAIR_VIEW, l->id, g->view,
			     g->grant);
}

static void has_bars(const struct smartiod *d, const struct smartiod_borrow *b)
{
	for (const struct smartiod_bar_map *m = b->maps; m; m = m->next)
		for (unsigned i = 0; i < m->n; i++) {
			const struct smartiod_bar_piece *p = &m->piece[i];

			if (!m->closed && !smartiod_borrow_lost(b) && !smartiod_borrow_ended(b) &&
			    p->view)
				note(having, b->node, PAIR_VIEW, b->id, p->view, p->grant);
			if (b->node != d->node && !p->released)
				note(having, b->node, PAIR_GRANT, p->grant, 0, 0);
		}
}

static void has_borrow(const struct smartiod *d, const struct smartiod_borrow *b)
{
	has_bars(d, b);
	if (smartiod_borrow_lost(b) || smartiod_borrow_ended(b) || !b->id)
		return;
	note(having, b->node, PAIR_BORROW, b->id, b->device->fdid, 0);
	for (const struct smartiod_dma_handle *h = b->dma; h; h = h->next)
		note(having, b->node, PAIR_DMA, b->id, h->map, 0);
	for (const struct smartiod_placed *p = b->placed; p; p = p->next)
		note(having, b->node, PAIR_PLACED, b->device->fdid, p->segment->uid, 0);
}

/* What a device reaches elsewhere; of each that goes through a window its requester entry. */
static void has_dma(const struct smartiod *d, const struct smartiod_dma *m)
{
	if (m->grant)
		note(having, m->exporter, PAIR_GRANT, m->grant, 0, 0);
	if (m->view && !m->cut && !m->kept) /* what is kept is the daemon's own */
		note(having, m->exporter, PAIR_VIEW, m->bar_borrow, m->view, m->grant);
	if (m->window)
		note(having, d->node, PAIR_REQUESTER, m->loan->device->fdid, m->adapter, 0);
}

static void gives_device(const struct smartiod *d, const struct smartiod_device *dev)
{
	for (const struct smartiod_dev_seg *s = dev->lent->segs; s; s = s->next)
		if (!s->segment)
			note(giving, s->node, PAIR_PLACED, dev->fdid, s->uid, 0);
	for (unsigned a = 0; a < SIO_MAX_ADAPTERS; a++)
		for (unsigned k = 0; k < dev->lent->requester[a].users; k++)
			note(giving, d->node, PAIR_REQUESTER, dev->fdid, a,
			     dev->lent->requester[a].id == 0);
	for (const struct smartiod_vector *v = dev->lent->vectors; v; v = v->next)
		if (v->link.node != d->node &&
		    (v->state == SMARTIOD_VECTOR_ADMITTING || v->state == SMARTIOD_VECTOR_SETTING ||
		     v->state == SMARTIOD_VECTOR_LIVE))
			note(having, d->node, PAIR_REQUESTER, dev->fdid, v->link.adapter, 0);
}

static void devices(struct smartiod *d)
{
	EACH(n, d->devices)
	{
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		note_device(d, dev);
		if (dev->node == d->node)
			gives_device(d, dev);
	}
	EACH(n, d->loans)
	gives_loan(d, SMARTIOD_OF(n, struct smartiod_loan, by_id));
	EACH(n, d->dmas)
	has_dma(d, SMARTIOD_OF(n, struct smartiod_dma, by_id));
	for (const struct smartiod_dma *m = d->loose; m; m = m->next)
		has_dma(d, m);
	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next)
		has_borrow(d, b);
}

void pairs_read(unsigned host, struct pair_list *gives, struct pair_list *has)
{
	struct smartiod *d = sim_host[host].daemon;

	giving = gives;
	having = has;
	gives->n = has->n = 0;
	memset(gives->sum, 0, sizeof(gives->sum));
	memset(has->sum, 0, sizeof(has->sum));
	peers(d);
	gives_segments(d);
	has_segments(d);
	members(d, host);
	devices(d);
}
