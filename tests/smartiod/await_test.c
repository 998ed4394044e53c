/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that wait for a device: each is answered when the device is as it wants it, whoever
 * changed that, and nothing is sent for it while nothing changes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "restore_world.h"
#include "smartiod/device/device.h"

#define NAME "drive0"
#define FOREVER UINT32_MAX
#define MS 1000000ull
#define MANY 100

/* Sends the request alone. Return: its id. */
static uint32_t ask(struct world *w, struct world_client *c, const char *name, uint32_t want,
		    uint32_t timeout_ms)
{
	struct sio_msg_dev_await m = {.want = sio_to_le32(want),
				      .timeout_ms = sio_to_le32(timeout_ms)};

	snprintf(m.name, sizeof(m.name), "%s", name);
	return world_send(w, c, SIO_MSG_DEV_AWAIT, &m, sizeof(m));
}

static uint32_t wait_for(struct world *w, struct world_client *c, uint32_t want)
{
	uint32_t id = ask(w, c, NAME, want, FOREVER);

	world_run(w);
	return id;
}

/* -1: not answered yet; else the error. */
static int result(struct world_client *c, uint32_t id)
{
	const struct world_message *m = world_reply(c, id);

	if (m && !m->error)
		assert_int_equal(sio_from_le32(((const struct sio_rep_dev_await *)m->data)->fdid),
				 FDID);
	return m ? (int)m->error : -1;
}

static const char *text(struct world_client *c, uint32_t id)
{
	const struct world_message *m = world_reply(c, id);

	assert_non_null(m);
	return ((const struct sio_msg_error *)m->data)->text;
}

/* Messages between daemons, to programs and to ports, of all. */
static uint64_t messages(const struct world *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < w->n_hosts; i++) {
		const struct smartiod_counters *c = &w->host[i].daemon->count;

		n += c->client_messages + c->client_events + c->peer_sent + c->peer_received +
		     c->port_requests + c->port_events;
	}
	return n;
}

