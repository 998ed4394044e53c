/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/peer.h"

#define LOG_LINES 20 /* of refusals, in */
#define LOG_NS 10000000000ULL

struct sio_policy_thing smartiod_thing(struct smartiod *d, enum sio_policy_kind kind, uint32_t node,
				       uint32_t number)
{
	const struct sio_topo_host *h = sio_topology_host(d->topology, node);

	return (struct sio_policy_thing){
		.kind = kind, .host = node, .at = h ? h->name : "", .device = "", .number = number};
}

struct sio_policy_thing smartiod_thing_device(struct smartiod *d, uint32_t node, const char *name)
{
	struct sio_policy_thing t = smartiod_thing(d, SIO_POLICY_DEVICE, node, 0);

	t.device = name;
	return t;
}

/* Whoever asks again and again fills no log. Return: @rc. */
static int refused(struct smartiod *d, int rc, uint32_t pid, const struct sio_err *err)
{
	uint64_t now = d->ops->now(d->ctx);

	d->count.refusals++;
	if (now - d->refusals.since >= LOG_NS || !d->refusals.since) {
		d->refusals.since = now | 1;
		d->refusals.lines = 0;
	}
	if (d->refusals.lines++ >= LOG_LINES)
		return rc;
	if (pid)
		smartiod_log(d, SMARTIOD_NOTICE, "refused to pid %" PRIu32 ": %s", pid, err->text);
	else
		smartiod_log(d, SMARTIOD_NOTICE, "refused: %s", err->text);
	return rc;
}

/* Are they on machines of their own? Hosts of one machine have no address, or the same. */
static bool are_apart(const struct sio_topology *t, uint32_t one, uint32_t other)
{
	const struct sio_topo_host *a = sio_topology_host(t, one);
	const struct sio_topo_host *b = sio_topology_host(t, other);

	return a && b && sio_topology_apart(a, b);
}

static bool is_apart(struct smartiod *d, uint32_t node)
{
	return are_apart(d->topology, d->node, node);
}

int smartiod_allow_node(struct smartiod *d, const struct sio_policy_thing *thing, uint32_t node,
			struct sio_err *reterr)
{
	int rc = sio_policy_node(d->policy, thing, node, is_apart(d, node), reterr);

	return rc < 0 ? refused(d, rc, 0, reterr) : 0;
}

int smartiod_allow_program(struct smartiod *d, const struct smartiod_session *s,
			   const struct sio_policy_thing *thing, struct sio_err *reterr)
{
	int rc = sio_policy_program(d->policy, thing, &s->who, reterr);

	return rc < 0 ? refused(d, rc, s->pid, reterr) : 0;
}

bool smartiod_forbids_group(struct smartiod *d, const struct sio_topology *t,
			    const struct smartiod_session *s, uint32_t node, uint32_t group,
			    struct sio_err *why)
{
	for (unsigned i = 0; i < t->n_hosts; i++) {
		const struct sio_policy_thing thing =
			smartiod_thing(d, SIO_POLICY_SEGMENTS, t->host[i].node, group);

		if ((s && sio_policy_program(&t->policy, &thing, &s->who, why) < 0) ||
		    sio_policy_node(&t->policy, &thing, node, are_apart(t, node, thing.host), why) <
			    0)
			return true;
	}
	return false;
}

int smartiod_allow_group(struct smartiod *d, const struct smartiod_session *s, uint32_t node,
			 uint32_t group, struct sio_err *reterr)
{
	if (!smartiod_forbids_group(d, d->topology, s, node, group, reterr))
		return 0;
	return refused(d, reterr->code, s ? s->pid : 0, reterr);
}

bool smartiod_forbids_node(struct smartiod *d, const struct sio_topology *t,
			   const struct sio_policy_thing *thing, uint32_t node, struct sio_err *why)
{
	return sio_policy_node(&t->policy, thing, node, are_apart(t, d->node, node), why) < 0;
}

bool smartiod_forbids_program(const struct sio_policy *p, const struct smartiod_session *s,
			      const struct sio_policy_thing *thing, struct sio_err *why)
{
	return sio_policy_program(p, thing, &s->who, why) < 0;
}

int smartiod_quota_node(struct smartiod *d, uint32_t node, enum sio_quota quota, uint64_t amount,
			struct sio_err *reterr)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	char who[SIO_NAME_LEN + 24];
	int rc;

	if (!p)
		return 0;
	snprintf(who, sizeof(who), "node %" PRIu32 " (%s)", node, p->host->name);
	rc = smartiod_account_check(&p->account, d->policy->node, quota, amount, who, "node",
				    reterr);
	return rc < 0 ? refused(d, rc, 0, reterr) : 0;
}

int smartiod_quota_program(struct smartiod *d, const struct smartiod_session *s,
			   enum sio_quota quota, uint64_t amount, struct sio_err *reterr)
{
	char who[32];
	int rc;

	if (s->state == SMARTIOD_RESTORING)
		return 0;
	snprintf(who, sizeof(who), "program %" PRIu32, s->pid);
	rc = smartiod_account_check(&s->program->account, d->policy->program, quota, amount, who,
				    "program", reterr);
	return rc < 0 ? refused(d, rc, s->pid, reterr) : 0;
}

void smartiod_charge_node(struct smartiod *d, uint32_t node, struct smartiod_charge *c,
			  enum sio_quota quota, uint64_t amount)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (p)
		smartiod_account_add(&p->account, c, quota, amount);
}
