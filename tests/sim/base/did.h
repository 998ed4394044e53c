/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of what the faults of this run did, incremented where they do it. Events of the plan
 * that had nothing to act on are not counted.
 */
#ifndef SIM_DID_H
#define SIM_DID_H

#include <stdint.h>

struct sim_did {
	uint64_t death;	   /* programs killed */
	uint64_t crash;	   /* hosts that ran */
	uint64_t link;	   /* cables that were in */
	uint64_t between;  /* switches, and links between them, by which ways were lost */
	uint64_t anew;	   /* hosts whose links came back elsewhere */
	uint64_t cut;	   /* connections of daemons */
	uint64_t delay;	   /* messages */
	uint64_t clock;	   /* jumps */
	uint64_t lack;	   /* calls of programs that failed */
	uint64_t scarce;   /* the same */
	uint64_t port;	   /* requests that were refused */
	uint64_t memory;   /* allocations that failed */
	uint64_t tables;   /* mappings for which there was no entry */
	uint64_t deaf;	   /* events that ports dropped */
	uint64_t restart;  /* daemons that ran and were killed */
	uint64_t absent;   /* the same */
	uint64_t unheard;  /* the same */
	uint64_t removal;  /* drives pulled out */
	uint64_t forge;	   /* lies told */
	uint64_t liar;	   /* messages made up or changed */
	uint64_t stranger; /* requests */
	uint64_t stop;	   /* programs stopped */
	uint64_t doze;	   /* engines that fell asleep */
	uint64_t busy;	   /* managers and clients of drives that were added to what was drawn */
	uint64_t flood;	   /* rings that were full, and drives that were tried */
};
extern struct sim_did sim_did;

#endif
