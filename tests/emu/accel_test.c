/* SPDX-License-Identifier: BSD-2-Clause */
/* The accelerator's registers, rings and transfers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accel_rig.h"

static void what_it_is(void **state)
{
	static const struct {
		uint64_t size;
		uint32_t units, vectors;
	} bad[] = {{0, 1, 1},	   {2048, 1, 1}, {12288, 1, 1}, {8ull << 30, 1, 1},
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
}

/* Those that wait come by one read, of what lies in a page and before the ring's end. */
static void commands_are_fetched_together(void **state)
{
	const uint32_t ring = 0x30f40; /* 3 commands, then a page ends */
	struct rig *r = *state;
	uint64_t before;

	enable(r, 0, BASE + ring, ENTRIES);
	for (uint32_t round = 0, n = 0; round < 5; round++) {
		for (unsigned i = 0; i < ENTRIES - round; i++, n++) {
			const struct sio_accel_command c = {
				.operation = SIO_ACCEL_TRANSFER,
				.completion = BASE + WORDS + n % ENTRIES * 16,
				.argument = {LOCAL(8 * n), LOCAL(0x8000 + 8 * n), 8}};

			memset(r->memory + 8 * n, (int)n + 1, 8);
			memcpy(r->far + ring + n % ENTRIES * sizeof(c), &c, sizeof(c));
		}
		before = r->moved;
		r->doorbell[0] = n;
		run(r);
		/* Each command once, and each completion: nothing else crosses. */
		assert_int_equal(r->moved - before, (ENTRIES - round) * (64 + 16));
		assert_int_equal(queue_reg(r, 0, SIO_ACCEL_DONE), n);
		for (unsigned i = n - (ENTRIES - round); i < n; i++) {
			assert_memory_equal(r->memory + 0x8000 + 8 * i, r->memory + 8 * i, 8);
			assert_int_equal(((struct sio_accel_completion *)(void *)(r->far + WORDS +
										  i % ENTRIES * 16))
						 ->number,
					 i + 1);
		}
	}
	/* What was fetched and not begun is forgotten with the queue. */
	enable(r, 0, BASE + RINGS, ENTRIES);
	assert_int_equal(copy(r, LOCAL(0), LOCAL(64), 64), SIO_ACCEL_OK);
}

/* Also a kernel that waits: nobody could end it, and the room would poll for it for ever. */
static void queues_end_with_their_holder(void **state)
{
	struct rig *r = *state;

	copy(r, LOCAL(0), LOCAL(64), 64);
	give(r, 2, SIO_ACCEL_WAIT, 0, LOCAL(0), 1, 0, 0, 0);
	run(r);
	assert_false(emu_accel_model.idle(r->model));
	r->taken = false;
	emu_accel_model.view_changed(r->model, 0);
	assert_true(emu_accel_model.idle(r->model));
	for (unsigned q = 0; q < QUEUES; q++) {
		assert_int_equal(r->mirror[(SIO_ACCEL_QUEUE(q) + SIO_ACCEL_STATUS) / 4], 0);
		assert_int_equal(r->mirror[(SIO_ACCEL_QUEUE(q) + SIO_ACCEL_CONTROL) / 4], 0);
	}
	give(r, 0, SIO_ACCEL_TRANSFER, 0, LOCAL(0), LOCAL(64), 64, 0, 0);
	run(r);
	assert_int_equal(word(r, 0)->number, 1); /* that of before */
	/* A change of other pages, and a new holder, end nothing. */
	r->taken = true;
	emu_accel_model.view_changed(r->model, 0);
	for (unsigned i = 0; i < 1024; i++)
		r->view[i] = r->mirror[i];
	enable(r, 0, BASE + RINGS, ENTRIES);
	emu_accel_model.view_changed(r->model, 1);
	assert_int_equal(queue_reg(r, 0, SIO_ACCEL_STATUS), SIO_ACCEL_RUNNING);
	assert_int_equal(copy(r, LOCAL(0), LOCAL(64), 64), SIO_ACCEL_OK);
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
		cmocka_unit_test_setup_teardown(transfers_may_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reset_forgets_all, setup, teardown),
		cmocka_unit_test_setup_teardown(commands_are_fetched_together, setup, teardown),
		cmocka_unit_test_setup_teardown(queues_end_with_their_holder, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
