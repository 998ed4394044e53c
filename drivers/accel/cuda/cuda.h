/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accessors by which kernels reach memory on a GPU: addresses are those of CUDA's unified
 * address space.
 */
#ifndef SMARTIO_ACCEL_CUDA_H
#define SMARTIO_ACCEL_CUDA_H

#include "../kernels/kernel.h"

struct accel {
	int unused;
};

/* Volatile, so that each load sees what others have stored, and others see each store. */
static __device__ inline uint32_t accel_load32(struct accel *a, uint64_t at)
{
	(void)a;
	return *(const volatile uint32_t *)at;
}

static __device__ inline uint64_t accel_load64(struct accel *a, uint64_t at)
{
	(void)a;
	return *(const volatile uint64_t *)at;
}

static __device__ inline void accel_store32(struct accel *a, uint64_t at, uint32_t value)
{
	(void)a;
	*(volatile uint32_t *)at = value;
}

static __device__ inline void accel_store64(struct accel *a, uint64_t at, uint64_t value)
{
	(void)a;
	*(volatile uint64_t *)at = value;
}

/* Kernels move whole 32-bit words only. */
static __device__ inline void accel_move(struct accel *a, uint64_t to, uint64_t from,
					 uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 4)
		accel_store32(a, to + i, accel_load32(a, from + i));
}

/* A fence for observers across the bus, too: doorbells, host memory, other GPUs. */
static __device__ inline void accel_fence(struct accel *a)
{
	(void)a;
	__threadfence_system();
}

static __device__ inline uint64_t accel_clock(struct accel *a)
{
	(void)a;
	return (uint64_t)clock64();
}

#endif
