/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases of clients with two ways to the drive: they outlive the loss of one, and are another
 * program's only when no queue is left that may write there.
 */
#include "leases.h"
#include "manager.h"
#include "smartio/ext.h"
#include "surviving.h"

static struct smartio_nvme_queue *leased(struct smartio_nvme *n, const struct smartio_nvme_lease *l)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .depth = DEPTH,
						     .lease = l,
						     .flags = SMARTIO_NVME_SURVIVE |
							      SMARTIO_NVME_ALONE};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

/* Nobody else is given a block of them. */
static void assert_taken(struct smartio_nvme *other)
{
	struct smartio_nvme_lease *l;

	assert_int_equal(smartio_nvme_lease_take(other, "theirs", 1, 50, 100, &l), -EBUSY);
	assert_text("the range is taken: lease mine of node 8");
}

static struct smartio_nvme_lease *take(struct smartio_nvme *n)
{
	struct smartio_nvme_lease *l = NULL;

	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 0, 100, &l));
	return l;
}

static void steps(void)
{
	for (unsigned i = 0; i < 20; i++)
		fake_step();
}

/* The path, and what leases are is not said over it yet. */
static void make_anew(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	sio_nvme_lock(n);
	while (sio_nvme_leg_step(n, leg) > 0)
		;
	sio_nvme_unlock(n);
	assert_true(sio_nvme_leg_open(leg));
}

/*
 * Each way in turn is lost with writes in flight. Whether the manager knows of it or not, whether
 * the queue has another pair or not, the blocks are nobody else's.
 */
static void a_lease_outlives_either_way(void **state)
{
	struct smartio_nvme *n = two_ways(), *other = client();
	struct smartio_nvme_lease *l = take(n), *theirs;
	struct smartio_nvme_queue *q = leased(n, l);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	for (unsigned round = 0; round < 6; round++) {
		struct smartio_nvme *leg = round & 1 ? n->second : n;

		assert_true(sio_nvme_lease_has(l, n));
		assert_true(sio_nvme_lease_has(l, n->second));
		assert_ptr_equal(q->leg, n);
		fake.stopped = true;
		for (unsigned i = 0; i < DEPTH; i++)
			put(q, b, true, i);
		smartio_nvme_ring(q);
		fake.down = round & 1 ? 2 : 1;
		fake_lose(way(leg));
		fake.stopped = false;
		assert_taken(other);
		steps();
		assert_taken(other);
		assert_int_equal(poll_all(q, DEPTH), 0);
		for (unsigned i = 0; i < DEPTH; i++)
			assert_int_equal(fake_media()[(size_t)i * BLOCK], i + 1);
		put(q, b, false, 0); /* those may have been done before the loss */
		assert_int_equal(poll_all(q, 1), 0);
		assert_ptr_equal(q->leg, round & 1 ? n : n->second);
		assert_taken(other);
		fake.down = 0;
		go_home(n, q, b);
		assert_taken(other);
	}
	assert_int_equal(fake.manager->leases.n, 1);
	assert_int_equal(smartio_nvme_lease_give(l), -EBUSY);
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_lease_give(l));
	assert_int_equal(fake.manager->leases.n, 0);
	assert_ok(smartio_nvme_lease_take(other, "theirs", 1, 50, 100, &theirs));
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

/* With the one way lost and the other one, too, it ends: behind the deletion of its queues. */
static void it_ends_with_both(void **state)
{
	struct smartio_nvme *n = two_ways(), *other = client();
	struct smartio_nvme_lease *l = take(n), *theirs;
	struct smartio_nvme_queue *q = leased(n, l);
	struct smartio_nvme_completion c;
	int rc = 0;

	(void)state;
	fake.down = 3;
	fake_lose(way(n));
	assert_taken(other);
	fake_lose(way(n->second));
	steps();
	assert_ok(smartio_nvme_lease_take(other, "theirs", 1, 50, 100, &theirs));
	assert_int_equal(fake_counter("queue_pairs"), 0);
	for (unsigned i = 0; i < 10 && rc == 0; i++)
		rc = smartio_nvme_poll(q, &c, 1);
	assert_int_equal(rc, -ECONNRESET);
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_lease_give(l));
	assert_int_equal(fake.manager->leases.n, 1);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
	fake.down = 0;
}

