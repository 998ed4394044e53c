/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/client.h"
#include "base/hint.h"
#include "cluster/keeper_wire.h"
#include "base/inherited.h"
#include "base/output.h"
#include "cluster/proctree.h"
#include "base/state.h"

struct keeper {
	const struct tool_keep *keep;
	struct tool_client client; /* fd -1: the program is not tied to a host */
	/* -1: the parent has left, which it may do once the program has ended */
	int channel;
	int signals;
	pid_t program; /* 0: it has ended */
	int program_fd;
	int log;     /* of a detached program; else -1 */
	bool others; /* descendants are left */
};

static void tell(struct keeper *k, int kind, int value, int more)
{
	struct keeper_msg m = {kind, value, more};

	if (k->channel >= 0)
		send(k->channel, &m, sizeof(m), MSG_NOSIGNAL);
}

static void set_environment(const struct tool_keep *k, pid_t keeper)
{
	char text[PATH_MAX + 32], hint[TOOL_HINT_TEXT];

	/* The first one: the command that names this cluster, for hints. */
	setenv("SMARTIO_COMMAND", tool_hint(k->dir, hint), 1);
	setenv("SMARTIO_STATE", k->dir, 1);
	unsetenv("SMARTIO_SOCKET");
	unsetenv("SMARTIO_NODE");
	unsetenv("SMARTIO_KEEPER");
	if (!k->host)
		return;
	snprintf(text, sizeof(text), "%s/node.%u", k->dir, k->node);
	setenv("SMARTIO_SOCKET", text, 1);
	setenv("SMARTIO_NODE", k->host, 1);
	snprintf(text, sizeof(text), "%d", (int)keeper);
	setenv("SMARTIO_KEEPER", text, 1);
}

/* The log gets its name once the program's process id is known. */
static int open_log(struct keeper *k, char *path, size_t size)
{
	struct sio_err err;

	if (!k->keep->detached)
		return 0;
	if (tool_path(path, size, &err, "%s/run.%u.new.%d", k->keep->dir, k->keep->node,
		      (int)getpid()) < 0)
		return tool_error("%s", err.text);
	k->log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (k->log < 0)
		return tool_error("%s: %s", path, strerror(errno));
	return 0;
}

/* @path: its name; set to the new one. */
static int name_log(struct keeper *k, char *path, size_t size)
{
	char name[PATH_MAX];
	struct sio_err err;

	if (tool_keep_log(k->keep, k->program, name, sizeof(name), &err) < 0)
		return tool_error("%s", err.text);
	if (rename(path, name) < 0)
		return tool_error("%s: %s", name, strerror(errno));
	snprintf(path, size, "%s", name);
	return 0;
}

/* A detached program has no input, and its output goes to its log. */
static void use_log(int log)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null >= 0)
		dup2(null, 0);
	dup2(log, 1);
	dup2(log, 2);
}

/* Each segment of a program is a descriptor: the program gets the user's hard limit of them. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* In the program's process: restores what the user's shell would have set, except for the limit. */
static void exec_program(const struct keeper *keeper_of, pid_t keeper, const sigset_t *mask,
			 int report)
{
	const struct tool_keep *k = keeper_of->keep;
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(TOOL_EXIT_KILLED);
	set_environment(k, keeper);
	raise_limits();
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (keeper_of->log >= 0)
		use_log(keeper_of->log);
	execvp(k->argv[0], k->argv);
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(TOOL_EXIT_NO_EXEC);
	_exit(error == ENOENT ? TOOL_EXIT_NO_FILE : TOOL_EXIT_NO_EXEC);
}

/* Reports that the program runs, or why not. Nobody waits any longer for a detached one. */
static int say_started(struct keeper *k, char *log, size_t size, int error)
{
	struct keeper_msg m = {KEEPER_STARTED, (int)k->program, 0};

	if (error)
		tool_error("'%s' cannot be run: %s", k->keep->argv[0], strerror(error));
	if (!k->keep->detached)
		return 0;
	if (error) {
		unlink(log);
		return 0;
	}
	if (name_log(k, log, size) == 0 &&
	    send(k->channel, &m, sizeof(m), MSG_NOSIGNAL) == sizeof(m))
		return 0;
	unlink(log);
	tool_proc_kill_descendants();
	return TOOL_EXIT_FAILURE;
}

