// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual NTB as a bridge of smartio.ko: the parts of its tables that the NTB API does not use.
 * smartio.ko need not be loaded: then there is no adapter, and the NTB API works without it.
 */
#include <linux/bitmap.h>
#include <linux/moduleparam.h>
#include <linux/msi.h>
#include <linux/slab.h>

#include <smartio/uapi.h>

#include "../bridge.h"
#include "vntb.h"

static bool is_wanted = true;
module_param_named(bridge, is_wanted, bool, 0444);
MODULE_PARM_DESC(bridge,
		 "be an adapter of smartio.ko (1); 0: smartio_ntb.ko may be one, by the NTB API");

/* What smartio.ko waits for with its lock; longer it waits without. */
#define MOMENT_US 10000

struct vntb_bridge {
	struct vntb *v;
	struct smartio_adapter *a;
	typeof(smartio_bridge_unregister) *unregister;
	typeof(smartio_bridge_changed) *changed;
	typeof(smartio_bridge_fault) *fault;
	u32 node[SIO_VNTB_MAX_PEERS], adapter[SIO_VNTB_MAX_PEERS];
	u32 requesters, groups, members;
	struct vntb_mapped *mapped; /* NULL: all windows are exact */
	/* In use, of each table. */
	DECLARE_BITMAP(entry, SIO_VNTB_MAX_ENTRIES);
	DECLARE_BITMAP(range, SIO_VNTB_MAX_RANGES);
	DECLARE_BITMAP(requester, SIO_VNTB_MAX_REQUESTERS);
	DECLARE_BITMAP(vector, SIO_VNTB_VECTORS);
	DECLARE_BITMAP(member, SIO_VNTB_MAX_MEMBERS);
	/* Of those, they have ended, but an access of before may still come. */
	DECLARE_BITMAP(late_range, SIO_VNTB_MAX_RANGES);
	DECLARE_BITMAP(late_member, SIO_VNTB_MAX_MEMBERS);
};

/* ---- peers ---- */

static void bridge_info(void *bridge, struct smartio_bridge_info *ret)
{
	const struct vntb_bridge *b = bridge;
	const struct vntb *v = b->v;

	*ret = (struct smartio_bridge_info){
		.node = v->node,
		.index = v->adapter,
		.boot = vntb_read64(v, SIO_VNTB_START),
		.pdev = v->pdev,
		.link_width = vntb_read(v, SIO_VNTB_LINK_WIDTH),
		.link_generation = vntb_read(v, SIO_VNTB_LINK_GENERATION),
		.programmed_by = SIO_PROGRAMMED_BY_IMPORTER,
		.capabilities = SIO_ADAPTER_PROCESSORS | SIO_ADAPTER_WRITE | SIO_ADAPTER_READ |
				SIO_ADAPTER_TRIGGER | SIO_ADAPTER_ENTRIES,
		.window_base = v->window,
		.window_size = (u64)v->entries << v->entry_shift,
		.entry_size = 1ULL << v->entry_shift,
		.alignment = PAGE_SIZE, /* an entry may lead to any page */
		.entries_total = v->entries - v->api.entries,
		.entries_free = v->entries - bitmap_weight(b->entry, v->entries),
		.requesters_total = b->requesters,
		.requesters_free = b->requesters - bitmap_weight(b->requester, b->requesters),
		.dma_bits = 64,
		.groups = b->groups,
	};
	for (u32 i = 0; i < v->peers && !ret->link_up; i++)
		ret->link_up = vntb_peer_state(v, i) & SIO_VNTB_PEER_UP;
}

static int bridge_peer(void *bridge, u32 i, struct smartio_bridge_peer *ret)
{
	const struct vntb_bridge *b = bridge;
	const struct vntb *v = b->v;

	if (i >= v->peers)
		return -ENOENT;
	*ret = (struct smartio_bridge_peer){
		.node = b->node[i],
		.adapter = b->adapter[i],
		.up = vntb_peer_state(v, i) & SIO_VNTB_PEER_UP,
		.changes = vntb_read(v, SIO_VNTB_PEER(i) + SIO_VNTB_PEER_CHANGES),
		.errors = vntb_read(v, SIO_VNTB_PEER(i) + SIO_VNTB_PEER_ERRORS),
		.boot = vntb_read64(v, SIO_VNTB_PEER(i) + SIO_VNTB_PEER_START),
	};
	return 0;
}

