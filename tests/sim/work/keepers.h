/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The borrowers of the workload "keep", as all its programs know them: the answers that programs
 * get are checked against this.
 */
#ifndef SIM_KEEPERS_H
#define SIM_KEEPERS_H

#include <stdbool.h>
#include <stdint.h>

#define SETTLED UINT32_MAX /* the quarantine has ended */

/* What all programs know of a borrower. */
struct keeper {
	char name[32];
	uint32_t pid, fdid;
	uint64_t borrower, since;
	/* sim_peer_breaks() and sim_paths_gone() of @host and @lender when it was borrowed */
	uint64_t breaks, gone;
	unsigned host, lender;
	uint64_t from, bytes; /* what it mapped for the device; 0 bytes: nothing */
	unsigned vector;
	bool leaves;  /* it is returning the device, or has returned it */
	uint64_t end; /* when its program was found dead; 0: it was not */
	/*
	 * The pid of the program whose request to end the quarantine is not answered yet; SETTLED
	 */
	uint32_t settled;
	struct keeper *prev, *next;
};

extern struct keeper *sim_keepers;
/* Learns of ended quarantines and of resets by lenders. */
struct sim_listener;
extern const struct sim_listener sim_keepers_listener;

/*
 * Was the device pulled out of its slot since it was borrowed? Then the borrow has ended, and
 * nothing of it is in quarantine.
 */
bool sim_keeper_pulled(const struct keeper *k);
/*
 * Any call may free the entries of other borrowers, so they have to be looked up again after it.
 * NULL: it was freed.
 */
const struct keeper *sim_keeper_find(uint32_t fdid, uint64_t borrower);
/*
 * Has the borrower certainly still the device? Its program lives and is not returning it, and no
 * daemon can take it for dead.
 */
bool sim_keeper_lives(const struct keeper *k);
/* Sets @end of those whose programs have died. */
void sim_keepers_notice_deaths(void);
/* Draws a borrower that has or had this device; NULL: there is none. */
struct keeper *sim_keeper_pick(uint32_t fdid);

#endif
