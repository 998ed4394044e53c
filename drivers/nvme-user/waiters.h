/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiters: clients that were refused a queue pair and want to be notified when one is free, and
 * which of several hosts has the next one. Pure logic of the manager. Each host has as many pairs
 * as any other, as long as its programs wait: a pair that is free is for the hosts that have the
 * fewest. All clients of these are notified at once, in the order in which they came, and ask
 * again. One that does not ask within a moment delays nobody any more.
 */
#ifndef NVME_USER_WAITERS_H
#define NVME_USER_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"

#define SIO_NVME_WAITERS 1024u
#define SIO_NVME_WAITERS_EACH 64u     /* of one borrower, so that it cannot keep all others out */
#define SIO_NVME_TURN_NS 500000000ull /* that a client may take to ask, once it is notified */

struct sio_nvme_waiter {
	uint64_t borrower;
	uint32_t node, interrupt; /* where it is notified */
	uint64_t until;		  /* it was, and may ask until then; 0: it waits */
	uint32_t pairs;		  /* that its node has */
};

struct sio_nvme_waiters {
	uint32_t n;
	struct sio_nvme_waiter list[SIO_NVME_WAITERS];
};

/*
 * A client is recorded once, however often it asks. False: too many wait already, in all or of this
 * borrower.
 */
bool sio_nvme_waiters_add(struct sio_nvme_waiters *w, const struct sio_nvme_waiter *waiter);
/* The waiting client has ended. */
void sio_nvme_waiters_end(struct sio_nvme_waiters *w, uint64_t borrower);
/* It asks again, and is recorded no more. */
void sio_nvme_waiters_asks(struct sio_nvme_waiters *w, uint64_t borrower, uint32_t interrupt);
/* Forgets those whose moment is over, and counts the pairs of the others' nodes. */
void sio_nvme_waiters_look(struct sio_nvme_waiters *w, const struct sio_nvme_ledger *l,
			   uint64_t now);
/*
 * As of that: how many clients of other nodes than @node, which has @pairs, come before a client of
 * it, because their nodes have fewer. @even: or as many.
 */
uint32_t sio_nvme_waiters_before(const struct sio_nvme_waiters *w, uint32_t node, uint32_t pairs,
				 bool even);
/*
 * The first client that waits and may have one of @free pairs, or, if @places, a place in one that
 * its node shares. It is notified: until @until it counts as one that waits. -1: none.
 */
int sio_nvme_waiters_turn(struct sio_nvme_waiters *w, const struct sio_nvme_ledger *l, bool places,
			  uint64_t until);
/* That one cannot be reached. */
void sio_nvme_waiters_drop(struct sio_nvme_waiters *w, int i);

#endif