/* smartio.ko names only peers that it was notified of. */
static u32 row_of(const struct vntb_bridge *b, u32 node, u32 adapter)
{
	u32 i = 0;

	while (i + 1 < b->v->peers && (b->node[i] != node || b->adapter[i] != adapter))
		i++;
	return i;
}

/* One of @n that is not in use, from @first on; -ENOSPC. */
static int take(unsigned long *used, u32 first, u32 n)
{
	u32 i = find_next_zero_bit(used, n, first);

	if (i >= n)
		return -ENOSPC;
	__set_bit(i, used);
	return i;
}

/* ---- grants ---- */

static int let(struct vntb_bridge *b, u32 row, u64 base, u64 size, u32 flags, u64 *ret_handle)
{
	int i = take(b->range, b->v->api.ranges, b->v->ranges), error;

	if (i < 0)
		return i;
	error = vntb_range_set(b->v, i, row, base, size, flags);
	if (error) /* it still is in use: nobody is given it */
		return error;
	*ret_handle = i;
	return 0;
}

static int bridge_grant(void *bridge, u32 node, u32 adapter, dma_addr_t bus, u64 length, u32 access,
			u64 *ret_handle)
{
	u32 flags = (access & SMARTIO_BRIDGE_READ ? SIO_VNTB_RANGE_READ : 0) |
		    (access & SMARTIO_BRIDGE_WRITE ? SIO_VNTB_RANGE_WRITE : 0);

	return let(bridge, row_of(bridge, node, adapter), bus, length, flags, ret_handle);
}

static int bridge_grant_message(void *bridge, u32 node, u32 adapter, u64 address, u32 data,
				u64 *ret_handle)
{
	return let(bridge, row_of(bridge, node, adapter), address, data,
		   SIO_VNTB_RANGE_WRITE | SIO_VNTB_RANGE_MESSAGE, ret_handle);
}

/* Row @i has ended, and @busy is whether an access to it may still come. */
static int leave_row(struct vntb_bridge *b, const char *what, u32 i, bool busy, unsigned long *late,
		     unsigned long *used)
{
	if (busy && !__test_and_set_bit(i, late))
		dev_warn(&b->v->pdev->dev, "a peer's access does not end: %s %u is kept\n", what,
			 i);
	if (busy)
		return -EBUSY;
	__clear_bit(i, late);
	__clear_bit(i, used);
	return 0;
}

static int bridge_revoke(void *bridge, u64 handle)
{
	struct vntb_bridge *b = bridge;
	bool busy = test_bit(handle, b->late_range)
			    ? vntb_range_is_busy(b->v, handle)
			    : vntb_range_clear(b->v, handle, MOMENT_US) != 0;

	return leave_row(b, "range", handle, busy, b->late_range, b->range);
}

/* ---- interrupts ---- */

static int bridge_vector_get(void *bridge)
{
	struct vntb_bridge *b = bridge;
	int i = take(b->vector, SIO_VNTB_VECTOR_PEERS, b->v->vectors);

	return i < 0 ? i : pci_irq_vector(b->v->pdev, i);
}

static void bridge_vector_message(void *bridge, int irq, u64 *ret_address, u32 *ret_data)
{
	struct msi_msg msg;

	get_cached_msi_msg(irq, &msg);
	*ret_address = (u64)msg.address_hi << 32 | msg.address_lo;
	*ret_data = msg.data;
}

static void bridge_vector_put(void *bridge, int irq)
{
	struct vntb_bridge *b = bridge;
	u32 i;

	for_each_set_bit(i, b->vector, b->v->vectors)
		if (pci_irq_vector(b->v->pdev, i) == irq)
			__clear_bit(i, b->vector);
}

/* ---- maps: a handle is the first entry, and how many there are ---- */

static void close_entries(struct vntb *v, u64 handle)
{
	for (u32 i = 0; i < handle >> 32; i++)
		vntb_entry_clear(v, (u32)handle + i);
	/* What was stored before, through the window too, has been taken. */
	vntb_push(v, SIO_VNTB_LUT((u32)handle) + SIO_VNTB_LUT_CONTROL);
}

