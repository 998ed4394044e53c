/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adding to eventfds of which programs have copies. Such a descriptor shares its flags with the
 * copies: a program that clears O_NONBLOCK and fills the counter would block a plain write() for as
 * long as it likes. So the kernel is asked to add: a Linux AIO read of nothing completes at once,
 * and its notification (IOCB_FLAG_RESFD) never blocks; a full counter stays full.
 */
#ifndef EVENTFD_EVENTFD_H
#define EVENTFD_EVENTFD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct sio_eventfd {
	unsigned long context; /* of AIO; 0: not started, and write() is all there is */
	int nothing;	       /* what is read */
	unsigned unread;       /* completions */
	pthread_mutex_t mutex;
};

/* Return: 0; -errno: no descriptor. Close it in either case. */
int sio_eventfd_open(struct sio_eventfd *e);
/*
 * Takes what it needs of the kernel; a repeated call is no error. Apart from open(), because a
 * process that has an AIO context takes some 30 ms to end. Return: 0; -errno: the kernel has no AIO
 * for us (-ENOSYS, -EPERM, -EAGAIN: fs.aio-max-nr). Then @e works all the same, but by write(),
 * which can be blocked.
 */
int sio_eventfd_start(struct sio_eventfd *e);
void sio_eventfd_close(struct sio_eventfd *e);
/*
 * Adds @count to @fd; never blocks. @fd may be another descriptor that takes 8 bytes as an eventfd
 * does: it is written to. More than SIO_EVENTFD_MOST counts as that many. From any thread. Return:
 * 0, also if the counter is full; -errno.
 */
#define SIO_EVENTFD_MOST 65536u
int sio_eventfd_add(struct sio_eventfd *e, int fd, uint64_t count);
/* Does the kernel call @fd an eventfd? */
bool sio_eventfd_is(int fd);
/*
 * Takes what was added; the counter is 0 then. Never blocks. Return: 0; -EAGAIN: nothing; -errno.
 */
int sio_eventfd_take(int fd, uint64_t *ret_count);

#endif
