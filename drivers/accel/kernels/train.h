/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A training step of a small network in single precision: one hidden layer with rectified linear
 * units, linear outputs, squared errors, gradient descent. Each sum is added in one fixed order, so
 * that every processor computes the same bits, if its compiler neither contracts nor reorders.
 *
 * Matrices are stored by rows: samples x (n by inputs), targets y (n by outputs), weights v (inputs
 * by hidden) and w (hidden by outputs); intermediate results: h (n by hidden), e (n by outputs), d
 * (n by hidden).
 */
#ifndef SMARTIO_ACCEL_TRAIN_H
#define SMARTIO_ACCEL_TRAIN_H

#include <stddef.h>

#include "kernel.h"
#include "smartio/acceldev.h"

#define ACCEL_TRAIN_MOST 65536u	  /* of each dimension */
#define ACCEL_TRAIN_PRODUCTS 512u /* of one part at most; an element counts as one, too */

/*
 * The phases, in order, and the indices of the task's state: of an unfinished sum, its value so far
 * and how many products are in it.
 */
enum { ACCEL_TRAIN_H, ACCEL_TRAIN_E, ACCEL_TRAIN_D, ACCEL_TRAIN_W, ACCEL_TRAIN_V, ACCEL_TRAIN_END };
enum { ACCEL_TRAIN_PHASE, ACCEL_TRAIN_LOSS, ACCEL_TRAIN_SUM, ACCEL_TRAIN_SUMMED };

/* The job, loaded once for each part. */
struct accel_train {
	uint64_t x, y, v, w, h, e, d;
	uint64_t n, inputs, hidden, outputs;
	float rate;
};

union accel_float {
	uint32_t bits;
	float value;
};

ACCEL_FUNCTION float accel_load_float(struct accel *a, uint64_t at)
{
	union accel_float f;

	f.bits = accel_load32(a, at);
	return f.value;
}

ACCEL_FUNCTION void accel_store_float(struct accel *a, uint64_t at, float value)
{
	union accel_float f;

	f.value = value;
	accel_store32(a, at, f.bits);
}

#define ACCEL_TRAIN_JOB(a, t, field)                                                               \
	accel_load64(a, (t)->argument[0] + offsetof(struct sio_accel_train_job, field))

ACCEL_FUNCTION void accel_train_load(struct accel *a, const struct sio_accel_task *t,
				     struct accel_train *j)
{
	union accel_float rate;

	j->x = ACCEL_TRAIN_JOB(a, t, x);
	j->y = ACCEL_TRAIN_JOB(a, t, y);
	j->v = ACCEL_TRAIN_JOB(a, t, v);
	j->w = ACCEL_TRAIN_JOB(a, t, w);
	j->h = ACCEL_TRAIN_JOB(a, t, h);
	j->e = ACCEL_TRAIN_JOB(a, t, e);
	j->d = ACCEL_TRAIN_JOB(a, t, d);
	j->n = ACCEL_TRAIN_JOB(a, t, n);
	j->inputs = ACCEL_TRAIN_JOB(a, t, inputs);
	j->hidden = ACCEL_TRAIN_JOB(a, t, hidden);
	j->outputs = ACCEL_TRAIN_JOB(a, t, outputs);
	rate.bits = (uint32_t)ACCEL_TRAIN_JOB(a, t, rate);
	j->rate = rate.value;
}

ACCEL_FUNCTION int accel_train_valid(const struct accel_train *j)
{
	const uint64_t most = ACCEL_TRAIN_MOST;

	return j->n >= 1 && j->n <= most && j->inputs >= 1 && j->inputs <= most && j->hidden >= 1 &&
	       j->hidden <= most && j->outputs >= 1 && j->outputs <= most &&
	       ((j->x | j->y | j->v | j->w | j->h | j->e | j->d) & 3) == 0;
}

/* Two rows or columns: their addresses, and the distance of their elements in floats. */
struct accel_train_pair {
	uint64_t p, step_p, q, step_q, n;
};

/*
 * Continues the sum of the products of the two, as far as @left allows, from which it subtracts
 * what it has done. Return: whether the sum is complete; then it is in *@ret.
 */
ACCEL_FUNCTION int accel_dot(struct accel *a, struct sio_accel_task *t,
			     const struct accel_train_pair *v, uint64_t *left, float *ret)
{
	uint64_t i = t->state[ACCEL_TRAIN_SUMMED];
	union accel_float sum;

	sum.bits = (uint32_t)t->state[ACCEL_TRAIN_SUM];
	for (; i<v->n && * left> 0; i++, --*left) {
		const float product = accel_load_float(a, v->p + 4 * i * v->step_p) *
				      accel_load_float(a, v->q + 4 * i * v->step_q);

		sum.value = sum.value + product;
	}
	t->state[ACCEL_TRAIN_SUM] = sum.bits;
	t->state[ACCEL_TRAIN_SUMMED] = i;
	*ret = sum.value;
	return i >= v->n;
}

/*
 * Computes element @i of a phase. Return: whether it is complete; otherwise the next part continues
 * it.
 */
ACCEL_FUNCTION int accel_train_h(struct accel *a, struct sio_accel_task *t,
				 const struct accel_train *j, uint64_t i, uint64_t *left)
{
	const struct accel_train_pair v = {j->x + 4 * (i / j->hidden) * j->inputs, 1,
					   j->v + 4 * (i % j->hidden), j->hidden, j->inputs};
	float sum;

	if (!accel_dot(a, t, &v, left, &sum))
		return 0;
	accel_store_float(a, j->h + 4 * i, sum > 0 ? sum : 0);
	return 1;
}

