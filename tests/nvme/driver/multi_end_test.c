/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several submission queues that complete in one completion queue (NVMe 1.4, section 4.1), over the
 * drive model: in which order they end, and what becomes of them when client, manager or drive do
 * not do as they should.
 */
#include "submitters.h"

/* ---- ends ---- */
/* In each order: who is left goes on, and after the last nothing is left. */
static void they_are_closed_in_any_order_5_5(void **state)
{
	static const unsigned order[][MEMBERS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
						  {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	(void)state;
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q[MEMBERS];
		uint8_t data[BLOCK];

		open_three(n, 4, q);
		for (unsigned k = 0; k < MEMBERS; k++) {
			smartio_nvme_queue_close(q[order[i][k]]);
			for (unsigned left = k + 1; left < MEMBERS; left++)
				assert_ok(smartio_nvme_read(q[order[i][left]], data, 0, BLOCK));
		}
		assert_null(n->kept);
		assert_int_equal(pairs_taken(), 0);
		assert_int_equal(fake_holds(), 0);
		smartio_nvme_close(n);
	}
	assert_int_equal(fake_csts(), 1);
}

/* The one with the completion queue is closed: it stays for the others, who can be more yet. */
static void the_completion_queue_lives_until_the_last_ends(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS], *other;
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	smartio_nvme_queue_close(q[0]);
	assert_int_equal(pairs_taken(), MEMBERS);
	other = queue(n, 4); /* which is no reason to delete it */
	smartio_nvme_queue_close(q[2]);
	assert_int_equal(pairs_taken(), 3);
	for (unsigned i = 0; i < 20; i++)
		assert_ok(smartio_nvme_read(q[1], data, i * BLOCK, BLOCK));
	smartio_nvme_queue_close(q[1]);
	assert_int_equal(pairs_taken(), 1);
	assert_ok(smartio_nvme_read(other, data, 0, BLOCK));
	smartio_nvme_close(n);
}

/* Its commands do not come back: the drive may do them yet, so no queue is made before it ends. */
static void a_busy_one_is_waited_for_by_the_next_queue(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS], *none;
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	open_three(n, 4, q);
	fake_fault(DROP, SMARTIO_NVME_READ, 1, 0);
	put(q[0], b, 0);
	smartio_nvme_queue_close(q[0]); /* waits, in vain */
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	assert_int_equal(smartio_nvme_queue_open(n, NULL, &none), -EBUSY);
	assert_text("commands of queue pair 1, which is closed, did not come back");
	smartio_nvme_queue_close(q[1]);
	smartio_nvme_queue_close(q[2]);
	assert_int_equal(pairs_taken(), 0);
	assert_ok(smartio_nvme_buffer_free(b));
	none = queue(n, 4);
	smartio_nvme_close(n);
}

/*
 * A queue is deleted with commands in the drive: their completions are dropped, also those that
 * come with the deletion (status 08h), and the number's next queue hears of none.
 */
static void a_deleted_queues_completions_reach_nobody_5_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;
	uint32_t id;

	(void)state;
	open_three(n, 4, q);
	for (unsigned round = 0; round < 5; round++) {
		fake_fault(DELAY, SMARTIO_NVME_READ, 3, 100000 * MS);
		for (uint64_t i = 0; i < 3; i++)
			put(q[1], b, i);
		id = smartio_nvme_queue_id(q[1]);
		smartio_nvme_queue_close(q[1]); /* for as long as it waits, they do not come */
		fake_fault(NOTHING, 0, 0, 0);
		q[1] = more(q[0], 4);
		assert_int_equal(smartio_nvme_queue_id(q[1]), id);
		assert_int_equal(smartio_nvme_poll(q[0], &c, 1), 0);
		put(q[1], b, 7);
		assert_int_equal(next(q[2], &c), 1);
		assert_int_equal((uintptr_t)c.cookie, 8);
		assert_int_equal(c.status, 0);
	}
	smartio_nvme_close(n);
}

