/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device segments that outlive their maker: who finds them, until when, and that a maker which may
 * be alive leaves none.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "world.h"

#define FDID 0x400001
#define ID 7u
#define HINTS (SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE)

static struct fake_device fake;

struct scene {
	struct world *w;
	struct world_client *maker, *other;
	struct call_borrow made, by_other;
	uint32_t segment, map;
};

/* @host: the maker's. It has made the segment, and @mapped it for the device. */
static void begin(struct scene *s, unsigned host, bool mapped)
{
	s->w = call_world(&fake);
	s->maker = world_client(s->w, host, SIO_CLIENT_LIBRARY);
	s->other = world_client(s->w, 2, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(s->w, s->maker, FDID, 0, &s->made), 0);
	assert_int_equal(call_borrow(s->w, s->other, FDID, 0, &s->by_other), 0);
	assert_int_equal(call_dev_seg_create(s->w, s->maker, s->made.handle, ID, 4096,
					     SCI_MEMTYPE_SHARED, HINTS, SMARTIO_FLAG_LASTING),
			 0);
	assert_int_equal(call_dev_seg_connect(s->w, s->maker, s->made.handle, ID,
					      SCI_MEMTYPE_SHARED, &s->segment, NULL),
			 0);
	if (mapped)
		assert_int_equal(call_dma_map(s->w, s->maker, s->made.handle, s->segment, 1, 0,
					      4096, &s->map),
				 0);
}

static int find(struct scene *s, uint32_t *ret)
{
	uint32_t node = 0;
	int rc = call_dev_seg_connect(s->w, s->other, s->by_other.handle, ID, SCI_MEMTYPE_SHARED,
				      ret, &node);

	if (rc == 0)
		assert_int_equal(node, 4); /* with the lender, wherever its maker is */
	return rc;
}

static void is_gone(struct scene *s)
{
	uint32_t handle;

	assert_int_equal(find(s, &handle), ENOENT);
	assert_int_equal(world_resources(s->w, SIO_KIND_MEM), 0);
}

static void take_registers(struct scene *s)
{
	uint32_t bar = 0, map = 0, access[4];

	assert_int_equal(call_dev_seg_connect(s->w, s->other, s->by_other.handle, 0,
					      SCI_MEMTYPE_BAR, &bar, NULL),
			 0);
	assert_int_equal(call_bar_map(s->w, s->other, bar, 0, &map, access), 0);
}

static void it_outlives_its_maker_until_that_is_settled(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++)
		for (unsigned all = 0; all < 2; all++) {
			struct scene s;
			uint32_t handle;

			begin(&s, host, true);
			world_kill(s.w, s.maker);
			world_run(s.w);
			/* For whoever has the registers, and nobody else. */
			assert_int_equal(find(&s, &handle), EACCES);
			take_registers(&s);
			/* With and without a connection, and again by the next one. */
			for (unsigned i = 0; i < 2; i++) {
				assert_int_equal(find(&s, &handle), 0);
				assert_int_equal(call_handle(s.w, s.other, SIO_MSG_SEG_DISCONNECT,
							     handle, 0),
						 0);
				world_run(s.w);
			}
			assert_int_equal(find(&s, &handle), 0);
			assert_int_equal(call_dev_seg_create(s.w, s.other, s.by_other.handle, ID,
							     4096, SCI_MEMTYPE_SHARED, HINTS, 0),
					 EEXIST);
			assert_int_equal(call_settled(s.w, s.other, s.by_other.handle,
						      all ? SIO_BORROWER_ALL : s.made.id),
					 0);
			world_run(s.w);
			is_gone(&s);
			call_world_end(s.w, &fake, FDID);
		}
}

/* What the device cannot reach is no queue's: nothing of it is needed any more. */
static void unmapped_it_ends_with_its_maker(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 1, false);
	world_kill(s.w, s.maker);
	world_run(s.w);
	is_gone(&s);
	call_world_end(s.w, &fake, FDID);
}

static void without_a_connection_it_ends_while_its_maker_lives(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 1, true);
	assert_int_equal(call_handle(s.w, s.maker, SIO_MSG_DMA_UNMAP, s.map, 0), 0);
	assert_int_equal(call_handle(s.w, s.maker, SIO_MSG_SEG_DISCONNECT, s.segment, 0), 0);
	world_run(s.w);
	is_gone(&s);
	call_world_end(s.w, &fake, FDID);
}

