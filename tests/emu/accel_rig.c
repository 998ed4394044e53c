/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accel_rig.h"

static uint8_t *at(struct rig *r, uint64_t addr, size_t len)
{
	return addr >= BASE && len <= FAR && addr - BASE <= FAR - len ? r->far + (addr - BASE)
								      : NULL;
}

static int dma_read(struct emu_dev *d, uint64_t addr, void *buf, size_t len)
{
	uint8_t *from = at((struct rig *)d, addr, len);

	if (!from) {
		((struct rig *)d)->failed++;
		return -EFAULT;
	}
	((struct rig *)d)->moved += len;
	memcpy(buf, from, len);
	return 0;
}

static int dma_write(struct emu_dev *d, uint64_t addr, const void *buf, size_t len)
{
	uint8_t *to = at((struct rig *)d, addr, len);

	if (!to) {
		((struct rig *)d)->failed++;
		return -EFAULT;
	}
	((struct rig *)d)->moved += len;
	memcpy(to, buf, len);
	return 0;
}

static void interrupt(struct emu_dev *d, unsigned vector)
{
	((struct rig *)d)->raised[vector]++;
}

static uint64_t now(struct emu_dev *d)
{
	return ((struct rig *)d)->now++;
}

static volatile void *view(struct emu_dev *d, unsigned index)
{
	struct rig *r = (struct rig *)d;

	if (index == 0)
		return r->taken ? r->view : NULL;
	return index == 1 ? (volatile void *)r->doorbell : r->memory;
}

static volatile void *mirror(struct emu_dev *d, unsigned index)
{
	return index == 0 ? ((struct rig *)d)->mirror : NULL;
}

int make(struct rig *r, uint64_t size, uint32_t units, uint32_t vectors, struct sio_err *err)
{
	const struct sio_topo_device topo = {.name = "acc0",
					     .type = "accelerator",
					     .size = size,
					     .units = units,
					     .vectors = vectors};

	memset(r, 0, sizeof(*r));
	r->dev = (struct emu_dev){.read = dma_read,
				  .write = dma_write,
				  .interrupt = interrupt,
				  .now = now,
				  .view = view,
				  .mirror = mirror};
	return emu_accel_model.create(&r->dev, &topo, &r->config, &r->model, err);
}

void run(struct rig *r)
{
	for (unsigned i = 0, quiet = 0; quiet < 20; i++) {
		assert_true(i < 100000);
		quiet = emu_accel_model.step(r->model, 16) ? 0 : quiet + 1;
	}
}

uint32_t reg(const struct rig *r, unsigned offset)
{
	assert_int_equal(r->view[offset / 4], r->mirror[offset / 4]);
	return r->view[offset / 4];
}

uint32_t queue_reg(const struct rig *r, unsigned queue, unsigned offset)
{
	return reg(r, SIO_ACCEL_QUEUE(queue) + offset);
}

void set(struct rig *r, unsigned queue, unsigned offset, uint32_t value)
{
	r->view[(SIO_ACCEL_QUEUE(queue) + offset) / 4] = value;
}

void enable(struct rig *r, unsigned queue, uint64_t ring, uint32_t entries)
{
	set(r, queue, SIO_ACCEL_CONTROL, 0);
	run(r);
	set(r, queue, SIO_ACCEL_RING_BASE, (uint32_t)ring);
	set(r, queue, SIO_ACCEL_RING_BASE + 4, (uint32_t)(ring >> 32));
	set(r, queue, SIO_ACCEL_RING_ENTRIES, entries);
	set(r, queue, SIO_ACCEL_CONTROL, SIO_ACCEL_ENABLE);
	run(r);
	r->n[queue] = 0;
}

int setup(void **state)
{
	struct rig *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	struct sio_err err;

	assert_non_null(r);
	assert_int_equal(make(r, MEMORY, UNITS, 4, &err), 0);
	emu_accel_model.reset(r->model, true);
	r->taken = true;
	emu_accel_model.view_changed(r->model, 0);
	for (unsigned q = 0; q < QUEUES; q++) {
		enable(r, q, BASE + RINGS + q * 0x1000, ENTRIES);
		assert_int_equal(queue_reg(r, q, SIO_ACCEL_STATUS), SIO_ACCEL_RUNNING);
	}
	*state = r;
	return 0;
}

int teardown(void **state)
{
	struct rig *r = *state;

	emu_accel_model.destroy(r->model);
	free(r);
	return 0;
}

struct sio_accel_completion *word(struct rig *r, unsigned queue)
{
	return (struct sio_accel_completion *)(void *)(r->far + WORDS + queue * 16);
}

void give(struct rig *r, unsigned queue, uint32_t operation, uint32_t flags, uint64_t a0,
	  uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	const struct sio_accel_command c = {.operation = operation,
					    .flags = flags,
					    .completion = BASE + WORDS + queue * 16,
					    .argument = {a0, a1, a2, a3, a4}};

	memcpy(r->far + RINGS + queue * 0x1000 + r->n[queue] % ENTRIES * sizeof(c), &c, sizeof(c));
	r->doorbell[16 * queue] = ++r->n[queue];
}

uint64_t is_done(struct rig *r, unsigned queue, uint32_t status)
{
	assert_int_equal(word(r, queue)->number, r->n[queue]);
	assert_int_equal(word(r, queue)->status, status);
	assert_int_equal(queue_reg(r, queue, SIO_ACCEL_DONE), r->n[queue]);
	return word(r, queue)->result;
}

uint32_t copy(struct rig *r, uint64_t from, uint64_t to, uint64_t bytes)
{
	give(r, 0, SIO_ACCEL_TRANSFER, 0, from, to, bytes, 0, 0);
	run(r);
	is_done(r, 0, word(r, 0)->status);
	return word(r, 0)->status;
}

uint64_t compute(struct rig *r, uint32_t number, uint64_t a0, uint64_t a1, uint64_t a2)
{
	give(r, 2, number, 0, a0, a1, a2, 0, 0);
	run(r);
	return is_done(r, 2, SIO_ACCEL_OK);
}
