/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that do not come back: of a drive that is late, tells nothing, sees no doorbell, or
 * fails. Time is the fake's, so that limits are exact but for a tick.
 */
#include "client.h"
#include "common.h"
#include "late.h"

#define BLOCK 512u
#define DEPTH 8u
#define LIMIT_MS 400u
#define MS 1000000ull
#define ANY UINT32_MAX
#define ABORTED 0x007u /* Command Abort Requested */
enum { NOTHING, DELAY, DROP, ERROR, WRONG_ID, TWICE, DOORBELL, FATAL };

static struct smartio_nvme_queue *limited(struct smartio_nvme *n, uint32_t flags)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .flags = flags, .timeout_ms = LIMIT_MS};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static struct smartio_nvme_counters counted(const struct smartio_nvme_queue *q)
{
	struct smartio_nvme_counters c;

	smartio_nvme_queue_counters(q, &c);
	return c;
}

static void put(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, bool write, unsigned i)
{
	uint8_t *at = (uint8_t *)smartio_nvme_buffer_data(b) + (size_t)i * BLOCK;

	memset(at, write ? (int)(i + 1) : 0xee, BLOCK);
	assert_ok(smartio_nvme_submit(q, write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ, i, 1, b,
				      (size_t)i * BLOCK, (void *)(uintptr_t)(i + 1)));
}

/* Polls until something comes or the queue ends; the fake's time passes meanwhile. */
static int next(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c)
{
	int rc = 0;

	for (unsigned i = 0; i < 10000000 && rc == 0; i++) {
		rc = smartio_nvme_poll(q, c, 1);
		fake_step();
	}
	return rc;
}

static void ages(void **state)
{
	enum sio_nvme_age age = SIO_NVME_IN_TIME;

	(void)state;
	for (unsigned i = 1; i <= SIO_NVME_LATE; i++) {
		age = sio_nvme_age_next(age, true, true);
		assert_int_equal(age, i);
	}
	assert_int_equal(sio_nvme_age_next(age, false, true), SIO_NVME_LATE);
	age = sio_nvme_age_next(age, true, true);
	assert_int_equal(age, SIO_NVME_ASKED);
	/* It may have come: nobody knows before the queue was looked at. */
	assert_int_equal(sio_nvme_age_next(age, true, false), SIO_NVME_ASKED);
	age = sio_nvme_age_next(age, false, true);
	assert_int_equal(age, SIO_NVME_OVERDUE);
	assert_int_equal(sio_nvme_age_next(age, true, true), SIO_NVME_OVERDUE);
}

static void what_is_late_is_aborted_5_1(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	uint64_t before;

	(void)state;
	fake_fault(DELAY, SMARTIO_NVME_READ, 1, 60000 * MS);
	before = fake.now;
	put(q, b, false, 0);
	put(q, b, true, 1);
	assert_int_equal(next(q, &c), 1);
	assert_int_equal((uintptr_t)c.cookie, 2); /* others do not wait for it */
	assert_int_equal(c.status, 0);
	assert_int_equal(next(q, &c), 1);
	assert_int_equal((uintptr_t)c.cookie, 1);
	assert_int_equal(c.status, ABORTED);
	assert_true(fake.now - before >= LIMIT_MS * MS);
	assert_true(fake.now - before <= LIMIT_MS * MS * 3 / 2);
	assert_int_equal(counted(q).aborts, 1);
	assert_int_equal(counted(q).overdue, 0);
	assert_int_equal(fake_counter("commands_aborted"), 1);
	put(q, b, false, 0);
	assert_int_equal(one(q).status, 0);
	smartio_nvme_close(n);
}

static void who_comes_in_time_is_left_alone(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DELAY, SMARTIO_NVME_READ, 20, LIMIT_MS * MS * 3 / 4);
	for (unsigned i = 0; i < 20; i++) { /* the same slot, again and again */
		put(q, b, false, 0);
		assert_int_equal(next(q, &c), 1);
		assert_int_equal(c.status, 0);
	}
	assert_int_equal(counted(q).aborts, 0);
	smartio_nvme_close(n);
}

