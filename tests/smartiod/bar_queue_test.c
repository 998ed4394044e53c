/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of a drive of a real host in memory of the device beside it: they stay whoever dies, be
 * there a daemon or not, until the drive has none there any more; and until then nobody else gets
 * that memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bar_target_world.h"

struct manager {
	struct world_client *c;
	struct call_borrow on;
	uint32_t regs, map, access[4];
	uint64_t hold;
};

static void manage(struct fixture *f, struct manager *m)
{
	m->c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	call_take(f->w, m->c, DRIVE, 0, &m->on, &m->regs, &m->map, m->access);
	assert_int_equal(m->access[0], 3);
}

static int hold(struct fixture *f, struct manager *m, uint64_t at)
{
	return call_hold(f->w, m->c, m->on.handle, f->on.id, at, PAGE, &m->hold);
}

/* A queue lies in the first page of the target's memory. */
static void begin(struct fixture *f, struct manager *m)
{
	uint32_t dma;
	uint64_t at;

	manage(f, m);
	assert_int_equal(call_dma_map_at(f->w, f->c, f->on.handle, f->cmb, 1, 0, PAGE, &dma, &at),
			 0);
	assert_int_equal(hold(f, m, at), 0);
	assert_int_equal(reach(f, false), 1);
}

static int borrow_target(struct fixture *f, struct world_client **ret)
{
	struct call_borrow b;
	int rc;

	*ret = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	rc = call_borrow(f->w, *ret, TARGET, 0, &b);
	world_run(f->w);
	return rc;
}

/* Its borrows have ended, and the queue is where it was. */
static void is_kept(struct fixture *f)
{
	struct world_client *other;

	assert_int_equal(reach(f, false), 1);
	assert_int_equal(reach(f, true), 0);
	assert_int_equal(views(f, MEMORY), 1);
	assert_int_equal(borrow_target(f, &other), EBUSY);
}

static void is_over(struct fixture *f, struct manager *m)
{
	struct world_client *other;

	assert_int_equal(call_unhold(f->w, m->c, m->on.handle, m->hold), 0);
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
	assert_int_equal(views(f, MEMORY), 0);
	assert_int_equal(borrow_target(f, &other), 0);
}

static void kill_client(struct fixture *f)
{
	f->w->before_step = NULL;
	library_gone(f->c);
	f->w->before_step = library_pump;
	world_kill(f->w, f->c);
	world_run(f->w);
}

static void its_program_dies(void **state)
{
	struct fixture *f = *state;
	struct manager m;

	begin(f, &m);
	kill_client(f);
	is_kept(f);
	is_over(f, &m);
}

/* What is no queue is cut, as ever. */
static void data_are_not_kept(void **state)
{
	struct fixture *f = *state;
	struct manager m;
	uint32_t dma;

	begin(f, &m);
	assert_int_equal(map(f, f->cmb, PAGE, PAGE, &dma), 0);
	assert_int_equal(reach(f, false), 2);
	kill_client(f);
	is_kept(f);
	is_over(f, &m);
}

static void daemons_are_started_again(void **state)
{
	struct fixture *f = *state;
	struct manager m;

	begin(f, &m);
	for (unsigned i = 0; i < 3; i++) {
		restart(f);
		assert_int_equal(library_lost(), 0);
		assert_int_equal(reach(f, false), 1);
	}
	kill_client(f);
	for (unsigned i = 0; i < 3; i++) {
		is_kept(f);
		restart(f);
		assert_int_equal(library_lost(), 0);
	}
	is_over(f, &m);
}

/* The port ends what it had. */
static void it_dies_without_a_daemon(void **state)
{
	struct fixture *f = *state;
	struct manager m;

	begin(f, &m);
	f->w->before_step = NULL;
	library_gone(f->c);
	f->w->before_step = library_pump;
	world_stop(f->w, 0);
	world_kill(f->w, f->c);
	restart(f);
	world_run(f->w);
	is_kept(f);
	restart(f);
	is_kept(f);
	is_over(f, &m);
}

/* It dies before it has said anything to the next daemon. */
static void it_dies_unheard(void **state)
{
	struct fixture *f = *state;
	struct manager m;

	begin(f, &m);
	f->w->before_step = NULL;
	library_gone(f->c);
	f->w->before_step = library_pump;
	world_restart(f->w, 0);
	world_run(f->w);
	world_kill(f->w, f->c);
	world_run(f->w);
	assert_true(library_settled(f->w));
	is_kept(f);
	is_over(f, &m);
}

/* Who deleted the queues does not come back to say so: a reset does. */
static void its_manager_dies_too(void **state)
{
	struct fixture *f = *state;
	struct world_client *other;
	struct manager m;

	for (unsigned away = 0; away < 2; away++) {
		if (away) {
			teardown(state);
			setup_memory(state);
			f = *state;
		}
		begin(f, &m);
		kill_client(f);
		f->w->before_step = NULL;
		library_gone(m.c);
		f->w->before_step = library_pump;
		if (away)
			world_stop(f->w, 0);
		world_kill(f->w, m.c);
		if (away)
			restart(f);
		world_run(f->w);
		/* The drive was reset for want of borrows. */
		assert_int_equal(reach(f, false), 0);
		assert_int_equal(views(f, MEMORY), 0);
		assert_int_equal(borrow_target(f, &other), 0);
	}
}

