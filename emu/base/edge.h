/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions by which the machine room reaches its environment: memory, descriptors, clock,
 * random numbers and the daemons of its hosts. emu/live/ fills the table with Linux, the simulator
 * with another world.
 */
#ifndef EMU_BASE_EDGE_H
#define EMU_BASE_EDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory whose descriptor can be handed out: a sealed memfd in the live world. */
struct emu_mem {
	int fd;	    /* -1: none */
	void *data; /* the room's own mapping */
	uint64_t size;
	unsigned in; /* of pages of a device: its `in` of the topology; set by the caller */
};

/* An access by a host of the room to a machine, which stands beside the room. */
struct emu_reach {
	uint32_t node, machine;		   /* node ids: of the host, of the machine */
	unsigned adapter, machine_adapter; /* of the one, of the other */
	uint64_t address, length;	   /* on the machine's bus */
	bool file;			   /* of memory: its file is asked for, too */
};

/* The other direction: a machine's access to a host of the room. */
struct emu_inbound {
	uint32_t node, machine;
	unsigned adapter, machine_adapter;
	uint64_t address; /* on the host's bus */
	size_t len;
	const void *data; /* of a write; NULL: a read */
};

/* The memory there, and the rights that the machine has granted: SIO_ACCESS_*. */
struct emu_reached {
	uint8_t *data; /* the first byte: to be used now, a moment later it may be gone */
	int fd;	       /* of the machine's memory; the edge's; -1: none, or not asked for */
	uint64_t fd_offset;
	uint32_t access;
};

