/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines beside the room: accesses of its hosts to them, and of them to its hosts. In both
 * directions exactly what the exporter has granted can be reached. It is looked up again for each
 * access, so that neither an IOMMU nor the rest of a page lets more through.
 */
#include "emu/memory/memory.h"
#include "smartio/io.h"

/* ---- from a host to a machine ---- */

/* What was asked for is granted, but cannot be mapped. */
static int no_memory(struct emu_request *rq, const struct sio_req_map *m,
		     const struct emu_host *peer)
{
	return sio_fail(&rq->err, -EOPNOTSUPP,
			"MAP: %#" PRIx64 " + %#" PRIx64
			" of machine %s is no memory in one piece: of its devices' registers "
			"emulated hosts get doorbells alone",
			(uint64_t)m->bus_addr, (uint64_t)m->length, peer->topo->name);
}

int emu_machine_find(struct emu_request *rq, const struct sio_req_map *m,
		     const struct emu_host *peer, struct emu_reached *ret,
		     enum emu_machine_way *ret_way)
{
	const struct emu_reach x = {.node = rq->host->topo->node,
				    .adapter = m->adapter,
				    .machine = peer->topo->node,
				    .machine_adapter = m->peer_adapter,
				    .address = m->bus_addr,
				    .length = m->length,
				    .file = true};
	struct emu_room *r = rq->host->room;
	uint32_t message;
	int rc = -EACCES;

	memcpy(&message, m->token + SIO_TOKEN_MESSAGE, sizeof(message));
	*ret_way = EMU_BY_BELL;
	if (m->length == SIO_MSI_BYTES && r->ops->machine_message &&
	    r->ops->machine_message(r->ctx, &x, message, false) == 0)
		return 0;
	if (m->bus_addr % EMU_PAGE || m->length % EMU_PAGE)
		return sio_fail(&rq->err, -EINVAL,
				"MAP: range %#" PRIx64 " + %#" PRIx64 " is not of whole pages",
				(uint64_t)m->bus_addr, (uint64_t)m->length);
	*ret_way = EMU_BY_FILE;
	if (r->ops->machine_memory)
		rc = r->ops->machine_memory(r->ctx, &x, ret);
	if (rc == -EACCES)
		return sio_fail(&rq->err, rc,
				"MAP: machine %s granted us nothing at %#" PRIx64 " + %#" PRIx64,
				peer->topo->name, (uint64_t)m->bus_addr, (uint64_t)m->length);
	if (rc == 0 && ret->fd >= 0)
		return 0;
	*ret_way = EMU_BY_STORES;
	if (m->h.flags & SIO_MAP_DOORBELLS && r->ops->machine_store &&
	    r->ops->machine_store(r->ctx, &x, NULL) == 0)
		return 0;
	return no_memory(rq, m, peer);
}

int emu_machine_bell(struct emu_request *rq, struct emu_map *map, int *ret_fd)
{
	struct emu_room *r = rq->host->room;
	int fd, rc = emu_object_hold(rq, &map->o);

	if (rc < 0)
		return rc;
	rc = r->ops->event_new(r->ctx, &fd);
	if (rc < 0)
		return sio_fail(&rq->err, rc, "MAP: no event descriptor");
	rc = r->ops->watch_new(r->ctx, rq->host->index, map->o.id, SIO_WATCH_EVENT, fd, 0, 0);
	if (rc < 0) {
		r->ops->close(r->ctx, fd);
		return sio_fail(&rq->err, rc, "MAP: nobody can wait for its event descriptor");
	}
	map->bell = true;
	*ret_fd = fd;
	return 0;
}

bool emu_machine_leads_there(const struct emu_map *map)
{
	struct emu_path *p =
		emu_path_find(map->o.host, map->adapter, map->peer_host, map->peer_adapter);

	return p && p->state == SIO_LINK_UP &&
	       emu_path_start(map->o.host, p) == map->peer_generation;
}

