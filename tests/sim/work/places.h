/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs that copy have: a segment of their own and another's, both mapped. In the first
 * half of each are words that say whose it is, zeros between them; the second half is where copies
 * end. Nothing else may ever be seen there.
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

/* If there is none yet. */
void sim_place_own(struct sim_places *p);
void sim_place_remote(struct sim_places *p);
/* What copies left there: marked words, zeros, or, of what is lost, ones. */
void sim_look_own(const struct sim_places *p);
void sim_look_remote(const struct sim_places *p);
/* A multiple of 256 in the first half; in the second one. */
uint32_t sim_pick_from(void);
uint32_t sim_pick_to(void);
/* Looks, then unmaps. False: a copy is under way. */
bool sim_unmap_own(struct sim_places *p);
bool sim_unmap_remote(struct sim_places *p);
/* Unmapped it is. False: SCI_ERR_BUSY. */
bool sim_remove_own(struct sim_places *p, bool force);
bool sim_disconnect_remote(struct sim_places *p);
/* Nothing needs it any more, as @why tells: it is not busy. */
void sim_must_disconnect_remote(struct sim_places *p, const char *why);
/* The most usual acts: with @what 0 the own place, with 1 and 2 another's. False: another @what. */
bool sim_place_by(struct sim_places *p, uint64_t what);

/*
 * Wait for a DMA queue, which may give @may, too. *ret_before: its state until then; NULL. False:
 * @queue is NULL.
 */
bool sim_wait_queue(sci_dma_queue_t queue, sci_error_t may, sci_dma_queue_state_t *ret_before,
		    sci_error_t *ret);
/*
 * Only a queue that was POSTED refuses for its state (sheet, 9.7): nobody else begins a transfer.
 */
void sim_queue_judge(const char *call, sci_dma_queue_state_t before, sci_error_t e);
/*
 * One that was POSTED was aborted: it failed only if the other's segment, of a map that it used, is
 * gone.
 */
void sim_queue_aborted(sci_dma_queue_t queue, sci_dma_queue_state_t before, sci_map_t map);
/* Remove one, if there is one; @abort comes first if it must. */
void sim_remove_queue(sci_dma_queue_t *queue, void (*abort)(void *state), void *state);

/* The queue between both places, if there is one. */
void sim_abort_queue(struct sim_places *p);
void sim_drop_queue(struct sim_places *p);
/* What is dropped takes the queue along if that is in its way. */
void sim_drop_remote(struct sim_places *p);
void sim_drop_own(struct sim_places *p);

#endif
