/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels that go through memory once: copy, fill, checksum, reduce. Words are of 32 bits. */
#ifndef SMARTIO_ACCEL_MEMORY_H
#define SMARTIO_ACCEL_MEMORY_H

#include "kernel.h"

ACCEL_FUNCTION int accel_is_odd(uint64_t a, uint64_t b)
{
	return ((a | b) & 3) != 0;
}

/* Arguments: 0: source address, 1: destination address, 2: bytes. Result: the bytes copied. */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_copy(struct accel *a, struct sio_accel_task *t)
{
	const uint64_t part = accel_part_of(t->argument[2] - t->at);

	if (accel_is_odd(t->argument[0] | t->argument[1], t->argument[2]))
		return SIO_ACCEL_KERNEL_REFUSES;
	accel_move(a, t->argument[1] + t->at, t->argument[0] + t->at, part);
	t->at += part;
	t->result = t->at;
	return t->at == t->argument[2] ? SIO_ACCEL_KERNEL_DONE : SIO_ACCEL_KERNEL_MORE;
}

/* Arguments: 0: address, 1: bytes, 2: the word to fill with. Result: the bytes filled. */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_fill(struct accel *a, struct sio_accel_task *t)
{
	const uint64_t end = t->at + accel_part_of(t->argument[1] - t->at);

	if (accel_is_odd(t->argument[0], t->argument[1]))
		return SIO_ACCEL_KERNEL_REFUSES;
	for (; t->at < end; t->at += 4)
		accel_store32(a, t->argument[0] + t->at, (uint32_t)t->argument[2]);
	t->result = t->at;
	return t->at == t->argument[1] ? SIO_ACCEL_KERNEL_DONE : SIO_ACCEL_KERNEL_MORE;
}

/*
 * Arguments: 0: address, 1: bytes. Result: the sum of word n times 2n + 1, modulo 2^64: it detects
 * words that have changed places, and its parts can be added in any order.
 */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_checksum(struct accel *a,
							     struct sio_accel_task *t)
{
	const uint64_t end = t->at + accel_part_of(t->argument[1] - t->at);

	if (accel_is_odd(t->argument[0], t->argument[1]))
		return SIO_ACCEL_KERNEL_REFUSES;
	for (; t->at < end; t->at += 4)
		t->result += accel_load32(a, t->argument[0] + t->at) * (t->at / 2 + 1);
	return t->at == t->argument[1] ? SIO_ACCEL_KERNEL_DONE : SIO_ACCEL_KERNEL_MORE;
}

enum accel_reduction { ACCEL_SUM, ACCEL_LEAST, ACCEL_GREATEST };

ACCEL_FUNCTION uint64_t accel_reduced(uint64_t so_far, uint32_t word, uint64_t how)
{
	if (how == ACCEL_SUM)
		return so_far + word;
	if (how == ACCEL_LEAST)
		return word < so_far ? word : so_far;
	return word > so_far ? word : so_far;
}

/*
 * Arguments: 0: address, 1: bytes, 2: enum accel_reduction. Result: the reduction of the words as
 * unsigned numbers.
 */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_reduce(struct accel *a,
							   struct sio_accel_task *t)
{
	const uint64_t end = t->at + accel_part_of(t->argument[1] - t->at);

	if (accel_is_odd(t->argument[0], t->argument[1]) || t->argument[2] > ACCEL_GREATEST)
		return SIO_ACCEL_KERNEL_REFUSES;
	if (t->at == 0 && t->argument[2] == ACCEL_LEAST)
		t->result = UINT32_MAX;
	for (; t->at < end; t->at += 4)
		t->result = accel_reduced(t->result, accel_load32(a, t->argument[0] + t->at),
					  t->argument[2]);
	return t->at == t->argument[1] ? SIO_ACCEL_KERNEL_DONE : SIO_ACCEL_KERNEL_MORE;
}

#endif
