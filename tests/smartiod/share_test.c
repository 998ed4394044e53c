/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments of which several programs of a host have handles. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "segment_world.h"

static int setup(void **state)
{
	struct fixture *f;

	segment_setup(state);
	f = *state;
	f->other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	return 0;
}

/* State and events are common; the last handle takes the memory with it. */
static void handles_share_a_segment(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = f->other;
	uint32_t h, a, b, c;

	for (unsigned last = 0; last < 3; last++) {
		world_forget(f->exporter);
		world_forget(other);
		assert_int_equal(call_seg_create(f->w, f->exporter, 1, 4096, 0, &h, NULL), 0);
		assert_int_equal(call_seg_attach(f->w, other, 1, &a), EACCES);
		assert_int_equal(call_seg_attach(f->w, other, 2, &a), ENOENT);
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_SHARE, h, 1), EINVAL);
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_SHARE, h, 0), 0);
		assert_int_equal(call_seg_attach(f->w, other, 1, &a), 0);
		assert_int_equal(call_seg_attach(f->w, other, 1, &b), 0);
		assert_int_equal(call_seg_adapter(f->w, other, SIO_MSG_SEG_PREPARE, a, 0, 0), 0);
		assert_int_equal(
			call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_AVAILABLE, h, 0, 0), 0);
		assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
		expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 0, h, SCI_CB_CONNECT, 0);
		assert_non_null(world_event(other, SIO_EVM_SEGMENT_LOCAL, 1));
		/* All but one go although somebody is connected. */
		if (last != 0)
			assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0),
					 0);
		if (last != 1)
			assert_int_equal(call_handle(f->w, other, SIO_MSG_SEG_REMOVE, a, 0), 0);
		if (last != 2)
			assert_int_equal(call_handle(f->w, other, SIO_MSG_SEG_REMOVE, b,
						     SCI_FLAG_FORCE_REMOVE),
					 0);
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_SHARE, h, 0),
				 last == 0 ? 0 : EBADF);
		assert_int_equal(call_handle(f->w, other, SIO_MSG_SEG_SHARE, a, 0),
				 last == 1 ? 0 : EBADF);
		h = last == 0 ? h : last == 1 ? a : b;
		assert_int_equal(call_seg_remove(f->w, last ? other : f->exporter, h), 0);
		assert_int_equal(call_seg_remove(f->w, last ? other : f->exporter, h), EBADF);
		assert_int_equal(call_seg_attach(f->w, other, 1, &b), ENOENT);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
		assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, c, 0), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	}
}

/* Shared, attached to twice, connected to and mapped: h, a, b, c. */
static void share(struct fixture *f, uint32_t *h, uint32_t *a, uint32_t *b, uint32_t *c)
{
	uint32_t m;

	world_forget(f->other);
	world_forget(f->importer);
	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, h), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_SHARE, *h, 0), 0);
	assert_int_equal(call_seg_attach(f->w, f->other, 1, a), 0);
	assert_int_equal(call_seg_attach(f->w, f->other, 1, b), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, c), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, *c, 0, 4096, &m), 0);
}

/* All are told, and have nothing but their handles. */
static void expect_lost(struct fixture *f, uint32_t a, uint32_t b, uint32_t c)
{
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_LOST, 1);
	assert_non_null(world_event(f->other, SIO_EVM_SEGMENT_LOCAL, 3));
	assert_int_equal(call_handle(f->w, f->other, SIO_MSG_SEG_SHARE, a, 0), ECONNRESET);
	assert_int_equal(call_handle(f->w, f->other, SIO_MSG_SEG_REMOVE, a, 0), 0);
	assert_int_equal(call_handle(f->w, f->other, SIO_MSG_SEG_REMOVE, b, 0), 0);
}

static void handles_end_with_the_maker(void **state)
{
	struct fixture *f = *state;
	uint32_t h, a, b, c;

	share(f, &h, &a, &b, &c);
	world_kill(f->w, f->exporter);
	world_run(f->w);
	expect_lost(f, a, b, c);
	f->exporter = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	/* Those who attached go: the maker stays, also when it has no handle. */
	share(f, &h, &a, &b, &c);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	world_kill(f->w, f->other);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
}

static struct world_res *find_memory(struct world *w)
{
	struct world_res *r = w->res;

	while (r && r->kind != SIO_KIND_MEM)
		r = r->next;
	assert_non_null(r);
	return r;
}

