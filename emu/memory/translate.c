/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an access of a device goes:
 *
 *   device address -> [its IOMMU domain] -> physical map -> RAM or BAR pages, or
 *     aperture -> requester table -> look-up table -> peer's adapter
 *       -> [that adapter's IOMMU domain] -> the peer's physical map -> RAM or BAR pages
 *
 * A message goes the same way, past the IOMMU domains if it is addressed to an interrupt.
 *
 * Each step either goes on or ends with a reason that names the place and the address there. An
 * entry of the look-up table may be larger than what was mapped through it: then more can be
 * reached than was meant, as on hardware, unless the peer's IOMMU is on.
 */
#include <stdarg.h>
#include <stdio.h>

#include "emu/memory/memory.h"

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
	uint32_t right = access == SIO_ACCESS_READ ? SIO_ACCESS_READ : SIO_ACCESS_WRITE;
	int rc = sio_iommu_translate(domain, addr, right, &hit);

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

/* An address of a host's physical map, and the adapter that it was reached through. */
struct end {
	const struct emu_host *host;
	const struct emu_adapter *adapter; /* NULL: by a device of its own */
	const struct emu_host *from;	   /* the peer; NULL: by a device of its own */
	uint64_t physical;
};

/* Addresses that write to a multicast group. @from: not NULL: a peer came here. */
static int at_sender(const struct emu_host *h, const struct emu_ram *sender, uint64_t offset,
		     const struct emu_host *from, uint32_t access, struct emu_target *t)
{
	if (from)
		return fail(
			t, "%#" PRIx64 " of %s is a multicast group: from a window there is no way",
			sender->address + offset, h->topo->name);
	if (access != SIO_ACCESS_WRITE)
		return fail(
			t, "%#" PRIx64 " of %s is a multicast group, which can be written to alone",
			sender->address + offset, h->topo->name);
	t->sender = sender;
	t->sender_offset = offset;
	return 0;
}

static int at_region(const struct end *end, const struct sio_region *region, uint32_t access,
		     struct emu_target *t)
{
	const struct emu_host *h = end->host;
	uint64_t physical = end->physical, offset;

	if (!region)
		return fail(t, "nothing is at physical address %#" PRIx64 " of %s", physical,
			    h->topo->name);
	offset = physical - region->base + region->offset;
	if (region->kind == SIO_KIND_MEM) {
		const struct emu_ram *ram = region->object;

		if (ram->sender)
			return at_sender(h, ram, offset, end->from, access, t);
		t->data = (uint8_t *)ram->mem.data + offset;
		return 0;
	}
	if (region->kind == SIO_KIND_BAR) {
		const struct emu_run *run = region->object;
		uint8_t *data = run->mem.data ? run->mem.data : run->view.data;

		if (!data)
			return fail(
				t,
				"the interrupt table, and registers that nobody holds, of %s at "
				"%#" PRIx64 " of %s cannot be reached by devices",
				run->device->topo->name, physical, h->topo->name);
		t->data = data + offset;
		return 0;
	}
	return fail(t,
		    "%#" PRIx64 " of %s lies in an aperture: from one window into another there is "
		    "no way",
		    physical, h->topo->name);
}

/* Messages to interrupts pass an IOMMU by another way: see to_interrupt(). */
static bool is_message(uint64_t addr, uint32_t access)
{
	return access == SIO_FAULT_MSI && emu_is_message_address(addr);
}

/* What comes in through @a of a peer. */
static int inbound(const struct emu_host *from, struct emu_adapter *a, uint64_t bus,
		   uint32_t access, struct end *ret, struct emu_target *t)
{
	struct emu_host *h = a->host;

	t->node = h->topo->node;
	t->hop[t->n_hops++] = &a->count;
	*ret = (struct end){.host = h, .adapter = a, .from = from, .physical = bus};
	if (h->topo->iommu && !is_message(bus, access))
		return through_iommu(&a->iommu, NULL, a, bus, access, &ret->physical, t);
	return 0;
}

/* What goes out through the window of @a, @offset bytes from its start. */
static int outbound(struct emu_device *d, struct emu_adapter *a, uint64_t offset, uint32_t access,
		    struct end *ret, struct emu_target *t)
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
	if (emu_path_start(a->host, p) != target.generation)
		return fail(t,
			    "the look-up entry is of start %" PRIu64
			    " of %s, which is in start %" PRIu64,
			    target.generation, peer->name, emu_path_start(a->host, p));
	return inbound(a->host, &r->host[p->peer_host].adapter[target.adapter], target.bus.addr,
		       access, ret, t);
}

