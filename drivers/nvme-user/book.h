/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The book of a manager: what whoever follows it must know to go on without a reset. It lies in a
 * segment that outlives its maker, with the drive's lender; the manager writes what it is about to
 * do before it does it, and never reads it. Source: our own; the paper's manager has none.
 *
 * Two threads of one story: the admin queue's word (controller.h), and of each queue pair what is
 * to become of it, in an order in which each state says how to go on:
 *
 *   FREE     nothing of it is in the drive
 *   TAKING   its queues are being made: they are deleted, its client asks again
 *   TAKEN    its client has it, or will have it when it asks again with the same sequence number
 *   GOING    its queues are being deleted: that is completed
 *
 * To delete a queue that is not there is no error, so nobody needs to know how far it had come.
 */
#ifndef NVME_USER_BOOK_H
#define NVME_USER_BOOK_H

#include "leases.h"
#include "ledger.h"
#include "shared.h"

struct sio_nvme_book {
	struct sio_nvme_shared at;
	uint32_t pairs;
	uint64_t maker; /* the borrow that has mapped the admin queue for the drive */
	uint64_t lease_id[SIO_NVME_LEASES]; /* in each place; 0: free */
};

/* What stands at its beginning. */
struct sio_nvme_book_head {
	uint64_t maker, ioaddr; /* of the admin queue's memory, as the drive addresses it */
	uint32_t generation, pairs, entries, segment; /* segment: that memory's */
};

/* Make one, of nothing; it says nothing until sio_nvme_book_begin(). -EEXIST: there is one. */
int sio_nvme_book_make(struct sio_nvme_book *b, struct sio_nvme_device *d, uint32_t pairs);
void sio_nvme_book_begin(struct sio_nvme_book *b, const struct sio_nvme_book_head *head);
/* That of a manager that is gone. -ENOENT: there is none; -ESTALE: it makes no sense. */
int sio_nvme_book_find(struct sio_nvme_book *b, struct sio_nvme_device *d,
		       struct sio_nvme_book_head *ret);
void sio_nvme_book_close(struct sio_nvme_book *b);
/* Where the word of the admin queue stands. */
volatile uint8_t *sio_nvme_book_word(const struct sio_nvme_book *b);

/* Of all the rest: a book that is not there is written for nobody. */
void sio_nvme_book_pair(struct sio_nvme_book *b, uint32_t qid, const struct sio_nvme_pair *pair);
void sio_nvme_book_read_pair(const struct sio_nvme_book *b, uint32_t qid,
			     struct sio_nvme_pair *ret);
/* So that it has the leases that @s has. */
void sio_nvme_book_leases(struct sio_nvme_book *b, const struct sio_nvme_leases *s);
void sio_nvme_book_read_leases(struct sio_nvme_book *b, struct sio_nvme_leases *ret);

#endif
