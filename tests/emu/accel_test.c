/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accelerator's model alone: its pages and the fabric's memory are the test's. What kernels
 * compute is compared with the same kernels on plain memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/devices/model.h"
#include "plain.h"
#include "smartio/acceldev.h"
#include "table.h"

#define MEMORY 0x40000u
#define FAR 0x40000u /* bytes of the fabric's memory, at address BASE */
#define BASE 0x100000000u
#define RINGS 0x0u /* offsets there: a page each */
#define WORDS 0x10000u
#define DATA 0x20000u
#define ENTRIES 8u
#define UNITS 3u
#define QUEUES (2 + UNITS)
#define LOCAL(offset) (SIO_ACCEL_LOCAL | (offset))

struct rig {
	struct emu_dev dev;
	struct emu_dev_config config;
	void *model;
	uint32_t view[1024], mirror[1024], doorbell[1024];
	uint8_t memory[MEMORY] __attribute__((aligned(64)));
	uint8_t far[FAR] __attribute__((aligned(64)));
	bool taken; /* somebody has the registers */
	unsigned raised[4];
	uint64_t moved, now;
	unsigned failed;    /* accesses that led nowhere */
	uint32_t n[QUEUES]; /* commands given */
};

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

static int make(struct rig *r, uint64_t size, uint32_t units, uint32_t vectors, struct sio_err *err)
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

/* Until nothing happens; a kernel that waits does nothing. */
static void run(struct rig *r)
{
	for (unsigned i = 0, quiet = 0; quiet < 20; i++) {
		assert_true(i < 100000);
		quiet = emu_accel_model.step(r->model, 16) ? 0 : quiet + 1;
	}
}

static uint32_t reg(const struct rig *r, unsigned offset)
{
	assert_int_equal(r->view[offset / 4], r->mirror[offset / 4]);
	return r->view[offset / 4];
}

static uint32_t queue_reg(const struct rig *r, unsigned queue, unsigned offset)
{
	return reg(r, SIO_ACCEL_QUEUE(queue) + offset);
}

static void set(struct rig *r, unsigned queue, unsigned offset, uint32_t value)
{
	r->view[(SIO_ACCEL_QUEUE(queue) + offset) / 4] = value;
}

static void enable(struct rig *r, unsigned queue, uint64_t ring, uint32_t entries)
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

static int setup(void **state)
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

static int teardown(void **state)
{
	struct rig *r = *state;

	emu_accel_model.destroy(r->model);
	free(r);
	return 0;
}

/* Where the next completion of @queue is written. */
static struct sio_accel_completion *word(struct rig *r, unsigned queue)
{
	return (struct sio_accel_completion *)(void *)(r->far + WORDS + queue * 16);
}

static void give(struct rig *r, unsigned queue, uint32_t operation, uint32_t flags, uint64_t a0,
		 uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	const struct sio_accel_command c = {.operation = operation,
					    .flags = flags,
					    .completion = BASE + WORDS + queue * 16,
					    .argument = {a0, a1, a2, a3, a4}};

	memcpy(r->far + RINGS + queue * 0x1000 + r->n[queue] % ENTRIES * sizeof(c), &c, sizeof(c));
	r->doorbell[16 * queue] = ++r->n[queue];
}

static uint64_t is_done(struct rig *r, unsigned queue, uint32_t status)
{
	assert_int_equal(word(r, queue)->number, r->n[queue]);
	assert_int_equal(word(r, queue)->status, status);
	assert_int_equal(queue_reg(r, queue, SIO_ACCEL_DONE), r->n[queue]);
	return word(r, queue)->result;
}

static uint32_t copy(struct rig *r, uint64_t from, uint64_t to, uint64_t bytes)
{
	give(r, 0, SIO_ACCEL_TRANSFER, 0, from, to, bytes, 0, 0);
	run(r);
	is_done(r, 0, word(r, 0)->status);
	return word(r, 0)->status;
}

