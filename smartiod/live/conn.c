/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/packet.h"
#include "smartiod/live/conn.h"

#define LIVE_BATCH 16 /* packets of one connection before the others have their turn */
/*
 * Copies of descriptors that one queue may hold. Senders make a receiver's queue grow, a ring each,
 * and must not get it cut off by being faster than it is: a data interrupt has at most 1,024 rings.
 */
#define LIVE_QUEUED_FDS 2048
#define LIVE_LAST 1024 /* packets at most of one that has ended: more than a socket holds */

struct live_packet {
	struct live_packet *next;
	size_t len;
	unsigned n_fds;
	int fds[LIVE_MAX_FDS];
	unsigned char data[];
};

static void close_fds(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void packet_free(struct live_packet *p)
{
	close_fds(p->fds, p->n_fds);
	free(p);
}

static void drop_queue(struct live_conn *c)
{
	struct live_packet *p, *next;

	for (p = c->first; p; p = next) {
		next = p->next;
		packet_free(p);
	}
	c->first = NULL;
	c->last = &c->first;
	c->queued = 0;
	c->queued_fds = 0;
}

/* The connection is over; the handler hears of it from the loop, not from inside this call. */
static void fail(struct live_conn *c, int error)
{
	if (c->over)
		return;
	c->over = true;
	c->error = error;
	drop_queue(c);
	sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
	sd_event_source_set_enabled(c->defer, SD_EVENT_ONESHOT);
}

static int on_over(sd_event_source *s, void *data)
{
	struct live_conn *c = data;

	(void)s;
	c->handler->over(c, c->error);
	return 0;
}

/* Return: 0; -EAGAIN: the other end does not read; another -errno. */
static int send_now(struct live_conn *c, const void *buf, size_t len, const int *fds,
		    unsigned n_fds)
{
	ssize_t n = sio_packet_send(c->fd, buf, len, fds, n_fds, false);

	return n < 0 ? (int)n : 0;
}

static int enqueue(struct live_conn *c, const void *buf, size_t len, const int *fds, unsigned n_fds)
{
	struct live_packet *p;

	if (c->queued + len > c->max_queued || c->queued_fds + n_fds > LIVE_QUEUED_FDS)
		return -ENOBUFS;
	p = calloc(1, sizeof(*p) + len);
	if (!p)
		return -ENOMEM;
	memcpy(p->data, buf, len);
	p->len = len;
	for (; p->n_fds < n_fds; p->n_fds++) {
		p->fds[p->n_fds] = fcntl(fds[p->n_fds], F_DUPFD_CLOEXEC, 3);
		if (p->fds[p->n_fds] < 0) {
			int r = -errno;

			packet_free(p);
			return r;
		}
	}
	*c->last = p;
	c->last = &p->next;
	c->queued += len;
	c->queued_fds += n_fds;
	return sd_event_source_set_io_events(c->io, EPOLLIN | EPOLLOUT);
}

/*
 * Nothing more can be sent, which is no end yet: the last words of who has closed are still to be
 * read, and behind them the end.
 */
static bool is_unheard(struct live_conn *c, int error)
{
	if (error != -EPIPE && error != -ECONNRESET)
		return false;
	c->reset |= error == -ECONNRESET; /* told once: not to who reads, too */
	drop_queue(c);
	sd_event_source_set_io_events(c->io, EPOLLIN);
	return true;
}

void live_conn_send(struct live_conn *c, const void *buf, size_t len, const int *fds,
		    unsigned n_fds)
{
	int r = -EAGAIN;

	if (c->over)
		return;
	if (len > LIVE_MAX_PACKET || n_fds > LIVE_MAX_FDS) {
		fail(c, -EMSGSIZE);
		return;
	}
	if (!c->first)
		r = send_now(c, buf, len, fds, n_fds);
	if (r == -EAGAIN)
		r = enqueue(c, buf, len, fds, n_fds);
	if (r < 0 && !is_unheard(c, r))
		fail(c, r);
}

static void flush(struct live_conn *c)
{
	while (c->first) {
		struct live_packet *p = c->first;
		int r = send_now(c, p->data, p->len, p->fds, p->n_fds);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			if (!is_unheard(c, r))
				fail(c, r);
			return;
		}
		c->first = p->next;
		if (!c->first)
			c->last = &c->first;
		c->queued -= p->len;
		c->queued_fds -= p->n_fds;
		packet_free(p);
	}
	sd_event_source_set_io_events(c->io, EPOLLIN);
}

/*
 * Return: 1 a packet was handled, or may be there; 0 none waits; the connection is over when
 * c->over says so. Descriptors that did not fit into our table are missing from the packet; who
 * needs one says so.
 */
static int receive(struct live_conn *c)
{
	_Alignas(8) unsigned char buf[LIVE_MAX_PACKET];
	int fds[LIVE_MAX_FDS];
	unsigned n_fds;
	ssize_t n;

	n = sio_packet_recv(c->fd, buf, sizeof(buf), fds, LIVE_MAX_FDS, &n_fds, &c->fds_lost);
	if (n == -EAGAIN)
		return 0;
	/* The other end left words of ours unread; its own last words are behind that. */
	if (n == -ECONNRESET && !c->reset) {
		c->reset = true;
		return 1;
	}
	if (n <= 0) {
		close_fds(fds, n_fds);
		fail(c, n < 0 ? (int)n : c->reset ? -ECONNRESET : 0);
		return 0;
	}
	c->handler->packet(c, buf, (size_t)n, fds, n_fds);
	close_fds(fds, n_fds);
	return 1;
}

void live_conn_take(struct live_conn *c)
{
	for (int i = 0; i < LIVE_LAST && !c->over; i++)
		if (receive(c) == 0)
			break;
}

static int on_io(sd_event_source *s, int fd, uint32_t events, void *data)
{
	struct live_conn *c = data;

	(void)s;
	(void)fd;
	if (events & EPOLLOUT)
		flush(c);
	/* What was sent before the other end closed is still read: EPOLLHUP alone ends nothing. */
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		for (int i = 0; i < LIVE_BATCH && !c->over; i++)
			if (receive(c) == 0)
				break;
	return 0;
}

int live_conn_init(struct live_conn *c, sd_event *event, int fd, size_t max_queued,
		   const struct live_conn_handler *handler, void *ctx)
{
	int r;

	*c = (struct live_conn){.fd = fd, .handler = handler, .ctx = ctx};
	c->max_queued = max_queued;
	c->last = &c->first;
	r = sd_event_add_io(event, &c->io, fd, EPOLLIN, on_io, c);
	if (r < 0)
		goto fail;
	r = sd_event_add_defer(event, &c->defer, on_over, c);
	if (r < 0)
		goto fail;
	r = sd_event_source_set_enabled(c->defer, SD_EVENT_OFF);
	if (r < 0)
		goto fail;
	return 0;
fail:
	live_conn_done(c);
	return r;
}

void live_conn_stop(struct live_conn *c)
{
	c->quiet = true;
	fail(c, 0);
}

void live_conn_done(struct live_conn *c)
{
	drop_queue(c);
	c->over = true;
	c->io = sd_event_source_disable_unref(c->io);
	c->defer = sd_event_source_disable_unref(c->defer);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
