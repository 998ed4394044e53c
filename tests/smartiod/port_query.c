/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fake ports are asked: about themselves, and what their tables hold. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "port.h"

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
				      .entries_total = w->entries ? w->entries : 256,
				      .requesters_total = 32,
				      .window_size = 1ull << 30,
				      .entry_size = 4 << 20};

	if (req->index < w->n_adapters)
		world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
	else
		world_answer_error(w, host, &req->h, -ENODEV, "no such adapter");
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
			.cookie = best->kind == SIO_KIND_BAR	     ? best->access
				  : best->kind == SIO_KIND_DMA_RANGE ? best->watched
				  : best->cookie		     ? best->cookie
								     : best->target,
			.address = best->address,
			.length = best->kind == SIO_KIND_BAR ? best->length : best->size,
			.device = best->kind == SIO_KIND_GRANT || best->kind == SIO_KIND_MAP
					  ? SIO_LIST_PATH(best->adapter, best->peer_adapter)
					  : best->device,
			.node = best->node,
			.grant = best->grant,
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

	assert(req->kind == SIO_KIND_MEM || req->kind == SIO_KIND_BAR ||
	       req->kind == SIO_KIND_IRQ || req->kind == SIO_KIND_MAP);
	if (!r || r->quarantined) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such thing that lives");
		return;
	}
	if (r->cut) {
		world_answer_error(w, host, &req->h, -ENODEV, "the pages are gone");
		return;
	}
	if (r->kind == SIO_KIND_MEM && r->device & SIO_LIST_SENDER) {
		world_answer_error(w, host, &req->h, -EINVAL, "nobody's memory");
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

bool world_port_asked(struct world *w, unsigned host, const struct sio_req *req)
{
	const void *msg = req;

	switch (req->op) {
	case SIO_OP_INFO:
		info(w, host, req);
		return true;
	case SIO_OP_ADAPTER:
		adapter(w, host, msg);
		return true;
	case SIO_OP_STATUS:
		status(w, host, req);
		return true;
	case SIO_OP_LIST:
		list(w, host, msg);
		return true;
	case SIO_OP_IDENTIFY:
		identify(w, host, req);
		return true;
	case SIO_OP_REOPEN:
		if (((const struct sio_req_reopen *)msg)->kind == SIO_KIND_SHADOW)
			return false;
		reopen(w, host, msg);
		return true;
	case SIO_OP_STATS:
		stats(w, host, msg);
		return true;
	default:
		return false;
	}
}
