/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake port: keeps books of resources by the contract of smartio/uapi.h (owners, quarantine), and
 * checks what a port can check: a MAP needs the grant it names, a grant must not end under a map.
 */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port.h"

/* ---- resources ---- */

struct world_res *world_res_find(struct world *w, unsigned host, uint32_t kind, uint64_t id)
{
	struct world_res *r = w->res;

	while (r && (r->host != host || r->kind != kind || r->id != id))
		r = r->next;
	return r;
}

struct world_res *world_res_new(struct world *w, unsigned host, uint32_t kind, uint64_t owner)
{
	struct world_res *r = world_calloc(1, sizeof(*r));

	assert(r);
	r->host = host;
	r->kind = kind;
	r->owner = owner;
	r->id = ++w->next_id;
	if (w->falling)
		r->id = UINT32_MAX - r->id;
	r->next = w->res;
	w->res = r;
	return r;
}

void world_res_free(struct world *w, struct world_res *r)
{
	struct world_res **link = &w->res;

	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	/* What ends with its target does so at the next world_settle_memory(). */
	for (struct world_res *u = w->res; u; u = u->next)
		if (u->host == r->host && (u->watched == r->id || u->channel == r->id))
			u->quarantined = true;
	free(r);
}

unsigned world_resources(const struct world *w, uint32_t kind)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += !kind || r->kind == kind;
	return n;
}

unsigned world_count(const struct world *w, unsigned host, uint32_t kind)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += r->host == host && r->kind == kind;
	return n;
}

/* Something of this host refers to @r. */
static bool in_use(const struct world *w, const struct world_res *r)
{
	for (const struct world_res *u = w->res; u; u = u->next)
		if (u->host == r->host && u->target == r->id && u->target_kind == r->kind)
			return true;
	return false;
}

/* ---- events ---- */

void world_answer(struct world *w, unsigned host, const struct sio_req *req, void *evt, size_t len,
		  const int *fds, unsigned n_fds)
{
	struct sio_evt *h = evt;

	h->size = (uint32_t)len;
	h->op = req->op;
	h->cookie = req->cookie;
	h->owner = req->owner;
	world_port_push(w, host, evt, len, fds, n_fds);
}

