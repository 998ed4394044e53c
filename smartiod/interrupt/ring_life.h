/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a sender's ring at the receiver. It is freed when both the sender and the
 * receiver's library have released it, and no operation is creating it.
 */
#ifndef SMARTIOD_RING_LIFE_H
#define SMARTIOD_RING_LIFE_H

#include <stdbool.h>

enum smartiod_ring_state {
	SMARTIOD_RING_BUILDING,	      /* an operation asks the port for its memory and grants */
	SMARTIOD_RING_BUILDING_FREED, /* the same; the interrupt was removed meanwhile */
	SMARTIOD_RING_BUILDING_ENDED, /* the same; nobody wants it any more */
	SMARTIOD_RING_PLAIN,	      /* of an interrupt without data: the library has none of it */
	SMARTIOD_RING_USED,	      /* the sender writes, and the library reads */
	SMARTIOD_RING_DRAINED,	      /* the sender is gone; the library reads what is left */
	SMARTIOD_RING_FREED,	      /* the library released it; the sender has to */
	SMARTIOD_RING_GONE,	      /* nobody has it: it is freed */
	SMARTIOD_RING_STATES,
};

enum smartiod_ring_event {
	SMARTIOD_RING_BUILT,	   /* the library was sent its memory */
	SMARTIOD_RING_BUILT_PLAIN, /* it needs none */
	SMARTIOD_RING_ABANDON,	   /* the operation that built it ends without it */
	SMARTIOD_RING_END,	   /* the sender is gone, or released it */
	SMARTIOD_RING_FREE,	   /* the library released it, or is gone */
	SMARTIOD_RING_EVENTS,
};

/* Return: can @event come in @state? Then *ret_next is the state after it. */
bool smartiod_ring_next(enum smartiod_ring_state state, enum smartiod_ring_event event,
			enum smartiod_ring_state *ret_next);

#endif