static void what_it_is(void **state)
{
	static const struct {
		uint64_t size;
		uint32_t units, vectors;
	} bad[] = {{0, 1, 1},	   {2048, 1, 1}, {12288, 1, 1}, {512u << 20, 1, 1},
		   {4096, 1, 257}, {4096, 0, 1}, {4096, 9, 1}};
	struct rig *r = *state;
	struct rig *other = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	struct sio_err err;

	assert_int_equal(reg(r, SIO_ACCEL_MAGIC), SIO_ACCEL_MAGIC_VALUE);
	assert_int_equal(reg(r, SIO_ACCEL_VERSION), 1);
	assert_int_equal(reg(r, SIO_ACCEL_MEMORY_BYTES), MEMORY);
	assert_int_equal(reg(r, SIO_ACCEL_VECTORS), 4);
	assert_int_equal(reg(r, SIO_ACCEL_QUEUES), QUEUES);
	assert_int_equal(reg(r, SIO_ACCEL_DMA_QUEUES), 2);
	assert_int_equal(r->config.bar_size[SIO_ACCEL_BAR_MEMORY], MEMORY);
	/* What is not writable is put right, what is writable is taken. */
	r->view[SIO_ACCEL_MAGIC / 4] = 1;
	set(r, 1, SIO_ACCEL_DONE, 7);
	set(r, 4, SIO_ACCEL_VECTOR, 3);
	run(r);
	assert_int_equal(reg(r, SIO_ACCEL_MAGIC), SIO_ACCEL_MAGIC_VALUE);
	assert_int_equal(queue_reg(r, 1, SIO_ACCEL_DONE), 0);
	assert_int_equal(queue_reg(r, 4, SIO_ACCEL_VECTOR), 3);
	assert_true(emu_accel_model.idle(r->model));
	assert_non_null(other);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(make(other, bad[i].size, bad[i].units, bad[i].vectors, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, "is right"));
	}
	/* Without interrupts there is no table of them. */
	assert_int_equal(make(other, 4096, 1, 0, &err), 0);
	assert_int_equal(other->config.n_pages, 3);
	emu_accel_model.destroy(other->model);
	free(other);
}

static void transfers_each_way(void **state)
{
	struct rig *r = *state;
	const uint64_t data = BASE + DATA;

	for (unsigned i = 0; i < 0x8000; i++)
		r->far[DATA + i] = (uint8_t)(i * 7 + i / 256);
	set(r, 0, SIO_ACCEL_VECTOR, 2);
	enable(r, 0, BASE + RINGS, ENTRIES);
	assert_int_equal(copy(r, data + 5, LOCAL(3), 10000), SIO_ACCEL_OK);
	assert_int_equal(word(r, 0)->result, 10000);
	assert_int_equal(copy(r, LOCAL(3), LOCAL(0x9001), 10000), SIO_ACCEL_OK);
	assert_memory_equal(r->memory + 3, r->far + DATA + 5, 10000);
	assert_memory_equal(r->memory + 0x9001, r->far + DATA + 5, 10000);
	assert_int_equal(r->memory[2] | r->memory[10003], 0);
	assert_int_equal(r->raised[2], 0);
	give(r, 0, SIO_ACCEL_TRANSFER, SIO_ACCEL_INTERRUPT, LOCAL(0x9001), data + 0x10000, 10000, 0,
	     0);
	run(r);
	is_done(r, 0, SIO_ACCEL_OK);
	assert_memory_equal(r->far + DATA + 0x10000, r->far + DATA + 5, 10000);
	assert_int_equal(r->raised[2], 1);
	assert_int_equal(copy(r, data, data + 0x18000, 0x8000), SIO_ACCEL_OK);
	assert_memory_equal(r->far + DATA + 0x18000, r->far + DATA, 0x8000);
	/* The ring goes round, as often as one likes. */
	for (unsigned n = 0; n < 100; n++) {
		assert_int_equal(copy(r, LOCAL(n), LOCAL(MEMORY - 64), 64), SIO_ACCEL_OK);
		assert_memory_equal(r->memory + MEMORY - 64, r->memory + n, 64);
	}
}

