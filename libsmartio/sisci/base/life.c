/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transitions of an object. Each entry is the next state plus 1; 0: the event cannot come in
 * this state.
 */
#include "sisci/base/life.h"

/* The next state and 1; 0: the event cannot come in this state. */
#define TO(state) ((state) + 1)

/*
 * Several threads may end one object: SCITerminate() ends all that nobody has claimed, and a group
 * ends its members. The first one unlinks it.
 */
static const unsigned char table[SIO_LIFE_STATES][SIO_LIFE_EVENTS] = {
	[SIO_LIVE] = {[SIO_LIFE_CLAIM] = TO(SIO_CLAIMED), [SIO_LIFE_END] = TO(SIO_ENDING)},
	[SIO_CLAIMED] = {[SIO_LIFE_UNCLAIM] = TO(SIO_LIVE), [SIO_LIFE_END] = TO(SIO_ENDING)},
	[SIO_ENDING] = {[SIO_LIFE_END] = TO(SIO_ENDING), [SIO_LIFE_UNLINK] = TO(SIO_ENDED)},
	[SIO_ENDED] = {[SIO_LIFE_END] = TO(SIO_ENDED)},
};

bool sio_life_next(enum sio_life life, enum sio_life_event event, enum sio_life *ret_next)
{
	unsigned next = table[life][event];

	if (next)
		*ret_next = (enum sio_life)(next - 1);
	return next != 0;
}
