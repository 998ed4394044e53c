/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections to the other hosts' daemons. The end that connects names its node in a first packet,
 * and the transport proves it. From then on both ends exchange messages of wire/peer.h, which this
 * file does not interpret. There is one connection to a node at a time: a second connection of the
 * same daemon is refused until the first is closed; a connection of a daemon that was started later
 * replaces the old one.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "smartiod/live/live.h"
#include "smartiod/live/transport.h"

/* Who has not said its node by then is cut off. A handshake of an emulated processor takes long. */
#define LIVE_PEER_HELLO_US 15000000u
#define LIVE_PEERS_UNKNOWN 128	    /* connections that have not said it yet */
#define LIVE_PEER_LATER_US 20000u   /* after a failure: doubled each time ... */
#define LIVE_PEER_LATEST_US 500000u /* ... up to this */
#define LIVE_PEER_BRIEF_US 1000000u /* a connection that ends before is a failure, too */
#define LIVE_PEER_LINES 20	    /* of the log in ... */
#define LIVE_PEER_LINES_US 10000000u
#define LIVE_PEER_SAME 5		  /* the same line again; from then on ... */
#define LIVE_PEER_SAME_US 1000000u	  /* ... after this, doubled each time ... */
#define LIVE_PEER_SAME_MAX_US 3600000000u /* ... up to this */
#define LIVE_HELLO_MAGIC 0x72656570u
#define LIVE_HELLO_VERSION 1

struct live_hello {
	uint32_t magic, version, from, to;
	uint8_t digest[LIVE_DIGEST]; /* of the cluster's file; between machines alone */
};

enum live_peer_state {
	LIVE_PEER_UNKNOWN, /* accepted; its first packet is waited for */
	LIVE_PEER_ASKING,  /* we connect; that our hello was taken is waited for */
	LIVE_PEER_NEW,	   /* connected by us; the daemon is about to be notified */
	LIVE_PEER_UP,	   /* the daemon knows it */
	LIVE_PEER_FAILED,  /* could not connect; the daemon will be notified */
};

struct live_peer {
	struct live_conn conn; /* done when FAILED */
	struct live *live;
	enum live_peer_state state;
	uint32_t node; /* 0: unknown */
	pid_t pid;     /* of who connected to us; 0: we connected, or from another machine */
	char source[LIVE_SOURCE];
	uint64_t up_since; /* of one that we asked for, between machines; else 0 */
	bool revoked;	   /* it is closed for that */
	sd_event_source *later;
	struct live_peer *next;
};

/* The one with this text, or the one that came longest ago, which is forgotten for it. */
static struct live_complaint *recent(struct live_complaints *c, const char *text)
{
	struct live_complaint *oldest = c->recent;

	for (unsigned i = 0; i < sizeof(c->recent) / sizeof(c->recent[0]); i++) {
		if (strcmp(text, c->recent[i].text) == 0)
			return &c->recent[i];
		if (c->recent[i].came < oldest->came)
			oldest = &c->recent[i];
	}
	return oldest;
}

/*
 * Is it what was complained about before, and often? Who is refused tries again and again, for
 * days, and so may several at once: after some of them the same line comes in 1 s, and then each
 * time after twice as long, up to an hour.
 */
static bool is_repeated(struct live *l, const char *text, uint64_t now)
{
	struct live_complaint *c = recent(&l->complaints, text);

	c->came = now;
	if (strcmp(text, c->text) != 0) {
		snprintf(c->text, sizeof(c->text), "%s", text);
		c->pause = LIVE_PEER_SAME_US;
		c->repeated = c->unsaid = 0;
		return false;
	}
	if (c->repeated < LIVE_PEER_SAME) {
		c->repeated++;
		c->again = now + c->pause;
		return false;
	}
	c->unsaid++;
	if (now < c->again)
		return true;
	live_log(l, LOG_WARNING, "%s (%u times more)", text, c->unsaid);
	c->unsaid = 0;
	c->pause = c->pause < LIVE_PEER_SAME_MAX_US / 2 ? 2 * c->pause : LIVE_PEER_SAME_MAX_US;
	c->again = now + c->pause;
	return true;
}

