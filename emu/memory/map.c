/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The importer's half of a window: entries of an adapter's look-up table that translate to a
 * granted range. CPUs reach it by the exporter's own memory file, devices through the table.
 */
#include "emu/memory/memory.h"

/* The peer as it is now: joined, up, and in the same start, as the link is, as when it granted. */
static int find_peer(struct emu_request *rq, const struct sio_req_map *m, struct emu_host **ret)
{
	uint64_t start;
	struct emu_room *r = rq->host->room;
	const struct sio_topo_host *peer = sio_topology_member(r->topo, m->peer_node);
	struct emu_path *p = NULL;

	if (peer)
		p = emu_path_find(rq->host, m->adapter, (unsigned)(peer - r->topo->host),
				  m->peer_adapter);
	if (!p)
		return sio_fail(&rq->err, -EHOSTUNREACH,
				"MAP: no path from adapter %u of node %u to "
				"adapter %u of node %u",
				m->adapter, rq->host->topo->node, m->peer_adapter, m->peer_node);
	if (p->state != SIO_LINK_UP)
		return sio_fail(&rq->err, -ENETDOWN,
				"MAP: the path from adapter %u to adapter %u of "
				"node %u is down",
				m->adapter, m->peer_adapter, m->peer_node);
	*ret = &r->host[p->peer_host];
	start = emu_path_start(rq->host, p);
	if (m->generation != start)
		return sio_fail(&rq->err, -ESTALE,
				"MAP: granted in start %" PRIu64 " of node %u, it is "
				"in start %" PRIu64,
				(uint64_t)m->generation, m->peer_node, start);
	return 0;
}

static int check(struct emu_request *rq, const struct sio_req_map *m)
{
	if (m->caching > SIO_CACHE_WRITE_COMBINED)
		return sio_fail(&rq->err, -EINVAL, "MAP: caching %u, 0 to %d are right", m->caching,
				SIO_CACHE_WRITE_COMBINED);
	if (m->length == 0)
		return sio_fail(&rq->err, -EINVAL, "MAP: length 0");
	return 0;
}

/* Of a host of the room. */
static int find_grant(struct emu_request *rq, const struct sio_req_map *m, struct emu_host *peer,
		      struct emu_grant **ret)
{
	*ret = emu_grant_find(peer, m, rq->host->index, m->adapter);
	if (!*ret)
		return sio_fail(&rq->err, -EACCES,
				"MAP: node %u granted us nothing with this token at "
				"%#" PRIx64 " + %#" PRIx64,
				m->peer_node, (uint64_t)m->bus_addr, (uint64_t)m->length);
	if (emu_bar_check(rq, "MAP", (*ret)->source) < 0)
		return rq->err.code;
	if ((*ret)->source->kind != SIO_KIND_IRQ &&
	    (m->bus_addr % EMU_PAGE || m->length % EMU_PAGE))
		return sio_fail(&rq->err, -EINVAL,
				"MAP: range %#" PRIx64 " + %#" PRIx64 " is not of whole pages",
				(uint64_t)m->bus_addr, (uint64_t)m->length);
	return 0;
}

static int take_entries(struct emu_request *rq, struct emu_map *map)
{
	struct emu_adapter *a = &rq->host->adapter[map->adapter];
	const struct sio_lut_target target = {
		.bus = {.node = rq->host->room->host[map->peer_host].topo->node,
			.addr = map->bus_addr},
		.adapter = map->peer_adapter,
		.generation = map->peer_generation,
	};
	int rc = sio_lut_map(&a->lut, &target, map->length, &map->at, &rq->err);

	if (rc < 0)
		return rc;
	rc = emu_check_map(map);
	if (rc < 0)
		sio_lut_unmap(&a->lut, map->at, map->length, NULL);
	return rc;
}

/* What a processor gets of it. */
struct view {
	int fd;
	uint64_t offset;
	uint32_t access;
};

static struct view view_of(const struct emu_map *map, const struct emu_grant *g)
{
	struct view v = {.access = g->access};
	uint64_t start;

	v.fd = emu_kind_of(g->source)->file(g->source, &start);
	v.offset = map->trigger ? 0 : start + g->offset + (map->bus_addr - g->bus_addr);
	return v;
}

static void tell(struct emu_request *rq, const struct emu_map *map, const struct view *v,
		 uint32_t caching)
{
	struct sio_evt_map evt;

	memset(&evt, 0, sizeof(evt));
	evt.id = map->o.id;
	evt.offset = v->offset;
	evt.length = map->length;
	evt.bus_addr = emu_source_physical(&map->o, 0);
	evt.caching = caching;
	if (map->trigger)
		evt.map_flags = SIO_MAP_TRIGGER;
	else if (!(v->access & SIO_ACCESS_WRITE))
		evt.map_flags = SIO_MAP_READ_ONLY;
	emu_answer(rq, &evt, sizeof(evt), &v->fd, 1);
}

