/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/inherited.h"
#include "base/output.h"
#include "cluster/start.h"
#include "base/state.h"

#ifndef SMARTIO_LIBEXECDIR
#define SMARTIO_LIBEXECDIR "/usr/libexec/smartio"
#endif

static bool try_binary(const char *dir, const char *below, const char *name, char *path,
		       size_t size)
{
	char there[PATH_MAX], real[PATH_MAX];

	return tool_path(there, sizeof(there), NULL, "%s/%s%s", dir, below, name) == 0 &&
	       access(there, X_OK) == 0 && realpath(there, real) &&
	       tool_path(path, size, NULL, "%s", real) == 0;
}

static bool search_path(const char *name, char *path, size_t size)
{
	const char *env = getenv("PATH");
	char *copy, *rest, *dir;
	bool found = false;

	if (!env)
		return false;
	copy = rest = tool_strdup(env);
	while (!found && (dir = strsep(&rest, ":")))
		found = *dir == '/' && try_binary(dir, "", name, path, size);
	free(copy);
	return found;
}

int tool_find_binary(const char *name, char *path, size_t size, struct sio_err *reterr)
{
	static const char *const below[] = {
		"",	   "../smartiod/",	 "../emu/", "../drivers/nvme-user/", "../sbin/",
		"../bin/", "../libexec/smartio/"};
	const char *bindir = getenv("SMARTIO_BINDIR");
	char self[PATH_MAX] = "", *dir;
	ssize_t len;

	if (bindir && *bindir) {
		if (try_binary(bindir, "", name, path, size))
			return 0;
		return sio_fail(reterr, -ENOENT, "SMARTIO_BINDIR=%s holds no program %s", bindir,
				name);
	}
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len > 0) {
		dir = dirname(self);
		for (unsigned i = 0; i < sizeof(below) / sizeof(below[0]); i++)
			if (try_binary(dir, below[i], name, path, size))
				return 0;
	}
	if (try_binary(SMARTIO_LIBEXECDIR, "", name, path, size) || search_path(name, path, size))
		return 0;
	return sio_fail(reterr, -ENOENT,
			"the program %s is neither beside smartio nor in PATH; set "
			"SMARTIO_BINDIR to its directory",
			name);
}

const char *tool_hint_program(const char *name, char text[TOOL_HINT_TEXT])
{
	char path[PATH_MAX];

	if (strchr(program_invocation_name, '/') &&
	    tool_find_binary(name, path, sizeof(path), NULL) == 0)
		return tool_hint_word(path, text, TOOL_HINT_TEXT);
	return tool_hint_word(name, text, TOOL_HINT_TEXT);
}

/* In the child: it inherits only the log and the ready descriptor. */
static void exec_program(const char *binary, const char *dir, const char *name, int log, int ready,
			 bool tied, pid_t parent)
{
	char topology[PATH_MAX + 16], fd[16];
	const char *argv[] = {binary,	    "--topology", topology, "--state", dir,
			      "--ready-fd", fd,		  NULL,	    NULL,      NULL};
	sigset_t none;

	snprintf(topology, sizeof(topology), "%s/topology.yaml", dir);
	snprintf(fd, sizeof(fd), "%d", ready);
	if (strncmp(name, "smartiod.", 9) == 0) {
		argv[7] = "--node";
		argv[8] = name + 9;
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (tied) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
	}
	tool_leave_terminal();
	tool_close_inherited(0, (const int[]){log, ready}, 2);
	if (dup2(log, 1) < 0 || dup2(log, 2) < 0 || fcntl(ready, F_SETFD, 0) < 0)
		_exit(1);
	execv(binary, (char *const *)argv);
	dprintf(2, "%s: %s\n", binary, strerror(errno));
	_exit(1);
}

int tool_start(const char *dir, const char *name, bool tied, struct tool_started *ret,
	       struct sio_err *reterr)
{
	const char *program = strcmp(name, "emu") == 0 ? "smartio-emu" : "smartiod";
	struct tool_started s = {.pidfd = -1, .ready_fd = -1};
	char binary[PATH_MAX];
	pid_t parent = getpid();
	int log, ready[2], r;