static void a_reset_ends_all(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS], *none;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_queue_options o;
	struct smartio_nvme_completion c;
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	fake.stopped = true;
	put(q[2], b, 0);
	smartio_nvme_ring(q[2]);
	fake_reset_device();
	fake.stopped = false;
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_int_equal(smartio_nvme_poll(q[i], &c, 1), -ECONNRESET);
	assert_int_equal(smartio_nvme_submit(q[1], SMARTIO_NVME_READ, 0, 1, b, 0, NULL),
			 -ECONNRESET);
	assert_int_equal(smartio_nvme_read(q[1], data, 0, BLOCK), -ECONNRESET);
	o = more_options(q[0], 2);
	assert_int_equal(smartio_nvme_queue_open(n, &o, &none), -ECONNRESET);
	stop_manager();
	start_manager();
	smartio_nvme_queue_close(q[0]); /* closed before those that completed there */
	none = queue(n, 4);
	assert_ok(smartio_nvme_read(none, data, 0, BLOCK));
	smartio_nvme_close(n);
}

/* The slot where the next completion goes. */
static void complete(const struct smartio_nvme_queue *q, uint32_t cid, uint32_t sq)
{
	volatile uint32_t *e = (volatile uint32_t *)q->multi->cqe;

	e[2] = sq << 16;
	e[3] = cid | (uint32_t)(q->multi->phase >> 48 & 1) << 16;
}

static void completions_that_cannot_be_end_all(void **state)
{
	/* Of the drive's ids: 4 is nobody's, 5 and more are not there. */
	static const struct {
		uint32_t cid, sq;
	} bad[] = {{0, 4}, {0, 5}, {0, 0xffff}, {0, 0}, {1, 2}, {8, 2}, {0xffff, 2}, {0, 1}};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q[MEMBERS];
		struct smartio_nvme_buffer *b = buffer(n, 4096);
		struct smartio_nvme_completion c;

		open_three(n, 4, q);
		fake.stopped = true;
		put(q[1], b, 0);
		smartio_nvme_ring(q[1]);
		complete(q[0], bad[i].cid, bad[i].sq);
		for (unsigned k = 0; k < MEMBERS; k++) {
			assert_int_equal(smartio_nvme_poll(q[k], &c, 1), -EPROTO);
			assert_int_equal(
				smartio_nvme_submit(q[k], SMARTIO_NVME_READ, 0, 1, b, 0, NULL),
				-EPROTO);
		}
		fake.stopped = false;
		smartio_nvme_close(n);
	}
}

static void time_outs_are_each_ones_own_5_1(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 16), *limited, *free;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_queue_options o = more_options(first, 4);
	struct smartio_nvme_completion c;
	const uint64_t before = fake.now;

	(void)state;
	o.timeout_ms = LIMIT_MS;
	limited = open_with(n, &o);
	free = more(first, 4);
	/* Late: aborted, and only its submitter is told. */
	fake_fault(DELAY, SMARTIO_NVME_READ, 1, 60000 * MS);
	put(limited, b, 0);
	put(free, b, 1);
	assert_int_equal(next(first, &c), 1);
	assert_int_equal((uintptr_t)c.cookie, 2);
	assert_int_equal(next(first, &c), 1);
	assert_int_equal((uintptr_t)c.cookie, 1);
	assert_int_equal(c.status, ABORTED);
	assert_true(fake.now - before <= LIMIT_MS * MS * 3 / 2);
	/* Lost: it ends, and so do those whose completions would be looked for beside it. */
	fake_fault(DROP, SMARTIO_NVME_READ, 1, 0);
	put(limited, b, 0);
	assert_int_equal(next(free, &c), -ETIMEDOUT);
	assert_text("queue pair 3 of nvme0 has ended with queue pair 2");
	assert_int_equal(smartio_nvme_poll(limited, &c, 1), -ETIMEDOUT);
	assert_text("did not come back within 400 ms");
	assert_int_equal(counted(limited).overdue, 1);
	for (unsigned i = 0; i < 3; i++)
		smartio_nvme_queue_close(i == 0 ? first : i == 1 ? limited : free);
	assert_null(n->kept);
	assert_int_equal(pairs_taken(), 0);
	smartio_nvme_close(n);
}

