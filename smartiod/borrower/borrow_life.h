/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a borrow at the borrower, from the request to its last use. A borrow that is lost
 * stays until its program returns it; one that was returned stays while connections, mappings or
 * operations use it, and can still be lost.
 */
#ifndef SMARTIOD_BORROW_LIFE_H
#define SMARTIOD_BORROW_LIFE_H

#include <stdbool.h>

enum smartiod_borrow_state {
	SMARTIOD_BORROW_ASKED,	    /* the lender has not answered */
	SMARTIOD_BORROW_LIVE,	    /* it has a number of the lender's */
	SMARTIOD_BORROW_LOST,	    /* the device is gone, or its host, or the path to it */
	SMARTIOD_BORROW_ENDED,	    /* returned, refused, or its program is gone */
	SMARTIOD_BORROW_ENDED_LOST, /* both */
	SMARTIOD_BORROW_STATES,
};

enum smartiod_borrow_event {
	SMARTIOD_BORROW_LENT, /* the lender answered with a number */
	SMARTIOD_BORROW_LOSE,
	SMARTIOD_BORROW_END,
	SMARTIOD_BORROW_EVENTS,
};

/* Return: can @event come in @state? Then *ret_next is the state after it. */
bool smartiod_borrow_next(enum smartiod_borrow_state state, enum smartiod_borrow_event event,
			  enum smartiod_borrow_state *ret_next);

#endif
