/* SPDX-License-Identifier: BSD-2-Clause */
/* The graph of a cluster and routes through it, each against what can be seen by eye. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/route.h"
#include "fail_alloc.h"

#define NONE SIO_GRAPH_NONE

/*
 *   lender: root -- card -- box -- {near, far, adapter 1}; root -- adapter 0, late
 *   sw0 -- sw1 -- sw2, sw0 -- sw2 (two links side by side); sw3 alone
 *   lender.0 at sw0, lender.1 at sw1; client.0 at sw2, client.1 by cable to third.0;
 *   third.1 at sw3, third.2 nowhere
 */
struct world {
	struct sio_topology t;
	struct sio_topo_host host[3];
	struct sio_topo_device device[3], gpu;
	struct sio_topo_chassis chassis[2];
	struct sio_topo_switch sw[4];
	struct sio_topo_trunk trunk[4];
	struct sio_graph *g;
	struct sio_routes *r;
	bool out[64];
};

static struct sio_topo_adapter joined(enum sio_attach_kind attach, unsigned index, unsigned in,
				      uint32_t width, uint32_t generation)
{
	return (struct sio_topo_adapter){.attach = attach,
					 .attach_index = index,
					 .in = in,
					 .link_width = width,
					 .link_generation = generation};
}

static void fill(struct world *w)
{
	static const unsigned trunk[4][2] = {{0, 1}, {1, 2}, {0, 2}, {2, 0}};
	struct sio_topo_host *h = w->host;

	for (unsigned i = 0; i < 4; i++) {
		w->trunk[i] = (struct sio_topo_trunk){
			.sw = {trunk[i][0], trunk[i][1]}, .link_width = 16, .link_generation = 3};
		w->sw[i].name[0] = (char)('p' + i);
	}
	strcpy(w->chassis[0].name, "card");
	w->chassis[1] = (struct sio_topo_chassis){
		.name = "box", .in = 1, .link_width = 8, .link_generation = 2};
	for (unsigned i = 0; i < 3; i++)
		w->device[i].in = i < 2 ? 2 : 0;
	strcpy(w->device[0].name, "near");
	h[0] = (struct sio_topo_host){.name = "lender",
				      .n_chassis = 2,
				      .chassis = w->chassis,
				      .n_devices = 3,
				      .device = w->device,
				      .n_adapters = 2};
	h[0].adapter[0] = joined(SIO_ATTACH_SWITCH, 0, 0, 8, 3);
	h[0].adapter[1] = joined(SIO_ATTACH_SWITCH, 1, 2, 8, 3);
	h[1] = (struct sio_topo_host){
		.name = "client", .n_devices = 1, .device = &w->gpu, .n_adapters = 2};
	h[1].adapter[0] = joined(SIO_ATTACH_SWITCH, 2, 0, 8, 3);
	h[1].adapter[1] = joined(SIO_ATTACH_LINK, 0, 0, 16, 2);
	h[2] = (struct sio_topo_host){.name = "third", .n_adapters = 3};
	h[2].adapter[0] = joined(SIO_ATTACH_LINK, 0, 0, 4, 4);
	h[2].adapter[1] = joined(SIO_ATTACH_SWITCH, 3, 0, 8, 3);
	w->t = (struct sio_topology){.n_hosts = 3,
				     .n_switches = 4,
				     .n_trunks = 4,
				     .n_links = 1,
				     .host = h,
				     .sw = w->sw,
				     .trunk = w->trunk};
	for (unsigned i = 0; i < 3; i++)
		h[i].node = 4 * (i + 1);
}

static int make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	fill(w);
	assert_int_equal(sio_graph_new(&w->t, &w->g), 0);
	assert_int_equal(sio_routes_new(w->g, &w->r), 0);
	*state = w;
	return 0;
}