/* A command that is lost is found although completions of others come all the time. */
static void traffic_of_others_hides_no_lost_command(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 8), *limited;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_queue_options o = more_options(first, 4);
	struct smartio_nvme_completion c;
	const uint64_t before = fake.now;
	int rc = 0;

	(void)state;
	o.timeout_ms = LIMIT_MS;
	limited = open_with(n, &o);
	fake_fault(DROP, SMARTIO_NVME_READ, 1, 0);
	put(limited, b, 0);
	while (rc >= 0 && fake.now - before < 10 * LIMIT_MS * MS) {
		int taken = smartio_nvme_submit(first, SMARTIO_NVME_READ, 1, 1, b, 0, NULL);

		if (taken != -EAGAIN && taken != 0)
			break;
		rc = smartio_nvme_poll(first, &c, 1);
		fake.now += MS / 4;
		fake_step();
	}
	assert_int_equal(smartio_nvme_poll(first, &c, 1), -ETIMEDOUT);
	assert_true(fake.now - before < 3 * LIMIT_MS * MS);
	smartio_nvme_close(n);
}

/* ---- death ---- */
static void a_killed_client_leaves_nothing(void **state)
{
	struct smartio_nvme *n = client(), *other;
	const uint64_t id = smartio_borrower_id(n->d.handle);
	struct smartio_nvme_queue *q[MEMBERS], *others;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	other = client();
	others = queue(other, 4);
	for (unsigned i = 0; i < 4 * MEMBERS; i++)
		put(q[i % MEMBERS], b, i);
	for (unsigned i = 0; i < MEMBERS; i++)
		smartio_nvme_ring(q[i]);
	fake_kill(id);
	assert_true(fake_quarantined() > 0);
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake_csts(), 1);
	assert_int_equal(pairs_taken(), 1);
	assert_int_equal(fake_holds(), 2);
	assert_ok(smartio_nvme_read(others, data, 0, BLOCK));
	smartio_nvme_close(n);
	fake_bury(id);
	/* The numbers are free. */
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_ok(smartio_nvme_read(queue(other, 4), data, 0, BLOCK));
	smartio_nvme_close(other);
}

/* The manager's end, and that of another one later; a stopped one that goes on. */
static void what_nobody_could_delete_is_deleted_later(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	fake.manager = NULL; /* stopped */
	smartio_nvme_queue_close(q[1]);
	assert_non_null(n->kept);
	assert_ok(smartio_nvme_read(q[2], data, 0, BLOCK));
	smartio_nvme_queue_close(q[0]);
	assert_ok(smartio_nvme_read(q[2], data, 0, BLOCK));
	fake.manager = m; /* has its old requests, which it serves now */
	smartio_nvme_queue_close(q[2]);
	q[0] = queue(n, 4);
	assert_null(n->kept);
	assert_int_equal(pairs_taken(), 1);
	assert_ok(smartio_nvme_read(q[0], data, 0, BLOCK));
	smartio_nvme_close(n);
}

/* A closed queue's number may be another's of the same completion queue before it is forgotten. */
static void a_number_comes_back_to_the_same_completion_queue(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 16), *gone = more(first, 4), *again;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	const uint32_t id = smartio_nvme_queue_id(gone);
	uint8_t data[BLOCK];

	(void)state;
	put(gone, b, 3);
	smartio_nvme_ring(gone);
	fake.manager = NULL;
	smartio_nvme_queue_close(gone);
	assert_non_null(n->kept);
	fake.manager = m;
	again = more(first, 4); /* deletes that one before */
	assert_int_equal(smartio_nvme_queue_id(again), id);
	for (unsigned i = 0; i < 20; i++) {
		assert_ok(smartio_nvme_read(again, data, i * BLOCK, BLOCK));
		assert_ok(smartio_nvme_read(first, data, i * BLOCK, BLOCK));
	}
	smartio_nvme_queue_close(first);
	assert_ok(smartio_nvme_read(again, data, 0, BLOCK));
	smartio_nvme_queue_close(again);
	assert_null(n->kept);
	assert_int_equal(pairs_taken(), 0);
	smartio_nvme_close(n);
}

