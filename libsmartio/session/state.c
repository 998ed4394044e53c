/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/state.h"

/* The next state and 1; 0: nothing changes. */
#define TO(state) (SIO_SESSION_##state + 1)

/* A thread may still be at a talk with the next smartiod when the session dies. */
static const unsigned char table[SIO_SESSION_STATES][SIO_SESSION_EVENTS] = {
	[SIO_SESSION_DEAD] = {[SIO_SESSION_OPENS] = TO(CONNECTED)},
	[SIO_SESSION_CONNECTED] = {[SIO_SESSION_LOSES] = TO(AWAY), [SIO_SESSION_DIES] = TO(DEAD)},
	[SIO_SESSION_AWAY] = {[SIO_SESSION_RESUMES] = TO(CONNECTED),
			      [SIO_SESSION_GIVES_UP] = TO(LATE),
			      [SIO_SESSION_DIES] = TO(DEAD)},
	[SIO_SESSION_LATE] = {[SIO_SESSION_RESUMES] = TO(CONNECTED), [SIO_SESSION_DIES] = TO(DEAD)},
};

bool sio_session_next(enum sio_session_state state, enum sio_session_event event,
		      enum sio_session_state *ret_next)
{
	unsigned next = table[state][event];

	if (next)
		*ret_next = (enum sio_session_state)(next - 1);
	return next != 0;
}
