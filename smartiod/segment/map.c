/* SPDX-License-Identifier: BSD-2-Clause */
/* Both halves of a window: the exporter's grant, and the importer's mapping of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/segment/grant.h"

void smartiod_wire_grant(const struct sio_evt_grant *evt, struct sio_wire_grant *ret)
{
	_Static_assert(sizeof(ret->token) == sizeof(evt->token), "token");
	ret->grant = sio_to_le64(evt->id);
	ret->bus_addr = sio_to_le64(evt->bus_addr);
	ret->length = sio_to_le64(evt->length);
	ret->generation = sio_to_le64(evt->generation);
	memcpy(ret->token, evt->token, sizeof(ret->token));
}

static void ask(struct smartiod *d, struct smartiod_op *op, uint64_t owner, uint32_t flags,
		uint32_t node, uint32_t adapter, uint32_t peer_adapter,
		const struct sio_wire_grant *g)
{
	struct sio_req_map req = {
		.h = {.op = SIO_OP_MAP, .owner = owner, .flags = flags},
		.adapter = adapter,
		.peer_node = node,
		.peer_adapter = peer_adapter,
		.bus_addr = sio_from_le64(g->bus_addr),
		.length = sio_from_le64(g->length),
		.generation = sio_from_le64(g->generation),
		.grant = sio_from_le64(g->grant),
	};

	memcpy(req.token, g->token, sizeof(req.token));
	smartiod_port_ask(d, op, &req, sizeof(req));
}

void smartiod_port_ask_map(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
			   uint32_t node, uint32_t adapter, uint32_t peer_adapter,
			   const struct sio_wire_grant *g)
{
	ask(d, op, owner, 0, node, adapter, peer_adapter, g);
}

void smartiod_port_ask_map_bar(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
			       uint32_t node, uint32_t adapter, uint32_t peer_adapter,
			       const struct sio_wire_grant *g)
{
	ask(d, op, owner, SIO_MAP_BAR, node, adapter, peer_adapter, g);
}

void smartiod_port_ask_doorbells(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
				 uint32_t node, uint32_t adapter, uint32_t peer_adapter,
				 const struct sio_wire_grant *g)
{
	ask(d, op, owner, SIO_MAP_DOORBELLS, node, adapter, peer_adapter, g);
}

bool smartiod_map_triggers(const struct smartiod_answer *a)
{
	return ((const struct sio_evt_map *)a->msg)->map_flags & SIO_MAP_TRIGGER;
}

bool smartiod_map_is_memory(const struct smartiod_answer *a, uint32_t access)
{
	return !smartiod_map_triggers(a) &&
	       !(access & SIO_ACCESS_WRITE &&
		 ((const struct sio_evt_map *)a->msg)->map_flags & SIO_MAP_READ_ONLY);
}

bool smartiod_grant_holds(const struct sio_wire_grant *g, uint64_t bytes)
{
	return g->grant && sio_from_le64(g->length) >= bytes;
}

void smartiod_grant_release(struct smartiod *d, uint32_t node, uint64_t grant)
{
	struct sio_peer_grant_release msg = {.h.type = sio_to_le32(SIO_PEER_GRANT_RELEASE),
					     .grant = sio_to_le64(grant)};

	if (grant)
		smartiod_peer_send(d, node, &msg, sizeof(msg));
}
