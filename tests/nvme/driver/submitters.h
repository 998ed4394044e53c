/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several submission queues that complete in one completion queue: what tests of them have in
 * common.
 */
#ifndef TESTS_NVME_DRIVER_SUBMITTERS_H
#define TESTS_NVME_DRIVER_SUBMITTERS_H

#include "common.h"
#include "multi.h"
#include "smartio/ext.h"
#include "smartio/nvmeraw.h"

#define BLOCK 512u
#define MS 1000000ull
#define LIMIT_MS 400u
#define MEMBERS 3u
#define ABORTED 0x007u /* Command Abort Requested */
enum { NOTHING, DELAY, DROP };

static inline struct smartio_nvme_queue_options first_options(uint32_t depth, uint32_t cq_depth)
{
	return (struct smartio_nvme_queue_options){
		.size = sizeof(struct smartio_nvme_queue_options),
		.depth = depth,
		.cq_depth = cq_depth};
}

static inline struct smartio_nvme_queue_options more_options(struct smartio_nvme_queue *of,
							     uint32_t depth)
{
	return (struct smartio_nvme_queue_options){
		.size = sizeof(struct smartio_nvme_queue_options),
		.depth = depth,
		.completes_in = of};
}

static inline struct smartio_nvme_queue *open_with(struct smartio_nvme *n,
						   const struct smartio_nvme_queue_options *o)
{
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, o, &q));
	return q;
}

static inline struct smartio_nvme_queue *first_of(struct smartio_nvme *n, uint32_t depth,
						  uint32_t cq_depth)
{
	const struct smartio_nvme_queue_options o = first_options(depth, cq_depth);

	return open_with(n, &o);
}

static inline struct smartio_nvme_queue *more(struct smartio_nvme_queue *of, uint32_t depth)
{
	const struct smartio_nvme_queue_options o = more_options(of, depth);

	return open_with(of->n, &o);
}

/* One and two more, of @depth each. */
static inline void open_three(struct smartio_nvme *n, uint32_t depth, struct smartio_nvme_queue **q)
{
	q[0] = first_of(n, depth, MEMBERS * depth);
	for (unsigned i = 1; i < MEMBERS; i++)
		q[i] = more(q[0], depth);
}

static inline struct smartio_nvme_counters counted(const struct smartio_nvme_queue *q)
{
	struct smartio_nvme_counters c;

	smartio_nvme_queue_counters(q, &c);
	return c;
}

static inline uint32_t pairs_taken(void)
{
	return smartio_nvme_manager_queue_pairs(fake.manager, NULL);
}

static inline void put(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, uint64_t block)
{
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, block, 1, b, 0,
				      (void *)(uintptr_t)(block + 1)));
}

/* Polls until something comes or the queue ends; the fake's time passes meanwhile. */
static inline int next(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c)
{
	int rc = 0;

	for (unsigned i = 0; i < 10000000 && rc == 0; i++) {
		rc = smartio_nvme_poll(q, c, 1);
		fake_step();
	}
	return rc;
}

#endif