/* A warning about who is at the other end. Whoever causes many fills no disk with them. */
static void complain(struct live *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void complain(struct live *l, const char *fmt, ...)
{
	struct live_complaints *c = &l->complaints;
	char text[sizeof(c->recent[0].text)];
	uint64_t now = 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sd_event_now(l->event, CLOCK_MONOTONIC, &now);
	if (is_repeated(l, text, now))
		return;
	if (c->since == 0 || now - c->since > LIVE_PEER_LINES_US) {
		if (c->untold)
			live_log(l, LOG_WARNING, "peer: %u more complaints were not logged",
				 c->untold);
		c->since = now;
		c->told = c->untold = 0;
	}
	if (c->told == LIVE_PEER_LINES) {
		c->untold++;
		return;
	}
	c->told++;
	live_log(l, LOG_WARNING, "%s", text);
}

/* The connection to @node that counts: at most one that is not over. */
static struct live_peer *find(struct live *l, uint32_t node)
{
	struct live_peer *p;

	for (p = l->peers; p; p = p->next)
		if (p->node == node && p->state != LIVE_PEER_UNKNOWN && !p->conn.over)
			return p;
	return NULL;
}

static void peer_free(struct live_peer *p)
{
	struct live_peer **at = &p->live->peers;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	sd_event_source_disable_unref(p->later);
	if (p->state != LIVE_PEER_FAILED)
		live_conn_done(&p->conn);
	free(p);
}

static size_t hello_size(const struct live *l)
{
	return l->transport->welcomes ? sizeof(struct live_hello)
				      : offsetof(struct live_hello, digest);
}

/*
 * Both go on: the files may differ in what neither of the two hosts needs. But whoever looks for
 * what is wrong is to find it here.
 */
static void compare_files(struct live *l, const struct live_peer *p, const void *hello)
{
	const uint8_t *theirs = (const uint8_t *)hello + offsetof(struct live_hello, digest);

	if (l->transport->welcomes && memcmp(theirs, l->digest, LIVE_DIGEST) != 0)
		complain(l,
			 "peer node %" PRIu32 " has another cluster file than this host (sha256 "
			 "%02x%02x%02x%02x..., %02x%02x%02x%02x... here); smartio doctor shows "
			 "the lines; the same file on each is right",
			 p->node, theirs[0], theirs[1], theirs[2], theirs[3], l->digest[0],
			 l->digest[1], l->digest[2], l->digest[3]);
}

/* What a first packet says that may be true. -EPROTO with a text. */
static int read_hello(struct live *l, const void *buf, size_t len, uint32_t *ret_node,
		      struct sio_err *reterr)
{
	struct live_hello hello;

	if (len != hello_size(l))
		return sio_fail(reterr, -EPROTO, "first packet has %zu bytes instead of %zu", len,
				hello_size(l));
	memcpy(&hello, buf, len);
	hello.magic = le32toh(hello.magic);
	hello.version = le32toh(hello.version);
	hello.from = le32toh(hello.from);
	hello.to = le32toh(hello.to);
	if (hello.magic != LIVE_HELLO_MAGIC || hello.version != LIVE_HELLO_VERSION ||
	    hello.to != l->host->node || hello.from == l->host->node ||
	    !sio_topology_host(l->topology, hello.from))
		return sio_fail(
			reterr, -EPROTO,
			"hello of node %" PRIu32 " to node %" PRIu32 ", version %" PRIu32
			"; wanted another node of this cluster, to node %" PRIu32 ", version %d",
			hello.from, hello.to, hello.version, l->host->node, LIVE_HELLO_VERSION);
	*ret_node = hello.from;
	return 0;
}

static bool hung_up(const struct live_peer *p)
{
	struct pollfd end = {.fd = p->conn.fd};

	return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR));
}

static void say_hello(struct live_peer *p)
{
	struct live *l = p->live;
	struct live_hello hello = {.magic = htole32(LIVE_HELLO_MAGIC),
				   .version = htole32(LIVE_HELLO_VERSION),
				   .from = htole32(l->host->node),
				   .to = htole32(p->node)};

	memcpy(hello.digest, l->digest, sizeof(hello.digest));
	live_conn_send(&p->conn, &hello, hello_size(l), NULL, 0);
}

static void refuse(struct live_peer *p, const struct sio_err *err)
{
	complain(p->live, "peer%s%s: %s: refused", *p->source ? " " : "", p->source, err->text);
	live_conn_stop(&p->conn);
}