static int drop(void **state)
{
	struct world *w = *state;

	sio_routes_free(w->r);
	sio_graph_free(w->g);
	free(w->t.distance);
	free(w);
	sio_routes_free(NULL);
	sio_graph_free(NULL);
	return 0;
}

/* The link between two nodes. */
static unsigned link_of(const struct world *w, unsigned a, unsigned b)
{
	for (unsigned i = 0; i < w->g->n_links; i++) {
		const unsigned *end = w->g->link[i].end;

		if ((end[0] == a && end[1] == b) || (end[0] == b && end[1] == a))
			return i;
	}
	fail_msg("no link between %u and %u", a, b);
	return NONE;
}

static void cut(struct world *w, unsigned a, unsigned b)
{
	w->out[link_of(w, a, b)] = true;
	sio_routes_set(w->r, w->out);
}

static void has_a_node_for_each_part_and_a_link_for_each_joint(void **state)
{
	struct world *w = *state;
	const struct sio_graph *g = w->g;
	unsigned box = sio_graph_chassis(g, 0, 1), l;

	assert_int_equal(g->n_nodes, 4 + 1 + 2 + 2 + 3 + 1 + 2 + 1 + 1 + 3);
	/* Trunks; upwards of all but roots; to switches, and one cable. */
	assert_int_equal(g->n_links, 4 + (7 + 3 + 3) + 4 + 1);
	assert_string_equal(sio_graph_name(g, 1), "q");
	assert_string_equal(sio_graph_name(g, sio_graph_host(g, 0)), "lender");
	assert_string_equal(sio_graph_name(g, box), "box");
	assert_string_equal(sio_graph_name(g, sio_graph_device(g, 0, 0)), "near");
	assert_string_equal(sio_graph_name(g, sio_graph_adapter(g, 2, 1)), "third");
	l = link_of(w, box, sio_graph_chassis(g, 0, 0));
	assert_int_equal(g->link[l].end[1], sio_graph_chassis(g, 0, 0));
	assert_int_equal(g->link[l].width, 8);
	assert_int_equal(g->link[l].generation, 2);
	/* Of a cable what both ends can. */
	l = link_of(w, sio_graph_adapter(g, 1, 1), sio_graph_adapter(g, 2, 0));
	assert_int_equal(g->link[l].width, 4);
	assert_int_equal(g->link[l].generation, 2);
	assert_int_equal(g->node[sio_graph_adapter(g, 2, 2)].out, NONE);
	link_of(w, 0, 1);
	link_of(w, sio_graph_adapter(g, 0, 1), 1);
}

/* Of hosts by index. */
static void assert_route(const struct world *w, unsigned from, unsigned to, unsigned adapter,
			 unsigned peer, unsigned hops)
{
	unsigned link[SIO_ROUTE_LINKS], at = from, n;
	struct sio_route route = {9, 9, 9};

	assert_int_equal(sio_routes_find(w->r, from, to, &route), 0);
	assert_int_equal(route.adapter, adapter);
	assert_int_equal(route.peer_adapter, peer);
	assert_int_equal(route.hops, hops);
	n = sio_routes_links(w->r, from, to, &route, link);
	assert_int_equal(n, from == to ? 0 : hops + 1);
	for (unsigned i = 0; i < n; i++) {
		const unsigned *end = w->g->link[link[i]].end;

		assert_true(end[0] == at || end[1] == at);
		assert_false(w->r->out[link[i]]);
		at = end[0] == at ? end[1] : end[0];
	}
	assert_int_equal(at, to);
}

