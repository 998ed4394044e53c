/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that borrow an accelerator exclusively and give it work: data go from their own memory
 * to the accelerator's, a kernel on a compute unit reads or overwrites them there, and they come
 * back. The data and the kernels' results are compared with what the processor computes from the
 * same words.
 */
#include <string.h>

#include "fabric/fabric.h"
#include "run/run.h"
#include "smartio/acceldev.h"
#include "smartio/io.h"
#include "work/held.h"
#include "work/life.h"

#define PAGE 4096u
#define ENTRIES 8u
/* The program's memory: two rings and their completions, data to be sent, data that came back. */
#define RING_AT(ring) ((ring)*1024u)
#define DONE_AT(ring) (PAGE - 64 + (ring)*16u)
#define OUT_AT PAGE
#define BACK_AT (2 * PAGE)
#define BYTES (3 * PAGE)

enum ring { DMA, UNIT, RINGS };

struct offload {
	sci_desc_t sd;
	struct sim_held device;
	struct sim_own own;
	uint64_t memory;       /* bytes of the accelerator's own */
	unsigned queue[RINGS]; /* the device's number of each ring */
	uint32_t n[RINGS];     /* commands submitted */
	bool runs;
};

static bool is_accelerator(const struct sio_topo_device *d)
{
	return strcmp(d->type, "accelerator") == 0;
}

/* ---- the device ---- */

static volatile uint8_t *reg(const struct offload *s, unsigned ring, unsigned offset)
{
	return s->device.regs + SIO_ACCEL_QUEUE(s->queue[ring]) + offset;
}

static uint32_t status(const struct offload *s, unsigned ring)
{
	return sio_read32(reg(s, ring, SIO_ACCEL_STATUS));
}