static void many_are_aborted_a_few_at_a_time_5_1(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DELAY, ANY, DEPTH, 60000 * MS);
	for (unsigned i = 0; i < DEPTH; i++)
		put(q, b, i & 1, i);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(next(q, &c), 1);
		assert_int_equal(c.status, ABORTED);
	}
	assert_int_equal(counted(q).aborts, DEPTH);
	assert_int_equal(counted(q).overdue, 0);
	assert_int_equal(fake_counter("commands_write"), 0);
	smartio_nvme_close(n);
}

static void one_that_sleeps_is_woken_to_abort_5_1(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, SMARTIO_NVME_INTERRUPT);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fake_fault(DELAY, ANY, 1, 60000 * MS);
	put(q, b, true, 0);
	assert_int_equal(smartio_nvme_wait(q, UINT32_MAX), 1);
	assert_int_equal(one(q).status, ABORTED);
	smartio_nvme_close(n);
}

/* The pair is deleted before anything is sent again (section 5.6). */
static void without_completion_a_read_is_sent_again_5_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, SMARTIO_NVME_SURVIVE);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	unsigned seen = 0;

	(void)state;
	memset(fake_media(), 0x80, DEPTH * BLOCK);
	fake_fault(DROP, SMARTIO_NVME_READ, 1, 0);
	for (unsigned i = 0; i < DEPTH; i++)
		put(q, b, false, i);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(next(q, &c), 1);
		assert_int_equal(c.status, 0);
		assert_false(seen >> (uintptr_t)c.cookie & 1);
		seen |= 1u << (uintptr_t)c.cookie;
	}
	assert_memory_equal(smartio_nvme_buffer_data(b), fake_media(), DEPTH * BLOCK);
	assert_int_equal(counted(q).aborts, 1);
	assert_int_equal(counted(q).overdue, 1);
	assert_int_equal(counted(q).renewals, 1);
	assert_int_equal(counted(q).resent, 1);
	assert_int_equal(fake_counter("queue_pairs"), 1);
	smartio_nvme_close(n);
}

static void a_write_without_completion_is_told_and_not_sent_again_5_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, SMARTIO_NVME_SURVIVE);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DROP, SMARTIO_NVME_WRITE, 1, 0);
	put(q, b, true, 3);
	assert_int_equal(next(q, &c), 1);
	assert_int_equal(c.status, SMARTIO_NVME_UNSURE);
	assert_int_equal(counted(q).unsure, 1);
	assert_int_equal(fake_counter("commands_write"), 1);
	put(q, b, true, 4);
	assert_int_equal(one(q).status, 0);
	smartio_nvme_close(n);
}

static void who_is_alone_writes_again_5_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, SMARTIO_NVME_SURVIVE | SMARTIO_NVME_ALONE);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DROP, SMARTIO_NVME_WRITE, 1, 0);
	put(q, b, true, 3);
	assert_int_equal(next(q, &c), 1);
	assert_int_equal(c.status, 0);
	assert_int_equal(fake_counter("commands_write"), 2);
	smartio_nvme_close(n);
}

static void what_never_comes_is_told_in_the_end(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, SMARTIO_NVME_SURVIVE);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DROP, SMARTIO_NVME_READ, 0, 0);
	put(q, b, false, 0);
	assert_int_equal(next(q, &c), 1);
	assert_int_equal(c.status, SMARTIO_NVME_UNSURE);
	assert_int_equal(counted(q).overdue, SIO_NVME_TRIES);
	assert_int_equal(fake_counter("commands_read"), SIO_NVME_TRIES);
	fake_fault(NOTHING, 0, 0, 0);
	put(q, b, false, 0);
	assert_int_equal(one(q).status, 0);
	smartio_nvme_close(n);
}

static void a_lost_doorbell_is_noticed(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, SMARTIO_NVME_SURVIVE);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DOORBELL, ANY, 1, 0);
	put(q, b, false, 0);
	assert_int_equal(next(q, &c), 1);
	assert_int_equal(c.status, 0);
	assert_int_equal(counted(q).renewals, 1);
	smartio_nvme_close(n);
}

