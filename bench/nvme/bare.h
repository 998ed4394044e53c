/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The yardstick: what an NVMe read moves, and nothing else. Between two processes, through shared
 * memory: a 64-byte command into a ring, a doorbell store, a copy out of the disk, a completion of
 * 16 bytes whose last word carries the phase. No PRP lists, no IOMMU, no bridge, no checks: each
 * client trusts the device and the other way round.
 */
#ifndef BENCH_NVME_BARE_H
#define BENCH_NVME_BARE_H

#include <stdint.h>

#define BARE_ENTRIES 256u    /* of each ring; a power of 2 */
#define BARE_DATA (2u << 20) /* bytes for each client's data */
#define BARE_DISK (64u << 20)
#define BARE_BURST 32u /* commands of one client in a row */
#define BARE_PAGE 4096u
#define BARE_HUGE_PAGE (2u << 20)

struct bare_command {
	uint32_t opcode_and_slot, namespace;
	uint64_t unused, metadata;
	uint64_t offset; /* of the data in the client's memory */
	uint64_t unused2;
	uint64_t place; /* in the disk, bytes */
	uint64_t length;
	uint64_t unused3;
};
_Static_assert(sizeof(struct bare_command) == 64, "as NVMe's");

struct bare_completion {
	uint64_t result;
	uint64_t slot_and_phase; /* phase: bit 63 */
};
_Static_assert(sizeof(struct bare_completion) == 16, "as NVMe's");

/* Shared by the device and one client. What one side writes has cache lines of its own. */
struct bare_client {
	struct bare_command sq[BARE_ENTRIES];
	struct bare_completion cq[BARE_ENTRIES];
	uint32_t doorbell __attribute__((aligned(128))); /* free-running tail */
	uint8_t data[BARE_DATA] __attribute__((aligned(4096)));
};

struct bare_shared {
	uint32_t stop __attribute__((aligned(4096))); /* bench.py tells the device */
	uint32_t device_looks, client_looks;	      /* empty looks before each yield */
	struct bare_client client[] __attribute__((aligned(4096)));
};

/* @fd of @clients clients; ends the process if it cannot. */
struct bare_shared *bare_map(const char *fd, const char *clients, uint32_t *ret_clients);

#endif
