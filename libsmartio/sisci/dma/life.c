/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transitions of a DMA queue. Each entry is the next state plus 1; 0: the event cannot come in
 * this state.
 */
#include "sisci/dma/life.h"

/* The next state and 1; 0: the event cannot come in this state. */
#define TO(state) (SCI_DMAQUEUE_##state + 1)

static const unsigned char table[SIO_DMA_STATES][SIO_DMA_EVENTS] = {
	[SCI_DMAQUEUE_IDLE] = {[SIO_DMA_ENQUEUE] = TO(GATHER),
			       [SIO_DMA_POST] = TO(POSTED),
			       [SIO_DMA_RESET] = TO(IDLE)},
	[SCI_DMAQUEUE_GATHER] = {[SIO_DMA_ENQUEUE] = TO(GATHER),
				 [SIO_DMA_POST] = TO(POSTED),
				 [SIO_DMA_ABORT] = TO(ABORTED),
				 [SIO_DMA_RESET] = TO(IDLE)},
	[SCI_DMAQUEUE_POSTED] = {[SIO_DMA_DONE] = TO(DONE),
				 [SIO_DMA_FAIL] = TO(ERROR),
				 [SIO_DMA_ABORT] = TO(ABORTED)},
	/* Over: a start posts again, but what is enqueued comes after a reset. */
	[SCI_DMAQUEUE_DONE] = {[SIO_DMA_POST] = TO(POSTED), [SIO_DMA_RESET] = TO(IDLE)},
	[SCI_DMAQUEUE_ABORTED] = {[SIO_DMA_POST] = TO(POSTED), [SIO_DMA_RESET] = TO(IDLE)},
	[SCI_DMAQUEUE_ERROR] = {[SIO_DMA_POST] = TO(POSTED), [SIO_DMA_RESET] = TO(IDLE)},
};

bool sio_dma_next(sci_dma_queue_state_t state, enum sio_dma_event event,
		  sci_dma_queue_state_t *ret_next)
{
	unsigned next = table[state][event];

	if (next)
		*ret_next = (sci_dma_queue_state_t)(next - 1);
	return next != 0;
}