/* Waits until the ring is running, or is not. False: it did not change in time. */
static bool awaits(const struct offload *s, unsigned ring, bool running)
{
	uint64_t until = sim_now() + SIM_PATIENCE;

	while ((status(s, ring) == SIO_ACCEL_RUNNING) != running && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	return (status(s, ring) == SIO_ACCEL_RUNNING) == running;
}

static bool start(struct offload *s, unsigned ring)
{
	uint64_t base = s->own.io + RING_AT(ring);

	sio_write32(reg(s, ring, SIO_ACCEL_RING_BASE), (uint32_t)base);
	sio_write32(reg(s, ring, SIO_ACCEL_RING_BASE + 4), (uint32_t)(base >> 32));
	sio_write32(reg(s, ring, SIO_ACCEL_RING_ENTRIES), ENTRIES);
	sio_to_fabric_barrier();
	sio_write32(reg(s, ring, SIO_ACCEL_CONTROL), SIO_ACCEL_ENABLE);
	s->n[ring] = 0;
	return awaits(s, ring, true);
}

/*
 * Draws a DMA queue and a compute unit. False: the registers are not an accelerator's: it is lost.
 */
static bool choose_queues(struct offload *s)
{
	volatile uint8_t *r = s->device.regs;
	uint32_t all = sio_read32(r + SIO_ACCEL_QUEUES), dma = sio_read32(r + SIO_ACCEL_DMA_QUEUES);

	s->memory = sio_read32(r + SIO_ACCEL_MEMORY_BYTES) |
		    (uint64_t)sio_read32(r + SIO_ACCEL_MEMORY_BYTES + 4) << 32;
	if (sio_read32(r + SIO_ACCEL_MAGIC) != SIO_ACCEL_MAGIC_VALUE || dma == 0 || all <= dma ||
	    all > SIO_ACCEL_MOST_QUEUES)
		return false;
	if (s->memory != s->device.topo->size)
		sim_fail("states", "%s: %s says that it has %#llx bytes, and has %#llx",
			 sim_self()->name, s->device.topo->name, (unsigned long long)s->memory,
			 (unsigned long long)s->device.topo->size);
	s->queue[DMA] = (unsigned)sim_pick(dma);
	s->queue[UNIT] = dma + (unsigned)sim_pick(all - dma);
	return true;
}

static void have(struct offload *s)
{
	struct sim_held *d = &s->device;

	d->topo = sim_pick_device(is_accelerator, &d->host);
	s->runs = sim_held_borrow(s->sd, d, true) && sim_held_registers(d, 2 * PAGE) &&
		  sim_own_make(s->sd, &s->own, d, BYTES) && choose_queues(s) && start(s, DMA) &&
		  start(s, UNIT);
}

/* A command may still be in flight; it has to be over before anything is unmapped. */
static void drop(struct offload *s)
{
	if (s->device.map && s->own.io)
		for (unsigned i = 0; i < RINGS; i++) {
			sio_write32(reg(s, i, SIO_ACCEL_CONTROL), 0);
			awaits(s, i, false);
		}
	s->runs = false;
	sim_own_unmap(&s->own, &s->device);
	sim_held_drop(&s->device);
	sim_own_remove(&s->own);
}

/* ---- work ---- */

static bool is_judged(const struct offload *s)
{
	return !sim_is_lossy() && sim_held_is_sound(&s->device);
}

/* Return: whether the command was completed with success; *ret_result: its result. */
static bool run(struct offload *s, unsigned ring, uint32_t operation, const uint64_t argument[3],
		uint64_t *ret_result)
{
	struct sio_accel_command c = {.operation = operation,
				      .completion = s->own.io + DONE_AT(ring)};
	volatile uint8_t *done = s->own.at + DONE_AT(ring);
	uint64_t until = sim_now() + SIM_PATIENCE;

	for (unsigned i = 0; i < 3; i++)
		c.argument[i] = argument[i];
	sio_copy_to(s->own.at + RING_AT(ring) + s->n[ring]++ % ENTRIES * sizeof(c), &c, sizeof(c));
	sio_to_fabric_barrier();
	sio_write32(s->device.regs + SIO_ACCEL_DOORBELL(s->queue[ring]), s->n[ring]);
	while (sio_read32(done + 12) != s->n[ring] && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	if (sio_read32(done + 12) != s->n[ring]) {
		s->runs = false; /* it may still be done: the device is given back */
		return false;
	}
	sio_from_fabric_barrier();
	*ret_result = sio_read64(done);
	if (sio_read32(done + 8) == SIO_ACCEL_OK)
		return true;
	if (is_judged(s))
		sim_fail("states", "%s: %s ended command %u of queue %u with status %u",
			 sim_self()->name, s->device.topo->name, s->n[ring], s->queue[ring],
			 sio_read32(done + 8));
	return false;
}

static bool move(struct offload *s, uint64_t from, uint64_t to, uint64_t bytes)
{
	const uint64_t argument[3] = {from, to, bytes};
	uint64_t moved;

	return run(s, DMA, SIO_ACCEL_TRANSFER, argument, &moved);
}

/* The result that the kernel must give for the words that were sent. */
static uint64_t by_processor(const struct offload *s, uint32_t operation, uint64_t bytes)
{
	uint64_t result = 0;

	for (uint64_t i = 0; i < bytes; i += 4)
		result += sio_read32(s->own.at + OUT_AT + i) *
			  (operation == SIO_ACCEL_CHECKSUM ? i / 2 + 1 : 1);
	return result;
}

static void compare(struct offload *s, const char *what, uint64_t got, uint64_t wanted)
{
	if (got != wanted && is_judged(s))
		sim_fail("states", "%s: %s of %s is %#llx, %#llx is right", sim_self()->name, what,
			 s->device.topo->name, (unsigned long long)got, (unsigned long long)wanted);
}

/* Sends words, has them summed up there and sometimes overwritten, and compares what comes back. */
static void offload(struct offload *s)
{
	uint64_t bytes = 4 * (1 + sim_pick(PAGE / 4)), place = 4 * sim_pick((s->memory - PAGE) / 4);
	uint64_t at = SIO_ACCEL_LOCAL | place, result;
	uint32_t operation = sim_pick(2) ? SIO_ACCEL_CHECKSUM : SIO_ACCEL_REDUCE;
	uint32_t word = (uint32_t)sim_pick(1u << 31);
	const uint64_t over[3] = {at, bytes, 0}, fill[3] = {at, bytes, word};
	bool filled = sim_pick(2);

	for (uint64_t i = 0; i < bytes; i += 4) {
		sio_write32(s->own.at + OUT_AT + i, (uint32_t)sim_pick(1u << 31));
		sio_write32(s->own.at + BACK_AT + i, 0);
	}
	if (!move(s, s->own.io + OUT_AT, at, bytes) || !run(s, UNIT, operation, over, &result))
		return;
	compare(s, "a result", result, by_processor(s, operation, bytes));
	if ((filled && !run(s, UNIT, SIO_ACCEL_FILL, fill, &result)) ||
	    !move(s, at, s->own.io + BACK_AT, bytes))
		return;
	for (uint64_t i = 0; i < bytes; i += 4)
		compare(s, "a word", sio_read32(s->own.at + BACK_AT + i),
			filled ? word : sio_read32(s->own.at + OUT_AT + i));
}

static void act(void *state)
{
	struct offload *s = state;

	if (!s->device.topo)
		have(s);
	else if (!s->runs || sim_pick(40) == 0)
		drop(s);
	else
		offload(s);
}

static void give_back(void *state)
{
	drop(state);
}

static void offload_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 120, .act = act, .tear_down = give_back};
	struct offload s = {.sd = NULL};

	if (!sim_live(&life, &s, &s.sd))
		return;
	sim_held_forget(&s.device);
	sim_exit(p);
}

const struct sim_workload sim_work_offload = {
	.name = "offload", .weight = 4, .named = true, .main = offload_main};
