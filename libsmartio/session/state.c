/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/state.h"

/* The next state plus 1; 0: the event changes nothing. */
#define TO(state) (SIO_SESSION_##state + 1)

/* A session may die while a thread is still in an exchange with the next smartiod. */
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
