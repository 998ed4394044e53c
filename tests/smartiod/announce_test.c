/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a lender announces a device, and that nobody waits for it: three hosts, a device. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "library.h"
#include "smartiod/device/device.h"
#include "smartiod/restart/restore.h"

#define FDID 0x400001
#define ROUNDS 10
#define REAL_FDID 0x400100 /* by its place */

static struct fake_device fake;

/* Messages since the last time that the first host has announced the device by, to each other. */
static void expect(struct world *w, unsigned second, unsigned third)
{
	assert_int_equal(w->announced[0][1], second);
	assert_int_equal(w->announced[0][2], third);
	memset(w->announced, 0, sizeof(w->announced));
}

/* As a program of host @host sees the device. */
static struct sio_rep_dev_list look(struct world *w, unsigned host)
{
	struct sio_rep_dev_list info;

	smartiod_device_info(w->host[host].daemon,
			     smartiod_device_known(w->host[host].daemon, FDID), &info);
	return info;
}

static void assert_seen(struct world *w, unsigned host, unsigned borrowers, unsigned exclusive)
{
	const struct sio_rep_dev_list info = look(w, host);

	assert_int_equal(sio_from_le32(info.borrowers), borrowers);
	assert_int_equal(sio_from_le32(info.exclusive), exclusive);
}

static void assert_all_know(struct world *w)
{
	const struct sio_rep_dev_list own = look(w, 0);

	for (unsigned i = 1; i < 3; i++) {
		struct sio_rep_dev_list info = look(w, i);

		info.adapter = own.adapter;
		assert_memory_equal((char *)&info + sizeof(info.h), (char *)&own + sizeof(own.h),
				    sizeof(own) - sizeof(own.h));
	}
}

/* Nothing but the reply is waited for. */
static int until_replied(struct world *w, struct world_client *c, uint32_t type, void *msg,
			 size_t len)
{
	uint32_t id = world_send(w, c, type, msg, len);

	while (!world_reply(c, id) && world_step(w))
		;
	return world_reply(c, id) ? (int)world_reply(c, id)->error : -1;
}

static int borrow(struct world *w, struct world_client *c, uint32_t flags, uint32_t *ret)
{
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID), .flags = sio_to_le32(flags)};
	int rc = until_replied(w, c, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));
	const struct sio_rep_dev_borrow *rep = (const void *)c->message[c->n_messages - 1]->data;

	*ret = rc ? 0 : sio_from_le32(rep->handle);
	return rc;
}

static int handle(struct world *w, struct world_client *c, uint32_t type, uint32_t of)
{
	struct sio_msg_handle msg = {.handle = sio_to_le32(of)};

	return until_replied(w, c, type, &msg, sizeof(msg));
}

static struct world *start(unsigned host, struct world_client **ret)
{
	struct world *w = call_world(&fake);

	*ret = world_client(w, host, SIO_CLIENT_LIBRARY);
	world_run(w);
	memset(w->announced, 0, sizeof(w->announced));
	return w;
}

static void end(struct world *w)
{
	world_run(w);
	assert_all_know(w);
	call_world_end(w, &fake, FDID);
}

/*
 * Each is one message to each host, resets before and after included; the borrower's host gets what
 * the reply to a return implies before that, and once more what the reset has changed.
 */
static void one_each(struct world *w, struct world_client *c, uint32_t flags, bool remote)
{
	uint32_t b;

	assert_int_equal(borrow(w, c, flags, &b), 0);
	assert_seen(w, c->host, 1, !!flags);
	world_run(w);
	expect(w, 1, 1);
	assert_all_know(w);
	assert_int_equal(handle(w, c, SIO_MSG_DEV_RETURN, b), 0);
	assert_seen(w, c->host, 0, 0);
	world_run(w);
	expect(w, 1 + remote, 1);
	assert_all_know(w);
}

static void a_borrow_is_one_message_to_each_host(void **state)
{
	struct world_client *c;
	struct world *w;

	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		w = start(host, &c);
		for (unsigned i = 0; i < ROUNDS; i++)
			one_each(w, c, i % 2 ? SCI_FLAG_EXCLUSIVE : 0, host != 0);
		end(w);
	}
}

