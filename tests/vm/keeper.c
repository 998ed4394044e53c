/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service manager with a descriptor store, as systemd is one (sd_notify(3): FDSTORE, FDNAME,
 * FDSTOREREMOVE, READY), for machines that have none: COMMAND is started again with what it kept
 * whenever it is killed. How often it has said that it is ready is in FILE.
 *
 * usage: keeper FILE COMMAND...
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 4096
#define NAME 64
#define FIRST 3 /* SD_LISTEN_FDS_START */

static struct {
	char name[NAME];
	int fd;
} kept[MOST];
static unsigned n_kept, n_ready;

static void die(const char *what)
{
	fprintf(stderr, "keeper: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- what the service says ---- */

static void add(const char *name, int fd)
{
	if (n_kept == MOST) {
		close(fd);
		return;
	}
	snprintf(kept[n_kept].name, NAME, "%s", name);
	kept[n_kept++].fd = fd;
}

static void drop(const char *name)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n_kept; i++) {
		if (strcmp(kept[i].name, name) == 0)
			close(kept[i].fd);
		else
			kept[left++] = kept[i];
	}
	n_kept = left;
}

static void tell_ready(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f || fprintf(f, "%u\n", ++n_ready) < 0 || fclose(f) != 0)
		die(path);
}

static void understand(char *text, int fd, const char *ready)
{
	const char *name = "stored";
	bool store = false, pull = false;
	char *at = NULL;

	for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
		store |= strcmp(line, "FDSTORE=1") == 0;
		pull |= strcmp(line, "FDSTOREREMOVE=1") == 0;
		if (strncmp(line, "FDNAME=", 7) == 0)
			name = line + 7;
		if (strcmp(line, "READY=1") == 0)
			tell_ready(ready);
	}
	if (store && fd >= 0)
		add(name, fd);
	else if (fd >= 0)
		close(fd);
	if (pull)
		drop(name);
}

/* Return: false: nothing was said. */
static bool hear(int sock, const char *ready)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char text[4096];
	struct iovec io = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	int fd = -1;

	if (n < 0)
		return false;
	text[n] = '\0';
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	understand(text, fd, ready);
	return true;
}

/* ---- the service ---- */

static void become(char **command)
{
	char *names = NULL, number[16];
	size_t size = 0;
	FILE *f = open_memstream(&names, &size);

	if (!f)
		_exit(125);
	if (n_kept == 0)
		goto go;
	snprintf(number, sizeof(number), "%u", n_kept);
	setenv("LISTEN_FDS", number, 1);
	for (unsigned i = 0; i < n_kept; i++) { /* out of each other's way first */
		fprintf(f, "%s%s", i ? ":" : "", kept[i].name);
		kept[i].fd = fcntl(kept[i].fd, F_DUPFD_CLOEXEC, FIRST + (int)n_kept);
		if (kept[i].fd < 0)
			_exit(125);
	}
	if (fclose(f) != 0)
		_exit(125);
	setenv("LISTEN_FDNAMES", names, 1);
	for (unsigned i = 0; i < n_kept; i++)
		if (dup2(kept[i].fd, FIRST + (int)i) < 0)
			_exit(125);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
go:
	execvp(*command, command);
	_exit(127);
}

/* Return: its wait status. */
static int serve(int sock, const char *ready, char **command)
{
	struct pollfd p[2] = {{.fd = sock, .events = POLLIN}, {.events = POLLIN}};
	pid_t pid = fork();
	int status;

	if (pid == 0)
		become(command);
	p[1].fd = pid < 0 ? -1 : pidfd_open(pid, 0);
	if (p[1].fd < 0)
		die(*command);
	while (!p[1].revents) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			die("poll");
		while (p[0].revents && hear(sock, ready))
			;
	}
	while (hear(sock, ready)) /* its last words */
		;
	close(p[1].fd);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	return status;
}

int main(int argc, char **argv)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), status;

	if (argc < 3) {
		fputs("usage: keeper FILE COMMAND...\n", stderr);
		return 2;
	}
	snprintf(sa.sun_path, sizeof(sa.sun_path), "/tmp/keeper.%d", getpid());
	if (sock < 0 || bind(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		die(sa.sun_path);
	setenv("NOTIFY_SOCKET", sa.sun_path, 1);
	do
		status = serve(sock, argv[1], argv + 2);
	while (WIFSIGNALED(status));
	unlink(sa.sun_path);
	return WEXITSTATUS(status);
}
