/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/route.h"

int sio_routes_new(const struct sio_graph *g, struct sio_routes **ret)
{
	struct sio_routes *r = calloc(1, sizeof(*r));
	size_t n = g->topology->n_switches;

	if (!r)
		return -ENOMEM;
	r->graph = g;
	r->out = calloc(g->n_links + 1u, sizeof(*r->out));
	r->distance = calloc(n * n + 1, sizeof(*r->distance));
	if (!r->out || !r->distance) {
		sio_routes_free(r);
		return -ENOMEM;
	}
	sio_topology_distances(g->topology, NULL, r->distance);
	*ret = r;
	return 0;
}

void sio_routes_free(struct sio_routes *r)
{
	if (!r)
		return;
	free(r->out);
	free(r->distance);
	free(r);
}

void sio_routes_set(struct sio_routes *r, const bool *out)
{
	memcpy(r->out, out, r->graph->n_links * sizeof(*r->out));
	sio_topology_distances(r->graph->topology, r->out, r->distance);
}

/* ---- within a host ---- */

/* The node above one that is no root, over the link written to @ret; SIO_GRAPH_NONE: it is out. */
static unsigned step_up(const struct sio_routes *r, unsigned node, unsigned *ret)
{
	*ret = r->graph->node[node].up;
	return r->out[*ret] ? SIO_GRAPH_NONE : r->graph->link[*ret].end[1];
}

static unsigned depth_of(const struct sio_graph *g, unsigned node)
{
	unsigned depth = 0;

	for (; g->node[node].up != SIO_GRAPH_NONE; depth++)
		node = g->link[g->node[node].up].end[1];
	return depth;
}

/*
 * Links between two nodes of one host, in order, to @link, which may be NULL. Return: how many; -1:
 * one of them is out.
 */
static int within(const struct sio_routes *r, unsigned from, unsigned to, unsigned *link)
{
	unsigned a = depth_of(r->graph, from), b = depth_of(r->graph, to), crossed;
	unsigned down[SIO_MAX_CHASSIS + 1], n = 0, n_down = 0;
	bool by_root = r->graph->topology->host[r->graph->node[from].host].iommu && from != to;

	/* Whichever is deeper goes up, until they meet, or by way of the IOMMU at the root. */
	while (by_root ? a + b > 0 : from != to) {
		bool first = a >= b;

		if (first) {
			from = step_up(r, from, &crossed);
			a--;
		} else {
			to = step_up(r, to, &crossed);
			b--;
		}
		if (from == SIO_GRAPH_NONE || to == SIO_GRAPH_NONE)
			return -1;
		if (!first)
			down[n_down++] = crossed;
		else if (link)
			link[n++] = crossed;
		else
			n++;
	}
	for (unsigned i = 0; i < n_down; i++) {
		if (link)
			link[n + i] = down[n_down - 1 - i];
	}
	return (int)(n + n_down);
}

/* ---- between adapters ---- */

static const struct sio_topo_adapter *adapter_of(const struct sio_graph *g, unsigned node)
{
	return &g->topology->host[g->node[node].host].adapter[g->node[node].index];
}

/* Links between two adapters; 0: not joined. */
static unsigned between(const struct sio_routes *r, unsigned from, unsigned to)
{
	const struct sio_graph *g = r->graph;
	const struct sio_topo_adapter *a = adapter_of(g, from), *b = adapter_of(g, to);
	unsigned out = g->node[from].out, in = g->node[to].out;
	uint8_t trunks;

	if (out == SIO_GRAPH_NONE || in == SIO_GRAPH_NONE || r->out[out] || r->out[in])
		return 0;
	if (out == in)
		return 1;
	if (a->attach != SIO_ATTACH_SWITCH || b->attach != SIO_ATTACH_SWITCH)
		return 0;
	trunks = r->distance[a->attach_index * g->topology->n_switches + b->attach_index];
	return trunks == SIO_TOPO_FAR ? 0 : 2u + trunks;
}