static void what_is_kept_at_the_end_goes_to_the_next_manager(void **state)
{
	struct smartio_nvme_manager *dead = fake.manager;
	const uint64_t id = fake_last_borrower();
	struct smartio_nvme *n = client();
	const uint64_t mine = fake_last_borrower();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	open_three(n, 4, q);
	fake.manager = NULL;
	fake_kill(id);
	smartio_nvme_manager_close(dead);
	fake.stopped = true;
	for (unsigned i = 0; i < MEMBERS; i++) {
		put(q[i], b, i);
		smartio_nvme_ring(q[i]);
	}
	smartio_nvme_queue_close(q[0]);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	smartio_nvme_close(n);
	fake_kill(mine);
	fake.stopped = false;
	fake_step();
	assert_int_equal(fake.faults, 0);
	assert_true(fake_quarantined() > 0);
	start_manager();
	assert_int_equal(fake_quarantined(), 0);
	fake_bury(mine);
}

/* Return: how much the manager has then. */
static unsigned have_second_path(void)
{
	struct smartio_nvme_manager_status status = {0};

	while (!status.second_path) {
		fake_step();
		smartio_nvme_manager_get_status(fake.manager, &status);
	}
	return fake.objects;
}

/* Each call that can fail does, once: nothing is lost, and nobody else notices. */
static void whatever_fails_leaves_nothing(void **state)
{
	bool all = false;

	(void)state;
	for (unsigned long k = 1; !all; k++) {
		/* The manager has what it wants, and the client what it has of its own. */
		const unsigned objects = have_second_path();
		struct smartio_nvme *n = client();
		const uint64_t mine = smartio_borrower_id(n->d.handle);
		struct smartio_nvme_queue *first = first_of(n, 4, 8), *q = NULL;
		const struct smartio_nvme_queue_options o = more_options(first, 4);
		uint8_t data[BLOCK];

		fake.fail_at = fake.calls + k;
		all = smartio_nvme_queue_open(n, &o, &q) == 0 && fake.calls < fake.fail_at;
		fake.fail_at = 0;
		if (fake.served) { /* it was the manager's */
			stop_manager();
			fake.served = 0;
			start_manager();
			smartio_nvme_close(n);
		} else {
			assert_ok(smartio_nvme_read(first, data, 0, BLOCK));
			smartio_nvme_close(n);
		}
		/* It does not know whether its request was served: its end settles that. */
		if (fake.objects != objects) {
			fake_kill(mine);
			for (unsigned i = 0; i < 20; i++)
				fake_step();
			fake_bury(mine);
		}
		assert_int_equal(pairs_taken(), 0);
		assert_int_equal(fake_quarantined(), 0);
		assert_true(k < 200);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(they_are_closed_in_any_order_5_5),
		TEST(the_completion_queue_lives_until_the_last_ends),
		TEST(a_busy_one_is_waited_for_by_the_next_queue),
		TEST(a_deleted_queues_completions_reach_nobody_5_6),
		TEST(a_reset_ends_all),
		TEST(completions_that_cannot_be_end_all),
		TEST(time_outs_are_each_ones_own_5_1),
		TEST(traffic_of_others_hides_no_lost_command),
		TEST(a_killed_client_leaves_nothing),
		TEST(what_nobody_could_delete_is_deleted_later),
		TEST(a_number_comes_back_to_the_same_completion_queue),
		TEST(what_is_kept_at_the_end_goes_to_the_next_manager),
		TEST(whatever_fails_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
