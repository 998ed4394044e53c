/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bridges: the hardware that joins this host to others. A module of its own serves each kind of
 * hardware by struct smartio_bridge_ops and registers what it finds; smartio.ko makes adapters of
 * them. Bridges deal with addresses alone; smartio.ko knows what is at them, and who owns it. Peers
 * are named by (node, adapter of theirs), as in the port. Every operation may sleep; smartio.ko
 * calls them with its lock held, so they must not call back, and they end within milliseconds.
 */
#ifndef SHIM_BRIDGE_H
#define SHIM_BRIDGE_H

#include <linux/module.h>
#include <linux/types.h>

struct pci_dev;
struct sio_counter;
struct smartio_adapter; /* smartio.ko's */

#define SMARTIO_BRIDGE_READ 1 /* access */
#define SMARTIO_BRIDGE_WRITE 2

struct smartio_bridge_info {
	u32 node;  /* of this host */
	u32 index; /* of the adapter; as registered, it stays */
	u64 boot;  /* counts this host's starts, as its peers see it; less than 1 << 24 */
	/*
	 * Whose requester id this host's bus sees peers' accesses from. Its DMA mask is the
	 * provider's to set, and where there is an IOMMU smartio.ko halves what that reaches; the
	 * rest of its DMA parameters smartio.ko sets.
	 */
	struct pci_dev *pdev;
	bool link_up; /* the adapter's own link, whoever is behind it */
	u32 link_width, link_generation;
	u32 programmed_by;	 /* SIO_PROGRAMMED_BY_* */
	u32 capabilities;	 /* SIO_ADAPTER_* */
	u32 windows;		 /* ranges that can be mapped at once; 0: entries_total of them */
	phys_addr_t window_base; /* where this host's devices and processors find the window */
	u64 window_size, entry_size;
	u64 alignment; /* of bus addresses and lengths of maps: a power of 2, at least a page */
	u32 entries_total, entries_free;
	u32 requesters_total, requesters_free;
	u32 dma_bits; /* of bus addresses that a map may lead to */
	u32 groups;   /* multicast groups, from 0 on, 64 at most; 0: the hardware has none */
};

/* A multicast group, as all hosts see it. */
struct smartio_bridge_group {
	u64 size; /* bytes; of no meaning without members */
	u32 members, open;
};

struct smartio_bridge_peer {
	u32 node, adapter;
	bool up;
	u32 changes; /* counts those of @up */
	u32 errors;
	u64 boot; /* counts the peer's starts, as of when it was up last; 0: it never was */
	u64 turn; /* how often the way came back with other addresses; the same at both ends */
};

/* Where a map can be reached in this host. */
struct smartio_bridge_map {
	phys_addr_t at; /* by processors and devices */
	bool memory;	/* processors' accesses may be combined: it is the peer's RAM itself */
	bool uncut;	/* cut does not stop what goes there: smartio.ko does, as far as it can */
	u64 handle;
};

