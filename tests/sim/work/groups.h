/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of programs in multicast groups, fused or exact. */
#ifndef SIM_GROUPS_H
#define SIM_GROUPS_H

#include "run/run.h"

/* A segment in group @g; NULL: it failed as it may. */
sci_local_segment_t sim_join(sci_desc_t sd, unsigned g, size_t bytes);
/* Prepared and available. False: it failed as it may. */
bool sim_show_member(sci_local_segment_t member);
/* All of it; *ret_map NULL: it failed as it may. */
volatile uint32_t *sim_map_member(sci_local_segment_t member, size_t bytes, sci_map_t *ret_map);
/* @map may be NULL. */
void sim_leave(sci_local_segment_t member, sci_map_t map);
/*
 * Connect to group @g and map it, for writing but for @flags; NULL: not connected; *ret_map NULL:
 * not mapped.
 */
sci_remote_segment_t sim_reach(sci_desc_t sd, unsigned g, size_t bytes, unsigned flags,
			       sci_map_t *ret_map, volatile uint32_t **ret_at);
/* @map may be NULL. */
void sim_drop_group(sci_remote_segment_t all, sci_map_t map);

/* work/exact.c: groups of this cluster are exact. */
bool sim_exact_groups(unsigned host);

#endif
