/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes of thousands of random clusters, with cascades, chassis and links that are out, against
 * Floyd and Warshall's algorithm: same reachability, same hops, same ties. A node within a host
 * stands twice in its matrix, once on the side where a route begins and once where it ends, with
 * the switches between: so no route enters a host and leaves it again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/hops.h"
#include "core/route.h"
#include "prng.h"

#define HOSTS 5
#define SWITCHES 6
#define TRUNKS 10
#define CHASSIS 3
#define DEVICES 2
#define NODES (SWITCHES + HOSTS * (1 + CHASSIS + SIO_MAX_ADAPTERS + DEVICES))
#define FAR 10000

static struct world {
	struct sio_topology t;
	struct sio_topo_host host[HOSTS];
	struct sio_topo_device device[HOSTS][DEVICES];
	struct sio_topo_chassis chassis[HOSTS][CHASSIS];
	struct sio_topo_switch sw[SWITCHES];
	struct sio_topo_trunk trunk[TRUNKS];
	struct sio_graph *g;
	struct sio_routes *r;
	bool out[NODES * 2 + TRUNKS];
	int way[2 * NODES][2 * NODES]; /* links; a node's second place: + NODES */
	uint64_t reached, cascades, ties, unreached;
} W;

/* ---- a random cluster ---- */

static void draw_adapter(struct sio_topo_adapter *a, unsigned n_chassis, bool *open)
{
	*a = (struct sio_topo_adapter){.in = (unsigned)prng_below(n_chassis + 1)};
	if (W.t.n_switches && prng_chance(70)) {
		a->attach = SIO_ATTACH_SWITCH;
		a->attach_index = (unsigned)prng_below(W.t.n_switches);
	} else if (*open || prng_chance(70)) { /* the other end of a cable, or the first */
		a->attach = SIO_ATTACH_LINK;
		a->attach_index = *open ? W.t.n_links - 1 : W.t.n_links++;
		*open = !*open;
	}
}

static void draw_host(unsigned i)
{
	struct sio_topo_host *h = &W.host[i];

	*h = (struct sio_topo_host){.node = 4 * (i + 1),
				    .n_adapters = (unsigned)prng_below(SIO_MAX_ADAPTERS + 1),
				    .n_devices = (unsigned)prng_below(DEVICES + 1),
				    .n_chassis = (unsigned)prng_below(CHASSIS + 1),
				    .iommu = prng_chance(40),
				    .device = W.device[i],
				    .chassis = W.chassis[i]};
	for (unsigned k = 0; k < h->n_chassis; k++)
		h->chassis[k].in = (unsigned)prng_below(k + 1);
	for (unsigned k = 0; k < h->n_devices; k++)
		h->device[k].in = (unsigned)prng_below(h->n_chassis + 1);
}

static void draw(void)
{
	bool open = false;

	memset(&W.t, 0, sizeof(W.t));
	memset(W.out, 0, sizeof(W.out));
	W.t.host = W.host;
	W.t.sw = W.sw;
	W.t.trunk = W.trunk;
	W.t.n_hosts = 1 + (unsigned)prng_below(HOSTS);
	W.t.n_switches = (unsigned)prng_below(SWITCHES + 1);
	W.t.n_trunks = W.t.n_switches > 1 ? (unsigned)prng_below(TRUNKS + 1) : 0;
	for (unsigned i = 0; i < W.t.n_trunks; i++) {
		unsigned a = (unsigned)prng_below(W.t.n_switches);
		unsigned b = (unsigned)prng_below(W.t.n_switches - 1);

		W.trunk[i] = (struct sio_topo_trunk){.sw = {a, b + (b >= a)}};
	}
	for (unsigned i = 0; i < W.t.n_hosts; i++)
		draw_host(i);
	/* Adapter by adapter through all hosts, so that a cable's ends are on two of them. */
	for (unsigned k = 0; k < SIO_MAX_ADAPTERS; k++) {
		for (unsigned i = 0; i < W.t.n_hosts; i++) {
			if (k < W.host[i].n_adapters)
				draw_adapter(&W.host[i].adapter[k], W.host[i].n_chassis, &open);
		}
	}
}

/* A cable from a host to itself is none. */
static bool is_loop(const struct sio_graph_link *l)
{
	const struct sio_graph_node *a = &W.g->node[l->end[0]], *b = &W.g->node[l->end[1]];

	return a->kind == SIO_GRAPH_ADAPTER && b->kind == SIO_GRAPH_ADAPTER && a->host == b->host;
}

/* ---- brute force ---- */

static void connect(unsigned a, unsigned b)
{
	W.way[a][b] = 1;
}

