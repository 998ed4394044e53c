/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a connection at the importer, whatever it leads to. A connection that is lost stays
 * until its program disconnects it; one that is closed is freed when no operation uses it.
 */
#ifndef SMARTIOD_CONNECTION_LIFE_H
#define SMARTIOD_CONNECTION_LIFE_H

#include <stdbool.h>

enum smartiod_connection_state {
	SMARTIOD_CONNECTION_MADE,	     /* its program can use it */
	SMARTIOD_CONNECTION_DOWN,	     /* its path is down, and may come back */
	SMARTIOD_CONNECTION_CONNECTING,	     /* exporter or port has not answered */
	SMARTIOD_CONNECTION_CONNECTING_DOWN, /* the same, and its path is down */
	SMARTIOD_CONNECTION_CONNECTING_LOST, /* the same, and its exporter is gone */
	SMARTIOD_CONNECTION_LOST,	     /* the exporter took it back, or is gone: ECONNRESET */
	SMARTIOD_CONNECTION_CLOSED, /* nobody has a handle of it; freed when pins are gone */
	SMARTIOD_CONNECTION_STATES,
};

enum smartiod_connection_event {
	SMARTIOD_CONNECTION_CONNECT,   /* exporter or port is asked */
	SMARTIOD_CONNECTION_CONNECTED, /* and has answered */
	SMARTIOD_CONNECTION_PATH_DOWN,
	SMARTIOD_CONNECTION_PATH_UP,
	SMARTIOD_CONNECTION_LOSE, /* what it leads to is gone, or it was refused */
	SMARTIOD_CONNECTION_CLOSE,
	SMARTIOD_CONNECTION_EVENTS,
};

/* Return: can @event come in @state? Then *ret_next is the state after it. */
bool smartiod_connection_next(enum smartiod_connection_state state,
			      enum smartiod_connection_event event,
			      enum smartiod_connection_state *ret_next);

#endif
