/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of a client, the same for the driver and for the bare loop: the compiler makes a copy
 * for each, with its submit and poll inlined. It keeps @depth commands in flight, submits again as
 * soon as a poll returns something, and reads the clock once per such poll: that is the end of what
 * came back and the beginning of what goes out.
 */
#ifndef BENCH_NVME_LOOP_H
#define BENCH_NVME_LOOP_H

#include "worker.h"

#define BENCH_MAX_DEPTH 256u
#define BENCH_BATCH 32u
#define BENCH_SILENCE_NS 30000000000ull
#define BENCH_LOOKS_PER_CLOCK 4096u

struct bench_loop {
	uint32_t depth, n_free;
	uint64_t places, random;
	uint64_t from, until, stop; /* completions in [from, until) count; submits end at stop */
	uint64_t start[BENCH_MAX_DEPTH];
	uint32_t slot[BENCH_MAX_DEPTH];
	struct bench_histogram h;
};

struct bench_loop_ops {
	void (*submit)(void *ctx, uint32_t slot, uint64_t place);
	/* Rings, then takes up to @max; < 0 ends the loop. */
	int (*poll)(void *ctx, uint32_t *slots, unsigned max);
};

static inline void bench_loop_init(struct bench_loop *l, uint32_t depth, uint64_t places)
{
	l->depth = l->n_free = depth;
	l->places = places;
	if (!l->random)
		l->random = bench_now() | 1;
	for (uint32_t i = 0; i < depth; i++)
		l->slot[i] = depth - 1 - i;
	bench_histogram_init(&l->h);
}

/* Below l->places, which is less than 2^32. */
static inline uint64_t bench_loop_place(struct bench_loop *l)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return (l->random >> 32) * l->places >> 32;
}

static inline __attribute__((always_inline)) int bench_loop_run(struct bench_loop *l, void *ctx,
								const struct bench_loop_ops ops)
{
	uint64_t now = bench_now(), last = now;
	uint32_t slots[BENCH_BATCH];
	unsigned empty = 0;

	while (now < l->stop || l->n_free < l->depth) {
		bool counts;
		int n;

		while (now < l->stop && l->n_free) {
			uint32_t slot = l->slot[--l->n_free];

			l->start[slot] = now;
			ops.submit(ctx, slot, bench_loop_place(l));
		}
		n = ops.poll(ctx, slots, BENCH_BATCH);
		if (n < 0)
			return n;
		if (n == 0) {
			if (++empty % BENCH_LOOKS_PER_CLOCK == 0 &&
			    bench_now() - last > BENCH_SILENCE_NS)
				bench_fail("no completion for 30 s");
			continue;
		}
		now = last = bench_now();
		counts = now >= l->from && now < l->until;
		for (int i = 0; i < n; i++) {
			if (counts)
				bench_histogram_add(&l->h, now - l->start[slots[i]]);
			l->slot[l->n_free++] = slots[i];
		}
	}
	return 0;
}

/* One command alone, from before its submit until it was found complete. */
static inline __attribute__((always_inline)) int bench_loop_one(struct bench_loop *l, void *ctx,
								const struct bench_loop_ops ops)
{
	uint64_t start = bench_now(), now;
	unsigned empty = 0;
	uint32_t slot;
	int n;

	ops.submit(ctx, 0, bench_loop_place(l));
	while ((n = ops.poll(ctx, &slot, 1)) == 0)
		if (++empty % BENCH_LOOKS_PER_CLOCK == 0 && bench_now() - start > BENCH_SILENCE_NS)
			bench_fail("no completion for 30 s");
	now = bench_now();
	if (n > 0)
		bench_histogram_add(&l->h, now - start);
	return n < 0 ? n : 0;
}

#endif