/* The daemons lose each other, or the link goes: the maker may go on, over another one. */
static void a_maker_that_may_live_leaves_none_to_others(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 3; how++) {
		struct scene s;
		uint32_t handle;

		begin(&s, 1, true);
		if (how == 0)
			world_cut(s.w, 0, 1);
		else if (how == 1)
			world_link(s.w, 0, 1, false);
		else
			world_crash(s.w, 1);
		world_run(s.w);
		take_registers(&s);
		assert_int_equal(find(&s, &handle), how == 1 ? EACCES : ENOENT);
		if (how == 2)
			world_boot(s.w, 1);
		world_link(s.w, 0, 1, true);
		world_run(s.w);
		assert_int_equal(call_settled(s.w, s.other, s.by_other.handle, SIO_BORROWER_ALL),
				 0);
		world_run(s.w);
		assert_int_equal(find(&s, &handle), ENOENT);
		call_world_end(s.w, &fake, FDID);
	}
}

/* Nor does its successor, who went on with it, when he may live where the lender cannot see him. */
static void a_successor_that_may_live_leaves_none_to_others(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 3; how++) {
		struct world_client *third;
		struct call_borrow borrow;
		uint32_t handle, map;
		struct scene s;

		begin(&s, 1, true);
		third = world_client(s.w, 1, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_borrow(s.w, third, FDID, 0, &borrow), 0);
		world_kill(s.w, s.maker);
		world_run(s.w);
		take_registers(&s);
		assert_int_equal(find(&s, &handle), 0);
		if (how == 0)
			world_cut(s.w, 0, 2);
		else if (how == 1)
			world_link(s.w, 0, 2, false);
		else
			world_crash(s.w, 2);
		world_run(s.w);
		s.other = third;
		s.by_other = borrow;
		take_registers(&s);
		assert_int_equal(find(&s, &map), how == 1 ? EACCES : ENOENT);
		if (how == 2)
			world_boot(s.w, 2);
		world_link(s.w, 0, 2, true);
		world_run(s.w);
		assert_int_equal(call_settled(s.w, third, borrow.handle, SIO_BORROWER_ALL), 0);
		world_run(s.w);
		is_gone(&s);
		call_world_end(s.w, &fake, FDID);
	}
}

/* Whose path was lost has another borrow, and goes on; when it has ended others may. */
static void its_maker_comes_back_for_it(void **state)
{
	struct scene s, again;
	uint32_t handle;

	(void)state;
	begin(&s, 1, true);
	world_link(s.w, 0, 1, false);
	world_run(s.w);
	world_link(s.w, 0, 1, true);
	world_run(s.w);
	again = s;
	again.other = s.maker;
	assert_int_equal(call_borrow(s.w, s.maker, FDID, 0, &again.by_other), 0);
	assert_int_equal(find(&again, &handle), EACCES);
	take_registers(&again);
	assert_int_equal(find(&again, &handle), 0);
	assert_int_equal(find(&s, &handle), EACCES);
	world_kill(s.w, s.maker);
	world_run(s.w);
	take_registers(&s);
	assert_int_equal(find(&s, &handle), 0);
	assert_int_equal(call_settled(s.w, s.other, s.by_other.handle, SIO_BORROWER_ALL), 0);
	world_run(s.w);
	is_gone(&s);
	call_world_end(s.w, &fake, FDID);
}

static void it_is_shared(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 1, false);
	assert_int_equal(call_dev_seg_create(s.w, s.maker, s.made.handle, ID + 1, 4096,
					     SCI_MEMTYPE_PRIVATE, HINTS, SMARTIO_FLAG_LASTING),
			 EINVAL);
	call_world_end(s.w, &fake, FDID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_outlives_its_maker_until_that_is_settled),
		cmocka_unit_test(unmapped_it_ends_with_its_maker),
		cmocka_unit_test(without_a_connection_it_ends_while_its_maker_lives),
		cmocka_unit_test(a_maker_that_may_live_leaves_none_to_others),
		cmocka_unit_test(a_successor_that_may_live_leaves_none_to_others),
		cmocka_unit_test(its_maker_comes_back_for_it),
		cmocka_unit_test(it_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
