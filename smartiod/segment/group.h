/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: where their segments and connections differ from others. */
#ifndef SMARTIOD_GROUP_H
#define SMARTIOD_GROUP_H

#include "smartiod/base/session.h"
#include "smartiod/segment/segment.h"

/* Can this host make a member of @group? -EINVAL: no such group; -EEXIST: it has one. */
int smartiod_group_check(struct smartiod *d, uint32_t group, struct sio_err *reterr);
/* Requests the memory of a member from the port; the answer is like that to an ALLOC. */
void smartiod_group_ask_memory(struct smartiod *d, struct smartiod_op *op,
			       const struct smartiod_segment *seg);
/*
 * Makes the member available on @adapter, or not; the group's senders find the member while it is
 * available on one. Replies to @msg.
 */
int smartiod_group_publish(struct smartiod *d, struct smartiod_session *s, const void *msg,
			   struct smartiod_segment *seg, uint32_t adapter, bool on,
			   struct sio_err *reterr);
/* The same where the adapter is no more, which nobody has asked for. */
void smartiod_group_adapter_gone(struct smartiod *d, struct smartiod_segment *seg,
				 uint32_t adapter);
smartiod_client_fn smartiod_group_connect;
/* Restart: a library restores its connection to a group. */
smartiod_restore_fn smartiod_group_again;

#endif
