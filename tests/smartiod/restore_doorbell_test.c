/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells that a reset took away, and a daemon that is started again: whatever it had done of
 * that, nobody keeps any of before, and nobody loses what he has beside.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "restore_world.h"
#include "smartiod/restart/restore.h"

/* Views of doorbells that the port has. */
static unsigned views(const struct fixture *f)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next)
		n += r->kind == SIO_KIND_BAR && r->address >= FAKE_BAR_ADDRESS + 0x1000;
	return n;
}

/* The generation that it was told last; 0: none. */
static uint32_t told(struct world_client *c)
{
	const struct sio_evm_device *e;
	uint32_t last = 0;

	for (unsigned i = 0; (e = call_device_event(c, i)); i++)
		if (sio_from_le32(e->event) == SIO_DEVICE_EV_RESET)
			last = sio_from_le32(e->generation);
	return last;
}

static void expect_all_kept(struct fixture *f)
{
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 0);
}

/* What leads nowhere is told of, and stays what it is; what was mapped later stays, too. */
static void maps_of_before_and_behind_come_back(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint32_t before;

	make_all(f->w, p);
	assert_int_equal(views(f), 2);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, SIO_BORROWER_ALL));
	assert_int_equal(views(f), 0);
	before = p->c.bar_map;
	OK(call_bar_map(f->w, p->c.c, p->c.bar, 0, &p->c.bar_map, p->c.access));
	for (unsigned i = 0; i < 3; i++) {
		restart(f->w);
		expect_all_kept(f);
		assert_int_equal(views(f), 1);
	}
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_UNMAP, before, 0));
	assert_int_equal(views(f), 1);
	restart(f->w);
	expect_all_kept(f);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, SIO_BORROWER_ALL)); /* its registers stayed */
	assert_int_equal(views(f), 0);
	p->b.hold = 0; /* which a reset ends */
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_UNMAP, p->c.bar_map, 0));
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_UNMAP, p->b.bar_map, 0));
}

/*
 * Killed at each step of the reset, on a port that takes the doorbells by itself, and on one that
 * leaves that to us: if the port did it, those of before are away when all are back, and all have
 * heard of it.
 */
static bool killed_at(struct fixture *f, unsigned steps, bool ignorant)
{
	struct sio_msg_dev_settled word = {.borrower = sio_to_le64(SIO_BORROWER_ALL)};
	struct programs *p = &f->p;
	bool more = true, done;
	uint64_t generation;

	f->fake.ignorant = ignorant;
	make_all(f->w, p);
	generation = f->fake.generation;
	word.device = sio_to_le32(p->b.b.handle);
	world_send(f->w, p->b.c, SIO_MSG_DEV_SETTLED, &word, sizeof(word));
	for (unsigned i = 0; more && i < steps; i++)
		more = world_step(f->w);
	world_stop(f->w, 0);
	restart(f->w);
	expect_all_kept(f);
	done = f->fake.generation > generation;
	assert_int_equal(views(f), done ? 0 : 2);
	assert_int_equal(told(p->c.c), done ? smartiod_generation(f->fake.generation) : 0);
	assert_int_equal(told(p->b.c), told(p->c.c));
	restart(f->w);
	expect_all_kept(f);
	assert_int_equal(views(f), done ? 0 : 2);
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_UNMAP, p->c.bar_map, 0));
	OK(call_bar_map(f->w, p->c.c, p->c.bar, 0, &p->c.bar_map, p->c.access));
	assert_int_equal(views(f), done ? 1 : 2);
	return more;
}

static void killed_at_each_step_of_a_reset(void **state)
{
	bool more = true;
	void *fixture;

	(void)state;
	for (unsigned steps = 0; more; steps++)
		for (unsigned ignorant = 0; ignorant < 2; ignorant++) {
			assert_true(steps < 100);
			assert_int_equal(setup(&fixture), 0);
			more = killed_at(fixture, steps, ignorant);
			assert_int_equal(teardown(&fixture), 0);
		}
}

/*
 * Stopped before it learnt of the reset, and of the restart: it might ring what is another's next.
 * Neither it nor its port said a word of its views to the daemon that takes them away.
 */
static void who_is_not_back_loses_them(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct handles late;

	f->fake.ignorant = true;
	make_all(f->w, p);
	late = p->c;
	f->w->before_step = NULL;
	library_gone(late.c);
	f->w->before_step = library_pump;
	restart(f->w);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	assert_true(library_settled(f->w));
	assert_int_equal(views(f), 2);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, SIO_BORROWER_ALL));
	assert_int_equal(views(f), 0);
	world_kill(f->w, late.c);
	world_run(f->w);
	assert_int_equal(sio_from_le64(call_device_event(p->b.c, 1)->borrower), late.b.id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(maps_of_before_and_behind_come_back),
		cmocka_unit_test(killed_at_each_step_of_a_reset),
		TEST(who_is_not_back_loses_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
