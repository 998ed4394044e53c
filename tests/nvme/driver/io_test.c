/* SPDX-License-Identifier: BSD-2-Clause */
/* The data path against the drive model. */
#include <stdio.h>

#include "client.h"
#include "common.h"
#include "smartio/ext.h"

static void blocking_helpers_move_any_length(void **state)
{
	static const size_t lengths[] = {
		512, 1024, 4096, 128 << 10, (128 << 10) + 512, 1 << 20, (2 << 20) + 1536};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 3);
	uint8_t *out = malloc(4 << 20), *in = malloc(4 << 20);

	(void)state;
	for (size_t i = 0; i < 4 << 20; i++)
		out[i] = (uint8_t)(i * 2654435761u >> 11);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t offset = 512 * (i + 1);

		memset(in, 0, lengths[i]);
		assert_ok(smartio_nvme_write(q, out + i, offset, lengths[i]));
		assert_memory_equal(fake_media() + offset, out + i, lengths[i]);
		assert_ok(smartio_nvme_read(q, in, offset, lengths[i]));
		assert_memory_equal(in, out + i, lengths[i]);
	}
	assert_ok(smartio_nvme_read(q, in, 0, 0));
	assert_ok(smartio_nvme_flush(q));
	free(out);
	free(in);
	smartio_nvme_close(n);
}

static void blocking_helpers_refuse(void **state)
{
	const uint64_t end = (uint64_t)FAKE_BLOCKS * 512;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	uint8_t data[1024];

	(void)state;
	assert_int_equal(smartio_nvme_read(q, data, 1, 512), -EINVAL);
	assert_int_equal(smartio_nvme_read(q, data, 0, 513), -EINVAL);
	assert_int_equal(smartio_nvme_read(q, data, end, 512), -ERANGE);
	assert_int_equal(smartio_nvme_write(q, data, end - 512, 1024), -ERANGE);
	assert_text("ends at 4194304");
	assert_int_equal(smartio_nvme_read(q, data, UINT64_MAX - 511, 512), -ERANGE);
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	assert_int_equal(smartio_nvme_read(q, data, 0, 512), -EBUSY);
	one(q);
	for (unsigned i = 0; i < 4; i++)
		q->slot[i].first = 7ull << 32 | i << 16;
	assert_int_equal(smartio_nvme_read(q, data, 0, 512), -EIO);
	assert_text("invalid namespace");
	smartio_nvme_close(n);
}

/* A drive that does nothing unless it is woken: after each ring, and by manager and client. */
static void a_sleeping_drive_is_woken(void **state)
{
	static volatile uint32_t asleep;
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	unsigned before;

	(void)state;
	stop_manager();
	fake.sleeps = &asleep;
	asleep = 1;
	start_manager();
	assert_true(fake.wakes > 0);
	n = client();
	q = queue(n, 8);
	b = buffer(n, 4096);
	before = fake.wakes;
	for (unsigned i = 0; i < 3; i++)
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, i, 1, b, 0, NULL));
	assert_int_equal(fake.wakes, before);
	smartio_nvme_ring(q);
	assert_int_equal(fake.wakes, before + 1); /* one ring, one wake */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(one(q).status, 0);
	/* Awake it needs nobody. */
	asleep = 0;
	before = fake.wakes;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	assert_int_equal(one(q).status, 0);
	assert_int_equal(fake.wakes, before);
	/* A reset is noticed all the same. */
	fake_reset_device();
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL), 0);
	smartio_nvme_ring(q);
	assert_int_equal(fake.wakes, before);
	assert_int_equal(smartio_nvme_poll(q, &(struct smartio_nvme_completion){0}, 1),
			 -ECONNRESET);
	smartio_nvme_close(n);
	fake.sleeps = NULL;
	stop_manager();
	start_manager();
}

