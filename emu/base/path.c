/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths and their state. A path joins an adapter of this host with one of a peer; it is up while
 * both hosts are, both cables are in, and switches between them lead from one to the other. Each
 * host has a page, sealed against writing by others, in which programs see the state without
 * asking; it changes before any daemon is notified.
 */
#include "emu/base/state.h"
#include "smartio/io.h"

#define MAX_PATHS_PER_PAIR (SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS)

int emu_paths_init(struct emu_host *h, struct sio_err *reterr)
{
	const struct emu_room *r = h->room;
	size_t peers = r->max_hosts + r->topo->n_machines;

	h->path = calloc(peers * MAX_PATHS_PER_PAIR, sizeof(*h->path));
	if (!h->path)
		return sio_fail(reterr, -ENOMEM,
				"host %s: no memory for its paths: " SIO_MORE_MEMORY,
				h->topo->name);
	return 0;
}

void emu_paths_done(struct emu_host *h)
{
	free(h->path);
	h->path = NULL;
	h->n_paths = 0;
}

/*
 * A reader compares generation and errors with those it saw before: the state is written first, so
 * that whoever sees the old generation may at worst see the new state too early. The first barrier
 * pairs with those in sio_sequence_begin() and judge_path(), the second with the read in
 * sio_push_stores(): what is lost from now on is lost behind the page.
 */
static void publish(struct emu_host *h, unsigned index)
{
	struct sio_status_page *page = h->status.data;
	const struct emu_path *p = &h->path[index];

	if (!page)
		return;
	if (p->state == SIO_LINK_UP)
		sio_write64(&page->path[index].peer_boot, emu_path_start(h, p));
	sio_write32(&page->path[index].state, p->state);
	sio_to_fabric_barrier();
	sio_write32(&page->path[index].errors, __atomic_load_n(&p->errors, __ATOMIC_RELAXED));
	sio_write32(&page->path[index].generation, p->generation);
	sio_to_fabric_barrier();
}

static void describe(struct emu_host *h, unsigned index)
{
	struct sio_status_page *page = h->status.data;
	const struct emu_path *p = &h->path[index];

	sio_write32(&page->path[index].adapter, p->adapter);
	sio_write32(&page->path[index].peer_node, h->room->host[p->peer_host].topo->node);
	sio_write32(&page->path[index].peer_adapter, p->peer_adapter);
	publish(h, index);
}

/* As many as the host may ever have while it is up. */
static uint32_t room_for_paths(const struct emu_host *h)
{
	const struct emu_room *r = h->room;

	return emu_grows(r) ? r->max_hosts * MAX_PATHS_PER_PAIR : h->n_paths;
}

int emu_status_new(struct emu_host *h)
{
	struct emu_room *r = h->room;
	struct sio_status_page *page;
	uint32_t room = room_for_paths(h);
	size_t bytes = (SIO_STATUS_BYTES(room) + EMU_PAGE - 1) & ~(size_t)(EMU_PAGE - 1);
	int rc = r->ops->mem_new(r->ctx, "status", bytes, &h->status);

	if (rc < 0) {
		memset(&h->status, 0, sizeof(h->status));
		return rc;
	}
	page = h->status.data;
	sio_write32(&page->magic, SIO_STATUS_MAGIC);
	sio_write32(&page->version, SIO_PORT_VERSION);
	sio_write32(&page->count, h->n_paths);
	sio_write32(&page->room, room);
	for (unsigned i = 0; i < h->n_paths; i++)
		describe(h, i);
	rc = r->ops->mem_seal(r->ctx, &h->status);
	if (rc < 0)
		emu_status_free(h);
	return rc;
}

/* One that is new since the host was started. Whoever sees the count sees what it counts. */
static void extend(struct emu_host *h, unsigned index)
{
	struct sio_status_page *page = h->status.data;

	if (!page)
		return;
	describe(h, index);
	sio_to_fabric_barrier(); /* pairs with paths() */
	sio_write32(&page->count, index + 1);
}

