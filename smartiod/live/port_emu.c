/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware port of the emulated cluster: a connection to the socket port.<node> of the machine
 * room.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "smartiod/live/live.h"
#include "smartiod/live/file.h"
#include "smartio/uapi.h"

#define PORT_QUEUE (64u << 20)

static void on_packet(struct live_conn *conn, const void *buf, size_t len, int *fds, unsigned n_fds)
{
	struct live *l = conn->ctx;
	int place[LIVE_MAX_FDS];

	/* The room sent them: who misses one has no room for it, and hears so by the -1. */
	for (unsigned i = 0; i < LIVE_MAX_FDS; i++)
		place[i] = i < n_fds ? fds[i] : -1;
	smartiod_port_event(l->daemon, buf, len, place, conn->fds_lost ? LIVE_MAX_FDS : n_fds);
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = -1;
}

static void on_over(struct live_conn *conn, int error)
{
	struct live *l = conn->ctx;

	if (!l->ready && (error == 0 || error == -ECONNRESET || error == -EPIPE))
		live_log(l, LOG_ERR,
			 "the machine room closed the port before it answered: "
			 "does another daemon run this host?");
	else
		live_log(l, LOG_ERR, "the machine room is gone%s%s", error ? ": " : "",
			 error ? strerror(-error) : "");
	l->exit_code = 1;
	sd_event_exit(l->event, 1);
}

static const struct live_conn_handler handler = {.packet = on_packet, .over = on_over};

static int emu_open(struct live *l, struct sio_err *reterr)
{
	char path[LIVE_PATH];
	int fd, r;

	if (snprintf(path, sizeof(path), "%s/port.%" PRIu32, l->options.state, l->host->node) >=
	    (int)sizeof(path))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: name too long", l->options.state);
	r = live_connect(path, &fd, reterr);
	if (r < 0)
		return sio_fail_prefix(reterr, "no machine room");
	r = live_conn_init(&l->port, l->event, fd, PORT_QUEUE, &handler, l);
	if (r < 0)
		return sio_fail(reterr, r, "%s: %s", path, strerror(-r));
	/* Answers of the hardware first: they end what programs wait for. */
	sd_event_source_set_priority(l->port.io, SD_EVENT_PRIORITY_NORMAL - 10);
	l->port_open = true;
	return 0;
}

static void emu_send(struct live *l, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	live_conn_send(&l->port, req, len, fds, n_fds);
}

static void emu_close(struct live *l)
{
	if (l->port_open)
		live_conn_done(&l->port);
	l->port_open = false;
}

const struct live_port live_port_emu = {emu_open, emu_send, emu_close};
