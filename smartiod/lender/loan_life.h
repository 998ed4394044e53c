/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a borrow at the lender, from its request until its owner at the port has ended.
 * What the device may still reach of it after that is in quarantine. Whether the device was lost,
 * or a settlement is under way, concerns the quarantine and is no state of the loan.
 */
#ifndef SMARTIOD_LOAN_LIFE_H
#define SMARTIOD_LOAN_LIFE_H

#include <stdbool.h>

enum smartiod_loan_state {
	SMARTIOD_LOAN_ASKED,	/* the port is asked for its owner */
	SMARTIOD_LOAN_WAITING,	/* until the device is reset; the port has nothing of it */
	SMARTIOD_LOAN_LIVE,	/* the borrower was sent its number */
	SMARTIOD_LOAN_OLD,	/* of before we were started; its program has not claimed it */
	SMARTIOD_LOAN_DISTANT,	/* the same, of another host's program: its daemon has not */
	SMARTIOD_LOAN_ORPHANED, /* of before we were started; its owner has ended */
	/* The borrower is gone: smartiod_loan_ended(). */
	SMARTIOD_LOAN_WAITING_ENDED,  /* until the device is reset; nobody wants it any more */
	SMARTIOD_LOAN_ENDED,	      /* the owner is closed, or will be as soon as it is made */
	SMARTIOD_LOAN_ENDED_ORPHANED, /* ENDED and ORPHANED */
	SMARTIOD_LOAN_CLOSED,	      /* the port has ended the owner: what stays is known */
	SMARTIOD_LOAN_STATES,
};

enum smartiod_loan_event {
	SMARTIOD_LOAN_WAIT,	  /* the device is to be reset first */
	SMARTIOD_LOAN_GO,	  /* the device is as it is to be */
	SMARTIOD_LOAN_LEND,	  /* the borrower is sent its number */
	SMARTIOD_LOAN_CLAIM,	  /* its program, or its host's daemon, came back with it */
	SMARTIOD_LOAN_OWNER_GONE, /* its owner ended before we had read all that the port has */
	SMARTIOD_LOAN_END,	  /* returned, refused, or the borrower or the device is gone */
	SMARTIOD_LOAN_CLOSE,	  /* the port ended the owner, or has none */
	SMARTIOD_LOAN_EVENTS,
};

/* Return: can @event come in @state? Then *ret_next is the state after it. */
bool smartiod_loan_next(enum smartiod_loan_state state, enum smartiod_loan_event event,
			enum smartiod_loan_state *ret_next);

#endif
