// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer-to-peer: BARs of other devices, which a driver makes reachable for its own by
 * dma_map_resource(). A processor of this host reaches a BAR at another address than the device
 * does. For a borrowed device, the device's host mapped the BAR for it when the second of the two
 * was borrowed, and smartio.ko was given the address: so mapping is a look-up in a list, in any
 * context. A BAR of a device of this host is mapped into the window, if there is one, like memory.
 */
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "shadow.h"

/* A BAR that a device reaches. */
struct peer {
	struct list_head node;
	const struct smartio_shadow *of, *target;
	u64 phys, size, address; /* address: as the device uses it */
};

static LIST_HEAD(peers);
static LIST_HEAD(shadows);
static DEFINE_SPINLOCK(lock); /* of both lists; drivers map with interrupts off, too */

void shadow_peers_join(struct smartio_shadow *s)
{
	unsigned long flags;

	pci_dev_get(s->info.parent);
	spin_lock_irqsave(&lock, flags);
	list_add_tail(&s->node, &shadows);
	spin_unlock_irqrestore(&lock, flags);
}

void shadow_peers_leave(struct smartio_shadow *s)
{
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	list_del(&s->node);
	spin_unlock_irqrestore(&lock, flags);
	pci_dev_put(s->info.parent);
}

/* With the lock. NULL: none. */
static struct peer *find(const struct smartio_shadow *of, u64 phys)
{
	struct peer *p;

	list_for_each_entry(p, &peers, node)
		if (p->of == of && phys >= p->phys && phys - p->phys < p->size)
			return p;
	return NULL;
}

/*
 * Another host says where. What the driver unmaps inside the window is taken for this host's memory
 * (shadow_peer_unmap()), so no such address is believed.
 */
static bool meets_window(const struct smartio_shadow *s, u64 address, u64 size)
{
	const struct smartio_shadow_info *f = &s->info;

	return address <= f->dma_base + (f->dma_length - 1) && address + (size - 1) >= f->dma_base;
}

int shadow_peer_add(struct smartio_shadow *s, struct smartio_shadow *target, unsigned int bar,
		    u64 address, u64 size)
{
	struct peer *p;
	unsigned long flags;
	bool known;

	if (!s->info.peers)
		return -EPERM;
	/* The last address of all stands for a mapping that failed (DMA_MAPPING_ERROR). */
	if (address > U64_MAX - size || meets_window(s, address, size))
		return -ERANGE;
	p = kmalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	*p = (struct peer){.of = s,
			   .target = target,
			   .phys = target->info.bar[bar].phys,
			   .size = size,
			   .address = address};
	spin_lock_irqsave(&lock, flags);
	known = find(s, p->phys);
	if (!known)
		list_add_tail(&p->node, &peers);
	spin_unlock_irqrestore(&lock, flags);
	if (known)
		kfree(p);
	return known ? -EEXIST : 0;
}

void shadow_peers_drop(const struct smartio_shadow *s)
{
	struct peer *p, *next;
	unsigned long flags;
	LIST_HEAD(gone);

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry_safe(p, next, &peers, node)
		if (p->of == s || p->target == s)
			list_move(&p->node, &gone);
	spin_unlock_irqrestore(&lock, flags);
	list_for_each_entry_safe(p, next, &gone, node)
		kfree(p);
}

/* ---- mapping ---- */

static bool in_window(const struct smartio_shadow *s, u64 address)
{
	const struct smartio_shadow_info *f = &s->info;

	return address >= f->dma_base && address - f->dma_base < f->dma_length;
}

static bool is_of(struct pci_dev *adapter, phys_addr_t phys)
{
	for (int i = 0; i < PCI_STD_NUM_BARS; i++) {
		const struct resource *r = &adapter->resource[i];

		if (resource_type(r) == IORESOURCE_MEM && phys >= r->start && phys <= r->end)
			return true;
	}
	return false;
}

/* What lies there leads to another host: not by way of this one, whichever adapter leads there. */
static bool is_behind_adapter(phys_addr_t phys)
{
	const struct smartio_shadow *s;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry(s, &shadows, node)
		found = found || is_of(s->info.parent, phys);
	spin_unlock_irqrestore(&lock, flags);
	return found;
}

static dma_addr_t refuse(struct device *dev, phys_addr_t phys, size_t size, const char *why)
{
	dev_warn_ratelimited(dev, "%#zx bytes at %pa are not mapped for it: %s\n", size, &phys,
			     why);
	return DMA_MAPPING_ERROR;
}

/* @reterr: why not. */
static dma_addr_t find_address(const struct smartio_shadow *s, struct device *dev, phys_addr_t phys,
			       size_t size, const char **reterr)
{
	dma_addr_t address = DMA_MAPPING_ERROR;
	unsigned long flags;
	struct peer *p;

	spin_lock_irqsave(&lock, flags);
	p = find(s, phys);
	if (p && size > p->size - (phys - p->phys))
		*reterr = "it ends behind what its host has mapped of that BAR";
	else if (p)
		address = p->address + (phys - p->phys);
	spin_unlock_irqrestore(&lock, flags);
	if (address == DMA_MAPPING_ERROR || address + size - 1 <= dma_get_mask(dev))
		return address;
	*reterr = "its driver says that it does not reach so far";
	return DMA_MAPPING_ERROR;
}

dma_addr_t shadow_peer_map(struct device *dev, phys_addr_t phys, size_t size,
			   enum dma_data_direction dir)
{
	const struct smartio_shadow *s = shadow_of(to_pci_dev(dev)->bus);
	const char *why = NULL;
	dma_addr_t address;

	if (!s->info.peers)
		return refuse(dev, phys, size, "it was borrowed without --peers");
	address = find_address(s, dev, phys, size, &why);
	if (address != DMA_MAPPING_ERROR)
		return address;
	if (why)
		return refuse(dev, phys, size, why);
	if (is_behind_adapter(phys))
		return refuse(dev, phys, size,
			      "no BAR that was borrowed with --peers and that its host has mapped");
	if (!s->has_window)
		return refuse(dev, phys, size,
			      "no IOMMU of this host puts its own devices into a window");
	address = shadow_window_map_bar(dev, phys, size, dir);
	return address != DMA_MAPPING_ERROR ? address
					    : refuse(dev, phys, size, "the window is full");
}

/* What its host has mapped stays so until one of the two goes. */
void shadow_peer_unmap(struct device *dev, dma_addr_t address, size_t size)
{
	const struct smartio_shadow *s = shadow_of(to_pci_dev(dev)->bus);

	if (s->has_window && in_window(s, address))
		shadow_window_unmap(dev, address, size);
}
