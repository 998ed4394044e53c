/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done again and again while one call after the other fails. */
#ifndef TESTS_API_FAULT_H
#define TESTS_API_FAULT_H

#include <stdbool.h>

#include "../lib/cluster.h"

/* After an error there is a text. */
bool worked(sci_error_t error);
/* Who still looks at it may keep it for a while. */
void remove_segment(sci_local_segment_t seg);
/* Trigger @interrupt of node 4, which is @number, wait for it, and remove it. */
void trigger_to_end(sci_desc_t sd, sci_local_interrupt_t interrupt, unsigned number);
/* Doorbells are to wake by an event descriptor, not by faults: for a world that can be told so. */
extern bool fault_no_faults;

/* One kind of object, from its making to its end; on node 4. A name of NULL ends the list. */
struct fault_scenario {
	const char *name;
	void (*use)(sci_desc_t sd);
};
extern const struct fault_scenario fault_scenarios[];

/*
 * fault_far.c: a segment and interrupts of node 8, if it has them. What puts the link to it down
 * and up meanwhile; NULL: nothing.
 */
void use_far(sci_desc_t sd);
extern void (*fault_link)(bool up);
/* On node 8: initialise the library, and make what use_far() looks for. */
void fault_far_begin(void);
/* fault_segments.c */
void use_connections(sci_desc_t sd); /* without waiting, with callbacks, with waits */
void use_own_memory(sci_desc_t sd);
void use_shares(sci_desc_t sd);
/* fault_kinds.c */
void use_shared_interrupts(sci_desc_t sd);
void use_messages_to_all(sci_desc_t sd);
void use_gathered_dma(sci_desc_t sd); /* and block transfers, channels, memory of the program */
void use_queries(sci_desc_t sd);

#endif
