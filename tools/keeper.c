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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "hint.h"
#include "keeper_wire.h"
#include "letgo.h"
#include "output.h"
#include "proctree.h"
#include "state.h"

struct keeper {
	const struct tool_keep *keep;
	struct tool_client client; /* fd -1: not tied to a host */
	int channel;		   /* -1: the parent left, as it may when the program has ended */
	int signals;
	pid_t program; /* 0: it has ended */
	int program_fd;
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
	char text[PATH_MAX + 32];

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

/* In the program's process: as the user's shell would have started it. */
static void exec_program(const struct tool_keep *k, pid_t keeper, const sigset_t *mask, int report)
{
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(TOOL_EXIT_KILLED);
	set_environment(k, keeper);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(k->argv[0], k->argv);
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(TOOL_EXIT_NO_EXEC);
	_exit(error == ENOENT ? TOOL_EXIT_NO_FILE : TOOL_EXIT_NO_EXEC);
}

static int start_program(struct keeper *k, const sigset_t *mask)
{
	pid_t self = getpid();
	int report[2], error = 0;
	ssize_t len;

	if (pipe2(report, O_CLOEXEC) < 0)
		return tool_error("pipe: %s", strerror(errno));
	k->program = fork();
	if (k->program < 0) {
		error = errno;
		close(report[0]);
		close(report[1]);
		return tool_error("'%s' cannot be started: %s", k->keep->argv[0], strerror(error));
	}
	if (k->program == 0)
		exec_program(k->keep, self, mask, report[1]);
	close(report[1]);
	k->program_fd = pidfd_open(k->program, 0);
	do
		len = read(report[0], &error, sizeof(error));
	while (len < 0 && errno == EINTR);
	close(report[0]);
	if (len == sizeof(error))
		tool_error("'%s' cannot be run: %s", k->keep->argv[0], strerror(error));
	return 0;
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reap who has ended. True: nobody is left, the keeper's work is done. */
static bool reap(struct keeper *k)
{
	int status, result = -1;
	pid_t pid;

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
	tell(k, KEEPER_EXITED, result, k->others);
	return !k->others;
}

static void __attribute__((noreturn)) kill_and_leave(struct keeper *k, bool crashed)
{
	unsigned n = tool_proc_kill_descendants();

	if (crashed && k->program)
		tell(k, KEEPER_CRASHED, (int)n, 0);
	_exit(0);
}

/* Signals of the terminal reach the program by themselves; our parent forwards the others. */
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
	if (k->program)
		kill_and_leave(k, false);
	close(k->channel);
	k->channel = -1;
}

/* The daemon tells a keeper nothing but, by hanging up, that the host is gone. */
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
	struct keeper k = {.keep = keep, .client.fd = -1, .channel = channel, .program_fd = -1};
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
	signal(SIGCHLD, SIG_DFL); /* ignored, nobody could be reaped */
	prctl(PR_SET_NAME, "smartio-keeper");
	if (keep->host &&
	    tool_client_open(&k.client, keep->dir, keep->node, SIO_CLIENT_KEEPER, &err) < 0)
		_exit(tool_error("host '%s' is down: %s; start it with: %s cluster restart-node %s",
				 keep->host, err.text, tool_hint(keep->dir, hint), keep->host));
	if (start_program(&k, mask) != 0)
		_exit(TOOL_EXIT_FAILURE);
	tool_let_go(2, (const int[]){k.channel, k.signals, k.client.fd, k.program_fd, keep->hold},
		    5);
	watch(&k);
	_exit(0);
}
