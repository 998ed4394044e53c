/* SPDX-License-Identifier: BSD-2-Clause */
/* How programs' stores wake a device: whose watch it is at which port, and when it ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"

#define FDID 0x400001

struct rig {
	struct world *w;
	struct fake_device fake;
	struct world_client *c;
	struct call_borrow borrow;
	uint32_t segment, map;
};

/* A client on host @host with BAR 0 mapped. */
static struct rig *rig_new(unsigned host)
{
	static struct rig r;
	uint32_t access[4];

	memset(&r, 0, sizeof(r));
	r.w = world_new(3, 0);
	fake_device_add(r.w, &r.fake);
	world_start(r.w);
	r.c = world_client(r.w, host, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(r.w, r.c, FDID, 0, &r.borrow), 0);
	assert_int_equal(call_dev_seg_connect(r.w, r.c, r.borrow.handle, 0, SCI_MEMTYPE_BAR,
					      &r.segment, NULL),
			 0);
	assert_int_equal(call_bar_map(r.w, r.c, r.segment, 0, &r.map, access), 0);
	return &r;
}

static void rig_end(struct rig *r)
{
	for (unsigned i = 0; i < r->w->n_clients; i++)
		world_kill(r->w, &r->w->client[i]);
	world_run(r->w);
	assert_nothing_left(r->w);
	assert_int_equal(r->fake.bad, 0);
	world_free(r->w);
}

static unsigned watches(struct rig *r)
{
	return world_resources(r->w, SIO_KIND_WATCH);
}

static const struct world_res *only(struct rig *r)
{
	const struct world_res *u = r->w->res;

	assert_int_equal(watches(r), 1);
	while (u->kind != SIO_KIND_WATCH)
		u = u->next;
	return u;
}

/* Of a borrower it is about the map at its own port; of the lender about the view. */
static void where_it_goes(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct rig *r = rig_new(host);
		const struct world_res *watch;

		assert_int_equal(call_watch(r->w, r->c, r->map, SIO_WATCH_FAULT, 1, 1), 0);
		watch = only(r);
		assert_int_equal(watch->host, host);
		assert_int_equal(watch->owner, r->c->owner);
		assert_non_null(world_res_find(r->w, host, host ? SIO_KIND_MAP : SIO_KIND_BAR,
					       watch->watched));
		rig_end(r);
	}
}

static void another_way_takes_its_place(void **state)
{
	static const uint32_t ways[] = {SIO_WATCH_TIMER, SIO_WATCH_EVENT, SIO_WATCH_FAULT};
	struct rig *r = rig_new(1);

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(
			call_watch(r->w, r->c, r->map, ways[i], 1, ways[i] == SIO_WATCH_FAULT), 0);
		assert_int_equal(only(r)->size, ways[i]);
	}
	assert_int_equal(call_watch(r->w, r->c, r->map, SIO_WATCH_TIMER, 0, 0), 0);
	assert_int_equal(watches(r), 2); /* of another page */
	rig_end(r);
}

static void what_is_refused(void **state)
{
	struct sio_msg_seg_watch msg = {.kind = sio_to_le32(SIO_WATCH_TIMER)};
	struct rig *r = rig_new(1);
	static const struct {
		uint64_t offset, bytes;
	} range[] = {{0, 0},	      {0x2000, 0x1000},	   {0, 0x2000},
		     {0x800, 0x1000}, {~0xfffULL, 0x1000}, {0, ~0ULL}};
	uint32_t memory, local, map;

	(void)state;
	for (unsigned i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		msg.map = sio_to_le32(r->map);
		msg.offset = sio_to_le64(range[i].offset);
		msg.bytes = sio_to_le64(range[i].bytes);
		assert_int_equal(
			world_call(r->w, r->c, SIO_MSG_SEG_WATCH, &msg, sizeof(msg))->error,
			ERANGE);
	}
	assert_int_equal(call_watch(r->w, r->c, 77, SIO_WATCH_TIMER, 1, 0), EBADF);
	assert_int_equal(call_watch(r->w, r->c, r->segment, SIO_WATCH_TIMER, 1, 0), EBADF);
	assert_int_equal(call_watch(r->w, r->c, r->map, SIO_WATCH_FAULT, 1, 0), EMFILE);
	assert_int_equal(call_seg_export(r->w, r->c, 5, 4096, &memory), 0);
	assert_int_equal(call_seg_connect(r->w, r->c, r->w->host[1].node, 5, &local), 0);
	assert_int_equal(call_seg_map(r->w, r->c, local, 0, 4096, &map), 0);
	assert_int_equal(call_watch(r->w, r->c, map, SIO_WATCH_TIMER, 0, 0), EINVAL);
	assert_int_equal(watches(r), 0);
	/* The port's refusal is passed on, and leaves what there was. */
	assert_int_equal(call_watch(r->w, r->c, r->map, SIO_WATCH_EVENT, 1, 0), 0);
	msg.kind = sio_to_le32(SIO_WATCH_FAULT);
	msg.offset = msg.bytes = sio_to_le64(0x1000);
	msg.address = sio_to_le64(FAKE_BAD_ADDRESS);
	world_send_with(r->w, r->c, SIO_MSG_SEG_WATCH, &msg, sizeof(msg), 1);
	world_run(r->w);
	assert_int_equal(world_reply(r->c, r->c->next_id)->error, EBADF);
	assert_int_equal(only(r)->size, SIO_WATCH_EVENT);
	rig_end(r);
}

