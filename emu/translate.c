/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an access of a device goes:
 *
 *   device address -> [its IOMMU domain] -> physical map -> RAM or BAR pages, or
 *     aperture -> requester table -> look-up table -> peer's adapter
 *       -> [that adapter's IOMMU domain] -> the peer's physical map -> RAM or BAR pages
 *
 * Each step either goes on or ends with a reason that names the place and the address there. An
 * entry of the look-up table may be larger than what was mapped through it: then more can be
 * reached than was meant, as on hardware, unless the peer's IOMMU is on.
 */
#include <stdarg.h>
#include <stdio.h>

#include "emu/internal.h"

static int fail(struct emu_target *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct emu_target *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->reason, sizeof(t->reason), fmt, ap);
	va_end(ap);
	t->data = NULL;
	return -EFAULT;
}

/* The domain of a device, or (@a not NULL) of what comes in through an adapter. */
static int through_iommu(const struct sio_iommu *domain, const struct emu_device *d,
			 const struct emu_adapter *a, uint64_t addr, uint32_t access,
			 uint64_t *ret_physical, struct emu_target *t)
{
	char whose[64];
	struct sio_iommu_hit hit;
	int rc = sio_iommu_translate(domain, addr, access, &hit);

	if (rc == 0) {
		*ret_physical = hit.offset;
		t->access &= hit.access;
		return 0;
	}
	if (a)
		snprintf(whose, sizeof(whose), "adapter %u of %s", a->index, a->host->topo->name);
	else
		snprintf(whose, sizeof(whose), "%s", d->topo->name);
	if (rc == -EACCES)
		return fail(t, "the mapping in the IOMMU domain of %s is not for %s", whose,
			    access == SIO_ACCESS_READ ? "reading" : "writing");
	return fail(t, "nothing is mapped at %#" PRIx64 " in the IOMMU domain of %s", addr, whose);
}

static int at_region(const struct emu_host *h, const struct sio_region *region, uint64_t physical,
		     struct emu_target *t)
{
	uint64_t offset;

	if (!region)
		return fail(t, "nothing is at physical address %#" PRIx64 " of %s", physical,
			    h->topo->name);
	offset = physical - region->base + region->offset;
	if (region->kind == SIO_KIND_MEM) {
		t->data = (uint8_t *)((struct emu_ram *)region->object)->mem.data + offset;
		return 0;
	}
	if (region->kind == SIO_KIND_BAR) {
		const struct emu_run *run = region->object;

		if (!run->mem.data)
			return fail(t,
				    "registers and interrupt table of %s at %#" PRIx64
				    " of %s cannot be reached by devices here",
				    run->device->topo->name, physical, h->topo->name);
		t->data = (uint8_t *)run->mem.data + offset;
		return 0;
	}
	return fail(t,
		    "%#" PRIx64 " of %s lies in an aperture: from one window into another there is "
		    "no way",
		    physical, h->topo->name);
}

/* What comes in through @a of a peer. */
static int inbound(struct emu_adapter *a, uint64_t bus, uint32_t access, struct emu_target *t)
{
	struct emu_host *h = a->host;
	uint64_t physical = bus;
	int rc;

	t->node = h->topo->node;
	t->hop[t->n_hops++] = &a->count;
	if (h->topo->iommu) {
		rc = through_iommu(&a->iommu, NULL, a, bus, access, &physical, t);
		if (rc < 0)
			return rc;
	}
	return at_region(h, sio_addrmap_find(&h->map, physical), physical, t);
}

/* What goes out through the window of @a, @offset bytes from its start. */
static int outbound(struct emu_device *d, struct emu_adapter *a, uint64_t offset, uint32_t access,
		    struct emu_target *t)
{
	struct emu_room *r = d->room;
	const struct sio_topo_host *peer;
	struct sio_lut_target target;
	struct emu_path *p;

	if (d->engine_of != a && !emu_requester_lookup(a, d->topo->bdf))
		return fail(t, "%s is not in the requester table of adapter %u", d->topo->name,
			    a->index);
	if (sio_lut_translate(&a->lut, offset, &target, NULL) < 0)
		return fail(t, "no look-up entry at %#" PRIx64 " of the window of adapter %u",
			    offset, a->index);
	peer = sio_topology_host(r->topo, target.bus.node);
	p = peer ? emu_path_find(a->host, a->index, (unsigned)(peer - r->topo->host),
				 target.adapter)
		 : NULL;
	if (!p)
		return fail(t, "no path to adapter %u of node %u", target.adapter, target.bus.node);
	t->hop[t->n_hops++] = &a->count;
	if (p->state != SIO_LINK_UP) {
		emu_path_lost(a->host, p);
		return fail(t, "the path to %s is down", peer->name);
	}
	if (r->host[p->peer_host].boot_generation != target.generation)
		return fail(t,
			    "the look-up entry is of start %" PRIu64
			    " of %s, which is in start %" PRIu64,
			    target.generation, peer->name, r->host[p->peer_host].boot_generation);
	return inbound(&r->host[p->peer_host].adapter[target.adapter], target.bus.addr, access, t);
}

int emu_translate(struct emu_device *d, uint64_t addr, uint32_t access, struct emu_target *ret)
{
	struct emu_host *h = d->host;
	const struct sio_region *region;
	uint64_t physical = addr;
	int rc;

	/* The text is set with a failure. */
	ret->data = NULL;
	ret->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	ret->node = h->topo->node;
	ret->n_hops = 0;
	memset(ret->hop, 0, sizeof(ret->hop));
	if (!h->up)
		return fail(ret, "%s is off", h->topo->name);
	if (d->topo->dma_bits < 64 && addr >> d->topo->dma_bits)
		return fail(ret, "%s has %u address bits", d->topo->name, d->topo->dma_bits);
	if (h->topo->iommu) {
		rc = through_iommu(&d->iommu, d, NULL, addr, access, &physical, ret);
		if (rc < 0)
			return rc;
	}
	region = sio_addrmap_find(&h->map, physical);
	if (region && region->kind == SIO_KIND_ADAPTER)
		return outbound(d, region->object, physical - region->base, access, ret);
	return at_region(h, region, physical, ret);
}
