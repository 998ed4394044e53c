/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The borrowers of the workload "keep", as all its programs know them: the answers that programs
 * get are checked against this.
 */
#ifndef SIM_KEEPERS_H
#define SIM_KEEPERS_H

#include <stdbool.h>
#include <stdint.h>

/* What all programs know of a borrower. */
#define SETTLED UINT32_MAX
struct keeper {
	char name[32];
	uint32_t pid, fdid;
	uint64_t borrower, since;
	uint64_t breaks, gone; /* of the two hosts: all paths, and one of them */
	unsigned host, lender;
	uint64_t from, bytes; /* mapped for the device; 0 bytes: nothing */
	unsigned vector;
	bool leaves;	  /* it returns the device, or has done so */
	uint64_t end;	  /* when it was seen to be dead; 0: it was not */
	uint32_t settled; /* by whom, whose call is not answered; SETTLED; 0: it is not */
	struct keeper *prev, *next;
};

extern struct keeper *sim_keepers;
/* Listens for settlements, and for resets by lenders. */
struct sim_listener;
extern const struct sim_listener sim_keepers_listener;

/*
 * The device was pulled out of its slot: it has had no borrower since, and nothing is in
 * quarantine.
 */
bool sim_keeper_pulled(const struct keeper *k);
/*
 * Other borrowers' entries are freed during any call, so they are looked up again after it. NULL:
 * it was freed.
 */
const struct keeper *sim_keeper_find(uint32_t fdid, uint64_t borrower);
/*
 * Does the borrower certainly have the device: it lives, is not returning it, and nobody can take
 * it for dead?
 */
bool sim_keeper_lives(const struct keeper *k);
void sim_keepers_notice_deaths(void);
/* Draws a borrower that has, or had, this device. */
struct keeper *sim_keeper_pick(uint32_t fdid);

#endif
