// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bridge for tests: two adapters of this host, joined to each other, each of which says that it
 * is adapter 0 of a host of its own. Its window needs no address: what a peer granted is where it
 * is. The function that it uses the bus as is QEMU's pci-testdev. Messages are stores to a page
 * that is looked at again and again.
 *
 * Parameters, to be written while it is loaded: link (0 or 1), turn and boot (of the second host),
 * fault ("in|out read|write NODE ADDRESS LENGTH", reported for the first adapter), miss (0 or 1: some
 * member of a group misses what is written there), late (0 or 1: accesses that were sent to grants
 * that end and to members of groups may still come).
 */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/iommu.h>
#include <linux/irq.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "bridge.h"
#include <smartio/uapi.h>

#define ENTRIES 64 /* of a page each */
#define GRANTS 32
#define VECTORS 4
#define REQUESTERS 8
#define GROUPS 8
#define MEMBERS 8
#define BOOT 3
#define TESTDEV_VENDOR 0x1b36
#define TESTDEV_DEVICE 0x0005

struct grant {
	u64 bus, length;
	u32 access; /* 0: this row is free */
};

struct adapter {
	struct smartio_adapter *a;
	u32 index, node;
	u64 boot;
	struct adapter *peer;
	struct grant grant[GRANTS];
	u64 entries[ENTRIES]; /* of the map that begins there: its length; else 0 */
	u32 entries_used;
	u32 requester[REQUESTERS]; /* + 1 */
	int irq[VECTORS];	   /* 0: free */
	u32 *page;		   /* of messages */
};

/* Of a group: copies are made to the first open one alone. */
struct member {
	struct adapter *of; /* NULL: this row is free */
	u32 group;
	u64 bus, length;
	bool open;
};

static struct adapter loop[2];
static struct member member[MEMBERS];
static u64 group_size[GROUPS];
static bool miss; /* what is waited for is always missed by some member */
static bool late;
static unsigned int waits; /* for what was written to groups to arrive */
static struct pci_dev *pdev;
static bool link = true;
static unsigned int turn, changes = 1;
static struct timer_list watch;

/* ---- peers ---- */

static u32 count_free_requesters(const struct adapter *l)
{
	u32 n = 0;

	for (u32 i = 0; i < REQUESTERS; i++)
		n += !l->requester[i];
	return n;
}

static void loop_info(void *bridge, struct smartio_bridge_info *ret)
{
	const struct adapter *l = bridge;

	*ret = (struct smartio_bridge_info){
		.node = l->node,
		.index = l->index,
		.boot = l->boot,
		.pdev = pdev,
		.link_up = link,
		.link_width = 1,
		.link_generation = 1,
		.programmed_by = SIO_PROGRAMMED_BY_IMPORTER,
		.capabilities = SIO_ADAPTER_PROCESSORS | SIO_ADAPTER_WRITE | SIO_ADAPTER_READ |
				SIO_ADAPTER_TRIGGER | SIO_ADAPTER_ENTRIES,
		.window_size = ENTRIES * PAGE_SIZE,
		.entry_size = PAGE_SIZE,
		.alignment = PAGE_SIZE,
		.entries_total = ENTRIES,
		.entries_free = ENTRIES - l->entries_used,
		.requesters_total = REQUESTERS,
		.requesters_free = count_free_requesters(l),
		.dma_bits = 64,
		.groups = GROUPS,
	};
}

static int loop_peer(void *bridge, u32 i, struct smartio_bridge_peer *ret)
{
	const struct adapter *l = bridge;

	if (i)
		return -ENOENT;
	*ret = (struct smartio_bridge_peer){.node = l->peer->node,
					    .up = link,
					    .changes = changes,
					    .errors = 0,
					    .boot = l->peer->boot,
					    .turn = turn};
	return 0;
}

/* ---- grants ---- */