/*
 * The path is back, but the manager does not answer: until it does, the lease is that of the other
 * borrow alone, and is lost with it. The queue says so.
 */
static void in_the_gap_it_is_lost_with_the_other(void **state)
{
	struct smartio_nvme *n = two_ways(), *other = client();
	struct smartio_nvme_lease *l = take(n), *theirs;
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .lease = l};
	struct smartio_nvme_queue *q = leased(n, l), *more;
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	int rc = 0;

	(void)state;
	fake.down = 1;
	fake_lose(way(n));
	put(q, b, false, 0);
	assert_int_equal(poll_all(q, 1), 0);
	fake.down = 0;
	make_anew(n, n);
	assert_false(sio_nvme_lease_has(l, n));
	assert_true(sio_nvme_leases_lack(n));
	fake.down = 2;
	fake_lose(way(n->second));
	steps();
	assert_ok(smartio_nvme_lease_take(other, "theirs", 1, 50, 100, &theirs));
	for (unsigned i = 0; i < 10 && rc == 0; i++)
		rc = smartio_nvme_poll(q, &c, 1);
	assert_int_equal(rc, -ESTALE);
	assert_text("lease mine of nvme0 was lost with the path to it");
	smartio_nvme_queue_close(q);
	assert_int_equal(smartio_nvme_queue_open(n, &o, &more), -ESTALE);
	assert_int_equal(fake_counter("queue_pairs"), 0);
	assert_ok(smartio_nvme_lease_give(l));
	assert_int_equal(fake.manager->leases.n, 1);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
	fake.down = 0;
}

/* What could not be joined is joined later, while the queue goes on. */
static void it_is_joined_when_the_manager_answers(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_lease *l = take(n);
	struct smartio_nvme_queue *q = leased(n, l);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_manager *m = fake.manager;

	(void)state;
	fake.down = 2;
	fake_lose(way(n->second));
	steps();
	fake.down = 0;
	make_anew(n, n->second);
	fake.manager = NULL;
	for (unsigned i = 0; i < 500; i++) {
		put(q, b, true, 1);
		assert_int_equal(poll_all(q, 1), 0);
		fake.now += 1000000;
	}
	assert_false(sio_nvme_lease_has(l, n->second));
	assert_true(n->join_at > 0);
	fake.manager = m;
	for (unsigned i = 0; i < 5000 && !sio_nvme_lease_has(l, n->second); i++) {
		put(q, b, true, 1);
		assert_int_equal(poll_all(q, 1), 0);
		fake.now += 1000000;
	}
	assert_true(sio_nvme_lease_has(l, n->second));
	smartio_nvme_close(n);
	assert_int_equal(fake.manager->leases.n, 0);
}

static struct sio_nvme_held *held_of(const struct smartio_nvme_lease *l)
{
	struct sio_nvme_leases *s = &fake.manager->leases;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i].l.id == l->info.id)
			return &s->list[i];
	return NULL;
}

/* As many borrows have it as can be: the client's other leases are joined at once all the same. */
static void one_that_cannot_be_joined_keeps_no_other(void **state)
{
	for (unsigned which = 0; which < 2; which++) {
		struct smartio_nvme *n = two_ways();
		struct smartio_nvme_lease *l[2];
		struct sio_nvme_held *full;

		(void)state;
		fake.down = 2;
		fake_lose(way(n->second));
		steps();
		l[0] = take(n);
		assert_ok(smartio_nvme_lease_take(n, "next", 1, 100, 10, &l[1]));
		full = held_of(l[which]);
		for (unsigned i = 1; i < SIO_NVME_LEASE_BORROWS; i++)
			full->borrower[i] = UINT64_MAX - i;
		fake.down = 0;
		make_anew(n, n->second);
		sio_nvme_lock(n);
		sio_nvme_leases_join_all(n);
		sio_nvme_unlock(n);
		assert_false(sio_nvme_lease_has(l[which], n->second));
		assert_true(sio_nvme_lease_has(l[!which], n->second));
		assert_true(n->join_at > fake.now);
		for (unsigned i = 1; i < SIO_NVME_LEASE_BORROWS; i++)
			full->borrower[i] = 0;
		smartio_nvme_close(n);
	}
}

