/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State directories: where a cluster's files lie, which clusters there are, who runs them.
 *
 * A directory belongs to the command that holds flock() on it; up, down and restart-node do while
 * they change it. A program of the cluster lives if the process that its pid file names has that
 * very file open; anything else is left over from a crash (stale).
 */
#ifndef TOOLS_STATE_H
#define TOOLS_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/err.h"
#include "core/topology.h"

#define TOOL_SOCKET_PATH_MAX 107 /* bytes that sockaddr_un holds, its NUL aside */

enum tool_state {
	TOOL_STATE_ABSENT,  /* no directory, or an empty one */
	TOOL_STATE_FOREIGN, /* a directory with other things in it */
	TOOL_STATE_STALE,   /* a cluster that ended without being taken down */
	TOOL_STATE_RUNNING, /* at least one of its programs lives */
};

struct tool_program {
	char name[SIO_NAME_LEN + 16]; /* "emu", "smartiod.4": its files are NAME.pid, NAME.log */
	pid_t pid;
	int pidfd; /* the caller closes it */
};

/* Where clusters lie that are not told where: made (0700) if it is not there; owner checked. */
int tool_state_base(char *dir, size_t size, struct sio_err *reterr);
/* The clusters that run under the base directory, sorted; free each name and the list. */
int tool_state_list(char ***ret_names, size_t *ret_n, enum tool_state state, bool hidden,
		    struct sio_err *reterr);
/* A cluster's directory from its name. */
int tool_state_path(const char *name, char *dir, size_t size, struct sio_err *reterr);
/*
 * The cluster that a command means: --state, --cluster, $SMARTIO_STATE, else the only one that
 * runs. Return: 0: it has been brought up; -ENOENT: none; -EEXIST: several.
 */
int tool_state_find(const char *state, const char *name, char *dir, size_t size,
		    struct sio_err *reterr);

enum tool_state tool_state_probe(const char *dir);
/* Own @dir until the descriptor is closed. -EBUSY: another command changes it; -ENOENT. */
int tool_state_lock(const char *dir, int *ret_fd, struct sio_err *reterr);
/* A directory of ours that nobody else can put things into? */
int tool_state_check_private(const char *dir, struct sio_err *reterr);
/* Remove a cluster's files from @dir. */
int tool_state_clean(const char *dir, struct sio_err *reterr);
/* Remove a cluster's files and @dir. -ENOTEMPTY: something else lies there. */
int tool_state_remove(const char *dir, struct sio_err *reterr);
/* All sockets of @t fit into @dir? Else the text names path and limit. */
int tool_state_check_length(const char *dir, const struct sio_topology *t, struct sio_err *reterr);
/* The topology that the cluster in @dir was brought up from; sio_topology_free(). */
int tool_state_topology(const char *dir, struct sio_topology **ret, struct sio_err *reterr);

/* A living program. -ESRCH: it does not run. @ret->pidfd is -1 unless @want_fd. */
int tool_state_program(const char *dir, const char *name, bool want_fd, struct tool_program *ret);
/* Files in @dir that are no cluster's. Return: how many. */
unsigned tool_state_strangers(const char *dir);
/* All living programs by their pid files, with descriptors. Return: how many; free(*ret). */
unsigned tool_state_programs(const char *dir, struct tool_program **ret);
/* "emu", or "smartiod.4" for a node. */
void tool_state_daemon_name(uint32_t node, char *name, size_t size);

/* snprintf for paths. -ENAMETOOLONG with a text. */
int tool_path(char *path, size_t size, struct sio_err *reterr, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