static void refuses_wrong_transfers(void **state)
{
	const uint64_t data = BASE + DATA;
	const struct {
		uint64_t from, to, bytes;
		uint32_t flags, operation, status;
	} table[] = {
		{LOCAL(0), data, 0, 0, 1, SIO_ACCEL_INVALID},
		{LOCAL(0), data, 64, 2, 1, SIO_ACCEL_INVALID},
		{LOCAL(0), data, 64, 0, 2, SIO_ACCEL_INVALID},
		{LOCAL(MEMORY - 63), data, 64, 0, 1, SIO_ACCEL_INVALID},
		{data, LOCAL(MEMORY), 1, 0, 1, SIO_ACCEL_INVALID},
		{LOCAL(0), data, UINT64_MAX, 0, 1, SIO_ACCEL_INVALID},
		{data, UINT64_MAX, 64, 0, 1, SIO_ACCEL_INVALID},
		{LOCAL(0), SIO_ACCEL_LOCAL - 10, 64, 0, 1, SIO_ACCEL_INVALID},
		{BASE - 64, LOCAL(0), 64, 0, 1, SIO_ACCEL_READ_FAILED},
		{BASE + FAR, data, 64, 0, 1, SIO_ACCEL_READ_FAILED},
		{LOCAL(0), BASE + FAR, 64, 0, 1, SIO_ACCEL_WRITE_FAILED},
		{data, BASE + FAR, 64, 0, 1, SIO_ACCEL_WRITE_FAILED},
		{BASE + FAR - 64, LOCAL(0), 4096, 0, 1, SIO_ACCEL_READ_FAILED},
		/* And what follows is done. */
		{data, LOCAL(0), 64, 0, 1, SIO_ACCEL_OK},
	};
	struct rig *r = *state;

	for (unsigned n = 0; n < sizeof(table) / sizeof(table[0]); n++) {
		give(r, 1, table[n].operation, table[n].flags, table[n].from, table[n].to,
		     table[n].bytes, 0, 0);
		run(r);
		is_done(r, 1, table[n].status);
	}
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_DONE), 0);
}

static void stops_at_a_wrong_ring(void **state)
{
	struct rig *r = *state;

	r->doorbell[0] = ENTRIES + 1;
	run(r);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_BAD_DOORBELL);
	r->doorbell[0] = 1;
	run(r);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_DONE), 0);
	assert_int_equal(queue_reg(r, 1, SIO_ACCEL_STATUS), SIO_ACCEL_RUNNING);
	enable(r, 0, BASE + RINGS + 8, ENTRIES);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_BAD_RING);
	enable(r, 0, BASE + RINGS, 3);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_BAD_RING);
	enable(r, 0, BASE + RINGS, 2 * SIO_ACCEL_MOST_ENTRIES);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_BAD_RING);
	for (unsigned i = 0; i < 2; i++) {
		enable(r, 0, i ? LOCAL(MEMORY) : BASE + FAR, ENTRIES);
		assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_RUNNING);
		r->doorbell[0] = 1;
		run(r);
		assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_RING_LOST);
	}
	enable(r, 0, BASE + RINGS, ENTRIES);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_RUNNING);
	assert_int_equal(r->doorbell[0], 0);
	assert_int_equal(copy(r, LOCAL(0), LOCAL(64), 64), SIO_ACCEL_OK);
}

/* A ring and completions in its own memory: nothing but that is touched. */
static void a_ring_may_be_its_own(void **state)
{
	struct sio_accel_command c = {.operation = SIO_ACCEL_FILL,
				      .completion = LOCAL(0x1000),
				      .argument = {LOCAL(0x2000), 64, 0xabcd}};
	struct sio_accel_completion done;
	struct rig *r = *state;
	uint64_t moved;

	enable(r, 2, LOCAL(0), ENTRIES);
	moved = r->moved;
	memcpy(r->memory, &c, sizeof(c));
	r->doorbell[2 * 16] = 1;
	run(r);
	memcpy(&done, r->memory + 0x1000, sizeof(done));
	assert_int_equal(done.number, 1);
	assert_int_equal(done.status, SIO_ACCEL_OK);
	assert_int_equal(r->memory[0x2000 + 60], 0xcd);
	assert_int_equal(r->moved, moved);
}

