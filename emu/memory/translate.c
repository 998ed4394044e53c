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
			 const struct emu_adapter *a, struct sio_dev_addr addr, uint32_t access,
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
	return fail(t, "nothing is mapped at %#" PRIx64 " in the IOMMU domain of %s", addr.addr,
		    whose);
}

/* An address of a host's physical map, and the adapter that it was reached through. */
struct end {
	const struct emu_host *host;
	const struct emu_adapter *adapter; /* NULL: by a device of its own */
	const struct emu_host *from;	   /* the peer; NULL: by a device of its own */
	unsigned from_adapter;
	uint64_t physical;
};

/* Addresses that write to a multicast group. @from: not NULL: a peer came here. */
static int at_sender(const struct emu_host *h, const struct emu_ram *sender, uint64_t offset,
		     const struct emu_host *from, uint32_t access, struct emu_target *t)
{
	if (from)
		return fail(t,
			    "%#" PRIx64
			    " of %s is a multicast group, which cannot be reached through a window",
			    sender->address + offset, h->topo->name);
	if (access != SIO_ACCESS_WRITE)
		return fail(t,
			    "%#" PRIx64 " of %s is a multicast group, which can only be written to",
			    sender->address + offset, h->topo->name);
	t->sender = sender;
	t->sender_offset = offset;
	return 0;
}

/* Nothing is there: the innermost chassis that passes the address on is where it is looked for. */
static int nowhere(const struct end *end, struct emu_target *t)
{
	const struct sio_topo_host *h = end->host->topo;
	unsigned in = 0;

	for (unsigned i = 0; i < h->n_chassis; i++) /* one in another comes behind it */
		if (end->physical - h->chassis[i].range_base < h->chassis[i].range_size)
			in = i + 1;
	if (!in)
		return fail(t, "nothing is at physical address %#" PRIx64 " of %s", end->physical,
			    h->name);
	t->way.to[end->adapter ? 1 : 0] = (uint8_t)in;
	return fail(t, "nothing is at physical address %#" PRIx64 " of %s, behind chassis %s",
		    end->physical, h->name, h->chassis[in - 1].name);
}

static int at_region(const struct end *end, const struct sio_region *region, uint32_t access,
		     struct emu_target *t)
{
	const struct emu_host *h = end->host;
	uint64_t physical = end->physical, offset;

	if (!region)
		return nowhere(end, t);
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
		t->way.to[end->adapter ? 1 : 0] = (uint8_t)run->device->topo->in;
		t->data = data + offset;
		return 0;
	}
	return fail(t,
		    "%#" PRIx64
		    " of %s lies in an aperture: no path leads from one window into another",
		    physical, h->topo->name);
}

/* Messages to interrupts pass an IOMMU by another way: see to_interrupt(). */
static bool is_message(uint64_t addr, uint32_t access)
{
	return access == SIO_FAULT_MSI && emu_is_message_address(addr);
}

/* What comes in through @a of a peer. */
static int inbound(const struct emu_adapter *from, struct emu_adapter *a, struct sio_bus_addr bus,
		   uint32_t access, struct end *ret, struct emu_target *t)
{
	struct emu_host *h = a->host;

	t->node = h->topo->node;
	t->hop[t->n_hops++] = &a->count;
	t->way.host[1] = h;
	t->way.from[1] = (uint8_t)a->topo->in;
	*ret = (struct end){.host = h,
			    .adapter = a,
			    .from = from->host,
			    .from_adapter = from->index,
			    .physical = bus.addr};
	if (h->topo->iommu && !is_message(bus.addr, access))
		return through_iommu(&a->iommu, NULL, a, (struct sio_dev_addr){bus.addr}, access,
				     &ret->physical, t);
	return 0;
}

/* What goes out through the window of @a. */
static int outbound(struct emu_device *d, struct emu_adapter *a, struct sio_window_at at,
		    uint32_t access, struct end *ret, struct emu_target *t)
{
	struct emu_room *r = d->room;
	const struct sio_topo_host *peer;
	struct sio_lut_target target;
	struct emu_path *p;

	if (d->engine_of != a && !emu_requester_lookup(a, d->topo->bdf))
		return fail(t, "%s is not in the requester table of adapter %u", d->topo->name,
			    a->index);
	if (sio_lut_translate(&a->lut, at, &target, NULL) < 0)
		return fail(t, "no look-up entry at %#" PRIx64 " of the window of adapter %u",
			    at.offset, a->index);
	peer = sio_topology_member(r->topo, target.bus.node);
	p = peer ? emu_path_find(a->host, a->index, (unsigned)(peer - r->topo->host),
				 target.adapter)
		 : NULL;
	if (!p)
		return fail(t, "no path to adapter %u of node %u", target.adapter, target.bus.node);
	t->hop[t->n_hops++] = &a->count;
	t->way.to[0] = (uint8_t)a->topo->in;
	if (p->state != SIO_LINK_UP) {
		emu_path_lost(a->host, p);
		return fail(t, "the path to %s is down", peer->name);
	}
	if (emu_path_start(a->host, p) != target.generation)
		return fail(t,
			    "the look-up entry is of start %" PRIu64
			    " of %s, which is in start %" PRIu64,
			    target.generation, peer->name, emu_path_start(a->host, p));
	emu_way_cross(&t->way, a->topo, &peer->adapter[target.adapter]);
	return inbound(a, &r->host[p->peer_host].adapter[target.adapter], target.bus, access, ret,
		       t);
}

