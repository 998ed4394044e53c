/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library asks of a graphics card's driver about memory: a table, since the driver's
 * library is opened at first use and may not be installed. Each function returns 0 or -errno, and
 * then *why: the driver's own error text, static.
 */
#ifndef SESSION_GPU_H
#define SESSION_GPU_H

#include <stddef.h>
#include <stdint.h>

enum sio_gpu_kind {
	SIO_GPU_HOST,	/* pages of host memory that the driver keeps in place */
	SIO_GPU_DEVICE, /* of a card */
	SIO_GPU_MOVING, /* the driver moves it between the two (managed) */
};

struct sio_gpu_memory {
	enum sio_gpu_kind kind;
	uint64_t start, bytes; /* of the allocation, or of what was registered */
};

struct sio_gpu_ops {
	/*
	 * Describes the memory at @at. -ENODEV: no driver, or no card; -EFAULT: not memory of the
	 * driver.
	 */
	int (*memory)(uint64_t at, struct sio_gpu_memory *ret, const char **why);
	/* Return: a dma-buf of a card's memory, the caller's. */
	int (*export)(uint64_t at, size_t size, const char **why);
	/* Ends, or restores, the card's access to host memory. @at: where it was registered. */
	int (*unpin)(uint64_t at, const char **why);
	int (*pin)(uint64_t at, size_t size, const char **why);
};

#endif