/* The other hosts have nothing of a device that is borrowed and returned all the time. */
static void what_follows_at_once_is_the_same_message(void **state)
{
	struct world_client *c;
	struct world *w = start(1, &c);
	unsigned before;
	uint32_t b;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_int_equal(borrow(w, c, SCI_FLAG_EXCLUSIVE, &b), 0);
		assert_seen(w, 1, 1, 1);
		assert_int_equal(handle(w, c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, b), 0);
		assert_seen(w, 1, 1, 0);
		assert_int_equal(handle(w, c, SIO_MSG_DEV_RETURN, b), 0);
		assert_seen(w, 1, 0, 0);
	}
	expect(w, 3 * ROUNDS, 0);
	world_run(w);
	before = w->announced[0][1];
	expect(w, before, 1);
	assert_true(before <= 1);
	end(w);
}

/* Whoever knows the device can borrow it; its own host is right at once. */
static void nobody_waits_for_it(void **state)
{
	struct world_client *c, *other;
	struct world *w = start(1, &c);
	uint32_t b, b2;

	(void)state;
	other = world_client(w, 2, SIO_CLIENT_LIBRARY);
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_int_equal(borrow(w, c, SCI_FLAG_EXCLUSIVE, &b), 0);
		assert_seen(w, 0, 1, 1);
		assert_int_equal(borrow(w, other, SCI_FLAG_EXCLUSIVE, &b2), EACCES);
		assert_int_equal(handle(w, c, SIO_MSG_DEV_RETURN, b), 0);
		assert_seen(w, 0, 0, 0);
		assert_int_equal(borrow(w, other, SCI_FLAG_EXCLUSIVE, &b2), 0);
		assert_seen(w, 0, 1, 1);
		assert_seen(w, 2, 1, 1);
		assert_int_equal(handle(w, other, SIO_MSG_DEV_RETURN, b2), 0);
	}
	end(w);
}

/* One that has gone is announced at once, and what had changed of it with that. */
static void what_goes_is_announced_at_once(void **state)
{
	struct world_client *c;
	struct world *w = start(0, &c);
	uint32_t b;

	(void)state;
	assert_int_equal(borrow(w, c, 0, &b), 0);
	expect(w, 0, 0);
	assert_true(fake_device_move(w, false));
	while (smartiod_device_known(w->host[0].daemon, FDID)->present)
		assert_true(world_step(w));
	assert_true(w->announced[0][1] == 1 && w->announced[0][2] == 1);
	world_run(w);
	assert_false(smartiod_device_known(w->host[2].daemon, FDID)->present);
	assert_true(fake_device_move(w, true));
	end(w);
}

/* A host that was not there when something changed learns it as it comes. */
static void who_comes_later_knows_all(void **state)
{
	struct world_client *c;
	struct world *w = start(0, &c);
	uint32_t b;

	(void)state;
	assert_int_equal(borrow(w, c, SCI_FLAG_EXCLUSIVE, &b), 0);
	world_cut(w, 0, 2);
	world_pass(w, 1000000000);
	assert_seen(w, 2, 1, 1);
	end(w);
}

static struct world *start_real(void)
{
	struct world *w = world_new(3, 0);

	fake_device_add(w, &fake);
	world_real(w);
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	fake_device_resets(w, true);
	return w;
}

/*
 * The port has noted that the borrow began as an exclusive one, and the next lender announces that,
 * until the borrower says that it is none any more: a program here, or another host.
 */
static void the_next_lender_hears_that_it_is_shared(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct world *w = start_real();
		struct world_client *c = world_client(w, host, SIO_CLIENT_LIBRARY);
		struct call_borrow b;

		assert_int_equal(call_borrow(w, c, REAL_FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
		assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, b.handle, 0), 0);
		world_restart(w, 0);
		world_pass(w, 1000000000);
		assert_true(library_settled(w));
		for (unsigned i = 0; i < 3; i++) {
			struct smartiod *d = w->host[i].daemon;
			struct sio_rep_dev_list info;

			smartiod_device_info(d, smartiod_device_known(d, REAL_FDID), &info);
			assert_int_equal(sio_from_le32(info.borrowers), 1);
			assert_int_equal(sio_from_le32(info.exclusive), 0);
		}
		assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
		library_end(w);
		world_pass(w, SMARTIOD_GRACE_NS);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_borrow_is_one_message_to_each_host),
		cmocka_unit_test(what_follows_at_once_is_the_same_message),
		cmocka_unit_test(nobody_waits_for_it),
		cmocka_unit_test(what_goes_is_announced_at_once),
		cmocka_unit_test(who_comes_later_knows_all),
		cmocka_unit_test(the_next_lender_hears_that_it_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
