/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory device: its life and its registers. The register page is plain memory that its holder
 * writes to and the model polls: a word that differs from @reg was written, and is taken or put
 * right.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/devices/memdev/keys.h"
#include "emu/devices/memdev/memdev.h"
#include "smartio/io.h"

#define BAR0_BYTES 0x4000u
#define MSIX_OFFSET 0x2000u

void emu_memdev_set(struct memdev *m, unsigned reg, uint32_t value)
{
	m->reg[reg / 4] = value;
	if (m->view)
		sio_write32(m->view + reg / 4, value);
	if (m->mirror)
		sio_write32(m->mirror + reg / 4, value);
}

void emu_memdev_halt(struct memdev *m, uint32_t status)
{
	m->running = m->under_way = false;
	emu_memdev_set(m, SIO_MEMDEV_STATUS, status);
}

static void defaults(struct memdev *m)
{
	memset(m->reg, 0, sizeof(m->reg));
	m->reg[SIO_MEMDEV_MAGIC / 4] = SIO_MEMDEV_MAGIC_VALUE;
	m->reg[SIO_MEMDEV_VERSION / 4] = 1;
	m->reg[SIO_MEMDEV_RAM_BYTES / 4] = m->ram_bytes;
	m->reg[SIO_MEMDEV_VECTORS / 4] = m->vectors;
	m->running = m->under_way = false;
}

/* Ask the room for the pages. They change only with view_changed() and reset(). */
static void attach(struct memdev *m)
{
	m->view = m->dev->view(m->dev, MEMDEV_RUN_REGISTERS);
	m->mirror = m->dev->mirror(m->dev, MEMDEV_RUN_REGISTERS);
	m->doorbell = m->dev->view(m->dev, MEMDEV_RUN_DOORBELL);
	m->ram = (uint8_t *)(uintptr_t)m->dev->view(m->dev, MEMDEV_RUN_RAM);
	m->attached = true;
	for (unsigned i = 0; i < MEMDEV_WORDS; i++)
		emu_memdev_set(m, i * 4, m->reg[i]);
}

/* ---- registers ---- */

static bool is_writable(unsigned word)
{
	return word == SIO_MEMDEV_CONTROL / 4 || word == SIO_MEMDEV_RING_BASE / 4 ||
	       word == SIO_MEMDEV_RING_BASE / 4 + 1 || word == SIO_MEMDEV_RING_ENTRIES / 4 ||
	       word == SIO_MEMDEV_VECTOR / 4;
}

static void start(struct memdev *m)
{
	uint64_t base = (uint64_t)m->reg[SIO_MEMDEV_RING_BASE / 4 + 1] << 32 |
			m->reg[SIO_MEMDEV_RING_BASE / 4];
	uint32_t entries = m->reg[SIO_MEMDEV_RING_ENTRIES / 4];

	if (base % sizeof(struct sio_memdev_entry) || entries < 2 ||
	    entries > SIO_MEMDEV_MOST_ENTRIES || entries & (entries - 1)) {
		emu_memdev_halt(m, SIO_MEMDEV_BAD_RING);
		return;
	}
	m->ring = base;
	m->entries = entries;
	m->head = m->tail = 0;
	m->running = true;
	sio_write32(m->doorbell, 0);
	emu_memdev_set(m, SIO_MEMDEV_DONE, 0);
	emu_memdev_set(m, SIO_MEMDEV_STATUS, SIO_MEMDEV_RUNNING);
}

static void control_changed(struct memdev *m, uint32_t before)
{
	uint32_t now = m->reg[SIO_MEMDEV_CONTROL / 4];

	if (now & SIO_MEMDEV_ENABLE && !(before & SIO_MEMDEV_ENABLE))
		start(m);
	else if (!(now & SIO_MEMDEV_ENABLE) && before & SIO_MEMDEV_ENABLE)
		emu_memdev_halt(m, 0);
}

/* The view is left alone: the holder may have stored there again meanwhile. */
static void take(struct memdev *m, unsigned word, uint32_t value)
{
	m->reg[word] = value;
	if (m->mirror)
		sio_write32(m->mirror + word, value);
}

/* All words. Return: whether one was written. */
static bool poll_registers(struct memdev *m)
{
	uint32_t control = m->reg[SIO_MEMDEV_CONTROL / 4];
	bool changed = false;

	if (!m->view)
		return false;
	/* CONTROL first: what the others are to be was written before; pairs with the driver's. */
	for (unsigned i = 0; i < MEMDEV_WORDS; i++) {
		unsigned word = (i + SIO_MEMDEV_CONTROL / 4) % MEMDEV_WORDS;
		uint32_t value = sio_read32(m->view + word);

		if (value == m->reg[word])
			continue;
		if (word == SIO_MEMDEV_CONTROL / 4)
			sio_from_fabric_barrier();
		changed = true;
		if (is_writable(word))
			take(m, word, value);
		else
			sio_write32(m->view + word, m->reg[word]);
	}
	control_changed(m, control);
	return changed;
}