static int start_program(struct keeper *k, const sigset_t *mask)
{
	char log[PATH_MAX] = "";
	pid_t self = getpid();
	int report[2], error = 0;
	ssize_t len;

	if (open_log(k, log, sizeof(log)) != 0)
		return TOOL_EXIT_FAILURE;
	if (pipe2(report, O_CLOEXEC) < 0) {
		error = errno;
		unlink(log);
		return tool_error("pipe: %s", strerror(error));
	}
	k->program = fork();
	if (k->program < 0) {
		error = errno;
		unlink(log);
		close(report[0]);
		close(report[1]);
		return tool_error("'%s' cannot be started: %s", k->keep->argv[0], strerror(error));
	}
	if (k->program == 0)
		exec_program(k, self, mask, report[1]);
	close(report[1]);
	k->program_fd = pidfd_open(k->program, 0);
	do
		len = read(report[0], &error, sizeof(error));
	while (len < 0 && errno == EINTR);
	close(report[0]);
	return say_started(k, log, sizeof(log), len == sizeof(error) ? error : 0);
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reaps processes that have ended. True: none is left, and the keeper's work is done. */
static bool reap(struct keeper *k)
{
	int status, result = -1;
	pid_t pid, program = k->program;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != k->program)
			continue;
		k->program = 0;
		result = status_of(status);
	}
	k->others = pid == 0;
	if (result < 0)
		return !k->others && !k->program;
	if (k->others && k->keep->kill_rest) {
		tool_proc_kill_descendants();
		k->others = false;
	}
	/* For a detached program this goes to the log. */
	if (k->keep->detached && k->log >= 0)
		dprintf(k->log, "smartio: '%s' (process %d) ended with exit status %d\n",
			k->keep->argv[0], (int)program, result);
	tell(k, KEEPER_EXITED, result, k->others);
	return !k->others;
}

static void __attribute__((noreturn)) kill_and_leave(struct keeper *k, bool crashed)
{
	unsigned n = tool_proc_kill_descendants();

	if (crashed && k->program && k->log >= 0)
		dprintf(k->log, "smartio: host %s is down; killed %u process%s\n", k->keep->host, n,
			n == 1 ? "" : "es");
	if (crashed && k->program)
		tell(k, KEEPER_CRASHED, (int)n, 0);
	_exit(0);
}

/* Signals of the terminal reach the program directly; our parent forwards the others. */
static bool take_signals(struct keeper *k)
{
	struct signalfd_siginfo info;
	bool done = false;

	while (read(k->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			done |= reap(k);
		else if (info.ssi_signo == SIGTERM && !k->program)
			kill_and_leave(k, false);
	}
	return done;
}

static void take_parent(struct keeper *k)
{
	struct keeper_msg m;
	ssize_t len = recv(k->channel, &m, sizeof(m), MSG_DONTWAIT);

	if (len == sizeof(m) && m.kind == KEEPER_SIGNAL && k->program) {
		pidfd_send_signal(k->program_fd, m.value, NULL, 0);
		return;
	}
	if (len != 0)
		return;
	if (k->program && !k->keep->detached)
		kill_and_leave(k, false);
	close(k->channel);
	k->channel = -1;
}

/* The daemon sends a keeper nothing; it hangs up when the host is gone. */
static bool daemon_gone(struct keeper *k)
{
	char packet[SIO_WIRE_MAX];
	ssize_t len;

	do
		len = recv(k->client.fd, packet, sizeof(packet), MSG_DONTWAIT);
	while (len > 0);
	return len == 0 || (errno != EAGAIN && errno != EINTR);
}

static void watch(struct keeper *k)
{
	for (;;) {
		struct pollfd p[3] = {{.fd = k->signals, .events = POLLIN},
				      {.fd = k->client.fd, .events = POLLIN},
				      {.fd = k->channel, .events = POLLIN}};

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			kill_and_leave(k, false);
		if (p[0].revents && take_signals(k))
			return;
		if (p[1].revents && daemon_gone(k))
			kill_and_leave(k, true);
		if (p[2].revents)
			take_parent(k);
	}
}

void keeper_main(const struct tool_keep *keep, int channel, const sigset_t *mask)
{
	struct keeper k = {
		.keep = keep, .client.fd = -1, .channel = channel, .program_fd = -1, .log = -1};
	char hint[TOOL_HINT_TEXT];
	struct sio_err err;
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGABRT);
	sigdelset(&set, SIGBUS);
	sigprocmask(SIG_SETMASK, &set, NULL);
	k.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		_exit(tool_error("keeper: %s", strerror(errno)));
	signal(SIGCHLD, SIG_DFL); /* with an ignored SIGCHLD waitpid() would find nobody */
	if (keep->detached)
		setsid();
	prctl(PR_SET_NAME, "smartio-keeper");
	if (keep->host &&
	    tool_client_open(&k.client, keep->dir, keep->node, SIO_CLIENT_KEEPER, &err) < 0)
		_exit(tool_error("host '%s' is down: %s; start it with: %s cluster restart-node %s",
				 keep->host, err.text, tool_hint(keep->dir, hint), keep->host));
	if (start_program(&k, mask) != 0)
		_exit(TOOL_EXIT_FAILURE);
	tool_close_inherited(
		2,
		(const int[]){k.channel, k.signals, k.client.fd, k.program_fd, keep->hold, k.log},
		6);
	watch(&k);
	_exit(0);
}
