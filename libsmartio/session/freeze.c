/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/freeze.h"

#ifndef USERFAULTFD_IOC_NEW /* Linux 6.1 */
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

#define BELOW_STACK 65536 /* bytes of the stack that the functions called from here may use */

/* ---- the descriptor ---- */

/*
 * A descriptor that covers user-mode accesses only makes system calls that store there fail with
 * EFAULT.
 */
static int open_uffd(void)
{
	int device, fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		return fd;
	device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (device >= 0) {
		fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
		close(device);
		if (fd >= 0)
			return fd;
	}
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	return fd < 0 ? -errno : fd;
}

/* Number of threads of this process; 0 if /proc does not say. */
static unsigned count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned n = 0;

	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

int sio_freeze_begin(struct sio_freeze *f, void *at, size_t len, unsigned own)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features =
					 UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP};
	char *here = __builtin_frame_address(0), *end = (char *)at + len;
	char *own_errno = (char *)&errno;
	sigset_t all;
	unsigned n;

	*f = (struct sio_freeze){.fd = -1, .at = at, .len = len};
	if ((here >= (char *)at && here - BELOW_STACK < end) ||
	    (own_errno >= (char *)at && own_errno < end))
		return -EOPNOTSUPP;
	f->fd = open_uffd();
	if (f->fd == -EMFILE || f->fd == -ENFILE || f->fd == -ENOMEM)
		return f->fd;
	if (f->fd >= 0 && ioctl(f->fd, UFFDIO_API, &api) < 0) {
		close(f->fd);
		f->fd = -ENOSYS;
	}
	if (f->fd < 0) {
		f->fd = -1;
		n = count_threads();
		if (n == 0 || n > 1 + own)
			return -EPERM;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &f->signals);
	return 0;
}

/*
 * Wakes the waiting threads itself before it closes the descriptor: a child of vfork() may have a
 * copy of @f->fd, and then closing it here wakes nobody.
 */
void sio_freeze_end(struct sio_freeze *f)
{
	struct uffdio_range range = {.start = (uintptr_t)f->at, .len = f->len};

	if (f->fd >= 0) {
		ioctl(f->fd, UFFDIO_WAKE, &range);
		close(f->fd);
	}
	f->fd = -1;
	if (f->has_reader) /* not earlier: pthread_join() frees memory, perhaps in these pages */
		pthread_join(f->reader, NULL);
	pthread_sigmask(SIG_SETMASK, &f->signals, NULL);
}

/* ---- stores wait ---- */

int sio_freeze_stores(struct sio_freeze *f, void *at, size_t len)
{
	struct uffdio_register reg = {.range = {.start = (uintptr_t)at, .len = len},
				      .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect wp = {.range = reg.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};

	if (f->fd < 0)
		return 0;
	if (ioctl(f->fd, UFFDIO_REGISTER, &reg) < 0)
		return -errno;
	/* A page that was never touched has no page table entry that could be write-protected. */
	if (madvise(at, len, MADV_POPULATE_READ) < 0)
		return -errno;
	while (ioctl(f->fd, UFFDIO_WRITEPROTECT, &wp) < 0)
		if (errno != EAGAIN && errno != EINTR)
			return errno == ENOENT ? -EFAULT : -errno;
	return 0;
}

/* ---- all accesses wait ---- */

/* mremap() of a registered range returns only when this event has been read. */
static void *take_remap_event(void *arg)
{
	const int *fd = arg;
	struct uffd_msg msg = {0};

	/* Page faults of threads that wait already are read before it. */
	while (msg.event != UFFD_EVENT_REMAP)
		if (read(*fd, &msg, sizeof(msg)) != sizeof(msg))
			msg.event = 0;
	return NULL;
}

int sio_freeze_all(struct sio_freeze *f)
{
	char *blank =
		mmap(NULL, f->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register reg = {.range = {.start = (uintptr_t)blank, .len = f->len},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};

	if (blank == MAP_FAILED)
		return -ENOMEM;
	if (f->fd < 0) {
		munmap(blank, f->len);
		return 0;
	}
	if (ioctl(f->fd, UFFDIO_REGISTER, &reg) < 0 ||
	    pthread_create(&f->reader, NULL, take_remap_event, &f->fd) != 0) {
		munmap(blank, f->len);
		return -ENOMEM;
	}
	if (mremap(blank, f->len, f->len, MREMAP_MAYMOVE | MREMAP_FIXED, f->at) == MAP_FAILED) {
		pthread_cancel(f->reader);
		pthread_join(f->reader, NULL);
		munmap(blank, f->len);
		return -ENOMEM;
	}
	f->has_reader = true;
	return 0;
}
