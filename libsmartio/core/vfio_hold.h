/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does any process have a function of VFIO open? Where a group has several functions the kernel
 * does not report this for one of them: who opens its group finds it busy, and who unbinds it waits
 * until it is closed. So smartio-vfio takes a lock with the function's descriptor, which ends with
 * the last copy of that descriptor, in whatever process, and the last mapping made by it.
 */
#ifndef CORE_VFIO_HOLD_H
#define CORE_VFIO_HOLD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define SIO_VFIO_HOLD 0x5646494f00000000ll /* where nobody else locks */

/*
 * A byte of a lock file for each function: "0000:05:00.0". Files without a name share one inode,
 * and so these bytes.
 */
static inline struct flock sio_vfio_lock(const char *name)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	unsigned domain = 0, bus = 0, slot = 0, function = 0;

	sscanf(name, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
	l.l_start = SIO_VFIO_HOLD + (off_t)(domain << 16 | bus << 8 | slot << 3 | function);
	return l;
}

/* @fd: VFIO's descriptor of the function. 0 or -errno. */
static inline int sio_vfio_hold(int fd, const char *name)
{
	struct flock l = sio_vfio_lock(name);

	return fcntl(fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}

/*
 * @fd: the descriptor of the function's own node; or of any file without a name, such as an
 * eventfd.
 */
static inline bool sio_vfio_is_held(int fd, const char *name)
{
	struct flock l = sio_vfio_lock(name);

	return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

#endif
