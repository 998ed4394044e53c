/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues that outlive their pair when one of the two ways to the drive is lost, and go back to it
 * when it is up again.
 */
#include "smartio/ext.h"
#include "surviving.h"

static void the_other_way_takes_over_and_home_takes_back(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fill_media();
	assert_ptr_equal(q->leg, n);
	for (unsigned round = 0; round < 4; round++) {
		fake.stopped = true;
		for (unsigned i = 0; i < DEPTH; i++)
			put(q, b, i >= 4, i);
		smartio_nvme_ring(q);
		fake.down = 1;
		fake_lose(way(n));
		fake.stopped = false;
		/* The old queue is alive: what it still does, it does before it is deleted. */
		assert_int_equal(poll_all(q, DEPTH), 0xf0);
		for (unsigned i = 0; i < 4; i++)
			assert_read(b, i);
		assert_ptr_equal(q->leg, n->second);
		assert_int_equal(fake_counter("queue_pairs"), 1);
		for (unsigned i = 0; i < DEPTH; i++)
			put(q, b, i >= 4, i);
		assert_int_equal(poll_all(q, DEPTH), 0);
		fake.down = 0;
		go_home(n, q, b);
		assert_int_equal(fake_counter("queue_pairs"), 1);
	}
	smartio_nvme_close(n);
}

static void two_queues_use_both_ways(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q[2] = {surviving(n, 0), surviving(n, 0)};
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fill_media();
	assert_ptr_equal(q[0]->leg, n);
	assert_ptr_equal(q[1]->leg, n->second);
	for (unsigned i = 0; i < DEPTH; i++)
		put(q[i & 1], b, false, i);
	for (unsigned k = 0; k < 2; k++)
		assert_int_equal(poll_all(q[k], DEPTH / 2), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_read(b, i);
	fake.down = 2;
	fake_lose(way(n->second));
	for (unsigned i = 0; i < DEPTH; i++)
		put(q[0], b, false, i);
	assert_int_equal(poll_all(q[0], DEPTH), 0);
	put(q[0], b, false, 0);
	assert_int_equal(poll_all(q[0], 1), 0);
	for (unsigned i = 0; i < 100 && q[1]->leg != n; i++) {
		struct smartio_nvme_completion c;

		assert_int_equal(smartio_nvme_poll(q[1], &c, 1), 0);
	}
	assert_ptr_equal(q[1]->leg, n);
	smartio_nvme_close(n);
	fake.down = 0;
}

/* Buffers that were made while a way was down are reached over it when it is back. */
static void the_second_way_may_be_down_at_first(void **state)
{
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n;

	(void)state;
	fill_media();
	fake.down = 2;
	n = two_ways();
	q = surviving(n, 0);
	b = buffer(n, DEPTH * BLOCK);
	smartio_nvme_queue_close(q);
	fake.down = 0;
	q = surviving(n, 0); /* its home is the second way, which is not looked for yet */
	assert_ptr_equal(q->leg, n);
	put(q, b, false, 1);
	assert_int_equal(poll_all(q, 1), 0);
	smartio_nvme_close(n);
}

/* The first way may be the one that is lost when a buffer is made. */
static void buffers_are_made_over_what_is_left(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b;

	(void)state;
	fill_media();
	fake.down = 1;
	fake_lose(way(n));
	for (unsigned i = 0; i < 3; i++) {
		b = buffer(n, BLOCK);
		put(q, b, false, 0);
		assert_int_equal(poll_all(q, 1), 0);
		assert_read(b, 0);
		assert_ok(smartio_nvme_buffer_free(b));
		/* Looked for in vain meanwhile: it is not even borrowed any more. */
		fake.now += 60000000;
	}
	b = buffer(n, BLOCK);
	fake.down = 0;
	go_home(n, q, b);
	put(q, b, false, 0);
	assert_int_equal(poll_all(q, 1), 0);
	assert_read(b, 0);
	smartio_nvme_close(n);
}

/* All vectors of the drive are in use: the next pair has that of the last one. */
static void a_vector_is_enough(void **state)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .flags = SMARTIO_NVME_INTERRUPT};
	struct smartio_nvme *n = two_ways(), *other = client();
	struct smartio_nvme_queue *q = surviving(n, SMARTIO_NVME_INTERRUPT), *more;
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);

	(void)state;
	fill_media();
	for (unsigned i = 0; i < 2; i++)
		assert_ok(smartio_nvme_queue_open(other, &o, &more));
	assert_int_equal(smartio_nvme_queue_open(other, &o, &more), -EBUSY);
	assert_text("all interrupt vectors of nvme0 are taken");
	for (unsigned i = 0; i < 2; i++) {
		fake_lose(way(n));
		put(q, b, false, 1);
		assert_int_equal(poll_all(q, 1), 0);
		assert_ptr_equal(q->leg, n->second);
		go_home(n, q, b);
		put(q, b, false, 0);
		assert_int_equal(smartio_nvme_wait(q, 100), 1);
		assert_int_equal(poll_all(q, 1), 0);
		assert_read(b, 0);
	}
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

