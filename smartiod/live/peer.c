/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other hosts' daemons. Who connects says in a first packet which node it is, and must be the
 * process that holds that node's pid file: the socket alone keeps no program of the same user away.
 * From then on both ends exchange messages of wire/peer.h, which this file does not look into.
 * There is one connection to a node at a time: a daemon's second one is turned away until the first
 * has hung up; one of the daemon that came after replaces what is left of the old.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "smartiod/live/live.h"
#include "smartiod/live/file.h"

#define LIVE_PEER_QUEUE (16u << 20)
#define LIVE_PEER_HELLO_US 5000000u /* who has not said its node by then is cut off */
#define LIVE_PEERS_UNKNOWN 128	    /* connections that have not said it yet */
#define LIVE_HELLO_MAGIC 0x72656570u
#define LIVE_HELLO_VERSION 1

struct live_hello {
	uint32_t magic, version, from, to;
};

enum live_peer_state {
	LIVE_PEER_UNKNOWN, /* accepted; its first packet is awaited */
	LIVE_PEER_NEW,	   /* connected by us; the daemon is about to be told */
	LIVE_PEER_UP,	   /* the daemon knows it */
	LIVE_PEER_FAILED,  /* could not connect; the daemon is about to be told */
};

struct live_peer {
	struct live_conn conn; /* fd -1 when FAILED */
	struct live *live;
	enum live_peer_state state;
	uint32_t node; /* 0: unknown */
	pid_t pid;     /* of who connected to us; 0: we connected */
	sd_event_source *later;
	struct live_peer *next;
};

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

/* What a first packet says that may be true. -EPROTO with a text. */
static int read_hello(struct live *l, const void *buf, size_t len, uint32_t *ret_node,
		      struct sio_err *reterr)
{
	struct live_hello hello;

	if (len != sizeof(hello))
		return sio_fail(reterr, -EPROTO, "first packet has %zu bytes instead of %zu", len,
				sizeof(hello));
	memcpy(&hello, buf, sizeof(hello));
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

/* The process at the other end is the daemon of @node. */
static int check_process(struct live_peer *p, uint32_t node, struct sio_err *reterr)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	char path[LIVE_PATH];
	int r;

	if (getsockopt(p->conn.fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return sio_fail(reterr, -errno, "SO_PEERCRED: %s", strerror(errno));
	if (snprintf(path, sizeof(path), "%s/smartiod.%" PRIu32 ".pid", p->live->options.state,
		     node) >= (int)sizeof(path))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: name too long", p->live->options.state);
	r = live_pid_check(path, who.pid, reterr);
	if (r == 0)
		p->pid = who.pid;
	return r;
}

static bool hung_up(const struct live_peer *p)
{
	struct pollfd end = {.fd = p->conn.fd};

	return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR));
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
		r = check_process(p, node, &err);
	old = r == 0 ? find(l, node) : NULL;
	if (old && old->pid == p->pid && !hung_up(old))
		r = sio_fail(&err, -EBUSY, "process %ld, of node %" PRIu32 ", is connected already",
			     (long)p->pid, node);
	if (r < 0) {
		live_log(l, LOG_WARNING, "peer: %s: refused", err.text);
		live_conn_stop(&p->conn);
		return;
	}
	p->later = sd_event_source_disable_unref(p->later);
	p->node = node;
	p->state = LIVE_PEER_UP;
	if (old) {
		bool known = old->state == LIVE_PEER_UP;

		live_conn_stop(&old->conn);
		if (known)
			smartiod_peer_down(l->daemon, p->node);
	}
	if (!p->conn.over)
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
	else
		smartiod_peer_message(p->live->daemon, p->node, buf, len);
}