static void submit_refuses(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *q = queue(n, 2);
	struct smartio_nvme_buffer *b = buffer(n, 8192), *foreign = buffer(other, 4096);
	const struct {
		enum smartio_nvme_op op;
		uint64_t lba;
		uint32_t blocks;
		struct smartio_nvme_buffer *b;
		size_t offset;
		int rc;
	} bad[] = {
		{SMARTIO_NVME_READ, 0, 0, b, 0, -EINVAL},
		{SMARTIO_NVME_READ, 0, 1, NULL, 0, -EINVAL},
		{SMARTIO_NVME_READ, 0, 1, foreign, 0, -EINVAL},
		{SMARTIO_NVME_READ, 0, 1, b, 2, -EINVAL},
		{(enum smartio_nvme_op)5, 0, 1, b, 0, -EINVAL},
		{SMARTIO_NVME_READ, FAKE_BLOCKS, 1, b, 0, -ERANGE},
		{SMARTIO_NVME_READ, FAKE_BLOCKS - 1, 2, b, 0, -ERANGE},
		{SMARTIO_NVME_WRITE, UINT64_MAX, 1, b, 0, -ERANGE},
		{SMARTIO_NVME_READ, 0, 17, b, 0, -ERANGE},
		{SMARTIO_NVME_READ, 0, 1, b, 7684, -ERANGE},
		{SMARTIO_NVME_READ, 0, 1, b, SIZE_MAX - 3, -ERANGE},
		{SMARTIO_NVME_READ, 0, UINT32_MAX, b, 0, -ERANGE},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(smartio_nvme_submit(q, bad[i].op, bad[i].lba, bad[i].blocks,
						     bad[i].b, bad[i].offset, NULL),
				 bad[i].rc);
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 16, b, 0, NULL));
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 7680, NULL));
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL), -EAGAIN);
	assert_int_equal(one(q).status, 0);
	assert_int_equal(one(q).status, 0);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

/*
 * Around all limits at once, where the short way of transfers within a page ends: the last blocks
 * of the namespace, pages, the buffer's end, sums that wrap.
 */
static void submit_takes_what_fits_alone(void **state)
{
	static const size_t offsets[] = {
		0,    4,    512,  513,	3584, 3588,	4092,		4096,	     4604,
		4608, 5632, 8188, 8192, 8704, SIZE_MAX, SIZE_MAX - 511, SIZE_MAX - 3};
	const size_t size = 8192;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 2);
	struct smartio_nvme_buffer *b = buffer(n, size);

	(void)state;
	for (uint64_t lba = FAKE_BLOCKS - 18; lba <= FAKE_BLOCKS + 1; lba++)
		for (uint32_t blocks = 0; blocks <= 17; blocks++)
			for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
				size_t at = offsets[i], bytes = blocks * 512u;
				bool fits = blocks > 0 && blocks <= 16 && at % 4 == 0 &&
					    bytes <= size && at <= size - bytes &&
					    lba + blocks <= FAKE_BLOCKS;
				int rc = smartio_nvme_submit(q, SMARTIO_NVME_READ, lba, blocks, b,
							     at, NULL);

				assert_int_equal(rc == 0, fits);
				if (rc == 0)
					assert_int_equal(one(q).status, 0);
			}
	smartio_nvme_close(n);
}

/* Every list of pages against what the drive should do, through queues that wrap many times. */
static void random_transfers_match_a_copy(void **state)
{
	const size_t bytes = 300 << 10;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 7);
	struct smartio_nvme_buffer *b = buffer(n, bytes);
	uint8_t *data = smartio_nvme_buffer_data(b), *model = malloc(bytes);
	uint8_t *media = malloc((size_t)FAKE_BLOCKS * 512);

	(void)state;
	memcpy(media, fake_media(), (size_t)FAKE_BLOCKS * 512);
	for (unsigned i = 0; i < 1500; i++) {
		uint32_t blocks = 1 + (uint32_t)(smartio_random() % (i % 3 ? 20 : 512));
		size_t offset = smartio_random() % (bytes - blocks * 512 + 1) & ~3ull;
		uint64_t lba = smartio_random() % (FAKE_BLOCKS - blocks + 1);
		bool write = smartio_random() & 1;
		struct smartio_nvme_completion c;

		if (write) {
			for (size_t k = 0; k < blocks * 512; k += 64)
				data[offset + k] = (uint8_t)smartio_random();
		}
		memcpy(model, data, bytes);
		assert_ok(smartio_nvme_submit(q, write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ,
					      lba, blocks, b, offset, (void *)(uintptr_t)(i + 1)));
		c = one(q);
		assert_ptr_equal(c.cookie, (void *)(uintptr_t)(i + 1));
		assert_int_equal(c.status, 0);
		if (write)
			memcpy(media + lba * 512, model + offset, blocks * 512);
		else
			memcpy(model + offset, media + lba * 512, blocks * 512);
		assert_memory_equal(data, model, bytes);
		if (i % 100 == 0)
			assert_memory_equal(fake_media(), media, (size_t)FAKE_BLOCKS * 512);
	}
	assert_memory_equal(fake_media(), media, (size_t)FAKE_BLOCKS * 512);
	free(model);
	free(media);
	smartio_nvme_close(n);
}

