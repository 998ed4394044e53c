/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * The accelerator's kernels (docs/accelerator.md) run by a GPU of CUDA's, or by this program's own
 * processor: the same source, compiled for each. libsmartio-accelgpu, which is there where the CUDA
 * toolkit was when SmartIO was built. It has not been run on a GPU (docs/gpu.md).
 *
 * Where a function has a @device it is the number of a GPU as CUDA counts them, or
 * SMARTIO_GPU_HERE. Functions return 0 or -errno; on failure nothing is stored through their
 * pointers but where that is said, and smartio_gpu_error() has words. Errors of all of them:
 * -ENODEV no driver, or no such GPU; -EINVAL an argument that CUDA refuses; -ENOMEM no memory of
 * the GPU or of the process; -ENOTSUP the GPU cannot do that; -EIO whatever else CUDA says. With
 * SMARTIO_GPU_HERE calls fail where that is said, and with -ENOMEM.
 *
 * They may be called from any thread; what two threads do to the same memory or the same run at
 * once is theirs to order. Addresses are the device's: of a GPU those of CUDA's one address space,
 * of the processor pointers. All that a process was given ends with it.
 * Source: CUDA Runtime API; our own calls.
 */
#ifndef SMARTIO_ACCELGPU_H
#define SMARTIO_ACCELGPU_H

#include <stddef.h>
#include <stdint.h>

#include "smartio/acceldev.h"
#include "smartio/accelkernel.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define SMARTIO_GPU_HERE (-1) /**< a thread of this program */

/**
 * Words of this thread's last failure; "" if there was none. Never NULL. The library's; valid until
 * the thread's next call fails.
 */
const char *smartio_gpu_error(void);

/** GPUs that CUDA has. Return: how many, 1 at least; or an error, -ENODEV where there are none. */
int smartio_gpu_count(void);

struct smartio_gpu_info {
	char name[128];
	uint32_t clock_khz; /* of what kernels read as ticks, in kHz; 0: unknown */
};
/** Fill *@ret, the caller's, with what is known of @device. */
int smartio_gpu_get_info(int device, struct smartio_gpu_info *ret);

/**
 * Give the caller @bytes of @device's own memory, zeroed; of the processor's, whole pages, which
 * children that are forked share. *@ret: its address. Ends by smartio_gpu_free().
 */
int smartio_gpu_alloc(int device, size_t bytes, uint64_t *ret);
/** Free what smartio_gpu_alloc() gave for @device and @bytes. @address 0: nothing is done. */
void smartio_gpu_free(int device, uint64_t address, size_t bytes);
/**
 * Let kernels of @device reach the memory of GPU @other, until the process ends. Equal numbers, and
 * two for which it was called before: nothing is done. -ENOTSUP: no peer-to-peer between them, or
 * one is the processor, whose memory smartio_gpu_register() is for.
 */
int smartio_gpu_reach(int device, int other);

/** What another process needs to reach memory of smartio_gpu_alloc(). */
struct smartio_gpu_handle {
	char bytes[64];
};
/**
 * Fill *@ret, the caller's, for memory at @address, which smartio_gpu_alloc() gave. The memory
 * stays the caller's, to be freed when no other process uses it any more.
 */
int smartio_gpu_share(int device, uint64_t address, struct smartio_gpu_handle *ret);
/**
 * In the other process, on the same machine: *@ret is the address there, until that process ends.
 * Of the processor's memory only a child that was forked after smartio_gpu_alloc() has it; that is
 * not checked.
 */
int smartio_gpu_open(int device, const struct smartio_gpu_handle *handle, uint64_t *ret);

/** The pages are of a device or a window to another host, not of memory. */
#define SMARTIO_GPU_IO 1u
/**
 * Let kernels of @device reach pages of this program (cudaHostRegister()): segments, maps,
 * doorbells. The stores of a GPU raise no page fault there: of doorbells of an emulated cluster
 * first smartio_map_keep_awake() (smartio/gpu.h). @at, @bytes: whole pages of 4 KiB. @flags:
 * SMARTIO_GPU_IO or 0. *@ret: where @device finds them. The pages stay the caller's. Ends by
 * smartio_gpu_unregister(), before they are unmapped.
 * -EINVAL, of the processor, too: no whole pages, or other flags.
 */
int smartio_gpu_register(int device, void *at, size_t bytes, unsigned int flags, uint64_t *ret);
/** End smartio_gpu_register() of @at for @device, when no kernel uses the pages any more. */
int smartio_gpu_unregister(int device, void *at);

/**
 * Copy @bytes from or to memory of @device, by the GPU's DMA engine, or the processor. The copy is
 * done when the call returns.
 */
int smartio_gpu_read(int device, void *to, uint64_t from, size_t bytes);
int smartio_gpu_write(int device, uint64_t to, const void *from, size_t bytes);

/** A kernel at work: the caller's, until smartio_gpu_wait() has ended it. */
struct smartio_gpu_run;
/**
 * Start kernel @kernel (enum sio_accel_kernel) by one thread of @device. @argument is copied.
 * *@ret: for smartio_gpu_wait(). -EINVAL, of the processor, too: there is no such kernel; -EAGAIN:
 * the processor has no thread left.
 */
int smartio_gpu_start(int device, unsigned int kernel, const uint64_t argument[6],
		      struct smartio_gpu_run **ret);
/**
 * Wait until it ends, @timeout_ms milliseconds at most. *@result as the kernel says, when it gave
 * up, too. On success, and on any failure but -ETIMEDOUT, @run is gone; a kernel that ran out of
 * time is still at work, and may be waited for again: nothing stops it but the end of the process.
 * -ECANCELED: the kernel gave up; -EINVAL: its arguments are none.
 */
int smartio_gpu_wait(struct smartio_gpu_run *run, uint32_t timeout_ms, uint64_t *result);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
