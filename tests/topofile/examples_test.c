/* SPDX-License-Identifier: BSD-2-Clause */
/* The topologies of examples/topologies are read, and lead where they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/fail_alloc.h"
#include "core/route.h"
#include "topofile/topofile.h"

static const char *folder;

static struct sio_topology *read_example(const char *name)
{
	struct sio_topology *t = NULL;
	struct sio_err err = {0};
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.yaml", folder, name);
	if (sio_topofile_read(path, &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

/* Links to cross between hosts number @a and @b, by each one's best path; 0: none. */
static unsigned hops(const struct sio_topology *t, unsigned a, unsigned b)
{
	struct sio_path path = {0};

	return sio_topology_paths(t, t->host[a].node, t->host[b].node, &path, 1) ? path.hops : 0;
}

static void back_to_back(void **state)
{
	struct sio_topology *t = read_example("back-to-back");

	(void)state;
	assert_int_equal(t->n_hosts, 2);
	assert_int_equal(t->n_switches, 0);
	assert_int_equal(hops(t, 0, 1), 1);
	sio_topology_free(t);
}

static void one_switch(void **state)
{
	struct sio_topology *t = read_example("one-switch");

	(void)state;
	assert_int_equal(t->n_hosts, 4);
	assert_int_equal(t->sw[0].ports, 24);
	assert_int_equal(t->sw[0].lanes, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(t->host[i].adapter[0].port, 2 * i);
		for (unsigned j = 0; j < 4; j++)
			assert_int_equal(hops(t, i, j), i == j ? 0 : 2);
	}
	sio_topology_free(t);
}

static void two_paths(void **state)
{
	struct sio_topology *t = read_example("two-paths");
	struct sio_path path[4];

	(void)state;
	assert_int_equal(t->n_hosts, 3);
	assert_int_equal(sio_topology_paths(t, 4, 12, path, 4), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(path[i].adapter, i);
		assert_int_equal(path[i].peer_adapter, i);
		assert_int_equal(path[i].hops, 2);
	}
	sio_topology_free(t);
}

/* The paper's figures of section 8.6: 4, 3 and 1 chips to pass. */
static void chassis(void **state)
{
	struct sio_topology *t = read_example("chassis");
	struct sio_graph *g;
	struct sio_routes *r;
	struct sio_route route;

	(void)state;
	assert_int_equal(t->host[0].n_chassis, 4);
	assert_int_equal(t->host[0].device[3].link_width, 2);
	assert_int_equal(sio_graph_new(t, &g), 0);
	assert_int_equal(sio_routes_new(g, &r), 0);
	assert_int_equal(
		sio_routes_find(r, sio_graph_device(g, 0, 0), sio_graph_host(g, 1), &route), 0);
	assert_int_equal(route.adapter, 1);
	assert_int_equal(route.hops, 4);
	assert_int_equal(
		sio_routes_find(r, sio_graph_device(g, 0, 0), sio_graph_host(g, 0), &route), 0);
	assert_int_equal(route.hops, 3);
	assert_int_equal(
		sio_routes_find(r, sio_graph_device(g, 0, 0), sio_graph_device(g, 0, 1), &route),
		0);
	assert_int_equal(route.hops, 1);
	assert_int_equal(
		sio_routes_find(r, sio_graph_device(g, 0, 0), sio_graph_device(g, 0, 3), &route),
		0);
	assert_int_equal(route.hops, 2);
	/* The lender's processors have the shorter way by the other adapter. */
	assert_int_equal(sio_routes_find(r, sio_graph_host(g, 0), sio_graph_host(g, 1), &route), 0);
	assert_int_equal(route.adapter, 0);
	assert_int_equal(route.hops, 3);
	sio_routes_free(r);
	sio_graph_free(g);
	sio_topology_free(t);
}

static void ring_of_eight(void **state)
{
	struct sio_topology *t = read_example("ring-of-eight");

	(void)state;
	assert_int_equal(t->n_hosts, 8);
	assert_int_equal(t->n_links, 8);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(t->host[i].n_devices, 1);
		for (unsigned j = 0; j < 8; j++) {
			unsigned apart = (i + 8 - j) % 8;

			assert_int_equal(hops(t, i, j), apart == 1 || apart == 7);
		}
	}
	sio_topology_free(t);
}