ACCEL_FUNCTION int accel_train_e(struct accel *a, struct sio_accel_task *t,
				 const struct accel_train *j, uint64_t i, uint64_t *left)
{
	const struct accel_train_pair v = {j->h + 4 * (i / j->outputs) * j->hidden, 1,
					   j->w + 4 * (i % j->outputs), j->outputs, j->hidden};
	float sum, error, square;
	union accel_float loss;

	if (!accel_dot(a, t, &v, left, &sum))
		return 0;
	error = sum - accel_load_float(a, j->y + 4 * i);
	square = error * error;
	loss.bits = (uint32_t)t->state[ACCEL_TRAIN_LOSS];
	loss.value = loss.value + square;
	t->state[ACCEL_TRAIN_LOSS] = loss.bits;
	accel_store_float(a, j->e + 4 * i, error);
	return 1;
}

ACCEL_FUNCTION int accel_train_d(struct accel *a, struct sio_accel_task *t,
				 const struct accel_train *j, uint64_t i, uint64_t *left)
{
	const struct accel_train_pair v = {j->e + 4 * (i / j->hidden) * j->outputs, 1,
					   j->w + 4 * (i % j->hidden) * j->outputs, 1, j->outputs};
	float sum = 0;

	if (accel_load_float(a, j->h + 4 * i) > 0 && !accel_dot(a, t, &v, left, &sum))
		return 0;
	accel_store_float(a, j->d + 4 * i, sum);
	return 1;
}

/* Updates a weight from the values at its two sides. */
ACCEL_FUNCTION int accel_train_weight(struct accel *a, struct sio_accel_task *t,
				      const struct accel_train *j, uint64_t at,
				      const struct accel_train_pair *v, uint64_t *left)
{
	float sum, step;

	if (!accel_dot(a, t, v, left, &sum))
		return 0;
	step = j->rate * sum;
	accel_store_float(a, at, accel_load_float(a, at) - step);
	return 1;
}

ACCEL_FUNCTION int accel_train_w(struct accel *a, struct sio_accel_task *t,
				 const struct accel_train *j, uint64_t i, uint64_t *left)
{
	const struct accel_train_pair v = {j->h + 4 * (i / j->outputs), j->hidden,
					   j->e + 4 * (i % j->outputs), j->outputs, j->n};

	return accel_train_weight(a, t, j, j->w + 4 * i, &v, left);
}

ACCEL_FUNCTION int accel_train_v(struct accel *a, struct sio_accel_task *t,
				 const struct accel_train *j, uint64_t i, uint64_t *left)
{
	const struct accel_train_pair v = {j->x + 4 * (i / j->hidden), j->inputs,
					   j->d + 4 * (i % j->hidden), j->hidden, j->n};

	return accel_train_weight(a, t, j, j->v + 4 * i, &v, left);
}

ACCEL_FUNCTION uint64_t accel_train_size(const struct accel_train *j, uint64_t phase)
{
	switch (phase) {
	case ACCEL_TRAIN_H:
	case ACCEL_TRAIN_D:
		return j->n * j->hidden;
	case ACCEL_TRAIN_E:
		return j->n * j->outputs;
	case ACCEL_TRAIN_W:
		return j->hidden * j->outputs;
	default:
		return j->inputs * j->hidden;
	}
}

ACCEL_FUNCTION int accel_train_element(struct accel *a, struct sio_accel_task *t,
				       const struct accel_train *j, uint64_t i, uint64_t *left)
{
	switch (t->state[ACCEL_TRAIN_PHASE]) {
	case ACCEL_TRAIN_H:
		return accel_train_h(a, t, j, i, left);
	case ACCEL_TRAIN_E:
		return accel_train_e(a, t, j, i, left);
	case ACCEL_TRAIN_D:
		return accel_train_d(a, t, j, i, left);
	case ACCEL_TRAIN_W:
		return accel_train_w(a, t, j, i, left);
	default:
		return accel_train_v(a, t, j, i, left);
	}
}

/*
 * Argument 0: the address of a struct sio_accel_train_job. Result: the bits of the loss before the
 * step.
 */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_train(struct accel *a, struct sio_accel_task *t)
{
	struct accel_train j;
	uint64_t left = ACCEL_TRAIN_PRODUCTS;

	if (t->argument[0] & 7)
		return SIO_ACCEL_KERNEL_REFUSES;
	accel_train_load(a, t, &j);
	if (!accel_train_valid(&j))
		return SIO_ACCEL_KERNEL_REFUSES;
	while (left > 0 && t->state[ACCEL_TRAIN_PHASE] < ACCEL_TRAIN_END) {
		if (!accel_train_element(a, t, &j, t->at, &left))
			break;
		t->state[ACCEL_TRAIN_SUM] = t->state[ACCEL_TRAIN_SUMMED] = 0;
		t->at++;
		left -= left > 0;
		if (t->at < accel_train_size(&j, t->state[ACCEL_TRAIN_PHASE]))
			continue;
		t->at = 0;
		t->state[ACCEL_TRAIN_PHASE]++;
	}
	if (t->state[ACCEL_TRAIN_PHASE] < ACCEL_TRAIN_END)
		return SIO_ACCEL_KERNEL_MORE;
	t->result = t->state[ACCEL_TRAIN_LOSS];
	return SIO_ACCEL_KERNEL_DONE;
}

#endif