/* Of connections that have ended the daemon hears now: not after it has heard of the new one. */
static void forget_ended(struct live *l, const struct live_peer *new_one)
{
	bool known = false;

	for (struct live_peer *p = l->peers; p; p = p->next) {
		if (p == new_one || p->node != new_one->node || !p->conn.over || p->conn.quiet)
			continue;
		known |= p->state == LIVE_PEER_UP;
		p->conn.quiet = true;
	}
	if (known)
		smartiod_peer_down(l->daemon, new_one->node);
}

static void on_hello(struct live_peer *p, const void *buf, size_t len)
{
	struct live *l = p->live;
	struct live_peer *old;
	struct sio_err err;
	uint32_t node = 0;
	int r;

	r = read_hello(l, buf, len, &node, &err);
	if (r == 0)
		r = l->transport->check(l, &p->conn, sio_topology_host(l->topology, node), &p->pid,
					&err);
	old = r == 0 ? find(l, node) : NULL;
	if (old && p->pid && old->pid == p->pid && !hung_up(old))
		r = sio_fail(&err, -EBUSY, "process %ld, of node %" PRIu32 ", is connected already",
			     (long)p->pid, node);
	if (r < 0) {
		refuse(p, &err);
		return;
	}
	p->later = sd_event_source_disable_unref(p->later);
	p->node = node;
	p->state = LIVE_PEER_UP;
	forget_ended(l, p);
	if (old) {
		bool known = old->state == LIVE_PEER_UP;

		if (old->state == LIVE_PEER_FAILED)
			peer_free(old);
		else
			live_conn_stop(&old->conn);
		if (known)
			smartiod_peer_down(l->daemon, p->node);
	}
	if (l->transport->welcomes)
		say_hello(p);
	compare_files(l, p, buf);
	if (!p->conn.over)
		smartiod_peer_up(l->daemon, p->node);
}

/* Whom we connected to has taken our hello. */
static void on_welcome(struct live_peer *p, const void *buf, size_t len)
{
	struct live *l = p->live;
	struct sio_err err;
	uint32_t node = 0;
	int r;

	r = read_hello(l, buf, len, &node, &err);
	if (r == 0 && node != p->node)
		r = sio_fail(&err, -EPROTO, "node %" PRIu32 " answers in place of node %" PRIu32,
			     node, p->node);
	if (r == 0)
		r = l->transport->check(l, &p->conn, sio_topology_host(l->topology, node), &p->pid,
					&err);
	if (r < 0) {
		refuse(p, &err);
		p->conn.quiet = false; /* the daemon has not heard of it */
		return;
	}
	p->later = sd_event_source_disable_unref(p->later);
	p->state = LIVE_PEER_UP;
	sd_event_now(l->event, CLOCK_MONOTONIC, &p->up_since);
	compare_files(l, p, buf);
	smartiod_peer_up(l->daemon, p->node);
}

static void on_packet(struct live_conn *conn, const void *buf, size_t len, int *fds, unsigned n_fds)
{
	struct live_peer *p = conn->ctx;

	/* Peers send numbers, never descriptors: whatever came beside is closed by the caller. */
	(void)fds;
	(void)n_fds;
	if (p->state == LIVE_PEER_UNKNOWN)
		on_hello(p, buf, len);
	else if (p->state == LIVE_PEER_ASKING)
		on_welcome(p, buf, len);
	else
		smartiod_peer_message(p->live->daemon, p->node, buf, len);
}

static int on_later(sd_event_source *s, void *data);
static int on_failed(sd_event_source *s, uint64_t usec, void *data)
{
	(void)usec;
	return on_later(s, data);
}

/* Nothing came of it. The daemon, which tries again at once, is told after a while. */
static void fail_later(struct live_peer *p)
{
	struct live *l = p->live;
	unsigned n = l->failures[p->node / 4].count++;
	uint64_t after = n < 8 ? LIVE_PEER_LATER_US << n : LIVE_PEER_LATEST_US, now;
	int r;

	p->state = LIVE_PEER_FAILED;
	p->later = sd_event_source_disable_unref(p->later);
	r = sd_event_now(l->event, CLOCK_MONOTONIC, &now);
	if (r >= 0)
		r = sd_event_add_time(
			l->event, &p->later, CLOCK_MONOTONIC,
			now + (after < LIVE_PEER_LATEST_US ? after : LIVE_PEER_LATEST_US), 1000,
			on_failed, p);
	if (r < 0) {
		live_log(l, LOG_ERR, "peer node %" PRIu32 ": %s", p->node, strerror(-r));
		sd_event_exit(l->event, 1);
	}
}