/* Its own way goes; it goes on over the other one, and that is back. */
static void be_away(struct smartio_nvme *n, struct smartio_nvme_queue *q,
		    struct smartio_nvme_buffer *b)
{
	fake.down = 1;
	fake_lose(way(n));
	put(q, b, false, 0);
	assert_int_equal(poll_all(q, 1), 0);
	assert_int_equal(q->life->state, SIO_NVME_AWAY);
	fake.down = 0;
}

/* The drive has stopped to work on one: it does not keep the others from being submitted. */
static void a_command_that_does_not_end_keeps_it_where_it_is(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	uint64_t began = 0;

	(void)state;
	fill_media();
	be_away(n, q, b);
	for (unsigned i = 0; i < 5000 && q->life->state != SIO_NVME_DRAIN; i++) {
		/* All that are done are done before the last look; then none is. */
		fake.stopped = sio_nvme_leg_open(n);
		put(q, b, false, 1);
		smartio_nvme_ring(q);
		while (!fake.stopped && sio_nvme_in_flight(q))
			assert_true(smartio_nvme_poll(q, &c, 1) >= 0);
		if (fake.stopped)
			break;
		fake.now += 1000000;
	}
	for (unsigned i = 0; i < 1000000 && q->life->state != SIO_NVME_DRAIN; i++)
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	assert_int_equal(q->life->state, SIO_NVME_DRAIN);
	began = fake.now;
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 2, 1, b, 0, NULL), -EAGAIN);
	for (unsigned i = 0; i < 1000 && q->life->state == SIO_NVME_DRAIN; i++) {
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
		fake.now += 1000000;
	}
	assert_int_equal(q->life->state, SIO_NVME_AWAY);
	assert_in_range(fake.now - began, 250000000u, 300000000u);
	put(q, b, false, 2);
	fake.stopped = false;
	assert_int_equal(poll_all(q, 2), 0);
	assert_read(b, 1);
	assert_read(b, 2);
	/* Nor does it try at once again. */
	assert_true(q->life->home_at - fake.now > 500000000u);
	go_home(n, q, b);
	assert_int_equal(fake_counter("queue_pairs"), 1);
	smartio_nvme_close(n);
}

/* Nor does another thread that has the lock, and waits for a host that does not answer. */
static void a_lock_that_is_held_keeps_no_commands_back(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fill_media();
	be_away(n, q, b);
	for (unsigned i = 0; i < 5000 && q->life->state != SIO_NVME_DRAIN; i++) {
		put(q, b, false, 1);
		smartio_nvme_ring(q);
		while (q->life->state != SIO_NVME_DRAIN && sio_nvme_in_flight(q))
			assert_true(smartio_nvme_poll(q, &c, 1) >= 0);
		fake.now += 1000000;
	}
	assert_int_equal(q->life->state, SIO_NVME_DRAIN);
	sio_nvme_lock(n);
	for (unsigned i = 0; i < 1000 && q->life->state == SIO_NVME_DRAIN; i++) {
		assert_true(smartio_nvme_poll(q, &c, 1) >= 0);
		fake.now += 1000000;
	}
	assert_int_equal(q->life->state, SIO_NVME_AWAY);
	put(q, b, false, 2);
	assert_int_equal(poll_all(q, 1), 0);
	assert_read(b, 2);
	sio_nvme_unlock(n);
	go_home(n, q, b);
	assert_int_equal(fake_counter("queue_pairs"), 1);
	smartio_nvme_close(n);
}

