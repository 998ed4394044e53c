/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reset state of a lent device. Kept by the lender; pure logic.
 *
 * A device is reset after the last borrow, and before it is lent to a borrower who finds it unused
 * but not as that reset left it: so no borrower finds registers, or queues, of another.
 */
#ifndef CORE_DEVSTATE_H
#define CORE_DEVSTATE_H

#include <stdbool.h>

enum sio_dev_state {
	SIO_DEV_FOUND,	 /* it was lent to nobody since it came, and this daemon has not reset it */
	SIO_DEV_CLEAN,	 /* reset, and lent to nobody since */
	SIO_DEV_USED,	 /* lent, or was since its last reset; or that is not known */
	SIO_DEV_WANTED,	 /* it is to be reset as soon as nobody uses it */
	SIO_DEV_RUNNING, /* the port resets it */
	SIO_DEV_FAILED,	 /* the last reset failed; who wants to borrow it has it tried again */
	SIO_DEV_STATES
};

enum sio_dev_event {
	SIO_DEV_LEND, /* a borrow begins, or goes on behind a reset */
	SIO_DEV_WANT,
	SIO_DEV_START,
	SIO_DEV_DONE,
	SIO_DEV_FAIL,
	SIO_DEV_NEW, /* it is gone: what comes back is another one */
	SIO_DEV_EVENTS
};

/* Moves *state to the state after @event; false: the event is impossible in *state, which stays. */
bool sio_dev_step(enum sio_dev_state *state, enum sio_dev_event event);
/* The name of a state: "as found", "clean", "used", "reset wanted", "being reset", "reset failed". */
const char *sio_dev_state_name(enum sio_dev_state state);

#endif