static void commands_in_flight_keep_their_cookies(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 32);
	struct smartio_nvme_buffer *b = buffer(n, 32 * 512);
	unsigned seen[1000] = {0}, sent = 0, done = 0;
	struct smartio_nvme_counters k;

	(void)state;
	while (done < 1000) {
		struct smartio_nvme_completion c[5];
		int rc;

		while (sent < 1000 && smartio_random() % 4 &&
		       smartio_nvme_submit(q, SMARTIO_NVME_READ, sent % FAKE_BLOCKS, 1, b,
					   512 * (sent % 32), (void *)(uintptr_t)sent) == 0)
			sent++;
		rc = smartio_nvme_poll(q, c, 1 + (unsigned)(smartio_random() % 5));
		assert_ok(rc);
		for (int i = 0; i < rc; i++, done++) {
			assert_int_equal(c[i].status, 0);
			seen[(uintptr_t)c[i].cookie]++;
		}
		if (smartio_random() % 3 == 0)
			fake_step();
	}
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(seen[i], 1);
	smartio_nvme_queue_counters(q, &k);
	assert_int_equal(k.submitted, 1000);
	assert_int_equal(k.completed, 1000);
	assert_true(k.doorbells_sq < 1000 && k.doorbells_cq < 1000);
	smartio_nvme_close(n);
}

static void depth_1_costs_one_fetch_and_one_completion(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 1);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_counters k;

	(void)state;
	fake.sq_reads = fake.cq_writes = 0;
	for (unsigned i = 0; i < 100; i++) {
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, i * 8, 8, b, 0, NULL));
		assert_int_equal(one(q).status, 0);
	}
	assert_int_equal(fake.sq_reads, 100);
	assert_int_equal(fake.cq_writes, 100);
	smartio_nvme_queue_counters(q, &k);
	assert_int_equal(k.doorbells_sq, 100);
	assert_int_equal(k.doorbells_cq, 100);
	smartio_nvme_close(n);
}

static void empty_polls_yield(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_completion c;
	struct smartio_nvme_counters k;

	(void)state;
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	smartio_nvme_queue_counters(q, &k);
	assert_int_equal(k.empty_polls, 3000);
	assert_int_equal(k.yields, 2000);
	smartio_nvme_close(n);
}

/*
 * Empty polls until a command is done; the drive steps when a poll yields, or after @steps_after.
 */
static uint64_t wait_of_one(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b,
			    unsigned steps_after)
{
	struct smartio_nvme_counters before, after;
	struct smartio_nvme_completion c;
	unsigned polls = 0;

	smartio_nvme_queue_counters(q, &before);
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL));
	while (smartio_nvme_poll(q, &c, 1) == 0)
		if (++polls == steps_after)
			fake_step();
	smartio_nvme_queue_counters(q, &after);
	return after.empty_polls - before.empty_polls;
}