/* Trunks from switch to switch, each a step nearer. */
static unsigned add_trunks(const struct sio_routes *r, unsigned from, unsigned to, unsigned *link)
{
	const struct sio_topology *t = r->graph->topology;
	const uint8_t *left = r->distance + (size_t)to * t->n_switches;
	unsigned n = 0;

	for (unsigned i = 0; from != to; i++) {
		const unsigned *sw = t->trunk[i].sw;
		unsigned end = sw[1] == from;

		if (sw[end] != from || r->out[i] || left[sw[!end]] >= left[from])
			continue;
		link[n++] = i;
		from = sw[!end];
		i = UINT32_MAX; /* from the first trunk again */
	}
	return n;
}

/* ---- from end to end ---- */

static bool is_end(const struct sio_graph *g, unsigned node)
{
	return node < g->n_nodes &&
	       (g->node[node].kind == SIO_GRAPH_HOST || g->node[node].kind == SIO_GRAPH_DEVICE);
}

/* Through these two adapters. Return: links; 0: no way. */
static unsigned through(const struct sio_routes *r, unsigned from, unsigned adapter, unsigned peer,
			unsigned to)
{
	int leave = within(r, from, adapter, NULL), enter = within(r, peer, to, NULL);
	unsigned cross = between(r, adapter, peer);

	return leave < 0 || enter < 0 || cross == 0 ? 0 : (unsigned)(leave + enter) + cross;
}

/* The best of all adapters at both ends. */
static int find_between(const struct sio_routes *r, unsigned from, unsigned to,
			struct sio_route *ret)
{
	const struct sio_graph *g = r->graph;
	unsigned a = g->node[from].host, b = g->node[to].host, best = UINT32_MAX;

	for (unsigned i = 0; i < g->topology->host[a].n_adapters; i++) {
		for (unsigned j = 0; j < g->topology->host[b].n_adapters; j++) {
			unsigned links = through(r, from, sio_graph_adapter(g, a, i),
						 sio_graph_adapter(g, b, j), to);

			if (links == 0 || links >= best)
				continue;
			best = links;
			*ret = (struct sio_route){i, j, links - 1};
		}
	}
	return best == UINT32_MAX ? -EHOSTUNREACH : 0;
}

int sio_routes_find(const struct sio_routes *r, unsigned from, unsigned to, struct sio_route *ret)
{
	const struct sio_graph *g = r->graph;
	int links;

	if (!is_end(g, from) || !is_end(g, to))
		return -EINVAL;
	if (g->node[from].host != g->node[to].host)
		return find_between(r, from, to, ret);
	links = within(r, from, to, NULL);
	if (links < 0)
		return -EHOSTUNREACH;
	*ret = (struct sio_route){SIO_GRAPH_NONE, SIO_GRAPH_NONE,
				  links > 0 ? (unsigned)links - 1 : 0};
	return 0;
}

unsigned sio_routes_links(const struct sio_routes *r, unsigned from, unsigned to,
			  const struct sio_route *route, unsigned *link)
{
	const struct sio_graph *g = r->graph;
	unsigned here, there, n;

	if (route->adapter == SIO_GRAPH_NONE)
		return (unsigned)within(r, from, to, link);
	here = sio_graph_adapter(g, g->node[from].host, route->adapter);
	there = sio_graph_adapter(g, g->node[to].host, route->peer_adapter);
	n = (unsigned)within(r, from, here, link);
	link[n++] = g->node[here].out;
	if (g->node[here].out == g->node[there].out)
		return n + (unsigned)within(r, there, to, link + n);
	n += add_trunks(r, adapter_of(g, here)->attach_index, adapter_of(g, there)->attach_index,
			link + n);
	link[n++] = g->node[there].out;
	return n + (unsigned)within(r, there, to, link + n);
}
