/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory device's model alone: its pages and the host's memory are the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/devices/model.h"
#include "smartio/memdev.h"

#define RAM 0x10000u
#define HOST 0x40000u /* bytes of the host's memory, at address BASE */
#define BASE 0x100000000u
#define RING 0x0u /* offsets there */
#define WORDS 0x1000u
#define DATA 0x10000u
#define ENTRIES 8u

struct rig {
	struct emu_dev dev;
	struct emu_dev_config config;
	void *model;
	uint32_t view[1024], mirror[1024], doorbell[1024];
	uint8_t ram[RAM], host[HOST];
	bool taken; /* somebody has the registers */
	unsigned raised[4], writes;
};

static uint8_t *at(struct rig *r, uint64_t addr, size_t len)
{
	return addr >= BASE && addr - BASE <= HOST - len ? r->host + (addr - BASE) : NULL;
}

static int dma_read(struct emu_dev *d, uint64_t addr, void *buf, size_t len)
{
	uint8_t *from = at((struct rig *)d, addr, len);

	if (!from)
		return -EFAULT;
	memcpy(buf, from, len);
	return 0;
}

static int dma_write(struct emu_dev *d, uint64_t addr, const void *buf, size_t len)
{
	struct rig *r = (struct rig *)d;
	uint8_t *to = at(r, addr, len);

	if (!to)
		return -EFAULT;
	r->writes++;
	memcpy(to, buf, len);
	return 0;
}

static void interrupt(struct emu_dev *d, unsigned vector)
{
	((struct rig *)d)->raised[vector]++;
}

static volatile void *view(struct emu_dev *d, unsigned index)
{
	struct rig *r = (struct rig *)d;

	if (index == 0)
		return r->taken ? r->view : NULL;
	return index == 1 ? (volatile void *)r->doorbell : r->ram;
}

static volatile void *mirror(struct emu_dev *d, unsigned index)
{
	return index == 0 ? ((struct rig *)d)->mirror : NULL;
}

static int make(struct rig *r, uint64_t size, uint32_t vectors, struct sio_err *err)
{
	const struct sio_topo_device topo = {
		.name = "mem0", .type = "memory", .size = size, .vectors = vectors};

	memset(r, 0, sizeof(*r));
	r->dev = (struct emu_dev){.read = dma_read,
				  .write = dma_write,
				  .interrupt = interrupt,
				  .view = view,
				  .mirror = mirror};
	return emu_memdev_model.create(&r->dev, &topo, &r->config, &r->model, err);
}

static void run(struct rig *r)
{
	for (unsigned i = 0; emu_memdev_model.step(r->model, 16); i++)
		assert_true(i < 100000);
}

static uint32_t reg(const struct rig *r, unsigned offset)
{
	assert_int_equal(r->view[offset / 4], r->mirror[offset / 4]);
	return r->view[offset / 4];
}

static void enable(struct rig *r, uint64_t ring, uint32_t entries)
{
	r->view[SIO_MEMDEV_CONTROL / 4] = 0;
	run(r);
	r->view[SIO_MEMDEV_RING_BASE / 4] = (uint32_t)ring;
	r->view[SIO_MEMDEV_RING_BASE / 4 + 1] = (uint32_t)(ring >> 32);
	r->view[SIO_MEMDEV_RING_ENTRIES / 4] = entries;
	r->view[SIO_MEMDEV_CONTROL / 4] = SIO_MEMDEV_ENABLE;
	run(r);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct sio_err err;

	assert_non_null(r);
	assert_int_equal(make(r, RAM, 4, &err), 0);
	emu_memdev_model.reset(r->model, true);
	r->taken = true;
	emu_memdev_model.view_changed(r->model, 0);
	enable(r, BASE + RING, ENTRIES);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_RUNNING);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	emu_memdev_model.destroy(r->model);
	free(r);
	return 0;
}

/* Entry number @n; its completion is told at word @n. */
static void entry(struct rig *r, unsigned n, uint64_t source, uint64_t target, uint32_t length,
		  uint32_t flags)
{
	const struct sio_memdev_entry e = {.source = source,
					   .target = target,
					   .length = length,
					   .flags = flags,
					   .completion = BASE + WORDS + n * 8};

	memcpy(r->host + RING + n % ENTRIES * sizeof(e), &e, sizeof(e));
	r->doorbell[0] = n + 1;
}

static struct sio_memdev_completion completion(const struct rig *r, unsigned n)
{
	struct sio_memdev_completion c;

	memcpy(&c, r->host + WORDS + n * 8, sizeof(c));
	return c;
}

static void is_done(const struct rig *r, unsigned n, uint32_t status)
{
	assert_int_equal(completion(r, n).number, n + 1);
	assert_int_equal(completion(r, n).status, status);
	assert_int_equal(reg(r, SIO_MEMDEV_DONE), n + 1);
}

