/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIST of accounts: how much of its quotas each node and each program has. For a program stands the
 * first of its sessions.
 */
#include <stdio.h>

#include "smartiod/daemon/dispatch.h"

/* Keys: those of nodes come before those of programs. */
#define PER 8 /* numbers of an account; more than SIO_QUOTAS */
#define PROGRAMS (1ULL << 40)

static void fill(struct sio_wire_row *ret, uint64_t key, const struct smartiod_account *a,
		 const struct sio_limit *limits, unsigned quota)
{
	ret->key = sio_to_le64(key);
	ret->id = sio_to_le32(quota);
	ret->owner = sio_to_le64(a->used[quota]);
	ret->bytes = sio_to_le64(limits[quota].most);
	ret->flags = sio_to_le32(SIO_ROW_LIVE | (limits[quota].set ? SIO_ROW_AVAILABLE : 0));
	snprintf(ret->name, sizeof(ret->name), "%s", sio_quota_name(quota));
}

/* The peer with the lowest node from @node on; one that was removed if it has something. */
static const struct smartiod_peer *peer_from(struct smartiod *d, uint64_t node)
{
	const struct smartiod_peer *best = NULL;

	for (unsigned i = 0; i < d->n_peers; i++) {
		const struct smartiod_peer *p = &d->peer[i];

		if (p->node >= node && (!p->removed || p->account.charges) &&
		    (!best || p->node < best->node))
			best = p;
	}
	return best;
}

static bool node_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	uint64_t key = after + 1;
	const struct smartiod_peer *p;

	if (key % PER >= SIO_QUOTAS)
		key += PER - key % PER;
	p = peer_from(d, key / PER);
	if (!p)
		return false;
	if (p->node != key / PER)
		key = (uint64_t)p->node * PER;
	fill(ret, key, &p->account, d->policy->node, key % PER);
	ret->node = sio_to_le32(p->node);
	return true;
}

static bool program_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	uint64_t last = after > PROGRAMS ? after - PROGRAMS : 0;
	struct smartiod_tree_node *n = smartiod_tree_after(&d->sessions, last / PER);
	unsigned quota = 0;

	/* The same program, unless that was its last. */
	if (last && last % PER + 1 < SIO_QUOTAS && smartiod_tree_find(&d->sessions, last / PER)) {
		n = smartiod_tree_find(&d->sessions, last / PER);
		quota = (unsigned)(last % PER) + 1;
	}
	for (; n; n = smartiod_tree_after(&d->sessions, n->key), quota = 0) {
		const struct smartiod_session *s =
			SMARTIOD_OF(n, struct smartiod_session, by_client);

		if (!smartiod_program_stands(s))
			continue;
		fill(ret, PROGRAMS + n->key * PER + quota, &s->program->account, d->policy->program,
		     quota);
		ret->pid = sio_to_le32(s->pid);
		return true;
	}
	return false;
}

bool smartiod_account_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	return (after < PROGRAMS && node_row(d, after, ret)) || program_row(d, after, ret);
}
