/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two places that programs copy between: a segment of their own and another program's, both
 * mapped. In the first half of each are words that identify its owner, with zeros between them;
 * copies are written to the second half. No other contents may ever be seen there.
 */
#ifndef SIM_PLACES_H
#define SIM_PLACES_H

#include "run/run.h"

#define SIM_PLACE_BYTES (64u << 10)

struct sim_places {
	sci_desc_t sd;
	unsigned first_id, ids; /* of segments: of each such workload */
	uint32_t mark;		/* in the upper four bits of its words */
	bool maps_busy;		/* copies use maps: SCIUnmapSegment() may be refused */
	sci_local_segment_t own;
	sci_map_t own_map;
	volatile uint32_t *at;
	sci_remote_segment_t remote;
	sci_map_t remote_map;
	volatile uint32_t *remote_at;
	sci_dma_queue_t queue;
};

/* Makes it if there is none yet. */
void sim_place_own(struct sim_places *p);
void sim_place_remote(struct sim_places *p);
/* Checks what copies left there: marked words, zeros, or, of what is lost, ones. */
void sim_look_own(const struct sim_places *p);
void sim_look_remote(const struct sim_places *p);
/* A multiple of 256 in the first half; in the second half. */
uint32_t sim_pick_from(void);
uint32_t sim_pick_to(void);
/* Checks, then unmaps. False: a copy is under way. */
bool sim_unmap_own(struct sim_places *p);
bool sim_unmap_remote(struct sim_places *p);
/* Removes it after it was unmapped. False: SCI_ERR_BUSY. */
bool sim_remove_own(struct sim_places *p, bool force);
bool sim_disconnect_remote(struct sim_places *p);
/* Nothing uses it any more, for the reason @why: it must not be busy. */
void sim_must_disconnect_remote(struct sim_places *p, const char *why);
/*
 * The most usual acts: with @what 0 on the own place, with 1 and 2 on another program's. False:
 * another @what.
 */
bool sim_place_by(struct sim_places *p, uint64_t what);

/*
 * Waits for a DMA queue; @may is also an allowed result. *ret_before: its state until then; NULL.
 * False: @queue is NULL.
 */
bool sim_wait_queue(sci_dma_queue_t queue, sci_error_t may, sci_dma_queue_state_t *ret_before,
		    sci_error_t *ret);
/*
 * Only a queue that was POSTED refuses for its state (sheet, 9.7): no other thread starts a
 * transfer.
 */
void sim_queue_judge(const char *call, sci_dma_queue_state_t before, sci_error_t e);
/*
 * A queue that was POSTED was aborted: it may have failed only if another program's segment, of a
 * map that it used, is gone.
 */
void sim_queue_aborted(sci_dma_queue_t queue, sci_dma_queue_state_t before, sci_map_t map);
/* Removes a queue, if there is one; @abort is called first if necessary. */
void sim_remove_queue(sci_dma_queue_t *queue, void (*abort)(void *state), void *state);

/* Aborts the queue between both places, if there is one. */
void sim_abort_queue(struct sim_places *p);
void sim_drop_queue(struct sim_places *p);
/* Drops the place, and the queue with it if that prevents it. */
void sim_drop_remote(struct sim_places *p);
void sim_drop_own(struct sim_places *p);

#endif
