/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that programs call; each goes to the side, GPU or processor, that the device is of.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "side.h"

struct smartio_gpu_run {
	const struct accel_side *side;
	void *run;
};

static __thread char last[256];

const char *smartio_gpu_error(void)
{
	return last;
}

int accel_side_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last, sizeof(last), fmt, ap);
	va_end(ap);
	return code;
}

static const struct accel_side *side_of(int device)
{
	return device == SMARTIO_GPU_HERE ? &accel_side_here : &accel_side_cuda;
}

int smartio_gpu_count(void)
{
	return accel_cuda_count();
}

int smartio_gpu_get_info(int device, struct smartio_gpu_info *ret)
{
	return side_of(device)->get_info(device, ret);
}

int smartio_gpu_alloc(int device, size_t bytes, uint64_t *ret)
{
	return side_of(device)->alloc(device, bytes, ret);
}

void smartio_gpu_free(int device, uint64_t address, size_t bytes)
{
	if (address)
		side_of(device)->free(device, address, bytes);
}

int smartio_gpu_reach(int device, int other)
{
	return device == other ? 0 : side_of(device)->reach(device, other);
}

int smartio_gpu_share(int device, uint64_t address, struct smartio_gpu_handle *ret)
{
	return side_of(device)->share(device, address, ret);
}

int smartio_gpu_open(int device, const struct smartio_gpu_handle *handle, uint64_t *ret)
{
	return side_of(device)->open(device, handle, ret);
}

int smartio_gpu_register(int device, void *at, size_t bytes, unsigned int flags, uint64_t *ret)
{
	if (!at || bytes == 0 || ((uintptr_t)at | bytes) % 4096 || flags & ~SMARTIO_GPU_IO)
		return accel_side_fail(-EINVAL,
				       "%zu bytes at %p, flags %#x: whole pages and known "
				       "flags are right",
				       bytes, at, flags);
	return side_of(device)->reg(device, at, bytes, flags, ret);
}

int smartio_gpu_unregister(int device, void *at)
{
	return side_of(device)->unreg(device, at);
}

int smartio_gpu_read(int device, void *to, uint64_t from, size_t bytes)
{
	return side_of(device)->copy(device, (uintptr_t)to, from, bytes);
}

int smartio_gpu_write(int device, uint64_t to, const void *from, size_t bytes)
{
	return side_of(device)->copy(device, to, (uintptr_t)from, bytes);
}

int smartio_gpu_start(int device, unsigned int kernel, const uint64_t argument[6],
		      struct smartio_gpu_run **ret)
{
	struct smartio_gpu_run *r;
	int rc;

	if (kernel < SIO_ACCEL_COPY || kernel > SIO_ACCEL_TRAIN)
		return accel_side_fail(-EINVAL, "there is no kernel %u; %d to %d are right", kernel,
				       SIO_ACCEL_COPY, SIO_ACCEL_TRAIN);
	r = malloc(sizeof(*r));
	if (!r)
		return accel_side_no_memory("the run of a kernel");
	r->side = side_of(device);
	rc = r->side->start(device, kernel, argument, &r->run);
	if (rc) {
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

int smartio_gpu_wait(struct smartio_gpu_run *run, uint32_t timeout_ms, uint64_t *result)
{
	enum sio_accel_progress progress = SIO_ACCEL_KERNEL_MORE;
	int rc = run->side->wait(run->run, timeout_ms, &progress, result);

	if (rc == -ETIMEDOUT)
		return accel_side_fail(rc, "the kernel has not ended within %u ms", timeout_ms);
	free(run);
	if (rc)
		return rc;
	if (progress == SIO_ACCEL_KERNEL_FAILS)
		return accel_side_fail(-ECANCELED, "the kernel gave up, with %#llx",
				       (unsigned long long)*result);
	if (progress == SIO_ACCEL_KERNEL_REFUSES)
		return accel_side_fail(-EINVAL, "the arguments are not valid for this kernel");
	return 0;
}