static void add_link(unsigned i)
{
	const struct sio_graph_link *l = &W.g->link[i];
	unsigned a = l->end[0], b = l->end[1];
	enum sio_graph_kind ka = W.g->node[a].kind, kb = W.g->node[b].kind;

	if (ka == SIO_GRAPH_SWITCH) { /* a trunk */
		connect(a, b);
		connect(b, a);
	} else if (kb == SIO_GRAPH_SWITCH) {
		connect(a, b);
		connect(b, a + NODES);
	} else if (ka == SIO_GRAPH_ADAPTER && kb == SIO_GRAPH_ADAPTER) {
		connect(a, b + NODES);
		connect(b, a + NODES);
	} else { /* within a host, on both sides */
		for (unsigned side = 0; side <= NODES; side += NODES) {
			connect(a + side, b + side);
			connect(b + side, a + side);
		}
	}
}

static void brute_force(void)
{
	for (unsigned i = 0; i < 2 * NODES; i++) {
		for (unsigned j = 0; j < 2 * NODES; j++)
			W.way[i][j] = i == j ? 0 : FAR;
	}
	for (unsigned i = 0; i < W.g->n_links; i++) {
		if (!W.out[i])
			add_link(i);
	}
	for (unsigned k = 0; k < 2 * NODES; k++) {
		unsigned node = k % NODES;

		if (node >= W.g->n_nodes || W.g->node[node].kind == SIO_GRAPH_DEVICE)
			continue;
		for (unsigned i = 0; i < 2 * NODES; i++) {
			if (W.way[i][k] == FAR)
				continue;
			for (unsigned j = 0; j < 2 * NODES; j++) {
				if (W.way[i][k] + W.way[k][j] < W.way[i][j])
					W.way[i][j] = W.way[i][k] + W.way[k][j];
			}
		}
	}
}

/* Between two nodes of a host: with an IOMMU by way of its root. @side: 0 or NODES. */
static int inside(unsigned a, unsigned b, unsigned side)
{
	unsigned root = sio_graph_host(W.g, W.g->node[a].host) + side;

	if (a == b || !W.host[W.g->node[a].host].iommu)
		return W.way[a + side][b + side];
	return W.way[a + side][root] + W.way[root][b + side];
}

/* Between two adapters, over the fabric alone. */
static int across(unsigned a, unsigned b)
{
	unsigned out = W.g->node[a].out, in = W.g->node[b].out;
	unsigned from, to;

	if (out == SIO_GRAPH_NONE || in == SIO_GRAPH_NONE || W.out[out] || W.out[in])
		return FAR;
	if (out == in)
		return 1;
	from = W.g->link[out].end[1];
	to = W.g->link[in].end[1];
	if (W.g->node[from].kind != SIO_GRAPH_SWITCH || W.g->node[to].kind != SIO_GRAPH_SWITCH)
		return FAR;
	return W.way[from][to] == FAR ? FAR : W.way[from][to] + 2;
}

/* ---- the comparison ---- */

static void check_links(unsigned from, unsigned to, const struct sio_route *route)
{
	unsigned link[SIO_ROUTE_LINKS], at = from;
	unsigned n = sio_routes_links(W.r, from, to, route, link);

	assert_int_equal(n, from == to ? 0 : route->hops + 1);
	for (unsigned i = 0; i < n; i++) {
		const unsigned *end = W.g->link[link[i]].end;

		assert_false(W.out[link[i]]);
		assert_true(end[0] == at || end[1] == at);
		at = end[0] == at ? end[1] : end[0];
	}
	assert_int_equal(at, to);
}

/* The first of the best pairs of adapters, by trying all. */
static int best_pair(unsigned from, unsigned to, struct sio_route *ret)
{
	unsigned a = W.g->node[from].host, b = W.g->node[to].host;
	int best = FAR;

	for (unsigned i = 0; i < W.host[a].n_adapters; i++) {
		for (unsigned j = 0; j < W.host[b].n_adapters; j++) {
			unsigned x = sio_graph_adapter(W.g, a, i), y = sio_graph_adapter(W.g, b, j);
			int links = inside(from, x, 0) + across(x, y) + inside(y, to, NODES);

			W.ties += links < FAR && links == best;
			if (links >= best)
				continue;
			best = links;
			*ret = (struct sio_route){i, j, (unsigned)links - 1};
		}
	}
	return best;
}

static unsigned place_of(unsigned node)
{
	const struct sio_graph_node *n = &W.g->node[node];

	return n->kind == SIO_GRAPH_HOST ? SIO_HOPS_MEMORY : W.host[n->host].device[n->index].in;
}

/* The same without a graph. */
static void check_hops(unsigned from, unsigned to, const struct sio_route *route)
{
	const struct sio_topo_host *a = &W.host[W.g->node[from].host];
	const struct sio_topo_host *b = &W.host[W.g->node[to].host];
	struct sio_path path = {.hops = 0};

	if (from == to)
		return;
	if (a == b) {
		assert_int_equal(sio_hops_within(a, place_of(from), place_of(to)), route->hops);
		return;
	}
	path.hops =
		(unsigned)across(sio_graph_adapter(W.g, W.g->node[from].host, route->adapter),
				 sio_graph_adapter(W.g, W.g->node[to].host, route->peer_adapter));
	assert_int_equal(
		sio_hops_over(&path,
			      sio_hops_within(a, place_of(from), a->adapter[route->adapter].in),
			      sio_hops_within(b, b->adapter[route->peer_adapter].in, place_of(to))),
		route->hops);
}