/* @access: SIO_FAULT_*; what a message needs is a right to write. */
static int find_end(struct emu_device *d, uint64_t addr, uint32_t access, struct end *ret,
		    struct emu_target *t)
{
	struct emu_host *h = d->host;
	const struct sio_region *region;
	int rc;

	/* The text is set with a failure. */
	t->data = NULL;
	t->sender = NULL;
	t->counted = false;
	t->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	t->node = h->topo->node;
	t->n_hops = 0;
	memset(t->hop, 0, sizeof(t->hop));
	if (!h->up)
		return fail(t, "%s is off", h->topo->name);
	if (d->gone)
		return fail(t, "%s is not in its slot", d->topo->name);
	if (d->topo->dma_bits < 64 && addr >> d->topo->dma_bits)
		return fail(t, "%s has %u address bits", d->topo->name, d->topo->dma_bits);
	*ret = (struct end){.host = h, .physical = addr};
	if (is_message(addr, access))
		return 0;
	if (h->topo->iommu) {
		rc = through_iommu(&d->iommu, d, NULL, addr, access, &ret->physical, t);
		if (rc < 0)
			return rc;
	}
	region = sio_addrmap_find(&h->map, ret->physical);
	if (region && region->kind == SIO_KIND_ADAPTER)
		return outbound(d, region->object, ret->physical - region->base, access, ret, t);
	return 0;
}

int emu_translate(struct emu_device *d, uint64_t addr, uint32_t access, struct emu_target *ret)
{
	struct end end;
	int rc = find_end(d, addr, access, &end, ret);

	if (rc < 0)
		return rc;
	return at_region(&end, sio_addrmap_find(&end.host->map, end.physical), access, ret);
}

/*
 * With the host's IOMMU on its interrupts are remapped, too: a device reaches the one that its
 * table entry was made for, a peer those that were granted to it. With it off nothing is checked.
 */
static int to_interrupt(const struct emu_device *d, uint32_t data, const struct emu_object *meant,
			const struct end *end, struct emu_irq **ret, struct emu_target *t)
{
	const struct emu_host *h = end->host;
	struct emu_object *o = emu_object_by_id(h, data);
	struct emu_irq *q;

	q = o && o->kind == SIO_KIND_IRQ ? (struct emu_irq *)o : NULL;
	if (!q || q->address != end->physical)
		return fail(t, "no interrupt of %s has message %#x at %#" PRIx64, h->topo->name,
			    data, end->physical);
	if (h->topo->iommu &&
	    !(end->adapter ? emu_irq_granted(q, end->adapter->index, end->from->index)
			   : meant == &q->o))
		return fail(t, "interrupt %#" PRIx64 " of %s was not given to %s", q->o.id,
			    h->topo->name, end->from ? end->from->topo->name : d->topo->name);
	*ret = q;
	return 0;
}

int emu_translate_message(struct emu_device *d, uint64_t addr, uint32_t data,
			  const struct emu_object *meant, struct emu_irq **ret,
			  struct emu_target *t)
{
	struct end end;
	int rc = find_end(d, addr, SIO_FAULT_MSI, &end, t);

	*ret = NULL;
	if (rc < 0)
		return rc;
	if (emu_is_message_address(end.physical))
		return to_interrupt(d, data, meant, &end, ret, t);
	return at_region(&end, sio_addrmap_find(&end.host->map, end.physical), SIO_FAULT_MSI, t);
}
