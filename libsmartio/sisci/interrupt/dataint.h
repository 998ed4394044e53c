/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's side of data interrupts: shared by dataint.c and ext.c. */
#ifndef SISCI_DATAINT_H
#define SISCI_DATAINT_H

#include "sisci/interrupt/receiver.h"
#include "wire/ring.h"

/* One connected sender. */
struct sio_sender {
	struct sio_sender *next;
	uint32_t id; /* smartiod's number for the ring */
	uint32_t node;
	bool ended; /* the sender is gone: no more messages */
	void *base;
	size_t bytes;
	struct sio_ring ring;
	struct sio_post *post; /* to give the ring back */
};

/*
 * Invariant: while a ring may have a message, the descriptor is readable, or a thread that has just
 * read it checks all rings and makes it readable again if it takes a message.
 */
struct sio_local_dint {
	struct sio_receiver r;	    /* its lock is for what follows */
	struct sio_sender *senders; /* those that were served last come last */
	bool turn;		    /* a thread waits at the descriptor for all others */
	bool gone;		    /* removed */
	sci_cb_data_interrupt_t callback;
	void *callback_arg;
};

#endif
