/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices of a device: whoever has its registers has all other borrowers look again. Nobody else
 * can send one, and none gets lost where daemons that outlive their connection meet again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "resume_world.h"

#define EMULATED 0x400001 /* the device of a world that is not real */
#define THIRD 2

static int notify(struct world *w, struct world_client *c, uint32_t device)
{
	return call_handle(w, c, SIO_MSG_DEV_NOTIFY, device, 0);
}

static unsigned notices(struct world_client *c)
{
	const struct sio_evm_device *e;
	unsigned n = 0;

	for (unsigned i = 0; (e = call_device_event(c, i)); i++)
		n += sio_from_le32(e->event) == SIO_DEVICE_EV_NOTICE;
	return n;
}

static void all_others_hear_it(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *c[3], *beside = world_client(w, 1, SIO_CLIENT_LIBRARY);
	uint32_t bar, map, access[4];
	struct call_borrow b[3], o;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		c[i] = world_client(w, i, SIO_CLIENT_LIBRARY);
	call_take(w, c[1], EMULATED, 0, &b[1], &bar, &map, access);
	assert_int_equal(call_borrow(w, c[0], EMULATED, 0, &b[0]), 0);
	assert_int_equal(call_borrow(w, c[2], EMULATED, 0, &b[2]), 0);
	assert_int_equal(notify(w, c[0], b[0].handle), EACCES);
	assert_int_equal(notify(w, c[2], b[2].handle), EACCES);
	assert_int_equal(notify(w, beside, b[1].handle), EBADF);
	assert_int_equal(call_handle(w, c[1], SIO_MSG_DEV_NOTIFY, b[1].handle, 1), EINVAL);
	assert_int_equal(notify(w, c[1], b[1].handle), 0);
	assert_int_equal(call_borrow(w, beside, EMULATED, 0, &o), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(notices(c[i]), i != 1);
	assert_int_equal(notices(beside), 0);
	assert_int_equal(notify(w, c[1], b[1].handle), 0);
	assert_int_equal(notices(c[1]), 0);
	assert_int_equal(notices(c[2]), 2);
	assert_int_equal(notices(beside), 1);
	call_world_end(w, &fake, EMULATED);
}

/* The program of another host whose daemon, or its way to the lender's, is away meanwhile. */
static void who_was_away_hears_it(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, THIRD, SIO_CLIENT_LIBRARY);
	struct call_borrow b;
	unsigned n;

	assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	world_stop(f->w, THIRD);
	world_run(f->w);
	assert_int_equal(notify(f->w, f->c, f->b.handle), 0);
	assert_int_equal(notices(c), 0);
	world_restart(f->w, THIRD);
	world_pass(f->w, MEET);
	assert_true(library_settled(f->w));
	assert_int_equal(notices(c), 1);

	world_cut(f->w, LENDER, THIRD);
	n = notices(c);
	assert_int_equal(notify(f->w, f->c, f->b.handle), 0);
	world_pass(f->w, MEET);
	assert_true(notices(c) > n);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
}

/* It is on its way when the daemon that it goes to is killed, at whatever step. */
static void it_is_lost_at_no_step(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, THIRD, SIO_CLIENT_LIBRARY);
	struct sio_msg_handle m = {.handle = sio_to_le32(f->b.handle)};
	struct call_borrow b;
	bool ended = false;

	assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	for (unsigned steps = 0; !ended; steps++) {
		uint32_t id;

		world_forget(c);
		world_forget(f->c);
		id = world_send(f->w, f->c, SIO_MSG_DEV_NOTIFY, &m, sizeof(m));
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(f->w);
		world_restart(f->w, THIRD);
		world_pass(f->w, MEET);
		assert_non_null(world_reply(f->c, id));
		assert_int_equal(world_reply(f->c, id)->error, 0);
		assert_true(notices(c) > 0);
	}
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
}

/* The lender is killed before it has answered: the owner asks the next one. */
static void the_next_lender_sends_it(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	struct call_borrow b;

	assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct sio_msg_handle m = {.handle = sio_to_le32(f->b.handle)};
		uint32_t id = world_send(f->w, f->c, SIO_MSG_DEV_NOTIFY, &m, sizeof(m));

		for (unsigned k = 0; k < i; k++)
			world_step(f->w);
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
		assert_non_null(world_reply(f->c, id));
		assert_int_equal(world_reply(f->c, id)->error, 0);
		assert_true(notices(c) > i);
	}
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_others_hear_it),
		TEST(who_was_away_hears_it),
		TEST(it_is_lost_at_no_step),
		TEST(the_next_lender_sends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
