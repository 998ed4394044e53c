/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernels on a thread of this program: addresses are pointers, ticks nanoseconds. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../kernels/plain.h"
#include "../kernels/table.h"
#include "side.h"

#define LOOKS 1000u /* of a kernel that waits, before another thread may run */

struct here_run {
	pthread_t thread;
	unsigned kernel;
	struct sio_accel_task task;
	enum sio_accel_progress progress;
};

static uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int get_info(int device, struct smartio_gpu_info *ret)
{
	(void)device;
	*ret = (struct smartio_gpu_info){.name = "processor", .clock_khz = 1000000};
	return 0;
}

static int alloc(int device, size_t bytes, uint64_t *ret)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)device;
	if (p == MAP_FAILED)
		return accel_side_no_memory("%zu bytes", bytes);
	*ret = (uintptr_t)p;
	return 0;
}

static void release(int device, uint64_t address, size_t bytes)
{
	(void)device;
	munmap((void *)(uintptr_t)address, bytes);
}

static int reach(int device, int other)
{
	(void)device;
	return accel_side_fail(-ENOTSUP, "a processor has no pointer to memory of GPU %d", other);
}

/* What was shared is there in a child that was forked after alloc(). */
static int share(int device, uint64_t address, struct smartio_gpu_handle *ret)
{
	(void)device;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &address, sizeof(address));
	return 0;
}

static int open_shared(int device, const struct smartio_gpu_handle *handle, uint64_t *ret)
{
	(void)device;
	memcpy(ret, handle, sizeof(*ret));
	return 0;
}

static int reg(int device, void *at, size_t bytes, unsigned flags, uint64_t *ret)
{
	(void)device;
	(void)bytes;
	(void)flags;
	*ret = (uintptr_t)at;
	return 0;
}

static int unreg(int device, void *at)
{
	(void)device;
	(void)at;
	return 0;
}

static int copy(int device, uint64_t to, uint64_t from, size_t bytes)
{
	(void)device;
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return 0;
}

static enum sio_accel_progress part(struct accel *a, struct here_run *r)
{
#define HERE_KERNEL(number, name)                                                                  \
	case SIO_ACCEL_##number:                                                                   \
		return accel_kernel_##name(a, &r->task);
	switch ((enum sio_accel_kernel)r->kernel) {
		ACCEL_KERNELS(HERE_KERNEL)
	}
	return SIO_ACCEL_KERNEL_REFUSES;
}

static void *work(void *arg)
{
	struct here_run *r = arg;
	struct accel a = {.clock = nanoseconds};
	enum sio_accel_progress p;

	for (unsigned looks = 0;;) {
		p = part(&a, r);
		if (p != SIO_ACCEL_KERNEL_MORE && p != SIO_ACCEL_KERNEL_WAITS)
			break;
		looks = p == SIO_ACCEL_KERNEL_WAITS ? looks + 1 : 0;
		if (looks % LOOKS == LOOKS - 1) /* on one processor the other one has to run */
			sched_yield();
	}
	r->progress = p;
	return NULL;
}

static int start(int device, unsigned kernel, const uint64_t argument[6], void **ret)
{
	struct here_run *r = calloc(1, sizeof(*r));
	int rc;

	(void)device;
	if (!r)
		return accel_side_no_memory("the run of a kernel");
	r->kernel = kernel;
	memcpy(r->task.argument, argument, sizeof(r->task.argument));
	rc = pthread_create(&r->thread, NULL, work, r);
	if (rc) {
		free(r);
		return accel_side_fail(-rc, "no thread could be started: error %d", rc);
	}
	*ret = r;
	return 0;
}

static int wait_for(void *run, uint32_t timeout_ms, enum sio_accel_progress *ret, uint64_t *result)
{
	struct here_run *r = run;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	if (pthread_timedjoin_np(r->thread, NULL, &until))
		return -ETIMEDOUT;
	*ret = r->progress;
	*result = r->task.result;
	free(r);
	return 0;
}

const struct accel_side accel_side_here = {get_info, alloc, release, reach, share,   open_shared,
					   reg,	     unreg, copy,    start, wait_for};
