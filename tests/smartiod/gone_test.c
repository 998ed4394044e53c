/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device is pulled out and put back: its borrows end and are told so, what waited for its word
 * is over, and whoever asks for something of it hears that he has lost it.
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
#include "smartiod/restart/restore.h"

#define FDID 0x400001
#define USERS 3

/* A program of each host: the device, its BAR, memory of its own in the device's reach. */
struct user {
	struct world_client *c;
	struct call_borrow b;
	uint32_t bar, map, segment, dma, access[4];
};

struct fixture {
	struct fake_device fake;
	struct world *w;
	struct user u[USERS];
};

static void use(struct world *w, struct user *u, unsigned host, uint32_t flags)
{
	u->c = world_client(w, host, SIO_CLIENT_LIBRARY);
	if (call_borrow(w, u->c, FDID, flags, &u->b) != 0)
		return;
	call_dev_seg_connect(w, u->c, u->b.handle, 0, SCI_MEMTYPE_BAR, &u->bar, NULL);
	call_bar_map(w, u->c, u->bar, 0, &u->map, u->access);
	call_seg_export(w, u->c, (uint32_t)u->c->number, 65536, &u->segment);
	call_dma_map(w, u->c, u->b.handle, u->segment, 0, 0, 65536, &u->dma);
}

static struct fixture *start(uint64_t seed)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->w = world_new(USERS, seed);
	fake_device_add(f->w, &f->fake);
	world_start(f->w);
	for (unsigned i = 0; i < USERS; i++)
		use(f->w, &f->u[i], i, 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), USERS);
	return f;
}

static void finish(struct fixture *f)
{
	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	fake_device_move(f->w, false); /* what was quarantined after it came back */
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->fake.bad, 0);
	assert_int_equal(f->w->bad_ends, 0);
	world_free(f->w);
	free(f);
}

static void move(struct fixture *f, bool in)
{
	assert_true(fake_device_move(f->w, in));
	world_run(f->w);
}

static const struct sio_rep_dev_list *listed(struct fixture *f, struct world_client *c)
{
	struct sio_msg_dev_list msg = {.after = sio_to_le32(0)};
	const struct world_message *m = world_call(f->w, c, SIO_MSG_DEV_LIST, &msg, sizeof(msg));

	assert_non_null(m);
	return m->error ? NULL : (const void *)m->data;
}

static void borrowers_lose_it(void **state)
{
	struct fixture *f = start(0);
	struct call_borrow b;

	(void)state;
	move(f, false);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 0);
	for (unsigned i = 0; i < USERS; i++) {
		struct user *u = &f->u[i];
		const struct sio_evm_device *e = call_device_event(u->c, 0);

		assert_non_null(e);
		assert_int_equal(sio_from_le32(e->event), SIO_DEVICE_EV_LOST);
		assert_null(call_device_event(u->c, 1));
		expect_event(u->c, SIO_EVM_SEGMENT_REMOTE, 0, u->bar, SCI_CB_LOST, 1);
		assert_null(listed(f, u->c));
		assert_int_equal(call_borrow(f->w, u->c, FDID, 0, &b), ENODEV);
		assert_int_equal(call_handle(f->w, u->c, SIO_MSG_DEV_RESET, u->b.handle, 0),
				 ECONNRESET);
		assert_int_equal(call_handle(f->w, u->c, SIO_MSG_DMA_UNMAP, u->dma, 0), 0);
		assert_int_equal(call_handle(f->w, u->c, SIO_MSG_SEG_UNMAP, u->map, 0), 0);
		assert_int_equal(call_handle(f->w, u->c, SIO_MSG_SEG_DISCONNECT, u->bar, 0), 0);
		assert_int_equal(call_handle(f->w, u->c, SIO_MSG_DEV_RETURN, u->b.handle, 0), 0);
		assert_int_equal(call_seg_remove(f->w, u->c, u->segment), 0);
	}
	finish(f);
}

static void it_comes_back_as_another(void **state)
{
	struct fixture *f = start(0);
	struct user again;

	(void)state;
	fake_device_resets(f->w, false);
	move(f, false);
	move(f, true);
	for (unsigned i = 0; i < USERS; i++)
		assert_int_equal(
			call_handle(f->w, f->u[i].c, SIO_MSG_DEV_RESET, f->u[i].b.handle, 0),
			ECONNRESET);
	for (unsigned i = 0; i < USERS; i++) {
		/* Handles of the one before are in nobody's way. */
		use(f->w, &again, i, SCI_FLAG_EXCLUSIVE);
		assert_true(again.b.id > f->u[i].b.id);
		assert_int_equal(again.b.generation, f->fake.generation * 2);
		assert_true(again.access[0] & SIO_ACCESS_WRITE);
		assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 1);
		world_kill(f->w, again.c);
		world_run(f->w);
		assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 1);
		move(f, false);
		assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
		move(f, true);
	}
	finish(f);
}

static void nothing_waits_for_its_word(void **state)
{
	struct fixture *f = start(0);
	struct world_client *c = world_client(f->w, 1, SIO_CLIENT_LIBRARY);

	(void)state;
	fake_device_resets(f->w, false);
	for (unsigned i = 0; i < USERS; i++)
		world_kill(f->w, f->u[i].c);
	world_run(f->w);
	assert_int_equal(sio_from_le32(listed(f, c)->quarantined), USERS);
	move(f, false);
	move(f, true);
	assert_int_equal(sio_from_le32(listed(f, c)->quarantined), 0);
	assert_int_equal(sio_from_le32(listed(f, c)->borrowers), 0);
	finish(f);
}

