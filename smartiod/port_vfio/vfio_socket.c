/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection of the daemon: one at a time; sends never block. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "packet/packet.h"
#include "smartiod/port_vfio/vfio_live.h"

#define SOCKET "vfio.port"
/* Packets. Events are dropped from some on; who does not read more answers is cut off. */
#define MAX_EVENTS 1024
#define MAX_QUEUED 32768
#define REQUESTS 64 /* before owners' ends have their turn */

struct vfio_packet {
	struct vfio_packet *next;
	size_t len;
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;
	char data[];
};

static void packet_free(struct vfio_packet *k)
{
	for (unsigned i = 0; i < k->n_fds; i++)
		close(k->fds[i]);
	free(k);
}

static void take_first(struct vfio_live *l)
{
	struct vfio_packet *k = l->first;

	l->first = k->next;
	if (!l->first)
		l->last = &l->first;
	l->queued--;
	packet_free(k);
}

static void disconnect(struct vfio_live *l, const char *why)
{
	if (l->daemon.fd < 0)
		return;
	vfio_log("smartiod has gone: %s", why);
	vfio_live_unwatch(l, &l->daemon);
	while (l->first)
		take_first(l);
	l->had_daemon = true;
}

static int enqueue(struct vfio_live *l, const void *evt, size_t len, const int *fds, unsigned n_fds)
{
	struct vfio_packet *k = l->queued < MAX_QUEUED ? malloc(sizeof(*k) + len) : NULL;
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.ptr = &l->daemon};

	if (!k)
		return -ENOMEM;
	*k = (struct vfio_packet){.len = len};
	memcpy(k->data, evt, len);
	for (; k->n_fds < n_fds; k->n_fds++) {
		k->fds[k->n_fds] = fcntl(fds[k->n_fds], F_DUPFD_CLOEXEC, 3);
		if (k->fds[k->n_fds] < 0) {
			packet_free(k);
			return -EMFILE;
		}
	}
	*l->last = k;
	l->last = &k->next;
	l->queued++;
	return epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->daemon.fd, &ev) < 0 ? -errno : 0;
}

int vfio_socket_send(struct vfio_live *l, const void *evt, size_t len, const int *fds,
		     unsigned n_fds)
{
	ssize_t n = -EAGAIN;

	if (l->daemon.fd < 0)
		return 0;
	if (l->queued >= MAX_EVENTS && ((const struct sio_evt *)evt)->op >= SIO_EV_LINK)
		return -ENOBUFS;
	if (!l->first)
		n = sio_packet_send(l->daemon.fd, evt, len, fds, n_fds, false);
	if (n == -EAGAIN || n == -ENOBUFS || n == -ETOOMANYREFS)
		n = enqueue(l, evt, len, fds, n_fds);
	/* Its end is heard of in its turn. */
	if (n < 0)
		shutdown(l->daemon.fd, SHUT_RDWR);
	return 0;
}

static void flush(struct vfio_live *l)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &l->daemon};

	while (l->first) {
		struct vfio_packet *k = l->first;
		ssize_t n = sio_packet_send(l->daemon.fd, k->data, k->len, k->fds, k->n_fds, false);

		if (n == -EAGAIN || n == -ENOBUFS || n == -ETOOMANYREFS)
			return;
		if (n < 0) {
			shutdown(l->daemon.fd, SHUT_RDWR);
			return;
		}
		take_first(l);
	}
	epoll_ctl(l->epoll, EPOLL_CTL_MOD, l->daemon.fd, &ev);
	vfio_port_drained(l->port);
}

/* Return: false: no more for now. */
static bool receive(struct vfio_live *l)
{
	uint64_t data[SIO_PORT_MAX_PACKET / 8];
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;
	bool lost;
	ssize_t n = sio_packet_recv(l->daemon.fd, data, sizeof(data), fds, SIO_PORT_MAX_FDS, &n_fds,
				    &lost);
	const char *over = NULL;

	if (n == -EAGAIN)
		return false;
	if (n == 0)
		over = "it closed the connection";
	else if (n < 0)
		over = strerror((int)-n);
	else if (vfio_port_request(l->port, data, (size_t)n, fds, n_fds) < 0)
		over = "it sent what is no request";
	for (unsigned i = 0; i < n_fds; i++)
		close(fds[i]);
	if (over)
		disconnect(l, over);
	return !over;
}

void vfio_socket_event(struct vfio_live *l, uint32_t events)
{
	if (events & EPOLLOUT)
		flush(l);
	for (int i = 0; i < REQUESTS && receive(l); i++)
		;
}

/* The connection is dead, although its end has not come to its turn yet, behind what it sent. */
static bool hung_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

void vfio_socket_accept(struct vfio_live *l)
{
	int fd = accept4(l->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (l->daemon.fd >= 0 && hung_up(l->daemon.fd))
		while (receive(l))
			;
	if (l->daemon.fd >= 0) {
		vfio_log("a second smartiod was turned away");
		close(fd);
		return;
	}
	l->daemon.fd = fd;
	if (vfio_live_watch(l, &l->daemon, EPOLLIN) < 0) {
		close(fd);
		l->daemon.fd = -1;
		return;
	}
	vfio_port_connected(l->port);
}

static int path_of(const struct vfio_live *l, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	return snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/" SOCKET, l->state) >=
			       (int)sizeof(ret->sun_path)
		       ? -ENAMETOOLONG
		       : 0;
}

int vfio_socket_open(struct vfio_live *l)
{
	struct sockaddr_un sa;
	int r = path_of(l, &sa);

	if (r < 0)
		return r;
	l->last = &l->first;
	if (l->listener.fd >= 0) { /* as systemd has made it */
		l->activated = true;
		fcntl(l->listener.fd, F_SETFL, fcntl(l->listener.fd, F_GETFL) | O_NONBLOCK);
		return vfio_live_watch(l, &l->listener, EPOLLIN);
	}
	l->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(sa.sun_path); /* the lock is ours: what lies there is stale */
	if (l->listener.fd < 0 || bind(l->listener.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    chmod(sa.sun_path, 0600) < 0 || listen(l->listener.fd, 4) < 0)
		return -errno;
	return vfio_live_watch(l, &l->listener, EPOLLIN);
}

bool vfio_socket_close(struct vfio_live *l)
{
	struct sockaddr_un sa;

	path_of(l, &sa);
	if (!l->activated)
		unlink(sa.sun_path);
	if (!l->activated || !l->end) /* those who come later start the next one */
		vfio_socket_accept(l);
	if (l->daemon.fd < 0 || l->end)
		return true;
	if (l->activated)
		return false;
	/* Others may come, too. */
	vfio_live_unwatch(l, &l->listener);
	return vfio_socket_open(l) < 0;
}
