/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/topology_path.h"
#include "core/topology.h"

static struct sio_topo_adapter to_switch(unsigned sw)
{
	return (struct sio_topo_adapter){.attach = SIO_ATTACH_SWITCH, .attach_index = sw};
}

static struct sio_topo_adapter to_link(unsigned link)
{
	return (struct sio_topo_adapter){.attach = SIO_ATTACH_LINK, .attach_index = link};
}

static void add_host(struct sio_topology *t, const char *name, uint32_t node, unsigned n_devices)
{
	struct sio_topo_host *h = &t->host[t->n_hosts++];

	strcpy(h->name, name);
	h->node = node;
	h->n_devices = n_devices;
	h->device = calloc(n_devices + 1, sizeof(*h->device));
	assert_non_null(h->device);
	for (unsigned i = 0; i < n_devices; i++)
		h->device[i].fdid = sio_topology_fdid(node, i + 1);
}

static void add_adapter(struct sio_topology *t, unsigned host, struct sio_topo_adapter a)
{
	t->host[host].adapter[t->host[host].n_adapters++] = a;
}

/*
 * a and b share both switches and a cable (their last adapters); c is on the first switch; c and d
 * have an adapter each that leads nowhere.
 */
static int make(void **state)
{
	struct sio_topology *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->host = calloc(4, sizeof(*t->host));
	t->sw = calloc(2, sizeof(*t->sw));
	assert_non_null(t->host);
	assert_non_null(t->sw);
	t->n_switches = 2;
	t->n_links = 1;
	add_host(t, "a", 4, 2);
	add_host(t, "b", 8, 0);
	add_host(t, "c", 20, 1);
	add_host(t, "d", 248, 0);
	for (unsigned i = 0; i < 2; i++) {
		add_adapter(t, i, to_switch(0));
		add_adapter(t, i, to_switch(1));
		add_adapter(t, i, to_link(0));
	}
	add_adapter(t, 2, to_switch(0));
	add_adapter(t, 2, (struct sio_topo_adapter){0});
	add_adapter(t, 3, (struct sio_topo_adapter){0});
	*state = t;
	return 0;
}

static int drop(void **state)
{
	sio_topology_free(*state);
	sio_topology_free(NULL);
	return 0;
}

static void finds_hosts_and_devices(void **state)
{
	const struct sio_topology *t = *state;
	const struct sio_topo_host *host = NULL;

	assert_ptr_equal(sio_topology_host(t, 20), &t->host[2]);
	assert_null(sio_topology_host(t, 12));
	assert_ptr_equal(sio_topology_host_by_name(t, "d"), &t->host[3]);
	assert_null(sio_topology_host_by_name(t, "dd"));
	assert_int_equal(sio_topology_fdid(4, 1), 0x400001);
	assert_int_equal(sio_topology_fdid(252, 31), 0xfc0001f);
	assert_int_equal(sio_topology_fdid_node(sio_topology_fdid(508, SIO_TOPO_NUMBERS)), 508);
	assert_ptr_equal(sio_topology_device(t, 0x400002, &host), &t->host[0].device[1]);
	assert_ptr_equal(host, &t->host[0]);
	assert_ptr_equal(sio_topology_device(t, 0x1400001, NULL), &t->host[2].device[0]);
	assert_null(sio_topology_device(t, 0x400003, NULL));
	assert_null(sio_topology_device(t, 0x400000, NULL));
	assert_null(sio_topology_device(t, 0x800001, NULL));
	assert_null(sio_topology_device(t, 0xc00001, NULL));
	assert_null(sio_topology_device(t, UINT32_MAX, NULL));
}

static void assert_path(const struct sio_path *p, unsigned adapter, unsigned peer, unsigned hops)
{
	assert_int_equal(p->adapter, adapter);
	assert_int_equal(p->peer_adapter, peer);
	assert_int_equal(p->hops, hops);
}

