/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a DMA queue, which are the API's, as a table of transitions. Pure logic. */
#ifndef SISCI_DMA_LIFE_H
#define SISCI_DMA_LIFE_H

#include <stdbool.h>

#include "sisci_api.h"

#define SIO_DMA_STATES (SCI_DMAQUEUE_ERROR + 1)

enum sio_dma_event {
	SIO_DMA_ENQUEUE, /* API 1.x: one copy more to be posted */
	SIO_DMA_POST,	 /* the engine has the transfer */
	SIO_DMA_DONE,	 /* what ends it: it was copied, */
	SIO_DMA_FAIL,	 /* not all of it, */
	SIO_DMA_ABORT,	 /* or nobody wants it; also of what was enqueued */
	SIO_DMA_RESET,
	SIO_DMA_EVENTS,
};

/* Return: false: @event is impossible in this state. */
bool sio_dma_next(sci_dma_queue_state_t state, enum sio_dma_event event,
		  sci_dma_queue_state_t *ret_next);

#endif