struct emu_ops {
	/* Hosts come and go by another file: there is room for all that may be. */
	bool grows;
	/* Allocates zeroed memory of whole pages whose size cannot change; -ENOMEM, -EMFILE. */
	int (*mem_new)(void *ctx, const char *name, uint64_t size, struct emu_mem *ret);
	/* From now on no new writable mapping can be made (mirrors, status pages). */
	int (*mem_seal)(void *ctx, struct emu_mem *m);
	void (*mem_free)(void *ctx, struct emu_mem *m);
	/*
	 * Where @whole is mapped here, its pages from @offset on are replaced by those of @part,
	 * which has a descriptor of its own. The second function restores them, with the contents
	 * of @part's. NULL: pages of one memory are never replaced.
	 */
	int (*mem_place)(void *ctx, const struct emu_mem *whole, uint64_t offset,
			 const struct emu_mem *part);
	void (*mem_put_back)(void *ctx, const struct emu_mem *whole, uint64_t offset,
			     const struct emu_mem *part);
	/*
	 * Takes [@offset, @offset + @size) of a program's memory @fd, which is the room's from now
	 * on (failure: still the caller's), to be freed as any. -EBADF: @fd is not a file that
	 * cannot shrink; -EINVAL: it is shorter than that. NULL: foreign memory is not accepted.
	 */
	int (*mem_take)(void *ctx, int fd, uint64_t offset, uint64_t size, struct emu_mem *ret);
	/*
	 * [@offset, @offset + @size) of the pool of the host with this node id, to be freed as
	 * any: it is not cleared. NULL: no host has a pool.
	 */
	int (*mem_part)(void *ctx, uint32_t node, uint64_t offset, uint64_t size,
			struct emu_mem *ret);
	/* Makes all of it read as zeros again, in every mapping. NULL: memset() does. */
	void (*mem_zero)(void *ctx, const struct emu_mem *m);
	/* Makes all of it read as ones, in every mapping. NULL: it is stored word by word. */
	void (*mem_ones)(void *ctx, const struct emu_mem *m);
	/*
	 * Allocates zeroed memory for a model alone, see struct emu_dev; NULL: out of memory. Both
	 * or neither.
	 */
	void *(*bulk_new)(void *ctx, uint64_t size);
	void (*bulk_free)(void *ctx, void *data, uint64_t size);
	void (*bulk_zero)(void *ctx, void *data, uint64_t size);
	/* Files for media, see struct emu_dev. NULL, or what returns it: there are none. */
	struct emu_store *(*store)(void *ctx);
	/*
	 * Makes an owner's descriptor to hand out; owner_hup(host, owner) is called when its last
	 * copy closes.
	 */
	int (*owner_new)(void *ctx, unsigned host, uint64_t owner, int *ret_fd);
	void (*owner_free)(void *ctx, unsigned host, uint64_t owner);
	/* Makes an event descriptor (eventfd), and triggers one. */
	int (*event_new)(void *ctx, int *ret_fd);
	int (*event_signal)(void *ctx, int fd);
	/* Is it an event descriptor, which can be signalled without ever waiting? NULL: none is. */
	bool (*event_check)(void *ctx, int fd);
	int (*dup)(void *ctx, int fd);
	void (*close)(void *ctx, int fd);
	/*
	 * Which owner of @host has the descriptor @fd, ended ones too; -EBADF: none. Only in an
	 * edge whose hosts go on when their daemon ends, as with smartio.ko: then
	 * emu_room_host_down() is for a crash alone, INFO says SIO_WORLD_SHIM and no adapters, and
	 * requests that smartio.ko does not support are refused. NULL: a daemon's end is its
	 * host's.
	 */
	int (*identify)(void *ctx, int fd, unsigned host, uint64_t *ret_owner);
	/*
	 * A wake-up method: by events of @fd, which is the edge's from now on (failure: still the
	 * room's). FAULT: a userfaultfd for the program's pages at @address, which is not to be
	 * trusted; EVENT: an event descriptor. -EOPNOTSUPP: the edge has no such method.
	 */
	int (*watch_new)(void *ctx, unsigned host, uint64_t watch, uint32_t kind, int fd,
			 uint64_t address, uint64_t length);
	void (*watch_free)(void *ctx, unsigned host, uint64_t watch);
	/*
	 * Sends an answer or event to the host's daemon; descriptors in @fds stay the room's.
	 * Return: 0; -ENOBUFS, for an event that nobody asked for: the daemon does not read, and
	 * the event was dropped. Then the edge calls emu_room_drained() when it has room again.
	 */
	int (*send)(void *ctx, unsigned host, const void *evt, size_t len, const int *fds,
		    unsigned n_fds);
	/*
	 * DMA engines of a host, beside the room: from engine_start() on (once per host) the edge
	 * calls emu_room_engine_step() on a thread of its own, until the host goes; without this
	 * operation emu_room_step() runs them. After engines_stop() no such call is under way, and
	 * none begins before engines_go(). engine_watch(): wakes that thread when event descriptor
	 * @fd is written to. engine_report(), called by that thread: emu_room_engines_collect() is
	 * to be called soon. Stops nest: as many engines_go() follow. The edge itself stops them
	 * where machine_memory() might change.
	 */
	int (*engine_start)(void *ctx, unsigned host);
	int (*engine_watch)(void *ctx, unsigned host, int fd);
	void (*engine_unwatch)(void *ctx, unsigned host, int fd);
	void (*engines_stop)(void *ctx);
	void (*engines_go)(void *ctx);
	void (*engine_report)(void *ctx);
	/*
	 * Machines that are connected to hosts of the room; NULL: there are none. An access outside
	 * the exporter's table of granted ranges is refused.
	 * Return: 0; -EACCES: no such range is granted; -EFAULT: it is granted, but no memory is
	 * there, or not in one piece.
	 */
	int (*machine_memory)(void *ctx, const struct emu_reach *x, struct emu_reached *ret);
	/*
	 * Sends message @data to an interrupt that the machine granted; without @send only looks it
	 * up. Return: 0; -EACCES: no such interrupt is granted; -EBUSY: the most messages are in
	 * flight already, and this one is dropped; other -errno: it cannot be sent.
	 */
	int (*machine_message)(void *ctx, const struct emu_reach *x, uint32_t data, bool send);
	/*
	 * Sends a store of 4 bytes to a device of the machine, on which it has granted the host
	 * @x->length bytes to write to; @data NULL: only looks the range up. Return: as
	 * machine_message(); -EBUSY: it may be repeated later.
	 */
	int (*machine_store)(void *ctx, const struct emu_reach *x, const uint32_t *data);
	uint64_t (*now)(void *ctx);
	uint64_t (*random)(void *ctx);
	void (*log)(void *ctx, const char *text);
};

#endif