static void orders_paths_by_hops_then_adapters(void **state)
{
	const struct sio_topology *t = *state;
	struct sio_path path[4] = {{0}};

	assert_int_equal(sio_topology_paths(t, 4, 8, path, 4), 3);
	assert_path(&path[0], 2, 2, 1);
	assert_path(&path[1], 0, 0, 2);
	assert_path(&path[2], 1, 1, 2);
	assert_path(&path[3], 0, 0, 0);
	assert_int_equal(sio_topology_paths(t, 20, 248, path, 4), 0);
	assert_int_equal(sio_topology_paths(t, 20, 8, path, 4), 1);
	assert_path(&path[0], 0, 0, 2);
	assert_path(&path[1], 0, 0, 2);
	path[0].hops = 7;
	assert_int_equal(sio_topology_paths(t, 4, 8, path, 0), 3);
	assert_int_equal(path[0].hops, 7);
	assert_int_equal(sio_topology_paths(t, 4, 248, path, 4), 0);
	assert_int_equal(sio_topology_paths(t, 4, 4, path, 4), 0);
	assert_int_equal(sio_topology_paths(t, 4, 12, path, 4), 0);
	assert_int_equal(sio_topology_paths(t, 12, 4, path, 4), 0);
}

static void goes_through_the_adapter_asked_for(void **state)
{
	const struct sio_topology *t = *state;
	struct sio_path path = {9, 9, 9};

	assert_int_equal(topology_path(t, 4, 3, 8, &path), -EHOSTUNREACH);
	assert_int_equal(topology_path(t, 4, 1, 20, &path), -EHOSTUNREACH);
	assert_int_equal(topology_path(t, 4, 0, 4, &path), -EHOSTUNREACH);
	assert_int_equal(topology_path(t, 248, 0, 4, &path), -EHOSTUNREACH);
	assert_path(&path, 9, 9, 9);
	assert_int_equal(topology_path(t, 4, 1, 8, &path), 0);
	assert_path(&path, 1, 1, 2);
	assert_int_equal(topology_path(t, 8, 2, 4, &path), 0);
	assert_path(&path, 2, 2, 1);
}

/* All adapters of both on one switch: as many paths as there can be. */
static void holds_as_many_paths_as_there_can_be(void **state)
{
	struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS + 1];
	struct sio_topology *t = *state;

	t->host[0].n_adapters = t->host[1].n_adapters = 0;
	for (unsigned i = 0; i < 2 * SIO_MAX_ADAPTERS; i++)
		add_adapter(t, i % 2, to_switch(1));
	assert_int_equal(sio_topology_paths(t, 4, 8, path, 17), 16);
	for (unsigned i = 0; i < 16; i++)
		assert_path(&path[i], i / 4, i % 4, 2);
}

/* Hosts of another file, in the places that those of this one have. */
static void puts_hosts_in_the_places_of_others(void **state)
{
	struct sio_topology *t = *state, next = {.n_hosts = 0};
	struct sio_topo_device *device;

	next.host = calloc(3, sizeof(*next.host));
	assert_non_null(next.host);
	add_host(&next, "new", 12, 1);
	add_host(&next, "c", 20, 1);
	add_host(&next, "a", 4, 2);
	device = next.host[1].device;
	assert_int_equal(sio_topology_align(&next, t), 0);
	assert_int_equal(next.n_hosts, t->n_hosts + 1);
	assert_ptr_equal(next.machine, next.host + next.n_hosts);
	assert_string_equal(next.host[0].name, "a");
	assert_true(sio_topology_is_vacant(&next.host[1]));
	assert_int_equal(next.host[1].node, 8);
	assert_int_equal(next.host[1].n_devices, 0);
	assert_string_equal(next.host[2].name, "c");
	assert_ptr_equal(next.host[2].device, device);
	assert_true(sio_topology_is_vacant(&next.host[3]));
	assert_string_equal(next.host[4].name, "new");
	/* Again, now that there are vacant places: nothing moves. */
	assert_int_equal(sio_topology_align(&next, &next), 0);
	assert_int_equal(next.n_hosts, t->n_hosts + 1);
	assert_string_equal(next.host[4].name, "new");
	for (unsigned i = 0; i < next.n_hosts; i++)
		free(next.host[i].device);
	free(next.host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_hosts_and_devices, make, drop),
		cmocka_unit_test_setup_teardown(orders_paths_by_hops_then_adapters, make, drop),
		cmocka_unit_test_setup_teardown(goes_through_the_adapter_asked_for, make, drop),
		cmocka_unit_test_setup_teardown(puts_hosts_in_the_places_of_others, make, drop),
		cmocka_unit_test_setup_teardown(holds_as_many_paths_as_there_can_be, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
