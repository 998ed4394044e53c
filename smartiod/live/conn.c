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

#define LIVE_BATCH 16  /* packets of one connection before the others have their turn */
#define LIVE_SINGLE 15 /* turns of one packet each, after one that found no second packet */
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

/* ---- packets of a socket of this machine ---- */

static ssize_t packet_send(struct live_conn *c, const void *buf, size_t len, const int *fds,
			   unsigned n_fds)
{
	return sio_packet_send(c->fd, buf, len, fds, n_fds, false);
}

static ssize_t packet_recv(struct live_conn *c, void *buf, size_t len, int *fds,
			   unsigned *ret_n_fds)
{
	return sio_packet_recv(c->fd, buf, len, fds, LIVE_MAX_FDS, ret_n_fds, &c->fds_lost);
}

static uint32_t packet_events(const struct live_conn *c, bool queued)
{
	(void)c;
	return queued ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

static const struct live_conn_io packets = {
	.send = packet_send, .recv = packet_recv, .events = packet_events};

/* ---- the connection ---- */

/* Watch the descriptor for what is waited for now. */
static int watch(struct live_conn *c)
{
	uint32_t events = c->ops->events(c, c->first);
	int r;

	if (c->over || events == c->events)
		return 0;
	r = sd_event_source_set_io_events(c->io, events);
	if (r >= 0)
		c->events = events;
	return r;
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
	sd_event_source_set_enabled(c->more, SD_EVENT_OFF);
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
	ssize_t n = c->ops->send(c, buf, len, fds, n_fds);

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
	return watch(c);
}

/*
 * Nothing more can be sent, which is no end yet: the last words of who has closed are still to be
 * read, and behind them the end.
 */
static bool is_unheard(struct live_conn *c, int error)
{
	if (error != -EPIPE && error != -ECONNRESET)
		return false;
	c->reset |= error == -ECONNRESET; /* told once: not to whoever reads, too */
	drop_queue(c);
	watch(c);
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
	else if (r >= 0)
		watch(c);
}

static void flush(struct live_conn *c)
{
	int begun = c->ops->flush ? c->ops->flush(c) : 0;

	if (begun < 0) {
		if (!is_unheard(c, begun))
			fail(c, begun);
		return;
	}
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

	n = c->ops->recv(c, buf, sizeof(buf), fds, &n_fds);
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

/*
 * A turn of this connection. What it has left, and the descriptor does not tell, has another. A
 * sender mostly waits for the reply, so that a read after its request finds nothing: where one did
 * not, some turns do without.
 */
static void take_turn(struct live_conn *c)
{
	unsigned max = c->single ? 1 : LIVE_BATCH, n = 0;

	while (n < max && !c->over && receive(c))
		n++;
	if (c->single)
		c->single--;
	else if (n <= 1)
		c->single = LIVE_SINGLE;
	if (c->over)
		return;
	watch(c);
	if (c->ops->pending && c->ops->pending(c))
		sd_event_source_set_enabled(c->more, SD_EVENT_ONESHOT);
}

static int on_more(sd_event_source *s, void *data)
{
	(void)s;
	take_turn(data);
	return 0;
}

static int on_io(sd_event_source *s, int fd, uint32_t events, void *data)
{
	struct live_conn *c = data;

	(void)s;
	(void)fd;
	if (events & EPOLLOUT)
		flush(c);
	/* What was sent before the other end closed is still read: EPOLLHUP alone ends nothing. */
	if (events & (EPOLLHUP | EPOLLERR))
		c->single = 0; /* its end is not to come after the first words of its successor */
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		take_turn(c);
	else
		watch(c);
	return 0;
}

int live_conn_init(struct live_conn *c, sd_event *event, int fd, size_t max_queued,
		   const struct live_conn_handler *handler, void *ctx)
{
	return live_conn_init_io(c, event, fd, max_queued, handler, ctx, &packets, NULL);
}

static int add_defer(struct live_conn *c, sd_event *event, sd_event_source **ret,
		     sd_event_handler_t on)
{
	int r = sd_event_add_defer(event, ret, on, c);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int live_conn_init_io(struct live_conn *c, sd_event *event, int fd, size_t max_queued,
		      const struct live_conn_handler *handler, void *ctx,
		      const struct live_conn_io *ops, void *io_ctx)
{
	int r;

	*c = (struct live_conn){.fd = fd, .handler = handler, .ctx = ctx, .ops = ops};
	c->io_ctx = io_ctx;
	c->max_queued = max_queued;
	c->last = &c->first;
	c->events = ops->events(c, false);
	r = sd_event_add_io(event, &c->io, fd, c->events, on_io, c);
	if (r < 0)
		goto fail;
	r = add_defer(c, event, &c->defer, on_over);
	if (r < 0)
		goto fail;
	r = add_defer(c, event, &c->more, on_more);
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
	c->more = sd_event_source_disable_unref(c->more);
	if (c->ops->done && c->io_ctx)
		c->ops->done(c);
	c->io_ctx = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