/* ---- life ---- */

static int check(const struct sio_topo_device *t, struct sio_err *reterr)
{
	if (t->size < EMU_MEMDEV_LEAST || t->size > EMU_MEMDEV_MOST || t->size & (t->size - 1))
		return sio_fail(reterr, -EINVAL,
				"%s: size is %" PRIu64 ", a power of 2 from %u to %u is right",
				t->name, t->size, EMU_MEMDEV_LEAST, EMU_MEMDEV_MOST);
	if (t->vectors > EMU_MEMDEV_VECTORS)
		return sio_fail(reterr, -EINVAL, "%s: vectors is %" PRIu32 ", 0 to %u is right",
				t->name, t->vectors, EMU_MEMDEV_VECTORS);
	return 0;
}

static void describe(const struct memdev *m, struct emu_dev_config *config)
{
	*config = (struct emu_dev_config){
		.vendor = SIO_MEMDEV_VENDOR,
		.device = SIO_MEMDEV_DEVICE,
		.subsys_vendor = SIO_MEMDEV_VENDOR,
		.subsys_device = SIO_MEMDEV_DEVICE,
		.class_code = SIO_MEMDEV_CLASS,
		.bar_size = {[SIO_MEMDEV_BAR_REGISTERS] = BAR0_BYTES,
			     [SIO_MEMDEV_BAR_RAM] = m->ram_bytes},
		.n_pages = m->vectors ? 4 : 3,
		.msix_count = m->vectors,
		.full_look = 1,
	};
	config->pages[MEMDEV_RUN_REGISTERS] =
		(struct emu_dev_pages){.kind = EMU_PAGE_REGISTERS, .length = MEMDEV_PAGE};
	config->pages[MEMDEV_RUN_DOORBELL] = (struct emu_dev_pages){
		.kind = EMU_PAGE_DOORBELLS, .offset = SIO_MEMDEV_DOORBELL, .length = MEMDEV_PAGE};
	config->pages[MEMDEV_RUN_RAM] = (struct emu_dev_pages){
		.bar = SIO_MEMDEV_BAR_RAM, .kind = EMU_PAGE_MEMORY, .length = m->ram_bytes};
	config->pages[MEMDEV_RUN_MSIX] = (struct emu_dev_pages){
		.kind = EMU_PAGE_MSIX, .offset = MSIX_OFFSET, .length = BAR0_BYTES - MSIX_OFFSET};
}

static int create(struct emu_dev *dev, const struct sio_topo_device *t,
		  struct emu_dev_config *config, void **ret, struct sio_err *reterr)
{
	int rc = check(t, reterr);
	struct memdev *m;

	if (rc < 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for the device: " SIO_MORE_MEMORY,
				t->name);
	m->dev = dev;
	m->ram_bytes = (uint32_t)t->size;
	m->vectors = t->vectors;
	defaults(m);
	describe(m, config);
	*ret = m;
	return 0;
}

static void destroy(void *model)
{
	free(model);
}

static unsigned step(void *model, unsigned budget)
{
	struct memdev *m = model;
	unsigned done;

	if (!m->attached)
		attach(m);
	if (!m->doorbell)
		return 0;
	done = poll_registers(m);
	return done < budget ? done + emu_memdev_run(m, budget - done) : done;
}

static void skip_steps(void *model, uint64_t n)
{
	(void)model;
	(void)n; /* one that finds nothing leaves nothing */
}

/* The RAM is zeroed, so that a borrower does not find what the one before it left. */
static void reset(void *model, bool power)
{
	struct memdev *m = model;

	(void)power;
	defaults(m);
	attach(m);
	if (m->doorbell)
		sio_write32(m->doorbell, 0);
	if (m->ram)
		emu_dev_zero(m->ram, m->ram_bytes);
}

static void view_changed(void *model, unsigned index)
{
	(void)index;
	attach(model);
}

static void stored(void *model, unsigned index)
{
	struct memdev *m = model;

	(void)index;
	if (!m->attached)
		attach(m);
	poll_registers(m);
}

static bool idle(void *model)
{
	const struct memdev *m = model;

	return !m->running || (!m->under_way && m->tail == m->head);
}

static unsigned counters(void *model, char (*name)[32], uint64_t *value, unsigned max)
{
	const struct memdev *m = model;
	const struct emu_dev_counter all[] = {
		{"descriptors", m->stats.entries},
		{"descriptors_failed", m->stats.failed},
		{"bytes_copied", m->stats.bytes},
		{"interrupts", m->stats.interrupts},
	};

	return emu_dev_counters(all, sizeof(all) / sizeof(all[0]), name, value, max);
}

const struct emu_dev_model emu_memdev_model = {
	.type = EMU_MEMDEV_TYPE,
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