/* *ret: the first of @n entries that nobody has. */
static int take_entries(struct vntb_bridge *b, u64 n, u32 *ret)
{
	if (n > b->v->entries)
		return -ENOSPC;
	*ret = bitmap_find_next_zero_area(b->entry, b->v->entries, b->v->api.entries, n, 0);
	if (*ret >= b->v->entries)
		return -ENOSPC;
	bitmap_set(b->entry, *ret, n);
	return 0;
}

static int bridge_map(void *bridge, u32 node, u32 adapter, u64 bus, u64 length, u64 start,
		      struct smartio_bridge_map *ret)
{
	struct vntb_bridge *b = bridge;
	struct vntb *v = b->v;
	u32 row = row_of(b, node, adapter);
	u64 n = ((length - 1) >> v->entry_shift) + 1;
	u32 first;
	int error;

	if (!(vntb_peer_state(v, row) & SIO_VNTB_PEER_UP))
		return -ENETDOWN;
	if (vntb_read64(v, SIO_VNTB_PEER(row) + SIO_VNTB_PEER_START) != start)
		return -ESTALE;
	error = take_entries(b, n, &first);
	if (error)
		return error;
	for (u32 i = 0; i < n; i++)
		vntb_entry_set(v, first + i, row, bus + ((u64)i << v->entry_shift), start, 0);
	vntb_push(v, SIO_VNTB_LUT(first) + SIO_VNTB_LUT_CONTROL);
	ret->at = v->window + ((u64)first << v->entry_shift);
	/* That way does not lead through the entries, so that closing these stops nothing there. */
	ret->memory = ret->uncut = vntb_mapped_find(b->mapped, row, bus, length, &ret->at);
	ret->handle = n << 32 | first;
	return 0;
}

static void bridge_cut(void *bridge, u64 handle)
{
	close_entries(((struct vntb_bridge *)bridge)->v, handle);
}

static void bridge_unmap(void *bridge, u64 handle)
{
	struct vntb_bridge *b = bridge;

	close_entries(b->v, handle);
	bitmap_clear(b->entry, (u32)handle, handle >> 32);
}

/* ---- multicast groups ---- */

static void bridge_group(void *bridge, u32 group, struct smartio_bridge_group *ret)
{
	const struct vntb *v = ((struct vntb_bridge *)bridge)->v;
	u32 at = SIO_VNTB_GROUP(group);

	*ret = (struct smartio_bridge_group){
		.size = vntb_read64(v, at + SIO_VNTB_GROUP_SIZE),
		.members = vntb_read(v, at + SIO_VNTB_GROUP_MEMBERS),
		.open = vntb_read(v, at + SIO_VNTB_GROUP_OPEN),
	};
}

static int bridge_join(void *bridge, u32 group, dma_addr_t bus, u64 length, u64 *ret_handle)
{
	struct vntb_bridge *b = bridge;
	int i = take(b->member, 0, b->members), error;

	if (i < 0)
		return i;
	error = vntb_member_set(b->v, i, group, bus, length);
	if (error)
		__clear_bit(i, b->member);
	*ret_handle = i;
	return error;
}

static int bridge_leave(void *bridge, u64 handle)
{
	struct vntb_bridge *b = bridge;
	bool busy = test_bit(handle, b->late_member)
			    ? vntb_member_is_busy(b->v, handle)
			    : vntb_member_clear(b->v, handle, MOMENT_US) != 0;

	return leave_row(b, "member", handle, busy, b->late_member, b->member);
}

static void bridge_open(void *bridge, u64 handle, bool yes)
{
	vntb_member_open(((struct vntb_bridge *)bridge)->v, handle, yes);
}

