/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access rules and quotas. The cluster's file defines them (core/policy.h); the functions below
 * evaluate them for a request, and count and log each refusal. For a host the request comes from
 * its daemon, whose identity the transport has proved; for a program the kernel gives the identity.
 */
#ifndef SMARTIOD_ALLOW_H
#define SMARTIOD_ALLOW_H

#include "smartiod/base/session.h"

/* What is to be reached: @node: the host that has it. */
struct sio_policy_thing smartiod_thing(struct smartiod *d, enum sio_policy_kind kind, uint32_t node,
				       uint32_t number);
struct sio_policy_thing smartiod_thing_device(struct smartiod *d, uint32_t node, const char *name);
/* May node @node reach it? -EACCES. */
int smartiod_allow_node(struct smartiod *d, const struct sio_policy_thing *thing, uint32_t node,
			struct sio_err *reterr);
/* May this program? -EACCES. */
int smartiod_allow_program(struct smartiod *d, const struct smartiod_session *s,
			   const struct sio_policy_thing *thing, struct sio_err *reterr);
/*
 * May this program of node @node write to multicast group @group? NULL: may the node? The
 * fabric copies what is written into each member's memory and asks nobody, so they may where they
 * may have the segment of that number of every host, member or not: there may be one any time.
 * -EACCES.
 */
int smartiod_allow_group(struct smartiod *d, const struct smartiod_session *s, uint32_t node,
			 uint32_t group, struct sio_err *reterr);
/* Has node @node, or this program, room for so much more? Of a program that comes back: yes. */
int smartiod_quota_node(struct smartiod *d, uint32_t node, enum sio_quota quota, uint64_t amount,
			struct sio_err *reterr);
int smartiod_quota_program(struct smartiod *d, const struct smartiod_session *s,
			   enum sio_quota quota, uint64_t amount, struct sio_err *reterr);
/* Node @node, if it is another, has @c from now on. */
void smartiod_charge_node(struct smartiod *d, uint32_t node, struct smartiod_charge *c,
			  enum sio_quota quota, uint64_t amount);

/*
 * Would @p refuse it? Nobody is notified, and nothing is counted. *why: as who would be refused
 * hears.
 */
bool smartiod_forbids_node(struct smartiod *d, const struct sio_topology *t,
			   const struct sio_policy_thing *thing, uint32_t node,
			   struct sio_err *why);
bool smartiod_forbids_program(const struct sio_policy *p, const struct smartiod_session *s,
			      const struct sio_policy_thing *thing, struct sio_err *why);
bool smartiod_forbids_group(struct smartiod *d, const struct sio_topology *t,
			    const struct smartiod_session *s, uint32_t node, uint32_t group,
			    struct sio_err *why);

#endif
