/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables inside daemons: what each of two has recorded of the other. For oracle/agree.c. */
#ifndef SIM_PAIRS_H
#define SIM_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sim.h"

enum pair_kind {
	PAIR_START,  /* of a host: the generation of its boot */
	PAIR_LINK,   /* one that is up, from adapter to adapter, its turn */
	PAIR_REF,    /* a connection to a segment: its uid, the importer's number, the adapter */
	PAIR_GRANT,  /* of memory, or of a BAR: its number; its window is dead: it must not be */
	PAIR_RING,   /* a connection to an interrupt: its uid, the sender's number, what it has */
	PAIR_DEVICE, /* its id, its generation, what else is reported of it */
	PAIR_BORROW, /* its number, the device's */
	PAIR_DMA,    /* memory mapped for a device: the borrow's number, its own */
	PAIR_VIEW,   /* of a BAR: the borrow's number, its own, the grant's */
	PAIR_PLACED, /* a device's memory at its borrower: the device's id, its uid */
	PAIR_REQUESTER, /* an entry: the device's id, the adapter, how many need it */
	PAIR_MEMBER,	/* of a multicast group: its number, the memory, whether it is published */
	PAIR_KINDS
};

/* An object that host @giver has given host @taker: both have recorded it. */
struct pair_fact {
	uint32_t other; /* index of the other host, in each one's list */
	uint32_t kind;
	uint64_t number[3];
};

/* The list of one side of a host: what it gave, or what it has. */
struct pair_list {
	struct pair_fact *fact;
	unsigned n, max;
	uint64_t sum[SIM_HOSTS]; /* of what it has with each: equal lists have equal sums */
};

/* The number of events of the daemon; 0: it does not run, or an operation is under way. */
uint64_t pairs_quiet(unsigned host);
/* Fills both lists. */
void pairs_read(unsigned host, struct pair_list *gives, struct pair_list *has);

#endif
