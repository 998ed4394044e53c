/* SPDX-License-Identifier: BSD-2-Clause */
/* What the model's kernels compute, beside the same kernels on plain memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accel_rig.h"
#include "plain.h"
#include "table.h"

typedef enum sio_accel_progress kernel(struct accel *a, struct sio_accel_task *t);
#define KERNEL(number, name) [SIO_ACCEL_##number] = accel_kernel_##name,
static kernel *const kernels[] = {ACCEL_KERNELS(KERNEL)};

/* The same kernel on plain memory, to its end. */
static uint64_t plainly(uint32_t number, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct sio_accel_task t = {.argument = {a0, a1, a2}};
	struct accel a = {0};
	enum sio_accel_progress p;

	do
		p = kernels[number](&a, &t);
	while (p == SIO_ACCEL_KERNEL_MORE);
	assert_int_equal(p, SIO_ACCEL_KERNEL_DONE);
	return t.result;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernels_compute_what_plain_c_does, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_kernels_fail_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_for_a_store, setup, teardown),
		cmocka_unit_test_setup_teardown(plays_ping_pong, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
