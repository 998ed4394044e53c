/* SPDX-License-Identifier: BSD-2-Clause */
/* Submission queues of one client that complete in one completion queue (work/several.c). */
#ifndef SIM_SEVERAL_H
#define SIM_SEVERAL_H

#include <stdbool.h>
#include <stdint.h>

#include "smartio/nvme.h"

#define SIM_SEVERAL 3u

struct sim_several {
	struct smartio_nvme *n;
	uint32_t depth;				   /* of each */
	uint64_t resets;			   /* of the drive, that were noted before */
	struct smartio_nvme_queue *q[SIM_SEVERAL]; /* NULL: not open; 0: the one with the queue */
};

/* The first one is open: opens some more. */
void sim_several_open(struct sim_several *s, struct smartio_nvme *n,
		      struct smartio_nvme_queue *first, uint32_t depth, uint64_t resets);
/* One of them. */
struct smartio_nvme_queue *sim_several_pick(const struct sim_several *s);
/*
 * Sometimes closes one of which nothing is in flight, but the first, or opens another. @busy: has
 * it commands in flight?
 */
void sim_several_change(struct sim_several *s,
			bool (*busy)(void *arg, const struct smartio_nvme_queue *q), void *arg);
/* Closes all, in any order. @close: closes one of them. */
void sim_several_close(struct sim_several *s, void (*close)(struct smartio_nvme_queue *q));

#endif
