/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions as they come, and those that no honest drive sends. */
#include "client.h"
#include "common.h"

/* The slot where the next completion goes. */
static volatile uint8_t *next_entry(struct smartio_nvme_queue *q)
{
	return q->cqe;
}

static void complete(struct smartio_nvme_queue *q, uint32_t cid, uint32_t sq, uint32_t status)
{
	volatile uint32_t *e = (volatile uint32_t *)next_entry(q);

	e[2] = sq << 16;
	e[3] = cid | (uint32_t)(q->expected >> 48 & 1) << 16 | status << 17;
}

static void impossible_completions_kill_the_queue(void **state)
{
	struct {
		uint32_t cid, sq;
	} bad[] = {{4, 0}, {8, 0}, {0xffff, 0}, {1, 0}, {0, 1}, {0, 0xffff}};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q = queue(n, 4);
		struct smartio_nvme_buffer *b = buffer(n, 4096);
		struct smartio_nvme_completion c;

		fake.stopped = true;
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
		smartio_nvme_ring(q);
		complete(q, bad[i].cid, bad[i].sq ? q->id ^ bad[i].sq : q->id, 0);
		assert_int_equal(smartio_nvme_poll(q, &c, 1), -EPROTO);
		assert_text("completed a command that was not in flight");
		assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL),
				 -EPROTO);
		fake.stopped = false;
		smartio_nvme_close(n);
	}
}

/* Submit a read that no drive sees. Return: its command id. */
static uint32_t submitted_id(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b)
{
	const volatile uint32_t *entry = (const volatile uint32_t *)q->sqe;

	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	return *entry >> 16;
}

/*
 * Whenever: as long as its id's uses can be told apart, the command that has its place now is not
 * done.
 */
static void a_completion_that_comes_twice_is_not_the_next_commands(void **state)
{
	static const unsigned uses[] = {0, 1, 7, 8, 8190, 8191, 8192};

	(void)state;
	for (unsigned i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q = queue(n, 4);
		struct smartio_nvme_buffer *b = buffer(n, 4096);
		struct smartio_nvme_completion c;
		uint32_t id, next;

		fake.stopped = true;
		for (unsigned k = 0; k <= uses[i]; k++) {
			id = submitted_id(q, b);
			complete(q, id, q->id, 0);
			assert_int_equal(smartio_nvme_poll(q, &c, 1), 1);
		}
		next = submitted_id(q, b);
		assert_int_not_equal(id, next);
		assert_int_not_equal(next, 0xffff);
		complete(q, id, q->id, 0);
		assert_int_equal(smartio_nvme_poll(q, &c, 1), -EPROTO);
		assert_text("completed a command that was not in flight");
		fake.stopped = false;
		smartio_nvme_close(n);
	}
}

static void status_comes_as_type_and_code(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;

	(void)state;
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, &c));
	/* Media error 0x81, with "more" and "do not retry" set, which are no part of it. */
	complete(q, 0, q->id, 0x6281);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), 1);
	assert_int_equal(c.status, 0x281);
	assert_ptr_equal(c.cookie, &c);
	assert_string_equal(smartio_nvme_status_string(c.status), "unrecovered read error");
	/* The model never saw the command complete; take the queue away as it is. */
	fake_reset_device();
	fake.stopped = false;
	smartio_nvme_close(n);
}

static void ones_after_a_loss_are_no_completion(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;

	(void)state;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	memset((void *)(uintptr_t)next_entry(q), 0xff, 16);
	fake_reset_device();
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ECONNRESET);
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(impossible_completions_kill_the_queue),
		TEST(a_completion_that_comes_twice_is_not_the_next_commands),
		TEST(status_comes_as_type_and_code),
		TEST(ones_after_a_loss_are_no_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
