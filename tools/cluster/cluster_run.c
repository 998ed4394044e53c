/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio cluster run: a cluster for the time of one command. A guard process, in a process group
 * of its own, brings the cluster up and down. It ends when the socket to this process closes, for
 * whatever reason. Should the guard be killed, the kernel sends SIGTERM to the cluster's programs
 * (PR_SET_PDEATHSIG).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "base/command.h"
#include "cluster/keeper.h"
#include "base/inherited.h"
#include "base/output.h"
#include "base/state.h"

static int private_dir(char *dir, size_t size, struct sio_err *reterr)
{
	char base[PATH_MAX];
	int r;

	if (tool_where.state) {
		if (*tool_where.state != '/')
			return sio_fail(reterr, -EINVAL,
					"--state %s: wanted a path that begins "
					"with '/'",
					tool_where.state);
		return tool_path(dir, size, reterr, "%s", tool_where.state);
	}
	r = tool_state_base(base, sizeof(base), reterr);
	/* A hidden directory: other commands do not take it for the user's cluster. */
	if (r == 0)
		r = tool_path(dir, size, reterr, "%s/.run-XXXXXX", base);
	if (r == 0 && !mkdtemp(dir))
		r = sio_fail(reterr, -errno, "%s: %s", dir, strerror(errno));
	return r;
}

/* The guard's process. @channel becomes readable when the command has ended. */
static int guard(const struct tool_topofile *f, const char *dir, int channel)
{
	struct sio_err err;
	bool cleaned;
	unsigned was;
	char ready = 1;
	int cancel;

	tool_leave_terminal();
	/* Standard error stays open, for errors of the last steps. */
	tool_close_inherited(1, &channel, 1);
	/* Only the end of the parent ends the guard: signals stay pending for ever. */
	cancel = tool_cancel_fd();
	if (cancel >= 0)
		close(cancel);
	if (tool_cluster_up(f, dir, true, channel, &cleaned, &err) < 0) {
		rmdir(dir);
		/* the guard was not interrupted; if it was, the parent reports that */
		if (err.code != -EINTR)
			send(channel, &err, sizeof(err), MSG_NOSIGNAL);
		return TOOL_EXIT_FAILURE;
	}
	if (send(channel, &ready, 1, MSG_NOSIGNAL) == 1) {
		struct pollfd p = {.fd = channel, .events = POLLIN};

		while (poll(&p, 1, -1) < 0 && errno == EINTR)
			;
	}
	if (access(dir, F_OK) == 0 && tool_cluster_down(dir, &was, &err) < 0)
		return tool_fail(&err);
	return 0;
}

static int wait_guard(pid_t pid)
{
	int status;
	pid_t r;

	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	return r == pid && WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_EXIT_FAILURE;
}

static int run_with_guard(const char *dir, char **argv, int channel, pid_t pid)
{
	struct tool_keep keep = {.argv = argv, .dir = dir, .hold = channel, .kill_rest = true};
	struct sio_err err;
	int status, down;
	unsigned was;
	ssize_t len;

	/* One byte when the cluster is up; otherwise the error. */
	len = recv(channel, &err, sizeof(err), 0);
	if (len != 1) {
		if (len == (ssize_t)sizeof(err))
			tool_fail(&err);
		status = wait_guard(pid);
		return status ? status : TOOL_EXIT_FAILURE;
	}
	tool_json_printed(); /* standard output is COMMAND's */
	status = tool_keep(&keep);
	shutdown(channel, SHUT_WR);
	down = wait_guard(pid);
	/* The guard was killed, or failed: so this process brings the cluster down. */
	if (down != 0 && access(dir, F_OK) == 0 && tool_cluster_down(dir, &was, &err) < 0)
		down = tool_fail(&err);
	return status ? status : down;
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	int first, command, pair[2], status = 0;
	struct tool_topofile f;
	struct sio_err err;
	char dir[PATH_MAX];
	pid_t pid;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	command = first + 1;
	if (command < argc && strcmp(argv[command], "--") == 0)
		command++;
	else if (command < argc && argv[command][0] == '-')
		return tool_usage(self->name,
				  "options stand before TOPOLOGY, the command after '--'");
	if (command >= argc)
		return tool_usage(self->name, "%s is missing",
				  first < argc ? "the command" : "TOPOLOGY");
	if (tool_topofile_load(argv[first], &f, &err) < 0 ||
	    private_dir(dir, sizeof(dir), &err) < 0)
		return tool_fail(&err);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return tool_error("socketpair: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return tool_error("fork: %s", strerror(errno));
	if (pid == 0) {
		close(pair[0]);
		_exit(guard(&f, dir, pair[1]));
	}
	close(pair[1]);
	tool_topofile_done(&f);
	status = run_with_guard(dir, argv + command, pair[0], pid);
	close(pair[0]);
	return status;
}

const struct tool_command tool_cluster_run_command = {
	.name = "cluster run",
	.summary = "Bring up a cluster, run a command, take it down",
	.help = "The cluster is a private one and the default for every smartio command below COMMAND. It\n"
		"goes away when COMMAND ends or this command is ended, and what COMMAND left running with it.\n"
		"The exit status is COMMAND's.\n",
	.page = "smartio-cluster",
	.words = {{"TOPOLOGY", TOOL_TOPOLOGIES}, {"-- COMMAND...", TOOL_PROGRAM}},
	.run = run};
