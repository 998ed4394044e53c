/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues that outlive their pair when a manager comes again, and resets the drive. */
#include "surviving.h"

static void reads_survive_a_reset_and_writes_are_told(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fill_media();
	fake.stopped = true;
	for (unsigned i = 0; i < DEPTH; i++)
		put(q, b, i >= 4, i);
	smartio_nvme_ring(q);
	fake.stopped = false;
	another_manager();
	assert_int_equal(poll_all(q, DEPTH), 0xf0);
	for (unsigned i = 0; i < 4; i++)
		assert_read(b, i);
	/* It is as new. */
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < DEPTH; i++)
			put(q, b, i >= 4, i);
		assert_int_equal(poll_all(q, DEPTH), 0);
	}
	assert_int_equal(fake_media()[5 * BLOCK], 6);
	smartio_nvme_close(n);
}

/* What stood in the queue but was not announced nobody has done. */
static void what_was_not_rung_is_sent_again(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fake.stopped = true;
	for (unsigned i = 0; i < 3; i++)
		put(q, b, true, i);
	smartio_nvme_ring(q);
	for (unsigned i = 3; i < DEPTH; i++)
		put(q, b, true, i);
	fake.stopped = false;
	another_manager();
	assert_int_equal(poll_all(q, DEPTH), 0x07);
	for (unsigned i = 3; i < DEPTH; i++)
		assert_int_equal(fake_media()[i * BLOCK], i + 1);
	smartio_nvme_close(n);
}

static void who_is_alone_has_its_writes_sent_again(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, SMARTIO_NVME_ALONE);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fake.stopped = true;
	for (unsigned i = 0; i < DEPTH; i++)
		put(q, b, true, i);
	smartio_nvme_ring(q);
	fake.stopped = false;
	another_manager();
	assert_int_equal(poll_all(q, DEPTH), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(fake_media()[i * BLOCK], i + 1);
	smartio_nvme_close(n);
}

/* Pieces and lists of pages, which lay in the memory of the pair before. */
static void scattered_data_is_sent_again(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, 16 * 4096);
	const struct smartio_nvme_piece pieces[3] = {{.buffer = b, .offset = 512, .bytes = 3584},
						     {.buffer = b, .offset = 8192, .bytes = 8192},
						     {.buffer = b, .offset = 4096, .bytes = 512}};
	const struct smartio_nvme_command c = {
		.op = SMARTIO_NVME_READ, .lba = 3, .blocks = 24, .n_pieces = 3, .piece = pieces};
	uint8_t *at = smartio_nvme_buffer_data(b);

	(void)state;
	fill_media();
	fake.stopped = true;
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 30, 24, b, 5 * 4096, NULL));
	smartio_nvme_ring(q);
	fake.stopped = false;
	another_manager();
	assert_int_equal(one(q).status, 0);
	assert_int_equal(one(q).status, 0);
	assert_memory_equal(at + 512, fake_media() + 3 * BLOCK, 3584);
	assert_memory_equal(at + 8192, fake_media() + 10 * BLOCK, 8192);
	assert_memory_equal(at + 4096, fake_media() + 26 * BLOCK, 512);
	assert_memory_equal(at + 5 * 4096, fake_media() + 30 * BLOCK, 24 * BLOCK);
	smartio_nvme_close(n);
}

/* The buffer of a read that is still to be sent again is in use. */
static void buffers_stay_while_it_is_between_two_pairs(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake.stopped = true;
	put(q, b, false, 0);
	smartio_nvme_ring(q);
	fake.stopped = false;
	stop_manager();
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL), -EAGAIN);
	start_manager();
	assert_int_equal(one(q).status, 0);
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/* What was never announced is in flight all the same: helpers may not take its completions. */
static void helpers_keep_off_between_two_pairs(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);
	struct smartio_nvme_counters before, after;
	struct smartio_nvme_completion c;
	uint8_t data[BLOCK];

	(void)state;
	put(q, b, false, 0);
	smartio_nvme_queue_counters(q, &before);
	stop_manager();
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
		assert_int_equal(smartio_nvme_read(q, data, 0, BLOCK), -EBUSY);
		smartio_nvme_queue_counters(q, &after);
		assert_int_equal(after.submitted, before.submitted);
	}
	start_manager();
	assert_int_equal(poll_all(q, 1), 0);
	assert_ok(smartio_nvme_read(q, data, 0, BLOCK));
	smartio_nvme_close(n);
}