/* A long command is done in parts: the budget of a step is kept, and nobody else waits for it. */
static void keeps_its_budget(void **state)
{
	struct rig *r = *state;

	give(r, 0, SIO_ACCEL_TRANSFER, 0, LOCAL(0), BASE + DATA, 0x20000, 0, 0);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t before = r->moved;
		unsigned done = emu_accel_model.step(r->model, 3);

		assert_in_range(done, 1, 4);
		assert_true(r->moved - before <= 4 * 4096 + 64);
		assert_false(emu_accel_model.idle(r->model));
	}
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_DONE), 0);
	give(r, 3, SIO_ACCEL_FILL, 0, LOCAL(0x30000), 64, 1, 0, 0);
	for (unsigned i = 0; i < QUEUES; i++)
		emu_accel_model.step(r->model, 3);
	is_done(r, 3, SIO_ACCEL_OK);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_DONE), 0);
	run(r);
	is_done(r, 0, SIO_ACCEL_OK);
	/* One that is stopped midway is forgotten. */
	give(r, 0, SIO_ACCEL_TRANSFER, 0, LOCAL(0), BASE + DATA, 0x20000, 0, 0);
	emu_accel_model.step(r->model, 2);
	set(r, 0, SIO_ACCEL_CONTROL, 0);
	for (unsigned i = 0; i < 20; i++)
		emu_accel_model.step(r->model, 1);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), 0);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_DONE), 1);
	assert_true(emu_accel_model.idle(r->model));
}

/* ---- kernels ---- */

typedef enum accel_progress kernel(struct accel *a, struct accel_task *t);
#define KERNEL(number, name) [SIO_ACCEL_##number] = accel_kernel_##name,
static kernel *const kernels[] = {ACCEL_KERNELS(KERNEL)};

/* The same kernel on plain memory, to its end. */
static uint64_t plainly(uint32_t number, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct accel_task t = {.argument = {a0, a1, a2}};
	struct accel a = {0};
	enum accel_progress p;

	do
		p = kernels[number](&a, &t);
	while (p == ACCEL_MORE);
	assert_int_equal(p, ACCEL_DONE);
	return t.result;
}

static uint64_t compute(struct rig *r, uint32_t number, uint64_t a0, uint64_t a1, uint64_t a2)
{
	give(r, 2, number, 0, a0, a1, a2, 0, 0);
	run(r);
	return is_done(r, 2, SIO_ACCEL_OK);
}

/* Near and far memory alike, lengths that are no multiple of a part, and none at all. */
static void kernels_compute_what_plain_c_does(void **state)
{
	static const unsigned lengths[] = {0, 4, 4092, 4096, 4100, 40000};
	static uint8_t mine[0x10000], other[0x10000];
	struct rig *r = *state;
	uint32_t x = 1;

	for (unsigned i = 0; i < sizeof(mine) / 4; i++) {
		x = x * 1664525 + 1013904223;
		memcpy(mine + 4 * i, &x, 4);
	}
	for (unsigned k = 0; k < 2 * sizeof(lengths) / sizeof(lengths[0]); k++) {
		const unsigned n = lengths[k / 2];
		uint8_t *there = k % 2 ? r->far + DATA : r->memory + 0x8000;
		const uint64_t dev = k % 2 ? BASE + DATA : LOCAL(0x8000);
		const uint64_t host = (uintptr_t)mine;

		memcpy(there, mine, sizeof(mine));
		assert_int_equal(compute(r, SIO_ACCEL_CHECKSUM, dev, n, 0),
				 plainly(SIO_ACCEL_CHECKSUM, host, n, 0));
		for (unsigned how = 0; how < 3; how++)
			assert_int_equal(compute(r, SIO_ACCEL_REDUCE, dev, n, how),
					 plainly(SIO_ACCEL_REDUCE, host, n, how));
		assert_int_equal(compute(r, SIO_ACCEL_COPY, dev, LOCAL(0x20000), n), n);
		assert_memory_equal(r->memory + 0x20000, mine, n);
		memset(other, 0, sizeof(other));
		memset(there, 0, sizeof(mine));
		assert_int_equal(compute(r, SIO_ACCEL_FILL, dev, n, x),
				 plainly(SIO_ACCEL_FILL, (uintptr_t)other, n, x));
		assert_memory_equal(there, other, sizeof(other));
	}
	/* Words that change places change the sum. */
	assert_int_not_equal(plainly(SIO_ACCEL_CHECKSUM, (uintptr_t)mine, 4096, 0),
			     plainly(SIO_ACCEL_CHECKSUM, (uintptr_t)mine + 4096, 4096, 0));
}

