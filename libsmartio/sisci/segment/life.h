/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of connections to segments, and of the pages of maps, as tables. Pure logic. */
#ifndef SISCI_SEGMENT_LIFE_H
#define SISCI_SEGMENT_LIFE_H

#include <stdbool.h>

/* A connection, as smartiod's events report it. */
enum sio_connection {
	SIO_CONNECTING, /* asynchronously */
	SIO_CONNECTED,
	SIO_CONNECTION_DOWN,	/* its path is, and may come back */
	SIO_CONNECTION_REMOVED, /* by the exporter; the memory is kept for us, and the path is up */
	SIO_CONNECTION_REMOVED_DOWN,
	SIO_CONNECTION_LOST,
	SIO_CONNECTION_STATES,
};

enum sio_connection_event {
	SIO_CONNECTION_ANSWERED,
	SIO_CONNECTION_PATH_DOWN,
	SIO_CONNECTION_PATH_UP,
	SIO_CONNECTION_REMOVE,
	SIO_CONNECTION_LOSE, /* or it could not be made */
	SIO_CONNECTION_EVENTS,
};

/* What is mapped at the addresses of a map. */
enum sio_map_pages {
	SIO_PAGES_RESERVED, /* nothing: no access */
	SIO_PAGES_WHOLE,    /* one mapping of one file */
	SIO_PAGES_PIECES,   /* several, of a BAR; or of memory of this program */
	SIO_PAGES_ASIDE,    /* ones, while the path is down: the mapping is kept elsewhere */
	SIO_PAGES_CUT,	    /* ones, for good */
	SIO_PAGES_NONE,	    /* unmapped */
	SIO_PAGES_STATES,
};

enum sio_map_pages_event {
	SIO_PAGES_PLACE_WHOLE,
	SIO_PAGES_PLACE_PIECES,
	SIO_PAGES_PATH_DOWN,
	SIO_PAGES_PATH_UP,
	SIO_PAGES_LOSE,
	SIO_PAGES_UNMAP,
	SIO_PAGES_EVENTS,
};

/* Return: false: @event is impossible in this state, or changes nothing. */
bool sio_connection_next(enum sio_connection state, enum sio_connection_event event,
			 enum sio_connection *ret_next);
bool sio_map_pages_next(enum sio_map_pages state, enum sio_map_pages_event event,
			enum sio_map_pages *ret_next);

#endif
