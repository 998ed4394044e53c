/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA engines, internal to the room: one in each adapter that has channels. An engine is a device
 * without registers: requests reach it by the channels' rings.
 *
 * An edge may run the engines of a host on a thread beside the room's own (emu/machine/room.h).
 * Then the fields that are marked "engine" belong to that thread. Between two calls of
 * engines_stop() and engines_go() it stands still, and only then does the room change what engines
 * read (objects, tables, paths). Counters of both are kept twice: struct emu_adapter's count is the
 * room's, its dma the engines'.
 */
#ifndef EMU_ENGINE_ENGINE_H
#define EMU_ENGINE_ENGINE_H

#include "emu/engine/channel_life.h"
#include "emu/memory/memory.h"

#define EMU_CHANNELS 256 /* of one engine */
/*
 * The most bytes that are copied before other channels are served; and where no other channel has
 * work.
 */
#define EMU_DMA_PIECE (256u << 10)
#define EMU_DMA_PIECE_ALONE (1u << 20)
#define EMU_ENGINE_FAULTS 16 /* reported to the room at once; a channel with more waits */

struct emu_channel;

/* A range of the engine's addresses that is contiguous in memory, too, and takes one path. */
struct emu_stretch {
	uint64_t addr;
	uint8_t *data; /* NULL: it is empty */
	size_t len;
	uint16_t n_hops;
	bool far;
	bool fleeting; /* a machine's memory: for this piece alone */
	struct emu_count *hop[EMU_HOPS];
	struct emu_way way;
};

/* A mapping of the engine, which a channel may reach. */
struct emu_dma_range {
	struct emu_dmamap m; /* m.o.kind: SIO_KIND_DMA_RANGE */
	struct emu_channel *channel;
	unsigned slot;
	/* engine: the cached translations for reading and writing; valid while gen is the room's */
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
	enum emu_channel_state state;
	struct sio_dma_entry entry; /* a copy of the one at head, while it is under way */
	uint64_t copied;	    /* of it */
	int error;		    /* of the transfer, so far */
	uint64_t delay_ns;	    /* by slow links: the longest of its entries, so far */
	uint64_t due;		    /* LATE: when it ends */
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
/* The adapter is powered off; no channel is left. */
void emu_engine_power_off(struct emu_adapter *a);

/* engine.c */
/* Runs the engines of @h for a piece each. Return: work done; 0: nothing to do. */
unsigned emu_engines_step(struct emu_host *h);
/* When the first of the transfers ends that slow links delay; UINT64_MAX: there is none. */
uint64_t emu_engines_due(const struct emu_host *h);
/* Notes in each ring whether its program has to ring the doorbell. */
void emu_engines_doze(struct emu_host *h, bool asleep);
/* Records the faults of the engines of all hosts. */
void emu_engines_collect(struct emu_room *r);

/* dma.c: reads and writes of a device, see struct emu_dev. */
int emu_dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len);
int emu_dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len);

/* fanout.c; reports that @c has passed an adapter. */
typedef void emu_passed(struct emu_adapter *a, const struct sio_pcie_count *c);
/*
 * @d writes @len bytes to @sender's group, @c in packets: to each member that can be reached, in
 * order. Return: 0; -EFAULT: the others have received it, and *t is the member that was not
 * reached.
 */
int emu_group_write(struct emu_device *d, const struct emu_ram *sender, uint64_t offset,
		    const void *from, size_t len, const struct sio_pcie_count *c,
		    emu_passed *passed, struct emu_target *t);
/* By how much slow links delay what @sender's adapter writes to its group: the slowest member's. */
uint64_t emu_group_delay(const struct emu_ram *sender);

#endif
