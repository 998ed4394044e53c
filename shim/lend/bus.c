// SPDX-License-Identifier: GPL-2.0-only
/* Shadows: each is on a root bus in a PCI domain of its own; how they are added and removed. */
#include <linux/dma-map-ops.h>
#include <linux/slab.h>

#include "shadow.h"

#define FIRST_DOMAIN 0x8000 /* above what firmware gives; IOMMU code keeps 16 bits of it */
#define LAST_DOMAIN 0xffff

/* ---- resources ---- */

/* The parts of the adapter's window are seen below it in /proc/iomem, if nothing is in the way. */
static void show(struct smartio_shadow *s, struct resource *window)
{
	for (int i = 0; i < PCI_STD_NUM_BARS; i++) {
		struct resource *r = &s->info.parent->resource[i];

		if (resource_contains(r, window) && request_resource(r, window) == 0)
			return;
	}
}

/* The kernel makes one of two windows that meet, unless they are of different kinds. */
static void make_windows(struct smartio_shadow *s, struct list_head *resources)
{
	unsigned long kind = 0;

	s->numbers = (struct resource){.name = "smartio shadow", .flags = IORESOURCE_BUS};
	pci_add_resource(resources, &s->numbers);
	for (unsigned int i = 0; i < SIO_DEVICE_BARS; i++) {
		const struct smartio_shadow_bar *b = &s->info.bar[i];

		if (!b->size)
			continue;
		s->window[i] = (struct resource){.name = "smartio shadow",
						 .start = b->phys,
						 .end = b->phys + b->size - 1,
						 .flags = IORESOURCE_MEM | kind};
		kind ^= IORESOURCE_MEM_64;
		show(s, &s->window[i]);
		pci_add_resource(resources, &s->window[i]);
	}
}

static void drop_windows(struct smartio_shadow *s)
{
	for (unsigned int i = 0; i < SIO_DEVICE_BARS; i++)
		if (s->window[i].parent)
			release_resource(&s->window[i]);
}

/* Where a BAR lies was given; it need not be aligned as a real one. */
static int claim_bars(struct smartio_shadow *s, struct pci_dev *pdev)
{
	int error = 0;

	for (unsigned int i = 0; i < SIO_DEVICE_BARS && !error; i++) {
		if (!s->info.bar[i].size)
			continue;
		pdev->resource[i].start = s->window[i].start;
		pdev->resource[i].end = s->window[i].end;
		pdev->resource[i].flags &= ~IORESOURCE_UNSET;
		error = pci_claim_resource(pdev, i);
	}
	return error;
}

/* ---- coming ---- */

static int find_domain(void)
{
	for (int n = FIRST_DOMAIN; n <= LAST_DOMAIN; n++)
		if (!pci_find_bus(n, 0))
			return n;
	return -ENOSPC;
}

/* Whoever still has the function open after it has gone may ask its bus who it was. */
static void release(struct pci_host_bridge *bridge)
{
	kfree(bridge->release_data);
	module_put(THIS_MODULE);
}

static void remove_bus(struct smartio_shadow *s)
{
	pci_stop_root_bus(s->bus);
	pci_remove_root_bus(s->bus);
	drop_windows(s);
	shadow_msi_free(s);
	shadow_window_free(s);
}

/* With the lock of the PCI tree. On success the bus has @s. */
static int make_bus(struct smartio_shadow *s)
{
	LIST_HEAD(resources);
	struct pci_dev *pdev;
	int error;

	make_windows(s, &resources);
	s->bus = pci_create_root_bus(&s->info.parent->dev, 0, &shadow_config_ops, &s->sysdata,
				     &resources);
	if (!s->bus) {
		pci_free_resource_list(&resources);
		drop_windows(s);
		return -ENOMEM;
	}
	__module_get(THIS_MODULE);
	s->bridge = s->bus->bridge; /* the kernel leaves the first reference to who made it */
	pci_set_host_bridge_release(to_pci_host_bridge(s->bridge), release, s);
	if (s->domain)
		dev_set_msi_domain(&s->bus->dev, s->domain);
	pci_scan_child_bus(s->bus);
	pdev = pci_get_slot(s->bus, 0);
	error = pdev ? claim_bars(s, pdev) : -ENODEV;
	if (pdev && !error)
		set_dma_ops(&pdev->dev, &shadow_dma_ops);
	pci_dev_put(pdev);
	return error;
}

static int make(struct smartio_shadow *s)
{
	int error = find_domain();

	if (error < 0)
		return error;
	s->sysdata.domain = error;
	s->sysdata.node = dev_to_node(&s->info.parent->dev);
	error = shadow_window_make(s);
	if (error)
		return error;
	error = shadow_msi_make(s);
	if (error) {
		shadow_window_free(s);
		return error;
	}
	shadow_config_fill(s);
	error = make_bus(s);
	if (error && s->bus) {
		remove_bus(s);
	} else if (error) {
		shadow_msi_free(s);
		shadow_window_free(s);
	}
	return error;
}

static void shadow_free(struct smartio_shadow *s)
{
	if (s->bridge)
		put_device(s->bridge);
	else
		kfree(s);
}

static struct smartio_shadow *shadow_add(const struct smartio_shadow_info *info, u32 *ret_bdf)
{
	struct smartio_shadow *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int error;

	if (!s)
		return ERR_PTR(-ENOMEM);
	s->info = *info;
	raw_spin_lock_init(&s->lock);
	INIT_WORK(&s->post, shadow_config_post);
	pci_lock_rescan_remove();
	error = make(s);
	pci_unlock_rescan_remove();
	if (!error) {
		shadow_peers_join(s);
		*ret_bdf = (u32)s->sysdata.domain << 16;
		return s;
	}
	shadow_free(s);
	return ERR_PTR(error);
}

static void set_live(struct smartio_shadow *s, bool yes)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&s->lock, flags);
	s->live = yes && s->info.port;
	raw_spin_unlock_irqrestore(&s->lock, flags);
}

static void shadow_start(struct smartio_shadow *s)
{
	set_live(s, true);
	pci_lock_rescan_remove();
	pci_bus_add_devices(s->bus);
	pci_unlock_rescan_remove();
}

/* ---- going ---- */

static void shadow_lost(struct smartio_shadow *s)
{
	WRITE_ONCE(s->lost, true);
}

static void shadow_del(struct smartio_shadow *s)
{
	shadow_peers_drop(s);
	pci_lock_rescan_remove();
	remove_bus(s);
	pci_unlock_rescan_remove();
	shadow_peers_leave(s);
	set_live(s, false); /* no driver has it, and who still has it open asks nobody */
	cancel_work_sync(&s->post);
}

static const struct smartio_lend_ops lend_ops = {
	.owner = THIS_MODULE,
	.add = shadow_add,
	.start = shadow_start,
	.interrupt = shadow_interrupt,
	.lost = shadow_lost,
	.peer = shadow_peer_add,
	.del = shadow_del,
	.free = shadow_free,
};

static int __init lend_init(void)
{
	return smartio_lend_register(&lend_ops);
}

static void __exit lend_exit(void)
{
	smartio_lend_unregister(&lend_ops);
}

module_init(lend_init);
module_exit(lend_exit);
MODULE_DESCRIPTION("SmartIO: borrowed functions in this host's PCI tree");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0"); /* as smartio.ko */