/* Waits that only a yield ends become short; one of 128 finds out if that is still so. */
static void patience_follows_what_yields_bring(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	unsigned patient = 0;

	(void)state;
	assert_int_equal(wait_of_one(q, b, 0), 1001);
	assert_int_equal(wait_of_one(q, b, 0), 5);
	for (unsigned i = 0; i < 1280; i++) {
		uint64_t polls = wait_of_one(q, b, 0);

		assert_true(polls == 5 || polls == 1001);
		patient += polls == 1001;
	}
	assert_int_equal(patient, 10);

	/* The drive has a processor of its own again: as soon as that shows, nothing yields. */
	for (unsigned i = 0; i < 128; i++)
		wait_of_one(q, b, 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(wait_of_one(q, b, 100), 100);
	assert_int_equal(wait_of_one(q, b, 0), 1001);
	smartio_nvme_close(n);
}

static void silent_drive_times_out(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	uint8_t data[512];

	(void)state;
	fake.stopped = true;
	assert_int_equal(smartio_nvme_read(q, data, 0, 512), -ETIMEDOUT);
	assert_text("has not answered for 30 s");
	/* The manager cannot delete the queue either; nothing hangs. */
	fake_reset_device();
	fake.stopped = false;
	smartio_nvme_close(n);
}

/* The drive stops in the middle of making queues: it may have them, so their memory stays. */
static void memory_stays_when_the_drive_fails(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;

	(void)state;
	fake.stopped = true;
	assert_int_equal(smartio_nvme_queue_open(n, NULL, &q), -ENODEV);
	assert_text("did not answer admin command 0x5 within 10000 ms");
	assert_int_equal(fake.served, -EIO);
	assert_int_equal(smartio_nvme_manager_serve(fake.manager, 0), -EIO);
	assert_text("did not answer");
	assert_non_null(n->kept);
	/* It goes on, and writes its completion where it was told to. */
	fake.stopped = false;
	fake_step();
	assert_int_equal(fake.faults, 0);
	/* The manager's end resets the drive: now it is over. */
	stop_manager();
	smartio_nvme_close(n);
	fake.served = 0;
	start_manager();
}

static void queue_memory_is_used_again(void **state)
{
	struct smartio_nvme *n = client();
	uint64_t sq = 0;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct smartio_nvme_queue *q = queue(n, 8);
		uint8_t data[4096];

		if (i == 0)
			sq = q->sq_mem->ioaddr;
		assert_int_equal(q->sq_mem->ioaddr, sq);
		assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
		smartio_nvme_queue_close(q);
	}
	smartio_nvme_close(n);
}

static void prp_entries_are_what_the_specification_says(void **state)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .max_transfer = 1 << 20};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;
	uint64_t prp2;

	(void)state;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	assert_int_equal(sio_nvme_prp_shift(4096), 3);
	assert_int_equal(sio_nvme_prp_shift(8192), 4);
	assert_int_equal(sio_nvme_prp_shift(128 << 10), 8);
	assert_int_equal(sio_nvme_prp_shift(2 << 20), 12);
	for (uint32_t cid = 0; cid < 4; cid++) {
		for (uint64_t start = 0; start < 4096; start += 508) {
			for (uint64_t len = 4096 - start + 4; len <= 1 << 20; len += 37 * 512) {
				uint64_t addr = 0x5000000 + start;
				uint64_t last = (addr + len - 1) & ~4095ull;

				prp2 = sio_nvme_prp2(q, cid, addr, len);
				assert_int_equal(prp2 % 8, 0);
				if (last == 0x5001000) {
					assert_int_equal(prp2, 0x5001000);
					continue;
				}
				const uint64_t *list = fake_dma(prp2, 8);
				uint64_t count = (last - 0x5000000) / 4096;

				assert_non_null(list);
				/* Never across a page: that would need a chain. */
				assert_int_equal(prp2 / 4096, (prp2 + count * 8 - 1) / 4096);
				for (uint64_t i = 0; i < count; i++)
					assert_int_equal(list[i], 0x5001000 + i * 4096);
			}
		}
	}
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(blocking_helpers_move_any_length),
		TEST(blocking_helpers_refuse),
		TEST(a_sleeping_drive_is_woken),
		TEST(submit_refuses),
		TEST(submit_takes_what_fits_alone),
		TEST(random_transfers_match_a_copy),
		TEST(commands_in_flight_keep_their_cookies),
		TEST(depth_1_costs_one_fetch_and_one_completion),
		TEST(empty_polls_yield),
		TEST(patience_follows_what_yields_bring),
		TEST(silent_drive_times_out),
		TEST(memory_stays_when_the_drive_fails),
		TEST(queue_memory_is_used_again),
		TEST(prp_entries_are_what_the_specification_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
