/* SPDX-License-Identifier: BSD-2-Clause */
/* All queue pairs are taken: who waits for one, how long, and what ends the wait. */
#include "client.h"
#include "common.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/uapi.h"

#define MS 1000000ull
#define PAIRS 4u

static struct smartio_nvme *holder;
static struct smartio_nvme_queue *held[PAIRS];
static uint64_t left; /* when somebody gave a pair back */

static struct smartio_nvme *others_take_all(void)
{
	holder = client();
	for (unsigned i = 0; i < PAIRS; i++)
		held[i] = queue(holder, 4);
	return client();
}

static void one_is_closed(void)
{
	smartio_nvme_queue_close(held[2]);
	held[2] = NULL;
	left = fake.now;
}

static void in_ms(uint64_t ms, void (*event)(void))
{
	fake.event_at = fake.now + ms * MS;
	fake.event = event;
}

static int wait_for_one(struct smartio_nvme *n, uint32_t ms, struct smartio_nvme_queue **ret)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4, .wait_ms = ms};

	return smartio_nvme_queue_open(n, &o, ret);
}

static void one_comes_free(void **state)
{
	static const uint32_t limits[] = {5000, UINT32_MAX};
	uint8_t data[512];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct smartio_nvme *n = others_take_all();
		struct smartio_nvme_queue *q = NULL;

		/* In the middle between two looks for the manager: it is told, not found. */
		in_ms(3500, one_is_closed);
		assert_ok(wait_for_one(n, limits[i], &q));
		assert_in_range(fake.now - left, 0, 2 * MS);
		assert_int_equal(smartio_nvme_queue_id(q), 3);
		assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
		smartio_nvme_close(n);
		smartio_nvme_close(holder);
	}
}

static void none_comes_free(void **state)
{
	struct smartio_nvme *n = others_take_all();
	struct smartio_nvme_queue *q;
	uint64_t start = fake.now;

	(void)state;
	assert_int_equal(wait_for_one(n, 2500, &q), -ENOSPC);
	assert_in_range(fake.now - start, 2500 * MS, 2510 * MS);
	assert_text("no queue pairs left: the 4 of nvme0 are held by node 8: 4 (");
	assert_int_equal(smartio_nvme_exhausted(), SIO_OUT_OF_QUEUE_PAIRS);
	/* Nobody listens where the manager tells of it. */
	one_is_closed();
	q = queue(n, 4);
	smartio_nvme_close(n);
	smartio_nvme_close(holder);
}

static void the_holder_is_killed(void)
{
	fake_kill(smartio_borrower_id(holder->d.handle));
	left = fake.now;
}

static void a_holder_that_dies_leaves_its_pairs(void **state)
{
	struct smartio_nvme *n = others_take_all();
	struct smartio_nvme_queue *q;
	uint64_t borrower = smartio_borrower_id(holder->d.handle);

	(void)state;
	in_ms(1500, the_holder_is_killed);
	assert_ok(wait_for_one(n, UINT32_MAX, &q));
	assert_in_range(fake.now - left, 0, 2 * MS);
	smartio_nvme_close(n);
	smartio_nvme_close(holder);
	fake_bury(borrower);
}

static void the_manager_ends(void)
{
	stop_manager();
	left = fake.now;
}

static void a_manager_that_ends_is_not_waited_for(void **state)
{
	struct smartio_nvme *n = others_take_all();
	struct smartio_nvme_queue *q;

	(void)state;
	in_ms(1500, the_manager_ends);
	assert_int_equal(wait_for_one(n, UINT32_MAX, &q), -ENOTCONN);
	assert_text("no manager serves nvme0");
	assert_in_range(fake.now - left, 0, 6000 * MS);
	smartio_nvme_close(n);
	smartio_nvme_close(holder);
	start_manager();
}

static void another_manager_comes(void)
{
	stop_manager();
	start_manager();
	left = fake.now;
}

/* After its reset there are pairs for all. */
static void another_manager_is_asked(void **state)
{
	struct smartio_nvme *n = others_take_all();
	struct smartio_nvme_queue *q;

	(void)state;
	in_ms(1500, another_manager_comes);
	assert_ok(wait_for_one(n, UINT32_MAX, &q));
	assert_in_range(fake.now - left, 0, 5 * MS);
	smartio_nvme_close(n);
	smartio_nvme_close(holder);
}

/* Each is told, and what the first one does not take the second one does. */
static void waiters_are_told_once(void **state)
{
	struct sio_nvme_waiters *w = &fake.manager->waiters;
	struct sio_nvme_waiter one = {.borrower = 5, .node = 8, .interrupt = 3}, got;

	(void)state;
	for (unsigned i = 0; i < SIO_NVME_WAITERS; i++) {
		one.interrupt = i;
		one.borrower = 5 + i % 2;
		assert_true(sio_nvme_waiters_add(w, &one));
		assert_true(sio_nvme_waiters_add(w, &one));
		assert_int_equal(w->n, i + 1);
	}
	one.interrupt = SIO_NVME_WAITERS;
	assert_false(sio_nvme_waiters_add(w, &one));
	sio_nvme_waiters_end(w, 6);
	assert_int_equal(w->n, SIO_NVME_WAITERS / 2);
	for (unsigned i = 0; i < SIO_NVME_WAITERS; i += 2) {
		assert_true(sio_nvme_waiters_next(w, &got));
		assert_int_equal(got.interrupt, i);
	}
	assert_false(sio_nvme_waiters_next(w, &got));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_comes_free),
		TEST(none_comes_free),
		TEST(a_holder_that_dies_leaves_its_pairs),
		TEST(a_manager_that_ends_is_not_waited_for),
		TEST(another_manager_is_asked),
		TEST(waiters_are_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
