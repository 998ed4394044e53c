/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues: channels at the port, what is attached to them, and what ends it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "calls.h"

/* A segment of @exporter on node 4, connected by @importer on node 8 and by a neighbour. */
struct fixture {
	struct world *w;
	struct world_client *exporter, *importer, *neighbour;
	uint32_t exported, own, connection, local, queue;
};

static int setup(void **state)
{
	static struct fixture f;

	f.w = world_new(2, 0);
	world_adapters(f.w, 2);
	world_start(f.w);
	f.exporter = world_client(f.w, 0, SIO_CLIENT_LIBRARY);
	f.importer = world_client(f.w, 1, SIO_CLIENT_LIBRARY);
	f.neighbour = world_client(f.w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_export(f.w, f.exporter, 1, 8192, &f.exported), 0);
	assert_int_equal(call_seg_connect(f.w, f.importer, 4, 1, &f.connection), 0);
	assert_int_equal(call_seg_connect(f.w, f.neighbour, 4, 1, &f.local), 0);
	assert_int_equal(call_seg_export(f.w, f.importer, 2, 8192, &f.own), 0);
	assert_int_equal(call_queue_create(f.w, f.importer, 0, &f.queue), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->w->bad_ends, 0);
	world_free(f->w);
	return 0;
}

static unsigned ranges(const struct fixture *f)
{
	return world_resources(f->w, SIO_KIND_DMA_RANGE);
}

static void queues_are_made_and_removed(void **state)
{
	struct fixture *f = *state;
	uint32_t second = 0, fds = world_open_fds(f->w);

	assert_int_equal(world_resources(f->w, SIO_KIND_DMA), 1);
	assert_int_equal(call_queue_create(f->w, f->importer, 1, &second), 0);
	assert_int_equal(call_queue_create(f->w, f->importer, 2, &second), ENXIO);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMA), 2);
	assert_int_equal(world_open_fds(f->w), fds); /* the daemon keeps no copy */
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_QUEUE_REMOVE, second, 1), EINVAL);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_QUEUE_REMOVE, second, 0), 0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_QUEUE_REMOVE, second, 0), EBADF);
	assert_int_equal(call_handle(f->w, f->neighbour, SIO_MSG_QUEUE_REMOVE, f->queue, 0), EBADF);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMA), 1);
}

static void what_cannot_be_attached(void **state)
{
	struct fixture *f = *state;
	uint32_t slot, other = 0, con = 0, queue = 0;
	uint64_t range;

	assert_int_equal(call_queue_attach(f->w, f->importer, 99, f->own, false, &slot, &range),
			 EBADF);
	assert_int_equal(call_queue_attach(f->w, f->importer, f->queue, 99, false, &slot, &range),
			 EBADF);
	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->own, true, &slot, &range), EBADF);
	assert_int_equal(call_seg_create(f->w, f->importer, 3, 4096, 0, &other, NULL), 0);
	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, other, false, &slot, &range),
		EPERM); /* not prepared */
	/* A queue of the other adapter. */
	assert_int_equal(call_queue_create(f->w, f->importer, 1, &queue), 0);
	assert_int_equal(call_queue_attach(f->w, f->importer, queue, f->own, false, &slot, &range),
			 EPERM);
	assert_int_equal(
		call_queue_attach(f->w, f->importer, queue, f->connection, true, &slot, &range),
		ENOTCONN);
	/* A lost connection. */
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &con), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, f->exported,
				     SCI_FLAG_FORCE_REMOVE),
			 0);
	world_run(f->w);
	assert_int_equal(call_queue_attach(f->w, f->importer, f->queue, con, true, &slot, &range),
			 ECONNRESET);
	assert_int_equal(call_queue_detach(f->w, f->importer, f->queue, 0), EBADF);
	assert_int_equal(ranges(f), 0);
}

/* The window of a connection stays as long as anything goes through it, and no longer. */
static void ranges_keep_the_window(void **state)
{
	struct fixture *f = *state;
	uint64_t range = 0, second = 0;
	uint32_t slot = 9, map = 0;

	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->connection, true, &slot, &range),
		0);
	assert_int_equal(slot, 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(call_seg_map(f->w, f->importer, f->connection, 0, 4096, &map), 0);
	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->connection, true, &slot, &second),
		0);
	assert_int_equal(slot, 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, map, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(call_queue_detach(f->w, f->importer, f->queue, range), 0);
	assert_int_equal(ranges(f), 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(call_queue_detach(f->w, f->importer, f->queue, second), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	/* And the other way round: the queue goes first. */
	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->connection, true, &slot, &range),
		0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_QUEUE_REMOVE, f->queue, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(ranges(f), 0);
}

static void ranges_end_with_what_they_are_of(void **state)
{
	struct fixture *f = *state;
	uint32_t slot, queue = 0;
	uint64_t range;

	/* A program's own segment: it is freed at once, and the range with it. */
	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->own, false, &slot, &range), 0);
	assert_int_equal(ranges(f), 1);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_REMOVE, f->own, 0), 0);
	world_run(f->w);
	assert_int_equal(ranges(f), 0);
	/* A connection through a window. */
	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->connection, true, &slot, &range),
		0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, f->connection, 0),
			 0);
	world_run(f->w);
	assert_int_equal(ranges(f), 0);
	/* A neighbour's segment: the memory stays, the right to it goes. */
	assert_int_equal(call_queue_create(f->w, f->neighbour, 0, &queue), 0);
	assert_int_equal(
		call_queue_attach(f->w, f->neighbour, queue, f->local, true, &slot, &range), 0);
	assert_int_equal(ranges(f), 1);
	assert_int_equal(call_handle(f->w, f->neighbour, SIO_MSG_SEG_DISCONNECT, f->local, 0), 0);
	world_run(f->w);
	assert_int_equal(ranges(f), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, f->exported, 0), 0);
}

static void losses_end_ranges(void **state)
{
	struct fixture *f = *state;
	uint32_t slot, queue = 0;
	uint64_t range;

	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->connection, true, &slot, &range),
		0);
	assert_int_equal(call_queue_create(f->w, f->neighbour, 0, &queue), 0);
	assert_int_equal(
		call_queue_attach(f->w, f->neighbour, queue, f->local, true, &slot, &range), 0);
	assert_int_equal(ranges(f), 2);
	world_kill(f->w, f->exporter);
	world_run(f->w);
	assert_int_equal(ranges(f), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMA), 2);
}

/* Nobody ends what is another's. */
static void only_ones_own_ranges(void **state)
{
	struct fixture *f = *state;
	struct world_client *second = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	uint32_t slot;
	uint64_t range = 0;

	assert_int_equal(
		call_queue_attach(f->w, f->importer, f->queue, f->own, false, &slot, &range), 0);
	assert_int_equal(call_queue_detach(f->w, second, f->queue, range), 0); /* not told */
	world_run(f->w);
	assert_int_equal(ranges(f), 1);
	assert_int_equal(call_queue_attach(f->w, second, f->queue, f->own, false, &slot, &range),
			 EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(queues_are_made_and_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_attached, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_keep_the_window, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_end_with_what_they_are_of, setup, teardown),
		cmocka_unit_test_setup_teardown(losses_end_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(only_ones_own_ranges, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
