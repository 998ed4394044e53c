/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory device, inside. Registers, doorbell, ring and RAM are plain memory that programs and
 * devices write to: what is read there is read once and checked.
 */
#ifndef EMU_DEVICES_MEMDEV_MEMDEV_H
#define EMU_DEVICES_MEMDEV_MEMDEV_H

#include "core/types.h"
#include "emu/devices/model.h"
#include "smartio/memdev.h"

#define MEMDEV_PAGE 4096u
#define MEMDEV_WORDS (SIO_MEMDEV_REGISTERS / 4)

/* Indices of the runs of BAR pages in the model's configuration. */
enum { MEMDEV_RUN_REGISTERS, MEMDEV_RUN_DOORBELL, MEMDEV_RUN_RAM, MEMDEV_RUN_MSIX };

struct memdev_stats {
	uint64_t entries, bytes, failed, interrupts;
};

struct memdev {
	struct emu_dev *dev;
	volatile uint32_t *view, *mirror, *doorbell; /* view NULL: nobody has the registers */
	uint8_t *ram;
	uint32_t ram_bytes, vectors;
	bool attached;		    /* the pages above were asked for */
	uint32_t reg[MEMDEV_WORDS]; /* as they are */

	/* The engine. */
	bool running;
	uint64_t ring;
	uint32_t entries, tail, head; /* head: entries done */
	bool under_way;		      /* @entry was fetched, and @at bytes of it are done */
	struct sio_memdev_entry entry;
	uint32_t at, failure;
	struct memdev_stats stats;
	uint8_t page[MEMDEV_PAGE] __attribute__((aligned(64)));
};

/* model.c: sets a register, in view and mirror, too, where they exist. */
void emu_memdev_set(struct memdev *m, unsigned reg, uint32_t value);
/* The engine stops; @status: SIO_MEMDEV_BAD_RING, ... or 0. */
void emu_memdev_halt(struct memdev *m, uint32_t status);

/*
 * engine.c: works, @budget units at most: an entry is one unit, and so is each page after its
 * first.
 */
unsigned emu_memdev_run(struct memdev *m, unsigned budget);

#endif
