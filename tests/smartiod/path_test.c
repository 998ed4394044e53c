/* SPDX-License-Identifier: BSD-2-Clause */
/* Two adapters a host: what goes through one is not touched when the other's link goes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "calls.h"

static struct world *two_paths(struct world_client **ret_exporter,
			       struct world_client **ret_importer)
{
	struct world *w = world_new(2, 0);

	world_adapters(w, 2);
	world_start(w);
	*ret_exporter = world_client(w, 0, SIO_CLIENT_LIBRARY);
	*ret_importer = world_client(w, 1, SIO_CLIENT_LIBRARY);
	return w;
}

static void finish(struct world *w)
{
	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
	assert_nothing_left(w);
	assert_int_equal(w->bad_ends, 0);
	world_free(w);
}

static uint32_t probe(struct world *w, struct world_client *c, uint32_t adapter)
{
	struct sio_msg_node_probe msg = {.node = sio_to_le32(4), .adapter = sio_to_le32(adapter)};

	return world_call(w, c, SIO_MSG_NODE_PROBE, &msg, sizeof(msg))->error;
}

static void availability_is_per_adapter(void **state)
{
	struct world_client *exporter, *importer;
	struct world *w = two_paths(&exporter, &importer);
	uint32_t h, c;

	(void)state;
	assert_int_equal(call_seg_export(w, exporter, 1, 4096, &h), 0); /* adapter 0 */
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 1, &c), ENOENT);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_AVAILABLE, h, 1, 0), EPERM);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_PREPARE, h, 1, 0), 0);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_AVAILABLE, h, 1, 0), 0);
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 1, &c), 0);
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 2, &c), ENXIO);
	/* Forced off one adapter, kept on the other. */
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 0, &c), 0);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_UNAVAILABLE, h, 1,
					  SCI_FLAG_FORCE_DISCONNECT),
			 0);
	assert_non_null(world_event(importer, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_null(world_event(importer, SIO_EVM_SEGMENT_REMOTE, 1));
	finish(w);
}

static void one_path_of_two_goes(void **state)
{
	struct world_client *exporter, *importer;
	struct world *w = two_paths(&exporter, &importer);
	const struct sio_evm_segment *evm;
	uint32_t h, c[2], m[2], more;

	(void)state;
	assert_int_equal(call_seg_export(w, exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_PREPARE, h, 1, 0), 0);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_AVAILABLE, h, 1, 0), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(call_seg_connect_at(w, importer, 4, 1, i, &c[i]), 0);
		assert_int_equal(call_seg_map(w, importer, c[i], 0, 4096, &m[i]), 0);
	}
	assert_int_equal(world_resources(w, SIO_KIND_GRANT), 2);
	world_path(w, 0, 1, 1, false);
	world_run(w);
	evm = world_event(importer, SIO_EVM_SEGMENT_REMOTE, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), c[1]);
	assert_int_equal(sio_from_le32(evm->reason), SCI_CB_NOT_OPERATIONAL);
	assert_null(world_event(importer, SIO_EVM_SEGMENT_REMOTE, 1));
	assert_int_equal(world_resources(w, SIO_KIND_GRANT), 2);
	assert_int_equal(world_resources(w, SIO_KIND_MAP), 2);
	assert_int_equal(probe(w, importer, 0), 0);
	assert_int_equal(probe(w, importer, 1), ENETDOWN);
	assert_int_equal(call_seg_map(w, importer, c[0], 0, 4096, &more), 0);
	assert_int_equal(call_seg_map(w, importer, c[1], 0, 4096, &more), ENETDOWN);
	world_path(w, 0, 1, 1, true);
	world_run(w);
	assert_int_equal(probe(w, importer, 1), 0);
	evm = world_event(importer, SIO_EVM_SEGMENT_REMOTE, 1);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), c[1]);
	assert_int_equal(sio_from_le32(evm->reason), SCI_CB_OPERATIONAL);
	assert_int_equal(call_seg_map(w, importer, c[1], 0, 4096, &more), 0);
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 1, &c[1]), 0);
	finish(w);
}

/*
 * A path comes back with other addresses. Whoever hears of it first ends all, and has connected
 * again before the other one hears of it: what they have since then stays. The next time it does
 * not.
 */
static void other_addresses_are_news_once(void **state)
{
	struct world_client *exporter, *importer;
	struct world *w = two_paths(&exporter, &importer);
	const struct sio_evm_segment *evm;
	uint32_t h, c, m, lost = 0;

	(void)state;
	assert_int_equal(call_seg_export(w, exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_PREPARE, h, 1, 0), 0);
	assert_int_equal(call_seg_adapter(w, exporter, SIO_MSG_SEG_AVAILABLE, h, 1, 0), 0);
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 1, &c), 0);
	for (unsigned first = 0; first < 2; first++) {
		assert_int_equal(call_seg_map(w, importer, c, 0, 4096, &m), 0);
		world_path(w, 0, 1, 0, false);
		world_run(w);
		w->turn++;
		world_hear(w, first, !first, 0, true);
		world_pass(w, 100000000);
		evm = world_event(importer, SIO_EVM_SEGMENT_REMOTE, lost++);
		assert_non_null(evm);
		assert_int_equal(sio_from_le32(evm->handle), c);
		assert_int_equal(sio_from_le32(evm->reason), SCI_CB_LOST);
		assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 1, &c), 0);
		assert_int_equal(call_seg_map(w, importer, c, 0, 4096, &m), 0);
		world_hear(w, !first, first, 0, true);
		world_pass(w, 100000000);
		assert_null(world_event(importer, SIO_EVM_SEGMENT_REMOTE, lost));
		assert_int_equal(probe(w, importer, 0), 0);
	}
	finish(w);
}

/* At any moment of a map through the path that goes. */
static void a_path_goes_while_it_is_mapped(void **state)
{
	bool done = false;

	(void)state;
	for (unsigned n = 0; !done; n++) {
		struct world_client *exporter, *importer;
		struct world *w = two_paths(&exporter, &importer);
		struct sio_msg_seg_map map = {.bytes = sio_to_le64(4096)};
		uint32_t h, c = 0, c2, id;

		assert_int_equal(call_seg_export(w, exporter, 1, 4096, &h), 0);
		assert_int_equal(call_seg_connect(w, importer, 4, 1, &c), 0);
		map.handle = sio_to_le32(c);
		id = world_send(w, importer, SIO_MSG_SEG_MAP, &map, sizeof(map));
		for (unsigned i = 0; i < n; i++)
			done = !world_step(w);
		world_path(w, 0, 1, 0, false);
		world_run(w);
		assert_non_null(world_reply(importer, id));
		assert_non_null(world_event(importer, SIO_EVM_SEGMENT_REMOTE, 0));
		assert_int_equal(call_seg_map(w, importer, c, 0, 4096, &c2), ENETDOWN);
		assert_int_equal(
			call_handle(w, exporter, SIO_MSG_SEG_REMOVE, h, SCI_FLAG_FORCE_REMOVE), 0);
		assert_int_equal(world_resources(w, SIO_KIND_GRANT), 0);
		assert_int_equal(world_resources(w, SIO_KIND_MAP), 0);
		finish(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(availability_is_per_adapter),
		cmocka_unit_test(one_path_of_two_goes),
		cmocka_unit_test(other_addresses_are_news_once),
		cmocka_unit_test(a_path_goes_while_it_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
