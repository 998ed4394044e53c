/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "emu/devices/model.h"

#define PAGE 4096u
#define PAGES 4u
#define CMB 3u

/* A virtual function: nothing is asked of it, so it has no pages. */
struct function {
	struct emu_dev dev;
	struct emu_dev_config config;
	void *state;
};

struct model {
	struct drive d;
	struct emu_dev dev;
	struct emu_dev_config config;
	void *state;
	struct function function[DRIVE_FUNCTIONS];
	unsigned enabled;
	uint32_t *page[PAGES], *mirror; /* registers, doorbells, interrupt table, memory */
	uint64_t now;
	uint32_t raised;
};

static struct model *of(struct emu_dev *dev)
{
	return dev->room;
}

static void *find(struct model *m, uint64_t addr, size_t len)
{
	if (addr < DRIVE_MEMORY || addr - DRIVE_MEMORY > DRIVE_BYTES ||
	    len > DRIVE_BYTES - (addr - DRIVE_MEMORY))
		return NULL;
	return m->d.memory + (addr - DRIVE_MEMORY);
}

static int dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len)
{
	void *at = find(of(dev), addr, len);

	if (!at)
		return -EFAULT;
	memcpy(buf, at, len);
	return 0;
}

static int dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len)
{
	void *at = find(of(dev), addr, len);

	if (!at)
		return -EFAULT;
	memcpy(at, buf, len);
	return 0;
}

static void raise(struct emu_dev *dev, unsigned vector)
{
	of(dev)->raised |= 1u << vector;
}

static uint64_t now(struct emu_dev *dev)
{
	return of(dev)->now += 1000;
}

static void say(struct emu_dev *dev, const char *text)
{
	(void)dev;
	(void)text;
}

static volatile void *view(struct emu_dev *dev, unsigned index)
{
	return of(dev)->page[index];
}

static volatile void *mirror(struct emu_dev *dev, unsigned index)
{
	return index == 0 ? of(dev)->mirror : NULL;
}

/* So often that every register and doorbell was looked at. */
static void settle(struct model *m)
{
	for (unsigned i = 0; i < 400; i++)
		emu_nvme_model.step(m->state, 64);
}

static uint32_t model_read(struct drive *d, uint32_t offset)
{
	struct model *m = (struct model *)d;

	emu_nvme_model.step(m->state, 64);
	return m->mirror[offset / 4];
}

static void model_write(struct drive *d, uint32_t offset, uint32_t value)
{
	struct model *m = (struct model *)d;

	m->page[offset / PAGE][offset % PAGE / 4] = value;
	emu_nvme_model.step(m->state, 64);
	if (offset < PAGE)
		settle(m);
}

static void model_write64(struct drive *d, uint32_t offset, uint64_t value)
{
	model_write(d, offset, (uint32_t)value);
	model_write(d, offset + 4, (uint32_t)(value >> 32));
}

static void model_turn(struct drive *d)
{
	emu_nvme_model.step(((struct model *)d)->state, 64);
}

/* A function's reset tells it whether it is there. */
static void model_functions(struct drive *d, unsigned n)
{
	struct model *m = (struct model *)d;

	m->enabled = n;
	for (unsigned i = 0; i < DRIVE_FUNCTIONS; i++)
		emu_nvme_model.reset(m->function[i].state, false);
}

static unsigned functions_of(struct emu_dev *dev)
{
	return of(dev)->enabled;
}

/* Clears VF Enable, too. */
static void model_reset(struct drive *d)
{
	emu_nvme_model.reset(((struct model *)d)->state, false);
	if (d->functions)
		d->functions(d, 0);
}

static uint32_t model_interrupts(struct drive *d)
{
	struct model *m = (struct model *)d;
	uint32_t raised = m->raised;

	m->raised = 0;
	return raised;
}

static void model_close(struct drive *d)
{
	struct model *m = (struct model *)d;

	for (unsigned i = 0; i < DRIVE_FUNCTIONS; i++)
		if (m->function[i].state)
			emu_nvme_model.destroy(m->function[i].state);
	if (m->state)
		emu_nvme_model.destroy(m->state);
	for (unsigned i = 0; i < PAGES; i++)
		free(m->page[i]);
	free(m->mirror);
	free(m->d.memory);
	free(m);
}

static volatile void *no_pages(struct emu_dev *dev, unsigned index)
{
	(void)dev;
	(void)index;
	return NULL;
}

static int make(struct model *m, bool functions, struct sio_err *err)
{
	const struct sio_topo_device topo = {
		.name = "nvme0",
		.type = "nvme",
		.size = DRIVE_MEDIA,
		.block_size = 512,
		.queue_pairs = DRIVE_PAIRS,
		.queue_entries = DRIVE_ENTRIES,
		.cmb = functions ? 0 : DRIVE_CMB,
		.vectors = DRIVE_VECTORS,
		.dma_bits = 64,
		.serial = DRIVE_SERIAL,
	};
	int rc = emu_nvme_model.create(&m->dev, &topo, &m->config, &m->state, err);

	for (unsigned i = 0; rc == 0 && functions && i < DRIVE_FUNCTIONS; i++) {
		struct function *f = &m->function[i];

		f->dev = m->dev;
		f->dev.physical = m->state;
		f->dev.view = f->dev.mirror = no_pages;
		rc = emu_nvme_model.create(&f->dev, &topo, &f->config, &f->state, err);
	}
	return rc;
}

struct drive *drive_model(bool functions)
{
	struct model *m = calloc(1, sizeof(*m));
	struct sio_err err = {.text = "no memory"};

	if (!m)
		return NULL;
	m->d = (struct drive){
		.memory = calloc(1, DRIVE_BYTES),
		.read = model_read,
		.write = model_write,
		.write64 = model_write64,
		.turn = model_turn,
		.function_reset = model_reset,
		.functions = functions ? model_functions : NULL,
		.interrupts = model_interrupts,
		.close = model_close,
	};
	m->dev = (struct emu_dev){.room = m,
				  .read = dma_read,
				  .write = dma_write,
				  .interrupt = raise,
				  .now = now,
				  .functions = functions ? functions_of : NULL,
				  .log = say,
				  .view = view,
				  .mirror = mirror};
	for (unsigned i = 0; i < PAGES; i++)
		m->page[i] = calloc(1, i == CMB ? DRIVE_CMB : PAGE);
	m->mirror = calloc(1, PAGE);
	if (make(m, functions, &err) < 0) {
		fprintf(stderr, "the model: %s\n", err.text);
		model_close(&m->d);
		return NULL;
	}
	emu_nvme_model.reset(m->state, true);
	return &m->d;
}