static void stays_within_a_host_where_both_ends_are(void **state)
{
	struct world *w = *state;
	unsigned near = sio_graph_device(w->g, 0, 0), far = sio_graph_device(w->g, 0, 1);
	unsigned late = sio_graph_device(w->g, 0, 2), root = sio_graph_host(w->g, 0);
	struct sio_route route;

	assert_route(w, near, far, NONE, NONE, 1);
	assert_route(w, near, root, NONE, NONE, 2);
	assert_route(w, root, near, NONE, NONE, 2);
	assert_route(w, near, late, NONE, NONE, 3);
	assert_route(w, late, near, NONE, NONE, 3);
	assert_route(w, late, root, NONE, NONE, 0);
	assert_route(w, root, root, NONE, NONE, 0);
	cut(w, sio_graph_chassis(w->g, 0, 0), root);
	assert_route(w, near, far, NONE, NONE, 1);
	assert_int_equal(sio_routes_find(w->r, near, root, &route), -EHOSTUNREACH);
	assert_int_equal(sio_routes_find(w->r, root, near, &route), -EHOSTUNREACH);
	/* The fabric is no way around. */
	assert_int_equal(sio_routes_find(w->r, near, late, &route), -EHOSTUNREACH);
}

/* What is behind the chassis goes out by the adapter there, what is not by the other one. */
static void takes_the_nearer_adapter(void **state)
{
	struct world *w = *state;
	unsigned near = sio_graph_device(w->g, 0, 0), late = sio_graph_device(w->g, 0, 2);
	unsigned client = sio_graph_host(w->g, 1), gpu = sio_graph_device(w->g, 1, 0);

	/* near box a1 sw1 sw2 a0 client */
	assert_route(w, near, client, 1, 0, 5);
	assert_route(w, client, near, 0, 1, 5);
	assert_route(w, near, gpu, 1, 0, 6);
	/* late root a0 sw0 sw2 a0 client */
	assert_route(w, late, client, 0, 0, 5);
	assert_route(w, client, sio_graph_host(w->g, 2), 1, 0, 2);
}

static void goes_around_what_is_out(void **state)
{
	struct world *w = *state;
	unsigned near = sio_graph_device(w->g, 0, 0), root = sio_graph_host(w->g, 0);
	unsigned client = sio_graph_host(w->g, 1);
	struct sio_route route;
	unsigned link[SIO_ROUTE_LINKS];

	cut(w, 1, 2); /* sw1 sw0 sw2 */
	assert_route(w, near, client, 1, 0, 6);
	assert_int_equal(sio_routes_find(w->r, near, client, &route), 0);
	assert_int_equal(sio_routes_links(w->r, near, client, &route, link), 7);
	assert_int_equal(link[4], 2);
	w->out[2] = true; /* and the second of two side by side */
	sio_routes_set(w->r, w->out);
	assert_route(w, near, client, 1, 0, 6);
	cut(w, sio_graph_chassis(w->g, 0, 1), sio_graph_adapter(w->g, 0, 1));
	assert_route(w, near, client, 0, 0, 7);
	assert_route(w, client, near, 0, 0, 7);
	w->out[3] = true; /* sw2 is cut off */
	sio_routes_set(w->r, w->out);
	assert_int_equal(sio_routes_find(w->r, near, client, &route), -EHOSTUNREACH);
	memset(w->out, 0, sizeof(w->out));
	sio_routes_set(w->r, w->out);
	assert_route(w, near, client, 1, 0, 5);
	cut(w, near, sio_graph_chassis(w->g, 0, 1));
	assert_int_equal(sio_routes_find(w->r, near, client, &route), -EHOSTUNREACH);
	assert_int_equal(sio_routes_find(w->r, client, near, &route), -EHOSTUNREACH);
	assert_route(w, root, client, 0, 0, 4);
}

static void knows_what_can_be_an_end(void **state)
{
	struct world *w = *state;
	unsigned root = sio_graph_host(w->g, 0), adapter = sio_graph_adapter(w->g, 0, 0);
	struct sio_route route;

	assert_int_equal(sio_routes_find(w->r, adapter, root, &route), -EINVAL);
	assert_int_equal(sio_routes_find(w->r, root, 0, &route), -EINVAL);
	assert_int_equal(sio_routes_find(w->r, root, w->g->n_nodes, &route), -EINVAL);
}

