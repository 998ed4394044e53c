/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA engines, inside the room: one in each adapter that has channels. It is a device without
 * registers: requests reach it by the channels' rings.
 *
 * An edge may run the engines of a host on a thread beside the room's own (emu/machine/room.h).
 * Then what is below marked "engine" is that thread's, between two calls of engines_stop() and
 * engines_go() it stands still, and the room changes what engines look at (objects, tables, paths)
 * only then. What both count is kept twice: struct emu_adapter's count is the room's, its dma the
 * engines'.
 */
#ifndef EMU_ENGINE_ENGINE_H
#define EMU_ENGINE_ENGINE_H

#include "emu/memory/memory.h"

#define EMU_CHANNELS 256 /* of one engine */
/* Bytes that are copied between two looks at anything else; and where no other channel is. */
#define EMU_DMA_PIECE (256u << 10)
#define EMU_DMA_PIECE_ALONE (1u << 20)
#define EMU_ENGINE_FAULTS 16 /* told to the room at once; a channel with more waits */

struct emu_channel;

/* A stretch of addresses of the engine that is one of bytes, too, and passes the same places. */
struct emu_stretch {
	uint64_t addr;
	uint8_t *data; /* NULL: it is empty */
	size_t len;
	uint32_t n_hops;
	struct emu_count *hop[EMU_HOPS];
};

/* What a channel may reach: a mapping of its engine. */
struct emu_dma_range {
	struct emu_dmamap m; /* m.o.kind: SIO_KIND_DMA_RANGE */
	struct emu_channel *channel;
	unsigned slot;
	/* engine: where it leads for reading and writing, as far as was looked; while gen is now */
	struct {
		struct emu_stretch stretch;
		uint64_t gen;
	} known[SIO_ACCESS_WRITE];
};

struct emu_channel {
	struct emu_object o;
	struct emu_engine *engine;
	struct emu_channel *prev, *next; /* of the engine */
	struct emu_mem mem;		 /* struct sio_dma_ring: hostile */
	int doorbell, finished;		 /* event descriptors */
	struct emu_dma_range *slot[SIO_DMA_SLOTS];
	/* engine */
	uint32_t head, done;
	struct sio_dma_entry entry; /* a copy of the one at head, if there is one under way */
	bool busy;
	uint64_t copied; /* of it */
	int error;	 /* of the transfer, so far */
	bool broken;	 /* its ring makes no sense: not looked at any more */
};

extern const struct emu_kind emu_kind_dma, emu_kind_dma_range;

struct emu_engine_fault {
	uint64_t addr, len;
	uint32_t access;
	struct emu_target t;
};

struct emu_engine {
	struct emu_device d; /* its place among what sends through the fabric */
	struct sio_topo_device topo;
	struct emu_adapter *adapter;
	struct emu_channel *channels;
	unsigned n_channels;
	/* engine */
	struct emu_channel *turn; /* whose piece is next; NULL: the first */
	struct emu_engine_fault fault[EMU_ENGINE_FAULTS];
	unsigned n_faults;
	uint64_t pieces, transfers, failed;
};

/* channel.c */
emu_handler emu_op_dma, emu_op_dma_free, emu_op_dma_attach, emu_op_dma_detach;
/* The host of its adapters goes: nothing is left of them. */
void emu_engines_power_off(struct emu_host *h);

/* engine.c */
/* Run the engines of @h for a piece each. Return: work done; 0: nothing to do. */
unsigned emu_engines_step(struct emu_host *h);
/* Tell their programs whether to ring. */
void emu_engines_doze(struct emu_host *h, bool asleep);
/* Record what the engines of all hosts could not do. */
void emu_engines_collect(struct emu_room *r);

/* dma.c: a device reads and writes, see struct emu_dev. */
int emu_dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len);
int emu_dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len);

/* fanout.c; @c passed an adapter: tell it. */
typedef void emu_passed(struct emu_adapter *a, const struct sio_pcie_count *c);
/*
 * @d writes @len bytes to @sender's group, @c in packets: to each member that can be reached, in
 * order. Return: 0; -EFAULT: the others have it, and *t says who was not reached.
 */
int emu_group_write(struct emu_device *d, const struct emu_ram *sender, uint64_t offset,
		    const void *from, size_t len, const struct sio_pcie_count *c,
		    emu_passed *passed, struct emu_target *t);

#endif
