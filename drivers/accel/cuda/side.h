/* SPDX-License-Identifier: BSD-2-Clause */
/* The sides on which kernels run: a GPU, or this program's processor. */
#ifndef SMARTIO_ACCEL_SIDE_H
#define SMARTIO_ACCEL_SIDE_H

#include "../../base/memory.h"
#include "smartio/accelgpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions behind smartio/accelgpu.h for one side. wait(): *ret is the kernel's result. */
struct accel_side {
	int (*get_info)(int device, struct smartio_gpu_info *ret);
	int (*alloc)(int device, size_t bytes, uint64_t *ret);
	void (*free)(int device, uint64_t address, size_t bytes);
	int (*reach)(int device, int other);
	int (*share)(int device, uint64_t address, struct smartio_gpu_handle *ret);
	int (*open)(int device, const struct smartio_gpu_handle *handle, uint64_t *ret);
	int (*reg)(int device, void *at, size_t bytes, unsigned flags, uint64_t *ret);
	int (*unreg)(int device, void *at);
	int (*copy)(int device, uint64_t to, uint64_t from, size_t bytes);
	int (*start)(int device, unsigned kernel, const uint64_t argument[6], void **ret);
	/* -ETIMEDOUT: the kernel still runs, and so does @run; otherwise @run is freed. */
	int (*wait)(void *run, uint32_t timeout_ms, enum sio_accel_progress *ret, uint64_t *result);
};

extern const struct accel_side accel_side_cuda, accel_side_here;
int accel_cuda_count(void);

/* Keeps the text for the caller's error. Return: @code. */
int accel_side_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* With -ENOMEM: @fmt names what there was no memory for. */
#define accel_side_no_memory(fmt, ...)                                                             \
	accel_side_fail(-ENOMEM, "no memory for " fmt ": " SIO_DRIVER_MORE_MEMORY, ##__VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
