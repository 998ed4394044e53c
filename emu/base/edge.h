/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machine room reaches the world by: memory, descriptors, clock, random numbers and the
 * daemons of its hosts. emu/live/ fills the table with Linux, the simulator with another world.
 */
#ifndef EMU_BASE_EDGE_H
#define EMU_BASE_EDGE_H

#include <stddef.h>
#include <stdint.h>

/* Memory that can be handed out: a sealed memfd in the live world. */
struct emu_mem {
	int fd;	    /* -1: none */
	void *data; /* the room's own mapping */
	uint64_t size;
};

struct emu_ops {
	/* Zeroed memory of whole pages whose size cannot change; -ENOMEM, -EMFILE. */
	int (*mem_new)(void *ctx, const char *name, uint64_t size, struct emu_mem *ret);
	/* From now on nobody can make a new writable mapping (mirrors, status pages). */
	int (*mem_seal)(void *ctx, struct emu_mem *m);
	void (*mem_free)(void *ctx, struct emu_mem *m);
	/* All of it reads as zeros again, for whoever has it mapped. NULL: memset() serves. */
	void (*mem_zero)(void *ctx, const struct emu_mem *m);
	/* Zeroed memory for a model alone, see struct emu_dev; NULL: out of memory. All or none. */
	void *(*bulk_new)(void *ctx, uint64_t size);
	void (*bulk_free)(void *ctx, void *data, uint64_t size);
	void (*bulk_zero)(void *ctx, void *data, uint64_t size);
	/* An owner's descriptor to hand out; owner_hup(host, owner) is called when its last copy
	 * closes. */
	int (*owner_new)(void *ctx, unsigned host, uint64_t owner, int *ret_fd);
	void (*owner_free)(void *ctx, unsigned host, uint64_t owner);
	/* An event descriptor (eventfd) and its trigger. */
	int (*event_new)(void *ctx, int *ret_fd);
	int (*event_signal)(void *ctx, int fd);
	int (*dup)(void *ctx, int fd);
	void (*close)(void *ctx, int fd);
	/*
	 * Which owner of @host has the descriptor @fd, ended ones too; -EBADF: none. Only of an
	 * edge whose hosts go on when their daemon ends, as with smartio.ko: emu_room_host_down()
	 * is for a crash alone then, INFO says SIO_WORLD_SHIM and no adapters, and what smartio.ko
	 * does not serve is not served. NULL: a daemon's end is its host's.
	 */
	int (*identify)(void *ctx, int fd, unsigned host, uint64_t *ret_owner);
	/*
	 * A way to be woken: by what comes of @fd, which is the edge's from now on (failure: the
	 * room's still). FAULT: a userfaultfd for the program's pages at @address, not to be
	 * believed; EVENT: an event descriptor. -EOPNOTSUPP: the edge has no such way.
	 */
	int (*watch_new)(void *ctx, unsigned host, uint64_t watch, uint32_t kind, int fd,
			 uint64_t address, uint64_t length);
	void (*watch_free)(void *ctx, unsigned host, uint64_t watch);
	/*
	 * An answer or event to host's daemon; descriptors in @fds stay the room's. Return: 0;
	 * -ENOBUFS, of an event that nobody asked for: the daemon does not read, and it was
	 * dropped. Then the edge calls emu_room_drained() when it has room again.
	 */
	int (*send)(void *ctx, unsigned host, const void *evt, size_t len, const int *fds,
		    unsigned n_fds);
	/*
	 * DMA engines of a host, beside the room: from engine_start() on (once per host) the edge
	 * calls emu_room_engine_step() on a thread of its own; without this operation
	 * emu_room_step() runs them. After engines_stop() no such call is under way, and none
	 * begins before engines_go(). engine_watch(): wake that thread when event descriptor @fd is
	 * written to. engine_report(), called by that thread: call emu_room_engines_collect() soon.
	 */
	int (*engine_start)(void *ctx, unsigned host);
	int (*engine_watch)(void *ctx, unsigned host, int fd);
	void (*engine_unwatch)(void *ctx, unsigned host, int fd);
	void (*engines_stop)(void *ctx);
	void (*engines_go)(void *ctx);
	void (*engine_report)(void *ctx);
	uint64_t (*now)(void *ctx);
	uint64_t (*random)(void *ctx);
	void (*log)(void *ctx, const char *text);
};

#endif
