/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which program believes to have which blocks of which drive leased, by what managers answered.
 * Programs hear late of a lease that they have lost with each of their paths, so two may believe to
 * have the same blocks: then the one that got them first must have lost its queues, and nothing
 * that it sends from then on is done (leases_done()).
 */
#ifndef SIM_LEASES_H
#define SIM_LEASES_H

#include <stdbool.h>
#include <stdint.h>

struct blocks_drive;
struct leases_held;

struct leases_range {
	struct blocks_drive *drive;
	unsigned epoch; /* of the drive */
	uint32_t generation;
	uint64_t id; /* of one generation: later ones are greater */
	uint64_t lba, blocks;
	bool guarded; /* its blocks are in the model of blocks, and leases alone write there */
};

/* This program asks for a lease; of @lba UINT64_MAX anywhere. */
struct leases_held *leases_ask(const struct leases_range *range);
/* It was given that one. Who had some of its blocks before has lost them. */
void leases_taken(struct leases_held *h, const struct leases_range *range);
/*
 * It is about to give the lease back, or has given up all that it had of the drive; or it was not
 * answered, and a manager may have given it the lease until it hears that it was taken back.
 */
void leases_given(struct leases_held *h);
/*
 * A command that was sent at @sent, in a queue of this lease, was done. Fails the run if another
 * program had been given some of its blocks before.
 */
void leases_done(const struct leases_held *h, uint64_t sent);
/*
 * It was refused. With @busy because of others, which fails the run if no program has had some of
 * the blocks, or may have had them, for @grace nanoseconds before.
 */
void leases_refused(struct leases_held *h, bool busy, uint64_t grace);

#endif