static void wrong_kernels_fail_alone(void **state)
{
	const struct {
		uint32_t number;
		uint64_t a0, a1, a2;
		uint32_t status;
	} table[] = {
		{0, 0, 0, 0, SIO_ACCEL_INVALID},
		{sizeof(kernels) / sizeof(kernels[0]), 0, 0, 0, SIO_ACCEL_INVALID},
		{UINT32_MAX, 0, 0, 0, SIO_ACCEL_INVALID},
		{SIO_ACCEL_FILL, LOCAL(2), 64, 0, SIO_ACCEL_INVALID},
		{SIO_ACCEL_FILL, LOCAL(0), 66, 0, SIO_ACCEL_INVALID},
		{SIO_ACCEL_FILL, LOCAL(MEMORY - 64), 68, 0, SIO_ACCEL_WRITE_FAILED},
		{SIO_ACCEL_FILL, BASE + FAR - 4, 8, 0, SIO_ACCEL_WRITE_FAILED},
		{SIO_ACCEL_COPY, LOCAL(MEMORY - 64), LOCAL(0), 128, SIO_ACCEL_READ_FAILED},
		{SIO_ACCEL_COPY, LOCAL(0), BASE - 4, 128, SIO_ACCEL_WRITE_FAILED},
		{SIO_ACCEL_COPY, LOCAL(0), LOCAL(1), 4, SIO_ACCEL_INVALID},
		{SIO_ACCEL_CHECKSUM, LOCAL(0), UINT64_MAX - 3, 0, SIO_ACCEL_READ_FAILED},
		{SIO_ACCEL_CHECKSUM, 0, 4, 0, SIO_ACCEL_READ_FAILED},
		{SIO_ACCEL_REDUCE, LOCAL(0), 4, 3, SIO_ACCEL_INVALID},
		{SIO_ACCEL_WAIT, LOCAL(0), 1ull << 32, 0, SIO_ACCEL_INVALID},
		{SIO_ACCEL_WAIT, BASE + FAR, 1, 0, SIO_ACCEL_READ_FAILED},
		{SIO_ACCEL_PING_PONG, LOCAL(0), LOCAL(4), 0, SIO_ACCEL_INVALID},
		{SIO_ACCEL_FILL, LOCAL(MEMORY - 64), 64, 0, SIO_ACCEL_OK},
	};
	struct rig *r = *state;

	for (unsigned n = 0; n < sizeof(table) / sizeof(table[0]); n++) {
		give(r, 3, table[n].number, 0, table[n].a0, table[n].a1, table[n].a2, 0, 0);
		run(r);
		is_done(r, 3, table[n].status);
	}
	for (unsigned q = 0; q < QUEUES; q++)
		assert_int_equal(queue_reg(r, q, SIO_ACCEL_STATUS), SIO_ACCEL_RUNNING);
}

static void waits_for_a_store(void **state)
{
	const uint32_t value = 17;
	struct rig *r = *state;

	give(r, 2, SIO_ACCEL_WAIT, 0, LOCAL(64), value, 0, 0, 0);
	run(r);
	assert_int_equal(queue_reg(r, 2, SIO_ACCEL_DONE), 0);
	assert_false(emu_accel_model.idle(r->model));
	/* Others do not wait for it. */
	assert_int_equal(copy(r, LOCAL(0x1000), LOCAL(0x2000), 64), SIO_ACCEL_OK);
	memcpy(r->memory + 64, &value, 4);
	run(r);
	assert_true(is_done(r, 2, SIO_ACCEL_OK) > 0);
	assert_true(emu_accel_model.idle(r->model));
	/* One with a limit gives up, and tells what it found. */
	give(r, 2, SIO_ACCEL_WAIT, 0, LOCAL(64), value + 1, 10, 0, 0);
	run(r);
	assert_int_equal(is_done(r, 2, SIO_ACCEL_FAILED), value);
	/* One without is ended by its queue. */
	give(r, 2, SIO_ACCEL_WAIT, 0, LOCAL(64), value + 1, 0, 0, 0);
	run(r);
	set(r, 2, SIO_ACCEL_CONTROL, 0);
	run(r);
	assert_true(emu_accel_model.idle(r->model));
	assert_int_equal(queue_reg(r, 2, SIO_ACCEL_STATUS), 0);
}