static struct emu_path *any_path(struct emu_host *h, unsigned adapter, unsigned peer_host,
				 unsigned peer_adapter)
{
	for (unsigned k = 0; k < h->n_paths; k++) {
		struct emu_path *p = &h->path[k];

		if (p->adapter == adapter && p->peer_host == peer_host &&
		    p->peer_adapter == peer_adapter)
			return p;
	}
	return NULL;
}

static void follow(struct emu_host *h, unsigned peer_host, const struct sio_path *found)
{
	struct emu_path *p = any_path(h, found->adapter, peer_host, found->peer_adapter);
	const struct emu_path *other =
		any_path(&h->room->host[peer_host], found->peer_adapter, h->index, found->adapter);

	if (p) {
		p->gone = false;
		return;
	}
	h->path[h->n_paths] = (struct emu_path){.adapter = found->adapter,
						.peer_host = peer_host,
						.peer_adapter = found->peer_adapter,
						.turn = other ? other->turn : 0};
	extend(h, h->n_paths++);
}

void emu_paths_follow(struct emu_host *h)
{
	const struct sio_topology *t = h->room->topo;
	struct sio_path found[MAX_PATHS_PER_PAIR];

	for (unsigned k = 0; k < h->n_paths; k++)
		h->path[k].gone = true;
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++) {
		unsigned n = 0;

		if (i != h->index && !(h->machine && i >= t->n_hosts))
			n = sio_topology_paths(t, h->topo->node, t->host[i].node, found,
					       MAX_PATHS_PER_PAIR);
		for (unsigned k = 0; k < n && k < MAX_PATHS_PER_PAIR; k++)
			follow(h, i, &found[k]);
	}
}

void emu_status_free(struct emu_host *h)
{
	struct emu_room *r = h->room;

	if (h->status.data)
		r->ops->mem_free(r->ctx, &h->status);
	memset(&h->status, 0, sizeof(h->status));
}

int emu_op_status(struct emu_request *rq, const void *msg)
{
	struct sio_evt_status evt;

	(void)msg;
	memset(&evt, 0, sizeof(evt));
	evt.size = rq->host->status.size;
	emu_answer(rq, &evt, sizeof(evt), &rq->host->status.fd, 1);
	return 0;
}

bool emu_adapter_linked(const struct emu_adapter *a)
{
	return a->cable && sio_outage_port_in(a->host->room->outage, a->topo);
}

bool emu_adapters_joined(const struct emu_adapter *a, const struct emu_adapter *b)
{
	return a->cable && b->cable && sio_outage_joins(a->host->room->outage, a->topo, b->topo);
}

static bool is_on(const struct emu_host *h, unsigned adapter)
{
	return h->machine ? h->adapter[adapter].start != 0 : h->up;
}

static bool path_is_up(const struct emu_host *h, const struct emu_path *p)
{
	const struct emu_host *peer = &h->room->host[p->peer_host];

	return !p->gone && is_on(h, p->adapter) && is_on(peer, p->peer_adapter) &&
	       emu_adapters_joined(&h->adapter[p->adapter], &peer->adapter[p->peer_adapter]);
}

static uint32_t links_of(const struct emu_host *h, const struct emu_path *p)
{
	return sio_outage_hops(h->room->outage, &h->topo->adapter[p->adapter],
			       &h->room->host[p->peer_host].topo->adapter[p->peer_adapter]);
}

static uint64_t boot_of(const struct emu_host *h, unsigned adapter)
{
	return h->machine ? h->adapter[adapter].start : h->boot_generation;
}

static void report_state(struct emu_host *h, struct emu_path *p, uint32_t state)
{
	const struct emu_host *peer = &h->room->host[p->peer_host];
	struct sio_evt_link evt;

	memset(&evt, 0, sizeof(evt));
	evt.adapter = p->adapter;
	evt.peer_node = peer->topo->node;
	evt.peer_adapter = p->peer_adapter;
	evt.state = state;
	evt.generation = state == SIO_LINK_UP ? boot_of(peer, p->peer_adapter) : 0;
	evt.turn = p->turn;
	evt.hops = state == SIO_LINK_UP ? p->hops : 0;
	emu_event(h, &evt, sizeof(evt), SIO_EV_LINK);
}