void emu_machine_ring(struct emu_map *map)
{
	struct emu_host *h = map->o.host;
	struct emu_room *r = h->room;
	int rc;
	const struct emu_reach x = {.node = h->topo->node,
				    .adapter = map->adapter,
				    .machine = r->host[map->peer_host].topo->node,
				    .machine_adapter = map->peer_adapter,
				    .address = map->bus_addr,
				    .length = SIO_MSI_BYTES};

	if (!map->bell || !emu_machine_leads_there(map))
		return;
	rc = r->ops->machine_message(r->ctx, &x, map->message, true);
	emu_count_message(&h->adapter[map->adapter].count);
	emu_count_message(&r->host[map->peer_host].adapter[map->peer_adapter].count);
	if (rc < 0)
		h->adapter[map->adapter].count.faults++;
	if (rc == -EBUSY && !map->limit_said)
		emu_log(r,
			"%s: a trigger of interrupt message %#x of machine %s was dropped: the "
			"limit of messages that it has not taken yet is reached",
			h->topo->name, map->message, r->host[map->peer_host].topo->name);
	map->limit_said |= rc == -EBUSY;
}

/* ---- from a machine to a host ---- */

/* An interrupt takes its own message, of which there may be several at an address. */
static int deliver(struct emu_room *r, const struct emu_grant *g, const struct emu_inbound *x)
{
	const struct emu_irq *q = (const struct emu_irq *)g->source;
	uint32_t message;

	if (!x->data || x->len != SIO_MSI_BYTES)
		return -EPERM;
	memcpy(&message, x->data, sizeof(message));
	if (message != emu_irq_message(q))
		return -EPERM;
	emu_count_message(&g->o.host->adapter[g->adapter].count);
	r->ops->event_signal(r->ctx, q->fd);
	return 1;
}

static uint8_t *data_of(const struct emu_grant *g, uint64_t in)
{
	const struct emu_mem *mem = g->source->kind == SIO_KIND_MEM
					    ? &((const struct emu_ram *)g->source)->mem
					    : emu_bar_mem((const struct emu_bar *)g->source);
	uint64_t offset = g->offset + in;

	if (g->source->kind == SIO_KIND_BAR)
		offset += ((const struct emu_bar *)g->source)->offset;
	return mem->data ? (uint8_t *)mem->data + offset : NULL;
}

/* What one grant says to it. */
static int ask(struct emu_room *r, struct emu_grant *g, const struct emu_inbound *x, uint8_t **ret)
{
	struct sio_pcie_count *count = &g->o.host->adapter[g->adapter].count.pcie;

	if (g->source->kind == SIO_KIND_IRQ)
		return deliver(r, g, x);
	if (!(g->access & (x->data ? SIO_ACCESS_WRITE : SIO_ACCESS_READ)))
		return -EPERM;
	*ret = data_of(g, x->address - g->bus_addr);
	if (!*ret)
		return -EACCES;
	if (x->data)
		sio_pcie_write(&r->pcie, x->address, x->len, count);
	else
		sio_pcie_read(&r->pcie, x->address, x->len, count);
	return 0;
}

int emu_machine_inbound(struct emu_room *r, const struct emu_inbound *x, uint8_t **ret)
{
	const struct sio_topo_host *host = sio_topology_host(r->topo, x->node);
	const struct sio_topo_host *machine = sio_topology_member(r->topo, x->machine);
	struct emu_grant *g;
	size_t at = SIZE_MAX;
	int rc = -EACCES;

	if (!host || !machine || x->len == 0)
		return -EACCES;
	while ((g = emu_inward_next(&r->host[host - r->topo->host].inward, x->address, x->len,
				    &at))) {
		if (g->cut || !g->source || g->adapter != x->adapter ||
		    g->peer_host != (unsigned)(machine - r->topo->host) ||
		    g->peer_adapter != x->machine_adapter)
			continue;
		rc = ask(r, g, x, ret);
		if (rc >= 0)
			break;
	}
	return rc;
}
