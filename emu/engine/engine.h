/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA engines, inside the room: one in each adapter that has channels. It is a device without
 * registers: requests reach it by the channels' rings.
 *
 * An edge may run the engines of a host on a thread beside the room's own (emu/machine/room.h). Then what
 * is below marked "engine" is that thread's, between two calls of engines_stop() and engines_go()
 * it stands still, and the room changes what engines look at (objects, tables, paths) only then.
 * What both count is kept twice: struct emu_adapter's count is the room's, its dma the engines'.
 */
#ifndef EMU_ENGINE_H
#define EMU_ENGINE_H

#include "emu/base/internal.h"

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
	struct emu_dmamap m;		   /* m.o.kind: SIO_KIND_DMA_RANGE */
	struct emu_dma_range *prev, *next; /* of the target */
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
void emu_channel_release(struct emu_channel *c);
void emu_dma_range_release(struct emu_dma_range *g);
/* The target goes. */
void emu_dma_ranges_end(struct emu_dma_range **ranges);
/* The host goes: nothing is left of it. */
void emu_engine_free(struct emu_engine *e);

/* engine.c: record what the engines could not do. */
void emu_engine_collect(struct emu_engine *e);

#endif
