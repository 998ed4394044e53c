/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/live/vfiomem.h"
#include "emu/vfio/message.h"

#define MAPS (16 * EMU_VFIO_MAX_MAPS)

/* Read by the signal's handler, in whichever thread it comes: a size of 0 is a free place. */
static struct {
	_Atomic uintptr_t at;
	_Atomic size_t size;
} map[MAPS];
static atomic_uint highest; /* places in use are below */

/* Memory of nobody takes the place of what is no longer there. mmap() is one system call here. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	unsigned n = atomic_load(&highest);

	(void)context;
	for (unsigned i = 0; i < n; i++) {
		uintptr_t start = atomic_load(&map[i].at);
		size_t size = atomic_load(&map[i].size);

		if (size && at >= start && at - start < size &&
		    mmap((void *)start, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) != MAP_FAILED)
			return;
	}
	/* Not ours: it comes again, and ends us. */
	signal(number, SIG_DFL);
}

void live_vfiomem_guard(void)
{
	struct sigaction sa = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

static int remember(void *data, uint64_t size)
{
	for (unsigned i = 0; i < MAPS; i++) {
		if (atomic_load(&map[i].size))
			continue;
		atomic_store(&map[i].at, (uintptr_t)data);
		atomic_store(&map[i].size, size);
		if (atomic_load(&highest) <= i)
			atomic_store(&highest, i + 1);
		return 0;
	}
	return -ENOSPC;
}

static void forget(const void *data)
{
	for (unsigned i = 0; i < MAPS; i++)
		if (atomic_load(&map[i].size) && atomic_load(&map[i].at) == (uintptr_t)data) {
			atomic_store(&map[i].size, 0);
			return;
		}
}

int live_vfiomem_map(void *ctx, int fd, uint64_t offset, uint64_t size, bool write, void **ret)
{
	struct stat st;
	void *data;
	int rc;

	(void)ctx;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* Devices and huge pages tell no size, or another: the kernel knows. */
	if (S_ISREG(st.st_mode) && (st.st_size < 0 || offset > (uint64_t)st.st_size ||
				    size > (uint64_t)st.st_size - offset))
		return -EINVAL;
	data = mmap(NULL, size, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd,
		    (off_t)offset);
	if (data == MAP_FAILED)
		return -errno;
	rc = remember(data, size);
	if (rc < 0)
		munmap(data, size);
	else
		*ret = data;
	return rc;
}

void live_vfiomem_unmap(void *ctx, void *data, uint64_t size)
{
	(void)ctx;
	forget(data);
	munmap(data, size);
}