static void it_is_pulled_out(void **state)
{
	struct fixture *f = *state;
	struct manager m;

	begin(f, &m);
	kill_client(f);
	is_kept(f);
	assert_true(fake_device_move_one(f->w, &f->target, false));
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
	assert_true(fake_device_move_one(f->w, &f->target, true));
	world_run(f->w);
	assert_int_equal(call_unhold(f->w, m.c, m.on.handle, m.hold), 0);
}

/* All that may change while the port is asked; and what it says. */
static void the_port_is_asked_first(void **state)
{
	struct fixture *f = *state;
	struct manager m;
	uint32_t dma;
	uint64_t at;

	manage(f, &m);
	assert_int_equal(call_dma_map_at(f->w, f->c, f->on.handle, f->cmb, 1, 0, PAGE, &dma, &at),
			 0);
	f->w->fail_at = f->w->requests + 1;
	assert_int_not_equal(hold(f, &m, at), 0);
	f->w->fail_at = 0;
	f->w->late = SIO_OP_HOLD;
	assert_int_equal(hold(f, &m, at), -1);
	assert_int_equal(unmap(f, dma), 0);
	f->w->late = 0;
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
	assert_int_equal(hold(f, &m, at), ERANGE);
}

/* Of a class that nobody knows it is for who has the device alone. */
static void of_a_strange_device(void **state)
{
	struct fixture *f = *state;
	uint32_t dma, node, map;
	struct manager m;
	uint64_t at;

	manage(f, &m);
	assert_int_equal(call_seg_map(f->w, f->c, f->cmb, 0, PAGE, &map), 0);
	assert_int_equal(call_dma_map_at(f->w, f->c, f->on.handle, f->cmb, 1, 0, PAGE, &dma, &at),
			 0);
	assert_int_equal(hold(f, &m, at), EOPNOTSUPP);
	assert_int_equal(unmap(f, dma), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, map, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, f->cmb, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RETURN, f->of.handle, 0), 0);
	assert_int_equal(call_borrow(f->w, f->c, TARGET, SCI_FLAG_EXCLUSIVE, &f->of), 0);
	assert_int_equal(call_dev_seg_connect(f->w, f->c, f->of.handle, CMB_BAR, SCI_MEMTYPE_BAR,
					      &f->cmb, &node),
			 0);
	assert_int_equal(call_dma_map_at(f->w, f->c, f->on.handle, f->cmb, 1, 0, PAGE, &dma, &at),
			 0);
	assert_int_equal(hold(f, &m, at), 0);
	restart(f);
	kill_client(f);
	is_kept(f);
	is_over(f, &m);
}

/* It was opened to others, of whom none gets to write there. */
static void others_do_not_write_there(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint32_t dma, node, memory, map;
	struct call_borrow b;
	struct manager m;
	uint64_t at;

	manage(f, &m);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, f->cmb, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RETURN, f->of.handle, 0), 0);
	assert_int_equal(call_borrow(f->w, f->c, TARGET, SCI_FLAG_EXCLUSIVE, &f->of), 0);
	assert_int_equal(call_dev_seg_connect(f->w, f->c, f->of.handle, CMB_BAR, SCI_MEMTYPE_BAR,
					      &f->cmb, &node),
			 0);
	assert_int_equal(call_dma_map_at(f->w, f->c, f->on.handle, f->cmb, 1, 0, PAGE, &dma, &at),
			 0);
	assert_int_equal(hold(f, &m, at), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, f->of.handle, 0),
			 0);
	assert_int_equal(call_borrow(f->w, other, TARGET, 0, &b), 0);
	assert_int_equal(call_dev_seg_connect(f->w, other, b.handle, CMB_BAR, SCI_MEMTYPE_BAR,
					      &memory, &node),
			 0);
	kill_client(f);
	assert_int_equal(reach(f, false), 1);
	assert_int_equal(call_seg_map(f->w, other, memory, 0, PAGE, &map), EBUSY);
	assert_int_equal(call_unhold(f->w, m.c, m.on.handle, m.hold), 0);
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
	assert_int_equal(call_seg_map(f->w, other, memory, 0, PAGE, &map), 0);
}

#define MEMORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup_memory, teardown)
#define STRANGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup_strange, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEMORY_TEST(its_program_dies),		MEMORY_TEST(data_are_not_kept),
		MEMORY_TEST(daemons_are_started_again), MEMORY_TEST(it_dies_without_a_daemon),
		MEMORY_TEST(it_dies_unheard),		MEMORY_TEST(its_manager_dies_too),
		MEMORY_TEST(it_is_pulled_out),		MEMORY_TEST(the_port_is_asked_first),
		STRANGE_TEST(of_a_strange_device),	STRANGE_TEST(others_do_not_write_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
