/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/hops.h"
#include "fabric/fabric.h"
#include "fabric/way.h"

/* The slowest of the links between the switches of two adapters. */
static struct fabric_link slowest_trunk(const struct sio_topology *t, unsigned from, unsigned to,
					struct fabric_link slowest)
{
	for (unsigned i = 0; from != to; i++) {
		const struct sio_topo_trunk *l = &t->trunk[i];
		unsigned end = l->sw[1] == from;

		if (l->sw[end] != from || t->distance[to * t->n_switches + l->sw[!end]] >=
						  t->distance[to * t->n_switches + from])
			continue;
		slowest = fabric_slower(slowest,
					(struct fabric_link){l->link_width, l->link_generation});
		from = l->sw[!end];
		i = UINT32_MAX; /* from the first one again */
	}
	return slowest;
}

struct end {
	const struct sio_topo_host *host;
	unsigned in;
};

/* Chips of chassis between two things of a host, and the slowest of their links. */
static void pass_chassis(const struct sio_topo_host *h, unsigned a, unsigned b,
			 struct fabric_way *w)
{
	const unsigned end[2] = {a == SIO_HOPS_MEMORY ? 0 : a, b == SIO_HOPS_MEMORY ? 0 : b};
	const bool inside = a != SIO_HOPS_MEMORY && b != SIO_HOPS_MEMORY;
	const unsigned top = sio_hops_meeting(h, end[0], end[1]);

	/* The root that two devices meet at is none of them: nobody tells how long it takes. */
	w->chassis += sio_hops_within(h, a, b) - (inside && top == 0);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned in = end[i]; in != top; in = h->chassis[in - 1].in) {
			const struct sio_topo_chassis *c = &h->chassis[in - 1];

			w->slowest =
				fabric_slower(w->slowest, (struct fabric_link){c->link_width,
									       c->link_generation});
		}
	}
}

/* The path of fewest chips, as the daemons take it. False: none joins the two. */
static bool best_path(const struct sio_topology *t, const struct end *from, const struct end *to,
		      struct sio_path *ret)
{
	struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned n = sio_topology_paths(t, from->host->node, to->host->node, path,
					SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS);
	unsigned best = UINT_MAX;

	for (unsigned i = 0; i < n; i++) {
		const struct sio_topo_adapter *a = &from->host->adapter[path[i].adapter];
		const struct sio_topo_adapter *b = &to->host->adapter[path[i].peer_adapter];
		unsigned hops =
			sio_hops_over(&path[i], sio_hops_within(from->host, from->in, a->in),
				      sio_hops_within(to->host, b->in, to->in));

		if (hops >= best)
			continue;
		best = hops;
		*ret = path[i];
	}
	return best != UINT_MAX;
}

void fabric_find_way(const struct sio_topology *t, const struct fabric_end *requester,
		     const struct fabric_end *target, struct fabric_way *w)
{
	struct end from, to;
	struct sio_path path = {.hops = 0};

	memset(w, 0, sizeof(*w));
	w->from_cpu = requester->in == SIO_HOPS_MEMORY;
	w->slowest = (struct fabric_link){16, 5};
	if (!w->from_cpu)
		w->slowest = fabric_params.device_link;
	if (!t) {
		w->slowest = (struct fabric_link){8, 3};
		return;
	}
	from = (struct end){&t->host[requester->host], requester->in};
	to = (struct end){&t->host[target->host], target->in};
	if (!w->from_cpu)
		w->iommus = from.host->iommu;
	if (from.host == to.host) {
		pass_chassis(from.host, from.in, to.in, w);
		return;
	}
	/* Not joined: whatever it takes, nothing arrives. */
	if (!best_path(t, &from, &to, &path))
		return;
	for (unsigned i = 0; i < 2; i++) {
		const struct sio_topo_adapter *a = i ? &to.host->adapter[path.peer_adapter]
						     : &from.host->adapter[path.adapter];

		w->slowest = fabric_slower(w->slowest,
					   (struct fabric_link){a->link_width, a->link_generation});
	}
	pass_chassis(from.host, from.in, from.host->adapter[path.adapter].in, w);
	pass_chassis(to.host, to.host->adapter[path.peer_adapter].in, to.in, w);
	if (path.hops > 2)
		w->slowest =
			slowest_trunk(t, from.host->adapter[path.adapter].attach_index,
				      to.host->adapter[path.peer_adapter].attach_index, w->slowest);
	w->adapters = 2;
	w->cables = path.hops + fabric_params.more_switches;
	w->switches = path.hops - 1 + fabric_params.more_switches;
	w->iommus += to.host->iommu;
}
