/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port drops events and says so: what they would have told of owners and devices the daemon
 * finds by looking, and nothing is left of who has ended meanwhile.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"

#define FDID 0x400001
#define USERS 3
#define PROGRAMS 40 /* more than a page of LIST */

struct fixture {
	struct fake_device fake;
	struct world *w;
	struct world_client *c[USERS];
	struct call_borrow b[USERS];
};

/* A program of each host has borrowed the device and mapped memory of its own for it. */
static struct fixture *start(uint64_t seed)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint32_t segment, dma;

	assert_non_null(f);
	f->w = world_new(USERS, seed);
	fake_device_add(f->w, &f->fake);
	world_start(f->w);
	for (unsigned i = 0; i < USERS; i++) {
		f->c[i] = world_client(f->w, i, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_borrow(f->w, f->c[i], FDID, 0, &f->b[i]), 0);
		assert_int_equal(call_seg_export(f->w, f->c[i], i, 65536, &segment), 0);
		assert_int_equal(
			call_dma_map(f->w, f->c[i], f->b[i].handle, segment, 0, 0, 65536, &dma), 0);
	}
	return f;
}

static void finish(struct fixture *f)
{
	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->fake.bad, 0);
	assert_int_equal(f->w->bad_ends, 0);
	world_free(f->w);
	free(f);
}

static void overflow(struct fixture *f, unsigned host)
{
	struct sio_evt_overflow evt = {.faults = 0};

	f->w->deaf = 0;
	world_port_event(f->w, host, SIO_EV_OVERFLOW, 0, &evt, sizeof(evt));
}

static const struct sio_rep_dev_list *listed(struct fixture *f, struct world_client *c)
{
	struct sio_msg_dev_list msg = {.after = sio_to_le32(0)};
	const struct world_message *m = world_call(f->w, c, SIO_MSG_DEV_LIST, &msg, sizeof(msg));

	assert_non_null(m);
	return m->error ? NULL : (const void *)m->data;
}

/* Borrowers end; what stays of a borrow the port tells, without which the device is never reset. */
static void borrows_that_ended(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct fixture *f = start(seed);
		struct world_client *c = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
		struct call_borrow b;

		f->w->deaf = 1;
		f->w->style = seed % 2 ? WORLD_KILL : WORLD_HANG_UP;
		for (unsigned i = 0; i < USERS; i++)
			world_kill(f->w, f->c[i]);
		world_run(f->w);
		assert_true(fake_count(f->w, SIO_KIND_DMAMAP, true) > 0);
		overflow(f, 0);
		world_run(f->w);
		assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
		assert_int_equal(sio_from_le32(listed(f, c)->borrowers), 0);
		assert_int_equal(sio_from_le32(listed(f, c)->quarantined), 0);
		assert_int_equal(call_borrow(f->w, c, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
		finish(f);
	}
}

/* Programs of which the daemon hears by their owner alone, more than LIST tells at once. */
static void programs_that_ended(void **state)
{
	struct fixture *f = start(0);
	struct world_client *c[PROGRAMS];
	uint32_t segment;

	(void)state;
	for (unsigned i = 0; i < PROGRAMS; i++) {
		c[i] = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
		call_seg_export(f->w, c[i], 100 + i, 65536, &segment);
	}
	f->w->deaf = 1;
	f->w->style = WORLD_OWNER_FIRST;
	for (unsigned i = 0; i < PROGRAMS; i++)
		if (i % 3)
			world_kill(f->w, c[i]);
	world_run(f->w);
	for (unsigned i = 0; i < PROGRAMS; i++)
		assert_true(c[i]->connected); /* nobody knows */
	overflow(f, 0);
	overflow(f, 0); /* once more, while it looks */
	world_run(f->w);
	for (unsigned i = 0; i < PROGRAMS; i++)
		assert_int_equal(c[i]->connected, i % 3 == 0);
	f->w->style = WORLD_KILL;
	finish(f);
}

/* A list that the port cannot make is made later. */
static void a_list_that_fails(void **state)
{
	struct fixture *f = start(0);

	(void)state;
	f->w->deaf = 1;
	for (unsigned i = 0; i < USERS; i++)
		world_kill(f->w, f->c[i]);
	world_run(f->w);
	f->w->fail_at = f->w->requests + 1;
	overflow(f, 0);
	world_run(f->w);
	f->w->fail_at = 0;
	assert_true(fake_count(f->w, SIO_KIND_DMAMAP, true) > 0);
	world_pass(f->w, 200000000);
	world_run(f->w);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	finish(f);
}

/* Gone; gone, and another one in its place. */
static void a_device_that_went(void **state)
{
	(void)state;
	for (unsigned back = 0; back < 2; back++) {
		struct fixture *f = start(back);
		struct call_borrow b;

		f->w->deaf = 1;
		assert_true(fake_device_move(f->w, false));
		if (back)
			assert_true(fake_device_move(f->w, true));
		world_run(f->w);
		assert_null(call_device_event(f->c[0], 0)); /* nobody knows */
		overflow(f, 0);
		world_run(f->w);
		for (unsigned i = 0; i < USERS; i++) {
			const struct sio_evm_device *e = call_device_event(f->c[i], 0);

			assert_non_null(e);
			assert_int_equal(sio_from_le32(e->event), SIO_DEVICE_EV_LOST);
			assert_null(call_device_event(f->c[i], 1));
		}
		assert_int_equal(call_borrow(f->w, f->c[1], FDID, 0, &b), back ? 0 : ENODEV);
		if (!back)
			fake_device_move(f->w, true);
		finish(f);
	}
}

/* Nothing has happened: a look changes nothing. */
static void nothing_was_missed(void **state)
{
	struct fixture *f = start(0);

	(void)state;
	for (unsigned host = 0; host < USERS; host++)
		overflow(f, host);
	world_run(f->w);
	for (unsigned i = 0; i < USERS; i++) {
		assert_true(f->c[i]->connected);
		assert_null(call_device_event(f->c[i], 0));
	}
	assert_int_equal(sio_from_le32(listed(f, f->c[0])->borrowers), USERS);
	finish(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borrows_that_ended), cmocka_unit_test(programs_that_ended),
		cmocka_unit_test(a_list_that_fails),  cmocka_unit_test(a_device_that_went),
		cmocka_unit_test(nothing_was_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
