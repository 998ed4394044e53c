/* SPDX-License-Identifier: BSD-2-Clause */
/* Training steps of the model, beside plain C, bit for bit. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(trains_as_plain_c_does, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_networks_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_job_may_change, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wrong_command_fails_once, setup, teardown),
		cmocka_unit_test_setup_teardown(long_sums_go_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
