/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues in another host's memory than the data: a completion counts when the drive has
 * answered behind it, and no command is done whose data may still be on their way.
 */
#include "multi.h"
#include "smartio/ext.h"
#include "surviving.h"

static struct smartio_nvme_queue *far_queue(struct smartio_nvme *n, uint32_t depth, uint32_t flags)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o),
					       .depth = depth,
					       .flags = flags,
					       .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme_queue *q = NULL;

	fake.far = true;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	assert_true(q->flushes);
	return q;
}

/* Of four commands; @several: its completion queue may have several submission queues. */
static struct smartio_nvme_queue *far_queue_of(struct smartio_nvme *n, bool several)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o),
					       .depth = 4,
					       .cq_depth = several ? 8 : 0,
					       .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme_queue *q = NULL;

	fake.far = true;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

/* What stands where the doorbells were when the link is lost: ones, and what is stored there. */
static volatile uint32_t ones[1024];

static void all_ones(void)
{
	memset((void *)(uintptr_t)ones, 0xff, sizeof(ones));
}

static void lose_link(struct smartio_nvme_queue *q)
{
	volatile uint32_t *cq = ones + (2 * q->id + 1) * q->n->stride / 4;

	all_ones();
	q->doorbells->at = (volatile uint8_t *)ones;
	q->sq_doorbell = ones + 2 * q->id * q->n->stride / 4;
	if (q->multi)
		q->multi->doorbell = cq;
	q->cq_doorbell = cq;
}

/* The drive has done all that was submitted. */
static void drive_does(struct smartio_nvme_queue *q)
{
	smartio_nvme_ring(q);
	for (unsigned i = 0; i < 10; i++)
		fake_step();
}

/* More at a time than are taken at once, of which a poll takes less; around the queue's end. */
static void completions_come_in_order_as_ever(void **state)
{
	enum { MANY = 40 };
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = far_queue(n, MANY, 0);
	struct smartio_nvme_buffer *b = buffer(n, MANY * BLOCK);
	struct smartio_nvme_completion c[7];

	(void)state;
	fill_media();
	for (unsigned round = 0; round < 9; round++) {
		uint64_t seen = 0;
		unsigned left = MANY - round, max = 1 + round % 7;

		for (unsigned i = 0; i < left; i++)
			put(q, b, false, i);
		for (unsigned tries = 0; left > 0 && tries < 10000; tries++) {
			int got = smartio_nvme_poll(q, c, max);

			assert_in_range(got, 0, max);
			for (int i = 0; i < got; i++)
				seen |= 1ull << ((uintptr_t)c[i].cookie - 1);
			left -= (unsigned)got;
			fake_step();
		}
		assert_int_equal(left, 0);
		assert_int_equal(seen, (1ull << (MANY - round)) - 1);
		for (unsigned i = 0; i < MANY - round; i++)
			assert_read(b, i);
	}
	smartio_nvme_close(n);
}

static void who_sleeps_is_woken_by_them(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = far_queue(n, 4, SMARTIO_NVME_INTERRUPT);
	struct smartio_nvme_buffer *b = buffer(n, 4 * BLOCK);

	(void)state;
	fill_media();
	put(q, b, false, 1);
	assert_int_equal(smartio_nvme_wait(q, 1000), 1);
	one(q);
	assert_read(b, 1);
	assert_int_equal(smartio_nvme_wait(q, 1), 0);
	smartio_nvme_close(n);
}

/* Whether its data are here nobody knows: it is not done, and its buffer is the drive's. */
static void a_read_is_not_done_before_the_drive_has_answered(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = far_queue(n, 4, 0);
	struct smartio_nvme_buffer *b = buffer(n, 4 * BLOCK);
	struct smartio_nvme_completion c;
	struct smartio_nvme_counters counted;

	(void)state;
	put(q, b, false, 0);
	drive_does(q);
	lose_link(q);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ENETDOWN);
	assert_text(
		"nvme0, or the path to it, was lost while completions of queue pair 1 were read");
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ENETDOWN);
	smartio_nvme_queue_counters(q, &counted);
	assert_int_equal(counted.completed, 0);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	/* The manager is there, and deletes it. */
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_buffer_free(b));
	assert_int_equal(fake_counter("queue_pairs"), 0);
	smartio_nvme_close(n);
}

/* One that was here before is taken after the loss: what the client stores then is no answer. */
static void its_own_store_is_no_answer(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = far_queue(n, 4, 0);
	struct smartio_nvme_buffer *b = buffer(n, 4 * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fill_media();
	for (unsigned i = 0; i < 2; i++)
		put(q, b, false, i);
	drive_does(q);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), 1);
	put(q, b, false, 2);
	drive_does(q);
	lose_link(q);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), 1);
	assert_int_not_equal(*q->cq_doorbell, UINT32_MAX);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ENETDOWN);
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/*
 * The link was down and is up again before any daemon did something about it: the drive answers as
 * ever, and nobody knows what was dropped.
 */
static void no_answer_counts_after_a_link_was_down(void **state)
{
	(void)state;
	for (unsigned several = 0; several < 2; several++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_buffer *b = buffer(n, 4 * BLOCK);
		struct smartio_nvme_counters counted;
		struct smartio_nvme_queue *q;
		struct smartio_nvme_completion c;

		fill_media();
		q = far_queue_of(n, several);
		put(q, b, false, 0);
		one(q);
		put(q, b, false, 1);
		drive_does(q);
		fake.losses++;
		assert_int_equal(smartio_nvme_poll(q, &c, 1), -ENETDOWN);
		smartio_nvme_queue_counters(q, &counted);
		assert_int_equal(counted.completed, 1);
		assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
		smartio_nvme_queue_close(q);
		/* The next one begins with the link as it is. */
		q = far_queue_of(n, several);
		put(q, b, false, 2);
		one(q);
		assert_read(b, 2);
		smartio_nvme_close(n);
	}
}

