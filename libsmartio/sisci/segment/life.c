/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transitions of connections and of mappings' pages. Each entry is the next state plus 1; 0:
 * nothing changes.
 */
#include "sisci/segment/life.h"

/* The next state and 1; 0: nothing changes. */
#define TO(state) ((state) + 1)

/* Events of a path come again and again; what is lost stays lost. */
static const unsigned char connections[SIO_CONNECTION_STATES][SIO_CONNECTION_EVENTS] = {
	[SIO_CONNECTING] = {[SIO_CONNECTION_ANSWERED] = TO(SIO_CONNECTED),
			    [SIO_CONNECTION_LOSE] = TO(SIO_CONNECTION_LOST)},
	[SIO_CONNECTED] = {[SIO_CONNECTION_PATH_DOWN] = TO(SIO_CONNECTION_DOWN),
			   [SIO_CONNECTION_REMOVE] = TO(SIO_CONNECTION_REMOVED),
			   [SIO_CONNECTION_LOSE] = TO(SIO_CONNECTION_LOST)},
	[SIO_CONNECTION_DOWN] = {[SIO_CONNECTION_PATH_UP] = TO(SIO_CONNECTED),
				 [SIO_CONNECTION_REMOVE] = TO(SIO_CONNECTION_REMOVED_DOWN),
				 [SIO_CONNECTION_LOSE] = TO(SIO_CONNECTION_LOST)},
	[SIO_CONNECTION_REMOVED] = {[SIO_CONNECTION_PATH_DOWN] = TO(SIO_CONNECTION_REMOVED_DOWN),
				    [SIO_CONNECTION_LOSE] = TO(SIO_CONNECTION_LOST)},
	[SIO_CONNECTION_REMOVED_DOWN] = {[SIO_CONNECTION_PATH_UP] = TO(SIO_CONNECTION_REMOVED),
					 [SIO_CONNECTION_LOSE] = TO(SIO_CONNECTION_LOST)},
};

/* A map is lost while it is being made, too: nothing is placed then. */
static const unsigned char pages[SIO_PAGES_STATES][SIO_PAGES_EVENTS] = {
	[SIO_PAGES_RESERVED] = {[SIO_PAGES_PLACE_WHOLE] = TO(SIO_PAGES_WHOLE),
				[SIO_PAGES_PLACE_PIECES] = TO(SIO_PAGES_PIECES),
				[SIO_PAGES_LOSE] = TO(SIO_PAGES_CUT),
				[SIO_PAGES_UNMAP] = TO(SIO_PAGES_NONE)},
	[SIO_PAGES_WHOLE] = {[SIO_PAGES_PATH_DOWN] = TO(SIO_PAGES_ASIDE),
			     [SIO_PAGES_LOSE] = TO(SIO_PAGES_CUT),
			     [SIO_PAGES_UNMAP] = TO(SIO_PAGES_NONE)},
	[SIO_PAGES_PIECES] =
		{[SIO_PAGES_LOSE] = TO(SIO_PAGES_CUT), [SIO_PAGES_UNMAP] = TO(SIO_PAGES_NONE)},
	[SIO_PAGES_ASIDE] = {[SIO_PAGES_PATH_UP] = TO(SIO_PAGES_WHOLE),
			     [SIO_PAGES_LOSE] = TO(SIO_PAGES_CUT),
			     [SIO_PAGES_UNMAP] = TO(SIO_PAGES_NONE)},
	[SIO_PAGES_CUT] = {[SIO_PAGES_UNMAP] = TO(SIO_PAGES_NONE)},
};

bool sio_connection_next(enum sio_connection state, enum sio_connection_event event,
			 enum sio_connection *ret_next)
{
	unsigned next = connections[state][event];

	if (next)
		*ret_next = (enum sio_connection)(next - 1);
	return next != 0;
}

bool sio_map_pages_next(enum sio_map_pages state, enum sio_map_pages_event event,
			enum sio_map_pages *ret_next)
{
	unsigned next = pages[state][event];

	if (next)
		*ret_next = (enum sio_map_pages)(next - 1);
	return next != 0;
}