static void who_does_not_survive_ends_5_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0), *other = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DROP, ANY, 1, 0);
	put(q, b, true, 0);
	assert_int_equal(next(q, &c), -ETIMEDOUT);
	assert_text("did not come back within 400 ms, nor when it was aborted");
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL), -ETIMEDOUT);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY); /* the drive may still use it */
	b = buffer(n, DEPTH * BLOCK);
	put(other, b, true, 1); /* nothing is wrong with others */
	assert_int_equal(one(other).status, 0);
	smartio_nvme_queue_close(q);
	assert_int_equal(fake_counter("queue_pairs"), 1);
	smartio_nvme_close(n);
}

/* It is the drive's, and Abort's: whose queue pair it is the manager knows. */
static void nobody_aborts_another_ones(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct sio_nvme_req req = {.op = SIO_NVME_OP_ABORT, .abort = {.qid = q->id, .key = q->key}};
	struct sio_nvme_rep *rep = calloc(1, sizeof(*rep));

	(void)state;
	assert_int_equal(sio_nvme_ask(other, &req, rep, NULL), -EACCES);
	req.abort.key++;
	assert_int_equal(sio_nvme_ask(n, &req, rep, NULL), -EACCES);
	req.abort.key--;
	req.abort.cid = 0x10000;
	assert_int_equal(sio_nvme_ask(n, &req, rep, NULL), -EINVAL);
	req.abort.cid = 7; /* none that is in flight */
	assert_ok(sio_nvme_ask(n, &req, rep, NULL));
	free(rep);
	smartio_nvme_close(other);
	smartio_nvme_close(n);
}

static void without_a_manager_a_queue_ends_all_the_same(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(DROP, ANY, 1, 0);
	put(q, b, false, 0);
	smartio_nvme_ring(q);
	fake_step();
	fake.manager = NULL; /* it is stopped, and answers nothing */
	assert_int_equal(next(q, &c), -ETIMEDOUT);
	assert_int_equal(counted(q).aborts, 1);
	fake.manager = m;
	smartio_nvme_close(n);
}

static void other_faults_have_their_errors_4_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake_fault(ERROR, SMARTIO_NVME_WRITE, 1, 0x281);
	put(q, b, true, 0);
	assert_int_equal(one(q).status, 0x281);
	assert_int_equal(fake_counter("commands_write"), 0);
	for (unsigned kind = WRONG_ID; kind <= TWICE; kind++) {
		struct smartio_nvme_queue *bad = limited(n, 0);

		fake_fault(kind, ANY, 1, 0);
		put(bad, b, true, 1);
		if (kind == TWICE)
			assert_int_equal(next(bad, &c), 1);
		assert_int_equal(next(bad, &c), -EPROTO);
		smartio_nvme_queue_close(bad);
	}
	put(q, b, true, 2);
	assert_int_equal(one(q).status, 0);
	smartio_nvme_close(n);
}

/* Its own loop looks, and sleeps elsewhere. */
static void who_only_looks_is_told_too(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, SMARTIO_NVME_INTERRUPT);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	uint64_t before = fake.now;
	int rc = 0;

	(void)state;
	fake_fault(DELAY, ANY, 1, 60000 * MS);
	put(q, b, true, 0);
	for (unsigned i = 0; i < 4000 && rc == 0; i++) {
		rc = smartio_nvme_wait(q, 0);
		fake.now += MS;
		fake_step();
	}
	assert_int_equal(rc, 1);
	assert_int_equal(one(q).status, ABORTED);
	assert_true(fake.now - before <= LIMIT_MS * MS * 3 / 2);
	smartio_nvme_close(n);
}

static void who_polls_seldom_is_told_in_time(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;
	uint64_t before = fake.now;
	int rc = 0;

	(void)state;
	fake_fault(DELAY, ANY, 1, 600000 * MS);
	put(q, b, true, 0);
	for (unsigned i = 0; i < 40000 && rc == 0; i++) {
		rc = smartio_nvme_poll(q, &c, 1);
		fake.now += 5 * MS;
		fake_step();
	}
	assert_int_equal(rc, 1);
	assert_int_equal(c.status, ABORTED);
	assert_true(fake.now - before <= LIMIT_MS * MS * 3 / 2);
	smartio_nvme_close(n);
}

