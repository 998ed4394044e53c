/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of clients as calls. Return: 0, the errno of the reply, or -1: no reply came. */
#ifndef TESTS_SMARTIOD_CALLS_H
#define TESTS_SMARTIOD_CALLS_H

#include "sisci_api.h"
#include "world.h"

int call_seg_create(struct world *w, struct world_client *c, uint32_t id, uint64_t bytes,
		    uint32_t flags, uint32_t *ret_handle, uint32_t *ret_id);
/* SIO_MSG_SEG_PREPARE, _AVAILABLE, _UNAVAILABLE. */
int call_seg_adapter(struct world *w, struct world_client *c, uint32_t type, uint32_t handle,
		     uint32_t adapter, uint32_t flags);
/* A segment that is available on adapter 0. */
int call_seg_export(struct world *w, struct world_client *c, uint32_t id, uint64_t bytes,
		    uint32_t *ret_handle);
int call_seg_connect(struct world *w, struct world_client *c, uint32_t node, uint32_t id,
		     uint32_t *ret_handle);
int call_seg_connect_at(struct world *w, struct world_client *c, uint32_t node, uint32_t id,
			uint32_t adapter, uint32_t *ret_handle);
int call_seg_map(struct world *w, struct world_client *c, uint32_t handle, uint64_t offset,
		 uint64_t bytes, uint32_t *ret_map);
/* To an exact multicast group; a map of it, through which nothing can be reached. */
int call_group_connect(struct world *w, struct world_client *c, uint32_t group,
		       uint32_t *ret_handle);
int call_group_map(struct world *w, struct world_client *c, uint32_t handle, uint32_t *ret_map);
/*
 * Connects to segment 1 of @node and maps it, as far as @steps steps of the world lead.
 * @ret_request: the last that was asked; @ret_handle: of the connection, 0 if there is none.
 * Return: nothing is left to be done.
 */
bool call_seg_join(struct world *w, struct world_client *c, uint32_t node, unsigned steps,
		   uint32_t *ret_request, uint32_t *ret_handle);
int call_seg_attach(struct world *w, struct world_client *c, uint32_t id, uint32_t *ret_handle);
/* The @nth event of a type tells this of a segment. */
void expect_event(struct world_client *c, uint32_t type, unsigned nth, uint32_t handle,
		  uint32_t reason, uint32_t lost);
/* These are there on @host; nobody reaches memory that was freed. */
void expect_kept(const struct world *w, unsigned host, unsigned grants, unsigned mems);
/* SEG_REMOVE without flags, and time for those that leave. */
int call_seg_remove(struct world *w, struct world_client *c, uint32_t handle);
/* Any request that is a handle and flags. */
int call_handle(struct world *w, struct world_client *c, uint32_t type, uint32_t handle,
		uint32_t flags);
int call_queue_create(struct world *w, struct world_client *c, uint32_t adapter,
		      uint32_t *ret_handle);
int call_queue_attach(struct world *w, struct world_client *c, uint32_t queue, uint32_t segment,
		      bool remote, uint32_t *ret_slot, uint64_t *ret_range);
/* Of a BAR: what lies around @offset. */
int call_queue_attach_bar(struct world *w, struct world_client *c, uint32_t queue, uint32_t bar,
			  uint64_t offset, uint64_t *ret_range);
int call_queue_detach(struct world *w, struct world_client *c, uint32_t queue, uint64_t range);
int call_dint_create(struct world *w, struct world_client *c, uint32_t number, uint32_t flags,
		     uint32_t *ret_handle, uint32_t *ret_number);
int call_dint_connect(struct world *w, struct world_client *c, uint32_t node, uint32_t number,
		      uint32_t *ret_handle);
int call_ring_free(struct world *w, struct world_client *c, uint32_t handle, uint32_t ring);
int call_probe(struct world *w, struct world_client *c, uint32_t node);
/* A counter of STATS kind 0; -1: no reply. */
int64_t call_counter(struct world *w, struct world_client *c, const char *name);
/* Fails the test with what is left, if any client's object, grant or descriptor is. */
void assert_nothing_left(struct world *w);
/* The same, nothing was reached that had ended, and no daemon has failed. */
void assert_well_ended(struct world *w);

#endif
