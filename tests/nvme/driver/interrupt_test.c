/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion by interrupt, over the drive model: waits, mixtures with polling, failures, ends. */
#include "client.h"
#include "common.h"
#include "smartio/ext.h"

static struct smartio_nvme_queue *quiet(struct smartio_nvme *n, uint32_t depth)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = depth, .flags = SMARTIO_NVME_INTERRUPT};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static struct smartio_nvme_queue *hybrid(struct smartio_nvme *n, uint32_t poll_us)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o),
					       .depth = 4,
					       .flags =
						       SMARTIO_NVME_INTERRUPT | SMARTIO_NVME_HYBRID,
					       .poll_us = poll_us};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	q->patience = 0; /* the fake drive goes on when somebody yields */
	return q;
}

static uint64_t interrupts(const struct smartio_nvme_queue *q)
{
	struct smartio_nvme_counters c;

	smartio_nvme_queue_counters(q, &c);
	return c.interrupts;
}

static void each_command_is_told_of(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = quiet(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;

	(void)state;
	for (unsigned i = 0; i < 50; i++) { /* past a wrap, too */
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, i, 1, b, 0, NULL));
		assert_int_equal(smartio_nvme_wait(q, UINT32_MAX), 1);
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 1);
		assert_int_equal(c.status, 0);
	}
	assert_int_equal(interrupts(q), 50);
	assert_int_equal(fake.raised, 50);
	smartio_nvme_close(n);
}

/* What is there already needs no interrupt, and one that is late is not taken for another. */
static void waits_and_polls_mix(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = quiet(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	assert_int_equal(smartio_nvme_wait(q, 0), 0);
	assert_int_equal(smartio_nvme_wait(q, 350), 0); /* nothing is in flight */
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	smartio_nvme_ring(q);
	for (unsigned i = 0; i < 5; i++)
		fake_step();
	assert_int_equal(smartio_nvme_wait(q, 0), 1);
	assert_int_equal(interrupts(q), 0);
	assert_int_equal(one(q).status, 0);
	/* The interrupt of before wakes this wait, which goes on. */
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	assert_int_equal(smartio_nvme_wait(q, 1000), 1);
	assert_int_equal(interrupts(q), 2);
	assert_int_equal(one(q).status, 0);
	assert_int_equal(smartio_nvme_wait(q, 0), 0);
	smartio_nvme_close(n);
}

static void blocking_helpers_sleep(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = quiet(n, 4);
	uint8_t out[8192], in[8192];
	struct smartio_nvme_counters c;

	(void)state;
	for (unsigned i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7);
	assert_ok(smartio_nvme_write(q, out, 512, sizeof(out)));
	assert_ok(smartio_nvme_read(q, in, 512, sizeof(in)));
	assert_ok(smartio_nvme_flush(q));
	assert_memory_equal(out, in, sizeof(out));
	smartio_nvme_queue_counters(q, &c);
	assert_int_equal(c.interrupts, 3);
	assert_true(c.empty_polls <= 3); /* one look before each wait */
	assert_int_equal(c.yields, 0);
	/* A drive that says nothing. */
	fake.stopped = true;
	assert_int_equal(smartio_nvme_read(q, in, 0, 512), -ETIMEDOUT);
	fake.stopped = false;
	smartio_nvme_close(n);
}

/* A command that is waited for. */
static void wait_for_one(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b)
{
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	assert_int_equal(smartio_nvme_wait(q, UINT32_MAX), 1);
	assert_int_equal(one(q).status, 0);
	q->patience = 0;
}

static void a_hybrid_wait_polls_first(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = hybrid(n, 1000);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_counters c;

	(void)state;
	for (unsigned i = 0; i < 50; i++)
		wait_for_one(q, b);
	smartio_nvme_queue_counters(q, &c);
	assert_int_equal(c.waits_polled, 50);
	assert_int_equal(c.waits_slept, 0);
	assert_int_equal(c.interrupts, 0);
	assert_true(c.yields >= 50);
	smartio_nvme_close(n);
}

/* What polling does not find in time is slept for, behind an interrupt of before. */
static void then_it_sleeps(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = hybrid(n, 1);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_counters c;
	uint64_t before;

	(void)state;
	fake.unyielding = true;
	q->patience = 1u << 30;
	for (unsigned i = 1; i <= 20; i++) {
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
		before = fake.now;
		assert_int_equal(smartio_nvme_wait(q, UINT32_MAX), 1);
		assert_true(fake.now - before >= 1000);
		assert_int_equal(interrupts(q), i);
		assert_int_equal(one(q).status, 0);
		q->patience = 1u << 30;
	}
	smartio_nvme_queue_counters(q, &c);
	assert_int_equal(c.waits_slept, 20);
	assert_int_equal(c.waits_polled, 0);
	assert_int_equal(c.yields, 20); /* once before each sleep at least */
	fake.unyielding = false;
	smartio_nvme_close(n);
}

/* A time-out is kept while it polls, and what ends the queue is seen. */
static void a_hybrid_wait_ends(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = hybrid(n, UINT32_MAX);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	uint64_t before = fake.now;

	(void)state;
	assert_int_equal(smartio_nvme_wait(q, 0), 0);
	assert_int_equal(smartio_nvme_wait(q, 3), 0);
	assert_in_range(fake.now - before, 3000000, 3100000);
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	assert_int_equal(smartio_nvme_wait(q, 2), 0);
	fake_reset_device();
	assert_int_equal(smartio_nvme_wait(q, UINT32_MAX), -ECONNRESET);
	fake.stopped = false;
	smartio_nvme_close(n);
	stop_manager();
	start_manager();
}

/*
 * Where a sleep is measured, an interrupt that is left is taken before: the completion comes just
 * then, and its interrupt is taken, too. The wait finds it, and does not sleep.
 */
static void a_wait_that_measures_misses_nothing(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = hybrid(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_counters c;
	uint64_t before = fake.now;

	(void)state;
	fake.goes_on = 20;
	for (unsigned i = 0; i < 50; i++)
		wait_for_one(q, b);
	assert_in_range(fake.now - before, 0, 10000000); /* none slept for its 50 ms */
	smartio_nvme_queue_counters(q, &c);
	assert_int_equal(c.waits_slept, 0);
	assert_int_equal(c.waits_polled, 50);
	assert_int_equal(c.interrupts, 50);
	fake.goes_on = 0;
	smartio_nvme_close(n);
}

static void a_hybrid_queue_measures(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = hybrid(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_counters c;

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		wait_for_one(q, b);
	smartio_nvme_queue_counters(q, &c);
	assert_int_equal(c.waits_slept, 4);
	assert_int_equal(c.waits_polled, 4);
	/* Each of the four slept: interrupts of before were taken. */
	assert_true(c.interrupts >= 4);
	smartio_nvme_close(n);
}

static void wrong_options_are_refused(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_HYBRID};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;

	(void)state;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("hybrid is for queues with one (flag 0x1)");
	o.flags = SMARTIO_NVME_INTERRUPT;
	o.poll_us = 10;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("poll_us is for hybrid queues (flag 0x10)");
	o.poll_us = 0;
	o.reserved = 1;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("reserved");
	smartio_nvme_close(n);
}

static void queues_without_one_cannot_wait(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);

	(void)state;
	assert_int_equal(smartio_nvme_wait(q, 0), -EINVAL);
	assert_text("without an interrupt");
	assert_int_equal(interrupts(q), 0);
	smartio_nvme_close(n);
}

static void vectors_run_out_and_come_back(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_INTERRUPT};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[4];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		q[i] = quiet(n, 4);
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q[3]), -EBUSY);
	assert_text("all interrupt vectors of nvme0 are taken");
	q[3] = queue(n, 4); /* a polled one still comes */
	smartio_nvme_queue_close(q[3]);
	smartio_nvme_queue_close(q[1]);
	q[1] = quiet(n, 4);
	assert_int_equal(q[1]->vector, 2);
	smartio_nvme_close(n);
}

