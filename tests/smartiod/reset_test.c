/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resets that a lender does by itself: when, when not, who waits for them, and what becomes of one
 * that fails.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/lender/lend.h"

#define FDID 0x400001
#define AGAIN_NS 10000000ull /* reset.c */

static struct fake_device fake;

static struct world *start(void)
{
	return call_world(&fake);
}

static void end(struct world *w)
{
	assert_int_equal(fake.disturbed, 0);
	call_world_end(w, &fake, FDID);
}

static struct smartiod_device *device(struct world *w)
{
	return smartiod_device_known(w->host[0].daemon, FDID);
}

static struct world_client *program(struct world *w, unsigned host)
{
	return world_client(w, host, SIO_CLIENT_LIBRARY);
}

/* A borrow with memory mapped for the device. */
static void use(struct world *w, struct world_client *c, uint32_t flags, struct call_borrow *b)
{
	uint32_t segment, map;

	assert_int_equal(call_borrow(w, c, FDID, flags, b), 0);
	assert_int_equal(call_seg_export(w, c, 1, 65536, &segment), 0);
	assert_int_equal(call_dma_map(w, c, b->handle, segment, 0, 0, 65536, &map), 0);
}

static uint32_t ask_borrow(struct world *w, struct world_client *c, uint32_t flags)
{
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID), .flags = sio_to_le32(flags)};
	uint32_t id = world_send(w, c, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));

	world_run(w);
	return id;
}

static int reply_error(struct world_client *c, uint32_t id)
{
	const struct world_message *m = world_reply(c, id);

	return m ? (int)m->error : -1;
}

static int reset_now(struct world *w, struct world_client *c, uint32_t force,
		     struct sio_rep_dev_admin_reset *ret)
{
	struct sio_msg_dev_admin_reset msg = {.fdid = sio_to_le32(FDID),
					      .force = sio_to_le32(force)};
	const struct world_message *m =
		world_call(w, c, SIO_MSG_DEV_ADMIN_RESET, &msg, sizeof(msg));

	if (m && !m->error)
		memcpy(ret, m->data, sizeof(*ret));
	return m ? (int)m->error : -1;
}

/* Behind the last; and before an exclusive one that does not find it as that reset left it. */
static void before_and_after(void **state)
{
	struct world *w = start();
	struct world_client *a = program(w, 1), *b = program(w, 0);
	struct call_borrow x, y;

	(void)state;
	assert_int_equal(fake.resets, 0);
	assert_int_equal(call_borrow(w, a, FDID, 0, &x), 0);
	assert_int_equal(call_borrow(w, b, FDID, 0, &y), 0);
	assert_int_equal(fake.resets, 0); /* it came clean */
	assert_int_equal(call_handle(w, a, SIO_MSG_DEV_RETURN, x.handle, 0), 0);
	assert_int_equal(fake.resets, 0);
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, y.handle, 0), 0);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(call_borrow(w, a, FDID, SCI_FLAG_EXCLUSIVE, &x), 0);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(x.generation, 2 * fake.generation);
	assert_int_equal(call_borrow(w, b, FDID, SCI_FLAG_EXCLUSIVE, &y), EACCES);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(call_handle(w, a, SIO_MSG_DEV_RELEASE_EXCLUSIVE, x.handle, 0), 0);
	assert_int_equal(call_borrow(w, b, FDID, 0, &y), 0);
	world_kill(w, a); /* a manager leaves, and a client goes on */
	world_run(w);
	assert_int_equal(call_borrow(w, program(w, 1), FDID, 0, &x), 0);
	assert_int_equal(fake.resets, 1);
	assert_null(call_device_event(b, 0));
	end(w);
	assert_int_equal(fake.resets, 1 + 1 + 2); /* the last; and those of call_last_reset() */
}

/* Whatever had it before it came here: who has it alone finds nothing of that. */
static void before_the_first(void **state)
{
	struct world *w = start();
	struct world_client *a = program(w, 1);
	struct call_borrow x;

	(void)state;
	assert_int_equal(device(w)->state, SIO_DEV_FOUND);
	assert_int_equal(call_borrow(w, a, FDID, SCI_FLAG_EXCLUSIVE, &x), 0);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(call_handle(w, a, SIO_MSG_DEV_RETURN, x.handle, 0), 0);
	assert_int_equal(fake.resets, 2);
	assert_int_equal(device(w)->state, SIO_DEV_CLEAN);
	fake_device_move(w, false);
	fake_device_move(w, true);
	world_run(w);
	assert_int_equal(device(w)->state, SIO_DEV_FOUND);
	assert_int_equal(call_borrow(w, a, FDID, SCI_FLAG_EXCLUSIVE, &x), 0);
	assert_int_equal(fake.resets, 3);
	end(w);
}

