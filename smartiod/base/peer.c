/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths to the other hosts, and replies to their daemons. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "core/hops.h"
#include "smartiod/base/peer.h"

struct smartiod_peer *smartiod_peer_find(struct smartiod *d, uint32_t node)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (d->peer[i].node == node)
			return &d->peer[i];
	return NULL;
}

bool smartiod_peer_link_up(const struct smartiod_peer *p)
{
	for (unsigned i = 0; i < p->n_paths; i++)
		if (p->path[i].up)
			return true;
	return false;
}

static const struct smartiod_path_state *state_of(const struct smartiod_peer *p, uint32_t adapter,
						  uint32_t peer_adapter)
{
	for (unsigned i = 0; p && i < p->n_paths; i++)
		if (p->path[i].adapter == adapter && p->path[i].peer_adapter == peer_adapter)
			return &p->path[i];
	return NULL;
}

bool smartiod_path_up(struct smartiod *d, uint32_t node, uint32_t adapter, uint32_t peer_adapter)
{
	const struct smartiod_path_state *s =
		state_of(smartiod_peer_find(d, node), adapter, peer_adapter);

	return s && s->up;
}

uint64_t smartiod_path_start(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	const struct smartiod_path_state *s = state_of(p, adapter, peer_adapter);

	return s ? SIO_LINK_START(p->generation ? p->generation : s->generation, s->turn) : 0;
}

static bool is_wanted(uint32_t wanted, uint32_t adapter)
{
	return wanted == SIO_ADAPTER_ANY || wanted == adapter;
}

int smartiod_path_between(struct smartiod *d, uint32_t node, uint32_t adapter,
			  uint32_t peer_adapter, const struct smartiod_hops *here,
			  const struct smartiod_hops *there, struct sio_path *ret,
			  struct sio_err *reterr)
{
	struct sio_path path[SMARTIOD_MAX_PATHS];
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	unsigned n, best = UINT_MAX;
	bool joined = false;

	if (adapter != SIO_ADAPTER_ANY && adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	if (!p || p->removed)
		return sio_fail(reterr, -EHOSTUNREACH, "no other host of cluster %s has node id %u",
				d->topology->name, node);
	n = sio_topology_paths(d->topology, d->node, node, path, SMARTIOD_MAX_PATHS);
	for (unsigned i = 0; i < n && i < SMARTIOD_MAX_PATHS; i++) {
		const struct smartiod_path_state *s =
			state_of(p, path[i].adapter, path[i].peer_adapter);
		unsigned hops;

		if (!is_wanted(adapter, path[i].adapter) ||
		    !is_wanted(peer_adapter, path[i].peer_adapter))
			continue;
		joined = true;
		if (!s || !s->up)
			continue;
		if (s->hops)
			path[i].hops = s->hops;
		hops = sio_hops_over(&path[i], here->adapter[path[i].adapter],
				     there->adapter[path[i].peer_adapter]);
		if (hops >= best)
			continue;
		*ret = path[i];
		best = hops;
	}
	if (best != UINT_MAX)
		return 0;
	if (!joined)
		return sio_fail(reterr, -EHOSTUNREACH, "no path from %s to %s through that adapter",
				d->host->name, p->host->name);
	return sio_fail(reterr, -ENETDOWN, "the link from %s to %s is down", d->host->name,
			p->host->name);
}

int smartiod_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		  struct sio_err *reterr)
{
	static const struct smartiod_hops none;
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	return smartiod_path_between(d, node, adapter, SIO_ADAPTER_ANY, &d->hops,
				     p ? &p->hops : &none, ret, reterr);
}

int smartiod_unasked(struct smartiod *d, const struct smartiod_peer *p, int error,
		     struct sio_err *reterr)
{
	if (error == -ENOMEM)
		return sio_fail(reterr, error, "the daemon is out of memory: " SIO_MORE_MEMORY);
	if (error == -ETIMEDOUT)
		return sio_fail(
			reterr, error,
			"smartiod of %s is connected, and has not answered for %" PRIu64 " seconds",
			p->host->name, (d->ops->now(d->ctx) - p->silent_since) / 1000000000);
	return sio_fail(reterr, error, "smartiod of %s is not connected", p->host->name);
}
