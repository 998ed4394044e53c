/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a daemon in the cluster's state directory: pid file and sockets. */
#ifndef SMARTIOD_LIVE_FILE_H
#define SMARTIOD_LIVE_FILE_H

#include <sys/types.h>

#include "core/err.h"

/*
 * Write our pid into @path and hold its lock until the descriptor is closed.
 * Return: 0; -EBUSY: another process holds it; -errno.
 */
int live_pid_file(const char *path, int *ret_fd, struct sio_err *reterr);
/*
 * Whether process @pid is the one that live_pid_file() let have @path: the file names it, and it
 * has the lock. Return: 0; -ESRCH with a text: it is not.
 */
int live_pid_check(const char *path, pid_t pid, struct sio_err *reterr);
/* A listening SOCK_SEQPACKET socket at @path; a stale one is replaced (the pid file is ours). */
int live_listen(const char *path, int *ret_fd, struct sio_err *reterr);
/*
 * Let the members of a group connect to the socket at @path, too. Return: 0; -ENOENT: there is no
 * such group, and nothing has changed; another -errno.
 */
int live_share(const char *path, const char *group, struct sio_err *reterr);
/* Make the directory @path if it is not there, for all to look into and for us to write. */
int live_folder(const char *path, struct sio_err *reterr);
/* Connect to one. Never waits. */
int live_connect(const char *path, int *ret_fd, struct sio_err *reterr);

#endif
