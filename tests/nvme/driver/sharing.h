/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that share queue pairs, over the drive's model: what tests of them have in common. */
#ifndef TESTS_NVME_DRIVER_SHARING_H
#define TESTS_NVME_DRIVER_SHARING_H

#include "common.h"

#define PAIRS 4u
#define BLOCK 512u
#define DEPTH 4u

struct program {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	uint64_t borrower;
};

static inline int try_queue(struct smartio_nvme *n, uint32_t flags, uint32_t depth,
			    struct smartio_nvme_queue **ret)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = depth, .flags = flags};

	return smartio_nvme_queue_open(n, &o, ret);
}

/* @more: flags beside those of all programs that share a pair. */
static inline struct program program_with(uint32_t more)
{
	struct program p = {.n = client()};

	p.borrower = fake_last_borrower();
	assert_ok(try_queue(p.n,
			    SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE | SMARTIO_NVME_ALONE | more,
			    DEPTH, &p.q));
	p.b = buffer(p.n, 2 * BLOCK);
	return p;
}

static inline struct program program(void)
{
	return program_with(0);
}

/* Its block is written and read back. */
static inline void use(struct program *p, unsigned value)
{
	uint8_t *data = smartio_nvme_buffer_data(p->b);
	struct smartio_nvme_completion none;
	const uint64_t lba = p->borrower % 1024;

	memset(data, (int)value, BLOCK);
	while (smartio_nvme_submit(p->q, SMARTIO_NVME_WRITE, lba, 1, p->b, 0, NULL) == -EAGAIN)
		assert_int_equal(smartio_nvme_poll(p->q, &none, 1), 0);
	assert_int_equal(one(p->q).status, 0);
	memset(data, 0, BLOCK);
	assert_ok(smartio_nvme_submit(p->q, SMARTIO_NVME_READ, lba, 1, p->b, 0, NULL));
	assert_int_equal(one(p->q).status, 0);
	for (unsigned i = 0; i < BLOCK; i++)
		assert_int_equal(data[i], (uint8_t)value);
	assert_int_equal(fake_media()[lba * BLOCK], (uint8_t)value);
}

static inline void use_all(struct program *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		use(&p[i], 0x10 + i);
}

static inline void end(struct program *p)
{
	fake_kill(p->borrower);
	smartio_nvme_close(p->n);
	fake_bury(p->borrower);
}

/* On one pair: others have the rest. */
static inline struct smartio_nvme *few(struct program *p, unsigned n)
{
	struct smartio_nvme *all = client();

	for (unsigned i = 1; i < PAIRS; i++)
		queue(all, DEPTH);
	for (unsigned i = 0; i < n; i++)
		p[i] = program();
	return all;
}

#endif