static void a_wait_notices_a_reset(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = quiet(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	assert_int_equal(smartio_nvme_wait(q, 5), 0);
	fake_reset_device();
	assert_int_equal(smartio_nvme_wait(q, UINT32_MAX), -ECONNRESET);
	fake.stopped = false;
	smartio_nvme_close(n);
	stop_manager();
	start_manager();
}

/* Vectors come from clients: the manager asks for what they say, and the drive knows its own. */
static void wrong_vectors_are_refused(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = quiet(n, 4);
	struct sio_nvme_req req = {.op = SIO_NVME_OP_CREATE,
				   .create = {.sq = q->sq_mem->ioaddr,
					      .cq = q->cq_mem->ioaddr,
					      .sq_entries = 5,
					      .cq_entries = 5}};
	struct sio_nvme_rep *rep = calloc(1, sizeof(*rep));
	unsigned holds = fake_holds();

	(void)state;
	assert_int_equal(q->vector, 1);
	sio_nvme_lock(n);
	req.vector = 0x10001;
	assert_int_equal(sio_nvme_ask(n, &req, rep, NULL), -EINVAL);
	assert_text("interrupt vector 65537");
	req.vector = 4;
	assert_int_equal(sio_nvme_ask(n, &req, rep, NULL), -EIO);
	assert_text("vector");
	sio_nvme_unlock(n);
	assert_int_equal(fake_holds(), holds);
	free(rep);
	smartio_nvme_close(n);
}

/* Each call fails once: the queue opens, or nothing of it is left. */
static void each_failure_leaves_nothing(void **state)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .flags = SMARTIO_NVME_INTERRUPT};
	struct smartio_nvme *n = client();
	unsigned failures = 0;

	(void)state;
	for (unsigned long i = 1;; i++) {
		struct smartio_nvme_queue *q = NULL;
		unsigned long before = fake.calls;
		int rc;

		fake.fail_at = before + i;
		rc = smartio_nvme_queue_open(n, &o, &q);
		fake.fail_at = 0;
		if (rc == 0)
			smartio_nvme_queue_close(q);
		else
			failures++;
		if (fake.calls < before + i)
			break;
	}
	assert_true(failures >= 3);
	/* A reset takes away what the drive may have of those whose reply was lost. */
	stop_manager();
	start_manager();
	smartio_nvme_close(n);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_command_is_told_of),
		TEST(waits_and_polls_mix),
		TEST(blocking_helpers_sleep),
		TEST(queues_without_one_cannot_wait),
		TEST(vectors_run_out_and_come_back),
		TEST(a_wait_notices_a_reset),
		TEST(wrong_vectors_are_refused),
		TEST(each_failure_leaves_nothing),
		TEST(a_hybrid_wait_polls_first),
		TEST(then_it_sleeps),
		TEST(a_hybrid_wait_ends),
		TEST(a_wait_that_measures_misses_nothing),
		TEST(a_hybrid_queue_measures),
		TEST(wrong_options_are_refused),
	};

	return cmocka_run_group_tests_name("nvme driver: interrupts", tests, NULL, NULL);
}
