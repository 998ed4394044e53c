/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durations in nanoseconds, counted in buckets whose width grows with the value: below 1 % of it.
 * Fixed size, no allocation; one addition per value.
 */
#ifndef NVME_USER_TOOL_HISTOGRAM_H
#define NVME_USER_TOOL_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 7 /* 128 buckets per power of two */
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
	uint64_t count, min, max, sum;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_init(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t value);
/*
 * The value that @permyriad of 10,000 values do not exceed; 0 if there are none. Exact at both
 * ends.
 */
uint64_t histogram_percentile(const struct histogram *h, unsigned permyriad);

#endif
