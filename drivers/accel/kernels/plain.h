/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels on the memory of a C program: addresses are pointers. Tests compare the device's results
 * with theirs.
 */
#ifndef SMARTIO_ACCEL_PLAIN_H
#define SMARTIO_ACCEL_PLAIN_H

#include <string.h>

#include "kernel.h"

struct accel {
	uint64_t ticks;
	uint64_t (*clock)(void); /* NULL: each look at the clock is a tick */
};

static inline uint32_t accel_load32(struct accel *a, uint64_t at)
{
	(void)a;
	return *(const volatile uint32_t *)(uintptr_t)at;
}

static inline uint64_t accel_load64(struct accel *a, uint64_t at)
{
	(void)a;
	return *(const volatile uint64_t *)(uintptr_t)at;
}

static inline void accel_store32(struct accel *a, uint64_t at, uint32_t value)
{
	(void)a;
	*(volatile uint32_t *)(uintptr_t)at = value;
}

static inline void accel_store64(struct accel *a, uint64_t at, uint64_t value)
{
	(void)a;
	*(volatile uint64_t *)(uintptr_t)at = value;
}

static inline void accel_move(struct accel *a, uint64_t to, uint64_t from, uint64_t bytes)
{
	(void)a;
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

static inline void accel_fence(struct accel *a)
{
	(void)a;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with accel_fence() of another kernel */
}

static inline uint64_t accel_clock(struct accel *a)
{
	return a->clock ? a->clock() : a->ticks++;
}

#endif
