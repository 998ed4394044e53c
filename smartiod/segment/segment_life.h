/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a segment, from its first handle to the release of its memory. A segment that is
 * removed while importers are connected to it is kept for them: it cannot be found any more, its id
 * is free, and its memory stays until the last importer has disconnected.
 */
#ifndef SMARTIOD_SEGMENT_LIFE_H
#define SMARTIOD_SEGMENT_LIFE_H

#include <stdbool.h>

enum smartiod_segment_state {
	SMARTIOD_SEGMENT_OWNED,	 /* a program has a handle of it, or a device's directory has it */
	SMARTIOD_SEGMENT_GIVING, /* removed; the port detaches its memory from its maker */
	SMARTIOD_SEGMENT_KEPT,	 /* removed; importers have it, and nobody else can come to it */
	SMARTIOD_SEGMENT_ENDED,	 /* nobody has it; what is granted of it keeps its memory */
	SMARTIOD_SEGMENT_STATES,
};

enum smartiod_segment_event {
	SMARTIOD_SEGMENT_GIVE,	     /* its last handle was removed; GIVE was sent to the port */
	SMARTIOD_SEGMENT_KEEP,	     /* the same, and its memory can stay where it is */
	SMARTIOD_SEGMENT_GIVEN,	     /* the port answered GIVE; a refusal leaves it its maker's */
	SMARTIOD_SEGMENT_MAKER_GONE, /* who made it has ended, and its memory with it */
	SMARTIOD_SEGMENT_UNUSED,     /* its last user is gone */
	SMARTIOD_SEGMENT_CUT,	     /* it is taken away from all who use it */
	SMARTIOD_SEGMENT_EVENTS,
};

/* Return: can @event come in @state? Then *ret_next is the state after it. */
bool smartiod_segment_next(enum smartiod_segment_state state, enum smartiod_segment_event event,
			   enum smartiod_segment_state *ret_next);

#endif
