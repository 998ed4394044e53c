/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUDA's driver, by its library libcuda.so.1, which is opened when a program first gives us memory
 * of a card: nothing is linked with it, and no header of it is needed. Prototypes and numbers are
 * those of the CUDA Driver API reference, chapters "Memory Management" and "Unified Addressing".
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "session/live.h"

enum { ATTRIBUTE_MEMORY_TYPE = 2, ATTRIBUTE_SYNC_MEMOPS = 6, ATTRIBUTE_IS_MANAGED = 8 };
enum { ATTRIBUTE_START = 11, ATTRIBUTE_SIZE = 12 };
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2 };
enum { RANGE_AS_DMABUF = 1 };
/* Flags of cuMemHostRegister(): known to all contexts, and mapped into the card's address space. */
enum { REGISTER_PORTABLE = 1, REGISTER_DEVICEMAP = 2 };

static struct {
	int (*init)(unsigned flags);
	int (*error_string)(int error, const char **ret);
	int (*attribute)(void *ret, int attribute, uint64_t at);
	int (*set_attribute)(const void *value, int attribute, uint64_t at);
	int (*handle)(void *ret, uint64_t at, size_t size, int type, unsigned long long flags);
	int (*host_register)(void *at, size_t size, unsigned flags);
	int (*host_unregister)(void *at);
} cuda;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static char load_error[160]; /* protected by @loading */

static const char *words(int error)
{
	const char *text = NULL;

	if (cuda.error_string(error, &text) || !text)
		return "CUDA's driver does not say why";
	return text;
}

static bool find(void *lib, const char *name, void *ret)
{
	void *found = dlsym(lib, name);

	if (!found)
		snprintf(load_error, sizeof(load_error), "libcuda.so.1 has no %s()", name);
	*(void **)ret = found;
	return found;
}

/* CUDA 11.7 brought cuMemGetHandleForAddressRange(). */
static bool find_all(void *lib)
{
	return find(lib, "cuInit", &cuda.init) &&
	       find(lib, "cuGetErrorString", &cuda.error_string) &&
	       find(lib, "cuPointerGetAttribute", &cuda.attribute) &&
	       find(lib, "cuPointerSetAttribute", &cuda.set_attribute) &&
	       find(lib, "cuMemGetHandleForAddressRange", &cuda.handle) &&
	       find(lib, "cuMemHostRegister_v2", &cuda.host_register) &&
	       find(lib, "cuMemHostUnregister", &cuda.host_unregister);
}

/* Under @loading. A failed load is tried again at the next call; a loaded library stays. */
static bool load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int rc;

	if (!lib) {
		snprintf(load_error, sizeof(load_error), "%s", dlerror());
		return false;
	}
	if (!find_all(lib)) {
		dlclose(lib);
		return false;
	}
	/*
	 * No effect in a program that has called it already, which every program with such memory
	 * has.
	 */
	rc = cuda.init(0);
	if (rc)
		snprintf(load_error, sizeof(load_error), "cuInit() says: %s", words(rc));
	return rc == 0; /* the library stays open: its driver may have started threads */
}

static int open_driver(const char **why)
{
	bool there;

	pthread_mutex_lock(&loading);
	if (!loaded)
		loaded = load();
	there = loaded;
	pthread_mutex_unlock(&loading);
	*why = there ? "" : load_error;
	return there ? 0 : -ENODEV;
}

static int cuda_memory(uint64_t at, struct sio_gpu_memory *ret, const char **why)
{
	unsigned type = 0, managed = 0;
	size_t bytes = 0;
	int rc = open_driver(why);

	if (rc)
		return rc;
	rc = cuda.attribute(&type, ATTRIBUTE_MEMORY_TYPE, at);
	if (!rc)
		rc = cuda.attribute(&managed, ATTRIBUTE_IS_MANAGED, at);
	if (!rc)
		rc = cuda.attribute(&ret->start, ATTRIBUTE_START, at);
	if (!rc)
		rc = cuda.attribute(&bytes, ATTRIBUTE_SIZE, at);
	*why = rc ? words(rc) : "it is of another kind";
	if (rc || (type != MEMORY_HOST && type != MEMORY_DEVICE))
		return -EFAULT;
	ret->bytes = bytes;
	ret->kind = managed ? SIO_GPU_MOVING : type == MEMORY_HOST ? SIO_GPU_HOST : SIO_GPU_DEVICE;
	return 0;
}

static int cuda_export(uint64_t at, size_t size, const char **why)
{
	const unsigned one = 1;
	int fd = -1, rc = open_driver(why);

	if (rc)
		return rc;
	/*
	 * Makes the program's copies visible to devices that access the memory without the driver,
	 * as soon as the copy call returns.
	 */
	rc = cuda.set_attribute(&one, ATTRIBUTE_SYNC_MEMOPS, at);
	if (!rc)
		rc = cuda.handle(&fd, at, size, RANGE_AS_DMABUF, 0);
	*why = rc ? words(rc) : "CUDA's driver gave no descriptor";
	if (rc || fd < 0)
		return -EOPNOTSUPP;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

static int cuda_unpin(uint64_t at, const char **why)
{
	int rc = open_driver(why);

	if (rc)
		return rc;
	rc = cuda.host_unregister((void *)(uintptr_t)at);
	*why = rc ? words(rc) : "";
	return rc ? -EOPNOTSUPP : 0;
}

static int cuda_pin(uint64_t at, size_t size, const char **why)
{
	int rc = open_driver(why);

	if (rc)
		return rc;
	rc = cuda.host_register((void *)(uintptr_t)at, size,
				REGISTER_PORTABLE | REGISTER_DEVICEMAP);
	*why = rc ? words(rc) : "";
	return rc ? -EOPNOTSUPP : 0;
}

const struct sio_gpu_ops sio_live_cuda = {
	.memory = cuda_memory,
	.export = cuda_export,
	.unpin = cuda_unpin,
	.pin = cuda_pin,
};