static void plays_ping_pong(void **state)
{
	struct rig *r = *state;
	const uint32_t rounds = 1000;
	uint32_t *times = (void *)(r->memory + 0x1000);

	give(r, 2, SIO_ACCEL_PING_PONG, 0, LOCAL(0), LOCAL(64), rounds, 1, LOCAL(0x1000));
	run(r);
	give(r, 4, SIO_ACCEL_PING_PONG, 0, LOCAL(64), LOCAL(0), rounds, 0, 0);
	run(r);
	assert_int_equal(is_done(r, 2, SIO_ACCEL_OK), rounds);
	assert_int_equal(is_done(r, 4, SIO_ACCEL_OK), rounds);
	for (unsigned i = 0; i < rounds; i++)
		assert_int_equal(times[i], 1); /* the clock of this test moves as it is looked at */
	assert_int_equal(times[rounds], 0);
}

/* ---- training ---- */

#define N 37
#define INPUTS 11
#define HIDDEN 19
#define OUTPUTS 3

struct network {
	float x[N][INPUTS], y[N][OUTPUTS], v[INPUTS][HIDDEN], w[HIDDEN][OUTPUTS];
	float h[N][HIDDEN], e[N][OUTPUTS], d[N][HIDDEN];
};

static float next_float(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return (float)(int32_t)*x / 2147483648.0f;
}

/* Targets that the inputs determine. */
static void begin_network(struct network *net)
{
	uint32_t seed = 7;

	for (unsigned i = 0; i < N; i++) {
		for (unsigned k = 0; k < INPUTS; k++)
			net->x[i][k] = next_float(&seed);
		for (unsigned k = 0; k < OUTPUTS; k++)
			net->y[i][k] = net->x[i][k] * net->x[i][k + 1] + net->x[i][k + 2];
	}
	for (unsigned i = 0; i < INPUTS; i++)
		for (unsigned k = 0; k < HIDDEN; k++)
			net->v[i][k] = next_float(&seed) / 2;
	for (unsigned i = 0; i < HIDDEN; i++)
		for (unsigned k = 0; k < OUTPUTS; k++)
			net->w[i][k] = next_float(&seed) / 2;
}

/* A step as one would write it in C. Return: the loss before. */
static float step_in_c(struct network *net, float rate)
{
	float loss = 0;

	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; k < HIDDEN; k++) {
			float sum = 0;

			for (unsigned m = 0; m < INPUTS; m++)
				sum += net->x[i][m] * net->v[m][k];
			net->h[i][k] = sum > 0 ? sum : 0;
		}
	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; k < OUTPUTS; k++) {
			float sum = 0;

			for (unsigned m = 0; m < HIDDEN; m++)
				sum += net->h[i][m] * net->w[m][k];
			net->e[i][k] = sum - net->y[i][k];
			loss += net->e[i][k] * net->e[i][k];
		}
	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; k < HIDDEN; k++) {
			float sum = 0;

			for (unsigned m = 0; m < OUTPUTS; m++)
				sum += net->e[i][m] * net->w[k][m];
			net->d[i][k] = net->h[i][k] > 0 ? sum : 0;
		}
	for (unsigned i = 0; i < HIDDEN; i++)
		for (unsigned k = 0; k < OUTPUTS; k++) {
			float sum = 0;

			for (unsigned m = 0; m < N; m++)
				sum += net->h[m][i] * net->e[m][k];
			net->w[i][k] -= rate * sum;
		}
	for (unsigned i = 0; i < INPUTS; i++)
		for (unsigned k = 0; k < HIDDEN; k++) {
			float sum = 0;

			for (unsigned m = 0; m < N; m++)
				sum += net->x[m][i] * net->d[m][k];
			net->v[i][k] -= rate * sum;
		}
	return loss;
}

static uint32_t bits(float f)
{
	union accel_float u = {.value = f};

	return u.bits;
}

