/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accelerator, inside. Registers, doorbells, rings and memory are plain memory that programs
 * and devices write to: what is read there is read once and checked.
 */
#ifndef EMU_DEVICES_ACCEL_ACCEL_H
#define EMU_DEVICES_ACCEL_ACCEL_H

#include "core/types.h"
#include "emu/devices/model.h"
#include "drivers/accel/kernels/kernel.h"
#include "smartio/acceldev.h"

#define ACCEL_PAGE 4096u
#define ACCEL_WORDS (SIO_ACCEL_REGISTERS / 4)
#define ACCEL_DMA_QUEUES 2u
#define ACCEL_FETCH 8u /* most commands that one read fetches */

/* Indices of the runs of BAR pages in the model's configuration. */
enum { ACCEL_RUN_REGISTERS, ACCEL_RUN_DOORBELLS, ACCEL_RUN_MEMORY, ACCEL_RUN_MSIX };

/* A ring, and the command of it that is under way. */
struct accel_queue {
	bool under_way;
	uint64_t ring;
	uint32_t entries, vector;
	uint32_t tail, head; /* head: commands done */
	struct sio_accel_command command;
	unsigned n_fetched, n_begun; /* of those below */
	bool untold;		     /* commands are done that DONE does not count yet */
	uint32_t status;
	struct sio_accel_task task; /* a transfer's, too: at and result */
	struct sio_accel_command fetched[ACCEL_FETCH];
};

struct accel_stats {
	uint64_t transfers, kernels, failed, bytes, interrupts;
};

struct accelerator {
	struct emu_dev *dev;
	volatile uint32_t *view, *mirror, *doorbells; /* view NULL: nobody has the registers */
	uint8_t *memory;
	uint64_t memory_bytes;
	uint32_t vectors, n_queues;
	bool attached;	  /* the pages above were asked for */
	unsigned n_steps; /* since the registers were looked at */
	unsigned turn;	  /* the queue that is first next time */
	uint32_t running; /* a bit for each queue that is */
	uint32_t reg[ACCEL_WORDS];
	struct accel_queue queue[SIO_ACCEL_MOST_QUEUES];
	struct accel_stats stats;
	uint8_t page[ACCEL_PAGE] __attribute__((aligned(64)));
};

/* model.c: sets a register, in view and mirror, too, where they exist. */
void emu_accel_set(struct accelerator *m, unsigned reg, uint32_t value);
/*
 * The bytes of the device's own memory at @at; NULL: they are not all there, or @at is another
 * address.
 */
uint8_t *emu_accel_local(const struct accelerator *m, uint64_t at, uint64_t bytes);

/* queue.c */
void emu_accel_start(struct accelerator *m, unsigned queue);
/* The queue stops; @status: SIO_ACCEL_BAD_RING, ... or 0. */
void emu_accel_halt(struct accelerator *m, unsigned queue, uint32_t status);
/*
 * Works on all queues, @budget units at most: a command is one unit, and so is each page, or part
 * of a kernel, after its first.
 */
unsigned emu_accel_run(struct accelerator *m, unsigned budget);

/*
 * dma.c, unit.c: continues the command of @q for @budget units at most, and adds what was done to
 * *done. When the command has ended q->status has its result.
 */
enum sio_accel_progress emu_accel_transfer(struct accelerator *m, struct accel_queue *q,
					   unsigned budget, unsigned *done);
enum sio_accel_progress emu_accel_compute(struct accelerator *m, struct accel_queue *q,
					  unsigned budget, unsigned *done);

/* dma.c: reads or writes the device's own memory, or the fabric. 0; -EFAULT. */
int emu_accel_read(struct accelerator *m, uint64_t at, void *buf, size_t len);
int emu_accel_write(struct accelerator *m, uint64_t at, const void *buf, size_t len);

#endif
