/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of paths, as the port's status page has it, and what it says about a transfer that
 * began at some time. Reading it takes no lock and no system call.
 */
#ifndef SISCI_SEQUENCE_H
#define SISCI_SEQUENCE_H

#include "sisci/segment/segment.h"

extern const struct sio_kind_ops sio_sequence_kind;

/* The state when a transfer began; a sequence has these words beside its handle. */
enum {
	SIO_SEQUENCE_PATH,
	SIO_SEQUENCE_BOOT, /* of the other host: another one, and what we were connected to is gone
			    */
	SIO_SEQUENCE_GENERATION,
	SIO_SEQUENCE_ERRORS,
	SIO_SEQUENCE_MAP,	 /* enum sio_map_state: what became of the map meanwhile */
	SIO_SEQUENCE_WINDOW_LOW, /* address that a read pushes stores at; 0: none is needed */
	SIO_SEQUENCE_WINDOW_HIGH,
};

/*
 * Waits for this processor's earlier stores; with a window (NULL: none) until they have arrived at
 * its other end.
 */
void sio_sequence_wait_for_stores(const volatile void *window);
/* The same for the window of a sequence, if @sequence is one. */
void sio_sequence_push(struct sio_library *lib, sci_sequence_t sequence);
/* A transfer through @m begins. */
void sio_sequence_begin(const struct sio_mapping *m, volatile uint32_t *words);
/* The result of that transfer until now. */
sci_sequence_status_t sio_sequence_judge(const struct sio_library *lib,
					 const volatile uint32_t *words);
#endif
