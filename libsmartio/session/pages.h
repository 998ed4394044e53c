/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of the program that become a segment's memory: a file is mapped in their place. A child of
 * fork() gets a private copy of them, as of all other private memory. For world_live.c.
 */
#ifndef SESSION_PAGES_H
#define SESSION_PAGES_H

#include "session/world.h"

/*
 * Whole pages at @at, private, anonymous and writable, keep their contents and become a mapping of
 * @fd from its start. What other threads store there meanwhile is not lost (session/freeze.h).
 * -EFAULT: nothing is mapped there, or not for writing; -EOPNOTSUPP: pages of another kind; -EPERM:
 * there are other threads, and the kernel does not allow us to stop their accesses; -EBUSY: the
 * program has a userfaultfd there; -ENOMEM, -EMFILE.
 */
int sio_pages_adopt(struct sio_world *w, void *at, size_t len, int fd);
/*
 * Makes the pages private again, with their contents, as far as the program still has them there.
 * @fd: the same file's. -ENOMEM, -EMFILE; -EPERM, -EOPNOTSUPP: as above. Then they stay shared.
 */
int sio_pages_release(struct sio_world *w, void *at, size_t len, int fd);

/* To be called before and after fork(). */
void sio_pages_before_fork(void);
void sio_pages_after_fork(bool child);

#endif
