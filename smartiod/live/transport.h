/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the daemons of two hosts reach each other. The messages (peer.c) are the same on every
 * transport; the transport proves which host is at the other end.
 */
#ifndef SMARTIOD_LIVE_TRANSPORT_H
#define SMARTIOD_LIVE_TRANSPORT_H

#include "smartiod/live/live.h"

#define LIVE_PEER_QUEUE (16u << 20) /* bytes; who leaves more unread is cut off */
#define LIVE_SOURCE 64		    /* text of where a connection comes from */

struct live_transport {
	/* What is needed before the first connection; l->peers_listener takes @accepted. */
	int (*open)(struct live *l, void (*accepted)(struct live *l, int fd),
		    struct sio_err *reterr);
	/* Also when open() failed or was not called; connections are gone. */
	void (*close)(struct live *l);
	/* Begin a connection to @to, as @c. Never waits. -errno with a text: @c is not there. */
	int (*connect)(struct live *l, const struct sio_topo_host *to, struct live_conn *c,
		       const struct live_conn_handler *handler, void *ctx, struct sio_err *reterr);
	/* The same of one that was accepted; takes @fd. */
	int (*accept)(struct live *l, int fd, struct live_conn *c,
		      const struct live_conn_handler *handler, void *ctx, struct sio_err *reterr);
	/*
	 * The other end of @c, which has said so, is the daemon of @host. *ret_pid: its process,
	 * if it runs on this machine, or 0. -errno with a text: it is not.
	 */
	int (*check)(struct live *l, struct live_conn *c, const struct sio_topo_host *host,
		     pid_t *ret_pid, struct sio_err *reterr);
	/*
	 * May be NULL: is the other end still who it was, by the keys that there are now? -errno
	 * with a text.
	 */
	int (*recheck)(struct live *l, struct live_conn *c, struct sio_err *reterr);
	/* May be NULL: the file in force is another one now: set l->digest. */
	void (*digest)(struct live *l);
	/* Where @c comes from, for limits and the log; "": this machine. */
	void (*source)(const struct live_conn *c, char out[LIVE_SOURCE]);
	/*
	 * Whoever accepted says that it took the hello; until then nothing is known of who was
	 * connected to, and a failure is tried again later and later. The hello has l->digest, for
	 * both may have read different files.
	 */
	bool welcomes;
};

extern const struct live_transport live_transport_local; /* sockets of the state directory */
extern const struct live_transport live_transport_tls;	 /* TLS 1.3 over TCP */

#endif
