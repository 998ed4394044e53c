/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues that still have something of a path that was lost: they are dead, or nobody polls them.
 * The path is made anew all the same, for the queues that are used, and these find later what
 * became of them.
 */
#include <errno.h>

#include "smartio/ext.h"
#include "surviving.h"

static struct smartio_nvme_queue *mortal(struct smartio_nvme *n)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = DEPTH};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static void lose(const struct smartio_nvme *n)
{
	fake.down = 1;
	fake_lose(way(n));
}

/* The first way is lost, and @q goes on over the other; it comes back, and @q goes home. */
static void come_home(struct smartio_nvme *n, struct smartio_nvme_queue *q,
		      struct smartio_nvme_buffer *b)
{
	put(q, b, false, 0);
	assert_int_equal(poll_all(q, 1), 0);
	assert_ptr_equal(q->leg, n->second);
	fake.down = 0;
	go_home(n, q, b);
}

static unsigned remains(const struct smartio_nvme *n)
{
	unsigned all = 0;

	for (const struct smartio_nvme *old = n->gone; old; old = old->gone)
		all++;
	return all;
}

/* Not polled before, or polled: nothing but its close is to come. */
static void a_dead_queue_keeps_its_path_from_nothing(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0), *dead, *next;
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	int rc;

	(void)state;
	fill_media();
	for (unsigned polled = 0; polled < 2; polled++) {
		dead = mortal(n);
		assert_ptr_equal(dead->leg, n);
		fake.stopped = true;
		for (unsigned i = 4; i < DEPTH; i++)
			put(dead, b, false, i);
		smartio_nvme_ring(dead);
		lose(n);
		if (polled)
			assert_int_equal(smartio_nvme_poll(dead, &c, 1), -ECONNRESET);
		fake.stopped = false;
		come_home(n, q, b);
		assert_int_equal(remains(n), 1);
		/* What the drive did of it before it was deleted. */
		while (!polled && (rc = smartio_nvme_poll(dead, &c, 1)) == 1)
			assert_int_equal(c.status, 0);
		assert_int_equal(smartio_nvme_poll(dead, &c, 1), -ECONNRESET);
		assert_int_equal(smartio_nvme_submit(dead, SMARTIO_NVME_READ, 0, 1, b, 0, NULL),
				 -ECONNRESET);
		next = mortal(n);
		put(next, b, false, 5);
		assert_int_equal(poll_all(next, 1), 0);
		assert_read(b, 5);
		smartio_nvme_queue_close(next);
		assert_int_equal(remains(n), 1);
		smartio_nvme_queue_close(dead);
		assert_int_equal(remains(n), 0);
	}
	assert_int_equal(fake_counter("queue_pairs"), 1);
	smartio_nvme_close(n);
}

/* What was in flight in it is read again when somebody polls it, over the path as it is by then. */
static void an_idle_queue_keeps_its_path_from_nothing(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *idle = surviving(n, 0), *other = surviving(n, 0);
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fill_media();
	assert_ptr_equal(idle->leg, n);
	assert_ptr_equal(other->leg, n->second);
	assert_ptr_equal(q->leg, n);
	for (unsigned round = 0; round < 4; round++) {
		fake.stopped = true;
		for (unsigned i = 4; i < DEPTH; i++)
			put(idle, b, false, i);
		if (round & 1) /* the drive may do them before the pair is deleted */
			smartio_nvme_ring(idle);
		lose(n);
		fake.stopped = false;
		come_home(n, q, b);
		/* Twice while nobody polls it: that of the second time was never its own. */
		if (round & 2) {
			lose(n);
			come_home(n, q, b);
		}
		assert_int_equal(remains(n), 1);
		assert_int_equal(poll_all(idle, 4), 0);
		for (unsigned i = 4; i < DEPTH; i++)
			assert_read(b, i);
		put(idle, b, false, 2);
		assert_int_equal(poll_all(idle, 1), 0);
		assert_ptr_equal(idle->leg, n);
		for (unsigned i = 0; i < 1000 && n->gone; i++) {
			put(q, b, false, 1);
			assert_int_equal(poll_all(q, 1), 0);
			fake.now += 1000000;
		}
		assert_int_equal(remains(n), 0);
	}
	assert_int_equal(fake_counter("queue_pairs"), 3);
	smartio_nvme_close(n);
}

/* It survived until it had waited for too long. */
static void a_queue_that_has_ended_keeps_its_path_from_nothing(void **state)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .flags = SMARTIO_NVME_SURVIVE, .survive_ms = 1};
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme_queue *ended = NULL, *other, *q;
	struct smartio_nvme_completion c;
	int rc = 0;

	(void)state;
	fill_media();
	assert_ok(smartio_nvme_queue_open(n, &o, &ended));
	other = surviving(n, 0);
	q = surviving(n, 0);
	assert_ptr_equal(ended->leg, n);
	assert_ptr_equal(q->leg, n);
	lose(n);
	fake.manager = NULL;
	for (unsigned i = 0; i < 1000 && rc == 0; i++) {
		rc = smartio_nvme_poll(ended, &c, 1);
		fake.now += 1000000;
	}
	assert_true(rc < 0);
	assert_int_equal(ended->life->state, SIO_NVME_OVER);
	fake.manager = m;
	put(other, b, false, 0);
	assert_int_equal(poll_all(other, 1), 0);
	put(q, b, false, 0);
	assert_int_equal(poll_all(q, 1), 0);
	fake.down = 0;
	go_home(n, q, b);
	assert_int_equal(remains(n), 1);
	assert_true(smartio_nvme_poll(ended, &c, 1) < 0);
	smartio_nvme_queue_close(ended);
	assert_int_equal(remains(n), 0);
	/* Before it the requests are taken back that nobody answered. */
	smartio_nvme_queue_close(mortal(n));
	smartio_nvme_close(n);
}

/* The client ends first: nothing of it is left, which the teardown counts. */
static void a_client_ends_with_what_remains(void **state)
{
	struct smartio_nvme *n = two_ways();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	mortal(n);
	surviving(n, 0);
	surviving(n, 0);
	for (unsigned i = 0; i < 3; i++) {
		lose(n);
		come_home(n, q, b);
	}
	assert_true(remains(n) >= 1);
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_dead_queue_keeps_its_path_from_nothing),
		TEST(an_idle_queue_keeps_its_path_from_nothing),
		TEST(a_queue_that_has_ended_keeps_its_path_from_nothing),
		TEST(a_client_ends_with_what_remains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