/* The maker lets go and ends, whatever is heard of first: what others have is theirs. */
static void what_the_maker_released_stays(void **state)
{
	struct fixture *f = *state;
	uint32_t h, a, b, c, d, m;

	for (f->w->style = WORLD_KILL; f->w->style <= WORLD_OWNER_FIRST; f->w->style++) {
		share(f, &h, &a, &b, &c);
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
		assert_int_equal(find_memory(f->w)->owner, 0);
		world_kill(f->w, f->exporter);
		world_run(f->w);
		assert_null(world_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0));
		assert_null(world_event(f->other, SIO_EVM_SEGMENT_LOCAL, 2));
		/* It is as good as new. */
		f->exporter = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_seg_create(f->w, f->exporter, 1, 1, 0, &h, NULL), EEXIST);
		assert_int_equal(call_seg_attach(f->w, f->exporter, 1, &h), 0);
		assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &d), 0);
		assert_int_equal(call_seg_map(f->w, f->importer, d, 0, 4096, &m), 0);
		expect_event(f->other, SIO_EVM_SEGMENT_LOCAL, 2, b, SCI_CB_CONNECT, 0);
		/* It goes with the last handle, and the last window. */
		assert_int_equal(call_handle(f->w, f->other, SIO_MSG_SEG_REMOVE, a, 0), 0);
		assert_int_equal(call_handle(f->w, f->other, SIO_MSG_SEG_REMOVE, b, 0), 0);
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h,
					     SCI_FLAG_FORCE_REMOVE),
				 0);
		expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1, c, SCI_CB_DISCONNECT, 1);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	}
	f->w->style = WORLD_KILL;
}

/* The last who has a handle is killed. */
static void what_nobody_has_any_more_goes(void **state)
{
	struct fixture *f = *state;
	uint32_t h, a, b, c;

	share(f, &h, &a, &b, &c);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	world_kill(f->w, f->exporter);
	world_kill(f->w, f->other);
	world_run(f->w);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_LOST, 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

/* The port does not take it: all is as if the maker still had its handle. */
static void what_cannot_be_given_ends_with_the_maker(void **state)
{
	struct fixture *f = *state;
	uint32_t h, a, b, c;

	share(f, &h, &a, &b, &c);
	f->w->fail_at = f->w->requests + 1;
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), EBADF);
	assert_int_not_equal(find_memory(f->w)->owner, 0);
	world_kill(f->w, f->exporter);
	world_run(f->w);
	expect_lost(f, a, b, c);
}

/* The maker is killed, or others let go, before the port has answered. */
static void much_happens_while_it_is_given(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_handle msg = {0};
	uint32_t h, a, b, c, id[3];

	for (f->w->style = WORLD_KILL; f->w->style <= WORLD_OWNER_FIRST; f->w->style++) {
		share(f, &h, &a, &b, &c);
		msg.handle = sio_to_le32(h);
		world_send(f->w, f->exporter, SIO_MSG_SEG_REMOVE, &msg, sizeof(msg));
		world_kill(f->w, f->exporter);
		world_run(f->w);
		if (world_resources(f->w, SIO_KIND_MEM) == 0) {
			expect_lost(f, a, b, c);
		} else {
			assert_int_equal(call_handle(f->w, f->other, SIO_MSG_SEG_REMOVE, a, 0), 0);
			assert_int_equal(call_handle(f->w, f->other, SIO_MSG_SEG_REMOVE, b,
						     SCI_FLAG_FORCE_REMOVE),
					 0);
		}
		f->exporter = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	}
	f->w->style = WORLD_KILL;
	share(f, &h, &a, &b, &c);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, c, 0), EBUSY);
	for (unsigned i = 0; i < 3; i++) {
		msg.handle = sio_to_le32(i == 0 ? h : i == 1 ? a : b);
		msg.flags = sio_to_le32(SCI_FLAG_FORCE_REMOVE);
		id[i] = world_send(f->w, i ? f->other : f->exporter, SIO_MSG_SEG_REMOVE, &msg,
				   sizeof(msg));
	}
	world_run(f->w);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(world_reply(i ? f->other : f->exporter, id[i])->error, 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, segment_teardown)
	const struct CMUnitTest tests[] = {
		CASE(handles_share_a_segment),
		CASE(handles_end_with_the_maker),
		CASE(what_the_maker_released_stays),
		CASE(what_nobody_has_any_more_goes),
		CASE(what_cannot_be_given_ends_with_the_maker),
		CASE(much_happens_while_it_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