	r = tool_find_binary(program, binary, sizeof(binary), reterr);
	if (r == 0)
		r = tool_path(s.log, sizeof(s.log), reterr, "%s/%s.log", dir, name);
	if (r < 0)
		return r;
	snprintf(s.name, sizeof(s.name), "%s", name);
	log = open(s.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (log < 0)
		return sio_fail(reterr, -errno, "%s: %s", s.log, strerror(errno));
	if (pipe2(ready, O_CLOEXEC) < 0) {
		r = sio_fail(reterr, -errno, "pipe: %s", strerror(errno));
		goto close_log;
	}
	fflush(NULL);
	s.pid = fork();
	if (s.pid < 0) {
		r = sio_fail(reterr, -errno, "%s cannot be started: %s", program, strerror(errno));
		close(ready[0]);
		goto close_ready;
	}
	if (s.pid == 0)
		exec_program(binary, dir, name, log, ready[1], tied, parent);
	s.pidfd = pidfd_open(s.pid, 0);
	s.ready_fd = ready[0];
	*ret = s;
close_ready:
	close(ready[1]);
close_log:
	close(log);
	return r;
}

/* The last line of a log, without the line end. */
static void last_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[2048];
	off_t end;
	ssize_t len;
	char *at;

	snprintf(line, size, "it said nothing");
	if (fd < 0)
		return;
	end = lseek(fd, 0, SEEK_END);
	len = pread(fd, text, sizeof(text) - 1,
		    end > (off_t)sizeof(text) - 1 ? end - ((off_t)sizeof(text) - 1) : 0);
	close(fd);
	while (len > 0 && text[len - 1] == '\n')
		len--;
	if (len <= 0)
		return;
	text[len] = '\0';
	at = strrchr(text, '\n');
	snprintf(line, size, "%.180s", at ? at + 1 : text);
}

static int start_failed(const struct tool_started *s, const char *how, struct sio_err *reterr)
{
	char line[200];

	last_line(s->log, line, sizeof(line));
	return sio_fail(reterr, -EIO, "%s %s: %s",
			strcmp(s->name, "emu") == 0 ? "smartio-emu" : s->name, how, line);
}

int tool_start_wait(struct tool_started *s, int cancel_fd, struct sio_err *reterr)
{
	struct pollfd p[2] = {{.fd = s->ready_fd, .events = POLLIN},
			      {.fd = cancel_fd, .events = POLLIN}};
	int64_t deadline = tool_now_ms() + TOOL_START_MS, left;
	char text[8] = "";
	ssize_t len;
	int r;

	do {
		left = deadline - tool_now_ms();
		r = poll(p, 2, left > 0 ? (int)left : 0);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return sio_fail(reterr, -errno, "poll: %s", strerror(errno));
	if (r == 0)
		return start_failed(s, "was not ready in 30 seconds", reterr);
	if (p[1].revents)
		return sio_fail(reterr, -EINTR, "interrupted");
	len = read(s->ready_fd, text, sizeof(text) - 1);
	if (len <= 0 || strncmp(text, "ready", 5) != 0)
		return start_failed(s, "did not start", reterr);
	return 0;
}

void tool_start_release(struct tool_started *s)
{
	if (s->ready_fd >= 0)
		close(s->ready_fd);
	if (s->pidfd >= 0)
		close(s->pidfd);
	s->ready_fd = s->pidfd = -1;
}

void tool_start_stop(struct tool_started *s)
{
	if (s->pid > 0) {
		tool_stop_all(&s->pidfd, 1);
		waitpid(s->pid, NULL, 0);
	}
	s->pid = 0;
	tool_start_release(s);
}

/* Waits until all have ended, or until the deadline. Return: true: all have ended. */
static bool wait_all(const int *pidfds, unsigned n, int64_t deadline)
{
	for (unsigned i = 0; i < n; i++) {
		struct pollfd p = {.fd = pidfds[i], .events = POLLIN};
		int64_t left;
		int r;

		do {
			left = deadline - tool_now_ms();
			r = poll(&p, 1, left > 0 ? (int)left : 0);
		} while (r < 0 && errno == EINTR);
		if (r == 0 && p.fd >= 0)
			return false;
	}
	return true;
}

void tool_stop_all(const int *pidfds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pidfd_send_signal(pidfds[i], SIGTERM, NULL, 0);
	if (wait_all(pidfds, n, tool_now_ms() + TOOL_STOP_MS))
		return;
	for (unsigned i = 0; i < n; i++)
		pidfd_send_signal(pidfds[i], SIGKILL, NULL, 0);
	wait_all(pidfds, n, tool_now_ms() + TOOL_STOP_MS);
}

bool tool_wait_all(const int *pidfds, unsigned n)
{
	return tool_wait_until(pidfds, n, TOOL_STOP_MS);
}

bool tool_wait_until(const int *pidfds, unsigned n, int ms)
{
	return wait_all(pidfds, n, tool_now_ms() + ms);
}
