/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of an object, from its handle to its end, as a table of transitions. Pure logic. */
#ifndef SISCI_BASE_LIFE_H
#define SISCI_BASE_LIFE_H

#include <stdbool.h>

enum sio_life {
	SIO_LIVE,
	SIO_CLAIMED, /* a thread tries to remove it, and may find that it cannot */
	SIO_ENDING,  /* it cannot fail any more; a callback may still run */
	SIO_ENDED,   /* in no list any more: the memory stays for whoever has a reference */
	SIO_LIFE_STATES,
};

enum sio_life_event {
	SIO_LIFE_CLAIM,
	SIO_LIFE_UNCLAIM,
	SIO_LIFE_END,	 /* it has no handle, and gets no callback any more */
	SIO_LIFE_UNLINK, /* no callback runs: it leaves all lists */
	SIO_LIFE_EVENTS,
};

/* Return: false: @event is impossible in this state. */
bool sio_life_next(enum sio_life life, enum sio_life_event event, enum sio_life *ret_next);

#endif
