/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the program as a buffer, over the drive model: where data go, and what cannot be. */
#include "client.h"
#include "common.h"

#define PAGE 4096u
#define BYTES (64u * PAGE)
#define BLOCK 512u

static uint8_t *pages(size_t bytes)
{
	uint8_t *p = aligned_alloc(PAGE, bytes);

	assert_non_null(p);
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(i / BLOCK + i);
	return p;
}

static struct smartio_nvme_buffer *registered(struct smartio_nvme *n, void *p, size_t bytes)
{
	struct smartio_nvme_buffer *b = NULL;

	assert_ok(smartio_nvme_buffer_register(n, p, bytes, &b));
	return b;
}

static void data_go_where_they_are(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 16);
	uint8_t *p = pages(BYTES), *copy = pages(BYTES);
	struct smartio_nvme_buffer *b = registered(n, p, BYTES);
	unsigned long calls = fake.calls;

	(void)state;
	assert_ptr_equal(smartio_nvme_buffer_data(b), p);
	assert_int_equal(smartio_nvme_buffer_size(b), BYTES);
	assert_memory_equal(p, copy, BYTES); /* what is in it stays */
	for (unsigned i = 0; i < 64; i++) {
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 8 * i, 8, b, i * PAGE, NULL));
		assert_int_equal(one(q).status, 0);
	}
	assert_memory_equal(fake_media(), p, BYTES);
	memset(p, 0, BYTES);
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, BYTES / BLOCK, b, 0, NULL));
	assert_int_equal(one(q).status, 0);
	assert_memory_equal(p, copy, BYTES);
	assert_int_equal(fake.calls, calls); /* nobody was asked for anything */
	assert_ok(smartio_nvme_buffer_free(b));
	assert_memory_equal(p, copy, BYTES);
	smartio_nvme_close(n);
	free(copy);
	free(p);
}

/* Not at the start of a page, and not to the end of one. */
static void any_range_is_in_whole_pages(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	uint8_t *p = pages(4 * PAGE);
	struct smartio_nvme_buffer *b = registered(n, p + PAGE + 100, 2 * PAGE - 50);

	(void)state;
	assert_ptr_equal(smartio_nvme_buffer_data(b), p + PAGE);
	assert_int_equal(smartio_nvme_buffer_size(b), 3 * PAGE);
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 0, 2, b, 100, NULL));
	assert_int_equal(one(q).status, 0);
	assert_memory_equal(fake_media(), p + PAGE + 100, 2 * BLOCK);
	assert_int_equal(
		smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 0, 2, b, 3 * PAGE - BLOCK, NULL),
		-ERANGE);
	smartio_nvme_close(n);
	free(p);
}

static void helpers_do_not_copy_either(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 16);
	uint8_t *p = pages(BYTES), *other = pages(BYTES);
	struct smartio_nvme_buffer *b = registered(n, p, BYTES);

	(void)state;
	assert_ok(smartio_nvme_write(q, p + 512, 4096, BYTES - 512));
	assert_null(q->bounce);
	assert_memory_equal(fake_media() + 4096, p + 512, BYTES - 512);
	memset(p, 0, BYTES);
	assert_ok(smartio_nvme_read(q, p + 4, 4096, BYTES - 512));
	assert_null(q->bounce);
	assert_memory_equal(p + 4, other + 512, BYTES - 512);
	assert_ok(smartio_nvme_compare(q, p + 4, 4096, BYTES - 512));
	p[1000]++;
	assert_int_equal(smartio_nvme_compare(q, p + 4, 4096, BYTES - 512), -EILSEQ);
	assert_null(q->bounce);
	/* What does not lie in it, or not all of it, or at no multiple of 4, is copied. */
	assert_ok(smartio_nvme_read(q, other, 4096, BLOCK));
	assert_non_null(q->bounce);
	assert_ok(smartio_nvme_read(q, p + 2, 4096, BLOCK));
	assert_memory_equal(p + 2, fake_media() + 4096, BLOCK);
	assert_ok(smartio_nvme_buffer_free(b));
	assert_ok(smartio_nvme_read(q, p, 0, BLOCK));
	assert_memory_equal(p, fake_media(), BLOCK);
	smartio_nvme_close(n);
	free(other);
	free(p);
}

