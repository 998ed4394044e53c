/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake port: does what it is told by the contract of smartio/uapi.h (port_tables.c: owners,
 * quarantine), and checks what a port can check: a MAP needs the grant it names, a grant must not
 * end under a map.
 */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "port.h"

/* ---- owners ---- */

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

/* Of this host's own, or of a descriptor that came along. */
static void memory(struct world *w, unsigned host, const struct sio_req *req, uint64_t size)
{
	struct world_res *r;
	struct sio_evt_import evt = {.size = (size + 4095) / 4096 * 4096}; /* longer than ALLOC's */
	const size_t len = req->op == SIO_OP_IMPORT ? sizeof(evt) : sizeof(struct sio_evt_alloc);
	int fd;

	if (!owner_lives(w, host, req->owner)) {
		world_answer_error(w, host, req, -ENOENT, "no such owner");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_MEM, req->owner);
	r->size = evt.size;
	if (req->op == SIO_OP_ALLOC)
		r->cookie = ((const struct sio_req_alloc *)(const void *)req)->user_cookie;
	evt.id = r->id;
	evt.address = r->address = 0x100000000ULL + r->id * 0x10000000;
	fd = world_fd(w);
	world_answer(w, host, req, &evt, len, &fd, 1);
}

static void end_id(struct world *w, unsigned host, const struct sio_req *req, uint32_t kind,
		   uint64_t id)
{
	struct world_res *r = world_res_find(w, host, kind, id);

	if (!r) {
		world_answer_error(w, host, req, -ENOENT, "no such id");
	} else if (kind != SIO_KIND_GRANT && world_port_in_use(w, r)) {
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

static unsigned other_host(struct world *w, uint32_t node)
{
	unsigned i = 0;

	while (i < w->n_hosts && w->host[i].node != node)
		i++;
	assert(i < w->n_hosts);
	return i;
}

bool world_leads_nowhere(struct world *w, const struct world_res *r)
{
	const struct world_res *g = r;

	if (r->kind == SIO_KIND_MAP)
		g = world_res_find(w, other_host(w, r->node), SIO_KIND_GRANT, r->target);
	if (g && g->kind == SIO_KIND_GRANT && g->target_kind == SIO_KIND_BAR)
		g = world_res_find(w, g->host, SIO_KIND_BAR, g->target);
	/* Of a grant that was taken back the address alone is left. */
	return !g || g->cut || (g->kind == SIO_KIND_GRANT && !g->target);
}

static void grant(struct world *w, unsigned host, const struct sio_req_grant *req)
{
	struct world_res *r, *source = world_res_find(w, host, req->source_kind, req->source);
	struct sio_evt_grant evt = {.length = req->length};

	if (!source || source->quarantined || !owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such source or owner");
		return;
	}
	if (source->cut) {
		world_answer_error(w, host, &req->h, -ENODEV, "the pages are gone");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_GRANT, req->h.owner);
	r->target = req->source;
	r->target_kind = req->source_kind;
	r->node = req->peer_node;
	r->adapter = req->adapter;
	r->peer_adapter = req->peer_adapter;
	r->size = req->length;
	r->access = req->access;
	evt.id = r->id;
	evt.bus_addr = r->address = 0x8000000000ULL + r->id * 0x10000000;
	if (w->same_message && req->source_kind == SIO_KIND_IRQ)
		evt.bus_addr = r->address = 0xfee00000;
	evt.generation = w->host[host].boot_generation;
	memcpy(evt.token, &r->id, sizeof(r->id));
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
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
	if (!w->link[host][peer] || w->down[host][peer] >> req->adapter & 1) {
		world_answer_error(w, host, &req->h, -ENETDOWN, "link down");
		return;
	}
	if (!g || !g->target || g->node != w->host[host].node ||
	    req->generation != w->host[peer].boot_generation ||
	    !owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -EACCES, "no such grant");
		return;
	}
	if (world_leads_nowhere(w, g)) {
		world_answer_error(w, host, &req->h, -ENODEV, "the pages are gone");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_MAP, req->h.owner);
	r->target = id; /* of the peer: target_kind stays 0 */
	r->node = req->peer_node;
	r->adapter = req->adapter;
	r->peer_adapter =
		req->peer_adapter | (req->h.flags & SIO_MAP_BAR && w->real ? SIO_LIST_BAR : 0);
	r->size = req->length;
	r->cookie = req->bus_addr;
	r->grant = req->grant;
	evt.id = r->id;
	evt.bus_addr = r->address = 0x4000000000ULL + r->id * 0x10000000;
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
	struct world_res *r;
	int fds[3];

	if (!owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_DMA, req->h.owner);
	r->device = req->adapter;
	evt.id = r->id;
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

/*
 * Of groups this world only knows that their memory is memory, or refers to a view that has it.
 * Those of real hosts are exact.
 */
static void mcast(struct world *w, unsigned host, const struct sio_req_mcast *req)
{
	struct sio_evt_mcast evt = {.id = req->target,
				    .mode = w->real ? SIO_MCAST_EXACT : SIO_MCAST_FUSED};
	bool sends = req->what == SIO_MCAST_CONNECT && w->real;
	const struct world_res *view = NULL;
	int fd = -1;

	if (req->source_kind) {
		view = world_res_find(w, host, SIO_KIND_BAR, req->source);
		if (!view || view->quarantined || world_leads_nowhere(w, view)) {
			world_answer_error(w, host, &req->h, -ENODEV, "no such view");
			return;
		}
	}

	if (req->target ? !world_res_find(w, host, SIO_KIND_MEM, req->target)
			: !owner_lives(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner or member");
		return;
	}
	if (!req->target) {
		struct world_res *r = world_res_new(w, host, SIO_KIND_MEM, req->h.owner);

		evt.id = r->id;
		evt.size = r->size = req->length ? (req->length + 4095) / 4096 * 4096 : 8192;
		r->target_kind = view ? SIO_KIND_BAR : 0;
		r->target = view ? view->id : 0;
		r->device = SIO_LIST_PATH(req->adapter, req->group | (req->what == SIO_MCAST_CONNECT
									      ? SIO_LIST_SENDER
									      : SIO_LIST_MEMBER));
		fd = view || sends ? -1 : world_fd(w);
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

void world_port_request(struct world *w, unsigned host, const void *msg, size_t len)
{
	const struct sio_req *req = msg;

	assert(len >= sizeof(*req) && req->size == len && req->reserved == 0);
	/* What gives something back is not refused. */
	if (++w->requests == w->fail_at && req->cookie && req->op != SIO_OP_UNMAP &&
	    req->op != SIO_OP_OWNER_CLOSE) {
		world_answer_error(w, host, req, -ENOSPC, "the test says so");
		return;
	}
	if (req->op == SIO_OP_IMPORT &&
	    ((const struct sio_req_import *)msg)->kind == SIO_IMPORT_DMABUF) {
		memory(w, host, req, ((const struct sio_req_import *)msg)->length);
		return;
	}
	switch (req->op) {
	case SIO_OP_OWNER_NEW:
		owner_new(w, host, msg);
		return;
	case SIO_OP_OWNER_CLOSE:
		owner_close(w, host, req);
		return;
	case SIO_OP_ALLOC:
		memory(w, host, req, ((const struct sio_req_alloc *)msg)->size);
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
	}
	if (world_port_asked(w, host, req) || dma_request(w, host, req))
		return;
	if (!w->port_other || !w->port_other(w, host, req, len))
		world_answer_error(w, host, req,
				   req->op == SIO_OP_DEVICE_LIST ? -ENOENT : -EOPNOTSUPP,
				   "not in this world");
}