/* Of the loss the library tells before the doorbells change. */
static void no_answer_counts_after_a_loss(void **state)
{
	(void)state;
	for (unsigned several = 0; several < 2; several++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_buffer *b = buffer(n, 4 * BLOCK);
		struct smartio_nvme_counters counted;
		struct smartio_nvme_queue *q;
		struct smartio_nvme_completion c;

		q = far_queue_of(n, several);
		put(q, b, false, 0);
		drive_does(q);
		fake_lose(smartio_borrower_id(n->d.handle));
		assert_int_equal(smartio_nvme_poll(q, &c, 1), -ECONNRESET);
		smartio_nvme_queue_counters(q, &counted);
		assert_int_equal(counted.completed, 0);
		smartio_nvme_close(n);
	}
}

/* Neither can it be deleted then. */
static void its_buffer_stays_the_drives_until_the_queue_is_deleted(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = far_queue(n, 4, 0);
	struct smartio_nvme_buffer *b = buffer(n, 4 * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	put(q, b, false, 0);
	drive_does(q);
	lose_link(q);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ENETDOWN);
	fake.manager = NULL; /* it does not answer */
	smartio_nvme_queue_close(q);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	fake.manager = m;
	fake_step();
	fake_reset_device(); /* and is another one's: what was kept goes with the next queue */
	another_manager();
	fake.far = false;
	smartio_nvme_queue_close(queue(n, 4));
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/* It is read again, by the other way, when nothing of the first time can come any more. */
static void who_survives_reads_again(void **state)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .flags = SMARTIO_NVME_MULTIPATH};
	struct smartio_nvme_counters counted;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n = NULL;

	(void)state;
	fill_media();
	assert_ok(smartio_nvme_open_with("nvme0", &o, &n));
	q = far_queue(n, DEPTH, SMARTIO_NVME_SURVIVE);
	b = buffer(n, DEPTH * BLOCK);
	for (unsigned i = 0; i < DEPTH; i++)
		put(q, b, false, i);
	drive_does(q);
	lose_link(q);
	for (unsigned i = 0; i < DEPTH; i++)
		memset(data(b, i), 0xee, BLOCK); /* as if they were still to come */
	fake.down = 1;
	assert_int_equal(smartio_nvme_poll(q, &(struct smartio_nvme_completion){0}, 1), 0);
	assert_int_equal(q->error, -ENETDOWN);
	fake_lose(smartio_borrower_id(n->d.handle));
	assert_int_equal(poll_all(q, DEPTH), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_read(b, i);
	smartio_nvme_queue_counters(q, &counted);
	assert_int_equal(counted.resent, DEPTH);
	assert_ptr_equal(q->leg, n->second);
	assert_int_equal(fake_counter("queue_pairs"), 1);
	fake.down = 0;
	smartio_nvme_close(n);
}

static void all_that_complete_in_one_queue_end(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o),
					       .depth = 4,
					       .cq_depth = 8,
					       .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme *n = client();
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_queue *q[2] = {NULL, NULL};
	struct smartio_nvme_completion c[DEPTH];

	(void)state;
	fill_media();
	fake.far = true;
	assert_ok(smartio_nvme_queue_open(n, &o, &q[0]));
	o = (struct smartio_nvme_queue_options){
		.size = sizeof(o), .depth = 4, .completes_in = q[0]};
	assert_ok(smartio_nvme_queue_open(n, &o, &q[1]));
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < DEPTH - 1; i++)
			put(q[i & 1], b, false, i);
		for (unsigned k = 0; k < 2; k++)
			drive_does(q[k]);
		if (round == 4)
			break;
		assert_int_equal(smartio_nvme_poll(q[round & 1], c, DEPTH), DEPTH - 1);
		for (unsigned i = 0; i < DEPTH - 1; i++)
			assert_read(b, i);
	}
	lose_link(q[0]);
	*q[0]->multi->doorbell = 0; /* as of completions that were taken meanwhile */
	assert_int_equal(smartio_nvme_poll(q[1], c, DEPTH), -ENETDOWN);
	assert_text("nvme0, or the path to it, was lost while completions");
	assert_int_equal(smartio_nvme_poll(q[0], c, DEPTH), -ENETDOWN);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	smartio_nvme_queue_close(q[0]);
	smartio_nvme_queue_close(q[1]);
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/* What such a queue answers could not be told from nothing. */
static void doorbells_that_read_as_ones_are_no_use(void **state)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = NULL;
	volatile uint8_t *at;

	(void)state;
	smartio_nvme_queue_close(far_queue(n, 4, 0));
	at = n->doorbells->at;
	all_ones();
	n->doorbells->at = (volatile uint8_t *)ones;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -ENETDOWN);
	assert_text("the doorbells of nvme0 read as ones");
	assert_int_equal(fake_counter("queue_pairs"), 0);
	n->doorbells->at = at;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(completions_come_in_order_as_ever),
		TEST(who_sleeps_is_woken_by_them),
		TEST(a_read_is_not_done_before_the_drive_has_answered),
		TEST(its_own_store_is_no_answer),
		TEST(no_answer_counts_after_a_loss),
		TEST(no_answer_counts_after_a_link_was_down),
		TEST(its_buffer_stays_the_drives_until_the_queue_is_deleted),
		TEST(who_survives_reads_again),
		TEST(all_that_complete_in_one_queue_end),
		TEST(doorbells_that_read_as_ones_are_no_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