/* To a machine, unless it is by a file of the machine's. */
static int make_way(struct emu_request *rq, struct emu_map *map, enum emu_machine_way way,
		    struct view *ret)
{
	int rc = 0;

	if (way == EMU_BY_BELL)
		rc = emu_machine_bell(rq, map, &ret->fd);
	else if (way == EMU_BY_STORES)
		rc = emu_stores_new(rq, map);
	if (rc == 0 && way == EMU_BY_STORES)
		*ret = (struct view){map->stores.fd, 0, SIO_ACCESS_READ | SIO_ACCESS_WRITE};
	return rc;
}

int emu_op_map(struct emu_request *rq, const void *msg)
{
	const struct sio_req_map *m = msg;
	struct emu_adapter *a = NULL;
	struct emu_host *peer = NULL;
	struct emu_reached there = {.fd = -1};
	struct emu_grant *g = NULL;
	struct emu_map *map = NULL;
	enum emu_machine_way way = EMU_BY_FILE;
	struct view view;
	int rc;

	rc = emu_adapter_use(rq, m->adapter, &a);
	if (rc == 0)
		rc = find_peer(rq, m, &peer);
	if (rc == 0)
		rc = check(rq, m);
	if (rc == 0)
		rc = peer->machine ? emu_machine_find(rq, m, peer, &there, &way)
				   : find_grant(rq, m, peer, &g);
	if (rc < 0)
		return rc;
	map = emu_object_new(rq, SIO_KIND_MAP, sizeof(*map), 0);
	if (!map)
		return rq->err.code;
	map->adapter = a->index;
	map->peer_host = peer->index;
	map->peer_adapter = m->peer_adapter;
	map->peer_generation = m->generation;
	map->bus_addr = m->bus_addr;
	map->grant = m->grant;
	map->length = m->length;
	map->trigger = g ? g->source->kind == SIO_KIND_IRQ : way == EMU_BY_BELL;
	if (map->trigger)
		memcpy(&map->message, m->token + SIO_TOKEN_MESSAGE, sizeof(map->message));
	if (g && g->source->kind == SIO_KIND_BAR && g->access & SIO_ACCESS_WRITE &&
	    emu_run_polled(((struct emu_bar *)g->source)->run))
		map->polled = ((struct emu_bar *)g->source)->run;
	rc = take_entries(rq, map);
	if (rc < 0) {
		emu_object_drop(&map->o);
		return rc;
	}
	if (map->polled)
		DL_APPEND2(map->polled->windows, map, polled_prev, polled_next);
	view = g ? view_of(map, g) : (struct view){there.fd, there.fd_offset, there.access};
	rc = g ? 0 : make_way(rq, map, way, &view);
	if (rc < 0) {
		emu_object_free(&map->o);
		return rc;
	}
	tell(rq, map, &view, m->caching);
	return 0;
}

int emu_op_unmap(struct emu_request *rq, const void *msg)
{
	const struct sio_req_unmap *m = msg;
	struct emu_map *map = emu_object_find(rq, SIO_KIND_MAP, m->id);

	if (!map)
		return rq->err.code;
	if (map->o.refs)
		return sio_fail(
			&rq->err, -EBUSY,
			"UNMAP: %u DMA mappings and interrupt vectors go through map %#" PRIx64,
			map->o.refs, map->o.id);
	emu_object_free(&map->o);
	emu_answer_ok(rq);
	return 0;
}

static void release(struct emu_object *o)
{
	struct emu_map *m = (struct emu_map *)o;
	struct emu_host *h = o->host;

	h->freed.maps++;
	if (m->bell)
		h->room->ops->watch_free(h->room->ctx, h->index, o->id);
	emu_stores_free(m);
	if (m->polled)
		DL_DELETE2(m->polled->windows, m, polled_prev, polled_next);
	sio_lut_unmap(&h->adapter[m->adapter].lut, m->at, m->length, NULL);
	emu_invalidate(h->room);
	emu_check_forget(h, o->kind, o->id);
}

static uint64_t physical(const struct emu_object *o, uint64_t offset)
{
	const struct emu_map *m = (const struct emu_map *)o;

	return o->host->adapter[m->adapter].topo->window_base + m->at.offset + offset;
}

static uint64_t length(const struct emu_object *o)
{
	return ((const struct emu_map *)o)->length;
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_map *m = (const struct emu_map *)o;

	e->address = physical(o, 0);
	e->length = m->length;
	e->cookie = m->bus_addr;
	e->grant = m->grant;
	e->device = SIO_LIST_PATH(m->adapter, m->peer_adapter);
	e->node = o->host->room->host[m->peer_host].topo->node;
}

const struct emu_kind emu_kind_map = {.name = "map",
				      .rank = EMU_RANK_MAP,
				      .release = release,
				      .row = row,
				      .physical = physical,
				      .length = length};
