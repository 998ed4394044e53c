/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper's parent: what the user sees of a program that runs on a host. */
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
#include "base/letgo.h"
#include "base/output.h"
#include "cluster/proctree.h"
#include "base/state.h"

struct parent {
	const struct tool_keep *keep;
	int channel, signals;
	pid_t keeper;
	bool exited, staying; /* the program ended; the keeper stays with what it left */
	int status;
};

static const int forwarded[] = {SIGINT,	 SIGTERM, SIGHUP,  SIGQUIT,
				SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

static int open_signals(void)
{
	struct sigaction old;
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
		/* What was ignored (nohup) stays ignored. */
		if (sigaction(forwarded[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&set, forwarded[i]);
	}
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * What the terminal sends (SI_KERNEL) goes to its whole foreground group, the program included;
 * what a process sent to us alone is passed on.
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
	struct json_object *data;
	struct sio_err err;

	if (tool_keep_log(keep, pid, path, sizeof(path), &err) < 0)
		return tool_fail(&err);
	if (tool_where.json) {
		data = tool_json_object();
		tool_json_number(data, "process", (uint64_t)pid);
		tool_json_string(data, "log", path);
		return tool_json_print("run", data);
	}
	tool_note("the output of process %d goes to %s", pid, path);
	printf("%d\n", pid);
	if (fflush(stdout) != 0)
		return tool_error("cannot write to standard output: %s", strerror(errno));
	return 0;
}

/* Return: true: the keeper has nothing more to say. */
static bool take_keeper(struct parent *p)
{
	struct keeper_msg m;
	ssize_t len = recv(p->channel, &m, sizeof(m), MSG_DONTWAIT);

	/* It left without taking our last signal: told once, and before what it said. */
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
	tool_error("host %s crashed; killed %d process%s", p->keep->host, m.value,
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

/* The keeper said nothing: it failed to start (its status), or was killed. */
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
	signal(SIGCHLD, SIG_DFL); /* ignored, nobody could be waited for */
	p.signals = open_signals();
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
	/* Standard error stays: what is to be said to the user. */
	tool_let_go(keep->detached ? -1 : 1, (const int[]){p.channel, p.signals, keep->hold}, 3);
	wait_for_end(&p);
	if (p.staying)
		return p.status;
	return keeper_ended(&p);
}