static struct sio_accel_train_job job_at(uint64_t net, float rate)
{
	return (struct sio_accel_train_job){.x = net + offsetof(struct network, x),
					    .y = net + offsetof(struct network, y),
					    .v = net + offsetof(struct network, v),
					    .w = net + offsetof(struct network, w),
					    .h = net + offsetof(struct network, h),
					    .e = net + offsetof(struct network, e),
					    .d = net + offsetof(struct network, d),
					    .n = N,
					    .inputs = INPUTS,
					    .hidden = HIDDEN,
					    .outputs = OUTPUTS,
					    .rate = bits(rate)};
}

/* To the last bit what plain C computes, its own memory or the fabric's; and it does learn. */
static void trains_as_plain_c_does(void **state)
{
	static struct network net;
	struct rig *r = *state;
	const float rate = 0.01f;

	for (unsigned k = 0; k < 2; k++) {
		struct sio_accel_train_job job = job_at(k ? BASE + DATA : LOCAL(0x8000), rate);
		uint8_t *there = k ? r->far + DATA : r->memory + 0x8000;
		float first = 0, last = 0;

		begin_network(&net);
		memcpy(there, &net, sizeof(net));
		memcpy(r->memory, &job, sizeof(job));
		for (unsigned i = 0; i < 40; i++) {
			last = step_in_c(&net, rate);
			if (i == 0)
				first = last;
			assert_int_equal(compute(r, SIO_ACCEL_TRAIN, LOCAL(0), 0, 0), bits(last));
			assert_memory_equal(there, &net, sizeof(net));
		}
		assert_true(last < first / 10);
	}
}

static void refuses_networks_that_are_none(void **state)
{
	struct rig *r = *state;
	struct sio_accel_train_job job;

	for (unsigned k = 0; k < 4; k++) {
		job = job_at(LOCAL(0x8000), 0);
		if (k == 0)
			job.n = 0;
		if (k == 1)
			job.hidden = 65537;
		if (k == 2)
			job.e += 2;
		memcpy(r->memory, &job, sizeof(job));
		give(r, 2, SIO_ACCEL_TRAIN, 0, LOCAL(k == 3 ? 4 : 0), 0, 0, 0, 0);
		run(r);
		is_done(r, 2, SIO_ACCEL_INVALID);
	}
	job = job_at(LOCAL(MEMORY - 64), 0);
	memcpy(r->memory, &job, sizeof(job));
	give(r, 2, SIO_ACCEL_TRAIN, 0, LOCAL(0), 0, 0, 0, 0);
	run(r);
	is_done(r, 2, SIO_ACCEL_READ_FAILED);
}

/* Whoever shares the memory, the kernel itself too, may write where its job lies. */
static void a_job_may_change(void **state)
{
	struct rig *r = *state;
	struct sio_accel_nvme_job job = {.sq = LOCAL(8), /* upon the job */
					 .cq = LOCAL(4096),
					 .entries = 4,
					 .bytes = 512,
					 .lba = 512,
					 .blocks = 1,
					 .commands = 1,
					 .depth = 1,
					 .namespace_id = 0x80000000,
					 .opcode = 0x2000};

	memset(r->memory, 0xff, sizeof(r->memory));
	memcpy(r->memory, &job, sizeof(job));
	give(r, 2, SIO_ACCEL_NVME, 0, LOCAL(0), 0, 0, 0, 0);
	run(r);
	set(r, 2, SIO_ACCEL_CONTROL, 0);
	run(r);
	assert_int_equal(queue_reg(r, 2, SIO_ACCEL_STATUS), 0);
	assert_true(emu_accel_model.idle(r->model));
}

/* And not once for each word that it would have touched. */
static void a_wrong_command_fails_once(void **state)
{
	struct rig *r = *state;
	struct sio_accel_train_job job = job_at(LOCAL(0x8000), 0);

	job.inputs = 65536;
	job.x = 8;
	memcpy(r->memory, &job, sizeof(job));
	give(r, 2, SIO_ACCEL_TRAIN, 0, LOCAL(0), 0, 0, 0, 0);
	run(r);
	is_done(r, 2, SIO_ACCEL_READ_FAILED);
	assert_int_equal(r->failed, 1);
	give(r, 2, SIO_ACCEL_FILL, 0, 4096, 65536, 1, 0, 0);
	run(r);
	is_done(r, 2, SIO_ACCEL_WRITE_FAILED);
	assert_int_equal(r->failed, 2);
}

