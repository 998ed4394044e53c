/* SPDX-License-Identifier: BSD-2-Clause */
/* The parent of the keeper: what the user sees of a program that runs on a host. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command.h"
#include "cluster/keeper_wire.h"
#include "base/forward.h"
#include "base/inherited.h"
#include "base/output.h"
#include "cluster/proctree.h"
#include "base/state.h"

struct parent {
	const struct tool_keep *keep;
	int channel, signals;
	pid_t keeper;
	/* the program has ended; the keeper stays with the processes that it started */
	bool exited, staying;
	int status;
};

/*
 * A signal of the terminal (SI_KERNEL) goes to its whole foreground group, the program included; a
 * signal that a process sent to this process alone is forwarded.
 */
static void take_signals(struct parent *p)
{
	struct signalfd_siginfo info;

	while (read(p->signals, &info, sizeof(info)) == sizeof(info)) {
		struct keeper_msg m = {KEEPER_SIGNAL, (int)info.ssi_signo, 0};

		if (info.ssi_signo == SIGCHLD)
			continue;
		if (info.ssi_code != SI_KERNEL)
			send(p->channel, &m, sizeof(m), MSG_NOSIGNAL);
		if (info.ssi_signo == SIGTSTP)
			kill(getpid(), SIGSTOP);
	}
}

static int say_started(const struct tool_keep *keep, int pid)
{
	char path[PATH_MAX];
	struct sio_err err;

	if (tool_keep_log(keep, pid, path, sizeof(path), &err) < 0)
		return tool_fail(&err);
	return tool_keep_say_log(path, pid, NULL);
}

/* Return: true: nothing more will come from the keeper. */
static bool take_keeper(struct parent *p)
{
	struct keeper_msg m;
	ssize_t len = recv(p->channel, &m, sizeof(m), MSG_DONTWAIT);

	/*
	 * The keeper left without reading our last signal: reported once, before the messages that
	 * it sent.
	 */
	if (len < 0 && errno == ECONNRESET)
		return false;
	if (len < 0)
		return errno != EAGAIN && errno != EINTR;
	if (len == 0)
		return true;
	p->exited = true;
	if (m.kind == KEEPER_STARTED) {
		p->staying = true;
		p->status = say_started(p->keep, m.value);
		return true;
	}
	if (m.kind == KEEPER_EXITED) {
		p->status = m.value;
		p->staying = m.more;
		return p->staying;
	}
	p->status = TOOL_EXIT_KILLED;
	tool_error("host %s is down; killed %d process%s", p->keep->host, m.value,
		   m.value == 1 ? "" : "es");
	return false;
}

static void wait_for_end(struct parent *p)
{
	struct pollfd fds[2] = {{.fd = p->channel, .events = POLLIN},
				{.fd = p->signals, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			take_signals(p);
		if (fds[0].revents && take_keeper(p))
			return;
	}
}

/* The keeper sent nothing: it failed to start (its status says why), or was killed. */
static int keeper_ended(struct parent *p)
{
	unsigned killed;
	int status = 0;
	pid_t r;

	do
		r = waitpid(p->keeper, &status, 0);
	while (r < 0 && errno == EINTR);
	if (p->exited)
		return p->status;
	if (r == p->keeper && WIFEXITED(status) && WEXITSTATUS(status) != 0)
		return WEXITSTATUS(status);
	killed = tool_proc_kill_descendants();
	tool_error("the keeper of this program was killed; killed %u process%s", killed,
		   killed == 1 ? "" : "es");
	return TOOL_EXIT_KILLED;
}

int tool_keep(const struct tool_keep *keep)
{
	struct parent p = {.keep = keep};
	sigset_t mask;
	int pair[2];

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return tool_error("prctl: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return tool_error("socketpair: %s", strerror(errno));
	fflush(NULL);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	signal(SIGCHLD, SIG_DFL); /* with an ignored SIGCHLD waitpid() would find nobody */
	p.signals = tool_forward_open(true);
	p.keeper = fork();
	if (p.keeper < 0)
		return tool_error("the keeper cannot be started: %s", strerror(errno));
	if (p.keeper == 0) {
		close(pair[0]);
		close(p.signals);
		keeper_main(keep, pair[1], &mask);
	}
	close(pair[1]);
	p.channel = pair[0];
	/* Standard error stays open, for messages to the user. */
	tool_close_inherited(keep->detached ? -1 : 1,
			     (const int[]){p.channel, p.signals, keep->hold}, 3);
	wait_for_end(&p);
	if (p.staying)
		return p.status;
	return keeper_ended(&p);
}
