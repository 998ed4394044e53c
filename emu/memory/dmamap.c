/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA mappings: what a device may reach. With the host's IOMMU on, each device has a domain of its
 * own and a mapping makes an I/O virtual address. With it off, the device uses physical addresses,
 * nothing restricts it, and a mapping only keeps its target in place.
 */
#include "emu/memory/memory.h"

static int check_target(struct emu_request *rq, const struct sio_req_dmamap *m,
			struct emu_device *d, struct emu_object **ret)
{
	const struct emu_bar *b;

	if (m->target_kind == SIO_KIND_APERTURE)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"DMAMAP: apertures are not served by the machine "
				"room");
	if (m->target_kind != SIO_KIND_MEM && m->target_kind != SIO_KIND_MAP &&
	    m->target_kind != SIO_KIND_BAR)
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: target kind %u, %d (memory), %d (map) or %d "
				"(BAR view) is right",
				m->target_kind, SIO_KIND_MEM, SIO_KIND_MAP, SIO_KIND_BAR);
	*ret = emu_object_find_any(rq, m->target_kind, m->target);
	if (!*ret)
		return rq->err.code;
	if ((*ret)->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"DMAMAP: owner %#" PRIx64 " of %s %#" PRIx64 " has ended",
				(*ret)->owner->o.id, emu_object_name(*ret), (*ret)->id);
	if (m->target_kind == SIO_KIND_MAP && ((struct emu_map *)*ret)->trigger)
		return sio_fail(&rq->err, -EINVAL, "DMAMAP: map %#" PRIx64 " is of an interrupt",
				(*ret)->id);
	if (emu_bar_check(rq, "DMAMAP", *ret) < 0)
		return rq->err.code;
	b = (const struct emu_bar *)*ret;
	if (m->target_kind == SIO_KIND_BAR && b->device == d)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"DMAMAP: BAR view %#" PRIx64
				" is of the same device; only others' are mapped",
				(*ret)->id);
	if (m->target_kind == SIO_KIND_BAR && (m->access & ~b->access || b->mirror))
		return sio_fail(&rq->err, -EACCES,
				"DMAMAP: BAR view %#" PRIx64 " is to be read alone, by processors",
				(*ret)->id);
	return emu_range_check(rq, "DMAMAP", *ret, m->offset, m->length);
}

static uint64_t highest(const struct emu_device *d, const struct sio_req_dmamap *m)
{
	uint64_t device = d->topo->dma_bits >= 64 ? UINT64_MAX : (1ull << d->topo->dma_bits) - 1;

	return m->highest < device ? m->highest : device;
}

/* IOMMU off: the address is what it is, or the mapping cannot be. */
static int place_physical(struct emu_request *rq, struct emu_dmamap *map,
			  const struct sio_req_dmamap *m)
{
	map->iova = map->physical;
	if (m->iova != SIO_PORT_ANY && m->iova != map->physical)
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: address %#" PRIx64 " wanted, but the IOMMU "
				"is off and the target lies at %#" PRIx64,
				(uint64_t)m->iova, map->physical);
	if (map->physical + (map->length - 1) > highest(map->device, m))
		return sio_fail_exhausted(&rq->err, -ENOSPC, SIO_OUT_OF_REACH,
					  "DMAMAP: the target ends at %#" PRIx64 ", %s can "
					  "reach %#" PRIx64 " and the IOMMU is off",
					  map->physical + (map->length - 1),
					  map->device->topo->name, highest(map->device, m));
	return 0;
}

static void free_address(struct emu_dmamap *map)
{
	if (map->o.host->topo->iommu && map->taken != SIO_PORT_ANY)
		sio_range_free(&map->device->iova, map->taken);
}

/*
 * Addresses that were asked for may lie, wholly or in part, below those that are handed out to
 * whoever asks for any: the domain alone knows what is mapped there.
 */
static int take_wanted(struct emu_request *rq, struct emu_dmamap *map,
		       const struct sio_req_dmamap *m)
{
	struct emu_device *d = map->device;
	uint64_t last;

	map->iova = m->iova;
	if (m->iova % EMU_PAGE)
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: address %#" PRIx64 " is not of a whole page",
				(uint64_t)m->iova);
	if (__builtin_add_overflow(m->iova, map->length - 1, &last) || last > highest(d, m) ||
	    last > d->iova.base + (d->iova.size - 1))
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: %#" PRIx64 " + %#" PRIx64 " is more than %s can send",
				(uint64_t)m->iova, map->length, d->topo->name);
	if (last < d->iova.base)
		return 0;
	map->taken = m->iova > d->iova.base ? m->iova : d->iova.base;
	return sio_range_reserve(&d->iova, map->taken, last - map->taken + 1, &rq->err);
}