static void without_a_manager_it_ends_in_time(void **state)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .flags = SMARTIO_NVME_SURVIVE, .survive_ms = 500};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;
	struct smartio_nvme_completion c;
	uint64_t began;
	int rc = 0;

	(void)state;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	stop_manager();
	began = fake.now;
	while (rc == 0) {
		rc = smartio_nvme_poll(q, &c, 1);
		fake.now += 100000;
	}
	assert_int_equal(rc, -ENOTCONN);
	assert_in_range(fake.now - began, 500000000u, 900000000u);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ECONNRESET);
	smartio_nvme_close(n);
	start_manager();
}

/* No manager has deleted its pair, so the drive may write there until one has. */
static void what_it_had_in_flight_stays_the_drives_when_it_ends(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o),
					       .depth = 4,
					       .flags = SMARTIO_NVME_SURVIVE,
					       .survive_ms = 500,
					       .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);
	struct smartio_nvme_queue *q = NULL;
	struct smartio_nvme_completion c;
	int rc = 0;

	(void)state;
	fake.far = true;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	put(q, b, false, 0);
	smartio_nvme_ring(q);
	for (unsigned i = 0; i < 10; i++)
		fake_step();
	fake.losses++;
	fake.manager = NULL;
	while (rc == 0)
		rc = smartio_nvme_poll(q, &c, 1);
	assert_int_equal(rc, -ETIMEDOUT);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ECONNRESET);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	fake.manager = m;
	smartio_nvme_queue_close(q);
	fake.far = false;
	smartio_nvme_queue_close(queue(n, 4));
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

static void closed_between_two_pairs(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fake.stopped = true;
	put(q, b, false, 0);
	smartio_nvme_ring(q);
	fake.stopped = false;
	stop_manager();
	assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	smartio_nvme_queue_close(q);
	smartio_nvme_close(n);
	start_manager();
}

static void blocking_helpers_go_on(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	uint8_t *wrote = malloc(65536), *got = malloc(65536);

	(void)state;
	memset(wrote, 0x5a, 65536);
	for (unsigned i = 0; i < 4; i++) {
		assert_ok(smartio_nvme_write(q, wrote, 0, 65536));
		another_manager();
		memset(got, 0, 65536);
		assert_ok(smartio_nvme_read(q, got, 0, 65536));
		assert_memory_equal(wrote, got, 65536);
		another_manager();
		assert_ok(smartio_nvme_flush(q));
		another_manager();
		assert_ok(smartio_nvme_verify(q, 0, 65536));
	}
	free(wrote);
	free(got);
	smartio_nvme_close(n);
}

/* Between two pairs there is no interrupt: it is to be polled. */
static void who_sleeps_is_woken_to_poll(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, SMARTIO_NVME_INTERRUPT);
	struct smartio_nvme_buffer *b = buffer(n, BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	fill_media();
	fake.stopped = true;
	put(q, b, false, 0);
	smartio_nvme_ring(q);
	fake.stopped = false;
	stop_manager();
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(smartio_nvme_wait(q, 100), 1);
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	}
	start_manager();
	while (smartio_nvme_poll(q, &c, 1) == 0)
		assert_int_equal(smartio_nvme_wait(q, 100), 1);
	assert_int_equal(c.status, 0);
	assert_read(b, 0);
	smartio_nvme_close(n);
}

/* Whoever leaves does not wait for what it was not told yet. */
static void closed_before_all_is_told(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = surviving(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	uint64_t began;

	(void)state;
	fake.stopped = true;
	for (unsigned i = 0; i < DEPTH; i++)
		put(q, b, i >= 2, i);
	smartio_nvme_ring(q);
	fake.stopped = false;
	another_manager();
	assert_int_equal(one(q).status, SMARTIO_NVME_UNSURE);
	began = fake.now;
	smartio_nvme_queue_close(q);
	assert_in_range(fake.now - began, 0, 1000000000);
	assert_int_equal(fake_counter("queue_pairs"), 0);
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_survive_a_reset_and_writes_are_told),
		TEST(what_was_not_rung_is_sent_again),
		TEST(who_is_alone_has_its_writes_sent_again),
		TEST(scattered_data_is_sent_again),
		TEST(buffers_stay_while_it_is_between_two_pairs),
		TEST(helpers_keep_off_between_two_pairs),
		TEST(without_a_manager_it_ends_in_time),
		TEST(what_it_had_in_flight_stays_the_drives_when_it_ends),
		TEST(closed_between_two_pairs),
		TEST(blocking_helpers_go_on),
		TEST(who_sleeps_is_woken_to_poll),
		TEST(closed_before_all_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
