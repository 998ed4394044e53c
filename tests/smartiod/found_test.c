/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts of the cluster's file that are real: what devices they have no file says, only their
 * kernels. Node 4 has one, node 8 learns of it, node 12 says that it has what it cannot have.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/device/device.h"

#define FDID sio_topology_fdid(4, sio_topology_place_number(fake.topo.bdf))

static struct fake_device fake;

static struct world *make(void)
{
	struct world *w = world_new(3, 0);

	fake_device_add(w, &fake);
	world_real(w);
	world_start(w);
	return w;
}

static const char *name_at(struct world *w, unsigned host, uint32_t fdid)
{
	const struct smartiod_device *dev = smartiod_device_known(w->host[host].daemon, fdid);

	return dev && dev->present ? dev->info.name : "none";
}

/* Whoever finds it and whoever hears of it call it by the same name. */
static void it_is_known_everywhere(void **state)
{
	struct world *w = make();
	struct call_borrow b;
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "host0/%04x:%02x:%02x.%x", fake.topo.bdf >> 16,
		 fake.topo.bdf >> 8 & 0xff, fake.topo.bdf >> 3 & 0x1f, fake.topo.bdf & 7);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(name_at(w, i, FDID), name);
	assert_int_equal(call_borrow(w, world_client(w, 1, SIO_CLIENT_LIBRARY), FDID,
				     SCI_FLAG_EXCLUSIVE, &b),
			 0);
	world_free(w);
}

/* Its segments go with it, also where another host has their memory. */
static void a_rule_about_it_covers_its_segments(void **state)
{
	struct sio_policy_rule rule = {.kind = SIO_POLICY_DEVICE, .has_nodes = true};
	struct world *w = make();
	struct world_client *maker = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *other = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow b, o;
	uint32_t handle, node;

	(void)state;
	assert_int_equal(call_borrow(w, maker, FDID, 0, &b), 0);
	assert_int_equal(call_borrow(w, other, FDID, 0, &o), 0);
	assert_int_equal(call_dev_seg_create(w, maker, b.handle, 7, 4096, SCI_MEMTYPE_SHARED, 0,
					     SCI_FLAG_LOCAL_ONLY),
			 0);
	w->topology->policy.rule = &rule;
	w->topology->policy.n_rules = 1;
	assert_int_equal(
		call_dev_seg_connect(w, other, o.handle, 7, SCI_MEMTYPE_SHARED, &handle, &node),
		EACCES);
	rule.all_nodes = true;
	assert_int_equal(
		call_dev_seg_connect(w, other, o.handle, 7, SCI_MEMTYPE_SHARED, &handle, &node), 0);
	assert_int_equal(node, 8);
	w->topology->policy.n_rules = 0;
	w->topology->policy.rule = NULL;
	world_free(w);
}

static void say(struct world *w, uint32_t fdid, const char *name)
{
	struct sio_peer_devices msg = {.h.size = sio_to_le32(sizeof(msg)),
				       .h.type = sio_to_le32(SIO_PEER_DEVICES),
				       .info.fdid = sio_to_le32(fdid),
				       .info.node = sio_to_le32(4),
				       .info.bdf = sio_to_le32(0x18),
				       .present = sio_to_le32(1)};

	snprintf(msg.info.name, sizeof(msg.info.name), "%s", name);
	smartiod_peer_message(w->host[1].daemon, 12, &msg, sizeof(msg));
	world_run(w);
}

/* A name is the host's and the place's, whatever is said; an id is of the host that says it. */
static void what_it_cannot_have_is_refused(void **state)
{
	struct world *w = make();

	(void)state;
	say(w, 0xc00018, "host0/0000:00:08.0");
	assert_string_equal(name_at(w, 1, 0xc00018), "host2/0000:00:03.0");
	assert_int_equal(smartiod_device_known(w->host[1].daemon, 0xc00018)->node, 12);
	say(w, 0x400009, "host0/0000:00:09.0");
	assert_string_equal(name_at(w, 1, 0x400009), "none");
	world_pass(w, 100000000);
	assert_true(w->open[1][2]); /* cut off, it came again */
	say(w, 0xc00000, "nothing");
	assert_string_equal(name_at(w, 1, 0xc00000), "none");
	world_pass(w, 100000000);
	/* As many as a host may have, that one among them. */
	for (uint32_t i = 1; i <= 254; i++) {
		say(w, 0xc00018 + i, "one of many");
		assert_string_equal(name_at(w, 1, 0xc00018 + i),
				    i < 254 ? "host2/0000:00:03.0" : "none");
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_known_everywhere),
		cmocka_unit_test(a_rule_about_it_covers_its_segments),
		cmocka_unit_test(what_it_cannot_have_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