void world_answer_error(struct world *w, unsigned host, const struct sio_req *req, int error,
			const char *text)
{
	struct sio_evt_error evt = {.h.error = error};

	snprintf(evt.text, sizeof(evt.text), "%s", text);
	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

void world_answer_ok(struct world *w, unsigned host, const struct sio_req *req)
{
	struct sio_evt_ok evt = {.h.error = 0};

	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

void world_port_event(struct world *w, unsigned host, uint32_t op, uint64_t owner, void *evt,
		      size_t len)
{
	struct sio_evt *h = evt;

	h->size = (uint32_t)len;
	h->op = op;
	h->owner = owner;
	world_port_push(w, host, evt, len, NULL, 0);
}

/* ---- owners ---- */

static bool owns(const struct world *w, unsigned host, uint64_t owner)
{
	for (const struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->owner == owner)
			return true;
	return false;
}

void world_settle_memory(struct world *w, unsigned host)
{
	bool again = true;

	while (again) {
		again = false;
		for (struct world_res *r = w->res, *next; r; r = next) {
			next = r->next;
			if (r->host != host || !r->quarantined || r->kind == SIO_KIND_GRANT ||
			    (r->kind == SIO_KIND_DMAMAP && !r->cut) || in_use(w, r) ||
			    (r->kind == WORLD_GRAVE && owns(w, host, r->id)))
				continue;
			world_res_free(w, r);
			again = true;
			break;
		}
	}
}

static const struct world_res *child_of(const struct world *w, unsigned host, uint64_t owner)
{
	const struct world_res *r = w->res;

	while (r && (r->host != host || r->kind != SIO_KIND_OWNER || r->owner != owner))
		r = r->next;
	return r;
}

void world_owner_end(struct world *w, unsigned host, uint64_t owner, bool tell)
{
	struct sio_evt_owner_gone evt = {.bytes = 0};
	const struct world_res *child;

	while ((child = child_of(w, host, owner)))
		world_owner_end(w, host, child->id, true);
	for (struct world_res *r = w->res, *next; r; r = next) {
		next = r->next;
		if (r->host != host)
			continue;
		if (r->kind == SIO_KIND_OWNER && r->id == owner) {
			r->kind = WORLD_GRAVE;
			r->quarantined = true;
		} else if (r->owner == owner) {
			r->quarantined = true;
			evt.dmamaps += r->kind == SIO_KIND_DMAMAP;
			evt.grants += r->kind == SIO_KIND_GRANT;
		}
	}
	if (w->owner_other)
		w->owner_other(w, host, owner);
	world_settle_memory(w, host);
	if (tell)
		world_port_event(w, host, SIO_EV_OWNER_GONE, owner, &evt, sizeof(evt));
}

static void owner_new(struct world *w, unsigned host, const struct sio_req_owner_new *req)
{
	bool child = req->h.flags & SIO_OWNER_CHILD;
	struct sio_evt_owner_new evt = {.id = 0};
	struct world_res *r;
	int fd = -1;

	assert(w->real || !child);
	if (req->h.owner && !world_res_find(w, host, SIO_KIND_OWNER, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such parent");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_OWNER, req->h.owner);
	r->cookie = req->user_cookie;
	evt.id = r->id;
	if (!child)
		fd = world_fd(w);
	world_answer(w, host, &req->h, &evt, sizeof(evt), &fd, !child);
}

static void owner_close(struct world *w, unsigned host, const struct sio_req *req)
{
	if (!world_res_find(w, host, SIO_KIND_OWNER, req->owner)) {
		world_answer_error(w, host, req, -ENOENT, "no such owner");
		return;
	}
	world_answer_ok(w, host, req);
	world_owner_end(w, host, req->owner, true);
}

static bool owner_lives(struct world *w, unsigned host, uint64_t owner)
{
	return owner == 0 || world_res_find(w, host, SIO_KIND_OWNER, owner);
}

/* ---- memory, grants, maps ---- */

static void alloc(struct world *w, unsigned host, const struct sio_req_alloc *req)
{
	struct world_res *r;
	struct sio_evt_alloc evt = {.size = (req->size + 4095) / 4096 * 4096};
	int fd;

	if (!owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_MEM, req->h.owner);
	r->size = evt.size;
	evt.id = r->id;
	evt.address = r->address = 0x100000000ULL + r->id * 0x10000000;
	fd = world_fd(w);
	world_answer(w, host, &req->h, &evt, sizeof(evt), &fd, 1);
}

static void end_id(struct world *w, unsigned host, const struct sio_req *req, uint32_t kind,
		   uint64_t id)
{
	struct world_res *r = world_res_find(w, host, kind, id);

	if (!r) {
		world_answer_error(w, host, req, -ENOENT, "no such id");
	} else if (kind != SIO_KIND_GRANT && in_use(w, r)) {
		world_answer_error(w, host, req, -EBUSY, "in use");
	} else {
		world_res_free(w, r);
		world_settle_memory(w, host);
		world_answer_ok(w, host, req);
	}
}

static void give(struct world *w, unsigned host, const struct sio_req_give *req)
{
	struct world_res *mem = world_res_find(w, host, SIO_KIND_MEM, req->id);
	uint64_t from = mem ? mem->owner : 0;

	if (!mem || mem->quarantined || (req->h.owner && req->h.owner != from)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such memory");
		return;
	}
	for (struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->owner == from &&
		    (r == mem || (r->kind == SIO_KIND_GRANT && r->target == mem->id)))
			r->owner = 0;
	world_answer_ok(w, host, &req->h);
}

static void grant(struct world *w, unsigned host, const struct sio_req_grant *req)
{
	struct world_res *r, *source = world_res_find(w, host, req->source_kind, req->source);
	struct sio_evt_grant evt = {.length = req->length};

	if (!source || source->quarantined || !owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such source or owner");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_GRANT, req->h.owner);
	r->target = req->source;
	r->target_kind = req->source_kind;
	r->node = req->peer_node;
	r->adapter = req->adapter;
	r->peer_adapter = req->peer_adapter;
	r->access = req->access;
	evt.id = r->id;
	evt.bus_addr = 0x8000000000ULL + r->id * 0x10000000;
	evt.generation = w->host[host].boot_generation;
	memcpy(evt.token, &r->id, sizeof(r->id));
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static unsigned other_host(struct world *w, uint32_t node)
{
	unsigned i = 0;

	while (i < w->n_hosts && w->host[i].node != node)
		i++;
	assert(i < w->n_hosts);
	return i;
}

/* Somebody's device has @map of @host, or a program, with the transfers of its engine. */
static bool is_used(const struct world *w, const struct world_res *map)
{
	for (unsigned i = 0; i < w->n_clients; i++)
		if (w->client[i].host == map->host && w->client[i].owner == map->owner)
			return true;
	for (const struct world_res *u = w->res; u; u = u->next)
		if (u->host == map->host && u->kind == SIO_KIND_DMAMAP &&
		    u->target_kind == SIO_KIND_MAP && u->target == map->id)
			return true;
	return false;
}

/* Its address may become another's. Without an IOMMU that is one of memory only. */
static void address_ends(struct world *w, unsigned host, const struct world_res *r)
{
	const struct world_res *bar = world_res_find(w, host, SIO_KIND_BAR, r->target);
	unsigned peer = other_host(w, r->node);
	bool cut = bar && bar->cut; /* there is nothing left that it could lead to */
	bool memory = r->target_kind == SIO_KIND_MEM;

	for (const struct world_res *m = w->res; m; m = m->next) {
		if (m->host != peer || m->kind != SIO_KIND_MAP || m->target != r->id)
			continue;
		w->bad_ends += w->link[host][peer] && !w->lossy && !cut;
		w->wild +=
			(memory || (w->iommu && r->target_kind != SIO_KIND_IRQ)) && is_used(w, m);
	}
}

/* The address alone stays. */
static void retire(struct world *w, unsigned host, const struct sio_req_ungrant *req,
		   struct world_res *r)
{
	if (!w->iommu || r->target_kind == SIO_KIND_IRQ) {
		world_answer_error(w, host, &req->h, -EOPNOTSUPP, "a physical address");
		return;
	}
	r->target = r->owner = 0;
	r->target_kind = 0;
	r->quarantined = true;
	world_settle_memory(w, host);
	world_answer_ok(w, host, &req->h);
}

static void ungrant(struct world *w, unsigned host, const struct sio_req_ungrant *req)
{
	struct world_res *r = world_res_find(w, host, SIO_KIND_GRANT, req->id);

	if (r && req->h.flags & SIO_UNGRANT_KEEP_ADDRESS) {
		retire(w, host, req, r);
		return;
	}
	if (r)
		address_ends(w, host, r);
	end_id(w, host, &req->h, SIO_KIND_GRANT, req->id);
}

static void map(struct world *w, unsigned host, const struct sio_req_map *req)
{
	unsigned peer = other_host(w, req->peer_node);
	struct sio_evt_map evt = {.length = req->length, .offset = 0x3000};
	struct world_res *r, *g;
	uint64_t id;
	int fd;

	memcpy(&id, req->token, sizeof(id));
	g = world_res_find(w, peer, SIO_KIND_GRANT, id);
	if (!w->link[host][peer]) {
		world_answer_error(w, host, &req->h, -ENETDOWN, "link down");
		return;
	}
	if (!g || !g->target || g->node != w->host[host].node ||
	    req->generation != w->host[peer].boot_generation ||
	    !owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -EACCES, "no such grant");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_MAP, req->h.owner);
	r->target = id; /* of the peer: target_kind stays 0 */
	r->node = req->peer_node;
	evt.id = r->id;
	evt.bus_addr = 0x4000000000ULL + r->id * 0x10000000;
	if (g->target_kind == SIO_KIND_IRQ)
		evt.map_flags = SIO_MAP_TRIGGER;
	else if (g->target_kind == SIO_KIND_BAR && !(g->access & SIO_ACCESS_WRITE))
		evt.map_flags = SIO_MAP_READ_ONLY;
	fd = world_fd(w);
	world_answer(w, host, &req->h, &evt, sizeof(evt), &fd, 1);
}

static void irq_new(struct world *w, unsigned host, const struct sio_req *req)
{
	struct sio_evt_irq_new evt = {.id = 0};
	int fds[2];

	if (!owner_lives(w, host, req->owner)) {
		world_answer_error(w, host, req, -ENOENT, "no such owner");
		return;
	}
	evt.id = world_res_new(w, host, SIO_KIND_IRQ, req->owner)->id;
	fds[0] = world_fd(w);
	fds[1] = world_fd(w);
	world_answer(w, host, req, &evt, sizeof(evt), fds, 2);
}

/* ---- DMA channels ---- */

static void dma(struct world *w, unsigned host, const struct sio_req_dma *req)
{
	struct sio_evt_dma evt = {.size = 0xb000};
	int fds[3];

	if (!owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner");
		return;
	}
	evt.id = world_res_new(w, host, SIO_KIND_DMA, req->h.owner)->id;
	for (unsigned i = 0; i < 3; i++)
		fds[i] = world_fd(w);
	world_answer(w, host, &req->h, &evt, sizeof(evt), fds, 3);
}

static void dma_attach(struct world *w, unsigned host, const struct sio_req_dma_attach *req)
{
	struct world_res *channel = world_res_find(w, host, SIO_KIND_DMA, req->channel);
	struct world_res *target = world_res_find(w, host, req->target_kind, req->target), *r;
	struct sio_evt_dma_attach evt = {.slot = 0};

	if (!channel || !target || target->quarantined || channel->owner != req->h.owner ||
	    !owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such channel or target");
		return;
	}
	for (const struct world_res *u = w->res; u; u = u->next)
		evt.slot += u->host == host && u->channel == channel->id;
	r = world_res_new(w, host, SIO_KIND_DMA_RANGE, req->h.owner);
	r->watched = target->id;
	r->channel = channel->id;
	evt.id = r->id;
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

/* Of groups this world only knows that their memory is memory. */
static void mcast(struct world *w, unsigned host, const struct sio_req_mcast *req)
{
	struct sio_evt_mcast evt = {.id = req->target, .mode = SIO_MCAST_FUSED};
	int fd = -1;

	if (req->target ? !world_res_find(w, host, SIO_KIND_MEM, req->target)
			: !owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner or member");
		return;
	}
	if (!req->target) {
		struct world_res *r = world_res_new(w, host, SIO_KIND_MEM, req->h.owner);

		evt.id = r->id;
		evt.size = r->size = req->length ? (req->length + 4095) / 4096 * 4096 : 8192;
		fd = world_fd(w);
	}
	world_answer(w, host, &req->h, &evt, sizeof(evt), &fd, fd >= 0);
}

static bool dma_request(struct world *w, unsigned host, const struct sio_req *req)
{
	const struct world_res *range;
	const void *msg = req;

	switch (req->op) {
	case SIO_OP_DMA:
		dma(w, host, msg);
		return true;
	case SIO_OP_MCAST:
		mcast(w, host, msg);
		return true;
	case SIO_OP_DMA_FREE:
		end_id(w, host, req, SIO_KIND_DMA, ((const struct sio_req_dma_free *)msg)->id);
		return true;
	case SIO_OP_DMA_ATTACH:
		dma_attach(w, host, msg);
		return true;
	case SIO_OP_DMA_DETACH:
		range = world_res_find(w, host, SIO_KIND_DMA_RANGE,
				       ((const struct sio_req_dma_detach *)msg)->id);
		if (range && req->owner && range->owner != req->owner)
			world_answer_error(w, host, req, -EPERM, "another's");
		else
			end_id(w, host, req, SIO_KIND_DMA_RANGE,
			       ((const struct sio_req_dma_detach *)msg)->id);
		return true;
	default:
		return false;
	}
}

/* ---- what it is asked ---- */

static void info(struct world *w, unsigned host, const struct sio_req *req)
{
	struct sio_evt_info evt = {
		.version = SIO_PORT_VERSION,
		.world = w->real ? SIO_WORLD_SHIM : SIO_WORLD_SIM,
		.page_size = 4096,
		.adapters = w->n_adapters,
		.boot_generation = w->host[host].boot_generation,
		.served = ~0ULL,
		.ram_total = w->topology->host[host].ram_size,
	};

	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

static void adapter(struct world *w, unsigned host, const struct sio_req_adapter *req)
{
	struct sio_evt_adapter evt = {.index = req->index,
				      .node = w->host[host].node,
				      .link_up = 1,
				      .iommu = w->iommu,
				      .entries_total = 256,
				      .requesters_total = 32,
				      .window_size = 1ull << 30,
				      .entry_size = 4 << 20};

	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static uint32_t listed_as(const struct world_res *r)
{
	return r->kind == WORLD_GRAVE ? SIO_KIND_OWNER : r->kind;
}

static void list(struct world *w, unsigned host, const struct sio_req_list *req)
{
	struct sio_evt_list evt = {.count = 0};
	uint64_t after = req->after;

	for (;;) {
		const struct world_res *best = NULL;

		for (const struct world_res *r = w->res; r; r = r->next)
			if (r->host == host && listed_as(r) == req->kind && r->id > after &&
			    (!best || r->id < best->id))
				best = r;
		if (!best)
			break;
		if (evt.count == SIO_LIST_MAX) {
			evt.more = 1;
			break;
		}
		evt.entry[evt.count++] = (struct sio_list_entry){
			.id = best->id,
			.owner = best->owner,
			.cookie = best->kind == SIO_KIND_BAR ? best->access
				  : best->cookie	     ? best->cookie
							     : best->target,
			.address = best->address,
			.length = best->kind == SIO_KIND_BAR ? best->length : best->size,
			.device = best->device,
			.kind = req->kind,
			.state = best->quarantined ? SIO_STATE_QUARANTINED : SIO_STATE_LIVE};
		after = best->id;
	}
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static void identify(struct world *w, unsigned host, const struct sio_req *req)
{
	const struct world_res *r = world_res_find(w, host, SIO_KIND_OWNER, w->shown);
	struct sio_evt_identify evt = {.id = w->shown, .kind = SIO_KIND_OWNER};

	assert(w->port_fds == 1);
	if (r) {
		evt.state = SIO_STATE_LIVE;
		evt.owner = r->owner;
		evt.user_cookie = r->cookie;
	}
	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

static void reopen(struct world *w, unsigned host, const struct sio_req_reopen *req)
{
	const struct world_res *r = world_res_find(w, host, req->kind, req->id);
	struct sio_evt_reopen evt = {.length = 0};
	int fds[2];

	assert(req->kind == SIO_KIND_MEM || req->kind == SIO_KIND_BAR || req->kind == SIO_KIND_IRQ);
	if (!r || r->quarantined) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such thing that lives");
		return;
	}
	evt.length = r->size;
	fds[0] = world_fd(w);
	if (req->kind == SIO_KIND_IRQ)
		fds[1] = world_fd(w);
	world_answer(w, host, &req->h, &evt, sizeof(evt), fds, req->kind == SIO_KIND_IRQ ? 2 : 1);
}

static void stats(struct world *w, unsigned host, const struct sio_req_stats *req)
{
	struct sio_evt_stats evt = {.count = 1};

	snprintf(evt.counter[0].name, sizeof(evt.counter[0].name), "kind_%u", req->kind);
	evt.counter[0].value = req->id;
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static void status(struct world *w, unsigned host, const struct sio_req *req)
{
	struct sio_evt_status evt = {.size = 4096};
	int fd = world_fd(w);

	world_answer(w, host, req, &evt, sizeof(evt), &fd, 1);
}

void world_port_request(struct world *w, unsigned host, const void *msg, size_t len)
{
	const struct sio_req *req = msg;

	assert(len >= sizeof(*req) && req->size == len && req->reserved == 0);
	/* What gives something back is not refused. */
	if (++w->requests == w->fail_at && req->cookie && req->op != SIO_OP_UNMAP) {
		world_answer_error(w, host, req, -ENOSPC, "the test says so");
		return;
	}
	switch (req->op) {
	case SIO_OP_INFO:
		info(w, host, req);
		return;
	case SIO_OP_ADAPTER:
		adapter(w, host, msg);
		return;
	case SIO_OP_STATUS:
		status(w, host, req);
		return;
	case SIO_OP_OWNER_NEW:
		owner_new(w, host, msg);
		return;
	case SIO_OP_OWNER_CLOSE:
		owner_close(w, host, req);
		return;
	case SIO_OP_ALLOC:
		alloc(w, host, msg);
		return;
	case SIO_OP_FREE:
		end_id(w, host, req, SIO_KIND_MEM, ((const struct sio_req_free *)msg)->id);
		return;
	case SIO_OP_GIVE:
		give(w, host, msg);
		return;
	case SIO_OP_GRANT:
		grant(w, host, msg);
		return;
	case SIO_OP_UNGRANT:
		ungrant(w, host, msg);
		return;
	case SIO_OP_MAP:
		map(w, host, msg);
		return;
	case SIO_OP_UNMAP:
		end_id(w, host, req, SIO_KIND_MAP, ((const struct sio_req_unmap *)msg)->id);
		return;
	case SIO_OP_IRQ_NEW:
		irq_new(w, host, req);
		return;
	case SIO_OP_IRQ_FREE:
		end_id(w, host, req, SIO_KIND_IRQ, ((const struct sio_req_irq_free *)msg)->id);
		return;
	case SIO_OP_LIST:
		list(w, host, msg);
		return;
	case SIO_OP_IDENTIFY:
		identify(w, host, req);
		return;
	case SIO_OP_REOPEN:
		reopen(w, host, msg);
		return;
	case SIO_OP_STATS:
		stats(w, host, msg);
		return;
	}
	if (dma_request(w, host, req))
		return;
	if (!w->port_other || !w->port_other(w, host, req, len))
		world_answer_error(w, host, req,
				   req->op == SIO_OP_DEVICE_LIST ? -ENOENT : -EOPNOTSUPP,
				   "not in this world");
}
