/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done again and again while one call after the other fails. */
#ifndef TESTS_API_FAULT_H
#define TESTS_API_FAULT_H

#include <stdbool.h>

#include "../lib/cluster.h"

/* What failed, the last time; fault_judge.c: which errors are right then. */
enum fault_kind {
	FAULT_NONE,
	FAULT_MEMORY,  /* malloc() and its like */
	FAULT_REQUEST, /* the connection to smartiod */
	FAULT_UNSENT,  /* a message to it, for want of memory: it was not sent */
	FAULT_SYSTEM,  /* mappings, descriptors, threads */
	FAULT_LINK,    /* that to the other host goes down now and then */
};
extern enum fault_kind fault_failed; /* atomic */

/* What a call does: an earlier failure may be why it cannot. */
enum fault_call {
	FAULT_MAKES,	 /* something new, of nothing that may be missing */
	FAULT_BEGINS,	 /* the library */
	FAULT_PUBLISHES, /* a segment that may not be prepared */
	FAULT_FINDS,	 /* by name or number, what may not have been made */
	FAULT_USES,	 /* what may be lost */
	FAULT_WAITS,	 /* for what may not have been sent */
	FAULT_QUEUES,	 /* orders of a queue's life */
};

/*
 * Whether a call worked. When not, there is a text, and the code is a right one; else the program
 * ends. A failure may end the connection, and then that is the error.
 */
bool fault_judge(enum fault_call call, sci_error_t error, const char *file, int line);
#define worked_as(call, error) fault_judge((call), (error), __FILE__, __LINE__)
#define worked(error) worked_as(FAULT_MAKES, (error))
#define found(error) worked_as(FAULT_FINDS, (error))
#define used(error) worked_as(FAULT_USES, (error))
#define waited(error) worked_as(FAULT_WAITS, (error))
/* The same of what a callback is told, which has no text. */
bool fault_judge_status(sci_error_t status, const char *file, int line);
#define told(status) fault_judge_status((status), __FILE__, __LINE__)

/*
 * What ends an object that smartiod may have to agree to: if it could not be asked all is as it
 * was, and it is ended when it can be. @error is the call's.
 */
#define END(call)                                                                                  \
	do                                                                                         \
		call;                                                                              \
	while (fault_again(error, __FILE__, __LINE__))
bool fault_again(sci_error_t error, const char *file, int line);
/* Messages can be sent again; NULL: nobody can see to that, and what cannot be ended is left. */
extern void (*fault_relief)(void);
extern bool fault_flaps; /* links go down now and then, whatever else fails */
extern bool fault_left;	 /* something was left, and what it hangs on is BUSY */
/* As api_remove_segment(). */
void remove_segment(sci_local_segment_t segment);
void remove_interrupt(sci_local_interrupt_t interrupt);
/* A few words of the program's own, by an engine, to @far. */
void push_words(sci_desc_t sd, sci_remote_segment_t far, size_t size, unsigned flags);
/* Trigger @interrupt of node 4, which is @number, wait for it, and remove it. */
void trigger_to_end(sci_desc_t sd, sci_local_interrupt_t interrupt, unsigned number);
/* Doorbells are to wake by an event descriptor, not by faults: for a world that can be told so. */
extern bool fault_no_faults;

/* One kind of object, from its making to its end; on node 4. A name of NULL ends the list. */
struct fault_scenario {
	const char *name;
	void (*use)(sci_desc_t sd);
	bool exact; /* it wants a cluster with exact multicast groups */
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
/* A segment @id of node 4 that is available; NULL: a failure. */
sci_local_segment_t export_segment(sci_desc_t sd, unsigned id, bool heard);
/* fault_kinds.c */
void use_shared_interrupts(sci_desc_t sd);
void use_messages_to_all(sci_desc_t sd);
void use_gathered_dma(sci_desc_t sd); /* and block transfers, channels, memory of the program */
void use_queries(sci_desc_t sd);
/* fault_more.c */
void use_queues(sci_desc_t sd);
void use_multicast(sci_desc_t sd);
void use_exact_multicast(sci_desc_t sd);
void use_callbacks(sci_desc_t sd);
void use_data_callbacks(sci_desc_t sd);
void use_vectors(sci_desc_t sd);
void use_memory_for_device(sci_desc_t sd);
void use_device_interrupts(sci_desc_t sd);

#endif
