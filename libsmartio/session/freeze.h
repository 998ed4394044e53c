/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes other threads' accesses to pages of the program wait, by a userfaultfd, while these pages
 * are exchanged: so no store is lost between the copy of their contents and the exchange.
 *
 * What the kernel itself stores there for a system call of another thread (read(), say) waits, too,
 * if this process may have a userfaultfd for that: it is privileged (CAP_SYS_PTRACE), it may open
 * /dev/userfaultfd, or vm.unprivileged_userfaultfd is 1. Otherwise such a call fails with EFAULT:
 * the data is reported as not stored, and not lost.
 *
 * From sio_freeze_begin() to sio_freeze_end() the caller must not access the range except as
 * sio_freeze_stores() allows, nor allocate or free memory: malloc()'s data may lie there, and the
 * caller would wait for itself. Its signals are blocked.
 */
#ifndef SESSION_FREEZE_H
#define SESSION_FREEZE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct sio_freeze {
	int fd; /* the userfaultfd; -1: no thread is there that could access the range */
	char *at;
	size_t len;
	sigset_t signals; /* the thread's, before */
	pthread_t reader; /* of what mremap() waits for */
	bool has_reader;
};

/*
 * Prepares for pages at @at. -EPERM: the kernel allows no userfaultfd, and there are other threads
 * than the caller and @own of the library's, none of which accesses these pages; -EOPNOTSUPP: the
 * caller's stack lies there; -EMFILE, -ENOMEM. Only success needs sio_freeze_end().
 */
int sio_freeze_begin(struct sio_freeze *f, void *at, size_t len, unsigned own);
/*
 * From now on stores to a part of the range wait; loads see the present contents. The pages are
 * private and anonymous, of one mapping. -EBUSY: the program has a userfaultfd of its own there;
 * -EFAULT: it is not such a mapping any more; -ENOMEM and other errors of the kernel.
 */
int sio_freeze_stores(struct sio_freeze *f, void *at, size_t len);
/*
 * Whatever is mapped at the range is unmapped, in one step, and all accesses wait until something
 * else is mapped there. -ENOMEM: nothing has happened.
 */
int sio_freeze_all(struct sio_freeze *f);
/*
 * Threads that waited continue, with what is mapped there now. To be called after a failure, too.
 */
void sio_freeze_end(struct sio_freeze *f);

#endif
