/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "eventfd/eventfd.h"

#define BATCH 32  /* of one system call */
#define EVENTS 64 /* completions that the kernel keeps for us, at least */

int sio_eventfd_open(struct sio_eventfd *e)
{
	memset(e, 0, sizeof(*e));
	pthread_mutex_init(&e->mutex, NULL);
	e->nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return e->nothing < 0 ? -errno : 0;
}

int sio_eventfd_start(struct sio_eventfd *e)
{
	unsigned long context = 0;

	if (e->context)
		return 0;
	if (syscall(SYS_io_setup, EVENTS, &context) < 0)
		return -errno;
	e->context = context;
	return 0;
}

void sio_eventfd_close(struct sio_eventfd *e)
{
	if (e->context)
		syscall(SYS_io_destroy, e->context);
	if (e->nothing >= 0)
		close(e->nothing);
	pthread_mutex_destroy(&e->mutex);
}

static int add_by_write(int fd, uint64_t count)
{
	ssize_t n;

	do
		n = write(fd, &count, sizeof(count));
	while (n < 0 && errno == EINTR);
	return n < 0 && errno != EAGAIN ? -errno : 0;
}

/* Each was over before its io_submit() returned. */
static void forget_completions(struct sio_eventfd *e)
{
	struct timespec at_once = {0};
	struct io_event events[BATCH];

	while (e->unread > 0) {
		long n = syscall(SYS_io_getevents, e->context, 0, BATCH, events, &at_once);

		if (n <= 0)
			break;
		e->unread -= (unsigned)n < e->unread ? (unsigned)n : e->unread;
	}
}

/* At most BATCH. Return: how many; -errno. */
static long submit(struct sio_eventfd *e, int fd, unsigned count)
{
	char byte;
	struct iocb one = {.aio_lio_opcode = IOCB_CMD_PREAD,
			   .aio_fildes = (uint32_t)e->nothing,
			   .aio_buf = (uintptr_t)&byte,
			   .aio_nbytes = sizeof(byte),
			   .aio_flags = IOCB_FLAG_RESFD,
			   .aio_resfd = (uint32_t)fd};
	struct iocb *all[BATCH];
	long n;

	for (unsigned i = 0; i < count; i++)
		all[i] = &one;
	if (e->unread + count > EVENTS)
		forget_completions(e);
	n = syscall(SYS_io_submit, e->context, (long)count, all);
	if (n < 0)
		return -errno;
	e->unread += (unsigned)n;
	return n;
}

int sio_eventfd_add(struct sio_eventfd *e, int fd, uint64_t count)
{
	uint64_t left = count < SIO_EVENTFD_MOST ? count : SIO_EVENTFD_MOST;
	long n = 0;

	if (!e->context)
		return add_by_write(fd, left);
	pthread_mutex_lock(&e->mutex);
	while (n >= 0 && left > 0) {
		n = submit(e, fd, left < BATCH ? (unsigned)left : BATCH);
		left -= n > 0 ? (uint64_t)n : 0;
	}
	pthread_mutex_unlock(&e->mutex);
	/* Not an eventfd, but something of a driver's. */
	return n == -EINVAL ? add_by_write(fd, left) : n < 0 ? (int)n : 0;
}

int sio_eventfd_take(int fd, uint64_t *ret_count)
{
	struct iovec iov = {.iov_base = ret_count, .iov_len = sizeof(*ret_count)};
	ssize_t n = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	if (n < 0 && errno == EOPNOTSUPP)
		n = read(fd, ret_count, sizeof(*ret_count));
	if (n < 0)
		return -errno;
	return n == sizeof(*ret_count) ? 0 : -EAGAIN;
}

bool sio_eventfd_is(int fd)
{
	char path[64], what[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, what, sizeof(what) - 1);
	what[n > 0 ? n : 0] = '\0';
	return strcmp(what, "anon_inode:[eventfd]") == 0;
}
