/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of the program that became a segment's memory: a file is mapped in their place. A child of
 * fork() gets a private copy of them, as of all else that is private. For world_live.c.
 */
#ifndef SESSION_PAGES_H
#define SESSION_PAGES_H

#include "session/world.h"

/*
 * Whole pages at @at, private, anonymous and writable, keep their contents and become a mapping of
 * @fd from its start. Other threads must not write to them meanwhile. -EFAULT: nothing is mapped
 * there, or not for writing; -EOPNOTSUPP: pages of another kind; -ENOMEM.
 */
int sio_pages_adopt(struct sio_world *w, void *at, size_t len, int fd);
/* Private again, with their contents, as far as the program still has them there. -ENOMEM. */
int sio_pages_release(struct sio_world *w, void *at, size_t len);

/* Around fork(). */
void sio_pages_before_fork(void);
void sio_pages_after_fork(bool child);

#endif
