/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments between two hosts: the link between them, and hosts that are not there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "segment_world.h"
#include "smartiod/base/daemon.h"

/* A page of the exporter, with handles of the segment, the connection and the map. */
static void exported_and_mapped(struct fixture *f, uint32_t *ret_h, uint32_t *ret_c,
				uint32_t *ret_m)
{
	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, ret_h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, ret_c), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, *ret_c, 0, 4096, ret_m), 0);
}

/* The link goes and comes: both sides are told, and all is as it was. */
static void link_loss_keeps_connections(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, m, more;

	exported_and_mapped(f, &h, &c, &m);
	for (unsigned i = 0; i < 3; i++) {
		world_link(f->w, 0, 1, false);
		world_run(f->w);
		expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 2 * i, c, SCI_CB_NOT_OPERATIONAL,
			     0);
		expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 2 * i + 1, h,
			     SCI_CB_NOT_OPERATIONAL, 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 1);
		assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
		assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &more), ENETDOWN);
		assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &more), ENETDOWN);
		assert_int_equal(call_probe(f->w, f->importer, 4), ENETDOWN);
		world_link(f->w, 0, 1, true);
		world_run(f->w);
		expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 2 * i + 1, c, SCI_CB_OPERATIONAL,
			     0);
		expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 2 * i + 2, h, SCI_CB_OPERATIONAL,
			     0);
		assert_int_equal(call_probe(f->w, f->importer, 4), 0);
		assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &more), 0);
	}
	/* To leave needs no link. */
	world_link(f->w, 0, 1, false);
	world_run(f->w);
	world_kill(f->w, f->importer);
	world_run(f->w);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 8, h, SCI_CB_LOST, 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	world_link(f->w, 0, 1, true);
	world_run(f->w);
}

/* It comes back with other addresses: no window of before leads anywhere, so all is made again. */
static void other_addresses_end_connections(void **state)
{
	struct sio_msg_seg_connect again = {.node = sio_to_le32(4), .segment_id = sio_to_le32(1)};
	struct fixture *f = *state;
	const struct sio_rep_seg_connect *rep;
	uint64_t boot = f->w->host[0].boot_generation;
	uint32_t h, c, m;

	exported_and_mapped(f, &h, &c, &m);
	world_link(f->w, 0, 1, false);
	world_run(f->w);
	f->w->turn++;
	world_link(f->w, 0, 1, true);
	world_run(f->w);
	world_pass(f->w, 100000000);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_NOT_OPERATIONAL, 0);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1, c, SCI_CB_LOST, 1);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 2, h, SCI_CB_LOST, 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	/* As the status page says: what is compared in sequences. */
	rep = (const void *)world_call(f->w, f->importer, SIO_MSG_SEG_CONNECT, &again,
				       sizeof(again))
		      ->data;
	assert_int_equal(sio_from_le64(rep->peer_boot), SIO_LINK_START(boot, 1));
	assert_int_equal(call_seg_map(f->w, f->importer, sio_from_le32(rep->handle), 0, 4096, &m),
			 0);
}

/* The link goes at any moment of connect and map: an error, or a connection that comes back. */
static void the_link_goes_meanwhile(void **state)
{
	struct fixture *f = *state;
	bool done = false;

	for (unsigned n = 0; !done; n++) {
		struct sio_msg_seg_map map = {.bytes = sio_to_le64(4096)};
		const struct world_message *m;
		uint32_t h, c, id;

		assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
		world_forget(f->importer);
		world_forget(f->exporter);
		done = call_seg_join(f->w, f->importer, 4, n, &id, &c);
		world_link(f->w, 0, 1, false);
		world_run(f->w);
		m = world_reply(f->importer, id);
		assert_non_null(m);
		world_link(f->w, 0, 1, true);
		world_run(f->w);
		/* A connection that was made has come back, one that was not left nothing. */
		if (c) {
			expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c,
				     SCI_CB_NOT_OPERATIONAL, 0);
			expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1, c, SCI_CB_OPERATIONAL,
				     0);
			map.handle = sio_to_le32(c);
			id = world_send(f->w, f->importer, SIO_MSG_SEG_MAP, &map, sizeof(map));
			world_run(f->w);
			assert_int_equal(world_reply(f->importer, id)->error, 0);
		} else if (!m->error) {
			assert_non_null(world_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1));
		}
		/* Of one that could not be made the exporter knows nothing any more. */
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h,
					     c || !m->error ? SCI_FLAG_FORCE_REMOVE : 0),
				 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	}
}

