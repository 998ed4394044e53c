/* SPDX-License-Identifier: BSD-2-Clause */
/* The accelerator's queues: commands in, completions out. */
#include <endian.h>
#include <string.h>

#include "emu/devices/accel/accel.h"
#include "smartio/io.h"

#define QUANTUM 64u /* units of one queue, while others wait */

static uint32_t *reg_of(struct accelerator *m, unsigned queue, unsigned reg)
{
	return &m->reg[(SIO_ACCEL_QUEUE(queue) + reg) / 4];
}

static volatile uint32_t *doorbell_of(const struct accelerator *m, unsigned queue)
{
	return m->doorbells + (SIO_ACCEL_DOORBELL(queue) - SIO_ACCEL_DOORBELL(0)) / 4;
}

void emu_accel_halt(struct accelerator *m, unsigned queue, uint32_t status)
{
	m->running &= ~(1u << queue);
	m->queue[queue].under_way = false;
	emu_accel_set(m, SIO_ACCEL_QUEUE(queue) + SIO_ACCEL_STATUS, status);
}

void emu_accel_start(struct accelerator *m, unsigned queue)
{
	const uint64_t high = *reg_of(m, queue, SIO_ACCEL_RING_BASE + 4);
	const uint64_t base = high << 32 | *reg_of(m, queue, SIO_ACCEL_RING_BASE);
	const uint32_t entries = *reg_of(m, queue, SIO_ACCEL_RING_ENTRIES);

	if (base % sizeof(struct sio_accel_command) || entries < 2 ||
	    entries > SIO_ACCEL_MOST_ENTRIES || entries & (entries - 1)) {
		emu_accel_halt(m, queue, SIO_ACCEL_BAD_RING);
		return;
	}
	m->running |= 1u << queue;
	m->queue[queue] = (struct accel_queue){
		.ring = base, .entries = entries, .vector = *reg_of(m, queue, SIO_ACCEL_VECTOR)};
	sio_write32(doorbell_of(m, queue), 0);
	emu_accel_set(m, SIO_ACCEL_QUEUE(queue) + SIO_ACCEL_DONE, 0);
	emu_accel_set(m, SIO_ACCEL_QUEUE(queue) + SIO_ACCEL_STATUS, SIO_ACCEL_RUNNING);
}

/* Fetches the commands that wait, as far as they lie in one page and one after the other. */
static bool fetch_more(struct accelerator *m, struct accel_queue *q)
{
	const uint32_t slot = q->head & (q->entries - 1);
	const uint64_t at = q->ring + (uint64_t)slot * sizeof(q->command);
	const uint64_t in_page = (ACCEL_PAGE - at % ACCEL_PAGE) / sizeof(q->command);
	uint32_t n = q->tail - q->head;

	n = n < ACCEL_FETCH ? n : ACCEL_FETCH;
	n = n < q->entries - slot ? n : q->entries - slot;
	n = n < in_page ? n : (uint32_t)in_page;
	if (emu_accel_read(m, at, q->fetched, n * sizeof(q->command)) < 0)
		return false;
	q->n_fetched = n;
	q->n_begun = 0;
	return true;
}

/* The next command, read once; false: the ring cannot be read. */
static bool fetch(struct accelerator *m, struct accel_queue *q)
{
	struct sio_accel_command *c = &q->command;

	if (q->n_begun == q->n_fetched && !fetch_more(m, q))
		return false;
	*c = q->fetched[q->n_begun++];
	c->operation = le32toh(c->operation);
	c->flags = le32toh(c->flags);
	c->completion = le64toh(c->completion);
	memset(&q->task, 0, sizeof(q->task));
	for (unsigned i = 0; i < 6; i++)
		q->task.argument[i] = le64toh(c->argument[i]);
	q->status = SIO_ACCEL_OK;
	q->under_way = true;
	return true;
}

/* A reader that sees the count sees in memory what was done: pairs with the reader's barrier. */
static void tell(struct accelerator *m, unsigned queue)
{
	struct accel_queue *q = &m->queue[queue];

	sio_to_fabric_barrier();
	emu_accel_set(m, SIO_ACCEL_QUEUE(queue) + SIO_ACCEL_DONE, q->head);
	q->untold = false;
}

