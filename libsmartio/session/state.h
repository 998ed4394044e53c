/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a session, as a table of transitions. Pure logic. */
#ifndef SESSION_STATE_H
#define SESSION_STATE_H

#include <stdbool.h>

enum sio_session_state {
	SIO_SESSION_DEAD, /* no more packets, no more calls; before it is opened, too */
	SIO_SESSION_CONNECTED,
	SIO_SESSION_AWAY, /* the connection is over, and there is no new one: calls wait */
	SIO_SESSION_LATE, /* the same for so long that calls fail */
	SIO_SESSION_STATES,
};

enum sio_session_event {
	SIO_SESSION_OPENS,
	SIO_SESSION_LOSES, /* its connection, and can go on with another smartiod */
	SIO_SESSION_RESUMES,
	SIO_SESSION_GIVES_UP,
	SIO_SESSION_DIES,
	SIO_SESSION_EVENTS,
};

/* False: @event cannot come in this state, or changes nothing. */
bool sio_session_next(enum sio_session_state state, enum sio_session_event event,
		      enum sio_session_state *ret_next);

#endif
