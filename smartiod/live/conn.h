/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One SOCK_SEQPACKET connection on the event loop: packets with descriptors beside them, sends that
 * never block, and a bounded queue for what the other end does not read yet.
 */
#ifndef SMARTIOD_LIVE_CONN_H
#define SMARTIOD_LIVE_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include <systemd/sd-event.h>

#define LIVE_MAX_PACKET 8192
#define LIVE_MAX_FDS 16

struct live_conn;

struct live_conn_handler {
	/* A packet. Whoever takes a descriptor leaves -1; the rest is closed. May call
	 * live_conn_stop(). */
	void (*packet)(struct live_conn *c, const void *buf, size_t len, int *fds, unsigned n_fds);
	/*
	 * The connection is over: called once, from the loop, and the place to call
	 * live_conn_done().
	 * @error: 0 the other end closed, or -errno; c->quiet: live_conn_stop() was called.
	 */
	void (*over)(struct live_conn *c, int error);
};

struct live_conn {
	int fd;
	sd_event_source *io, *defer;
	const struct live_conn_handler *handler;
	void *ctx;
	struct live_packet *first, **last; /* not yet sent */
	size_t queued, max_queued;	   /* bytes */
	unsigned queued_fds;
	int error;     /* why it is over */
	bool over;     /* nothing is sent or received any more */
	bool reset;    /* the other end closed with words of ours unread */
	bool quiet;    /* over by our own will */
	bool fds_lost; /* descriptors of this packet did not fit into our table */
};

/* Takes @fd, also on failure. @c is the caller's memory, zeroed or not. */
int live_conn_init(struct live_conn *c, sd_event *event, int fd, size_t max_queued,
		   const struct live_conn_handler *handler, void *ctx);
/*
 * Send, or queue with copies of @fds. Never calls the handler: what fails is told by over(), later.
 * Silently drops the packet when the connection is over.
 */
void live_conn_send(struct live_conn *c, const void *buf, size_t len, const int *fds,
		    unsigned n_fds);
/* No more packets in or out; handler->over() follows, with c->quiet set. */
void live_conn_stop(struct live_conn *c);
/* Handle the packets that have come. Not from inside a handler of this connection. */
void live_conn_take(struct live_conn *c);
/* Frees what @c holds and closes its descriptor. Not from inside handler->packet(). */
void live_conn_done(struct live_conn *c);

#endif
