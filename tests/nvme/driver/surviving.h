/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of queues that outlive their pair: such a queue and its I/O, whose completions are
 * compared with what the media holds. Reads never fail; a write is done once, or is completed as
 * UNSURE.
 */
#ifndef TESTS_NVME_DRIVER_SURVIVING_H
#define TESTS_NVME_DRIVER_SURVIVING_H

#include "client.h"
#include "common.h"
#include "smartio/ext.h"

#define BLOCK 512u
#define DEPTH 8u

static inline struct smartio_nvme_queue *surviving(struct smartio_nvme *n, uint32_t flags)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .flags = SMARTIO_NVME_SURVIVE | flags};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static inline void another_manager(void)
{
	stop_manager();
	start_manager();
}

static inline uint8_t *data(struct smartio_nvme_buffer *b, unsigned i)
{
	return (uint8_t *)smartio_nvme_buffer_data(b) + (size_t)i * BLOCK;
}

static inline void put(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, bool write,
		       unsigned i)
{
	struct smartio_nvme_completion none;
	int rc;

	memset(data(b, i), write ? (int)(i + 1) : 0xee, BLOCK);
	while ((rc = smartio_nvme_submit(q, write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ, i, 1, b,
					 (size_t)i * BLOCK, (void *)(uintptr_t)(i + 1))) == -EAGAIN)
		assert_int_equal(smartio_nvme_poll(q, &none, 1), 0); /* it moves just now */
	assert_ok(rc);
}

/* Poll @n of them; each once. Return: those that are UNSURE, as bits. */
static inline unsigned poll_all(struct smartio_nvme_queue *q, unsigned n)
{
	unsigned seen = 0, unsure = 0;

	for (; n > 0; n--) {
		struct smartio_nvme_completion c = one(q);
		unsigned bit = 1u << ((uintptr_t)c.cookie - 1);

		assert_false(seen & bit);
		seen |= bit;
		assert_true(c.status == 0 || c.status == SMARTIO_NVME_UNSURE);
		if (c.status)
			unsure |= bit;
	}
	return unsure;
}

static inline void fill_media(void)
{
	for (unsigned i = 0; i < 64; i++)
		memset(fake_media() + (size_t)i * BLOCK, (int)(0x80 + i), BLOCK);
}

static inline void assert_read(struct smartio_nvme_buffer *b, unsigned i)
{
	for (unsigned k = 0; k < BLOCK; k++)
		assert_int_equal(data(b, i)[k], 0x80 + i);
}

/* ---- with two ways to the drive ---- */
static inline struct smartio_nvme *two_ways(void)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .flags = SMARTIO_NVME_MULTIPATH};
	struct smartio_nvme *n = NULL;

	assert_ok(smartio_nvme_open_with("nvme0", &o, &n));
	assert_non_null(n->second);
	return n;
}

static inline uint64_t way(const struct smartio_nvme *leg)
{
	return smartio_borrower_id(leg->d.handle);
}

/* I/O until both ways are open, and it is at home. */
static inline void go_home(struct smartio_nvme *n, struct smartio_nvme_queue *q,
			   struct smartio_nvme_buffer *b)
{
	for (unsigned i = 0; i < 5000 && !(q->leg == n && sio_nvme_leg_open(n->second)); i++) {
		put(q, b, false, 0);
		assert_int_equal(poll_all(q, 1), 0);
		fake.now += 1000000;
	}
	assert_ptr_equal(q->leg, n);
	assert_true(sio_nvme_leg_open(n->second));
}

#endif
