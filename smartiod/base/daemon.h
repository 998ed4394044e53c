/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartiod as a step machine: every function below is one event; the daemon answers through its
 * operations table. It owns no thread, clock, socket or random number, never waits, and sees
 * descriptors as numbers to pass on or close. smartiod/main.c gives it the live world
 * (sd-event), the simulator another one. One thread at a time: no operation calls back into the
 * daemon before it has returned. Messages and events lie at addresses that are multiples of 8.
 */
#ifndef SMARTIOD_DAEMON_H
#define SMARTIOD_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdarg.h>
#include <stdint.h>

#include "core/err.h"
#include "core/topology.h"

struct smartiod;

struct smartiod_ops {
	/*
	 * A request to the port (smartio/uapi.h); @fds stay the daemon's. Answered by
	 * smartiod_port_event().
	 */
	void (*port)(void *ctx, const void *req, size_t len, const int *fds, unsigned n_fds);
	/*
	 * A message to a client. @fds stay the daemon's. A client that does not read is cut off by
	 * the edge.
	 */
	void (*client_send)(void *ctx, uint64_t client, const void *msg, size_t len, const int *fds,
			    unsigned n_fds);
	/* Cut a client off; smartiod_client_gone() does not follow. */
	void (*client_close)(void *ctx, uint64_t client);
	/* Hand over what a client has sent up to now; NULL: nothing overtakes that. */
	void (*client_take)(void *ctx, uint64_t client);
	/*
	 * Open a connection to a peer's daemon: smartiod_peer_up() or smartiod_peer_down() follows.
	 */
	void (*peer_connect)(void *ctx, uint32_t node);
	void (*peer_send)(void *ctx, uint32_t node, const void *msg, size_t len);
	/* Cut a peer off; smartiod_peer_down() does not follow. */
	void (*peer_close)(void *ctx, uint32_t node);
	void (*close)(void *ctx, int fd);
	/*
	 * Interrupts that several programs own (SCI_FLAG_SHARED_INT). irq_watch: call
	 * smartiod_irq() for what @fd counts, until irq_unwatch; -errno. irq_signal: one write of
	 * @count to a trigger; a count that has no room left is dropped.
	 */
	int (*irq_watch)(void *ctx, int fd, uint64_t irq);
	void (*irq_unwatch)(void *ctx, uint64_t irq);
	void (*irq_signal)(void *ctx, int fd, uint64_t count);
	uint64_t (*now)(void *ctx); /* nanoseconds, monotonic */
	/* Call smartiod_timer() at @when; one timer, the last call counts; UINT64_MAX: none. */
	void (*timer)(void *ctx, uint64_t when);
	/*
	 * Call smartiod_later() once, when more of what has changed has had time to change: a
	 * millisecond or so. Not asked for again before that call.
	 */
	void (*later)(void *ctx);
	uint64_t (*random)(void *ctx);
	/*
	 * Bytes of memory that the daemon has now, for the counters; NULL: the world cannot say.
	 */
	uint64_t (*heap)(void *ctx);
	/*
	 * The cluster's file; NULL: the world has none. file_read: as it is now, or (@next) the one
	 * that is to take its place, for a client of user @uid; *ret is the daemon's. -EPERM,
	 * -errno with a text. file_keep: what was read last, @t, is in force from now on; the one
	 * before goes. file_text: of the one in force, until the daemon returns; NULL: there is
	 * none.
	 */
	int (*file_read)(void *ctx, uint32_t uid, bool next, struct sio_topology **ret,
			 struct sio_err *reterr);
	void (*file_keep)(void *ctx, const struct sio_topology *t);
	const char *(*file_text)(void *ctx, size_t *ret_len);
	/* The daemon is ready for clients. */
	void (*ready)(void *ctx);
	/* The daemon cannot go on (port gone): the edge ends it. */
	void (*fatal)(void *ctx, const char *text);
	/*
	 * A line of the source @file, which shows its room; @level: syslog's. Whether it is written
	 * is the edge's to say, so it is formatted there.
	 */
	void (*log)(void *ctx, const char *file, int level, const char *fmt, va_list ap)
		__attribute__((format(printf, 4, 0)));
};

/* @t stays the caller's and must outlive the daemon. */
int smartiod_new(const struct sio_topology *t, uint32_t node, const struct smartiod_ops *ops,
		 void *ctx, struct smartiod **ret, struct sio_err *reterr);
void smartiod_free(struct smartiod *d);
/* How many descriptors this process may have: errors name it. */
void smartiod_descriptors(struct smartiod *d, uint64_t n);

/* First event: starts the conversation with the port. */
void smartiod_start(struct smartiod *d);
/* An answer or event of the port. The daemon takes or closes @fds. */
void smartiod_port_event(struct smartiod *d, const void *evt, size_t len, int *fds, unsigned n_fds);
/*
 * Clients: ascending numbers chosen by the edge, never used again. @pid, @who: of the socket's
 * credentials; the groups stay the caller's. @who NULL: root. @started: when that process was
 * started, on whatever clock: clients with equal @pid and @started are one program; 0: not known.
 */
void smartiod_client_new(struct smartiod *d, uint64_t client, uint32_t pid, uint64_t started,
			 const struct sio_policy_person_of *who);
void smartiod_client_message(struct smartiod *d, uint64_t client, const void *msg, size_t len,
			     int *fds, unsigned n_fds);
void smartiod_client_gone(struct smartiod *d, uint64_t client);
/* Peers: after peer_connect, or because the peer connected to us (it said its node id). */
void smartiod_peer_up(struct smartiod *d, uint32_t node);
void smartiod_peer_message(struct smartiod *d, uint32_t node, const void *msg, size_t len);
void smartiod_peer_down(struct smartiod *d, uint32_t node);
/* The same, of a host that may not come back: nothing of it is kept until it does. */
void smartiod_peer_expelled(struct smartiod *d, uint32_t node);
void smartiod_timer(struct smartiod *d);
/* What the daemon asked for by the operation later. */
void smartiod_later(struct smartiod *d);
/* A watched interrupt was triggered @count times. */
void smartiod_irq(struct smartiod *d, uint64_t irq, uint64_t count);

#endif