/* Polls until the queue ends, while no manager answers. @ret: nanoseconds of the longest poll. */
static int end_without_manager(struct smartio_nvme_queue *q, uint64_t *ret)
{
	struct smartio_nvme_completion c;
	int rc = 0;

	*ret = 0;
	while (rc == 0) {
		uint64_t before = fake.now;

		rc = smartio_nvme_poll(q, &c, 1);
		if (fake.now - before > *ret)
			*ret = fake.now - before;
		fake_step();
	}
	return rc;
}

/* One poll is not as long as all Aborts together, nor as a search for a manager. */
static void without_answer(bool is_there)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_manager *m = fake.manager;
	uint32_t *magic = fake_shared(), was = *magic;
	uint64_t longest;

	fake_fault(DROP, ANY, DEPTH, 0);
	for (unsigned i = 0; i < DEPTH; i++)
		put(q, b, false, i);
	smartio_nvme_ring(q);
	fake_step();
	fake.manager = NULL;
	if (!is_there)
		*magic = 0;
	assert_int_equal(end_without_manager(q, &longest), -ETIMEDOUT);
	assert_true(longest <= 150 * MS);
	fake.manager = m;
	*magic = was;
	smartio_nvme_close(n);
}

static void a_manager_that_hangs_stops_nobody_for_long(void **state)
{
	(void)state;
	without_answer(true);
}

static void a_manager_that_is_coming_stops_nobody_for_long(void **state)
{
	(void)state;
	without_answer(false);
}

/* What could not be deleted is, before anybody writes by another queue: its write is the older. */
static void a_late_write_undoes_none_of_the_next_queue_5_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = limited(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK), *other = buffer(n, BLOCK);
	struct smartio_nvme_manager *m = fake.manager;
	uint32_t *magic = fake_shared(), was = *magic;
	uint64_t longest;

	(void)state;
	fake_fault(DELAY, ANY, 1, 60000 * MS);
	put(q, b, true, 0);
	smartio_nvme_ring(q);
	fake_step();
	fake.manager = NULL;
	*magic = 0;
	assert_int_equal(end_without_manager(q, &longest), -ETIMEDOUT);
	smartio_nvme_queue_close(q);
	fake.manager = m;
	*magic = was;
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	q = limited(n, 0);
	assert_ok(smartio_nvme_buffer_free(b));
	assert_int_equal(fake_counter("queue_pairs"), 1);
	memset(smartio_nvme_buffer_data(other), 0x77, BLOCK);
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 0, 1, other, 0, NULL));
	assert_int_equal(one(q).status, 0);
	fake.now += 120000 * MS;
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	assert_memory_equal(fake_media(), smartio_nvme_buffer_data(other), BLOCK);
	smartio_nvme_close(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ages),
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		test(what_is_late_is_aborted_5_1),
		test(who_comes_in_time_is_left_alone),
		test(many_are_aborted_a_few_at_a_time_5_1),
		test(one_that_sleeps_is_woken_to_abort_5_1),
		test(without_completion_a_read_is_sent_again_5_6),
		test(a_write_without_completion_is_told_and_not_sent_again_5_6),
		test(who_is_alone_writes_again_5_6),
		test(what_never_comes_is_told_in_the_end),
		test(a_lost_doorbell_is_noticed),
		test(who_does_not_survive_ends_5_6),
		test(nobody_aborts_another_ones),
		test(without_a_manager_a_queue_ends_all_the_same),
		test(other_faults_have_their_errors_4_6),
		test(who_only_looks_is_told_too),
		test(who_polls_seldom_is_told_in_time),
		test(a_manager_that_hangs_stops_nobody_for_long),
		test(a_manager_that_is_coming_stops_nobody_for_long),
		test(a_late_write_undoes_none_of_the_next_queue_5_6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