static void check_pair(unsigned from, unsigned to)
{
	bool same = W.g->node[from].host == W.g->node[to].host;
	struct sio_route route = {0}, want = {SIO_GRAPH_NONE, SIO_GRAPH_NONE, 0};
	int rc = sio_routes_find(W.r, from, to, &route), links;
	bool iommu = W.host[W.g->node[from].host].iommu || W.host[W.g->node[to].host].iommu;

	links = same ? inside(from, to, 0) : best_pair(from, to, &want);
	/* Without one the fewest links of all ways are those by the best two adapters. */
	if (!same && !iommu)
		assert_int_equal(links < FAR ? links : FAR, W.way[from][to + NODES]);

	if (links >= FAR) {
		assert_int_equal(rc, -EHOSTUNREACH);
		W.unreached++;
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(route.hops, links ? links - 1 : 0);
	if (!same) {
		W.cascades +=
			across(sio_graph_adapter(W.g, W.g->node[from].host, want.adapter),
			       sio_graph_adapter(W.g, W.g->node[to].host, want.peer_adapter)) > 2;
	}
	assert_int_equal(route.adapter, want.adapter);
	assert_int_equal(route.peer_adapter, want.peer_adapter);
	check_links(from, to, &route);
	check_hops(from, to, &route);
	W.reached++;
}

/* Those of the topology, which knows of nothing that is out. */
static void check_paths(unsigned from, unsigned to)
{
	struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned found = 0,
		 n = sio_topology_paths(&W.t, W.host[from].node, W.host[to].node, path, 16);

	for (unsigned i = 0; i < W.host[from].n_adapters; i++) {
		for (unsigned j = 0; j < W.host[to].n_adapters; j++) {
			unsigned x = sio_graph_adapter(W.g, from, i);
			unsigned y = sio_graph_adapter(W.g, to, j), k = 0;
			int links = across(x, y);

			if (W.way[x][sio_graph_host(W.g, from)] == FAR ||
			    W.way[y][sio_graph_host(W.g, to)] == FAR)
				links = FAR;
			while (k < n && (path[k].adapter != i || path[k].peer_adapter != j))
				k++;
			assert_int_equal(k < n, links < FAR);
			if (k == n)
				continue;
			assert_int_equal(path[k].hops, links);
			found++;
		}
	}
	assert_int_equal(n, found);
	for (unsigned k = 1; k < n; k++)
		assert_true(path[k - 1].hops < path[k].hops ||
			    (path[k - 1].hops == path[k].hops &&
			     path[k - 1].adapter * 4 + path[k - 1].peer_adapter <
				     path[k].adapter * 4 + path[k].peer_adapter));
}

static void check_all(bool all_in)
{
	sio_routes_set(W.r, W.out);
	brute_force();
	for (unsigned i = 0; i < W.t.n_hosts; i++) {
		for (unsigned j = 0; j < W.t.n_hosts; j++) {
			if (all_in && i != j)
				check_paths(i, j);
		}
	}
	for (unsigned i = W.t.n_switches; i < W.g->n_nodes; i++) {
		for (unsigned j = W.t.n_switches; j < W.g->n_nodes; j++) {
			enum sio_graph_kind a = W.g->node[i].kind, b = W.g->node[j].kind;

			if ((a == SIO_GRAPH_HOST || a == SIO_GRAPH_DEVICE) &&
			    (b == SIO_GRAPH_HOST || b == SIO_GRAPH_DEVICE))
				check_pair(i, j);
		}
	}
}

static void agrees_with_brute_force(void **state)
{
	unsigned rounds = prng_start(24, 10000);

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		bool looped = false;

		draw();
		assert_int_equal(sio_graph_new(&W.t, &W.g), 0);
		for (unsigned k = 0; k < W.g->n_links; k++)
			looped = looped || is_loop(&W.g->link[k]);
		if (!looped) {
			assert_int_equal(sio_topology_measure(&W.t), 0);
			assert_int_equal(sio_routes_new(W.g, &W.r), 0);
			check_all(true);
			for (unsigned k = 0; k < W.g->n_links; k++)
				W.out[k] = prng_chance(15);
			check_all(false);
			sio_routes_free(W.r);
			free(W.t.distance);
		}
		sio_graph_free(W.g);
	}
	print_message("reached %" PRIu64 ", over cascades %" PRIu64 ", ties %" PRIu64
		      ", not reached %" PRIu64 "\n",
		      W.reached, W.cascades, W.ties, W.unreached);
	assert_true(W.reached > rounds && W.cascades > rounds && W.ties > rounds);
	assert_true(W.unreached > rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_brute_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
