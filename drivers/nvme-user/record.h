/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of a manager: all that its successor must know to continue without a reset. It lies in
 * a segment at the drive's lender that outlives its maker. The manager records what it is about to
 * do before it does it, and reads its own record only to see that this has arrived. Source: our
 * own; the paper's manager has none.
 *
 * The record has two parts: the word of the admin queue (controller.h), and the state of each queue
 * pair, in an order in which each state says how to go on:
 *  - FREE: the drive has no queues of the pair.
 *  - TAKING: the queues are being created: they are deleted, and the client asks again.
 *  - TAKEN: the client has the pair, or gets it when it asks again with the same sequence number.
 *  - GOING: the queues are being deleted: the deletion is completed.
 *  - ENDED: the queues are deleted; programs that shared the pair may still ring its doorbell, so
 *    its number is not used.
 *
 * Deleting a queue that does not exist is no error, so the successor need not know how far a
 * deletion had got.
 */
#ifndef NVME_USER_RECORD_H
#define NVME_USER_RECORD_H

#include "leases.h"
#include "ledger.h"
#include "shared.h"

struct sio_nvme_record {
	struct sio_nvme_shared at;
	uint32_t pairs;
	uint64_t maker;		/* the borrow that has mapped the admin queue for the drive */
	uint64_t lease_changes; /* those of the leases that are recorded */
	/* What was written last since sio_nvme_record_has_arrived(); NULL: nothing. Its value. */
	volatile uint8_t *last;
	uint32_t last_value;
	/* what stands in each place; id 0: it is free */
	struct {
		uint64_t id, borrower[SIO_NVME_LEASE_BORROWS];
	} lease[SIO_NVME_LEASES];
};

/* The head of the record. */
struct sio_nvme_record_head {
	uint64_t maker, ioaddr; /* of the admin queue's memory, as the drive addresses it */
	uint32_t generation, pairs, entries, segment; /* segment: that memory's */
};

/*
 * Makes an empty record, which is not valid before sio_nvme_record_begin(). -EEXIST: there is one.
 */
int sio_nvme_record_make(struct sio_nvme_record *b, struct sio_nvme_device *d, uint32_t pairs);
void sio_nvme_record_begin(struct sio_nvme_record *b, const struct sio_nvme_record_head *head);
/* Opens the record of a manager that has ended. -ENOENT: there is none; -ESTALE: it is invalid. */
int sio_nvme_record_find(struct sio_nvme_record *b, struct sio_nvme_device *d,
			 struct sio_nvme_record_head *ret);
void sio_nvme_record_close(struct sio_nvme_record *b);
/* Where the record has the word of the admin queue. */
volatile uint8_t *sio_nvme_record_word(const struct sio_nvme_record *b);

/* Records the state of @pair. Without a record this and sio_nvme_record_leases() do nothing. */
void sio_nvme_record_pair(struct sio_nvme_record *b, uint32_t qid,
			  const struct sio_nvme_pair *pair);
void sio_nvme_record_read_pair(const struct sio_nvme_record *b, uint32_t qid,
			       struct sio_nvme_pair *ret);
/*
 * Has all that was recorded arrived? To be asked before a client is notified of it, which may
 * happen by another path: what a link that is down has swallowed no successor knows.
 */
bool sio_nvme_record_has_arrived(struct sio_nvme_record *b);
/* Records the leases of @s. */
void sio_nvme_record_leases(struct sio_nvme_record *b, const struct sio_nvme_leases *s);
void sio_nvme_record_read_leases(struct sio_nvme_record *b, struct sio_nvme_leases *ret);

#endif