static int bridge_map_group(void *bridge, u32 group, u64 length, struct smartio_bridge_map *ret)
{
	struct vntb_bridge *b = bridge;
	struct vntb *v = b->v;
	u64 n = ((length - 1) >> v->entry_shift) + 1;
	u32 first;
	int error = take_entries(b, n, &first);

	if (error)
		return error;
	for (u32 i = 0; i < n; i++)
		vntb_entry_set(v, first + i, group, (u64)i << v->entry_shift, 0,
			       SIO_VNTB_LUT_GROUP);
	vntb_push(v, SIO_VNTB_LUT(first) + SIO_VNTB_LUT_CONTROL);
	ret->at = v->window + ((u64)first << v->entry_shift);
	ret->memory = ret->uncut = false;
	ret->handle = n << 32 | first;
	return 0;
}

/* Which is pending first: what ends between the two counts. */
static int bridge_group_missed(void *bridge, u32 group, bool all, u32 *ret)
{
	const struct vntb *v = ((struct vntb_bridge *)bridge)->v;
	u32 at = SIO_VNTB_GROUP(group);
	u32 pending = all ? vntb_read(v, at + SIO_VNTB_GROUP_PENDING) : 0;

	*ret = vntb_read(v, at + SIO_VNTB_GROUP_MISSED);
	return pending && pending != ~0U ? -EAGAIN : 0;
}

/* ---- counters ---- */

/* By the names that smartio-emu has for the same. */
static u32 bridge_counters(void *bridge, struct sio_counter *counter, u32 room)
{
	static const char *const names[SIO_VNTB_COUNTERS] = {
		[SIO_VNTB_COUNT_READ_REQUESTS] = "rd_req",
		[SIO_VNTB_COUNT_COMPLETIONS] = "rd_cpl",
		[SIO_VNTB_COUNT_READ_BYTES] = "rd_bytes",
		[SIO_VNTB_COUNT_WRITES] = "wr_tlp",
		[SIO_VNTB_COUNT_WRITE_BYTES] = "wr_bytes",
		[SIO_VNTB_COUNT_MESSAGES] = "msg",
		[SIO_VNTB_COUNT_FAULTS] = "faults",
		[SIO_VNTB_COUNT_DOORBELLS] = "doorbells",
		[SIO_VNTB_COUNT_MAILS] = "messages",
		[SIO_VNTB_COUNT_INTERRUPTS] = "interrupts",
		[SIO_VNTB_COUNT_CHANGES] = "path_changes",
		[SIO_VNTB_COUNT_GROUP_OUT] = "multicast_out",
		[SIO_VNTB_COUNT_GROUP_IN] = "multicast_in",
	};
	const struct vntb_bridge *b = bridge;
	u32 n = 0;

	for (u32 i = 0; i < SIO_VNTB_COUNTERS && n < room; i++) {
		/* Nobody counts what goes through a mapped window. */
		if (b->mapped && i <= SIO_VNTB_COUNT_MESSAGES)
			continue;
		strscpy(counter[n].name, names[i], sizeof(counter[n].name));
		counter[n++].value = vntb_read64(b->v, SIO_VNTB_COUNTER(i));
	}
	return n;
}

/* ---- requesters ---- */

static int bridge_requester_add(void *bridge, u32 requester, u32 *ret_entry)
{
	struct vntb_bridge *b = bridge;
	int i = take(b->requester, 0, b->requesters);

	if (i < 0)
		return i;
	vntb_write(b->v, SIO_VNTB_REQUESTER(i), SIO_VNTB_REQUESTER_VALID | requester);
	vntb_push(b->v, SIO_VNTB_REQUESTER(i));
	*ret_entry = i;
	return 0;
}

static void bridge_requester_del(void *bridge, u32 entry)
{
	struct vntb_bridge *b = bridge;

	vntb_write(b->v, SIO_VNTB_REQUESTER(entry), 0);
	vntb_push(b->v, SIO_VNTB_REQUESTER(entry));
	__clear_bit(entry, b->requester);
}

static const struct smartio_bridge_ops bridge_ops = {
	.info = bridge_info,
	.peer = bridge_peer,
	.grant = bridge_grant,
	.grant_message = bridge_grant_message,
	.revoke = bridge_revoke,
	.vector_get = bridge_vector_get,
	.vector_message = bridge_vector_message,
	.vector_put = bridge_vector_put,
	.map = bridge_map,
	.cut = bridge_cut,
	.unmap = bridge_unmap,
	.requester_add = bridge_requester_add,
	.requester_del = bridge_requester_del,
	.group = bridge_group,
	.join = bridge_join,
	.leave = bridge_leave,
	.open = bridge_open,
	.map_group = bridge_map_group,
	.group_missed = bridge_group_missed,
	.counters = bridge_counters,
};

