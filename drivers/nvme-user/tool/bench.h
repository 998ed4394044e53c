/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the measurement and its printing. */
#ifndef NVME_USER_TOOL_BENCH_H
#define NVME_USER_TOOL_BENCH_H

#include "histogram.h"
#include "smartio/ext.h"
#include "tool.h"

#define BENCH_COUNTERS 64u

struct bench_io {
	uint64_t start;
	struct smartio_nvme_queue *q; /* that it is submitted to */
	uint32_t index;		      /* its part of the buffer */
};

struct bench {
	const struct options *o;
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q, *more[BENCH_QUEUES]; /* more: that complete there */
	struct smartio_nvme_buffer *buffer;
	struct smartio_nvme_namespace ns;
	struct progress progress;
	struct bench_io *io, **idle;
	uint32_t depth, n_idle, blocks, n_more;
	uint64_t first_lba, places, next_place, random;
	unsigned fdid;
	/* Results. */
	uint64_t last, taken; /* nanoseconds: of the last completion; of the measurement */
	uint64_t gap;	      /* the longest time without a completion */
	struct smartio_nvme_counters driver;
	struct smartio_counter fabric[BENCH_COUNTERS];
	unsigned n_fabric;
	struct histogram h;
};

void bench_print(const struct bench *b);

#endif
