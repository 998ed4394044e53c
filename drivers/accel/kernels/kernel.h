/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kernels of the accelerator are made of: the common subset of C and CUDA. A kernel is a
 * function that does a bounded part of its work (a page of memory, say) and tells whether there is
 * more: so a model without threads can run it between other things, and a GPU runs it in a loop.
 * All that it knows from one part to the next is in its struct sio_accel_task.
 *
 * A kernel touches memory by these functions alone; addresses are the device's, aligned to what is
 * read or written:
 * 	uint32_t accel_load32(struct accel *a, uint64_t at);
 * 	uint64_t accel_load64(struct accel *a, uint64_t at);
 * 	void accel_store32(struct accel *a, uint64_t at, uint32_t value);
 * 	void accel_store64(struct accel *a, uint64_t at, uint64_t value);
 * 	void accel_move(struct accel *a, uint64_t to, uint64_t from, uint64_t bytes);
 * 	void accel_fence(struct accel *a);	stores before arrive before those after
 * 	uint64_t accel_clock(struct accel *a);	ticks: of a GPU its clock's, else nanoseconds
 * Whoever includes the kernels defines struct accel and these before: plain.h for pointers of a C
 * program, cuda.h for a GPU, emu/devices/accel for the model. An access that fails is the caller's
 * to notice after the part: loads give all ones, and the kernel goes on with that. A part makes
 * about ACCEL_PART / 4 accesses at most, whatever its arguments are, and believes no word of memory
 * twice: who checks it has it in a variable.
 */
#ifndef SMARTIO_ACCEL_KERNEL_H
#define SMARTIO_ACCEL_KERNEL_H

#include <stdint.h>

#include "smartio/accelkernel.h"

#ifdef __CUDACC__
#define ACCEL_FUNCTION static __device__ inline
#else
#define ACCEL_FUNCTION static inline
#endif

#define ACCEL_PART 4096u /* bytes that a kernel looks at in one part, about */

ACCEL_FUNCTION uint64_t accel_part_of(uint64_t left)
{
	return left < ACCEL_PART ? left : ACCEL_PART;
}

#endif