/* A page behind the mapping stays free, so that a device that runs past its end faults there. */
static int place_virtual(struct emu_request *rq, struct emu_dmamap *map,
			 const struct sio_req_dmamap *m)
{
	struct emu_device *d = map->device;
	int rc;

	if (m->iova == SIO_PORT_ANY) {
		rc = sio_range_alloc(&d->iova, map->length + EMU_PAGE, EMU_PAGE, highest(d, m),
				     &map->iova, &rq->err);
		map->taken = map->iova;
	} else {
		rc = take_wanted(rq, map, m);
	}
	if (rc == -ENOSPC || rc == -EEXIST)
		return emu_no_iova(rq);
	if (rc < 0)
		return rc;
	rc = sio_iommu_map(&d->iommu, (struct sio_dev_addr){map->iova}, map->length, map->target,
			   map->physical, map->access, &rq->err);
	if (rc < 0)
		free_address(map);
	return rc == -EEXIST ? emu_no_iova(rq) : rc;
}

int emu_dmamap_place(struct emu_request *rq, struct emu_dmamap *map, const struct sio_req_dmamap *m)
{
	return rq->host->topo->iommu ? place_virtual(rq, map, m) : place_physical(rq, map, m);
}

static void unmap(struct emu_dmamap *map)
{
	if (map->o.host->topo->iommu)
		sio_iommu_unmap(&map->device->iommu, (struct sio_dev_addr){map->iova});
}

void emu_dmamap_unplace(struct emu_dmamap *map)
{
	unmap(map);
	free_address(map);
}

/* Through which adapter? */
static bool leaves_host(const struct emu_object *target, unsigned *ret_adapter)
{
	const struct emu_ram *ram = (const struct emu_ram *)target;
	const struct emu_map *map = (const struct emu_map *)target;

	if (target->kind == SIO_KIND_MEM)
		*ret_adapter = ram->adapter;
	else if (target->kind == SIO_KIND_MAP)
		*ret_adapter = map->adapter;
	return target->kind == SIO_KIND_MAP || (target->kind == SIO_KIND_MEM && ram->sender);
}

static int check(struct emu_request *rq, const struct sio_req_dmamap *m, struct emu_device **ret_d,
		 struct emu_object **ret_target, struct emu_requester **ret_requester)
{
	const uint32_t both = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	unsigned adapter = 0;
	int rc;

	if (m->access == 0 || m->access & ~both)
		return sio_fail(&rq->err, -EINVAL, "DMAMAP: access %#x, 1 to %u are right",
				m->access, both);
	rc = emu_device_get(rq, m->device, ret_d);
	if (rc == 0)
		rc = check_target(rq, m, *ret_d, ret_target);
	if (rc == 0)
		rc = emu_group_access(rq, "DMAMAP", *ret_target, m->access);
	*ret_requester = NULL;
	if (rc < 0 || !leaves_host(*ret_target, &adapter))
		return rc;
	*ret_requester = emu_requester_of(*ret_d, adapter);
	if (!*ret_requester)
		return sio_fail(&rq->err, -ENOENT,
				"DMAMAP: %s is not in the requester table of adapter "
				"%u; REQUESTER_ADD first",
				(*ret_d)->topo->name, adapter);
	return 0;
}

int emu_op_dmamap(struct emu_request *rq, const void *msg)
{
	const struct sio_req_dmamap *m = msg;
	struct emu_requester *requester = NULL;
	struct emu_object *target = NULL;
	struct sio_evt_dmamap evt;
	struct emu_dmamap *map = NULL;
	struct emu_device *d = NULL;
	int rc;

	rc = check(rq, m, &d, &target, &requester);
	if (rc < 0)
		return rc;
	map = emu_object_new(rq, SIO_KIND_DMAMAP, sizeof(*map), 0);
	if (!map)
		return rq->err.code;
	map->device = d;
	map->target = target;
	map->requester = requester;
	map->taken = SIO_PORT_ANY;
	map->offset = m->offset;
	map->length = m->length;
	map->access = m->access;
	map->wanted = m->iova != SIO_PORT_ANY;
	map->physical = emu_source_physical(target, m->offset);
	rc = emu_dmamap_place(rq, map, m);
	if (rc < 0)
		goto drop_object;
	rc = emu_check_dmamap(map);
	if (rc < 0)
		goto unplace;
	DL_APPEND2(d->dmamaps, map, dev_prev, dev_next);
	map->placed = true;
	emu_object_ref(target);
	emu_object_ref(d->opened);
	if (requester)
		emu_object_ref(&requester->o);
	memset(&evt, 0, sizeof(evt));
	evt.id = map->o.id;
	evt.iova = map->iova;
	evt.length = map->length;
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;

unplace:
	emu_dmamap_unplace(map);
drop_object:
	emu_object_drop(&map->o);
	return rc;
}

