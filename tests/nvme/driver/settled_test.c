/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the drive wrote for commands of a queue that is deleted may still be on its way when the
 * manager says so. It arrives before anything the drive answers: so the client has it answer, by
 * the way of that queue, before the buffer is anybody else's.
 */
#include "manager.h"
#include "smartio/ext.h"
#include "surviving.h"

/* Written for a queue that is gone, and not here before an answer has come by the same way. */
static struct {
	struct smartio_nvme_buffer *buffer; /* NULL: all is here */
	unsigned block;
	const volatile uint8_t *way; /* the doorbells that are read by it */
	uint64_t given, pairs; /* pairs: that the drive has, of so many given, when it is gone */
} late;

/* In front of each read. */
static void arrives(const volatile void *addr)
{
	if (!late.buffer || addr != late.way || !fake.manager ||
	    fake.manager->ledger.given != late.given || fake_counter("queue_pairs") != late.pairs)
		return;
	memset(data(late.buffer, late.block), 0x55, BLOCK);
	late.buffer = NULL;
}

/* A read of @q is done, and counts for nothing: its path is lost, as its reader sees it. */
static void lose_read(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, uint64_t given,
		      uint64_t pairs)
{
	fill_media();
	put(q, b, false, 1);
	smartio_nvme_ring(q);
	for (unsigned i = 0; i < 10; i++)
		fake_step();
	fake.losses++;
	late.buffer = b;
	late.block = 1;
	late.way = q->doorbells->at;
	late.given = given;
	late.pairs = pairs;
	fake.looked = arrives;
}

static struct smartio_nvme_queue *far_queue(struct smartio_nvme *n, uint32_t flags)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o),
					       .depth = 4,
					       .flags = flags,
					       .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme_queue *q = NULL;

	fake.far = true;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	assert_true(q->flushes);
	return q;
}

static void a_closed_queue_writes_no_more(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = far_queue(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	lose_read(q, b, 1, 0);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ENETDOWN);
	smartio_nvme_queue_close(q);
	assert_null(late.buffer);
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/* No manager was there to delete it; the next queue has it deleted. */
static void nor_does_one_that_was_kept(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = far_queue(n, 0);
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_completion c;

	(void)state;
	lose_read(q, b, 1, 0);
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ENETDOWN);
	fake.manager = NULL;
	smartio_nvme_queue_close(q);
	assert_non_null(late.buffer);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	fake.manager = m;
	fake.far = false;
	q = queue(n, 4);
	assert_null(late.buffer);
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/*
 * The next pair, over another way, reads again: what the last one read does not come over that,
 * though its way may be back.
 */
static void what_is_read_again_is_not_overwritten(void **state)
{
	static volatile uint8_t before[4096]; /* the doorbells of the way that was lost */
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .flags = SMARTIO_NVME_MULTIPATH};
	struct smartio_nvme_counters counted;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n = NULL;

	(void)state;
	assert_ok(smartio_nvme_open_with("nvme0", &o, &n));
	q = far_queue(n, SMARTIO_NVME_SURVIVE);
	b = buffer(n, DEPTH * BLOCK);
	assert_ptr_equal(q->leg, n);
	lose_read(q, b, 2, 1); /* the next one is made when it is gone */
	late.way = before;
	q->doorbells->at = before;
	fake.down = 1;
	fake_lose(smartio_borrower_id(n->d.handle));
	assert_int_equal(poll_all(q, 1) & ~2u, 0);
	assert_ptr_equal(q->leg, n->second);
	assert_null(late.buffer);
	assert_read(b, 1);
	smartio_nvme_queue_counters(q, &counted);
	assert_int_equal(counted.resent, 1);
	assert_int_equal(counted.renewals, 1);
	fake.down = 0;
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_closed_queue_writes_no_more),
		TEST(nor_does_one_that_was_kept),
		TEST(what_is_read_again_is_not_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