static int let(void *bridge, u64 bus, u64 length, u32 access, u64 *ret_handle)
{
	struct adapter *l = bridge;

	for (u32 i = 0; i < GRANTS; i++) {
		if (l->grant[i].access)
			continue;
		l->grant[i] = (struct grant){bus, length, access};
		*ret_handle = i;
		return 0;
	}
	return -ENOSPC;
}

static int loop_grant(void *bridge, u32 node, u32 adapter, dma_addr_t bus, u64 length, u32 access,
		      u64 *ret_handle)
{
	return let(bridge, bus, length, access, ret_handle);
}

static int loop_grant_message(void *bridge, u32 node, u32 adapter, u64 address, u32 data,
			      u64 *ret_handle)
{
	return let(bridge, round_down(address, PAGE_SIZE), PAGE_SIZE, SMARTIO_BRIDGE_WRITE,
		   ret_handle);
}

/* Nobody is let through, and the row is kept. */
static int loop_revoke(void *bridge, u64 handle)
{
	struct grant *g = &((struct adapter *)bridge)->grant[handle];

	g->length = 0;
	if (READ_ONCE(late))
		return -EBUSY;
	g->access = 0;
	return 0;
}

static bool is_granted(const struct adapter *l, u64 bus, u64 length)
{
	for (u32 i = 0; i < GRANTS; i++) {
		const struct grant *g = &l->grant[i];

		if (g->access && g->length && bus >= g->bus && length <= g->length &&
		    bus - g->bus <= g->length - length)
			return true;
	}
	return false;
}

/* ---- interrupts ---- */

static int loop_vector_get(void *bridge)
{
	struct adapter *l = bridge;

	for (u32 i = 0; i < VECTORS; i++) {
		int irq;

		if (l->irq[i])
			continue;
		/* Of no module, as those of PCI functions: it would keep this one loaded. */
		irq = __irq_alloc_descs(-1, 0, 1, NUMA_NO_NODE, NULL, NULL);
		if (irq < 0)
			return irq;
		irq_set_chip_and_handler(irq, &dummy_irq_chip, handle_simple_irq);
		WRITE_ONCE(l->irq[i], irq);
		return irq;
	}
	return -ENOSPC;
}

static u32 message(u32 i)
{
	return 0x5eed0001 + i;
}

static void loop_vector_message(void *bridge, int irq, u64 *ret_address, u32 *ret_data)
{
	const struct adapter *l = bridge;

	for (u32 i = 0; i < VECTORS; i++)
		if (l->irq[i] == irq) {
			*ret_address = virt_to_phys(l->page + i);
			*ret_data = message(i);
		}
}

static void look(struct timer_list *t)
{
	for (u32 k = 0; k < 2; k++)
		for (u32 i = 0; i < VECTORS; i++)
			if (READ_ONCE(loop[k].irq[i]) &&
			    cmpxchg(loop[k].page + i, message(i), 0) == message(i))
				generic_handle_irq_safe(loop[k].irq[i]);
	mod_timer(&watch, jiffies + 1);
}

static void loop_vector_put(void *bridge, int irq)
{
	struct adapter *l = bridge;

	for (u32 i = 0; i < VECTORS; i++)
		if (l->irq[i] == irq) {
			WRITE_ONCE(l->irq[i], 0);
			del_timer_sync(&watch); /* it may be about to send it */
			mod_timer(&watch, jiffies + 1);
		}
	irq_free_desc(irq);
}

/* ---- maps ---- */

/* Where it lies in this host's memory; 0: in pieces, or nowhere. */
static phys_addr_t place_of(const struct adapter *peer, u64 bus, u64 length)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&pdev->dev);
	phys_addr_t first;

	if (bus == virt_to_phys(peer->page) || !domain || !(domain->type & __IOMMU_DOMAIN_PAGING))
		return bus;
	first = iommu_iova_to_phys(domain, bus);
	for (u64 at = 0; at < length; at += PAGE_SIZE)
		if (iommu_iova_to_phys(domain, bus + at) != first + at)
			return 0;
	return first;
}