/* The pair that it has is as good as one that it would wait for. */
static void without_a_manager_that_answers_it_stays_where_it_is(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_manager *m = fake.manager;

	(void)state;
	fill_media();
	be_away(n, q, b);
	for (unsigned i = 0; i < 5000 && !sio_nvme_leg_open(n); i++) {
		put(q, b, false, 1);
		assert_int_equal(poll_all(q, 1), 0);
		fake.now += 1000000;
	}
	assert_true(sio_nvme_leg_open(n));
	fake.manager = NULL;
	for (unsigned i = 0; i < 3000; i++) {
		const uint64_t began = fake.now;

		put(q, b, false, 1);
		assert_int_equal(poll_all(q, 1), 0);
		assert_read(b, 1);
		assert_int_equal(q->life->state, SIO_NVME_AWAY);
		assert_in_range(fake.now - began, 0, 200000000u);
		fake.now += 1000000;
	}
	assert_true(q->life->stay_ns > 0);
	fake.manager = m;
	go_home(n, q, b);
	smartio_nvme_close(n);
}

/* On its way home it is between two pairs, but the drive has the last one still. */
static void closed_on_the_way_home(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake.down = 1;
	fake_lose(way(n));
	put(q, b, false, 0);
	assert_int_equal(poll_all(q, 1), 0);
	assert_int_equal(q->life->state, SIO_NVME_AWAY);
	fake.down = 0;
	for (unsigned i = 0; i < 5000 && q->life->state != SIO_NVME_DEAD; i++) {
		int rc = smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL);

		assert_true(rc == 0 || rc == -EAGAIN);
		assert_true(smartio_nvme_poll(q, &c, 1) >= 0);
		fake.now += 1000000;
	}
	assert_int_equal(q->life->state, SIO_NVME_DEAD);
	assert_int_equal(fake_counter("queue_pairs"), 1);
	smartio_nvme_queue_close(q);
	assert_int_equal(fake_counter("queue_pairs"), 0);
	smartio_nvme_close(n);
}

/* The manager is asked over the way that is left, and what a lease of that way allows goes on. */
static void what_is_asked_goes_over_the_way_that_is_left(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = DEPTH};
	struct smartio_nvme_queue *q = surviving(n, 0), *leased;
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_lease_info info[2];
	struct smartio_nvme_lease *l, *more;
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_pair pair[4];
	uint8_t page[4096];
	uint32_t value;

	(void)state;
	fake.down = 1;
	fake_lose(way(n));
	assert_ok(smartio_nvme_identify(n, 1, 0, page));
	assert_ok(smartio_nvme_get_log(n, 2, 0xffffffff, 0, page, 512));
	assert_ok(smartio_nvme_get_feature(n, 4, 0, 0, &value));
	assert_ok(smartio_nvme_lease_take(n, "left", 1, 0, 100, &l));
	assert_true(sio_nvme_lease_has(l, n->second));
	assert_int_equal(smartio_nvme_get_leases(n, info, 2), 1);
	assert_string_equal(info[0].name, "left");
	o.lease = l;
	for (unsigned survives = 0; survives < 2; survives++) {
		o.flags = survives ? SMARTIO_NVME_SURVIVE : 0;
		assert_ok(smartio_nvme_queue_open(n, &o, &leased));
		assert_ptr_equal(leased->leg, n->second);
		for (unsigned i = 0; i < DEPTH; i++)
			put(leased, b, i & 1, i);
		assert_int_equal(poll_all(leased, DEPTH), 0);
		assert_int_equal(fake_media()[BLOCK], 2);
		assert_int_equal(smartio_nvme_submit(leased, SMARTIO_NVME_READ, 100, 1, b, 0, NULL),
				 -ERANGE);
		assert_true(smartio_nvme_get_pairs(n, pair, 4) >= 1);
		if (!survives)
			smartio_nvme_queue_close(leased);
	}
	/* The first way is back: both have what is leased. */
	fake.down = 0;
	put(q, b, false, 0);
	assert_int_equal(poll_all(q, 1), 0);
	go_home(n, q, b);
	assert_ok(smartio_nvme_lease_take(n, "home", 1, 100, 100, &more));
	for (unsigned i = 0; i < 2; i++) {
		assert_true(sio_nvme_lease_has(i ? more : l, n));
		assert_true(sio_nvme_lease_has(i ? more : l, n->second));
	}
	put(leased, b, true, 5);
	assert_int_equal(poll_all(leased, 1), 0);
	smartio_nvme_queue_close(leased);
	assert_ok(smartio_nvme_lease_give(l));
	assert_ok(smartio_nvme_lease_give(more));
	assert_int_equal(smartio_nvme_get_leases(n, info, 2), 0);
	smartio_nvme_queue_close(q);
	/* What a format makes is known over both. */
	fake.down = 1;
	fake_lose(way(n));
	assert_ok(smartio_nvme_format(n, 1, 1, SMARTIO_NVME_CONFIRMED));
	assert_ok(smartio_nvme_get_namespace(n, 0, &ns));
	assert_int_equal(ns.block_size, 4096);
	q = surviving(n, 0);
	assert_ptr_equal(q->leg, n->second);
	smartio_nvme_close(n);
	fake.down = 0;
}

