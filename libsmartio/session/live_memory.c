/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the library in a live process: reserved addresses, mappings, pages of ones, page
 * faults.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/live.h"

#define ONES_BYTES (2u << 20) /* bytes that one mapping of the file of ones covers */

static int ones = -1; /* the file of ones; -1: not made yet. Under the lock of descriptors */

void sio_live_ones_forget(void)
{
	ones = -1;
}

int sio_live_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed ? MAP_FIXED_NOREPLACE : 0);
	void *p = mmap(hint, len, PROT_NONE, flags, -1, 0);

	(void)w;
	if (p == MAP_FAILED)
		return -errno;
	if (fixed && p != hint) {
		munmap(p, len);
		return -EEXIST;
	}
	*ret = p;
	return 0;
}

int sio_live_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	int p = (prot & SIO_PROT_READ ? PROT_READ : 0) | (prot & SIO_PROT_WRITE ? PROT_WRITE : 0);

	(void)w;
	if (mmap(at, len, p, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED)
		return -errno;
	return 0;
}

/* Under the lock of descriptors. */
static int make_ones_file(void)
{
	unsigned char block[65536];
	int fd = sio_live_own(memfd_create("smartio-ones", MFD_CLOEXEC));

	memset(block, 0xff, sizeof(block));
	for (size_t done = 0; fd >= 0 && done < ONES_BYTES; done += sizeof(block)) {
		if (write(fd, block, sizeof(block)) != sizeof(block)) {
			sio_live_disown(fd);
			return -ENOMEM;
		}
	}
	return fd;
}

/* Made at the first use, and kept. */
static int ones_file(void)
{
	int fd;

	sio_live_fds_lock();
	if (ones < 0)
		ones = make_ones_file();
	fd = ones;
	sio_live_fds_unlock();
	return fd;
}

/*
 * Replacing pages while another thread reads them is what a link that goes down does, and not a
 * data race; but ThreadSanitizer regards mmap() as a store.
 */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define UNDER_READERS_BEGIN AnnotateIgnoreWritesBegin(__FILE__, __LINE__)
#define UNDER_READERS_END AnnotateIgnoreWritesEnd(__FILE__, __LINE__)
#else
#define UNDER_READERS_BEGIN ((void)0)
#define UNDER_READERS_END ((void)0)
#endif

int sio_live_map_ones(struct sio_world *w, void *at, size_t len)
{
	int fd = ones_file(), rc = 0;

	(void)w;
	if (fd < 0)
		return fd;
	UNDER_READERS_BEGIN;
	for (size_t done = 0; done < len && rc == 0; done += ONES_BYTES) {
		size_t part = len - done < ONES_BYTES ? len - done : ONES_BYTES;

		if (mmap((char *)at + done, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			rc = -errno;
	}
	UNDER_READERS_END;
	return rc;
}

int sio_live_map_none(struct sio_world *w, void *at, size_t len)
{
	int rc;

	(void)w;
	UNDER_READERS_BEGIN;
	rc = mprotect(at, len, PROT_NONE) < 0 ? -errno : 0;
	UNDER_READERS_END;
	return rc;
}

/*
 * A length of 0 asks mremap() for a second mapping of the same pages. The kernel has none of a
 * driver's page frames (EFAULT): they are a window of smartio.ko, which makes it read as ones
 * before it sends the event that the path is down, and takes that back before it says that the path
 * is up.
 */
int sio_live_map_aside(struct sio_world *w, void *at, size_t len, void **ret)
{
	void *p = mremap(at, 0, len, MREMAP_MAYMOVE);
	int rc;

	*ret = NULL;
	if (p == MAP_FAILED)
		return errno == EFAULT ? 0 : -errno;
	rc = sio_live_map_ones(w, at, len);
	if (rc < 0) {
		munmap(p, len);
		return rc;
	}
	*ret = p;
	return 0;
}

int sio_live_map_back(struct sio_world *w, void *aside, void *at, size_t len)
{
	int rc = 0;

	(void)w;
	if (!aside)
		return 0;
	UNDER_READERS_BEGIN;
	if (mremap(aside, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		rc = -errno;
	UNDER_READERS_END;
	return rc;
}

void sio_live_unmap(struct sio_world *w, void *at, size_t len)
{
	(void)w;
	munmap(at, len);
}

unsigned sio_live_wake_ways(struct sio_world *w)
{
	static const struct {
		const char *name;
		unsigned ways;
	} known[] = {{"", SIO_WAKE_TIMER | SIO_WAKE_FAULT | SIO_WAKE_EVENT},
		     {"timer", SIO_WAKE_TIMER},
		     {"fault", SIO_WAKE_FAULT},
		     {"eventfd", SIO_WAKE_TIMER | SIO_WAKE_EVENT}};
	const char *wanted = getenv("SMARTIO_WAKE");

	(void)w;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, wanted ? wanted : ""))
			return known[i].ways;
	return 0;
}

static int register_pages(int fd, void *at, size_t len)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
	struct uffdio_register reg = {.range = {.start = (uintptr_t)at, .len = len},
				      .mode = UFFDIO_REGISTER_MODE_WP};

	/* A kernel that cannot write-protect shared memory refuses the feature. */
	if (ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &reg) < 0)
		return -EOPNOTSUPP;
	return reg.ioctls & 1ull << _UFFDIO_WRITEPROTECT ? 0 : -EOPNOTSUPP;
}

int sio_live_fault_new(struct sio_world *w, void *at, size_t len)
{
	int fd, rc;

	sio_live_fds_lock();
	/*
	 * User-mode faults alone need no privilege, but system calls that store there fail with
	 * EFAULT.
	 */
	fd = sio_live_own(
		(int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
	sio_live_fds_unlock();
	if (fd < 0)
		return fd == -EMFILE || fd == -ENOMEM ? fd : -EOPNOTSUPP;
	rc = register_pages(fd, at, len);
	if (rc == 0)
		return fd;
	sio_live_close(w, fd);
	return rc;
}