/* ---- waiting for a pair ---- */
static struct smartio_nvme *waits;
static struct smartio_nvme_queue *taken[4];
static bool comes_free;

static void one_is_closed(void)
{
	smartio_nvme_queue_close(taken[2]);
}

static void its_path_is_lost(void)
{
	fake.down = 1;
	fake_lose(way(waits));
	fake.event_at = fake.now + 500000000;
	fake.event = comes_free ? one_is_closed : NULL;
}

/* It waits over the other path, and not longer in all. */
static void a_queue_whose_path_is_lost_waits_over_the_other(void **state)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .wait_ms = 2500, .flags = SMARTIO_NVME_SURVIVE};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct smartio_nvme *holder = client();
		struct smartio_nvme_queue *q = NULL;
		uint64_t start;

		for (unsigned k = 0; k < 4; k++)
			taken[k] = queue(holder, 4);
		waits = two_ways();
		comes_free = i == 0;
		start = fake.now;
		fake.event_at = fake.now + 500000000;
		fake.event = its_path_is_lost;
		if (comes_free) {
			struct smartio_nvme_buffer *b = buffer(waits, BLOCK);

			assert_ok(smartio_nvme_queue_open(waits, &o, &q));
			assert_ptr_equal(q->leg, waits->second);
			put(q, b, true, 0);
			assert_int_equal(poll_all(q, 1), 0);
		} else {
			assert_int_equal(smartio_nvme_queue_open(waits, &o, &q), -ENOSPC);
			assert_in_range(fake.now - start, 2400000000, 2600000000);
		}
		smartio_nvme_close(waits);
		smartio_nvme_close(holder);
		fake.down = 0;
	}
}

/* Pairs are joined over the adapter of their makers: both paths are tried, in the time of one. */
static void a_shared_queue_waits_no_longer_in_all(void **state)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .depth = DEPTH,
						     .wait_ms = 2500,
						     .flags = SMARTIO_NVME_SURVIVE |
							      SMARTIO_NVME_SHARED};
	struct smartio_nvme *holder = client();

	(void)state;
	for (unsigned k = 0; k < 4; k++)
		taken[k] = queue(holder, 4);
	for (unsigned i = 0; i < 2; i++) {
		struct smartio_nvme_queue *q = NULL;
		uint64_t start;

		waits = two_ways();
		comes_free = false;
		start = fake.now;
		fake.event_at = fake.now + 500000000;
		fake.event = i ? its_path_is_lost : NULL;
		assert_int_equal(smartio_nvme_queue_open(waits, &o, &q), -ENOSPC);
		assert_in_range(fake.now - start, 2400000000, 2600000000);
		smartio_nvme_close(waits);
		fake.down = 0;
	}
	smartio_nvme_close(holder);
}

/* Its completions go where those of the path go that is lost. */
static void a_queue_of_several_does_not_wait_over_the_other(void **state)
{
	struct smartio_nvme *n = two_ways(), *holder = client();
	struct smartio_nvme_lease *l = take(n);
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .cq_depth = 2 * DEPTH, .lease = l};
	struct smartio_nvme_queue *first, *q;

	(void)state;
	assert_ok(smartio_nvme_queue_open(n, &o, &first));
	for (unsigned k = 0; k < 3; k++)
		taken[k] = queue(holder, 4);
	waits = n;
	comes_free = false;
	fake.event_at = fake.now + 500000000;
	fake.event = its_path_is_lost;
	o.cq_depth = 0;
	o.completes_in = first;
	o.wait_ms = 2500;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -ENODEV);
	assert_text("is gone");
	smartio_nvme_close(n);
	smartio_nvme_close(holder);
	fake.down = 0;
}

