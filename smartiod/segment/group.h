/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: what segments and connections of them do differently. */
#ifndef SMARTIOD_GROUP_H
#define SMARTIOD_GROUP_H

#include "smartiod/segment/segment.h"

/* May this host make a member of @group? -EINVAL no such group, -EEXIST. */
int smartiod_group_check(struct smartiod *d, uint32_t group, struct sio_err *reterr);
/* Ask for the memory of a member; the answer is like that to an ALLOC. */
void smartiod_group_ask_memory(struct smartiod *d, struct smartiod_op *op,
			       const struct smartiod_segment *seg);
/*
 * It becomes available on @adapter or not, and the group's senders find the member while one
 * is: replies to @msg.
 */
int smartiod_group_publish(struct smartiod *d, struct smartiod_session *s, const void *msg,
			   struct smartiod_segment *seg, uint32_t adapter, bool on,
			   struct sio_err *reterr);
smartiod_client_fn smartiod_group_connect;

#endif