static void nodes_that_are_not_there(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_node_probe msg = {.node = sio_to_le32(4), .adapter = sio_to_le32(1)};
	uint32_t c;

	assert_int_equal(call_probe(f->w, f->importer, 8), 0);
	assert_int_equal(call_probe(f->w, f->importer, 4), 0);
	assert_int_equal(call_probe(f->w, f->importer, 12), EHOSTUNREACH);
	assert_int_equal(call_seg_connect(f->w, f->importer, 12, 1, &c), EHOSTUNREACH);
	assert_int_equal(
		world_call(f->w, f->importer, SIO_MSG_NODE_PROBE, &msg, sizeof(msg))->error, ENXIO);
}

/* A peer that hears nothing: requests end by the clock, and what comes late is given back. */
static void a_silent_peer_times_out(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_seg_connect msg = {.node = sio_to_le32(4), .segment_id = sio_to_le32(1)};
	uint32_t h, id;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	f->w->drop_peer_messages = true;
	id = world_send(f->w, f->importer, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));
	world_pass(f->w, 4900000000ULL);
	assert_null(world_reply(f->importer, id));
	world_pass(f->w, 200000000);
	assert_non_null(world_reply(f->importer, id));
	assert_int_equal(world_reply(f->importer, id)->error, ETIMEDOUT);
	f->w->drop_peer_messages = false;
}

/* The link is up, the other daemon is not connected yet: requests wait for it, but not for ever. */
static void a_peer_that_starts_is_waited_for(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_node_probe msg = {.node = sio_to_le32(4)};
	uint32_t id;

	f->w->host[0].ready = false; /* its socket is not there */
	f->w->open[0][1] = f->w->open[1][0] = false;
	smartiod_peer_down(f->w->host[0].daemon, 8);
	smartiod_peer_down(f->w->host[1].daemon, 4);
	world_run(f->w);
	id = world_send(f->w, f->importer, SIO_MSG_NODE_PROBE, &msg, sizeof(msg));
	world_pass(f->w, 1900000000);
	assert_null(world_reply(f->importer, id));
	world_pass(f->w, 200000000);
	assert_non_null(world_reply(f->importer, id));
	assert_int_equal(world_reply(f->importer, id)->error, ETIMEDOUT);
	id = world_send(f->w, f->importer, SIO_MSG_NODE_PROBE, &msg, sizeof(msg));
	world_pass(f->w, 1000000000);
	assert_null(world_reply(f->importer, id));
	f->w->host[0].ready = true;
	world_pass(f->w, 100000000);
	assert_non_null(world_reply(f->importer, id));
	assert_int_equal(world_reply(f->importer, id)->error, 0);
}

static void a_late_reply_is_given_back(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_seg_connect msg = {.node = sio_to_le32(4), .segment_id = sio_to_le32(1)};
	uint32_t h, id;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	id = world_send(f->w, f->importer, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));
	/* The request is on its way while the importer's clock runs out. */
	f->w->now += 6000000000ULL;
	smartiod_timer(f->w->host[1].daemon);
	assert_int_equal(world_reply(f->importer, id)->error, ETIMEDOUT);
	world_run(f->w);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 0, h, SCI_CB_CONNECT, 0);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 1, h, SCI_CB_LOST, 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
}

static void a_host_that_starts_anew_is_another(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, m;

	exported_and_mapped(f, &h, &c, &m);
	world_crash(f->w, 0);
	world_boot(f->w, 0);
	world_pass(f->w, 100000000);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_LOST, 1);
	assert_int_equal(call_probe(f->w, f->importer, 4), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), ENOENT);
	f->exporter = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
}

/* Its connections are told of as lost, once, and then are none of the segment's. */
static void a_host_that_went_down_holds_nothing(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, m;

	exported_and_mapped(f, &h, &c, &m);
	world_crash(f->w, 1);
	world_run(f->w);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 1, h, SCI_CB_LOST, 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	assert_null(world_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 2));
	world_boot(f->w, 1);
	world_pass(f->w, 100000000);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, segment_setup, segment_teardown)
	const struct CMUnitTest tests[] = {
		CASE(link_loss_keeps_connections),
		CASE(the_link_goes_meanwhile),
		CASE(other_addresses_end_connections),
		CASE(nodes_that_are_not_there),
		CASE(a_silent_peer_times_out),
		CASE(a_peer_that_starts_is_waited_for),
		CASE(a_late_reply_is_given_back),
		CASE(a_host_that_starts_anew_is_another),
		CASE(a_host_that_went_down_holds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
