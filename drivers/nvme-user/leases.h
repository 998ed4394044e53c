/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases: which client has which range of blocks to itself. Pure logic of the manager: ranges do
 * not overlap. A client is one borrow of the drive, or several, over one path each: it has a lease
 * as long as any of them. A borrow parts with its leases when its queues are deleted.
 */
#ifndef NVME_USER_LEASES_H
#define NVME_USER_LEASES_H

#include "protocol.h"

#define SIO_NVME_LEASES 1024u
#define SIO_NVME_ANYWHERE UINT64_MAX
/* Of a client: over two paths, and those over lost ones whose queues are not deleted yet. */
#define SIO_NVME_LEASE_BORROWS 4u

struct sio_nvme_leases {
	uint32_t n;
	uint64_t changes; /* so far: who has what is recorded when it has changed */
	uint64_t last_id;
	struct sio_nvme_held {
		uint64_t borrower[SIO_NVME_LEASE_BORROWS]; /* 0: none */
		uint64_t sequence;			   /* of the request for it */
		uint64_t key; /* of whoever joins it, or gives it back */
		struct sio_nvme_wire_lease l;
	} list[SIO_NVME_LEASES]; /* by id */
};

/*
 * @sequence: the number of the request: a repeated request is given the same lease. @key: whoever
 * joins it or gives it back must know it. @want: everything but the id; its lba may be
 * SIO_NVME_ANYWHERE: the first gap that is large enough. @blocks: the size of the namespace.
 * 0: @want is complete; -EBUSY: @ret_other overlaps; -EEXIST: it has the name; -ENOSPC: no gap is
 * large enough, or there are too many leases; -ERANGE.
 */
int sio_nvme_leases_take(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence,
			 uint64_t key, uint64_t blocks, struct sio_nvme_wire_lease *want,
			 const struct sio_nvme_wire_lease **ret_other);
/*
 * @borrower has the lease as well from now on. -ESTALE: nobody has it any more; -EBUSY: as many as
 * can have it.
 */
int sio_nvme_leases_join(struct sio_nvme_leases *s, uint64_t borrower, uint64_t id, uint64_t key);
/* @borrower has it no more. -EACCES: it had not. */
int sio_nvme_leases_give(struct sio_nvme_leases *s, uint64_t borrower, uint64_t id, uint64_t key);
/* Ends the lease that this request of the borrower was given, if it was. */
void sio_nvme_leases_cancel(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence);
/* A borrower has none any more. */
void sio_nvme_leases_end(struct sio_nvme_leases *s, uint64_t borrower);
/* The lowest borrower above @after that has a lease; 0: none. Start with 0. */
uint64_t sio_nvme_leases_next(const struct sio_nvme_leases *s, uint64_t after);

#endif