static int take_entries(struct adapter *l, u64 length, u64 *ret)
{
	u64 n = length >> PAGE_SHIFT;

	if (n > ENTRIES - l->entries_used)
		return -ENOSPC;
	for (u32 i = 0; i < ENTRIES; i++)
		if (!l->entries[i]) {
			l->entries[i] = n;
			l->entries_used += n;
			*ret = i;
			return 0;
		}
	return -ENOSPC;
}

static int loop_map(void *bridge, u32 node, u32 adapter, u64 bus, u64 length, u64 start,
		    struct smartio_bridge_map *ret)
{
	struct adapter *l = bridge;

	if (!link)
		return -ENETDOWN;
	if (start != SIO_LINK_START(l->peer->boot, turn))
		return -ESTALE;
	if (!is_granted(l->peer, bus, length))
		return -EACCES;
	*ret = (struct smartio_bridge_map){.memory = true, .uncut = true};
	ret->at = place_of(l->peer, bus, length);
	return ret->at ? take_entries(l, length, &ret->handle) : -EINVAL;
}

static void loop_cut(void *bridge, u64 handle)
{
}

static void loop_unmap(void *bridge, u64 handle)
{
	struct adapter *l = bridge;

	l->entries_used -= l->entries[handle];
	l->entries[handle] = 0;
}

/* ---- multicast groups ---- */

static void loop_group(void *bridge, u32 group, struct smartio_bridge_group *ret)
{
	*ret = (struct smartio_bridge_group){.size = group_size[group]};
	for (u32 i = 0; i < MEMBERS; i++)
		if (member[i].of && member[i].group == group) {
			ret->members++;
			ret->open += member[i].open;
		}
}

static int loop_join(void *bridge, u32 group, dma_addr_t bus, u64 length, u64 *ret_handle)
{
	struct smartio_bridge_group now;

	loop_group(bridge, group, &now);
	if (now.members && length > now.size)
		return -ERANGE;
	for (u32 i = 0; i < MEMBERS; i++) {
		if (member[i].of)
			continue;
		member[i] = (struct member){bridge, group, bus, length, false};
		if (!now.members)
			group_size[group] = length;
		*ret_handle = i;
		return 0;
	}
	return -ENOSPC;
}

static int loop_leave(void *bridge, u64 handle)
{
	member[handle].open = false;
	if (READ_ONCE(late))
		return -EBUSY;
	member[handle].of = NULL;
	return 0;
}

static void loop_open(void *bridge, u64 handle, bool yes)
{
	member[handle].open = yes;
}

static int loop_map_group(void *bridge, u32 group, u64 length, struct smartio_bridge_map *ret)
{
	*ret = (struct smartio_bridge_map){};
	for (u32 i = 0; i < MEMBERS && !ret->at; i++)
		if (member[i].of && member[i].group == group && member[i].open)
			ret->at = place_of(member[i].of, member[i].bus, length);
	return ret->at ? take_entries(bridge, length, &ret->handle) : -ENOSPC;
}

static int loop_group_missed(void *bridge, u32 group, bool all, u32 *ret)
{
	*ret = all && READ_ONCE(miss);
	waits += all;
	return all && READ_ONCE(late) ? -EAGAIN : 0;
}

/* ---- requesters ---- */

static int loop_requester_add(void *bridge, u32 requester, u32 *ret_entry)
{
	struct adapter *l = bridge;

	for (u32 i = 0; i < REQUESTERS; i++)
		if (!l->requester[i]) {
			l->requester[i] = requester + 1;
			*ret_entry = i;
			return 0;
		}
	return -ENOSPC;
}

static void loop_requester_del(void *bridge, u32 entry)
{
	((struct adapter *)bridge)->requester[entry] = 0;
}

static const struct smartio_bridge_ops ops = {
	.info = loop_info,
	.peer = loop_peer,
	.grant = loop_grant,
	.grant_message = loop_grant_message,
	.revoke = loop_revoke,
	.vector_get = loop_vector_get,
	.vector_message = loop_vector_message,
	.vector_put = loop_vector_put,
	.map = loop_map,
	.cut = loop_cut,
	.unmap = loop_unmap,
	.requester_add = loop_requester_add,
	.requester_del = loop_requester_del,
	.group = loop_group,
	.join = loop_join,
	.leave = loop_leave,
	.open = loop_open,
	.map_group = loop_map_group,
	.group_missed = loop_group_missed,
};

