/* SPDX-License-Identifier: BSD-2-Clause */
/* The other hosts: the paths to them, and the replies to their daemons. */
#ifndef SMARTIOD_PEER_H
#define SMARTIOD_PEER_H

#include "smartiod/base/op.h"

/* A path to a peer went down, or is up again. */
struct smartiod_path_change {
	uint32_t node, adapter, peer_adapter;
	bool up;
	bool last; /* down, as are all others to that peer */
};

/* Why two hosts lose all that they have of each other. */
enum smartiod_loss {
	SMARTIOD_NODE_DOWN, /* the connection of the daemons is lost, and all else with it */
	SMARTIOD_LINK_DOWN, /* the last path is down: what one lends to the other is lost */
};

/*
 * The sender of a message: a peer's node, or on this host the operation that waits for the answer.
 */
struct smartiod_from {
	uint32_t node;
	struct smartiod_op *back;
};

/*
 * Handlers of peers' requests and notifications. Size and reserved fields are checked. Return: 0:
 * replied, or an operation will; -errno: the caller replies with it and @reterr's text.
 */
typedef int smartiod_peer_fn(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr);
/* Declares the handlers of a list of wire/peer.h. */
#define SMARTIOD_PEER_FN(NAME, name, ...) smartiod_peer_fn smartiod_##name;

#define SIO_ADAPTER_ANY 0xffffffffu

struct smartiod_peer *smartiod_peer_find(struct smartiod *d, uint32_t node);
bool smartiod_peer_link_up(const struct smartiod_peer *p);
/*
 * Finds a path to the memory of @node that is up, through @adapter or (SIO_ADAPTER_ANY) the one
 * with the fewest chips. -ENXIO: no such adapter; -EHOSTUNREACH: no such node, or not joined;
 * -ENETDOWN: no path is up.
 */
int smartiod_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		  struct sio_err *reterr);
/*
 * The same between two ends that are not both memory: with the fewest chips from @here, of this
 * host, to @there, of @node. @peer_adapter: where the path has to arrive, or SIO_ADAPTER_ANY.
 */
int smartiod_path_between(struct smartiod *d, uint32_t node, uint32_t adapter,
			  uint32_t peer_adapter, const struct smartiod_hops *here,
			  const struct smartiod_hops *there, struct sio_path *ret,
			  struct sio_err *reterr);
/* Is the path between this pair of adapters up? */
bool smartiod_path_up(struct smartiod *d, uint32_t node, uint32_t adapter, uint32_t peer_adapter);
/*
 * The start of the path, as the status page has it: which start of the peer, and which generation
 * of the path.
 */
uint64_t smartiod_path_start(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter);
/* The error of a query (smartiod_peer_query()) of @p that was not sent. Return: @error. */
int smartiod_unasked(struct smartiod *d, const struct smartiod_peer *p, int error,
		     struct sio_err *reterr);
/* Undoes what a reply brought for which nobody waits any more (time-out). */
void smartiod_peer_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg);
/* Answers @from without an operation. */
void smartiod_from_reply(struct smartiod *d, const struct smartiod_from *from, const void *request,
			 void *msg, size_t len);

#endif
