/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"

#define API __attribute__((visibility("default")))

API struct fake_cuda fake_cuda = {.fd = -1};

API void *dlopen(const char *name, int flags);
API int cuInit(unsigned flags);
API int cuGetErrorString(int error, const char **ret);
API int cuPointerGetAttribute(void *ret, int attribute, uint64_t at);
API int cuPointerSetAttribute(const void *value, int attribute, uint64_t at);
API int cuMemGetHandleForAddressRange(void *ret, uint64_t at, size_t size, int type,
				      unsigned long long flags);
API int cuMemHostRegister_v2(void *at, size_t size, unsigned flags);
API int cuMemHostUnregister(void *at);

/* Whoever opens the driver's library gets this program, which has its functions. */
void *dlopen(const char *name, int flags)
{
	static void *(*real)(const char *, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	return real(name && strcmp(name, "libcuda.so.1") == 0 ? NULL : name, flags);
}

static int call(enum fake_cuda_call c)
{
	fake_cuda.calls[c]++;
	return fake_cuda.fails[c];
}

int cuInit(unsigned flags)
{
	return flags ? FAKE_CUDA_INVALID : call(FAKE_CUDA_INIT);
}

int cuGetErrorString(int error, const char **ret)
{
	*ret = error == FAKE_CUDA_NO_DEVICE	   ? "the fake has no device"
	       : error == FAKE_CUDA_NOT_REGISTERED ? "the fake did not register that"
						   : "the fake takes no such value";
	return 0;
}

static bool knows(uint64_t at)
{
	return fake_cuda.kind != FAKE_CUDA_NONE && at >= fake_cuda.at &&
	       at - fake_cuda.at < fake_cuda.size;
}

int cuPointerGetAttribute(void *ret, int attribute, uint64_t at)
{
	const enum fake_cuda_kind kind = fake_cuda.kind;

	if (!knows(at))
		return FAKE_CUDA_INVALID;
	switch (attribute) {
	case 2: /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: host 1, device 2 */
		*(unsigned *)ret =
			kind == FAKE_CUDA_REGISTERED || kind == FAKE_CUDA_ALLOCATED ? 1 : 2;
		return 0;
	case 8: /* _IS_MANAGED */
		*(unsigned *)ret = kind == FAKE_CUDA_MANAGED;
		return 0;
	case 11: /* _RANGE_START_ADDR */
		*(uint64_t *)ret = fake_cuda.at;
		return 0;
	case 12: /* _RANGE_SIZE */
		*(size_t *)ret = fake_cuda.size;
		return 0;
	default:
		return FAKE_CUDA_INVALID;
	}
}

int cuPointerSetAttribute(const void *value, int attribute, uint64_t at)
{
	if (!knows(at) || attribute != 6 || *(const unsigned *)value != 1)
		return FAKE_CUDA_INVALID;
	fake_cuda.synchronous++;
	return 0;
}

int cuMemGetHandleForAddressRange(void *ret, uint64_t at, size_t size, int type,
				  unsigned long long flags)
{
	int rc = call(FAKE_CUDA_EXPORT);

	if (rc)
		return rc;
	if (!knows(at) || type != 1 || flags || fake_cuda.kind != FAKE_CUDA_DEVICE)
		return FAKE_CUDA_INVALID;
	fake_cuda.exported = size;
	*(int *)ret = dup(fake_cuda.fd);
	return 0;
}

int cuMemHostRegister_v2(void *at, size_t size, unsigned flags)
{
	int rc = call(FAKE_CUDA_REGISTER);

	if (rc)
		return rc;
	if (fake_cuda.kind != FAKE_CUDA_NONE)
		return FAKE_CUDA_INVALID;
	fake_cuda.kind = FAKE_CUDA_REGISTERED;
	fake_cuda.at = (uintptr_t)at;
	fake_cuda.size = size;
	fake_cuda.flags = flags;
	return 0;
}

int cuMemHostUnregister(void *at)
{
	if (fake_cuda.kind != FAKE_CUDA_REGISTERED || fake_cuda.at != (uintptr_t)at)
		return FAKE_CUDA_NOT_REGISTERED;
	fake_cuda.kind = FAKE_CUDA_NONE;
	fake_cuda.unregistered++;
	return 0;
}