/* The port knows, and the lender's daemon has not heard. */
static void who_asks_too_early_hears_not_connected(void **state)
{
	struct fixture *f = start(0);
	uint32_t vector = SIO_VECTOR_ANY, interrupt, number, link, dma;

	(void)state;
	f->fake.gone = true;
	for (unsigned i = 0; i < USERS; i++) {
		struct user *u = &f->u[i];

		call_plain_create(f->w, u->c, &interrupt, &number);
		call_plain_connect(f->w, u->c, 4 * (i + 1), number, &link);
		if (i == 0) /* it has the registers */
			assert_int_equal(call_handle(f->w, u->c, SIO_MSG_DEV_RESET, u->b.handle, 0),
					 ENOTCONN);
		assert_int_equal(
			call_dma_map(f->w, u->c, u->b.handle, u->segment, 0, 0, 4096, &dma),
			ENOTCONN);
		assert_int_equal(call_vector(f->w, u->c, u->b.handle, &vector, link), ENOTCONN);
	}
	f->fake.gone = false;
	finish(f);
}

struct pulling {
	uint64_t left;
	bool put;
};

static void pull_then(struct world *w, void *arg)
{
	struct pulling *p = arg;

	if (p->left == 0 || --p->left)
		return;
	fake_device_move(w, false);
	if (p->put)
		fake_device_move(w, true);
}

static void judge(int error)
{
	if (error != 0 && error != ENOTCONN && error != ECONNRESET)
		fail_msg("errno %d", error);
}

/* Requests are on their way to the lender, or half done, when it goes. */
static bool pulled_at(uint64_t n, bool put, uint64_t seed)
{
	struct fixture *f = start(seed);
	struct pulling p = {.left = n, .put = put};
	uint32_t vector, interrupt = 0, number = 0, link = 0, dma = 0, bar = 0, map = 0, access[4];
	uint64_t hold;

	for (unsigned i = 1; i < USERS; i++) {
		struct user *u = &f->u[i];

		call_plain_create(f->w, u->c, &interrupt, &number);
		call_plain_connect(f->w, u->c, 4 * (i + 1), number, &link);
		vector = SIO_VECTOR_ANY;
		f->w->before_step = pull_then;
		f->w->before_arg = &p;
		judge(call_dma_map(f->w, u->c, u->b.handle, u->segment, 0, 0, 4096, &dma));
		judge(call_vector(f->w, u->c, u->b.handle, &vector, link));
		judge(call_dev_seg_create(f->w, u->c, u->b.handle, 5, 4096, SCI_MEMTYPE_PRIVATE,
					  SCI_MEMACCESS_DEVICE_READ, 0));
		judge(call_dev_seg_connect(f->w, u->c, u->b.handle, 0, SCI_MEMTYPE_BAR, &bar,
					   NULL));
		if (i == 1)
			judge(call_bar_map(f->w, u->c, u->bar, SCI_FLAG_READONLY_MAP, &map,
					   access));
		if (i == 1)
			call_hold(f->w, u->c, u->b.handle, u->b.id, 0, 1, &hold);
		f->w->before_step = NULL;
	}
	finish(f);
	return p.left == 0;
}

static void whatever_is_under_way_ends_as_not_connected(void **state)
{
	(void)state;
	for (unsigned put = 0; put < 2; put++)
		for (uint64_t seed = 0; seed < 14; seed += 7) {
			uint64_t n = 1;

			while (pulled_at(n, put, seed))
				n++;
			assert_true(n > 20);
		}
}

/* ---- real hosts: smartiod was killed, and the device goes and comes meanwhile ---- */

static bool restarted_at(uint64_t n, bool put)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct pulling p = {.left = n, .put = put};
	struct user next = {.c = NULL};

	assert_non_null(f);
	f->w = world_new(1, 0);
	f->w->real = true;
	fake_device_add(f->w, &f->fake);
	world_start(f->w);
	use(f->w, &f->u[0], 0, SCI_FLAG_EXCLUSIVE);
	world_stop(f->w, 0);
	if (n == 0)
		fake_device_move(f->w, false);
	if (n == 0 && put)
		fake_device_move(f->w, true);
	world_restart(f->w, 0);
	f->w->before_step = pull_then;
	f->w->before_arg = &p;
	world_run(f->w);
	assert_true(f->w->host[0].ready);
	f->w->before_step = NULL;
	world_pass(f->w, SMARTIOD_GRACE_NS);
	if (p.left == 0) { /* it has gone: so has the borrow of who did not come back */
		fake_device_move(f->w, true);
		world_run(f->w);
		use(f->w, &next, 0, SCI_FLAG_EXCLUSIVE);
		assert_true(next.b.id > f->u[0].b.id);
		assert_true(next.access[0] & SIO_ACCESS_WRITE);
		assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	}
	finish(f);
	return p.left == 0;
}

static void a_daemon_that_starts_again_does_not_take_it_for_the_old_one(void **state)
{
	(void)state;
	for (unsigned put = 0; put < 2; put++) {
		uint64_t n = 0;

		while (restarted_at(n, put))
			n++;
		assert_true(n > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borrowers_lose_it),
		cmocka_unit_test(it_comes_back_as_another),
		cmocka_unit_test(nothing_waits_for_its_word),
		cmocka_unit_test(who_asks_too_early_hears_not_connected),
		cmocka_unit_test(whatever_is_under_way_ends_as_not_connected),
		cmocka_unit_test(a_daemon_that_starts_again_does_not_take_it_for_the_old_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