/* On a real host, where that takes time, it is reset when it comes; no first borrow waits. */
static void when_it_comes(void **state)
{
	struct world *w = world_new(2, 0);
	struct world_client *a;
	struct call_borrow x;

	(void)state;
	w->real = true;
	fake_device_add(w, &fake);
	world_start(w);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(device(w)->state, SIO_DEV_CLEAN);
	a = program(w, 1);
	assert_int_equal(call_borrow(w, a, FDID, SCI_FLAG_EXCLUSIVE, &x), 0);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(call_handle(w, a, SIO_MSG_DEV_RETURN, x.handle, 0), 0);
	fake_device_move(w, false);
	fake_device_move(w, true);
	world_run(w);
	assert_int_equal(fake.resets, 3);
	assert_int_equal(device(w)->state, SIO_DEV_CLEAN);
	end(w);
}

/* Nobody lives who could settle: the lender does. As long as one lives, it does not. */
static void the_last_ones_quarantine_ends(void **state)
{
	struct world *w = start();
	struct world_client *a = program(w, 1), *b = program(w, 2);
	struct call_borrow x, y;

	(void)state;
	use(w, a, 0, &x);
	use(w, b, 0, &y);
	world_kill(w, a);
	world_run(w);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 1);
	assert_int_equal(fake.resets, 0);
	world_crash(w, 2);
	world_run(w);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 0);
	assert_int_equal(device(w)->state, SIO_DEV_CLEAN);
	assert_int_equal(sio_ledger_count(&device(w)->ledger).quarantined, 0);
	world_boot(w, 2);
	world_pass(w, 100000000);
	end(w);
}

/* It takes its time: who borrows waits, in whatever way, and is refused if it fails. */
static void borrowers_wait(void **state)
{
	(void)state;
	for (int error = 0; error >= -EIO; error -= EIO) {
		struct world *w = start();
		struct world_client *a = program(w, 1), *b = program(w, 0), *c = program(w, 2);
		struct call_borrow x;
		uint32_t first, second;

		use(w, a, 0, &x);
		fake.reset_error = error;
		w->late = SIO_OP_RESET;
		world_kill(w, a);
		world_run(w);
		assert_int_equal(device(w)->state, SIO_DEV_RUNNING);
		first = ask_borrow(w, b, 0);
		second = ask_borrow(w, c, 0);
		assert_null(world_reply(b, first));
		assert_null(world_reply(c, second));
		w->late = 0;
		world_run(w);
		assert_int_equal(reply_error(b, first), error ? EACCES : 0);
		assert_int_equal(reply_error(c, second), error ? EACCES : 0);
		assert_int_equal(device(w)->state, error ? SIO_DEV_FAILED : SIO_DEV_USED);
		if (error) { /* the next one has it tried again */
			assert_non_null(strstr(
				((const struct sio_msg_error *)world_reply(b, first)->data)->text,
				"drive0: it is not lent, for it cannot be reset: no reset"));
			assert_int_equal(call_borrow(w, c, FDID, 0, &x), EACCES);
			fake.reset_error = 0;
			assert_int_equal(call_borrow(w, c, FDID, 0, &x), 0);
			assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 0);
		}
		end(w);
	}
}

/* Whoever waits is gone, with his program, his host, or the device. */
static void waiting_ends(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		struct world *w = start();
		struct world_client *a = program(w, 1), *b = program(w, how == 0 ? 0 : 2);
		struct call_borrow x;
		uint32_t id;

		use(w, a, 0, &x);
		w->late = SIO_OP_RESET;
		world_kill(w, a);
		world_run(w);
		id = ask_borrow(w, b, SCI_FLAG_EXCLUSIVE);
		if (how < 2)
			world_kill(w, b);
		else if (how == 2)
			world_crash(w, 2);
		else
			fake_device_move(w, false);
		world_run(w);
		w->late = 0;
		world_run(w);
		if (how == 2)
			world_boot(w, 2);
		if (how == 3) {
			assert_int_equal(reply_error(b, id), ENOTCONN);
			fake_device_move(w, true);
		}
		world_pass(w, 100000000);
		assert_null(smartiod_loan_after(w->host[0].daemon, 0));
		assert_int_equal(device(w)->state, how == 3 ? SIO_DEV_FOUND : SIO_DEV_CLEAN);
		end(w);
	}
}