/* A reset ends it, over whichever way that is found out. */
static void a_reset_ends_it(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = leased(n, take(n));
	struct smartio_nvme_completion c;
	int rc = 0;

	(void)state;
	another_manager();
	for (unsigned i = 0; i < 10 && rc == 0; i++)
		rc = smartio_nvme_poll(q, &c, 1);
	assert_int_equal(rc, -ESTALE);
	assert_text("the manager that gave lease mine of nvme0 has ended");
	assert_false(sio_nvme_leases_lack(n));
	take(n);
	smartio_nvme_close(n);
}

/* Whoever dies with nothing but a lease leaves it. */
static void the_dead_have_none(void **state)
{
	struct smartio_nvme *n = two_ways(), *other = client();
	uint64_t ways[] = {way(n), way(n->second)};
	struct smartio_nvme_lease *theirs;

	(void)state;
	take(n);
	fake_kill(ways[0]);
	assert_taken(other);
	fake_kill(ways[1]);
	steps();
	assert_ok(smartio_nvme_lease_take(other, "theirs", 1, 50, 100, &theirs));
	smartio_nvme_close(n);
	fake_bury(ways[0]);
	fake_bury(ways[1]);
	smartio_nvme_close(other);
}

/* ---- what the manager decides by ---- */
static void a_lease_is_had_until_all_have_parted(void **state)
{
	static struct sio_nvme_leases s;
	struct sio_nvme_wire_lease want = {.blocks = 10, .nsid = 1, .name = "a"};
	const struct sio_nvme_wire_lease *other;

	(void)state;
	assert_int_equal(sio_nvme_leases_take(&s, 7, 1, 99, 100, &want, &other), 0);
	assert_int_equal(sio_nvme_leases_join(&s, 8, want.id, 98), -ESTALE);
	assert_int_equal(sio_nvme_leases_join(&s, 8, want.id + 1, 99), -ESTALE);
	for (unsigned twice = 0; twice < 2; twice++)
		assert_int_equal(sio_nvme_leases_join(&s, 8, want.id, 99), 0);
	assert_int_equal(sio_nvme_leases_join(&s, 9, want.id, 99), 0);
	assert_int_equal(sio_nvme_leases_join(&s, 10, want.id, 99), 0);
	assert_int_equal(sio_nvme_leases_join(&s, 11, want.id, 99), -EBUSY);
	assert_int_equal(sio_nvme_leases_next(&s, 0), 7);
	assert_int_equal(sio_nvme_leases_next(&s, 8), 9);
	assert_int_equal(sio_nvme_leases_next(&s, 10), 0);
	sio_nvme_leases_end(&s, 9);
	assert_int_equal(sio_nvme_leases_give(&s, 9, want.id, 99), -EACCES);
	assert_int_equal(sio_nvme_leases_give(&s, 8, want.id, 98), -EACCES);
	assert_int_equal(sio_nvme_leases_give(&s, 8, want.id, 99), 0);
	sio_nvme_leases_cancel(&s, 10, 2);
	sio_nvme_leases_cancel(&s, 8, 1);
	assert_int_equal(sio_nvme_leases_take(&s, 10, 1, 99, 100, &want, &other), 0);
	assert_int_equal(s.n, 1);
	sio_nvme_leases_cancel(&s, 7, 1);
	assert_int_equal(s.n, 1);
	sio_nvme_leases_end(&s, 10);
	assert_int_equal(s.n, 0);
	assert_int_equal(sio_nvme_leases_join(&s, 10, want.id, 99), -ESTALE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lease_outlives_either_way),
		TEST(it_ends_with_both),
		TEST(in_the_gap_it_is_lost_with_the_other),
		TEST(it_is_joined_when_the_manager_answers),
		TEST(one_that_cannot_be_joined_keeps_no_other),
		TEST(a_queue_whose_path_is_lost_waits_over_the_other),
		TEST(a_shared_queue_waits_no_longer_in_all),
		TEST(a_queue_of_several_does_not_wait_over_the_other),
		TEST(a_reset_ends_it),
		TEST(the_dead_have_none),
		cmocka_unit_test(a_lease_is_had_until_all_have_parted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
