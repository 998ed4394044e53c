/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accelerator: its life and its registers. The register page is plain memory that its holder
 * writes to and the model polls: a word that differs from @reg was written, and is taken or put
 * right.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/devices/accel/accel.h"
#include "emu/devices/accel/keys.h"
#include "smartio/io.h"

#define BAR0_BYTES 0x4000u
#define MSIX_OFFSET 0x2000u
/*
 * Each step looks at CONTROL of each queue, which is when the others are taken; all words are
 * looked at in one of so many steps.
 */
#define STEPS_PER_LOOK 16u

void emu_accel_set(struct accelerator *m, unsigned reg, uint32_t value)
{
	m->reg[reg / 4] = value;
	if (m->view)
		sio_write32(m->view + reg / 4, value);
	if (m->mirror)
		sio_write32(m->mirror + reg / 4, value);
}

static void defaults(struct accelerator *m)
{
	memset(m->reg, 0, sizeof(m->reg));
	m->reg[SIO_ACCEL_MAGIC / 4] = SIO_ACCEL_MAGIC_VALUE;
	m->reg[SIO_ACCEL_VERSION / 4] = 1;
	m->reg[SIO_ACCEL_MEMORY_BYTES / 4] = (uint32_t)m->memory_bytes;
	m->reg[SIO_ACCEL_MEMORY_BYTES / 4 + 1] = (uint32_t)(m->memory_bytes >> 32);
	m->reg[SIO_ACCEL_VECTORS / 4] = m->vectors;
	m->reg[SIO_ACCEL_QUEUES / 4] = m->n_queues;
	m->reg[SIO_ACCEL_DMA_QUEUES / 4] = ACCEL_DMA_QUEUES;
	memset(m->queue, 0, sizeof(m->queue));
	m->running = 0;
}

/* Ask the room for the pages. They change only with view_changed() and reset(). */
static void attach(struct accelerator *m)
{
	m->view = m->dev->view(m->dev, ACCEL_RUN_REGISTERS);
	m->mirror = m->dev->mirror(m->dev, ACCEL_RUN_REGISTERS);
	m->doorbells = m->dev->view(m->dev, ACCEL_RUN_DOORBELLS);
	m->memory = (uint8_t *)(uintptr_t)m->dev->view(m->dev, ACCEL_RUN_MEMORY);
	m->attached = true;
	for (unsigned i = 0; i < ACCEL_WORDS; i++)
		emu_accel_set(m, i * 4, m->reg[i]);
}

/* ---- registers ---- */

static bool is_writable(unsigned reg)
{
	return reg == SIO_ACCEL_CONTROL || reg == SIO_ACCEL_RING_BASE ||
	       reg == SIO_ACCEL_RING_BASE + 4 || reg == SIO_ACCEL_RING_ENTRIES ||
	       reg == SIO_ACCEL_VECTOR;
}

static void control_changed(struct accelerator *m, unsigned queue, uint32_t before)
{
	uint32_t now = m->reg[(SIO_ACCEL_QUEUE(queue) + SIO_ACCEL_CONTROL) / 4];

	if (now & SIO_ACCEL_ENABLE && !(before & SIO_ACCEL_ENABLE))
		emu_accel_start(m, queue);
	else if (!(now & SIO_ACCEL_ENABLE) && before & SIO_ACCEL_ENABLE)
		emu_accel_halt(m, queue, 0);
}

/* Return: whether it was written to. One that is taken is left alone in the view: its holder may
 * have stored there again meanwhile. */
static bool poll_word(struct accelerator *m, unsigned word, bool writable)
{
	uint32_t value = sio_read32(m->view + word);

	if (value == m->reg[word])
		return false;
	if (!writable) {
		sio_write32(m->view + word, m->reg[word]);
		return true;
	}
	m->reg[word] = value;
	if (m->mirror)
		sio_write32(m->mirror + word, value);
	return true;
}

/*
 * CONTROL, its first word, first: what the others are to be was written before it. Pairs with
 * start() of the driver.
 */
