/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels on a GPU, by CUDA's runtime, which is linked statically and opens the driver by itself:
 * where there is none, calls fail and say so. Source: CUDA Runtime API reference.
 */
#include <cuda_runtime.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels.cu"
#include "side.h"

/* What the kernel and the processor share: in pinned memory, at one address for both. */
struct gpu_shared {
	struct sio_accel_task task;
	uint32_t progress;
};

struct gpu_run {
	cudaStream_t stream;
	struct gpu_shared *shared;
};

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(struct smartio_gpu_handle), "one form");

static int errno_of(cudaError_t e)
{
	switch (e) {
	case cudaErrorInsufficientDriver:
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
	case cudaErrorStubLibrary:
	case cudaErrorInitializationError:
		return -ENODEV;
	case cudaErrorMemoryAllocation:
		return -ENOMEM;
	case cudaErrorNotSupported:
	case cudaErrorPeerAccessUnsupported:
		return -ENOTSUP;
	case cudaErrorInvalidValue:
		return -EINVAL;
	default:
		return -EIO;
	}
}

static int check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return 0;
	cudaGetLastError(); /* it is told once */
	return accel_side_fail(errno_of(e), "%s: CUDA says: %s (%s)", what, cudaGetErrorString(e),
			       cudaGetErrorName(e));
}

int accel_cuda_count(void)
{
	int n = 0, rc = check(cudaGetDeviceCount(&n), "no GPU");

	if (rc)
		return rc;
	return n ? n : accel_side_fail(-ENODEV, "no GPU: CUDA's driver has none");
}

static int use(int device)
{
	return check(cudaSetDevice(device), "no such GPU");
}

static int get_info(int device, struct smartio_gpu_info *ret)
{
	cudaDeviceProp about;
	int khz = 0, rc = check(cudaGetDeviceProperties(&about, device), "no such GPU");

	if (rc == 0)
		rc = check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device), "its clock");
	if (rc)
		return rc;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->name, about.name, sizeof(ret->name) - 1);
	ret->clock_khz = (uint32_t)khz;
	return 0;
}

static int alloc(int device, size_t bytes, uint64_t *ret)
{
	void *p = NULL;
	int rc = use(device);

	if (rc == 0)
		rc = check(cudaMalloc(&p, bytes), "memory of the GPU");
	if (rc)
		return rc;
	rc = check(cudaMemset(p, 0, bytes), "zeros in the GPU");
	if (rc == 0)
		rc = check(cudaDeviceSynchronize(), "zeros in the GPU");
	if (rc)
		cudaFree(p);
	else
		*ret = (uint64_t)p;
	return rc;
}

static void release(int device, uint64_t address, size_t bytes)
{
	(void)bytes;
	if (use(device) == 0)
		cudaFree((void *)address);
}

static int reach(int device, int other)
{
	cudaError_t e;
	int can = 0, rc;

	if (other < 0)
		return accel_side_fail(-ENOTSUP, "memory of the processor is for "
						 "smartio_gpu_register()");
	rc = check(cudaDeviceCanAccessPeer(&can, device, other), "peer-to-peer");
	if (rc)
		return rc;
	if (!can)
		return accel_side_fail(-ENOTSUP, "GPU %d does not reach memory of GPU %d", device,
				       other);
	rc = use(device);
	if (rc)
		return rc;
	e = cudaDeviceEnablePeerAccess(other, 0);
	if (e == cudaErrorPeerAccessAlreadyEnabled) {
		cudaGetLastError(); /* else the next kernel's start would find it */
		return 0;
	}
	return check(e, "peer-to-peer");
}

static int share(int device, uint64_t address, struct smartio_gpu_handle *ret)
{
	int rc = use(device);

	return rc ? rc
		  : check(cudaIpcGetMemHandle((cudaIpcMemHandle_t *)ret, (void *)address),
			  "a handle of the GPU's memory");
}

