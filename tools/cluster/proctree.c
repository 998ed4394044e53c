/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"
#include "cluster/proctree.h"

/* Processes that were killed, so that each is counted once. */
struct victims {
	struct tool_proc *proc;
	size_t n;
};

int tool_proc_parse(const char *stat, struct tool_proc *ret)
{
	const char *after = strrchr(stat, ')');
	struct tool_proc p = {0};
	unsigned long long start;
	int pid, ppid;

	if (!after || sscanf(stat, "%d (", &pid) != 1)
		return -EINVAL;
	/* Fields 3 (state), 4 (ppid) and 22 (starttime) of proc(5). */
	if (sscanf(after + 1,
		   " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		   &p.state, &ppid, &start) != 3)
		return -EINVAL;
	p.pid = pid;
	p.ppid = ppid;
	p.start = start;
	*ret = p;
	return 0;
}

static int read_proc(pid_t pid, struct tool_proc *ret)
{
	char path[64], text[1024];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return -ESRCH;
	text[len] = '\0';
	return tool_proc_parse(text, ret);
}

static int by_pid(const void *a, const void *b)
{
	const struct tool_proc *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int tool_proc_scan(struct tool_proc **ret, size_t *ret_n)
{
	struct tool_proc *list = NULL, p;
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    read_proc((pid_t)atol(entry->d_name), &p) < 0)
			continue;
		list = tool_grow(list, n + 1, sizeof(*list));
		list[n++] = p;
	}
	closedir(dir);
	if (n > 1)
		qsort(list, n, sizeof(*list), by_pid);
	*ret = list;
	*ret_n = n;
	return 0;
}

const struct tool_proc *tool_proc_find(const struct tool_proc *p, size_t n, pid_t pid)
{
	struct tool_proc key = {.pid = pid};

	return n ? bsearch(&key, p, n, sizeof(*p), by_pid) : NULL;
}

bool tool_proc_is_below(const struct tool_proc *p, size_t n, pid_t pid, pid_t root)
{
	const struct tool_proc *at = tool_proc_find(p, n, pid);

	for (size_t steps = 0; at && steps < n; steps++) {
		if (at->ppid == root)
			return true;
		at = tool_proc_find(p, n, at->ppid);
	}
	return false;
}

static bool is_new(struct victims *v, const struct tool_proc *p)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->proc[i].pid == p->pid && v->proc[i].start == p->start)
			return false;
	v->proc = tool_grow(v->proc, v->n + 1, sizeof(*v->proc));
	v->proc[v->n++] = *p;
	return true;
}

/*
 * Once opened, the descriptor means one process for good, so the start time is compared afterwards.
 */
static void kill_one(struct victims *v, const struct tool_proc *p)
{
	struct tool_proc now;
	int fd = pidfd_open(p->pid, 0);

	if (fd < 0)
		return;
	if (read_proc(p->pid, &now) == 0 && now.start == p->start && now.state != 'Z' &&
	    pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0)
		is_new(v, p);
	close(fd);
}

static void kill_pass(struct victims *v)
{
	struct tool_proc *p;
	size_t n;

	if (tool_proc_scan(&p, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (p[i].state != 'Z' && tool_proc_is_below(p, n, p[i].pid, getpid()))
			kill_one(v, &p[i]);
	free(p);
}

unsigned tool_proc_kill_descendants(void)
{
	struct victims v = {0};
	unsigned n;
	pid_t r;

	/*
	 * A process that loses its parent becomes a child of this one, so "no child is left" means
	 * that no descendant is left. Processes that are forked meanwhile are found in the next
	 * pass.
	 */
	do {
		kill_pass(&v);
		do
			r = waitpid(-1, NULL, 0);
		while (r < 0 && errno == EINTR);
		while (r > 0)
			r = waitpid(-1, NULL, WNOHANG);
	} while (r == 0);
	n = (unsigned)v.n;
	free(v.proc);
	return n;
}

static char *read_environ(pid_t pid, size_t *ret_len)
{
	char path[64], *text = NULL;
	size_t len = 0;
	ssize_t r;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	do {
		text = tool_grow(text, len + 4097, 1);
		r = read(fd, text + len, 4096);
		if (r > 0)
			len += (size_t)r;
	} while (r > 0);
	close(fd);
	text[len] = '\0';
	*ret_len = len;
	return text;
}

int tool_proc_env(pid_t pid, const char *name, char *value, size_t size)
{
	size_t len = 0, name_len = strlen(name);
	char *text = read_environ(pid, &len);
	int r = -ENOENT;

	if (!text)
		return -ESRCH;
	for (char *at = text; at < text + len; at += strlen(at) + 1) {
		if (strncmp(at, name, name_len) != 0 || at[name_len] != '=')
			continue;
		r = (size_t)snprintf(value, size, "%s", at + name_len + 1) < size ? 0 : -ERANGE;
		break;
	}
	free(text);
	return r;
}