static void on_over(struct live_conn *conn, int error)
{
	struct live_peer *p = conn->ctx;
	struct live *l = p->live;
	uint32_t node = p->node;
	bool tell = !conn->quiet && p->state != LIVE_PEER_UNKNOWN;

	if (error && error != -ECONNRESET && error != -EPIPE)
		live_log(l, LOG_WARNING, "peer node %" PRIu32 ": %s: cut off", node,
			 error == -ENOBUFS ? "does not read" : strerror(-error));
	peer_free(p);
	if (tell)
		smartiod_peer_down(l->daemon, node);
}

static const struct live_conn_handler handler = {.packet = on_packet, .over = on_over};

static int on_hello_late(sd_event_source *s, uint64_t usec, void *data)
{
	struct live_peer *p = data;

	(void)s;
	(void)usec;
	live_log(p->live, LOG_WARNING, "peer: connected, but did not say which node: cut off");
	live_conn_stop(&p->conn);
	return 0;
}

/* Room for one more that has not said its node: the one that has had the longest time to goes. */
static void make_room(struct live *l)
{
	struct live_peer *p, *oldest = NULL;
	unsigned unknown = 0;

	/* New ones come first. */
	for (p = l->peers; p; p = p->next) {
		if (p->state != LIVE_PEER_UNKNOWN)
			continue;
		unknown++;
		oldest = p;
	}
	if (unknown < LIVE_PEERS_UNKNOWN)
		return;
	live_log(l, LOG_WARNING,
		 "peer: %u are connected and did not say which node: one is cut "
		 "off",
		 unknown);
	peer_free(oldest);
}

void live_peer_accepted(struct live *l, int fd)
{
	struct live_peer *p = calloc(1, sizeof(*p));
	uint64_t now;
	int r;

	if (!p) {
		live_log(l, LOG_ERR, "a peer is turned away: no memory");
		close(fd);
		return;
	}
	make_room(l);
	p->live = l;
	r = live_conn_init(&p->conn, l->event, fd, LIVE_PEER_QUEUE, &handler, p);
	if (r < 0)
		goto fail;
	r = sd_event_now(l->event, CLOCK_MONOTONIC, &now);
	if (r >= 0)
		r = sd_event_add_time(l->event, &p->later, CLOCK_MONOTONIC,
				      now + LIVE_PEER_HELLO_US, 100000, on_hello_late, p);
	if (r < 0)
		goto done;
	p->next = l->peers;
	l->peers = p;
	return;
done:
	live_conn_done(&p->conn);
fail:
	free(p);
	live_log(l, LOG_ERR, "a peer is turned away: %s", strerror(-r));
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
	struct live_hello hello = {.magic = LIVE_HELLO_MAGIC,
				   .version = LIVE_HELLO_VERSION,
				   .from = l->host->node,
				   .to = p->node};
	char path[LIVE_PATH];
	struct sio_err err;
	int fd, r;

	if (!host)
		return -EHOSTUNREACH;
	if (snprintf(path, sizeof(path), "%s/peer.%" PRIu32, l->options.state, p->node) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	r = live_connect(path, &fd, &err);
	if (r < 0) {
		if (r != -ENOENT && r != -ECONNREFUSED && r != -EAGAIN)
			live_log(l, LOG_WARNING, "peer node %" PRIu32 ": %s", p->node, err.text);
		return r;
	}
	r = live_conn_init(&p->conn, l->event, fd, LIVE_PEER_QUEUE, &handler, p);
	if (r < 0)
		return r;
	live_conn_send(&p->conn, &hello, sizeof(hello), NULL, 0);
	return 0;
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
		live_log(l, LOG_ERR, "peer node %" PRIu32 ": no memory", node);
		sd_event_exit(l->event, 1);
		return;
	}
	p->live = l;
	p->node = node;
	p->state = open_peer(p) < 0 ? LIVE_PEER_FAILED : LIVE_PEER_NEW;
	p->next = l->peers;
	l->peers = p;
	r = sd_event_add_defer(l->event, &p->later, on_later, p);
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

void live_peers_free(struct live *l)
{
	while (l->peers)
		peer_free(l->peers);
}
