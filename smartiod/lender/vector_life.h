/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a vector at the lender, from its request until the device cannot send by it any
 * more. That the interrupt is lost, or the borrow has ended, while an operation creates the vector
 * is no state of its own: the operation checks for it at its next answer.
 */
#ifndef SMARTIOD_VECTOR_LIFE_H
#define SMARTIOD_VECTOR_LIFE_H

#include <stdbool.h>

enum smartiod_vector_state {
	SMARTIOD_VECTOR_NEW,	   /* nothing is asked for it yet */
	SMARTIOD_VECTOR_LOOKUP,	   /* the interrupt's host is asked for it */
	SMARTIOD_VECTOR_MAPPING,   /* the port is asked for a window to its trigger */
	SMARTIOD_VECTOR_ADMITTING, /* the same, for the device to use this window */
	SMARTIOD_VECTOR_SETTING,   /* the port is asked to set it */
	SMARTIOD_VECTOR_LIVE,	   /* the borrower has it */
	SMARTIOD_VECTOR_GONE,	   /* all is given back: it is freed */
	SMARTIOD_VECTOR_STATES,
};

enum smartiod_vector_event {
	SMARTIOD_VECTOR_ASK,	/* its interrupt is another host's */
	SMARTIOD_VECTOR_FOUND,	/* that host granted the trigger */
	SMARTIOD_VECTOR_MAPPED, /* it is in a window */
	SMARTIOD_VECTOR_SET,  /* the device reaches the trigger, or the interrupt is of this host */
	SMARTIOD_VECTOR_MADE, /* the port has set it */
	SMARTIOD_VECTOR_AGAIN, /* the port has it since before we were started */
	SMARTIOD_VECTOR_CUT,   /* nobody wants it any more, or it cannot be made */
	SMARTIOD_VECTOR_EVENTS,
};

/* Return: can @event come in @state? Then *ret_next is the state after it. */
bool smartiod_vector_next(enum smartiod_vector_state state, enum smartiod_vector_event event,
			  enum smartiod_vector_state *ret_next);

#endif
