/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The manager's ledger: which borrower has which queue pair, and which borrowers have ended. Pure
 * logic of the manager. A request of a borrower that has ended must not be executed, though it may
 * still be in the manager's ring: therefore the last SIO_NVME_ENDED borrowers that ended are
 * remembered.
 */
#ifndef NVME_USER_LEDGER_H
#define NVME_USER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

#define SIO_NVME_ENDED 4096u

/* The states of a queue pair; record.h says how a successor goes on from each. */
enum sio_nvme_pair_state {
	SIO_NVME_PAIR_FREE,
	SIO_NVME_PAIR_TAKING,
	SIO_NVME_PAIR_TAKEN,
	SIO_NVME_PAIR_GOING,
	SIO_NVME_PAIR_ENDED
};

/* One of the programs of a host that share a pair. */
struct sio_nvme_sharer {
	uint64_t borrower; /* 0: the place is free */
	uint64_t sequence; /* of the request for it */
	uint32_t notice;   /* the data interrupt that is sent when the pair ends */
	uint32_t notified; /* what it was notified of: bits of pair.dead, SIO_NVME_NOTIFIED_END */
	char program[16];
};
#define SIO_NVME_NOTIFIED_END (1u << 31)

struct sio_nvme_pair {
	enum sio_nvme_pair_state state;
	uint64_t borrower, key;	   /* borrower 0: free */
	uint64_t sequence;	   /* of the request for it */
	uint64_t sq_hold, cq_hold; /* the lender's pins of the queues' memory */
	/*
	 * The submission queue in the drive's memory: first page + 1 (0: not there), number of
	 * pages.
	 */
	uint16_t cmb, cmb_pages;
	uint32_t cq_of;	  /* the pair whose completion queue it uses; 0: it has one */
	uint32_t node;	  /* of the borrower, as it says */
	char program[16]; /* the same; terminated, of printable characters */
	/*
	 * For a pair that programs of @node share, with the borrower's segment as the first; share
	 * 0: not shared.
	 */
	uint32_t share, depth, most;
	uint32_t over; /* the adapter of @node by which all of them use it */
	uint32_t dead; /* bits: places of the programs that have ended */
	bool raises;   /* its completions raise a vector of the drive */
	struct sio_nvme_sharer sharer[SIO_NVME_SHARERS];
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
/* The lowest free queue id; 0: none. */
uint32_t sio_nvme_ledger_free_id(const struct sio_nvme_ledger *l);
void sio_nvme_ledger_take(struct sio_nvme_ledger *l, uint32_t qid,
			  const struct sio_nvme_pair *pair);
/* The pair that this very request of @borrower was given already; 0: none. */
uint32_t sio_nvme_ledger_given(const struct sio_nvme_ledger *l, uint64_t borrower,
			       uint64_t sequence);
/* The same in whatever state the pair is. */
uint32_t sio_nvme_ledger_asked(const struct sio_nvme_ledger *l, uint64_t borrower,
			       uint64_t sequence);
void sio_nvme_ledger_release(struct sio_nvme_ledger *l, uint32_t qid);
/* The place of that request among those that share @pair; 0 if the pair is not shared. */
uint32_t sio_nvme_ledger_place(const struct sio_nvme_pair *pair, uint64_t borrower,
			       uint64_t sequence);
/*
 * Finds a pair that a program on @node, which uses it over adapter @over, may join, with so many
 * commands of its own in flight: the one with the fewest programs. @raises: rather one whose
 * completions raise a vector. @ret_place: a free one. 0: there is none.
 */
uint32_t sio_nvme_ledger_joinable(const struct sio_nvme_ledger *l, uint32_t node, uint32_t over,
				  uint32_t depth, bool raises, uint32_t *ret_place);
/* The number of pairs that clients on @node have. */
uint32_t sio_nvme_ledger_of_node(const struct sio_nvme_ledger *l, uint32_t node);
/* The number of programs that share @pair and have not ended. */
uint32_t sio_nvme_ledger_sharers(const struct sio_nvme_pair *pair);
/* @borrower has ended: marks each of its places as dead. */
void sio_nvme_ledger_sharer_ended(struct sio_nvme_pair *pair, uint64_t borrower);
/* May @borrower delete @qid? It must have made it or share it, and know its key. Any @qid. */
bool sio_nvme_ledger_owns(const struct sio_nvme_ledger *l, uint32_t qid, uint64_t borrower,
			  uint64_t key);
/* Is @qid in use with this key, whichever borrower made it? Any @qid. */
bool sio_nvme_ledger_has(const struct sio_nvme_ledger *l, uint32_t qid, uint64_t key);
/* The first queue id after @qid that @borrower has or shares; 0: none. Start with 0. */
uint32_t sio_nvme_ledger_next(const struct sio_nvme_ledger *l, uint64_t borrower, uint32_t qid);
/* The first queue id after @after that uses the completion queue of @qid; 0: none. */
uint32_t sio_nvme_ledger_user(const struct sio_nvme_ledger *l, uint32_t qid, uint32_t after);
/*
 * Writes the list of owners, "node 12: 20 (fio), node 16: 1 (dd)", into @size bytes at @text. A
 * program on a node is named once, however often it runs there.
 */
void sio_nvme_ledger_holders(const struct sio_nvme_ledger *l, char *text, size_t size);
void sio_nvme_ledger_end(struct sio_nvme_ledger *l, uint64_t borrower);
bool sio_nvme_ledger_ended(const struct sio_nvme_ledger *l, uint64_t borrower);

#endif
