/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a sender's connection to an interrupt, at the sender's daemon. While an operation
 * creates the connection, the port may have made a mapping of which the daemon has no answer yet.
 * Therefore the operation ends the connection, whatever has happened to the receiver and the
 * program in the meantime.
 */
#ifndef SMARTIOD_SENDER_LIFE_H
#define SMARTIOD_SENDER_LIFE_H

#include <stdbool.h>

enum smartiod_sender_state {
	SMARTIOD_SENDER_CONNECTING,	   /* an operation asks the receiver's host and the port */
	SMARTIOD_SENDER_CONNECTING_LOST,   /* the same; the receiver is gone */
	SMARTIOD_SENDER_CONNECTING_CLOSED, /* the same; the program is gone */
	SMARTIOD_SENDER_CONNECTED,	   /* the program has it */
	SMARTIOD_SENDER_LOST,		   /* the receiver is gone; the program has to disconnect */
	SMARTIOD_SENDER_LOST_UNMAPPING, /* the same; the port is asked to unmap what leads there */
	SMARTIOD_SENDER_CLOSED, /* the program has it no more: freed when all is given back */
	SMARTIOD_SENDER_CLOSED_UNMAPPING, /* the same; the port is asked to unmap */
	SMARTIOD_SENDER_STATES,
};

enum smartiod_sender_event {
	SMARTIOD_SENDER_MADE,	  /* the program is sent it */
	SMARTIOD_SENDER_FAIL,	  /* it cannot be made, or is not wanted any more */
	SMARTIOD_SENDER_LOSE,	  /* the receiver is gone, or says so */
	SMARTIOD_SENDER_CLOSE,	  /* the program disconnected, or is gone */
	SMARTIOD_SENDER_UNMAP,	  /* there is something to unmap, and the port is asked */
	SMARTIOD_SENDER_UNMAPPED, /* the port has answered */
	SMARTIOD_SENDER_EVENTS,
};

/* Return: can @event come in @state? Then *ret_next is the state after it. */
bool smartiod_sender_next(enum smartiod_sender_state state, enum smartiod_sender_event event,
			  enum smartiod_sender_state *ret_next);

#endif