/* Whoever takes our hello and hangs up is not to be asked again and again without a pause. */
static void count_brief(struct live_peer *p)
{
	struct live_failures *f = &p->live->failures[p->node / 4];
	uint64_t now = p->up_since;

	if (p->up_since == 0)
		return;
	sd_event_now(p->live->event, CLOCK_MONOTONIC, &now);
	f->brief = now - p->up_since < LIVE_PEER_BRIEF_US;
	if (!f->brief)
		f->count = 0;
}

static void on_over(struct live_conn *conn, int error)
{
	struct live_peer *p = conn->ctx;
	struct live *l = p->live;
	uint32_t node = p->node;
	bool tell = !conn->quiet && p->state != LIVE_PEER_UNKNOWN, revoked = p->revoked;
	const char *why = conn->why	      ? conn->why
			  : error == -ENOBUFS ? "does not read"
					      : strerror(-error);

	if (p->state == LIVE_PEER_UNKNOWN && conn->why)
		complain(l, "peer %s: %s: cut off", p->source, why);
	/* Nobody listens yet, or any more: that is no complaint. */
	else if (error && error != -ECONNRESET && error != -EPIPE && error != -ECONNREFUSED)
		complain(l, "peer node %" PRIu32 ": %s: cut off", node, why);
	if (tell && p->state == LIVE_PEER_ASKING) {
		live_conn_done(conn);
		p->conn = (struct live_conn){.fd = -1};
		fail_later(p);
		return;
	}
	count_brief(p);
	peer_free(p);
	if (tell && revoked)
		smartiod_peer_expelled(l->daemon, node);
	else if (tell)
		smartiod_peer_down(l->daemon, node);
}

static const struct live_conn_handler handler = {.packet = on_packet, .over = on_over};

static int on_hello_late(sd_event_source *s, uint64_t usec, void *data)
{
	struct live_peer *p = data;

	(void)s;
	(void)usec;
	if (p->state == LIVE_PEER_ASKING)
		complain(p->live, "peer node %" PRIu32 ": does not answer: cut off", p->node);
	else
		complain(p->live, "peer%s%s: connected, but did not say which node: cut off",
			 *p->source ? " " : "", p->source);
	live_conn_stop(&p->conn);
	p->conn.quiet = p->state != LIVE_PEER_ASKING;
	return 0;
}

static int wait_for_hello(struct live_peer *p)
{
	uint64_t now;
	int r = sd_event_now(p->live->event, CLOCK_MONOTONIC, &now);

	if (r < 0)
		return r;
	return sd_event_add_time(p->live->event, &p->later, CLOCK_MONOTONIC,
				 now + LIVE_PEER_HELLO_US, 100000, on_hello_late, p);
}

static unsigned of_source(const struct live *l, const char *source)
{
	unsigned n = 0;

	for (const struct live_peer *p = l->peers; p; p = p->next)
		n += p->state == LIVE_PEER_UNKNOWN && strcmp(p->source, source) == 0;
	return n;
}

/*
 * Room for one more that has not said its node. Of the source that has most of them, the one that
 * has had the longest time to goes: whoever connects without end keeps itself out, and not others.
 */
static void make_room(struct live *l)
{
	struct live_peer *p, *oldest = NULL;
	unsigned unknown = 0, most = 0;

	for (p = l->peers; p; p = p->next)
		unknown += p->state == LIVE_PEER_UNKNOWN;
	if (unknown < LIVE_PEERS_UNKNOWN)
		return;
	/* New ones come first. */
	for (p = l->peers; p; p = p->next) {
		unsigned n = p->state == LIVE_PEER_UNKNOWN ? of_source(l, p->source) : 0;

		if (n >= most && n > 0) {
			most = n;
			oldest = p;
		}
	}
	complain(l, "peer%s%s: %u are connected and did not say which node: one is cut off",
		 *oldest->source ? " " : "", oldest->source, most);
	peer_free(oldest);
}