static bool poll_queue(struct accelerator *m, unsigned queue)
{
	const unsigned first = SIO_ACCEL_QUEUE(queue) / 4;
	const uint32_t before = m->reg[first + SIO_ACCEL_CONTROL / 4];
	bool changed = poll_word(m, first, true);

	if (changed)
		sio_from_fabric_barrier();
	for (unsigned reg = 4; reg <= SIO_ACCEL_DONE; reg += 4)
		changed |= poll_word(m, first + reg / 4, is_writable(reg));
	control_changed(m, queue, before);
	return changed;
}

/* What a queue is asked to do. Return: whether something was. */
static bool poll_controls(struct accelerator *m)
{
	bool changed = false;

	for (unsigned i = 0; m->view && i < m->n_queues; i++) {
		const unsigned word = (SIO_ACCEL_QUEUE(i) + SIO_ACCEL_CONTROL) / 4;

		if (sio_read32(m->view + word) != m->reg[word])
			changed |= poll_queue(m, i);
	}
	return changed;
}

/* All words. Return: whether one was written. */
static bool poll_registers(struct accelerator *m)
{
	bool changed = false;

	m->n_steps = 0;
	if (!m->view || !m->doorbells)
		return false;
	for (unsigned word = 0; word < SIO_ACCEL_QUEUE(0) / 4; word++)
		changed |= poll_word(m, word, false);
	for (unsigned i = 0; i < m->n_queues; i++)
		changed |= poll_queue(m, i);
	return changed;
}

/* ---- life ---- */

static int check(const struct sio_topo_device *t, struct sio_err *reterr)
{
	if (t->size < EMU_ACCEL_LEAST || t->size > EMU_ACCEL_LARGEST || t->size & (t->size - 1))
		return sio_fail(reterr, -EINVAL,
				"%s: size is %" PRIu64 ", a power of 2 from %u to %llu is right",
				t->name, t->size, EMU_ACCEL_LEAST, EMU_ACCEL_LARGEST);
	if (t->units < 1 || t->units > EMU_ACCEL_UNITS)
		return sio_fail(reterr, -EINVAL, "%s: units is %" PRIu32 ", 1 to %u is right",
				t->name, t->units, EMU_ACCEL_UNITS);
	if (t->vectors > EMU_ACCEL_VECTORS)
		return sio_fail(reterr, -EINVAL, "%s: vectors is %" PRIu32 ", 0 to %u is right",
				t->name, t->vectors, EMU_ACCEL_VECTORS);
	return 0;
}
_Static_assert(ACCEL_DMA_QUEUES + EMU_ACCEL_UNITS == SIO_ACCEL_MOST_QUEUES, "a queue each");

static void describe(const struct accelerator *m, struct emu_dev_config *config)
{
	*config = (struct emu_dev_config){
		.vendor = SIO_ACCEL_VENDOR,
		.device = SIO_ACCEL_DEVICE,
		.subsys_vendor = SIO_ACCEL_VENDOR,
		.subsys_device = SIO_ACCEL_DEVICE,
		.class_code = SIO_ACCEL_CLASS,
		.bar_size = {[SIO_ACCEL_BAR_REGISTERS] = BAR0_BYTES,
			     [SIO_ACCEL_BAR_MEMORY] = m->memory_bytes},
		.n_pages = m->vectors ? 4 : 3,
		.msix_count = m->vectors,
		.full_look = STEPS_PER_LOOK,
	};
	config->pages[ACCEL_RUN_REGISTERS] =
		(struct emu_dev_pages){.kind = EMU_PAGE_REGISTERS, .length = ACCEL_PAGE};
	config->pages[ACCEL_RUN_DOORBELLS] = (struct emu_dev_pages){
		.kind = EMU_PAGE_DOORBELLS, .offset = SIO_ACCEL_DOORBELL(0), .length = ACCEL_PAGE};
	config->pages[ACCEL_RUN_MEMORY] = (struct emu_dev_pages){
		.bar = SIO_ACCEL_BAR_MEMORY, .kind = EMU_PAGE_MEMORY, .length = m->memory_bytes};
	config->pages[ACCEL_RUN_MSIX] = (struct emu_dev_pages){
		.kind = EMU_PAGE_MSIX, .offset = MSIX_OFFSET, .length = BAR0_BYTES - MSIX_OFFSET};
}

