/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of grants: what the port of this host has granted to other hosts. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/base/allow.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/segment.h"

static struct smartiod_grant *grant_find(struct smartiod *d, uint64_t id)
{
	return SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);
}

int smartiod_grant_keep(struct smartiod *d, uint64_t id, const struct smartiod_grant *what,
			struct sio_err *reterr)
{
	struct smartiod_peer *p = smartiod_peer_find(d, what->node);
	struct smartiod_grant *g;

	if (p && p->n_grants >= SMARTIOD_MAX_GRANTS)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_GRANTS,
					  "node %u has %u grants of %s already", p->node,
					  p->n_grants, d->host->name);
	if (!what->target &&
	    (smartiod_quota_node(d, what->node, SIO_QUOTA_WINDOWS, 1, reterr) < 0 ||
	     smartiod_quota_node(d, what->node, SIO_QUOTA_EXPORTED, what->bytes, reterr) < 0))
		return reterr->code;
	g = malloc(sizeof(*g));
	if (!g)
		return sio_fail(reterr, -ENOMEM,
				"the daemon of %s is out of memory: " SIO_MORE_MEMORY,
				d->host->name);
	*g = *what;
	if (g->segment) {
		g->segment->n_grants++;
		g->segment->n_own_grants += g->own_borrow;
	}
	smartiod_tree_add(&d->grants, &g->by_id, id);
	smartiod_charge_node(d, g->node, &g->window, SIO_QUOTA_WINDOWS, 1);
	if (!g->target) /* else: when it is known what it is of */
		smartiod_charge_node(d, g->node, &g->exported, SIO_QUOTA_EXPORTED, g->bytes);
	if (p) {
		p->n_grants++;
		p->n_rings += g->ring_memory;
	}
	return 0;
}

static void grant_free(struct smartiod *d, struct smartiod_grant *g)
{
	struct smartiod_peer *p = smartiod_peer_find(d, g->node);
	uint64_t id = g->by_id.key;

	if (p) {
		p->n_grants--;
		p->n_rings -= g->ring_memory;
	}
	smartiod_charge_drop(&g->window);
	smartiod_charge_drop(&g->exported);
	smartiod_tree_remove(&d->grants, &g->by_id);
	smartiod_port_ungrant(d, id);
	if (g->segment)
		smartiod_segment_grant_put(d, g->segment, g);
	if (g->ring)
		g->ops->gone(d, g->ring, id);
	smartiod_port_free(d, g->mem);
	free(g);
}

void smartiod_grant_end(struct smartiod *d, uint64_t id)
{
	struct smartiod_grant *g = grant_find(d, id);

	if (g)
		grant_free(d, g);
}

bool smartiod_grant_take(struct smartiod *d, uint64_t id, uint64_t mem)
{
	struct smartiod_grant *g = id ? grant_find(d, id) : NULL;

	if (!g)
		return false;
	g->ring = NULL;
	g->mem = mem;
	return true;
}

bool smartiod_grants_take(struct smartiod *d, uint64_t mem)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;
	bool some = false;

	while ((n = smartiod_tree_after(&d->grants, key))) {
		struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		key = n->key;
		if (g->target == mem) {
			g->mem = mem;
			some = true;
		}
	}
	return some;
}

bool smartiod_grant_through(struct smartiod *d, uint64_t id, uint32_t node, uint32_t adapter,
			    uint32_t peer_adapter)
{
	const struct smartiod_grant *g = id ? grant_find(d, id) : NULL;

	return g && g->node == node && g->adapter == adapter && g->peer_adapter == peer_adapter;
}

void smartiod_grant_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->grants, key))) {
		struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		key = n->key;
		if (g->node == node && !g->segment && !g->ring && g->adapter == adapter &&
		    g->peer_adapter == peer_adapter)
			smartiod_grant_cut(d, key);
	}
}

int smartiod_peer_grant_release(struct smartiod *d, const struct smartiod_from *from,
				const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_grant_release *m = msg;
	struct smartiod_grant *g = grant_find(d, sio_from_le64(m->grant));

	(void)reterr;
	if (g && g->node == from->node) /* else: a path of it was down meanwhile */
		grant_free(d, g);
	return 0;
}

void smartiod_grant_free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->grants, 0))) {
		struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		smartiod_tree_remove(&d->grants, n);
		smartiod_charge_drop(&g->window);
		smartiod_charge_drop(&g->exported);
		free(g);
	}
}