void live_peer_accepted(struct live *l, int fd)
{
	struct live_peer *p = calloc(1, sizeof(*p));
	struct sio_err err;
	int r;

	if (!p) {
		live_log(l, LOG_ERR, "a peer is turned away: no memory: " SIO_MORE_MEMORY);
		close(fd);
		return;
	}
	make_room(l);
	p->live = l;
	r = l->transport->accept(l, fd, &p->conn, &handler, p, &err);
	if (r < 0)
		goto free_peer;
	l->transport->source(&p->conn, p->source);
	r = wait_for_hello(p);
	if (r < 0) {
		sio_fail(&err, r, "%s", strerror(-r));
		live_conn_done(&p->conn);
		goto free_peer;
	}
	p->next = l->peers;
	l->peers = p;
	return;
free_peer:
	free(p);
	live_log(l, LOG_ERR, "a peer is turned away: %s", err.text);
}

/* The daemon asked for a connection in an operation of its own; the answer comes from the loop. */
static int on_later(sd_event_source *s, void *data)
{
	struct live_peer *p = data;
	struct live *l = p->live;
	uint32_t node = p->node;

	(void)s;
	if (p->state == LIVE_PEER_FAILED) {
		peer_free(p);
		smartiod_peer_down(l->daemon, node);
		return 0;
	}
	p->later = sd_event_source_disable_unref(p->later);
	if (p->conn.over)
		return 0; /* on_over() tells, or the daemon closed it meanwhile */
	p->state = LIVE_PEER_UP;
	smartiod_peer_up(l->daemon, node);
	return 0;
}

static int open_peer(struct live_peer *p)
{
	struct live *l = p->live;
	const struct sio_topo_host *host = sio_topology_host(l->topology, p->node);
	struct sio_err err;
	int r;

	if (!host)
		return -EHOSTUNREACH;
	r = l->transport->connect(l, host, &p->conn, &handler, p, &err);
	if (r < 0) {
		if (r != -ENOENT && r != -ECONNREFUSED && r != -EAGAIN)
			complain(l, "peer node %" PRIu32 ": %s", p->node, err.text);
		return r;
	}
	say_hello(p);
	return 0;
}

/* Open, and the loop tells what became of it. */
static int ask(struct live_peer *p)
{
	struct live *l = p->live;
	int r;

	if (l->failures[p->node / 4].brief) {
		l->failures[p->node / 4].brief = false;
		fail_later(p);
		return 0;
	}
	r = open_peer(p);
	if (l->transport->welcomes) {
		p->state = LIVE_PEER_ASKING;
		if (r == 0)
			return wait_for_hello(p);
		fail_later(p);
		return 0;
	}
	p->state = r < 0 ? LIVE_PEER_FAILED : LIVE_PEER_NEW;
	return sd_event_add_defer(l->event, &p->later, on_later, p);
}

void live_peer_connect(void *ctx, uint32_t node)
{
	struct live *l = ctx;
	struct live_peer *p;
	int r;

	if (find(l, node))
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		live_log(l, LOG_ERR, "peer node %" PRIu32 ": no memory: " SIO_MORE_MEMORY, node);
		sd_event_exit(l->event, 1);
		return;
	}
	p->live = l;
	p->node = node;
	p->state = LIVE_PEER_FAILED;
	p->next = l->peers;
	l->peers = p;
	r = ask(p);
	if (r < 0) {
		live_log(l, LOG_ERR, "peer node %" PRIu32 ": %s", node, strerror(-r));
		sd_event_exit(l->event, 1);
	}
}

void live_peer_send(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct live_peer *p = find(ctx, node);

	if (p && p->state == LIVE_PEER_UP)
		live_conn_send(&p->conn, msg, len, NULL, 0);
}

void live_peer_close(void *ctx, uint32_t node)
{
	struct live_peer *p = find(ctx, node);

	if (!p)
		return;
	if (p->state == LIVE_PEER_FAILED)
		peer_free(p);
	else
		live_conn_stop(&p->conn);
}

void live_peers_check(struct live *l)
{
	struct sio_err err;

	for (struct live_peer *p = l->peers; p; p = p->next) {
		if (p->state == LIVE_PEER_FAILED || p->conn.over ||
		    l->transport->recheck(l, &p->conn, &err) == 0)
			continue;
		complain(l, "peer node %" PRIu32 ": %s: cut off", p->node, err.text);
		p->revoked = p->state == LIVE_PEER_UP && err.code == -EKEYREVOKED;
		live_conn_stop(&p->conn);
		p->conn.quiet = p->state == LIVE_PEER_UNKNOWN; /* the daemon is notified of it */
	}
}

void live_peers_free(struct live *l)
{
	while (l->peers)
		peer_free(l->peers);
}
