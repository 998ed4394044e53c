/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases of clients: "leaser" (work/nvme.c). */
#ifndef SIM_LEASE_H
#define SIM_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct smartio_nvme;
struct smartio_nvme_lease;
struct blocks_drive;
struct leases_held;

struct sim_lease {
	struct smartio_nvme_lease *l; /* NULL: none */
	struct leases_held *held;
	uint32_t first, blocks;
};

/* In seeds that have leasers all other clients use the blocks before this one of @blocks. */
uint32_t sim_lease_from(uint32_t blocks);
/*
 * Takes a lease of some of the blocks from sim_lease_from() to @blocks, @least of them or more;
 * with luck, since others have theirs. Return: whether it has one.
 */
bool sim_lease_take(struct sim_lease *s, struct smartio_nvme *n, struct blocks_drive *d,
		    uint32_t blocks, uint32_t least);
/* Gives it back; with @ends: or its drive is closed next, by which it ends. */
void sim_lease_give(struct sim_lease *s, bool ends);
/* Asks for all leases, and checks that no two of them have a block. */
void sim_lease_list(struct smartio_nvme *n, const struct sim_lease *own);

#endif