/* A sum of many products is no longer a part than others; whole, it has the bits of plain C. */
static void long_sums_go_on(void **state)
{
	enum { LONG = 2000 };
	struct rig *r = *state;
	struct sio_accel_train_job job = {.x = BASE + DATA,
					  .v = BASE + DATA + 4 * LONG,
					  .w = LOCAL(0x8000),
					  .y = LOCAL(0x8004),
					  .h = LOCAL(0x8008),
					  .e = LOCAL(0x800c),
					  .d = LOCAL(0x8010),
					  .n = 1,
					  .inputs = LONG,
					  .hidden = 1,
					  .outputs = 1,
					  .rate = bits(0)};
	float *x = (float *)(r->far + DATA), *v = x + LONG, sum = 0, *w;

	for (unsigned i = 0; i < LONG; i++) {
		float product;

		x[i] = 1 / (float)(i + 1);
		v[i] = i % 3 ? 0.5f : 0.25f;
		product = x[i] * v[i];
		sum += product;
	}
	w = (float *)(r->memory + 0x8000);
	w[0] = 1;
	memcpy(r->memory, &job, sizeof(job));
	give(r, 2, SIO_ACCEL_TRAIN, 0, LOCAL(0), 0, 0, 0, 0);
	for (unsigned i = 0; i < 500; i++) {
		uint64_t before = r->moved;

		emu_accel_model.step(r->model, 1);
		assert_true(r->moved - before <= 600 * 2 * 4);
	}
	is_done(r, 2, SIO_ACCEL_OK);
	assert_true(sum > 0);
	assert_int_equal(word(r, 2)->result, bits(sum * sum));
}

/* As memmove does, though nobody promises it. */
static void transfers_may_overlap(void **state)
{
	struct rig *r = *state;
	static uint8_t expected[20000];

	for (unsigned i = 0; i < sizeof(expected); i++)
		r->memory[i] = expected[i] = (uint8_t)(i * 7);
	memmove(expected + 64, expected, 3000);
	copy(r, LOCAL(0), LOCAL(64), 3000);
	assert_memory_equal(r->memory, expected, sizeof(expected));
}

static void a_reset_forgets_all(void **state)
{
	struct rig *r = *state;

	memset(r->memory, 0x5a, MEMORY);
	copy(r, LOCAL(0), LOCAL(64), 64);
	give(r, 2, SIO_ACCEL_WAIT, 0, LOCAL(0), 1, 0, 0, 0);
	run(r);
	emu_accel_model.reset(r->model, false);
	for (unsigned i = 0; i < MEMORY; i++)
		assert_int_equal(r->memory[i], 0);
	for (unsigned q = 0; q < QUEUES; q++) {
		assert_int_equal(queue_reg(r, q, SIO_ACCEL_STATUS), 0);
		assert_int_equal(queue_reg(r, q, SIO_ACCEL_CONTROL), 0);
		assert_int_equal(queue_reg(r, q, SIO_ACCEL_DONE), 0);
		assert_int_equal(r->doorbell[16 * q], 0);
	}
	assert_true(emu_accel_model.idle(r->model));
	/* Who loses the registers does not stop the queues. */
	enable(r, 0, BASE + RINGS, ENTRIES);
	r->taken = false;
	emu_accel_model.view_changed(r->model, 0);
	set(r, 0, SIO_ACCEL_CONTROL, 0);
	give(r, 0, SIO_ACCEL_TRANSFER, 0, LOCAL(0), LOCAL(64), 64, 0, 0);
	run(r);
	assert_int_equal(word(r, 0)->number, 1);
	assert_int_equal(r->mirror[(SIO_ACCEL_QUEUE(0) + SIO_ACCEL_DONE) / 4], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(transfers_each_way, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_wrong_transfers, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_at_a_wrong_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(a_ring_may_be_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_its_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(kernels_compute_what_plain_c_does, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_kernels_fail_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_for_a_store, setup, teardown),
		cmocka_unit_test_setup_teardown(plays_ping_pong, setup, teardown),
		cmocka_unit_test_setup_teardown(trains_as_plain_c_does, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_networks_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_job_may_change, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wrong_command_fails_once, setup, teardown),
		cmocka_unit_test_setup_teardown(long_sums_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(transfers_may_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reset_forgets_all, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
