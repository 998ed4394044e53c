/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection on the event loop: packets, sends that never block, and a bounded queue for what
 * the other end does not read yet. A table of operations moves packets over the descriptor: a
 * SOCK_SEQPACKET socket of this machine, which carries descriptors as well, or another transport.
 */
#ifndef SMARTIOD_LIVE_CONN_H
#define SMARTIOD_LIVE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#define LIVE_MAX_PACKET 8192
#define LIVE_MAX_FDS 16

struct live_conn;

/* How packets go over c->fd; c->io_ctx is its own. None of them waits. */
struct live_conn_io {
	/* As sio_packet_send() and sio_packet_recv(); recv: fds_lost of @c is set. */
	ssize_t (*send)(struct live_conn *c, const void *buf, size_t len, const int *fds,
			unsigned n_fds);
	ssize_t (*recv)(struct live_conn *c, void *buf, size_t len, int *fds, unsigned *ret_n_fds);
	/* What c->fd is to be watched for; @queued: packets wait to be sent. */
	uint32_t (*events)(const struct live_conn *c, bool queued);
	/* May be NULL: go on with what has begun to be sent. 0 or -errno. */
	int (*flush)(struct live_conn *c);
	/* May be NULL: recv() has something to say though c->fd has nothing more. */
	bool (*pending)(const struct live_conn *c);
	/* May be NULL: free io_ctx; c->fd is still open. */
	void (*done)(struct live_conn *c);
};

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
	const struct live_conn_io *ops;
	void *io_ctx;
	const char *why; /* what was wrong, in words of io_ctx; NULL: the error says it */
	sd_event_source *io, *defer, *more;
	uint32_t events; /* that c->fd is watched for */
	const struct live_conn_handler *handler;
	void *ctx;
	struct live_packet *first, **last; /* not yet sent */
	size_t queued, max_queued;	   /* bytes */
	unsigned queued_fds;
	unsigned single; /* turns that take one packet */
	int error;	 /* why it is over */
	bool over;	 /* nothing is sent or received any more */
	bool reset;	 /* the other end closed with words of ours unread */
	bool quiet;	 /* over by our own will */
	bool fds_lost;	 /* descriptors of this packet did not fit into our table */
};

/* Takes @fd, also on failure. @c is the caller's memory, zeroed or not. */
int live_conn_init(struct live_conn *c, sd_event *event, int fd, size_t max_queued,
		   const struct live_conn_handler *handler, void *ctx);
/* The same over @ops; takes @io_ctx, too. */
int live_conn_init_io(struct live_conn *c, sd_event *event, int fd, size_t max_queued,
		      const struct live_conn_handler *handler, void *ctx,
		      const struct live_conn_io *ops, void *io_ctx);
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