/* Lanes of a switch's links: all that it has. */
static unsigned lanes_of(const struct sio_topology *t, unsigned sw)
{
	unsigned lanes = 0;

	for (unsigned i = 0; i < t->n_trunks; i++)
		lanes += (t->trunk[i].sw[0] == sw || t->trunk[i].sw[1] == sw) *
			 t->trunk[i].link_width;
	for (unsigned i = 0; i < t->n_hosts; i++)
		lanes += (t->host[i].adapter[0].attach_index == sw) *
			 t->host[i].adapter[0].link_width;
	return lanes;
}

static void sixty_hosts(void **state)
{
	struct sio_topology *t = read_example("sixty-hosts");

	(void)state;
	assert_int_equal(t->n_hosts, 60);
	assert_int_equal(t->n_switches, 7);
	assert_int_equal(t->n_trunks, 6);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(lanes_of(t, i), 96);
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(t->host[i].node, 4 * (i + 1));
		for (unsigned j = 0; j < 60; j++)
			assert_int_equal(hops(t, i, j), i == j ? 0 : i / 10 == j / 10 ? 2 : 4);
	}
	sio_topology_free(t);
}

static void one_hundred_and_twenty_hosts(void **state)
{
	struct sio_topology *t = read_example("one-hundred-and-twenty-hosts");

	(void)state;
	assert_int_equal(t->n_hosts, 120);
	assert_int_equal(t->host[61].node, 248);
	assert_int_equal(t->host[62].node, 256);
	assert_int_equal(t->host[119].node, 484);
	for (unsigned i = 0; i < 120; i++) {
		for (unsigned j = 0; j < 120; j++) {
			unsigned want = i / 10 == j / 10 ? 2 : i / 60 == j / 60 ? 4 : 5;

			assert_int_equal(hops(t, i, j), i == j ? 0 : want);
		}
	}
	sio_topology_free(t);
}

/* Whichever allocation fails: -ENOMEM, and the sanitizer finds nothing lost. */
static void survives_every_failing_allocation(void **state)
{
	static const char *const name[] = {"chassis", "sixty-hosts"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		unsigned n = 1;
		bool failed;

		do {
			struct sio_topology *t = NULL;
			struct sio_err err = {0};
			char path[512];
			int rc;

			snprintf(path, sizeof(path), "%s/%s.yaml", folder, name[i]);
			fail_alloc_at(n++);
			rc = sio_topofile_read(path, &t, &err);
			failed = fail_alloc_count() > 0;
			fail_alloc_at(0);
			assert_int_equal(rc, failed ? -ENOMEM : 0);
			assert_int_equal(t == NULL, failed);
			sio_topology_free(t);
		} while (failed);
		assert_true(n > 8);
	}
}

/* Ports that the file numbers are kept; the others are the lowest where the lanes fit. */
static void numbers_ports(void **state)
{
	static const char text[] =
		"cluster: c\n"
		"switches: [{ name: s, ports: 8, lanes: 4 }, t]\n"
		"links: [{ from: s, to: t, width: 16 }, { from: t, to: s.3, width: 2 }]\n"
		"hosts:\n"
		"  a: { adapters: [{ to: s, width: 4 }, { to: s, width: 8 }] }\n";
	struct sio_topology *t = NULL;
	struct sio_err err = {0};

	(void)state;
	if (sio_topofile_parse("text", text, strlen(text), &t, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(t->trunk[0].port[0], 4);
	assert_int_equal(t->trunk[1].port[1], 3);
	assert_int_equal(t->host[0].adapter[0].port, 2);
	assert_int_equal(t->host[0].adapter[1].port, 0);
	assert_int_equal(t->trunk[1].link_width, 2);
	assert_int_equal(t->trunk[1].link_generation, 3);
	sio_topology_free(t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(back_to_back),
		cmocka_unit_test(one_switch),
		cmocka_unit_test(two_paths),
		cmocka_unit_test(chassis),
		cmocka_unit_test(ring_of_eight),
		cmocka_unit_test(sixty_hosts),
		cmocka_unit_test(one_hundred_and_twenty_hosts),
		cmocka_unit_test(survives_every_failing_allocation),
		cmocka_unit_test(numbers_ports),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
