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

#define CLIENTS (SIO_NVME_WAITERS / SIO_NVME_WAITERS_EACH)
#define LEFT (SIO_NVME_WAITERS - SIO_NVME_WAITERS_EACH)

/* Each is notified once, and what the first one does not take the second one does. */
static void waiters_are_told_once(void **state)
{
	struct sio_nvme_waiters *w = &fake.manager->waiters;
	const struct sio_nvme_ledger *l = &fake.manager->ledger;
	struct sio_nvme_waiter one = {.borrower = 5, .node = 8, .interrupt = 3};

	(void)state;
	for (unsigned i = 0; i < SIO_NVME_WAITERS; i++) {
		one.interrupt = i;
		one.borrower = 5 + i % CLIENTS;
		assert_true(sio_nvme_waiters_add(w, &one));
		assert_true(sio_nvme_waiters_add(w, &one));
		assert_int_equal(w->n, i + 1);
	}
	one.interrupt = SIO_NVME_WAITERS;
	one.borrower = 5 + CLIENTS;
	assert_false(sio_nvme_waiters_add(w, &one));
	sio_nvme_waiters_end(w, 6);
	assert_int_equal(w->n, LEFT);
	/* There is room, but not for one that has its share of it. */
	one.borrower = 5;
	assert_false(sio_nvme_waiters_add(w, &one));
	assert_int_equal(w->n, LEFT);
	for (unsigned i = 0; i < LEFT; i++)
		assert_int_equal(sio_nvme_waiters_turn(w, l, false, 7), i);
	assert_int_equal(sio_nvme_waiters_turn(w, l, false, 7), -1);
	sio_nvme_waiters_asks(w, 7, 2);
	sio_nvme_waiters_drop(w, 0);
	assert_int_equal(w->n, LEFT - 2);
	sio_nvme_waiters_look(w, l, 6);
	assert_int_equal(w->n, LEFT - 2);
	sio_nvme_waiters_look(w, l, 7);
	assert_int_equal(w->n, 0);
}

static void wait_on(struct sio_nvme_waiters *w, uint32_t node, uint32_t interrupt)
{
	const struct sio_nvme_waiter one = {
		.borrower = 1000 + interrupt, .node = node, .interrupt = interrupt};

	assert_true(sio_nvme_waiters_add(w, &one));
}

/* Node 4 has three of the four pairs, and many programs that were there first; node 12 has none. */
static void the_host_with_the_fewest_is_next(void **state)
{
	static struct sio_nvme_waiters w;
	struct sio_nvme_pair pair = {.borrower = 7, .node = 4, .state = SIO_NVME_PAIR_TAKEN};
	struct sio_nvme_ledger l;

	(void)state;
	assert_ok(sio_nvme_ledger_init(&l, 4));
	for (uint32_t qid = 1; qid <= 3; qid++)
		sio_nvme_ledger_take(&l, qid, &pair);
	for (uint32_t i = 0; i < 5; i++)
		wait_on(&w, 4, i);
	wait_on(&w, 12, 5);
	sio_nvme_waiters_look(&w, &l, 1);
	assert_int_equal(sio_nvme_waiters_before(&w, 4, 3, false), 1);
	assert_int_equal(sio_nvme_waiters_before(&w, 12, 0, true), 0);
	assert_int_equal(sio_nvme_waiters_turn(&w, &l, false, 10), 5);
	assert_int_equal(sio_nvme_waiters_turn(&w, &l, false, 10), -1);
	/* Until it has asked, or its moment is over, the pair is its own. */
	sio_nvme_waiters_look(&w, &l, 9);
	assert_int_equal(sio_nvme_waiters_before(&w, 4, 3, false), 1);
	sio_nvme_waiters_look(&w, &l, 10);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sio_nvme_waiters_turn(&w, &l, false, 20), i);
	assert_int_equal(sio_nvme_waiters_turn(&w, &l, false, 20), -1);
	/* With none free, those of a host that shares one hear of a place in it. */
	w.n = 0;
	pair.node = 12;
	sio_nvme_ledger_take(&l, 4, &pair);
	wait_on(&w, 4, 0);
	wait_on(&w, 16, 1);
	sio_nvme_waiters_look(&w, &l, 1);
	assert_int_equal(sio_nvme_waiters_turn(&w, &l, false, 10), -1);
	assert_int_equal(sio_nvme_waiters_turn(&w, &l, true, 10), 0);
	assert_int_equal(sio_nvme_waiters_turn(&w, &l, true, 10), -1);
	w.n = 0;
	sio_nvme_ledger_done(&l);
}

static struct smartio_nvme_queue *shared(struct smartio_nvme *n)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .flags = SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

/*
 * A host with a pair shares it while another one waits for the pair that is free, and one that does
 * not share is refused it; without others it has it. Whoever has a pair gets the next one at once.
 */
static void a_host_with_a_pair_leaves_the_next_one_to_others(void **state)
{
	struct smartio_nvme *n[4] = {client(), client(), client(), client()};
	struct sio_nvme_waiters *w = &fake.manager->waiters;
	struct smartio_nvme_queue *first = shared(n[0]), *q;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		wait_on(w, 12, i); /* nobody listens there; it is not notified before it is asked */
	assert_int_equal(smartio_nvme_queue_id(shared(n[1])), smartio_nvme_queue_id(first));
	assert_int_equal(fake.manager->ledger.used, 1);
	smartio_nvme_close(n[0]);
	smartio_nvme_close(n[1]);
	for (unsigned i = 0; i < 3; i++)
		q = queue(n[2], 4);
	assert_int_equal(fake.manager->ledger.used, 3);
	wait_on(w, 12, 0);
	assert_int_equal(smartio_nvme_queue_open(n[3], NULL, &q), -ENOSPC);
	assert_text(
		"no queue pairs left for node 8: programs of hosts that have fewer wait for the "
		"next one of nvme0, of which 3 are held by node 8: 3 (");
	smartio_nvme_close(n[2]);
	smartio_nvme_close(n[3]);
}

static struct smartio_nvme_lease *lease;
static int given;

static void the_lease_is_given_back(void)
{
	given = smartio_nvme_lease_give(lease);
	one_is_closed();
}

/* Another thread may run while a queue waits: the queue's lease is in use already. */
static void a_queue_that_waits_uses_its_lease(void **state)
{
	struct smartio_nvme *n;
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4, .wait_ms = 5000};
	struct smartio_nvme_queue *q;

	(void)state;
	n = others_take_all();
	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 0, 100, &lease));
	o.lease = lease;
	given = 1;
	in_ms(500, the_lease_is_given_back);
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	assert_int_equal(given, -EBUSY);
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_lease_give(lease));
	smartio_nvme_close(n);
	smartio_nvme_close(holder);
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
		TEST(the_host_with_the_fewest_is_next),
		TEST(a_host_with_a_pair_leaves_the_next_one_to_others),
		TEST(a_queue_that_waits_uses_its_lease),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