static void it_stays_while_it_is_used(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	uint8_t *p = pages(PAGE);
	struct smartio_nvme_buffer *b = registered(n, p, PAGE);

	(void)state;
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	fake.stopped = false;
	assert_int_equal(one(q).status, 0);
	assert_ok(smartio_nvme_buffer_free(b));
	b = registered(n, p, PAGE); /* once more */
	smartio_nvme_close(n);	    /* which frees it */
	free(p);
}

/* Both ways of a client reach it. */
static void queues_that_move_have_it_too(void **state)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .flags = SMARTIO_NVME_MULTIPATH};
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo), .flags = SMARTIO_NVME_SURVIVE};
	uint8_t *p = pages(BYTES);
	struct smartio_nvme_queue *q[2];
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n = NULL;

	(void)state;
	assert_ok(smartio_nvme_open_with("nvme0", &o, &n));
	b = registered(n, p, BYTES);
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(smartio_nvme_queue_open(n, &qo, &q[i]));
		assert_ok(
			smartio_nvme_submit(q[i], SMARTIO_NVME_WRITE, 8 * i, 8, b, i * PAGE, NULL));
		assert_int_equal(one(q[i]).status, 0);
	}
	assert_ptr_not_equal(q[0]->leg, q[1]->leg);
	assert_memory_equal(fake_media(), p, 2 * PAGE);
	smartio_nvme_close(n);
	free(p);
}

/* Each call of the API that can fail does, once. */
static void every_failure_gives_all_back(void **state)
{
	uint8_t *p = pages(BYTES), *copy = pages(BYTES);
	struct smartio_nvme *n = client();
	struct smartio_nvme_buffer *b = NULL;
	unsigned objects = fake.objects;
	int rc = -1;

	(void)state;
	for (unsigned i = 1; rc; i++) {
		fake.fail_at = fake.calls + i;
		rc = smartio_nvme_buffer_register(n, p, BYTES, &b);
		fake.fail_at = 0;
		if (rc)
			assert_int_equal(fake.objects, objects);
		assert_true(i < 20);
	}
	assert_memory_equal(p, copy, BYTES);
	assert_int_equal(smartio_nvme_buffer_register(n, p, 0, &b), -EINVAL);
	assert_int_equal(smartio_nvme_buffer_register(n, p, SIZE_MAX, &b), -EINVAL);
	assert_int_equal(smartio_nvme_buffer_register(n, p, SIZE_MAX - 8 * PAGE, &b), -EINVAL);
	smartio_nvme_close(n);
	free(copy);
	free(p);
}

static struct smartio_nvme_buffer *to_free;
static int freed;

/* As another thread would, when the helper's has not the client's lock. */
static void free_it(void)
{
	if (!sio_nvme_trylock(to_free->n)) {
		fake.event = free_it;
		return;
	}
	sio_nvme_unlock(to_free->n);
	freed = smartio_nvme_buffer_free(to_free);
	start_manager();
}

/* While the queue has no pair no command is in flight, but the helper goes on. */
static void it_stays_while_a_helper_uses_it(void **state)
{
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo), .flags = SMARTIO_NVME_SURVIVE};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = NULL;
	struct smartio_nvme_completion c;
	uint8_t *p = pages(PAGE);

	(void)state;
	assert_ok(smartio_nvme_queue_open(n, &qo, &q));
	to_free = registered(n, p, PAGE);
	stop_manager();
	for (unsigned i = 0; i < 50; i++) /* it notices */
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	freed = 1;
	fake.event_at = fake.now;
	fake.event = free_it;
	assert_ok(smartio_nvme_write(q, p, 0, PAGE));
	assert_int_equal(freed, -EBUSY);
	assert_memory_equal(fake_media(), p, PAGE);
	assert_ok(smartio_nvme_buffer_free(to_free));
	smartio_nvme_close(n);
	free(p);
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(data_go_where_they_are),	       test(any_range_is_in_whole_pages),
		test(helpers_do_not_copy_either),      test(it_stays_while_it_is_used),
		test(queues_that_move_have_it_too),    test(every_failure_gives_all_back),
		test(it_stays_while_a_helper_uses_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