/* Whose ways are all lost cannot know whether the drive was off: it ends, as others do. */
static void both_ways_lost_is_the_end(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	int rc = 0;

	(void)state;
	fake.stopped = true;
	put(q, b, false, 1);
	smartio_nvme_ring(q);
	fake_lose(way(n));
	fake_lose(way(n->second));
	fake.stopped = false;
	for (unsigned i = 0; i < 10 && rc == 0; i++)
		rc = smartio_nvme_poll(q, &c, 1);
	assert_int_equal(rc, -ECONNRESET);
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL), -ECONNRESET);
	/* The drive has lost what it had of both: nobody need close the queue for that. */
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/*
 * The thread that makes one of them anew began while the other was there, and ended before the
 * queue was polled again: what it has made does not say what became of the drive meanwhile.
 */
static void both_ways_lost_is_the_end_though_one_is_back(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, SMARTIO_NVME_ALONE), *next;
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	int rc = 0;

	(void)state;
	fill_media();
	assert_ptr_equal(q->leg, n);
	fake.stopped = true;
	put(q, b, true, 1);
	smartio_nvme_ring(q);
	fake_lose(way(n));
	fake_lose(way(n->second));
	sio_nvme_lock(n);
	while (sio_nvme_leg_step(n, n) > 0)
		;
	sio_nvme_unlock(n);
	assert_true(sio_nvme_leg_open(n));
	fake.stopped = false;
	for (unsigned i = 0; i < 1000 && rc == 0; i++) {
		rc = smartio_nvme_poll(q, &c, 1);
		fake.now += 1000000;
	}
	assert_int_equal(rc, -ECONNRESET);
	assert_int_equal(q->counters.resent, 0);
	/* One that was not there then has nothing to lose. */
	next = surviving(n, 0);
	put(next, b, false, 2);
	assert_int_equal(poll_all(next, 1), 0);
	assert_read(b, 2);
	smartio_nvme_queue_close(q);
	/* And it has both ways: the loss of one, later, is not the end. */
	go_home(n, next, b);
	fake.down = 1;
	fake_lose(way(n));
	put(next, b, false, 3);
	assert_int_equal(poll_all(next, 1), 0);
	assert_read(b, 3);
	assert_ptr_equal(next->leg, n->second);
	smartio_nvme_close(n);
	fake.down = 0;
}

