/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port's sockets: one listener for each host, one connection at a time. A connection is the
 * host's power: the host starts with it and crashes without it. The room never waits for a daemon
 * that does not read: its events queue up to a bound, then they are dropped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "emu/live/live.h"
#include "packet/packet.h"

/*
 * Packets. Events that nobody asked for are dropped from some on; who does not read more answers
 * than that is cut off.
 */
#define MAX_EVENTS 1024
#define MAX_QUEUED 32768
#define REQUESTS_PER_TURN 64 /* of one host, then the devices and other hosts have their turn */
#define SINGLE_TURNS 15	     /* of one request each, after one that found no second request */

static const char *host_name(const struct live *l, unsigned host)
{
	return l->topo->host[host].name;
}

unsigned live_max_hosts(const struct live *l)
{
	return l->topo->n_machines ? l->topo->n_hosts : SIO_MAX_HOSTS;
}

int live_port_prepare(struct live *l, unsigned host, uint32_t node, struct sio_err *reterr)
{
	struct live_port *p = &l->port[host];
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int rc;

	rc = live_path(p->path, sizeof(p->path), reterr, "%s/port.%u", l->state_dir, node);
	if (rc < 0) {
		p->path[0] = '\0';
		return rc;
	}
	memcpy(sa.sun_path, p->path, strlen(p->path) + 1);
	p->listener = (struct live_source){.kind = LIVE_LISTENER, .host = host};
	p->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener.fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", p->path, strerror(errno));
	unlink(p->path); /* we hold the directory's lock: what lies there is stale */
	if (bind(p->listener.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    chmod(p->path, 0600) < 0)
		return sio_fail(reterr, -errno, "%s: %s", p->path, strerror(errno));
	return 0;
}

int live_port_open(struct live *l, unsigned host, struct sio_err *reterr)
{
	struct live_port *p = &l->port[host];
	int rc = listen(p->listener.fd, 4) < 0 ? -errno : live_watch(l, &p->listener, EPOLLIN);

	return rc < 0 ? sio_fail(reterr, rc, "%s: %s", p->path, strerror(-rc)) : 0;
}

int live_ports_open(struct live *l, struct sio_err *reterr)
{
	int rc = 0;

	l->port = calloc(live_max_hosts(l), sizeof(*l->port));
	if (!l->port)
		return sio_no_memory(reterr, "the ports");
	for (unsigned i = 0; i < live_max_hosts(l); i++)
		l->port[i].listener.fd = l->port[i].socket.fd = -1;
	for (unsigned i = 0; rc == 0 && i < l->topo->n_hosts; i++) {
		rc = live_port_prepare(l, i, l->topo->host[i].node, reterr);
		if (rc == 0)
			rc = live_port_open(l, i, reterr);
	}
	return rc;
}

static void free_packet(struct live_packet *k)
{
	for (unsigned i = 0; i < k->n_fds; i++)
		close(k->fds[i]);
	free(k);
}

static void disconnect(struct live *l, unsigned host)
{
	struct live_port *p = &l->port[host];
	struct live_packet *k, *tmp;

	if (p->socket.fd < 0)
		return;
	close(p->socket.fd);
	p->socket.fd = -1;
	p->cut = false;
	DL_FOREACH_SAFE (p->queue, k, tmp) {
		DL_DELETE(p->queue, k);
		free_packet(k);
	}
	p->n_queued = 0;
	emu_room_host_down(l->room, host);
	live_ntb_host(l, host);
	live_log("%s: down", host_name(l, host));
}

void live_port_cut(struct live *l, unsigned host)
{
	disconnect(l, host);
}

void live_port_close(struct live *l, unsigned host)
{
	struct live_port *p = &l->port[host];

	disconnect(l, host);
	if (p->listener.fd >= 0)
		close(p->listener.fd);
	p->listener.fd = -1;
	if (p->path[0])
		unlink(p->path);
	p->path[0] = '\0';
}

void live_ports_close(struct live *l)
{
	for (unsigned i = 0; l->port && i < live_max_hosts(l); i++)
		live_port_close(l, i);
	free(l->port);
	l->port = NULL;
}

void live_ports_cut(struct live *l)
{
	/* Peers are notified of a host that goes down, which may be one event too much for them. */
	for (bool again = true; again;) {
		again = false;
		for (unsigned i = 0; i < l->topo->n_hosts; i++)
			if (l->port[i].cut) {
				disconnect(l, i);
				again = true;
			}
	}
}

static void cut(struct live *l, unsigned host, const char *why)
{
	if (!l->port[host].cut)
		live_log("%s: cut off: %s", host_name(l, host), why);
	l->port[host].cut = true;
}

static int send_now(int fd, const void *data, size_t len, const int *fds, unsigned n_fds)
{
	ssize_t n = sio_packet_send(fd, data, len, fds, n_fds, false);

	return n < 0 ? (int)n : 0;
}

static int want_write(struct live *l, struct live_port *p, bool want)
{
	struct epoll_event ev = {.events = EPOLLIN | (want ? EPOLLOUT : 0), .data.ptr = &p->socket};

	return epoll_ctl(l->epoll, EPOLL_CTL_MOD, p->socket.fd, &ev) < 0 ? -errno : 0;
}

static int enqueue(struct live *l, struct live_port *p, const void *data, size_t len,
		   const int *fds, unsigned n_fds)
{
	struct live_packet *k;

	if (p->n_queued == MAX_QUEUED)
		return -ENOBUFS;
	k = malloc(sizeof(*k) + len);
	if (!k)
		return -ENOMEM;
	memcpy(k->data, data, len);
	k->len = len;
	for (k->n_fds = 0; k->n_fds < n_fds; k->n_fds++) {
		k->fds[k->n_fds] = fcntl(fds[k->n_fds], F_DUPFD_CLOEXEC, 0);
		if (k->fds[k->n_fds] < 0) {
			int rc = -errno;

			free_packet(k);
			return rc;
		}
	}
	DL_APPEND(p->queue, k);
	if (p->n_queued++ == 0)
		return want_write(l, p, true);
	return 0;
}

int live_send(void *ctx, unsigned host, const void *evt, size_t len, const int *fds, unsigned n_fds)
{
	struct live *l = ctx;
	struct live_port *p = &l->port[host];
	int rc = -EAGAIN;

	if (p->socket.fd < 0 || p->cut)
		return 0;
	if (p->n_queued >= MAX_EVENTS && ((const struct sio_evt *)evt)->op >= SIO_EV_LINK)
		return -ENOBUFS;
	/*
	 * Whoever gets a memory shall not be able to seal it; other descriptors refuse this, as may
	 * be.
	 */
	for (unsigned i = 0; i < n_fds; i++)
		fcntl(fds[i], F_ADD_SEALS, F_SEAL_SEAL);
	if (!p->queue)
		rc = send_now(p->socket.fd, evt, len, fds, n_fds);
	if (rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS)
		rc = enqueue(l, p, evt, len, fds, n_fds);
	if (rc == -ENOBUFS)
		cut(l, host, "its daemon does not read its events");
	else if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
		cut(l, host, strerror(-rc));
	return 0;
}

static void flush(struct live *l, unsigned host)
{
	struct live_port *p = &l->port[host];

	while (p->queue) {
		struct live_packet *k = p->queue;
		int rc = send_now(p->socket.fd, k->data, k->len, k->fds, k->n_fds);

		if (rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS)
			return;
		if (rc < 0) {
			cut(l, host, strerror(-rc));
			return;
		}
		DL_DELETE(p->queue, k);
		p->n_queued--;
		free_packet(k);
	}
	want_write(l, p, false);
	emu_room_drained(l->room, host);
}

/* The connection is dead, although its hang-up has not come to its turn yet. */
static bool hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void live_turn_away(struct live *l, int listener, const char *name)
{
	int fd;

	live_log("%s: a connection was refused: no descriptor is left", name);
	close(l->spare_fd);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		close(fd);
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_one(struct live *l, unsigned host)
{
	struct live_port *p = &l->port[host];
	int fd, rc;

	fd = accept4(p->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			live_turn_away(l, p->listener.fd, host_name(l, host));
		return;
	}
	if (p->socket.fd >= 0 && hung_up(p->socket.fd))
		disconnect(l, host);
	if (p->socket.fd >= 0) {
		live_log("%s: a second daemon was turned away", host_name(l, host));
		close(fd);
		return;
	}
	p->socket = (struct live_source){.kind = LIVE_PORT, .host = host, .fd = fd};
	rc = live_watch(l, &p->socket, EPOLLIN);
	if (rc == 0) {
		live_log("%s: up", host_name(l, host));
		rc = emu_room_host_up(l->room, host);
	}
	if (rc == 0)
		live_ntb_host(l, host);
	if (rc < 0) {
		live_log("%s: cannot start: %s", host_name(l, host), strerror(-rc));
		close(fd);
		p->socket.fd = -1;
	}
}

/* Return: false: nothing more to read now. */
static bool receive_one(struct live *l, unsigned host)
{
	struct live_port *p = &l->port[host];
	uint64_t data[SIO_PORT_MAX_PACKET / 8];
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;
	bool lost;
	ssize_t n;

	n = sio_packet_recv(p->socket.fd, data, sizeof(data), fds, SIO_PORT_MAX_FDS, &n_fds, &lost);
	if (n == -EAGAIN)
		return false;
	if (n == -EMSGSIZE || (n > 0 && (size_t)n < sizeof(struct sio_req))) {
		for (unsigned i = 0; i < n_fds; i++)
			close(fds[i]);
		cut(l, host, "a packet was shorter than a header or longer than any request");
		return false;
	}
	if (n <= 0) {
		disconnect(l, host);
		return false;
	}
	emu_room_request(l->room, host, data, (size_t)n, fds, n_fds);
	return !p->cut;
}

/*
 * A daemon mostly waits for its answer: a second read finds nothing, and is not made each time. One
 * that has @ended is not to be in the way of the next.
 */
static void receive(struct live *l, unsigned host, bool ended)
{
	struct live_port *p = &l->port[host];
	unsigned max, n = 0;

	if (ended)
		p->single = 0;
	max = p->single ? 1 : REQUESTS_PER_TURN;
	while (n < max && p->socket.fd >= 0 && receive_one(l, host))
		n++;
	if (p->single)
		p->single--;
	else if (n <= 1)
		p->single = SINGLE_TURNS;
}

void live_port_event(struct live *l, const struct live_source *s, uint32_t events)
{
	unsigned host = s->host;

	if (s->kind == LIVE_LISTENER) {
		accept_one(l, host);
		return;
	}
	if (events & EPOLLOUT)
		flush(l, host);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(l, host, events & (EPOLLHUP | EPOLLERR));
}
