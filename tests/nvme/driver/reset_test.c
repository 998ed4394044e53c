/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues whose drive is reset by others, or does nothing more. */
#include "client.h"
#include "common.h"

static void reset_by_others_ends_manager_and_queues(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;

	(void)state;
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	fake_reset_device();
	fake.stopped = false;
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ECONNRESET);
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL), -ECONNRESET);
	assert_ok(smartio_nvme_buffer_free(b));
	fake_step();
	assert_int_equal(fake.served, -EIO);
	smartio_nvme_close(n);
}

static void stale_queue_does_not_ring(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	fake_reset_device();
	*q->sq_doorbell = 0;
	smartio_nvme_ring(q);
	assert_int_equal(*q->sq_doorbell, 0);
	smartio_nvme_close(n);
}

/* What was completed before a reset is not acknowledged to the drive that there is now. */
static void stale_completions_are_not_acknowledged(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c[4];

	(void)state;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	fake_step();
	fake_reset_device();
	*q->cq_doorbell = 77;
	smartio_nvme_poll(q, c, 4);
	assert_int_equal(*q->cq_doorbell, 77);
	smartio_nvme_close(n);
}

/* A queue with commands that never end: it is closed all the same, and its memory is kept. */
static void closing_ends_without_an_answer(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	uint64_t began = fake.now;

	(void)state;
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	smartio_nvme_queue_close(q);
	assert_true(fake.now - began < 120000000000u);
	fake_reset_device();
	fake.stopped = false;
	smartio_nvme_close(n);
}

/*
 * Whoever was stopped between the look at the generation and his store, while another manager gave
 * his queue's number to another client.
 */
static void who_rings_late_rings_for_nobody(void **state)
{
	struct smartio_nvme *n = client(), *next;
	struct smartio_nvme_queue *q = queue(n, 8), *theirs;
	struct smartio_nvme_completion c;
	uint8_t data[512];

	(void)state;
	stop_manager();
	start_manager();
	next = client();
	theirs = queue(next, 8);
	assert_int_equal(smartio_nvme_queue_id(theirs), smartio_nvme_queue_id(q));
	assert_ok(smartio_nvme_read(theirs, data, 0, sizeof(data)));
	*q->sq_doorbell = 5;
	*q->cq_doorbell = 7;
	fake_step();
	assert_int_equal(*theirs->sq_doorbell, 1);
	assert_int_equal(*theirs->cq_doorbell, 1);
	assert_int_equal(fake_counter("invalid_doorbells"), 0);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ECONNRESET);
	assert_ok(smartio_nvme_read(theirs, data, 0, sizeof(data)));
	smartio_nvme_close(n);
	smartio_nvme_close(next);
}

/* Queues keep the doorbells of their time, for as long as there is one. */
static void later_queues_have_other_doorbells(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *old[2] = {queue(n, 4), queue(n, 4)}, *q;
	uint8_t data[512];

	(void)state;
	assert_ptr_equal(old[0]->doorbells, old[1]->doorbells);
	stop_manager();
	start_manager();
	q = queue(n, 4);
	assert_ptr_not_equal(q->doorbells, old[0]->doorbells);
	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	*old[0]->sq_doorbell = 3;
	smartio_nvme_queue_close(old[0]);
	*old[1]->sq_doorbell = 3; /* still mapped */
	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_queue_close(old[1]);
	assert_int_equal(fake_counter("invalid_doorbells"), 0);
	smartio_nvme_close(n);
}

/* The drive has the queues already: they are deleted, or kept until a reset. */
static void a_queue_without_doorbells_is_none(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;
	unsigned calls = 0, failed = 0;
	uint8_t data[512];
	int rc;

	(void)state;
	do {
		stop_manager();
		start_manager();
		fake.calls = 0;
		fake.fail_at = ++calls;
		rc = smartio_nvme_queue_open(n, &o, &q);
		fake.fail_at = 0;
		failed += rc < 0;
		if (rc == 0)
			smartio_nvme_queue_close(q);
		assert_int_equal(fake_counter("queue_pairs"), 0);
		q = queue(n, 4);
		assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
		smartio_nvme_queue_close(q);
	} while (rc < 0 || calls < 10);
	assert_true(failed > 0);
	smartio_nvme_close(n);
}

static void generation_told_late_is_waited_for(void **state)
{
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	uint8_t data[512];

	(void)state;
	n = client();
	q = queue(n, 4);
	stop_manager();
	fake.late_generation = true;
	start_manager();
	smartio_nvme_queue_close(q);
	q = queue(n, 4);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reset_by_others_ends_manager_and_queues),
		TEST(stale_queue_does_not_ring),
		TEST(stale_completions_are_not_acknowledged),
		TEST(closing_ends_without_an_answer),
		TEST(who_rings_late_rings_for_nobody),
		TEST(later_queues_have_other_doorbells),
		TEST(a_queue_without_doorbells_is_none),
		TEST(generation_told_late_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
