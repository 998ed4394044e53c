/* SPDX-License-Identifier: BSD-2-Clause */
/* The other hosts: paths to them, and how their daemons are answered. */
#ifndef SMARTIOD_PEER_H
#define SMARTIOD_PEER_H

#include "smartiod/base/op.h"

/* A path to a peer went down, or is up again. */
struct smartiod_path_change {
	uint32_t node, adapter, peer_adapter;
	bool up;
	bool last; /* down, as are all others to that peer */
};

/* Why all is lost that two hosts have with each other. */
enum smartiod_loss {
	SMARTIOD_NODE_DOWN, /* the connection of the daemons is lost, and all else with it */
	SMARTIOD_LINK_DOWN, /* the last path is: what one lends to the other */
};

/* Who sent a message: a peer's node, or on this host itself the operation that waits. */
struct smartiod_from {
	uint32_t node;
	struct smartiod_op *back;
};

/*
 * Handlers of peers' requests and news. Size and reserved fields are checked. Return: 0: replied,
 * or an operation will; -errno: the caller replies with it and @reterr's text.
 */
typedef int smartiod_peer_fn(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr);

#define SIO_ADAPTER_ANY 0xffffffffu

struct smartiod_peer *smartiod_peer_find(struct smartiod *d, uint32_t node);
bool smartiod_peer_link_up(const struct smartiod_peer *p);
/*
 * A path to @node that is up, through @adapter or (SIO_ADAPTER_ANY) the shortest. -ENXIO no such
 * adapter, -EHOSTUNREACH no such node or not joined, -ENETDOWN.
 */
int smartiod_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		  struct sio_err *reterr);
/* Is this very pair of adapters up? */
bool smartiod_path_up(struct smartiod *d, uint32_t node, uint32_t adapter, uint32_t peer_adapter);
/* As the status page says of it: which start of the peer, and of the way to it. */
uint64_t smartiod_path_start(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter);
void smartiod_peer_reply(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id, void *msg,
			 size_t len);
void smartiod_peer_reply_error(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id,
			       int error, const struct sio_err *err);
/* A reply that nobody waits for any more (time-out): give back what it brought. */
void smartiod_peer_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg);
/* An answer to @from without an operation. */
void smartiod_from_reply(struct smartiod *d, const struct smartiod_from *from, const void *request,
			 void *msg, size_t len);

#endif
