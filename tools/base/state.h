/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State directories: where a cluster's files lie, which clusters exist, which programs run.
 *
 * A directory belongs to the command that holds flock() on it; up, down and restart-node do while
 * they change it. A program of the cluster lives if the process that its pid file names has that
 * very file open; otherwise the pid file is stale, from a crash.
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

/* The state of a virtual machine that `smartio machine` runs. */
enum tool_machine_state {
	TOOL_MACHINE_OFF,     /* never started, or it ended in order */
	TOOL_MACHINE_RUNNING, /* its QEMU lives */
	TOOL_MACHINE_KILLED,  /* its QEMU died otherwise than in order */
};

struct tool_program {
	char name[SIO_NAME_LEN +
		  16]; /* "emu", "smartiod.4", "machine.8": its files are NAME.pid, NAME.log */
	pid_t pid;
	int pidfd; /* the caller closes it */
};

/*
 * The base directory of clusters whose place is not given: made (0700) if it is missing; its owner
 * is checked.
 */
int tool_state_base(char *dir, size_t size, struct sio_err *reterr);
/* The clusters that run under the base directory, sorted; free each name and the list. */
int tool_state_list(char ***ret_names, size_t *ret_n, enum tool_state state, bool hidden,
		    struct sio_err *reterr);
/* A cluster's directory from its name. */
int tool_state_path(const char *name, char *dir, size_t size, struct sio_err *reterr);
/*
 * Finds the cluster of a command: --state, --cluster, $SMARTIO_STATE, else the only one that runs.
 * Return: 0: it has been brought up; -ENOENT: none; -EEXIST: several.
 */
int tool_state_find(const char *state, const char *name, char *dir, size_t size,
		    struct sio_err *reterr);

enum tool_state tool_state_probe(const char *dir);
/* Locks @dir until the descriptor is closed. -EBUSY: another command changes it; -ENOENT. */
int tool_state_lock(const char *dir, int *ret_fd, struct sio_err *reterr);
/* Is it a directory of this user into which nobody else can put files? */
int tool_state_check_private(const char *dir, struct sio_err *reterr);
/* Removes a cluster's files from @dir. */
int tool_state_clean(const char *dir, struct sio_err *reterr);
/* Removes a cluster's files and @dir. -ENOTEMPTY: there are other files. */
int tool_state_remove(const char *dir, struct sio_err *reterr);
/* Do all sockets of @t fit into @dir? Otherwise the text names path and limit. */
int tool_state_check_length(const char *dir, const struct sio_topology *t, struct sio_err *reterr);
/* The topology that the cluster in @dir was brought up from; sio_topology_free(). */
int tool_state_topology(const char *dir, struct sio_topology **ret, struct sio_err *reterr);

/* Finds a living program. -ESRCH: it does not run. @ret->pidfd is -1 unless @want_fd. */
int tool_state_program(const char *dir, const char *name, bool want_fd, struct tool_program *ret);
/*
 * Finds a daemon that does not run any more and may not have ended yet: a killed process closes its
 * files, its lock among them, before it ends. Return: a pidfd, which the caller closes; -ESRCH:
 * none.
 */
int tool_state_dying(const char *dir, const char *name);
/* Counts files in @dir that do not belong to a cluster. Return: how many. */
unsigned tool_state_strangers(const char *dir);
/* Finds all living programs by their pid files, with descriptors. Return: how many; free(*ret). */
unsigned tool_state_programs(const char *dir, struct tool_program **ret);
/* Removes what the daemon of a host that is gone left, but for its log. */
void tool_state_forget(const char *dir, uint32_t node);
/* "emu", or "smartiod.4" for a node. */
void tool_state_daemon_name(uint32_t node, char *name, size_t size);

/* "machine.4" for the virtual machine of a node. */
void tool_state_machine_name(uint32_t node, char *name, size_t size);
/* The state of a node's machine. @ret_pid: of its QEMU; 0 unless it runs; may be NULL. */
enum tool_machine_state tool_state_machine(const char *dir, uint32_t node, pid_t *ret_pid);
/* "off", "running", "killed". */
const char *tool_machine_state_name(enum tool_machine_state state);

/* snprintf for paths. -ENAMETOOLONG with a text. */
int tool_path(char *path, size_t size, struct sio_err *reterr, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
