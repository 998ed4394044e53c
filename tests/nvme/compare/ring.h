/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_NVME_COMPARE_RING_H
#define TESTS_NVME_COMPARE_RING_H

#include "script.h"

/* A queue pair: the driver's admin queue (id 0), or one of bench.queue. */
struct ring {
	uint8_t *sq, *cq;
	uint32_t sq_entries, cq_entries, *tail, *head, *phase, id;
};

/* False: there is no such queue. */
bool ring_of(unsigned id, struct ring *ret);
/* An entry from "OP KEY=VALUE..." behind word @op_word. @nsid: if none is given. */
bool ring_entry(const struct step *s, unsigned op_word, uint32_t nsid, uint32_t sqe[16]);
void ring_put(const struct ring *r, const uint32_t sqe[16]);
void ring_bell(const struct ring *r);
void ring_doorbell(uint32_t word, uint32_t value);
/* The next completion, within @turns of the drive; false: none came. */
bool ring_take(const struct ring *r, unsigned turns, uint32_t cqe[4]);

#endif