struct smartio_bridge_ops {
	void (*info)(void *bridge, struct smartio_bridge_info *ret);
	/* The @i-th peer, in an order that does not change. Return: 0; -ENOENT: no more. */
	int (*peer)(void *bridge, u32 i, struct smartio_bridge_peer *ret);
	/*
	 * Let the peer reach @length bytes at @bus (an address as @pdev uses it). Return: 0;
	 * -ENOSPC; -ERANGE: no window can lead there; -EOPNOTSUPP: whatever the peer asks for is
	 * let through, and revoke is not called.
	 */
	int (*grant)(void *bridge, u32 node, u32 adapter, dma_addr_t bus, u64 length, u32 access,
		     u64 *ret_handle);
	/* The same, of one message: @data at @address, which is an interrupt's of this host. */
	int (*grant_message)(void *bridge, u32 node, u32 adapter, u64 address, u32 data,
			     u64 *ret_handle);
	/*
	 * Return: 0: no access of the peer is under way. -EBUSY: none begins, but one that had
	 * begun may still come: it is called again until there is none, or the bridge goes.
	 */
	int (*revoke)(void *bridge, u64 handle);
	/*
	 * A vector of @pdev that the bridge does not need: its interrupt and message are for a
	 * peer's devices and processors. Return: the number that request_irq() takes; -ENOSPC.
	 * NULL: there are none.
	 */
	int (*vector_get)(void *bridge);
	/* The message of @irq, for which request_irq() was called. */
	void (*vector_message)(void *bridge, int irq, u64 *ret_address, u32 *ret_data);
	void (*vector_put)(void *bridge, int irq);
	/*
	 * A way to @length bytes at the peer's bus address @bus, both of whole @alignment, in its
	 * start @start (SIO_LINK_START()): in no other one may it lead anywhere again. Return: 0;
	 * -ENOSPC: no entries; -ENETDOWN; -ESTALE: it is in another start; -EACCES: nothing there
	 * was granted.
	 */
	int (*map)(void *bridge, u32 node, u32 adapter, u64 bus, u64 length, u64 start,
		   struct smartio_bridge_map *ret);
	/*
	 * Where the bridge has no vectors to spare, a doorbell for all of them: @rung is called,
	 * with interrupts off, some time after a peer has stored *ret_data at *ret_address (on the
	 * bus, and granted as a message is) and rung, until bell_put returns. Return: a number;
	 * -ENOSPC.
	 */
	int (*bell_get)(void *bridge, void (*rung)(void *arg), void *arg, u64 *ret_address,
			u32 *ret_data);
	void (*bell_put)(void *bridge, int bell);
	/*
	 * Ring at a peer: a message has arrived there. Unlike the others it is called without the
	 * lock, as long as there is a map. Not NULL: a message that a device sends interrupts
	 * nobody.
	 */
	void (*ring)(void *bridge, u32 node, u32 adapter);
	/*
	 * It leads nowhere from now on, but nobody is given what it took of the window. NULL: the
	 * hardware cannot; smartio.ko takes it from processors, and from devices behind an IOMMU.
	 */
	void (*cut)(void *bridge, u64 handle);
	/* It was cut or not. */
	void (*unmap)(void *bridge, u64 handle);
	/* Let @requester (bus << 8 | device << 3 | function) send through the window. -ENOSPC. */
	int (*requester_add)(void *bridge, u32 requester, u32 *ret_entry);
	void (*requester_del)(void *bridge, u32 entry);
	/* Multicast groups, all of them or, without info.groups, none. */
	void (*group)(void *bridge, u32 group, struct smartio_bridge_group *ret);
	/*
	 * @length bytes at @bus (an address as @pdev uses it) are a member's, not open yet.
	 * Return: 0; -ENOSPC: no row is left; -ERANGE: the group is shorter.
	 */
	int (*join)(void *bridge, u32 group, dma_addr_t bus, u64 length, u64 *ret_handle);
	/* Return: as revoke. */
	int (*leave)(void *bridge, u64 handle);
	/* What is written to the group reaches the member, or does so no more. */
	void (*open)(void *bridge, u64 handle, bool yes);
	/* A way to write to a group, of whole @alignment. unmap ends it. -ENOSPC. */
	int (*map_group)(void *bridge, u32 group, u64 length, struct smartio_bridge_map *ret);
	/*
	 * How many writes of this host to the group some open member has not got. It is called
	 * without the lock, too, as long as there is a way to write. @all: of all that were written
	 * before. Return: 0; -EAGAIN: @all, and it is not known of some yet.
	 */
	int (*group_missed)(void *bridge, u32 group, bool all, u32 *ret);
	/*
	 * What the hardware counts, by names that never change. Return: how many counters, @room at
	 * most. NULL: nothing.
	 */
	u32 (*counters)(void *bridge, struct sio_counter *counter, u32 room);
};

/*
 * A bridge is there. @bridge is given to every operation, until smartio_bridge_unregister()
 * returns. Return: the adapter; ERR_PTR(-EBUSY): the index is taken; -EINVAL: of no adapter that
 * there can be; -ENOMEM.
 */
struct smartio_adapter *smartio_bridge_register(const struct smartio_bridge_ops *ops, void *bridge);
/* It goes: maps read ones from now on, and what was granted is revoked. Waits for both. */
void smartio_bridge_unregister(struct smartio_adapter *a);
/*
 * Memory for a bridge that leads peers to one contiguous range alone, where no IOMMU makes one: the
 * first of smartio.ko's pools (pool=) that is not longer than @most, else what the kernel gives.
 * From now on ALLOC takes from it first. It stays with smartio.ko, so that programs may have it
 * longer than the bridge is there; the next bridge is given the same. One at a time.
 */
struct smartio_bridge_memory {
	u64 most, own; /* wanted: its length; how much of its beginning is the bridge's, zeroed */
	phys_addr_t base;
	u64 size;
};
/* Return: 0; -EBUSY: another bridge has it; -ENOMEM; -EINVAL: what there is has more than @most */
int smartio_bridge_memory_get(struct smartio_bridge_memory *m);
void smartio_bridge_memory_put(void);
/* A peer's state changed: ask for it. From any context. */
void smartio_bridge_changed(struct smartio_adapter *a);
/*
 * An access was stopped. @in: a peer's, at bus address @address of this host; else this host's own
 * (by whom is not known), at byte @address of the window. @node: where it ended. From any context.
 */
void smartio_bridge_fault(struct smartio_adapter *a, bool in, bool write, u32 node, u64 address,
			  u32 length, const char *reason);

#endif