static void the_end_of_a_borrow_is_told(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *owner = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow b, o;
	uint32_t shared[3], alone[3];
	struct world_client *c[3];
	uint64_t before;

	(void)state;
	assert_int_equal(call_borrow(w, owner, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	for (unsigned i = 0; i < 3; i++) {
		c[i] = world_client(w, i, SIO_CLIENT_LIBRARY);
		assert_int_equal(result(c[i], wait_for(w, c[i], SIO_AWAIT_THERE)), 0);
		shared[i] = wait_for(w, c[i], SIO_AWAIT_SHARED);
		alone[i] = wait_for(w, c[i], SIO_AWAIT_EXCLUSIVE);
	}
	before = messages(w);
	world_pass(w, 600000 * MS);
	assert_int_equal(messages(w), before);
	assert_int_equal(call_handle(w, owner, SIO_MSG_DEV_RELEASE_EXCLUSIVE, b.handle, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(result(c[i], shared[i]), 0);
		assert_int_equal(result(c[i], alone[i]), -1);
	}
	assert_int_equal(call_borrow(w, c[2], FDID, 0, &o), 0);
	assert_int_equal(call_handle(w, owner, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(result(c[i], alone[i]), -1);
	world_kill(w, c[2]);
	world_run(w);
	assert_int_equal(result(c[0], alone[0]), 0);
	assert_int_equal(result(c[1], alone[1]), 0);
	call_world_end(w, &fake, FDID);
}

/* Whoever is refused knows from then on that somebody has it, however it was told before. */
static void who_is_refused_waits(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *owner = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct sio_msg_dev_borrow want = {.fdid = sio_to_le32(FDID),
					  .flags = sio_to_le32(SCI_FLAG_EXCLUSIVE)};
	struct call_borrow b;
	uint32_t id, asked;

	(void)state;
	/* The lender has it in its ledger, and the port does not answer yet. */
	fake_device_resets(w, false);
	w->late = SIO_OP_OWNER_NEW;
	asked = world_send(w, owner, SIO_MSG_DEV_BORROW, &want, sizeof(want));
	world_run(w);
	assert_null(world_reply(owner, asked));
	assert_int_equal(call_borrow(w, c, FDID, 0, &b), EACCES);
	id = wait_for(w, c, SIO_AWAIT_SHARED);
	assert_int_equal(result(c, id), -1);
	w->late = 0;
	world_run(w);
	assert_non_null(world_reply(owner, asked));
	assert_int_equal(result(c, id), -1);
	world_kill(w, owner);
	world_run(w);
	assert_int_equal(result(c, id), 0);
	call_world_end(w, &fake, FDID);
}

static void all_that_wait_are_answered(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *owner = world_client(w, 1, SIO_CLIENT_LIBRARY), *c[3];
	struct call_borrow b;
	uint32_t id[3][MANY];

	(void)state;
	assert_int_equal(call_borrow(w, owner, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	for (unsigned i = 0; i < 3; i++) {
		c[i] = world_client(w, i, SIO_CLIENT_LIBRARY);
		for (unsigned k = 0; k < MANY; k++)
			id[i][k] = wait_for(w, c[i], SIO_AWAIT_EXCLUSIVE);
	}
	world_kill(w, c[1]); /* what it waits for ends with it */
	world_run(w);
	world_kill(w, owner);
	world_run(w);
	for (unsigned k = 0; k < MANY; k++) {
		assert_int_equal(result(c[0], id[0][k]), 0);
		assert_int_equal(result(c[2], id[2][k]), 0);
	}
	call_world_end(w, &fake, FDID);
}

static void one_program_has_so_many_at_most(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 0, SIO_CLIENT_LIBRARY);

	(void)state;
	for (unsigned i = 0; i < SMARTIOD_MAX_PENDING; i++)
		ask(w, c, "drive7", SIO_AWAIT_THERE, FOREVER);
	world_run(w);
	assert_int_equal(result(c, wait_for(w, c, SIO_AWAIT_THERE)), EMFILE);
	call_world_end(w, &fake, FDID);
}

static void the_time_is_over(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *owner = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow b;
	uint32_t id, other, now;

	(void)state;
	assert_int_equal(call_borrow(w, owner, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	now = ask(w, c, NAME, SIO_AWAIT_SHARED, 0);
	id = ask(w, c, NAME, SIO_AWAIT_SHARED, 50);
	other = ask(w, c, "drive7", SIO_AWAIT_THERE, 70);
	world_run(w);
	assert_int_equal(result(c, now), ETIMEDOUT);
	world_pass(w, 40 * MS);
	assert_int_equal(result(c, id), -1);
	world_pass(w, 20 * MS);
	assert_int_equal(result(c, id), ETIMEDOUT);
	assert_string_equal(text(c, id), "device drive0 was waited for in vain: somebody has "
					 "borrowed it exclusively");
	assert_int_equal(result(c, other), -1);
	world_pass(w, 20 * MS);
	assert_string_equal(text(c, other), "device drive7 was waited for in vain: no host has "
					    "announced it");
	call_world_end(w, &fake, FDID);
}

/* Its lender goes, or the way there, and comes back. */
static void it_comes_back(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	uint32_t id, there;

	(void)state;
	assert_true(fake_device_move(w, false));
	world_run(w);
	id = wait_for(w, c, SIO_AWAIT_THERE);
	assert_int_equal(result(c, id), -1);
	assert_true(fake_device_move(w, true));
	world_run(w);
	assert_int_equal(result(c, id), 0);

	world_link(w, 0, 1, false);
	world_run(w);
	id = ask(w, c, NAME, SIO_AWAIT_EXCLUSIVE, 0);
	world_run(w);
	assert_string_equal(text(c, id),
			    "device drive0 was waited for in vain: no path to its host is up");
	there = wait_for(w, c, SIO_AWAIT_THERE);
	id = wait_for(w, c, SIO_AWAIT_EXCLUSIVE);
	assert_int_equal(result(c, there), 0);
	assert_int_equal(result(c, id), -1);
	world_link(w, 0, 1, true);
	world_run(w);
	assert_int_equal(result(c, id), 0);

	world_crash(w, 0);
	world_run(w);
	id = wait_for(w, c, SIO_AWAIT_EXCLUSIVE);
	assert_int_equal(result(c, id), -1);
	world_boot(w, 0);
	world_pass(w, 5000 * MS);
	assert_int_equal(result(c, id), 0);
	call_world_end(w, &fake, FDID);
}

/* Two real hosts; what they have their kernels find, as @fake, which leaves: @name. */
static struct world *real_hosts(struct fake_device *fake, char *name, size_t size)
{
	struct world *w = world_new(2, 0);

	fake_device_add(w, fake);
	world_real(w);
	assert_true(fake_device_move(w, false));
	world_start(w);
	snprintf(name, size, "host0/%04x:%02x:%02x.%x", fake->topo.bdf >> 16,
		 fake->topo.bdf >> 8 & 0xff, fake->topo.bdf >> 3 & 0x1f, fake->topo.bdf & 7);
	return w;
}

/* Is @id answered, and well? */
static bool is_told(struct world_client *c, uint32_t id)
{
	const struct world_message *m = world_reply(c, id);

	if (m)
		assert_int_equal(m->error, 0);
	return m;
}

/* A real host's device has its name from its place, and nobody knows it before it comes. */
static void a_name_that_no_device_has_yet(void **state)
{
	struct fake_device fake = {.gone = true};
	char name[64];
	struct world *w = real_hosts(&fake, name, sizeof(name));
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	uint32_t id = ask(w, c, name, SIO_AWAIT_SHARED, FOREVER);

	(void)state;
	world_run(w);
	assert_false(is_told(c, id));
	assert_true(fake_device_move(w, true));
	world_run(w);
	assert_true(is_told(c, id));
	world_free(w);
}

/* Its lender's daemon has no word for a device that was taken out while there was none. */
static void it_goes_while_its_daemon_is_away(void **state)
{
	struct fake_device fake = {.gone = true};
	char name[64];
	struct world *w = real_hosts(&fake, name, sizeof(name));
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	uint32_t id;

	(void)state;
	assert_true(fake_device_move(w, true));
	world_run(w);
	for (unsigned i = 0; i < 2; i++) {
		world_stop(w, 0);
		world_run(w);
		id = ask(w, c, name, SIO_AWAIT_THERE, FOREVER);
		world_run(w);
		assert_true(is_told(c, id)); /* as far as anybody knows */
		if (i == 1)
			assert_true(fake_device_move(w, false));
		world_restart(w, 0);
		world_pass(w, 5000 * MS);
		assert_true(w->host[0].ready);
		id = ask(w, c, name, SIO_AWAIT_THERE, FOREVER);
		world_run(w);
		assert_int_equal(is_told(c, id), i == 0);
	}
	assert_true(fake_device_move(w, true));
	world_run(w);
	assert_true(is_told(c, id));
	world_free(w);
}

static void what_cannot_be_is_refused(void **state)
{
	struct fake_device fake = {.id = 0};
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct sio_msg_dev_await m = {.want = sio_to_le32(SIO_AWAITS), .name = NAME};
	uint32_t id;

	(void)state;
	assert_int_equal(world_call(w, c, SIO_MSG_DEV_AWAIT, &m, sizeof(m))->error, EINVAL);
	m.want = sio_to_le32(SIO_AWAIT_THERE);
	memset(m.name, 'x', sizeof(m.name));
	assert_int_equal(world_call(w, c, SIO_MSG_DEV_AWAIT, &m, sizeof(m))->error, EINVAL);
	memset(m.name, 0, sizeof(m.name));
	assert_int_equal(world_call(w, c, SIO_MSG_DEV_AWAIT, &m, sizeof(m))->error, EINVAL);
	m.fdid = sio_to_le32(FDID);
	id = world_send(w, c, SIO_MSG_DEV_AWAIT, &m, sizeof(m));
	world_run(w);
	assert_int_equal(result(c, id), 0);
	call_world_end(w, &fake, FDID);
}

/* The library asks the next daemon, as it does what had no answer. */
static void the_next_daemon_answers(void **state)
{
	struct fixture *f = *state;
	struct call_borrow b;
	uint32_t id;

	assert_int_equal(call_borrow(f->w, f->p.a.c, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	id = wait_for(f->w, f->p.b.c, SIO_AWAIT_EXCLUSIVE);
	for (unsigned i = 0; i < 3; i++) {
		restart(f->w);
		assert_true(library_busy(f->p.b.c));
		assert_int_equal(result(f->p.b.c, id), -1);
	}
	assert_int_equal(call_handle(f->w, f->p.a.c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
	assert_int_equal(result(f->p.b.c, id), 0);
	/* The end of a borrow while there is no daemon. */
	assert_int_equal(call_borrow(f->w, f->p.a.c, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	id = wait_for(f->w, f->p.b.c, SIO_AWAIT_EXCLUSIVE);
	assert_int_equal(result(f->p.b.c, id), -1);
	world_stop(f->w, 0);
	library_gone(f->p.a.c);
	world_kill(f->w, f->p.a.c);
	restart(f->w);
	assert_int_equal(result(f->p.b.c, id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_borrow_is_told),
		cmocka_unit_test(who_is_refused_waits),
		cmocka_unit_test(all_that_wait_are_answered),
		cmocka_unit_test(one_program_has_so_many_at_most),
		cmocka_unit_test(the_time_is_over),
		cmocka_unit_test(it_comes_back),
		cmocka_unit_test(a_name_that_no_device_has_yet),
		cmocka_unit_test(it_goes_while_its_daemon_is_away),
		cmocka_unit_test(what_cannot_be_is_refused),
		TEST(the_next_daemon_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