/* Nor is another queue had then, whatever has been taken apart already. */
static void no_queue_without_a_way(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_SURVIVE};
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0), *none = NULL;
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);

	(void)state;
	fake.down = 1;
	fake_lose(way(n));
	for (unsigned i = 0; n->stage != SIO_NVME_LEG_SHUT && i < 5000; i++) {
		put(q, b, false, 0);
		assert_int_equal(poll_all(q, 1), 0);
		fake.now += 1000000;
	}
	assert_int_equal(n->stage, SIO_NVME_LEG_SHUT);
	fake_lose(way(n->second));
	for (unsigned i = 0; i < 2; i++) {
		assert_true(smartio_nvme_queue_open(n, &o, &none) < 0);
		o.flags = 0;
		assert_int_equal(smartio_nvme_queue_open(n, &o, &none), -ENODEV);
		o.flags = SMARTIO_NVME_SURVIVE;
	}
	fake.down = 0;
	smartio_nvme_close(n);
}

/* Each call on the way to another pair fails once; it is tried again, and nothing is left. */
static void each_call_of_a_renewal_fails_once(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	unsigned long at = 0, failed = 0;
	bool hit;

	(void)state;
	fill_media();
	do {
		go_home(n, q, b);
		fake.stopped = true;
		for (unsigned i = 0; i < DEPTH; i++)
			put(q, b, i >= 4, i);
		smartio_nvme_ring(q);
		fake.stopped = false;
		if (at % 2 == 0)
			another_manager();
		else
			fake_lose(way(q->leg));
		fake.calls = 0;
		fake.fail_at = 1 + at++ / 2;
		for (unsigned i = 0, done = 0; done < DEPTH && i < 100000; i++) {
			struct smartio_nvme_completion c[DEPTH];
			int rc = smartio_nvme_poll(q, c, DEPTH);

			assert_true(rc >= 0);
			done += (unsigned)rc;
			fake.now += 10000;
			fake_step();
			if (fake.served) { /* what failed was the manager's */
				fake.served = 0;
				fake.fail_at = 0;
				another_manager();
			}
		}
		hit = fake.calls >= fake.fail_at && fake.fail_at;
		failed += hit;
		fake.fail_at = 0;
		for (unsigned i = 0; i < 4; i++)
			assert_read(b, i);
		fill_media();
	} while (at < 60);
	print_message("# %lu of %lu calls failed (counted)\n", failed, at);
	assert_true(failed > 12);
	smartio_nvme_close(n);
}

/* The same of the way home, with all that a borrow needs again. */
static void each_call_of_the_way_home_fails_once(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK), *more;
	unsigned long at = 0;

	(void)state;
	fill_media();
	do {
		fake_lose(way(n));
		put(q, b, false, 1);
		assert_int_equal(poll_all(q, 1), 0);
		assert_read(b, 1);
		more = buffer(n, BLOCK); /* while one way is lost */
		fake.calls = 0;
		fake.fail_at = ++at;
		for (unsigned i = 0; i < 200 && !fake.served; i++) {
			put(q, b, false, 2);
			assert_int_equal(poll_all(q, 1), 0);
			assert_read(b, 2);
			fake.now += 10000000;
		}
		fake.fail_at = 0;
		if (fake.served) {
			fake.served = 0;
			another_manager();
		}
		go_home(n, q, b);
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 3, 1, more, 0, (void *)1));
		assert_int_equal(poll_all(q, 1), 0);
		assert_ok(smartio_nvme_buffer_free(more));
	} while (fake.calls >= at);
	print_message("# %lu calls failed (counted)\n", at - 1);
	assert_true(at > 20);
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_other_way_takes_over_and_home_takes_back),
		TEST(two_queues_use_both_ways),
		TEST(the_second_way_may_be_down_at_first),
		TEST(buffers_are_made_over_what_is_left),
		TEST(a_vector_is_enough),
		TEST(closed_on_the_way_home),
		TEST(a_command_that_does_not_end_keeps_it_where_it_is),
		TEST(a_lock_that_is_held_keeps_no_commands_back),
		TEST(without_a_manager_that_answers_it_stays_where_it_is),
		TEST(what_is_asked_goes_over_the_way_that_is_left),
		TEST(both_ways_lost_is_the_end),
		TEST(both_ways_lost_is_the_end_though_one_is_back),
		TEST(no_queue_without_a_way),
		TEST(each_call_of_a_renewal_fails_once),
		TEST(each_call_of_the_way_home_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