static void what_it_is(void **state)
{
	static const struct {
		uint64_t size;
		uint32_t vectors;
	} bad[] = {{0, 1}, {2048, 1}, {12288, 1}, {16u << 20, 1}, {4096, 257}};
	struct rig *r = *state;
	struct rig *other = calloc(1, sizeof(*other));
	struct sio_err err;

	assert_int_equal(reg(r, SIO_MEMDEV_MAGIC), SIO_MEMDEV_MAGIC_VALUE);
	assert_int_equal(reg(r, SIO_MEMDEV_VERSION), 1);
	assert_int_equal(reg(r, SIO_MEMDEV_RAM_BYTES), RAM);
	assert_int_equal(reg(r, SIO_MEMDEV_VECTORS), 4);
	assert_int_equal(r->config.bar_size[SIO_MEMDEV_BAR_RAM], RAM);
	assert_int_equal(r->config.n_pages, 4);
	/* What is not writable is put right, what is writable is taken. */
	r->view[SIO_MEMDEV_MAGIC / 4] = 1;
	r->view[SIO_MEMDEV_DONE / 4] = 7;
	r->view[SIO_MEMDEV_VECTOR / 4] = 3;
	assert_true(emu_memdev_model.step(r->model, 16) > 0);
	assert_int_equal(reg(r, SIO_MEMDEV_MAGIC), SIO_MEMDEV_MAGIC_VALUE);
	assert_int_equal(reg(r, SIO_MEMDEV_DONE), 0);
	assert_int_equal(reg(r, SIO_MEMDEV_VECTOR), 3);
	assert_true(emu_memdev_model.idle(r->model));
	assert_non_null(other);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(make(other, bad[i].size, bad[i].vectors, &err), -EINVAL);
		assert_non_null(strstr(err.text, "is right"));
	}
	/* Without interrupts there is no table of them. */
	assert_int_equal(make(other, 4096, 0, &err), 0);
	assert_int_equal(other->config.n_pages, 3);
	emu_memdev_model.destroy(other->model);
	free(other);
}

static void copies_each_way(void **state)
{
	struct rig *r = *state;
	const uint64_t data = BASE + DATA;

	for (unsigned i = 0; i < 0x8000; i++)
		r->host[DATA + i] = (uint8_t)(i * 7 + i / 256);
	r->view[SIO_MEMDEV_VECTOR / 4] = 2;
	entry(r, 0, data + 5, 3, 10000, SIO_MEMDEV_TO_RAM);
	entry(r, 1, 3, 0x9001, 10000, SIO_MEMDEV_FROM_RAM | SIO_MEMDEV_TO_RAM);
	assert_int_equal(r->raised[2], 0);
	run(r);
	is_done(r, 1, SIO_MEMDEV_OK);
	assert_memory_equal(r->ram + 3, r->host + DATA + 5, 10000);
	assert_memory_equal(r->ram + 0x9001, r->host + DATA + 5, 10000);
	entry(r, 2, 0x9001, data + 0x10000, 10000, SIO_MEMDEV_FROM_RAM | SIO_MEMDEV_INTERRUPT);
	entry(r, 3, data, data + 0x18000, 0x8000, 0);
	run(r);
	is_done(r, 3, SIO_MEMDEV_OK);
	assert_memory_equal(r->host + DATA + 0x10000, r->host + DATA + 5, 10000);
	assert_memory_equal(r->host + DATA + 0x18000, r->host + DATA, 0x8000);
	assert_int_equal(r->raised[2], 1);
	/* The ring goes round, as often as one likes. */
	for (unsigned n = 4; n < 100; n++) {
		entry(r, n, n, RAM - 64, 64, SIO_MEMDEV_FROM_RAM | SIO_MEMDEV_TO_RAM);
		run(r);
		is_done(r, n, SIO_MEMDEV_OK);
		assert_memory_equal(r->ram + RAM - 64, r->ram + n, 64);
	}
}