/* The count is written when the queue rests, or before an interrupt: a program has it elsewhere. */
static void complete(struct accelerator *m, unsigned queue)
{
	struct accel_queue *q = &m->queue[queue];
	const struct sio_accel_command *c = &q->command;
	struct sio_accel_completion word;

	q->under_way = false;
	q->head++;
	m->stats.transfers += queue < ACCEL_DMA_QUEUES;
	m->stats.kernels += queue >= ACCEL_DMA_QUEUES;
	m->stats.failed += q->status != SIO_ACCEL_OK;
	word.result = htole64(q->task.result);
	word.status = htole32(q->status);
	word.number = htole32(q->head);
	if (c->completion && c->completion % sizeof(word) == 0)
		emu_accel_write(m, c->completion, &word, sizeof(word));
	q->untold = true;
	if (c->flags & SIO_ACCEL_INTERRUPT && q->vector < m->vectors) {
		tell(m, queue);
		m->stats.interrupts++;
		m->dev->interrupt(m->dev, q->vector);
	}
}

static bool well_formed(const struct sio_accel_command *c)
{
	return !(c->flags & ~(uint32_t)SIO_ACCEL_INTERRUPT) &&
	       c->completion % sizeof(struct sio_accel_completion) == 0;
}

/* A part of the command under way. Return: whether the queue may go on. */
static bool work(struct accelerator *m, unsigned queue, unsigned budget, unsigned *done)
{
	struct accel_queue *q = &m->queue[queue];
	enum sio_accel_progress p = SIO_ACCEL_KERNEL_DONE;

	if (!well_formed(&q->command))
		q->status = SIO_ACCEL_INVALID;
	else if (queue < ACCEL_DMA_QUEUES)
		p = emu_accel_transfer(m, q, budget, done);
	else
		p = emu_accel_compute(m, q, budget, done);
	if (p == SIO_ACCEL_KERNEL_MORE || p == SIO_ACCEL_KERNEL_WAITS)
		return p == SIO_ACCEL_KERNEL_MORE;
	complete(m, queue);
	return true;
}

/* Return: whether a command is under way now. */
static bool next(struct accelerator *m, unsigned queue, unsigned *done)
{
	struct accel_queue *q = &m->queue[queue];

	q->tail = sio_read32(doorbell_of(m, queue));
	if (q->tail == q->head)
		return false;
	++*done;
	if (q->tail - q->head > q->entries) {
		emu_accel_halt(m, queue, SIO_ACCEL_BAD_DOORBELL);
		return false;
	}
	/* The commands were written before the doorbell: pairs with smartio_accel_ring(). */
	sio_from_fabric_barrier();
	if (!fetch(m, q)) {
		emu_accel_halt(m, queue, SIO_ACCEL_RING_LOST);
		return false;
	}
	return true;
}

static unsigned run(struct accelerator *m, unsigned queue, unsigned budget)
{
	struct accel_queue *q = &m->queue[queue];
	unsigned done = 0;

	while (m->running & 1u << queue && done < budget) {
		if (!q->under_way && !next(m, queue, &done))
			break;
		if (!work(m, queue, done < budget ? budget - done : 1, &done))
			break;
	}
	if (q->untold)
		tell(m, queue);
	return done;
}

/* Those of @queues, the lowest first. */
static unsigned run_each(struct accelerator *m, uint32_t queues, unsigned budget)
{
	unsigned done = 0;

	for (; queues && done < budget; queues &= queues - 1) {
		const unsigned left = budget - done, queue = (unsigned)__builtin_ctz(queues);

		done += run(m, queue, left < QUANTUM ? left : QUANTUM);
	}
	return done;
}

/* Kernels that wait have this done over and over: it looks at what runs, and divides nothing. */
unsigned emu_accel_run(struct accelerator *m, unsigned budget)
{
	const uint32_t before = m->running & ((1u << m->turn) - 1), now = m->running;
	unsigned done = now ? run_each(m, now & ~before, budget) : 0;

	if (before && done < budget)
		done += run_each(m, before, budget - done);
	if (++m->turn == m->n_queues)
		m->turn = 0;
	return done;
}