int emu_op_dmaunmap(struct emu_request *rq, const void *msg)
{
	const struct sio_req_dmaunmap *m = msg;
	struct emu_dmamap *map = emu_object_find(rq, SIO_KIND_DMAMAP, m->id);

	if (!map)
		return rq->err.code;
	if (m->h.flags & SIO_DMAUNMAP_KEEP_ADDRESS) {
		emu_answer_ok(rq);
		emu_dmamap_cut(map);
		return 0;
	}
	if (map->o.state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"DMAUNMAP: DMA mapping %#" PRIx64 " is in "
				"quarantine; SETTLE or RESET of %s ends it",
				map->o.id, map->device->topo->name);
	emu_object_free(&map->o);
	emu_answer_ok(rq);
	return 0;
}

static void leave_target(struct emu_dmamap *m)
{
	if (!m->target)
		return;
	unmap(m);
	emu_invalidate(m->o.host->room);
	emu_object_unref(m->target);
	m->target = NULL;
	if (m->requester)
		emu_object_unref(&m->requester->o);
	m->requester = NULL;
}

static void leave_device(struct emu_dmamap *m)
{
	if (!m->placed)
		return;
	free_address(m);
	DL_DELETE2(m->device->dmamaps, m, dev_prev, dev_next);
	emu_object_unref(m->device->opened);
	m->placed = false;
}

static void release(struct emu_object *o)
{
	struct emu_dmamap *m = (struct emu_dmamap *)o;

	m->o.host->freed.dmamaps++;
	leave_target(m);
	leave_device(m);
	emu_check_forget(o->host, o->kind, o->id);
}

static bool in_use(const struct emu_object *o)
{
	return ((const struct emu_dmamap *)o)->placed;
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_dmamap *m = (const struct emu_dmamap *)o;

	e->cookie = m->target ? m->target->id : 0;
	e->address = m->iova;
	e->length = m->length;
	e->device = m->device->topo->fdid;
	e->node = m->wanted ? SIO_LIST_CHOSEN : 0;
}

const struct emu_kind emu_kind_dmamap = {.name = "DMA mapping",
					 .rank = EMU_RANK_SENDER,
					 .release = release,
					 .in_use = in_use,
					 .row = row};

void emu_dmamap_cut(struct emu_dmamap *m)
{
	if (m->o.state == SIO_STATE_QUARANTINED && emu_device_is_out(m->device)) {
		emu_object_free(&m->o);
		return;
	}
	leave_target(m);
	if (emu_device_is_out(m->device))
		leave_device(m);
	emu_check_forget(m->o.host, m->o.kind, m->o.id);
}

uint64_t emu_dmamaps_settle(struct emu_device *d, uint64_t owner)
{
	struct emu_dmamap *m, *tmp;
	uint64_t n = 0;

	DL_FOREACH_SAFE2(d->dmamaps, m, tmp, dev_next)
	{
		if (m->o.state != SIO_STATE_QUARANTINED || (owner && m->o.owner->o.id != owner))
			continue;
		emu_object_free(&m->o);
		n++;
	}
	return n;
}

int emu_op_settle(struct emu_request *rq, const void *msg)
{
	const struct sio_req_settle *m = msg;
	struct emu_host *h = rq->host;
	struct sio_evt_settle evt;
	struct emu_device *d = NULL;
	int rc;

	if (m->h.owner == 0)
		return sio_fail(&rq->err, -EINVAL, "SETTLE: name an owner that has ended");
	rc = emu_device_get(rq, m->device, &d);
	if (rc < 0)
		return rc;
	if (!rq->owner)
		return sio_fail(&rq->err, -ENOENT, "SETTLE: no owner %#" PRIx64,
				(uint64_t)m->h.owner);
	if (!rq->owner->ended)
		return sio_fail(&rq->err, -EPERM,
				"SETTLE: owner %#" PRIx64 " is alive: its "
				"mappings end by DMAUNMAP",
				(uint64_t)m->h.owner);
	memset(&h->freed, 0, sizeof(h->freed));
	emu_dmamaps_settle(d, m->h.owner);
	emu_objects_fall(h);
	memset(&evt, 0, sizeof(evt));
	evt.dmamaps = h->freed.dmamaps;
	evt.maps = h->freed.maps;
	evt.mems = h->freed.mems;
	evt.bytes = h->freed.bytes;
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}
