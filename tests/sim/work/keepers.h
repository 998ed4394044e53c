/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all programs of the workload "keep" know of each one that borrowed a device: by this the
 * answers that they get are judged.
 */
#ifndef SIM_KEEPERS_H
#define SIM_KEEPERS_H

#include <stdbool.h>
#include <stdint.h>

/* What all know of one who has a device. */
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
/* It hears of settlements, and of resets by lenders. */
struct sim_listener;
extern const struct sim_listener sim_keepers_listener;

/* The device was pulled out of its slot: nobody has it since, and nothing is in quarantine. */
bool sim_keeper_pulled(const struct keeper *k);
/* Others' entries are freed during any call: they are found anew after it. NULL: it was. */
const struct keeper *sim_keeper_find(uint32_t fdid, uint64_t borrower);
/* It has the device for sure: it lives, gives nothing back, and nobody can believe it is gone. */
bool sim_keeper_lives(const struct keeper *k);
void sim_keepers_notice_deaths(void);
/* One who has, or had, this device. */
struct keeper *sim_keeper_pick(uint32_t fdid);

#endif
