/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kernel of the accelerator at work, as a program for GPUs sees it that loads accel-kernels.ptx
 * (share/smartio): of each kernel there is a function accel_NAME(struct sio_accel_task *task,
 * uint32_t *progress), which one thread runs to its end. Both lie in memory that the GPU reaches.
 * Arguments and results: docs/accelerator.md. Common subset of C and CUDA.
 */
#ifndef SMARTIO_ACCELKERNEL_H
#define SMARTIO_ACCELKERNEL_H

#include <stdint.h>

/* All words are zero but the arguments when a kernel begins. */
struct sio_accel_task {
	uint64_t argument[6];
	uint64_t at;	   /* how far it came */
	uint64_t state[7]; /* whatever else it knows */
	uint64_t result;
};

/* What a part of a kernel's work came to. */
enum sio_accel_progress {
	SIO_ACCEL_KERNEL_MORE,	  /* something was done, there is more */
	SIO_ACCEL_KERNEL_WAITS,	  /* nothing was done: what it waits for has not come */
	SIO_ACCEL_KERNEL_DONE,	  /* the task's result holds */
	SIO_ACCEL_KERNEL_FAILS,	  /* it gave up: the result tells why */
	SIO_ACCEL_KERNEL_REFUSES, /* the arguments are none */
};

#endif