/* Without memory for it now: again, later each time, although nobody asks. */
static void want_of_memory_passes(void **state)
{
	struct world *w = start();
	struct world_client *a = program(w, 1), *b = program(w, 0);
	struct call_borrow x;

	(void)state;
	use(w, a, 0, &x);
	fake.reset_error = -ENOMEM;
	world_kill(w, a);
	world_run(w);
	assert_int_equal(device(w)->state, SIO_DEV_FAILED);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 1);
	assert_int_equal(call_borrow(w, b, FDID, 0, &x), ENOMEM);
	world_pass(w, 4 * AGAIN_NS);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 1);
	fake.reset_error = 0;
	world_pass(w, 1000000000);
	assert_int_equal(device(w)->state, SIO_DEV_CLEAN);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 0);
	end(w);
}

/* It has none: it is lent all the same, and quarantine waits for somebody's word. */
static void without_a_reset(void **state)
{
	struct world *w = start();
	struct world_client *a = program(w, 1), *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct sio_rep_dev_admin_reset rep;
	struct call_borrow x;

	(void)state;
	fake_device_resets(w, false);
	use(w, a, SCI_FLAG_EXCLUSIVE, &x);
	world_kill(w, a);
	world_run(w);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 1);
	assert_int_equal(reset_now(w, tool, 1, &rep), EOPNOTSUPP);
	assert_int_equal(call_borrow(w, program(w, 2), FDID, SCI_FLAG_EXCLUSIVE, &x), 0);
	assert_int_equal(fake.resets, 0);
	/* The port may find that out late. */
	fake_device_resets(w, true);
	for (unsigned i = 0; i < w->n_clients; i++)
		if (&w->client[i] != tool)
			world_kill(w, &w->client[i]);
	fake.reset_error = -EOPNOTSUPP;
	world_run(w);
	assert_int_equal(smartiod_reset_kind(device(w)), 0);
	assert_int_equal(call_borrow(w, program(w, 2), FDID, SCI_FLAG_EXCLUSIVE, &x), 0);
	fake.reset_error = 0;
	end(w);
}

/* smartio device reset. */
static void by_hand(void **state)
{
	struct world *w = start();
	struct world_client *a = program(w, 1), *b = program(w, 2);
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct sio_rep_dev_admin_reset rep;
	struct call_borrow x, y;

	(void)state;
	assert_int_equal(reset_now(w, tool, 0, &rep), 0);
	assert_int_equal(sio_from_le32(rep.kind), SIO_RESET_FUNCTION);
	assert_int_equal(sio_from_le32(rep.generation), 2 * fake.generation);
	assert_int_equal(reset_now(w, world_client(w, 1, SIO_CLIENT_TOOL), 0, &rep), ENODEV);
	use(w, a, 0, &x);
	use(w, b, 0, &y);
	assert_int_equal(reset_now(w, tool, 0, &rep), EBUSY);
	assert_int_equal(reset_now(w, tool, 2, &rep), EINVAL);
	world_kill(w, b);
	world_run(w);
	assert_int_equal(fake.resets, 1);
	assert_int_equal(reset_now(w, tool, 1, &rep), 0);
	assert_int_equal(fake.disturbed, 1);
	assert_int_equal(sio_from_le32(rep.borrows), 1);
	assert_int_equal(sio_from_le32(rep.settled), 1);
	assert_int_equal(sio_from_le64(rep.mappings), 1);
	/* Whoever lives is told, and keeps what he has mapped. */
	assert_int_equal(sio_from_le32(call_device_event(a, 0)->event), SIO_DEVICE_EV_RESET);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, false), 1);
	assert_int_equal(device(w)->state, SIO_DEV_USED);
	fake.reset_error = -EIO;
	assert_int_equal(reset_now(w, tool, 1, &rep), EIO);
	fake.reset_error = 0;
	assert_int_equal(device(w)->state, SIO_DEV_USED);
	fake.disturbed = 0;
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_and_after),
		cmocka_unit_test(before_the_first),
		cmocka_unit_test(when_it_comes),
		cmocka_unit_test(the_last_ones_quarantine_ends),
		cmocka_unit_test(borrowers_wait),
		cmocka_unit_test(waiting_ends),
		cmocka_unit_test(want_of_memory_passes),
		cmocka_unit_test(without_a_reset),
		cmocka_unit_test(by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
