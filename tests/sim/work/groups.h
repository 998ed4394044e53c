/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of programs in multicast groups, fused or exact. */
#ifndef SIM_GROUPS_H
#define SIM_GROUPS_H

#include "run/run.h"

/* Makes a segment in group @g; NULL: it failed in an allowed way. */
sci_local_segment_t sim_join(sci_desc_t sd, unsigned g, size_t bytes);
/* Prepares the segment and makes it available. False: it failed in an allowed way. */
bool sim_show_member(sci_local_segment_t member);
/* Maps the whole segment; *ret_map NULL: it failed in an allowed way. */
volatile uint32_t *sim_map_member(sci_local_segment_t member, size_t bytes, sci_map_t *ret_map);
/* Unmaps and removes the segment; @map may be NULL. */
void sim_leave(sci_local_segment_t member, sci_map_t map);
/*
 * Connects to group @g and maps it, with @flags of SCIMapRemoteSegment(). NULL: not connected;
 * *ret_map NULL: not mapped.
 */
sci_remote_segment_t sim_reach(sci_desc_t sd, unsigned g, size_t bytes, unsigned flags,
			       sci_map_t *ret_map, volatile uint32_t **ret_at);
/* Unmaps and disconnects; @map may be NULL. */
void sim_drop_group(sci_remote_segment_t all, sci_map_t map);

/* work/exact.c: are the groups of this cluster exact? */
bool sim_exact_groups(unsigned host);

#endif