static void assert_path(const struct sio_path *p, unsigned adapter, unsigned peer, unsigned hops)
{
	assert_int_equal(p->adapter, adapter);
	assert_int_equal(p->peer_adapter, peer);
	assert_int_equal(p->hops, hops);
}

static void counts_trunks_in_the_paths_of_a_topology(void **state)
{
	struct world *w = *state;
	struct sio_path path[4];

	assert_int_equal(sio_topology_paths(&w->t, 4, 8, path, 4), 0);
	assert_int_equal(sio_topology_measure(&w->t), 0);
	assert_int_equal(sio_topology_paths(&w->t, 4, 8, path, 4), 2);
	assert_path(&path[0], 0, 0, 3);
	assert_int_equal(sio_topology_paths(&w->t, 4, 12, path, 4), 0);
	assert_int_equal(sio_topology_paths(&w->t, 8, 12, path, 4), 1);
	assert_path(&path[0], 1, 0, 1);
	free(w->t.distance);
	w->t.distance = NULL;
	fail_alloc_at(1);
	assert_int_equal(sio_topology_measure(&w->t), -ENOMEM);
	fail_alloc_at(0);
	w->t.n_trunks = 0;
	assert_int_equal(sio_topology_measure(&w->t), 0);
	assert_null(w->t.distance);
}

static void knows_how_many_ports_a_link_takes(void **state)
{
	(void)state;
	assert_int_equal(sio_topology_ports(16, 4), 4);
	assert_int_equal(sio_topology_ports(4, 4), 1);
	assert_int_equal(sio_topology_ports(1, 16), 1);
}

/* A cable whose other end the topology does not have leads nowhere. */
static void a_cable_with_one_end_leads_nowhere(void **state)
{
	struct world *w = *state;
	struct sio_graph *g;

	w->host[2].adapter[0].attach = SIO_ATTACH_NONE;
	assert_int_equal(sio_graph_new(&w->t, &g), 0);
	assert_int_equal(g->node[sio_graph_adapter(g, 1, 1)].out, NONE);
	sio_graph_free(g);
	/* Two cables, a cable and a switch: not joined, either. */
	w->host[2].adapter[0] = joined(SIO_ATTACH_SWITCH, 3, 0, 8, 3);
	w->host[2].adapter[2] = joined(SIO_ATTACH_LINK, 0, 0, 8, 3);
	w->host[2].adapter[1] = joined(SIO_ATTACH_LINK, 1, 0, 8, 3);
	assert_int_equal(sio_graph_new(&w->t, &g), 0);
	assert_int_equal(g->link[g->node[sio_graph_adapter(g, 1, 1)].out].end[1],
			 sio_graph_adapter(g, 2, 2));
	sio_graph_free(g);
}

static void survives_every_failing_allocation(void **state)
{
	struct world *w = *state;
	struct sio_graph *g = NULL;
	struct sio_routes *r = NULL;

	for (unsigned n = 1; n <= 4; n++) {
		fail_alloc_at(n);
		assert_int_equal(sio_graph_new(&w->t, &g), -ENOMEM);
		fail_alloc_at(0);
		assert_null(g);
	}
	for (unsigned n = 1; n <= 3; n++) {
		fail_alloc_at(n);
		assert_int_equal(sio_routes_new(w->g, &r), -ENOMEM);
		fail_alloc_at(0);
		assert_null(r);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(has_a_node_for_each_part_and_a_link_for_each_joint),
		TEST(stays_within_a_host_where_both_ends_are),
		TEST(takes_the_nearer_adapter),
		TEST(goes_around_what_is_out),
		TEST(knows_what_can_be_an_end),
		TEST(counts_trunks_in_the_paths_of_a_topology),
		cmocka_unit_test(knows_how_many_ports_a_link_takes),
		TEST(a_cable_with_one_end_leads_nowhere),
		TEST(survives_every_failing_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