static int open_shared(int device, const struct smartio_gpu_handle *handle, uint64_t *ret)
{
	cudaIpcMemHandle_t h;
	void *p = NULL;
	int rc = use(device);

	memcpy(&h, handle, sizeof(h));
	if (rc == 0)
		rc = check(cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess),
			   "memory of another process");
	if (rc == 0)
		*ret = (uint64_t)p;
	return rc;
}

static int reg(int device, void *at, size_t bytes, unsigned flags, uint64_t *ret)
{
	const unsigned how = cudaHostRegisterPortable | cudaHostRegisterMapped |
			     (flags & SMARTIO_GPU_IO ? cudaHostRegisterIoMemory : 0);
	void *p = NULL;
	int rc = use(device);

	if (rc == 0)
		rc = check(cudaHostRegister(at, bytes, how), "cudaHostRegister()");
	if (rc)
		return rc;
	rc = check(cudaHostGetDevicePointer(&p, at, 0), "the GPU's address of pages");
	if (rc)
		cudaHostUnregister(at);
	else
		*ret = (uint64_t)p;
	return rc;
}

static int unreg(int device, void *at)
{
	int rc = use(device);

	return rc ? rc : check(cudaHostUnregister(at), "cudaHostUnregister()");
}

static int copy(int device, uint64_t to, uint64_t from, size_t bytes)
{
	int rc = use(device);

	if (rc == 0)
		rc = check(cudaMemcpy((void *)to, (const void *)from, bytes, cudaMemcpyDefault),
			   "a copy");
	return rc ? rc : check(cudaDeviceSynchronize(), "a copy");
}

static void end(struct gpu_run *r)
{
	if (r->stream)
		cudaStreamDestroy(r->stream);
	if (r->shared)
		cudaFreeHost(r->shared);
	free(r);
}

static void launch(struct gpu_run *r, unsigned kernel)
{
#define LAUNCH_KERNEL(number, name)                                                                \
	case SIO_ACCEL_##number:                                                                   \
		accel_##name<<<1, 1, 0, r->stream>>>(&r->shared->task, &r->shared->progress);      \
		break;
	switch (kernel) {
		ACCEL_KERNELS(LAUNCH_KERNEL)
	}
}

static int start(int device, unsigned kernel, const uint64_t argument[6], void **ret)
{
	struct gpu_run *r;
	int rc = use(device);

	if (rc)
		return rc;
	r = (struct gpu_run *)calloc(1, sizeof(*r));
	if (!r)
		return accel_side_fail(-ENOMEM, "no memory");
	rc = check(cudaHostAlloc((void **)&r->shared, sizeof(*r->shared),
				 cudaHostAllocPortable | cudaHostAllocMapped),
		   "pinned memory");
	if (rc == 0)
		rc = check(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "a stream");
	if (rc == 0) {
		memset(r->shared, 0, sizeof(*r->shared));
		memcpy(r->shared->task.argument, argument, sizeof(r->shared->task.argument));
		launch(r, kernel);
		rc = check(cudaGetLastError(), "the kernel's start");
	}
	if (rc)
		end(r);
	else
		*ret = r;
	return rc;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int wait_for(void *run, uint32_t timeout_ms, enum sio_accel_progress *ret, uint64_t *result)
{
	struct gpu_run *r = (struct gpu_run *)run;
	const struct timespec nap = {0, 50000};
	const uint64_t until = now_ms() + timeout_ms;
	cudaError_t e;
	int rc;

	/* CUDA has no wait with a limit. A stream is known to be its device's. */
	while ((e = cudaStreamQuery(r->stream)) == cudaErrorNotReady && now_ms() < until)
		nanosleep(&nap, NULL);
	if (e == cudaErrorNotReady)
		return -ETIMEDOUT;
	rc = check(e, "the kernel");
	*ret = (enum sio_accel_progress)r->shared->progress;
	*result = r->shared->task.result;
	end(r);
	return rc;
}

const struct accel_side accel_side_cuda = {get_info, alloc, release, reach, share, open_shared,
					   reg,	     unreg, copy,    start, wait_for};