/* More than one descriptor, or one with another request: cut off, and all of them closed. */
static void descriptors_that_nobody_asked_for(void **state)
{
	struct sio_msg_seg_watch msg = {.kind = sio_to_le32(SIO_WATCH_FAULT)};
	struct sio_msg_handle other = {.flags = sio_to_le32(0)};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct rig *r = rig_new(1);

		if (i)
			world_send_with(r->w, r->c, SIO_MSG_SEG_UNMAP, &other, sizeof(other), 1);
		else
			world_send_with(r->w, r->c, SIO_MSG_SEG_WATCH, &msg, sizeof(msg), 2);
		world_run(r->w);
		assert_true(r->c->cut);
		rig_end(r);
	}
}

static void what_ends_it(void **state)
{
	enum { UNMAP, KILL, LENDER_CRASHES, LINK_DOWN, ENDS };

	(void)state;
	for (unsigned how = 0; how < ENDS; how++)
		for (unsigned host = 0; host < 2; host++) {
			struct rig *r = rig_new(host);

			assert_int_equal(call_watch(r->w, r->c, r->map, SIO_WATCH_FAULT, 1, 1), 0);
			assert_int_equal(watches(r), 1);
			if (how == UNMAP)
				assert_int_equal(
					call_handle(r->w, r->c, SIO_MSG_SEG_UNMAP, r->map, 0), 0);
			else if (how == KILL)
				world_kill(r->w, r->c);
			else if (host == 0)
				world_kill(r->w, r->c); /* nobody else can take it from him */
			else if (how == LENDER_CRASHES)
				world_crash(r->w, 0);
			else
				world_link(r->w, 0, 1, false);
			world_run(r->w);
			assert_int_equal(watches(r), 0);
			if (how > KILL && host)
				assert_int_equal(
					call_watch(r->w, r->c, r->map, SIO_WATCH_TIMER, 1, 0),
					ECONNRESET);
			rig_end(r);
		}
}

/* The map goes while the port works: what it made is ended, and the program is told. */
static void a_map_that_goes_meanwhile(void **state)
{
	struct sio_msg_seg_watch msg = {.kind = sio_to_le32(SIO_WATCH_EVENT),
					.offset = sio_to_le64(0x1000),
					.bytes = sio_to_le64(0x1000)};
	struct sio_msg_handle unmap = {.flags = sio_to_le32(0)};
	struct rig *r = rig_new(1);
	uint32_t id;

	(void)state;
	msg.map = unmap.handle = sio_to_le32(r->map);
	id = world_send(r->w, r->c, SIO_MSG_SEG_WATCH, &msg, sizeof(msg));
	world_send(r->w, r->c, SIO_MSG_SEG_UNMAP, &unmap, sizeof(unmap));
	world_run(r->w);
	assert_int_equal(world_reply(r->c, id)->error, EBADF);
	assert_int_equal(watches(r), 0);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_it_goes),
		cmocka_unit_test(another_way_takes_its_place),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(descriptors_that_nobody_asked_for),
		cmocka_unit_test(what_ends_it),
		cmocka_unit_test(a_map_that_goes_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