static void tell(struct emu_host *h, struct emu_path *p)
{
	report_state(h, p, p->state);
	if (h->overflow)
		return;
	p->reported = p->generation;
	p->reported_hops = p->hops;
}

/* After events were dropped. A link that is up may have been down, which is reported, too. */
void emu_links_report_again(struct emu_host *h)
{
	for (unsigned i = 0; i < h->n_adapters; i++)
		emu_link_report(&h->adapter[i]);
	for (unsigned k = 0; k < h->n_paths; k++) {
		struct emu_path *p = &h->path[k];

		if (p->reported == p->generation && p->reported_hops == p->hops)
			continue;
		if (p->reported != p->generation && p->state == SIO_LINK_UP)
			report_state(h, p, SIO_LINK_DOWN);
		tell(h, p);
	}
}

void emu_link_report(struct emu_adapter *a)
{
	struct sio_evt_link evt;

	memset(&evt, 0, sizeof(evt));
	evt.adapter = a->index;
	evt.peer_node = a->host->topo->node;
	evt.peer_adapter = a->index;
	evt.state = emu_adapter_linked(a) ? SIO_LINK_UP : SIO_LINK_DOWN;
	evt.generation = emu_adapter_linked(a) ? a->host->boot_generation : 0;
	emu_event(a->host, &evt, sizeof(evt), SIO_EV_LINK);
}

void emu_paths_update(struct emu_room *r)
{
	for (unsigned i = 0; i < r->n_hosts + r->n_machines; i++) {
		struct emu_host *h = &r->host[i];

		for (unsigned k = 0; k < h->n_paths; k++) {
			struct emu_path *p = &h->path[k];
			uint32_t state = path_is_up(h, p) ? SIO_LINK_UP : SIO_LINK_DOWN;
			uint32_t hops = state == SIO_LINK_UP ? links_of(h, p) : p->hops;

			p->changed = state != p->state || hops != p->hops;
			p->hops = hops;
			if (state == p->state)
				continue;
			p->state = state;
			p->generation++;
			publish(h, k);
		}
	}
	emu_invalidate(r);
	for (unsigned i = 0; i < r->n_hosts; i++) {
		struct emu_host *h = &r->host[i];

		for (unsigned k = 0; h->up && k < h->n_paths; k++)
			if (h->path[k].changed)
				tell(h, &h->path[k]);
	}
}

void emu_paths_turn(struct emu_host *h, unsigned adapter)
{
	for (unsigned k = 0; k < h->n_paths; k++) {
		struct emu_path *p = &h->path[k];

		if (p->adapter != adapter || p->gone)
			continue;
		p->turn++;
		emu_path_find(&h->room->host[p->peer_host], p->peer_adapter, h->index, adapter)
			->turn++;
	}
}

uint64_t emu_path_start(const struct emu_host *h, const struct emu_path *p)
{
	return SIO_LINK_START(boot_of(&h->room->host[p->peer_host], p->peer_adapter), p->turn);
}

struct emu_path *emu_path_find(struct emu_host *h, unsigned adapter, unsigned peer_host,
			       unsigned peer_adapter)
{
	struct emu_path *p = any_path(h, adapter, peer_host, peer_adapter);

	return p && !p->gone ? p : NULL;
}

/* Of devices and, on threads of their own, of DMA engines. */
void emu_path_lost(struct emu_host *h, struct emu_path *p)
{
	__atomic_fetch_add(&p->errors, 1, __ATOMIC_RELAXED);
	publish(h, (unsigned)(p - h->path));
}

void emu_paths_errors(struct emu_host *h, unsigned adapter, uint32_t n)
{
	for (unsigned k = 0; k < h->n_paths; k++) {
		struct emu_path *p = &h->path[k], *back;
		struct emu_host *peer = &h->room->host[p->peer_host];

		if (p->adapter != adapter || p->gone)
			continue;
		back = emu_path_find(peer, p->peer_adapter, h->index, adapter);
		__atomic_fetch_add(&p->errors, n, __ATOMIC_RELAXED);
		publish(h, k);
		__atomic_fetch_add(&back->errors, n, __ATOMIC_RELAXED);
		publish(peer, (unsigned)(back - peer->path));
	}
}
