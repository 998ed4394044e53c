/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A manager, or the process that holds a disk, in the background: its command returns when it
 * serves, or has failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

/* Waits for the child's report, or its end. */
static int await_child(pid_t pid, int report, struct ready *ret)
{
	int status = 0;
	ssize_t n;

	do
		n = read(report, ret, sizeof(*ret));
	while (n < 0 && errno == EINTR);
	if (n == sizeof(*ret))
		return EXIT_OK;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return failed(
			"the process in the background was ended by signal %d before it served",
			WTERMSIG(status));
	/* The child has reported the reason, also as a document. */
	_exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED);
}

/* Nothing that the command inherited stays open, but standard input, output and error. */
static int keep_report_alone(int report)
{
	int lowest = report == 3 ? report : dup3(report, 3, O_CLOEXEC);

	if (lowest < 0)
		return report;
	close_range(4, UINT_MAX, 0);
	return lowest;
}

int background_split(int *ret_report, struct ready *ret)
{
	int report[2], status;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return failed("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		close(report[0]);
		close(report[1]);
		return failed("cannot go to the background: %s", strerror(errno));
	}
	if (pid > 0) {
		close(report[1]);
		status = await_child(pid, report[0], ret);
		close(report[0]);
		return status;
	}
	close(report[0]);
	setsid();
	signal(SIGPIPE, SIG_IGN);
	*ret_report = keep_report_alone(report[1]);
	return -1;
}

/* Where errors go when nobody looks at stderr any more; -1: nowhere but to the system's log. */
static int open_log(const char *device)
{
	const char *state = getenv("SMARTIO_STATE");
	char path[PATH_MAX];

	if (!state || *state != '/' || strchr(device, '/') ||
	    snprintf(path, sizeof(path), "%s/nvme-manager.%s.log", state, device) >=
		    (int)sizeof(path))
		return -1;
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bool background_ready(int report, struct ready r, const char *device)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log = open_log(device);
	bool waits;

	if (log < 0)
		log_to_system();
	/* Whoever reads our output to its end is not to wait for ours. */
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(fd == 0 || log < 0 ? null : log, fd);
	if (null > 2)
		close(null);
	if (log > 2)
		close(log);
	if (chdir("/") < 0)
		failed("/: %s", strerror(errno));
	waits = write(report, &r, sizeof(r)) == sizeof(r);
	close(report);
	return waits;
}