/* @access: SIO_FAULT_*; what a message needs is a right to write. */
static int find_end(struct emu_device *d, struct sio_dev_addr addr, uint32_t access,
		    struct end *ret, struct emu_target *t)
{
	struct emu_host *h = d->host;
	const struct sio_region *region;
	int rc;

	/* The text is set with a failure. */
	t->data = NULL;
	t->sender = NULL;
	t->fleeting = false;
	t->counted = false;
	t->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	t->node = h->topo->node;
	t->n_hops = 0;
	memset(t->hop, 0, sizeof(t->hop));
	t->way = (struct emu_way){.host = {h}, .from = {(uint8_t)d->topo->in}};
	if (!h->up)
		return fail(t, "%s is off", h->topo->name);
	if (emu_device_is_out(d))
		return fail(t, "%s is not in its slot", d->topo->name);
	if (d->topo->dma_bits < 64 && addr.addr >> d->topo->dma_bits)
		return fail(t, "%s has %u address bits", d->topo->name, d->topo->dma_bits);
	*ret = (struct end){.host = h, .physical = addr.addr};
	if (is_message(addr.addr, access))
		return 0;
	if (h->topo->iommu) {
		rc = through_iommu(&d->iommu, d, NULL, addr, access, &ret->physical, t);
		if (rc < 0)
			return rc;
	}
	region = sio_addrmap_find(&h->map, ret->physical);
	if (region && region->kind == SIO_KIND_ADAPTER)
		return outbound(d, region->object,
				(struct sio_window_at){ret->physical - region->base}, access, ret,
				t);
	return 0;
}

static struct emu_reach reach_of(const struct end *end, uint64_t length)
{
	return (struct emu_reach){.node = end->from->topo->node,
				  .adapter = end->from_adapter,
				  .machine = end->host->topo->node,
				  .machine_adapter = end->adapter->index,
				  .address = end->physical,
				  .length = length};
}

/* The whole page has to be granted. Its memory is the machine's, and may go: it is not kept. */
static int at_machine(struct emu_room *r, const struct end *end, uint32_t access,
		      struct emu_target *t)
{
	const struct emu_reach x = reach_of(end, EMU_PAGE - end->physical % EMU_PAGE);
	const char *machine = end->host->topo->name;
	struct emu_reached there;
	int rc = -EFAULT;

	if (r->ops->machine_memory)
		rc = r->ops->machine_memory(r->ctx, &x, &there);
	if (rc == -EACCES)
		return fail(t, "machine %s granted nothing at %#" PRIx64, machine, end->physical);
	if (rc < 0)
		return fail(t, "no memory of machine %s is at %#" PRIx64, machine, end->physical);
	if (!(there.access & access))
		return fail(t, "what machine %s granted at %#" PRIx64 " is not for %s", machine,
			    end->physical, access == SIO_ACCESS_READ ? "reading" : "writing");
	t->data = there.data;
	t->access &= there.access;
	t->fleeting = true;
	return 0;
}

static int to_machine(const struct emu_device *d, uint32_t data, const struct end *end,
		      struct emu_target *t)
{
	const struct emu_reach x = reach_of(end, SIO_MSI_BYTES);
	struct emu_room *r = d->room;
	int rc =
		r->ops->machine_message ? r->ops->machine_message(r->ctx, &x, data, true) : -EACCES;

	if (rc == 0)
		return 0;
	if (rc == -EBUSY)
		return fail(t, "the limit of messages that machine %s has not taken yet is reached",
			    end->host->topo->name);
	return fail(t, "machine %s granted no interrupt with message %#x at %#" PRIx64,
		    end->host->topo->name, data, end->physical);
}

int emu_translate(struct emu_device *d, struct sio_dev_addr addr, uint32_t access,
		  struct emu_target *ret)
{
	struct end end;
	int rc = find_end(d, addr, access, &end, ret);

	if (rc == 0 && end.host->machine)
		rc = at_machine(d->room, &end, access, ret);
	else if (rc == 0)
		rc = at_region(&end, sio_addrmap_find(&end.host->map, end.physical), access, ret);
	ret->far = emu_way_is(&ret->way);
	return rc;
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

int emu_translate_message(struct emu_device *d, struct sio_dev_addr addr, uint32_t data,
			  const struct emu_object *meant, struct emu_irq **ret,
			  struct emu_target *t)
{
	struct end end;
	int rc = find_end(d, addr, SIO_FAULT_MSI, &end, t);

	*ret = NULL;
	if (rc == 0 && end.host->machine)
		rc = to_machine(d, data, &end, t);
	else if (rc == 0 && emu_is_message_address(end.physical))
		rc = to_interrupt(d, data, meant, &end, ret, t);
	else if (rc == 0)
		rc = at_region(&end, sio_addrmap_find(&end.host->map, end.physical), SIO_FAULT_MSI,
			       t);
	t->far = emu_way_is(&t->way);
	return rc;
}
