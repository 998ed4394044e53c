/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "histogram.h"

#define SUB (1u << HISTOGRAM_BITS)

void histogram_init(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

/* Values below SUB have a bucket each; then SUB buckets for each power of two. */
static unsigned index_of(uint64_t value)
{
	unsigned shift;

	if (value < SUB)
		return (unsigned)value;
	shift = 63 - HISTOGRAM_BITS - (unsigned)__builtin_clzll(value);
	return (shift << HISTOGRAM_BITS) + (unsigned)(value >> shift);
}

/* The largest value of a bucket. */
static uint64_t value_of(unsigned index)
{
	unsigned shift;
	uint64_t top;

	if (index < 2 * SUB)
		return index;
	shift = (index >> HISTOGRAM_BITS) - 1;
	top = (index & (SUB - 1)) + SUB;
	return (top << shift) + ((1ull << shift) - 1);
}

void histogram_add(struct histogram *h, uint64_t value)
{
	h->bucket[index_of(value)]++;
	h->count++;
	h->sum += value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

uint64_t histogram_percentile(const struct histogram *h, unsigned permyriad)
{
	uint64_t rank, seen = 0, value;

	if (h->count == 0)
		return 0;
	/* Rounded up without leaving 64 bits. */
	rank = h->count / 10000 * permyriad + (h->count % 10000 * permyriad + 9999) / 10000;
	if (rank == 0)
		return h->min;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen < rank)
			continue;
		value = value_of(i);
		return value > h->max ? h->max : value;
	}
	return h->max;
}
