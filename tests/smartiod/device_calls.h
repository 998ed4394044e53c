/* SPDX-License-Identifier: BSD-2-Clause */
/* Device requests of clients as calls. Return: 0, the errno of the reply, or -1: no reply came. */
#ifndef TESTS_SMARTIOD_DEVICE_CALLS_H
#define TESTS_SMARTIOD_DEVICE_CALLS_H

#include "calls.h"

struct call_borrow {
	uint32_t handle, generation;
	uint64_t id;
};

int call_borrow(struct world *w, struct world_client *c, uint32_t fdid, uint32_t flags,
		struct call_borrow *ret);
int call_dev_seg_create(struct world *w, struct world_client *c, uint32_t device, uint32_t id,
			uint64_t bytes, uint32_t memtype, uint32_t hints, uint32_t flags);
int call_dev_seg_connect(struct world *w, struct world_client *c, uint32_t device, uint32_t id,
			 uint32_t memtype, uint32_t *ret_handle, uint32_t *ret_node);
/* Map a whole BAR of 16 KiB; @ret_access: of each page, 0 where there is none. */
int call_bar_map(struct world *w, struct world_client *c, uint32_t segment, uint32_t flags,
		 uint32_t *ret_map, uint32_t ret_access[4]);
/* A page of a connected BAR becomes a member of @group; and leaves by its @map. */
int call_group_join(struct world *w, struct world_client *c, uint32_t bar, uint32_t group,
		    uint64_t offset, uint32_t *ret_map);
int call_group_leave(struct world *w, struct world_client *c, uint32_t map);
/* Watch page @page of a BAR map in way @kind, with @n_fds descriptors. */
int call_watch(struct world *w, struct world_client *c, uint32_t map, uint32_t kind, unsigned page,
	       unsigned n_fds);
int call_dma_map(struct world *w, struct world_client *c, uint32_t device, uint32_t segment,
		 uint32_t remote, uint64_t offset, uint64_t bytes, uint32_t *ret_map);
int call_dma_map_at(struct world *w, struct world_client *c, uint32_t device, uint32_t segment,
		    uint32_t remote, uint64_t offset, uint64_t bytes, uint32_t *ret_map,
		    uint64_t *ret_ioaddr);
int call_hold(struct world *w, struct world_client *c, uint32_t device, uint64_t borrower,
	      uint64_t ioaddr, uint64_t bytes, uint64_t *ret_hold);
int call_unhold(struct world *w, struct world_client *c, uint32_t device, uint64_t hold);
/* Create a plain interrupt and, as a sender of @c's, connect to one: SIO_DINT_PLAIN. */
int call_plain_create(struct world *w, struct world_client *c, uint32_t *ret_handle,
		      uint32_t *ret_number);
int call_plain_connect(struct world *w, struct world_client *c, uint32_t node, uint32_t number,
		       uint32_t *ret_link);
/* *vector may be SIO_VECTOR_ANY. */
int call_vector(struct world *w, struct world_client *c, uint32_t device, uint32_t *vector,
		uint32_t link);
int call_unvector(struct world *w, struct world_client *c, uint32_t device, uint32_t vector);
/* Borrow, connect and map BAR 0. */
void call_take(struct world *w, struct world_client *c, uint32_t fdid, uint32_t flags,
	       struct call_borrow *b, uint32_t *segment, uint32_t *map, uint32_t access[4]);
/* Three hosts with the device @fake; and its end, which leaves nothing. */
struct fake_device;
struct world *call_world(struct fake_device *fake);
void call_world_end(struct world *w, struct fake_device *fake, uint32_t fdid);
/*
 * All have been killed: what they left in quarantine ends with a reset of the first host's device.
 */
void call_last_reset(struct world *w, uint32_t fdid);
int call_settled(struct world *w, struct world_client *c, uint32_t device, uint64_t borrower);
/* The @nth device event of a client; NULL. */
const struct sio_evm_device *call_device_event(struct world_client *c, unsigned nth);

#endif
