/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of processes as /proc shows it, and the killing of a branch of it. */
#ifndef TOOLS_PROCTREE_H
#define TOOLS_PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tool_proc {
	pid_t pid, ppid;
	uint64_t start; /* clock ticks since boot: tells two processes with one pid apart */
	char state;	/* as in /proc/PID/stat: 'Z' is dead and waits to be reaped */
};

/*
 * Parses /proc/PID/stat; the name in it may contain blanks and brackets.
 * Return: 0; -EINVAL: not such a text.
 */
int tool_proc_parse(const char *stat, struct tool_proc *ret);
/* All processes, ascending by pid; free(*ret). Return: 0; -errno. */
int tool_proc_scan(struct tool_proc **ret, size_t *ret_n);
/* The process with @pid in a scan; NULL: none. */
const struct tool_proc *tool_proc_find(const struct tool_proc *p, size_t n, pid_t pid);
/* Is @pid a descendant of @root? Also terminates if the tree changed during the scan. */
bool tool_proc_is_below(const struct tool_proc *p, size_t n, pid_t pid, pid_t root);

/*
 * Kill all descendants of this process, which must be a child subreaper, and reap them. Waits until
 * none is left.
 * Return: how many processes were killed.
 */
unsigned tool_proc_kill_descendants(void);

/* The value of @name in @pid's environment as it was started with. Return: 0; -ENOENT; -errno. */
int tool_proc_env(pid_t pid, const char *name, char *value, size_t size);

#endif
