/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a borrow, as a table. */
#include "smartiod/borrower/borrow_life.h"

/* No transition: the event cannot come in this state. */
#define NONE SMARTIOD_BORROW_STATES

/*
 * A borrow whose program has gone meanwhile can still be lent: the lender is notified that it
 * ended.
 */
static const unsigned char table[SMARTIOD_BORROW_STATES][SMARTIOD_BORROW_EVENTS] = {
	[SMARTIOD_BORROW_ASKED] =
		{
			[SMARTIOD_BORROW_LENT] = SMARTIOD_BORROW_LIVE,
			[SMARTIOD_BORROW_LOSE] = NONE,
			[SMARTIOD_BORROW_END] = SMARTIOD_BORROW_ENDED,
		},
	[SMARTIOD_BORROW_LIVE] =
		{
			[SMARTIOD_BORROW_LENT] = NONE,
			[SMARTIOD_BORROW_LOSE] = SMARTIOD_BORROW_LOST,
			[SMARTIOD_BORROW_END] = SMARTIOD_BORROW_ENDED,
		},
	[SMARTIOD_BORROW_LOST] =
		{
			[SMARTIOD_BORROW_LENT] = NONE,
			[SMARTIOD_BORROW_LOSE] = NONE,
			[SMARTIOD_BORROW_END] = SMARTIOD_BORROW_ENDED_LOST,
		},
	[SMARTIOD_BORROW_ENDED] =
		{
			[SMARTIOD_BORROW_LENT] = SMARTIOD_BORROW_ENDED,
			[SMARTIOD_BORROW_LOSE] = SMARTIOD_BORROW_ENDED_LOST,
			[SMARTIOD_BORROW_END] = SMARTIOD_BORROW_ENDED,
		},
	[SMARTIOD_BORROW_ENDED_LOST] =
		{
			[SMARTIOD_BORROW_LENT] = NONE,
			[SMARTIOD_BORROW_LOSE] = NONE,
			[SMARTIOD_BORROW_END] = NONE,
		},
};

bool smartiod_borrow_next(enum smartiod_borrow_state state, enum smartiod_borrow_event event,
			  enum smartiod_borrow_state *ret_next)
{
	unsigned char next = table[state][event];

	if (next == NONE)
		return false;
	*ret_next = next;
	return true;
}
