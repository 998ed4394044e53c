/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine room as a world: starts the program, talks to it as daemons do. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/tempdir.h"
#include "port.h"

#define PATIENCE_MS 60000

static const char topology[] = "cluster: port\n"
			       "hosts:\n"
			       "  one:\n"
			       "    ram: 16M\n"
			       "    iommu: on\n"
			       "    adapters: [{ to: two, window: 16M, entries: 16 }]\n"
			       "    devices: { disk: { type: nvme, size: 1M } }\n"
			       "  two:\n"
			       "    ram: 16M\n"
			       "    adapters: [{ to: one, window: 16M, entries: 16 }]\n";

struct room {
	char dir[80];
	pid_t pid;
	int fd[2];
};

static int connect_host(struct room *r, unsigned host)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/port.%u", r->dir, (host + 1) * 4);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		int rc = -errno;

		if (fd >= 0)
			close(fd);
		return rc;
	}
	r->fd[host] = fd;
	return 0;
}

static int start(struct room *r, const char *program, const char *topo)
{
	char ready[16] = "", fd_text[16];
	int fds[2];
	ssize_t n;

	if (pipe(fds) < 0)
		return -errno;
	snprintf(fd_text, sizeof(fd_text), "%d", fds[1]);
	r->pid = fork();
	if (r->pid == 0) {
		close(fds[0]);
		execl(program, program, "--topology", topo, "--state", r->dir, "--ready-fd",
		      fd_text, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	n = read(fds[0], ready, sizeof(ready) - 1);
	close(fds[0]);
	return n == 6 && strcmp(ready, "ready\n") == 0 ? 0 : -ECONNREFUSED;
}

static int room_open(const char *where, void **ret)
{
	struct room *r = calloc(1, sizeof(*r));
	char topo[96];
	FILE *f;
	int rc;

	if (!r)
		return -ENOMEM;
	r->fd[0] = r->fd[1] = -1;
	if (test_tempdir("smartio-port", r->dir, sizeof(r->dir)) < 0) {
		rc = -ENOENT;
		goto free_room;
	}
	snprintf(topo, sizeof(topo), "%s/topology.yaml", r->dir);
	f = fopen(topo, "w");
	rc = f && fputs(topology, f) >= 0 ? 0 : -errno;
	if (f)
		fclose(f);
	if (rc == 0)
		rc = start(r, where, topo);
	unlink(topo);
	if (rc == 0)
		rc = connect_host(r, 0);
	if (rc == 0)
		rc = connect_host(r, 1);
	if (rc == 0) {
		*ret = r;
		return 0;
	}
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	rmdir(r->dir);
free_room:
	free(r);
	return rc;
}

static int room_send(void *world, unsigned host, const void *req, size_t len, const int *fds,
		     unsigned n_fds)
{
	union {
		struct cmsghdr align;
		char data[CMSG_SPACE(sizeof(int) * SIO_PORT_MAX_FDS)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)req, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = control.data;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	return sendmsg(((struct room *)world)->fd[host], &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static long room_event(void *world, unsigned host, void *evt, size_t size, int *fds,
		       unsigned *ret_fds)
{
	struct room *r = world;
	struct pollfd p = {.fd = r->fd[host], .events = POLLIN};
	union {
		struct cmsghdr align;
		char data[CMSG_SPACE(sizeof(int) * SIO_PORT_MAX_FDS)];
	} control;
	struct iovec iov = {.iov_base = evt, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.data,
			     .msg_controllen = sizeof(control.data)};
	ssize_t n;

	*ret_fds = 0;
	if (poll(&p, 1, PATIENCE_MS) != 1)
		return -ETIMEDOUT;
	n = recvmsg(r->fd[host], &msg, MSG_CMSG_CLOEXEC);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); n >= 0 && c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < count && *ret_fds < SIO_PORT_MAX_FDS; i++)
			memcpy(&fds[(*ret_fds)++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return n < 0 ? (errno == ECONNRESET ? 0 : -errno) : n;
}

static long room_descriptors(void *world)
{
	char path[64];
	long n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)((struct room *)world)->pid);
	d = opendir(path);
	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int room_reopen(void *world, unsigned host)
{
	struct room *r = world;

	close(r->fd[host]);
	r->fd[host] = -1;
	return connect_host(r, host);
}

static int room_close(void *world)
{
	struct room *r = world;
	int status = -1;

	for (unsigned i = 0; i < 2; i++)
		if (r->fd[i] >= 0)
			close(r->fd[i]);
	kill(r->pid, SIGTERM);
	waitpid(r->pid, &status, 0);
	if (rmdir(r->dir) < 0)
		status = 1;
	free(r);
	return status;
}

const struct port_transport port_socket = {
	.open = room_open,
	.send = room_send,
	.event = room_event,
	.descriptors = room_descriptors,
	.reopen = room_reopen,
	.close = room_close,
};
