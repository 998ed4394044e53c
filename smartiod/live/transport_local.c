/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Daemons of one machine: SOCK_SEQPACKET sockets in the state directory. A process that connects
 * must be the one that holds its node's pid file, because the socket alone does not keep out other
 * programs of the same user.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "smartiod/live/file.h"
#include "smartiod/live/transport.h"

static int state_path(struct live *l, char path[LIVE_PATH], const char *name, uint32_t node,
		      const char *end, struct sio_err *reterr)
{
	if (snprintf(path, LIVE_PATH, "%s/%s.%" PRIu32 "%s", l->options.state, name, node, end) >=
	    LIVE_PATH)
		return sio_fail(reterr, -ENAMETOOLONG, "%s: name too long", l->options.state);
	return 0;
}

static int local_open(struct live *l, void (*accepted)(struct live *l, int fd),
		      struct sio_err *reterr)
{
	char path[LIVE_PATH];
	int r = state_path(l, path, "peer", l->host->node, "", reterr);

	return r < 0 ? r : live_listener_init(&l->peers_listener, l, path, accepted, reterr);
}

static void local_close(struct live *l)
{
	live_listener_done(&l->peers_listener);
}

static int local_connect(struct live *l, const struct sio_topo_host *to, struct live_conn *c,
			 const struct live_conn_handler *handler, void *ctx, struct sio_err *reterr)
{
	char path[LIVE_PATH];
	int fd, r = state_path(l, path, "peer", to->node, "", reterr);

	if (r == 0)
		r = live_connect(path, &fd, reterr);
	if (r < 0)
		return r;
	r = live_conn_init(c, l->event, fd, LIVE_PEER_QUEUE, handler, ctx);
	return r < 0 ? sio_fail(reterr, r, "%s: %s", path, strerror(-r)) : 0;
}

static int local_accept(struct live *l, int fd, struct live_conn *c,
			const struct live_conn_handler *handler, void *ctx, struct sio_err *reterr)
{
	int r = live_conn_init(c, l->event, fd, LIVE_PEER_QUEUE, handler, ctx);

	return r < 0 ? sio_fail(reterr, r, "%s", strerror(-r)) : 0;
}

static int local_check(struct live *l, struct live_conn *c, const struct sio_topo_host *host,
		       pid_t *ret_pid, struct sio_err *reterr)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	char path[LIVE_PATH];
	int r;

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return sio_fail(reterr, -errno, "SO_PEERCRED: %s", strerror(errno));
	r = state_path(l, path, "smartiod", host->node, ".pid", reterr);
	if (r == 0)
		r = live_pid_check(path, who.pid, reterr);
	if (r == 0)
		*ret_pid = who.pid;
	return r;
}

static void local_source(const struct live_conn *c, char out[LIVE_SOURCE])
{
	(void)c;
	*out = '\0';
}

const struct live_transport live_transport_local = {
	.open = local_open,
	.close = local_close,
	.connect = local_connect,
	.accept = local_accept,
	.check = local_check,
	.source = local_source,
};