static int create(struct emu_dev *dev, const struct sio_topo_device *t,
		  struct emu_dev_config *config, void **ret, struct sio_err *reterr)
{
	int rc = check(t, reterr);
	struct accelerator *m;

	if (rc < 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for the device: " SIO_MORE_MEMORY,
				t->name);
	m->dev = dev;
	m->memory_bytes = t->size;
	m->vectors = t->vectors;
	m->n_queues = ACCEL_DMA_QUEUES + t->units;
	defaults(m);
	describe(m, config);
	*ret = m;
	return 0;
}

static void destroy(void *model)
{
	free(model);
}

static bool idle(void *model)
{
	const struct accelerator *m = model;

	for (uint32_t left = m->running; left; left &= left - 1) {
		const struct accel_queue *q = &m->queue[__builtin_ctz(left)];

		if (q->under_way || q->tail != q->head)
			return false;
	}
	return true;
}

static unsigned step(void *model, unsigned budget)
{
	struct accelerator *m = model;
	unsigned done;

	if (!m->attached)
		attach(m);
	if (!m->doorbells)
		return 0;
	done = ++m->n_steps >= STEPS_PER_LOOK ? poll_registers(m) : poll_controls(m);
	return done < budget ? done + emu_accel_run(m, budget - done) : done;
}

static void skip_steps(void *model, uint64_t n)
{
	struct accelerator *m = model;

	/* One that finds nothing leaves nothing but these. */
	m->turn = (unsigned)((m->turn + n) % m->n_queues);
	m->n_steps = (unsigned)((m->n_steps + n) % STEPS_PER_LOOK);
}

/* Its memory is zeroed, so that a borrower does not find what the one before it left. */
static void reset(void *model, bool power)
{
	struct accelerator *m = model;

	defaults(m);
	attach(m);
	if (m->doorbells)
		emu_dev_zero(m->doorbells, ACCEL_PAGE);
	if (m->memory && !power && m->dev->zero)
		m->dev->zero(m->dev, ACCEL_RUN_MEMORY);
	else if (m->memory && !power)
		emu_dev_zero(m->memory, m->memory_bytes);
}

/* Queues are the registers' owner's: without one nobody could end them. */
static void abandon(struct accelerator *m)
{
	for (unsigned i = 0; i < m->n_queues; i++) {
		if (m->reg[(SIO_ACCEL_QUEUE(i) + SIO_ACCEL_CONTROL) / 4] == 0)
			continue;
		emu_accel_set(m, SIO_ACCEL_QUEUE(i) + SIO_ACCEL_CONTROL, 0);
		emu_accel_halt(m, i, 0);
	}
}

static void view_changed(void *model, unsigned index)
{
	struct accelerator *m = model;

	attach(m);
	if (index == ACCEL_RUN_REGISTERS && !m->view)
		abandon(m);
}

static void stored(void *model, unsigned index)
{
	struct accelerator *m = model;

	(void)index;
	if (!m->attached)
		attach(m);
	poll_registers(m);
}

static unsigned counters(void *model, char (*name)[32], uint64_t *value, unsigned max)
{
	const struct accelerator *m = model;
	const struct emu_dev_counter all[] = {
		{"transfers", m->stats.transfers},    {"kernels", m->stats.kernels},
		{"commands_failed", m->stats.failed}, {"bytes_copied", m->stats.bytes},
		{"interrupts", m->stats.interrupts},
	};

	return emu_dev_counters(all, sizeof(all) / sizeof(all[0]), name, value, max);
}

const struct emu_dev_model emu_accel_model = {
	.type = EMU_ACCEL_TYPE,
	.create = create,
	.destroy = destroy,
	.step = step,
	.skip_steps = skip_steps,
	.reset = reset,
	.view_changed = view_changed,
	.stored = stored,
	.idle = idle,
	.counters = counters,
};
