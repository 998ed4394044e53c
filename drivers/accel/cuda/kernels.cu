/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels for GPUs: of each one a function accel_NAME(task, progress) that runs it to its end,
 * by one thread. Launch it with one; the task and the word for its end, an enum sio_accel_progress, lie
 * in memory that the GPU reaches. What several threads would do side by side is not done here.
 */
#include "cuda.h"

#include "../kernels/table.h"

#define GPU_KERNEL(number, name)                                                                   \
	extern "C" __global__ void accel_##name(struct sio_accel_task *task, uint32_t *progress)       \
	{                                                                                          \
		struct accel a = {0};                                                              \
		struct sio_accel_task t = *task;                                                       \
		enum sio_accel_progress p;                                                             \
                                                                                                   \
		do                                                                                 \
			p = accel_kernel_##name(&a, &t);                                           \
		while (p == SIO_ACCEL_KERNEL_MORE || p == SIO_ACCEL_KERNEL_WAITS);                                       \
		*task = t;                                                                         \
		accel_fence(&a);                                                                   \
		accel_store32(&a, (uint64_t)progress, (uint32_t)p);                                \
	}
ACCEL_KERNELS(GPU_KERNEL)