static void refuses_what_is_wrong(void **state)
{
	const uint64_t data = BASE + DATA;
	const struct {
		uint64_t source, target;
		uint32_t length, flags, status;
	} table[] = {
		{0, data, 0, SIO_MEMDEV_FROM_RAM, SIO_MEMDEV_INVALID},
		{data, data, SIO_MEMDEV_MOST_BYTES + 1, 0, SIO_MEMDEV_INVALID},
		{data, data, 64, 8, SIO_MEMDEV_INVALID},
		{RAM - 63, data, 64, SIO_MEMDEV_FROM_RAM, SIO_MEMDEV_INVALID},
		{data, RAM, 1, SIO_MEMDEV_TO_RAM, SIO_MEMDEV_INVALID},
		{data, UINT64_MAX - 10, 64, SIO_MEMDEV_TO_RAM, SIO_MEMDEV_INVALID},
		{UINT64_MAX - 10, 0, 64, SIO_MEMDEV_FROM_RAM, SIO_MEMDEV_INVALID},
		{BASE - 64, 0, 64, SIO_MEMDEV_TO_RAM, SIO_MEMDEV_READ_FAILED},
		{0, BASE + HOST, 64, SIO_MEMDEV_FROM_RAM, SIO_MEMDEV_WRITE_FAILED},
		{BASE + HOST - 64, 0, 4096, SIO_MEMDEV_TO_RAM, SIO_MEMDEV_READ_FAILED},
		/* And what follows is done. */
		{data, 0, 64, SIO_MEMDEV_TO_RAM, SIO_MEMDEV_OK},
	};
	struct rig *r = *state;

	for (unsigned n = 0; n < sizeof(table) / sizeof(table[0]); n++) {
		entry(r, n, table[n].source, table[n].target, table[n].length, table[n].flags);
		run(r);
		is_done(r, n, table[n].status);
	}
}

static void stops_at_a_wrong_ring(void **state)
{
	struct rig *r = *state;

	r->doorbell[0] = ENTRIES + 1;
	run(r);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_BAD_DOORBELL);
	r->doorbell[0] = 1;
	run(r);
	assert_int_equal(reg(r, SIO_MEMDEV_DONE), 0);
	enable(r, BASE + RING + 8, ENTRIES);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_BAD_RING);
	enable(r, BASE + RING, 3);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_BAD_RING);
	enable(r, BASE + RING, 2 * SIO_MEMDEV_MOST_ENTRIES);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_BAD_RING);
	enable(r, BASE + HOST, ENTRIES);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_RUNNING);
	r->doorbell[0] = 1;
	run(r);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_RING_LOST);
	enable(r, BASE + RING, ENTRIES);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), SIO_MEMDEV_RUNNING);
	assert_int_equal(r->doorbell[0], 0);
	entry(r, 0, 0, 64, 64, SIO_MEMDEV_FROM_RAM | SIO_MEMDEV_TO_RAM);
	run(r);
	is_done(r, 0, SIO_MEMDEV_OK);
}

/* A long entry is done in parts: the budget of a step is kept, and nobody else waits for it. */
static void keeps_its_budget(void **state)
{
	struct rig *r = *state;

	entry(r, 0, 0, BASE + DATA, 0x10000, SIO_MEMDEV_FROM_RAM);
	for (unsigned i = 0; i < 5; i++) {
		unsigned before = r->writes, done = emu_memdev_model.step(r->model, 3);

		assert_in_range(done, 1, 4);
		assert_true(r->writes - before <= 4);
		assert_false(emu_memdev_model.idle(r->model));
	}
	assert_int_equal(reg(r, SIO_MEMDEV_DONE), 0);
	run(r);
	is_done(r, 0, SIO_MEMDEV_OK);
	/* One that is stopped midway is forgotten. */
	entry(r, 1, 0, BASE + DATA, 0x10000, SIO_MEMDEV_FROM_RAM);
	emu_memdev_model.step(r->model, 2);
	r->view[SIO_MEMDEV_CONTROL / 4] = 0;
	run(r);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), 0);
	assert_int_equal(reg(r, SIO_MEMDEV_DONE), 1);
	assert_true(emu_memdev_model.idle(r->model));
}

static void a_reset_forgets_all(void **state)
{
	struct rig *r = *state;

	memset(r->ram, 0x5a, RAM);
	entry(r, 0, 0, 64, 64, SIO_MEMDEV_FROM_RAM | SIO_MEMDEV_TO_RAM);
	run(r);
	emu_memdev_model.reset(r->model, false);
	for (unsigned i = 0; i < RAM; i++)
		assert_int_equal(r->ram[i], 0);
	assert_int_equal(reg(r, SIO_MEMDEV_STATUS), 0);
	assert_int_equal(reg(r, SIO_MEMDEV_CONTROL), 0);
	assert_int_equal(reg(r, SIO_MEMDEV_DONE), 0);
	assert_int_equal(r->doorbell[0], 0);
	/* Whoever loses the registers does not stop the engine. */
	enable(r, BASE + RING, ENTRIES);
	r->taken = false;
	emu_memdev_model.view_changed(r->model, 0);
	r->view[SIO_MEMDEV_CONTROL / 4] = 0;
	entry(r, 0, 0, 64, 64, SIO_MEMDEV_FROM_RAM | SIO_MEMDEV_TO_RAM);
	run(r);
	assert_int_equal(completion(r, 0).number, 1);
	assert_int_equal(r->mirror[SIO_MEMDEV_DONE / 4], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(copies_each_way, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_what_is_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_at_a_wrong_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_its_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reset_forgets_all, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
