/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two places that programs copy between: a segment of their own and another program's, both
 * mapped. The first half of each contains words that identify its owner, with zeros between them;
 * copies are written to the second half. Nothing but such words and zeros may ever be seen there,
 * or ones where something is lost.
 */
#ifndef SIM_PLACES_H
#define SIM_PLACES_H

#include "run/run.h"

#define SIM_PLACE_BYTES (64u << 10)

struct sim_places {
	sci_desc_t sd;
	unsigned first_id, ids; /* of segments: others in each such workload */
	uint32_t mark;		/* the upper four bits of the workload's words */
	bool maps_busy;		/* copies use mappings: SCIUnmapSegment() may be refused */
	sci_local_segment_t own;
	sci_map_t own_map;
	volatile uint32_t *at;
	sci_remote_segment_t remote;
	sci_map_t remote_map;
	volatile uint32_t *remote_at;
	sci_dma_queue_t queue;
};

/* Makes the program's segment, or connects to another one, if there is none yet; maps it. */
void sim_place_own(struct sim_places *p);
void sim_place_remote(struct sim_places *p);
/* Checks what copies have left there: words with @mark, zeros, or ones where it is lost. */
void sim_look_own(const struct sim_places *p);
void sim_look_remote(const struct sim_places *p);
/* Draws a multiple of 256 in the first half; in the second half. */
uint32_t sim_pick_from(void);
uint32_t sim_pick_to(void);
/* Checks, then unmaps. False: refused, because a copy is in progress. */
bool sim_unmap_own(struct sim_places *p);
bool sim_unmap_remote(struct sim_places *p);
/* Removes the segment, or disconnects from it, after it was unmapped. False: SCI_ERR_BUSY. */
bool sim_remove_own(struct sim_places *p, bool force);
bool sim_disconnect_remote(struct sim_places *p);
/* Disconnects; fails the run if the segment is busy, which nothing can use because of @why. */
void sim_must_disconnect_remote(struct sim_places *p, const char *why);
/*
 * Acts that all such workloads have: @what 0: sim_place_own(); 1, 2: sim_place_remote(). False:
 * none.
 */
bool sim_place_by(struct sim_places *p, uint64_t what);

/*
 * Waits for a DMA queue; @may is a further result that is allowed. *ret_before (unless NULL): the
 * state of the queue before the wait. False: @queue is NULL.
 */
bool sim_wait_queue(sci_dma_queue_t queue, sci_error_t may, sci_dma_queue_state_t *ret_before,
		    sci_error_t *ret);
/*
 * Fails the run if @call returned SCI_ERR_ILLEGAL_OPERATION though the queue was not POSTED: no
 * other thread starts transfers.
 */
void sim_queue_judge(const char *call, sci_dma_queue_state_t before, sci_error_t e);
/*
 * Checks the state after an abort. A queue that was POSTED may have failed only if the segment that
 * @map leads to, another program's, is gone.
 */
void sim_queue_aborted(sci_dma_queue_t queue, sci_dma_queue_state_t before, sci_map_t map);
/* Removes the queue, if there is one; calls @abort if the queue is in use. */
void sim_remove_queue(sci_dma_queue_t *queue, void (*abort)(void *state), void *state);

/* Aborts the queue between both places, if there is one. */
void sim_abort_queue(struct sim_places *p);
void sim_drop_queue(struct sim_places *p);
/* Unmaps and releases the segment, and if the queue keeps it busy, the queue, too. */
void sim_drop_remote(struct sim_places *p);
void sim_drop_own(struct sim_places *p);

#endif