/* ---- parameters ---- */

static void changed(void)
{
	for (u32 k = 0; k < 2; k++)
		if (!IS_ERR_OR_NULL(loop[k].a))
			smartio_bridge_changed(loop[k].a);
}

static int set_link(const char *text, const struct kernel_param *p)
{
	bool before = link;
	int error = param_set_bool(text, p);

	changes += link != before;
	changed();
	return error;
}

/* Down for a moment, and other addresses. */
static int set_turn(const char *text, const struct kernel_param *p)
{
	int error = param_set_uint(text, p);

	changes += 2;
	changed();
	return error;
}

static int set_boot(const char *text, const struct kernel_param *p)
{
	unsigned int boot;
	int error = kstrtouint(text, 0, &boot);

	if (error)
		return error;
	loop[1].boot = boot;
	changes += 2;
	changed();
	return 0;
}

static int set_fault(const char *text, const struct kernel_param *p)
{
	char way[8], access[8];
	u64 address;
	u32 node, length;

	if (IS_ERR_OR_NULL(loop[0].a) ||
	    sscanf(text, "%7s %7s %u %llx %u", way, access, &node, &address, &length) != 5)
		return -EINVAL;
	smartio_bridge_fault(loop[0].a, strcmp(way, "in") == 0, strcmp(access, "write") == 0, node,
			     address, length, "a test says so");
	return 0;
}

static const struct kernel_param_ops link_ops = {.set = set_link, .get = param_get_bool};
static const struct kernel_param_ops turn_ops = {.set = set_turn, .get = param_get_uint};
static const struct kernel_param_ops boot_ops = {.set = set_boot};
static const struct kernel_param_ops fault_ops = {.set = set_fault};
module_param(miss, bool, 0600);
module_param(late, bool, 0600);
module_param(waits, uint, 0400);
module_param_cb(link, &link_ops, &link, 0600);
module_param_cb(turn, &turn_ops, &turn, 0600);
module_param_cb(boot, &boot_ops, NULL, 0200);
module_param_cb(fault, &fault_ops, NULL, 0200);

/* ---- life ---- */

static void stop(void)
{
	for (u32 k = 0; k < 2; k++)
		if (!IS_ERR_OR_NULL(loop[k].a))
			smartio_bridge_unregister(loop[k].a);
	del_timer_sync(&watch);
	for (u32 k = 0; k < 2; k++)
		free_page((unsigned long)loop[k].page);
	pci_dev_put(pdev);
}

static int start(void)
{
	for (u32 k = 0; k < 2; k++) {
		loop[k].index = k;
		loop[k].node = 4 + 4 * k;
		loop[k].boot = BOOT + k;
		loop[k].peer = &loop[1 - k];
		loop[k].page = (u32 *)get_zeroed_page(GFP_KERNEL);
		if (!loop[k].page)
			return -ENOMEM;
	}
	for (u32 k = 0; k < 2; k++) {
		loop[k].a = smartio_bridge_register(&ops, &loop[k]);
		if (IS_ERR(loop[k].a))
			return PTR_ERR(loop[k].a);
	}
	return 0;
}

static int __init loop_init(void)
{
	int error;

	pdev = pci_get_device(TESTDEV_VENDOR, TESTDEV_DEVICE, NULL);
	if (!pdev)
		return -ENODEV;
	timer_setup(&watch, look, 0);
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (!error)
		error = start();
	if (error)
		stop();
	else
		mod_timer(&watch, jiffies + 1);
	return error;
}

module_init(loop_init);
module_exit(stop);
MODULE_DESCRIPTION("SmartIO: two adapters of one host, for tests");
MODULE_LICENSE("GPL");
