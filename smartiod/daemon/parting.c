/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that a new cluster's file parts from this one: it does not have them, or nothing leads to
 * them by it. On real hosts the machines report which links work, whatever the file says.
 */
#include <errno.h>
#include <string.h>

#include "core/route.h"
#include "smartiod/daemon/dispatch.h"

/* What leads where by one file. */
struct map {
	const struct sio_topology *t;
	struct sio_graph *graph;
	struct sio_routes *routes;
};

static int map_new(const struct sio_topology *t, struct map *ret)
{
	*ret = (struct map){.t = t};
	if (sio_graph_new(t, &ret->graph) < 0)
		return -ENOMEM;
	return sio_routes_new(ret->graph, &ret->routes);
}

static void map_done(struct map *m)
{
	sio_routes_free(m->routes);
	sio_graph_free(m->graph);
}

static bool find(const struct map *m, uint32_t node, unsigned *ret)
{
	for (unsigned i = 0; i < m->t->n_hosts; i++)
		if (m->t->host[i].node == node) {
			*ret = sio_graph_host(m->graph, i);
			return true;
		}
	return false;
}

static bool joins(const struct map *m, uint32_t a, uint32_t b)
{
	struct sio_route route;
	unsigned from, to;

	return find(m, a, &from) && find(m, b, &to) &&
	       sio_routes_find(m->routes, from, to, &route) == 0;
}

static void report(struct smartiod *d, uint32_t node, bool gone)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->parting)
			d->rooms[i]->parting(d, node, gone);
}

static void report_cut_off(struct smartiod *d, const struct map *before, const struct map *after)
{
	for (unsigned i = 0; i < d->n_peers; i++) {
		const struct smartiod_peer *p = &d->peer[i];

		if (p->removed || !smartiod_host_stays(p->host, after->t) ||
		    !joins(before, d->node, p->node) || joins(after, d->node, p->node))
			continue;
		smartiod_report(d, SIO_RELOAD_ENDS,
				"no path is left to host '%s': the two are cut off from each other",
				p->host->name);
		report(d, p->node, false);
	}
}

void smartiod_parting_report(struct smartiod *d, const struct sio_topology *t)
{
	struct map before = {.t = NULL}, after = {.t = NULL};

	for (unsigned i = 0; i < d->n_peers; i++)
		if (!d->peer[i].removed && !smartiod_host_stays(d->peer[i].host, t))
			report(d, d->peer[i].node, true);
	if (smartiod_is_real(d))
		return;
	if (map_new(d->topology, &before) == 0 && map_new(t, &after) == 0)
		report_cut_off(d, &before, &after);
	else
		smartiod_log(d, SMARTIOD_WARNING,
			     "no memory to find out whom the new file cuts off: " SIO_MORE_MEMORY);
	map_done(&before);
	map_done(&after);
}
