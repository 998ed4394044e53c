/* SPDX-License-Identifier: BSD-2-Clause */
/* Times in buckets that grow with the value: each is narrower than 1 % of it. */
#ifndef BENCH_NVME_HISTOGRAM_H
#define BENCH_NVME_HISTOGRAM_H

#include <stdint.h>
#include <string.h>

#define BENCH_HISTOGRAM_BITS 7 /* 128 buckets per power of two */
#define BENCH_HISTOGRAM_BUCKETS ((64u - BENCH_HISTOGRAM_BITS + 1) << BENCH_HISTOGRAM_BITS)

struct bench_histogram {
	uint64_t count, min, max;
	uint32_t bucket[BENCH_HISTOGRAM_BUCKETS];
};

static inline void bench_histogram_init(struct bench_histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

static inline void bench_histogram_add(struct bench_histogram *h, uint64_t value)
{
	uint64_t index = value;

	if (value >> BENCH_HISTOGRAM_BITS) {
		unsigned shift = 63u - BENCH_HISTOGRAM_BITS - (unsigned)__builtin_clzll(value);

		index = ((uint64_t)(shift + 1) << BENCH_HISTOGRAM_BITS) +
			((value >> shift) - (1u << BENCH_HISTOGRAM_BITS));
	}
	h->bucket[index]++;
	h->count++;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

/* The middle of a bucket. */
static inline uint64_t bench_histogram_value(uint32_t index)
{
	uint32_t shift = index >> BENCH_HISTOGRAM_BITS;
	uint64_t mantissa = index & ((1u << BENCH_HISTOGRAM_BITS) - 1);

	if (shift == 0)
		return mantissa;
	shift--;
	return ((mantissa + (1u << BENCH_HISTOGRAM_BITS)) << shift) + ((1ull << shift) >> 1);
}

#endif
