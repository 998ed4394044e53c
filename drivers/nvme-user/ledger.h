/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which borrower has which queue pair, and which borrowers have ended. Pure logic of the manager.
 *
 * A request of a borrower that has ended must not be executed, though it may still wait in the
 * manager's ring: the last SIO_NVME_ENDED that ended are remembered.
 */
#ifndef NVME_USER_LEDGER_H
#define NVME_USER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIO_NVME_ENDED 4096u

/* book.h says how to go on from each. */
enum sio_nvme_pair_state {
	SIO_NVME_PAIR_FREE,
	SIO_NVME_PAIR_TAKING,
	SIO_NVME_PAIR_TAKEN,
	SIO_NVME_PAIR_GOING
};

struct sio_nvme_pair {
	enum sio_nvme_pair_state state;
	uint64_t borrower, key;	   /* borrower 0: free */
	uint64_t sequence;	   /* of the request for it */
	uint64_t sq_hold, cq_hold; /* the lender's holds of their memory */
	uint32_t node;		   /* of the borrower, as it says */
	char program[16];	   /* the same; terminated, of printable characters */
};

struct sio_nvme_ledger {
	uint32_t pairs, used;
	uint64_t given;		    /* so far */
	struct sio_nvme_pair *pair; /* index: queue id, from 1 to pairs */
	uint64_t *ended;	    /* a ring */
	uint32_t n_ended, next_ended;
};

/* -ENOMEM. */
int sio_nvme_ledger_init(struct sio_nvme_ledger *l, uint32_t pairs);
void sio_nvme_ledger_done(struct sio_nvme_ledger *l);
/* Lowest free queue id; 0: none. */
uint32_t sio_nvme_ledger_free_id(const struct sio_nvme_ledger *l);
void sio_nvme_ledger_take(struct sio_nvme_ledger *l, uint32_t qid,
			  const struct sio_nvme_pair *pair);
/* The pair that this very request of @borrower was given already; 0: none. */
uint32_t sio_nvme_ledger_given(const struct sio_nvme_ledger *l, uint64_t borrower,
			       uint64_t sequence);
void sio_nvme_ledger_release(struct sio_nvme_ledger *l, uint32_t qid);
/* Whether @borrower may delete @qid: it made it, and knows its key. Any @qid. */
bool sio_nvme_ledger_owns(const struct sio_nvme_ledger *l, uint32_t qid, uint64_t borrower,
			  uint64_t key);
/* The first queue id after @qid that @borrower has; 0: none. Start with 0. */
uint32_t sio_nvme_ledger_next(const struct sio_nvme_ledger *l, uint64_t borrower, uint32_t qid);
/*
 * "node 12: 20 (fio), node 16: 1 (dd)": who has how many, into @size bytes at @text. A program
 * on a node is named once, however often it runs there.
 */
void sio_nvme_ledger_holders(const struct sio_nvme_ledger *l, char *text, size_t size);
void sio_nvme_ledger_end(struct sio_nvme_ledger *l, uint64_t borrower);
bool sio_nvme_ledger_ended(const struct sio_nvme_ledger *l, uint64_t borrower);

#endif