/* ---- life ---- */

/* What does not change. */
static void learn(struct vntb_bridge *b)
{
	const struct vntb *v = b->v;

	for (u32 i = 0; i < v->peers; i++) {
		b->node[i] = vntb_read(v, SIO_VNTB_PEER(i) + SIO_VNTB_PEER_NODE);
		b->adapter[i] = vntb_read(v, SIO_VNTB_PEER(i) + SIO_VNTB_PEER_ADAPTER);
	}
	b->requesters = min_t(u32, vntb_read(v, SIO_VNTB_REQUESTERS), SIO_VNTB_MAX_REQUESTERS);
	b->groups = min_t(u32, vntb_read(v, SIO_VNTB_GROUPS), SIO_VNTB_MAX_GROUPS);
	b->members = min_t(u32, vntb_read(v, SIO_VNTB_MEMBERS), SIO_VNTB_MAX_MEMBERS);
	bitmap_set(b->entry, 0, v->api.entries);
}

static void put_symbols(const struct vntb_bridge *b)
{
	if (b->unregister)
		symbol_put(smartio_bridge_unregister);
	if (b->changed)
		symbol_put(smartio_bridge_changed);
	if (b->fault)
		symbol_put(smartio_bridge_fault);
}

static void free_bridge(struct vntb_bridge *b)
{
	put_symbols(b);
	vntb_mapped_close(b->mapped);
	kfree(b);
}

static void be_bridge(struct vntb_bridge *b)
{
	typeof(smartio_bridge_register) *reg = symbol_get(smartio_bridge_register);

	b->unregister = symbol_get(smartio_bridge_unregister);
	b->changed = symbol_get(smartio_bridge_changed);
	b->fault = symbol_get(smartio_bridge_fault);
	if (reg && b->unregister && b->changed && b->fault)
		b->a = reg(&bridge_ops, b);
	else
		b->a = ERR_PTR(-ENOENT);
	if (reg)
		symbol_put(smartio_bridge_register);
}

int vntb_bridge_start(struct vntb *v)
{
	struct vntb_bridge *b;
	int error;

	if (!is_wanted || v->bridge)
		return 0;
	b = kzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->v = v;
	learn(b);
	error = vntb_mapped_open(v, &b->mapped);
	if (error) {
		kfree(b);
		return error;
	}
	be_bridge(b);
	if (IS_ERR(b->a)) {
		dev_info(&v->pdev->dev, "no adapter of smartio.ko (%pe)\n", b->a);
		free_bridge(b);
		return 0;
	}
	smp_store_release(&v->bridge, b); /* pairs with vntb_bridge_link(), vntb_bridge_fault() */
	b->changed(b->a);		  /* since it looked, and before we heard */
	return 0;
}

void vntb_bridge_stop(struct vntb *v)
{
	struct vntb_bridge *b = v->bridge;

	if (!b)
		return;
	v->bridge = NULL;
	synchronize_irq(pci_irq_vector(v->pdev, SIO_VNTB_VECTOR_LINK));
	synchronize_irq(pci_irq_vector(v->pdev, SIO_VNTB_VECTOR_FAULT));
	b->unregister(b->a);
	free_bridge(b);
}

void vntb_bridge_link(struct vntb *v)
{
	struct vntb_bridge *b = smp_load_acquire(&v->bridge); /* pairs with vntb_bridge_start() */

	if (b)
		b->changed(b->a);
}

void vntb_bridge_fault(struct vntb *v, const struct vntb_fault *f, const char *reason)
{
	struct vntb_bridge *b = smp_load_acquire(&v->bridge); /* pairs with vntb_bridge_start() */
	bool in = f->kind & SIO_VNTB_FAULT_IN;
	u32 node = v->node;

	if (!b)
		return;
	if (!in)
		node = f->peer < v->peers ? b->node[f->peer] : 0;
	b->fault(b->a, in, !(f->kind & SIO_VNTB_FAULT_READ), node, f->address, f->length, reason);
}
