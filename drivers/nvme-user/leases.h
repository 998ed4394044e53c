/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases: which borrower has which range of blocks to itself. Pure logic of the manager: ranges do
 * not overlap. A borrower's leases end when its queues are deleted.
 */
#ifndef NVME_USER_LEASES_H
#define NVME_USER_LEASES_H

#include "protocol.h"

#define SIO_NVME_LEASES 1024u
#define SIO_NVME_ANYWHERE UINT64_MAX

struct sio_nvme_leases {
	uint32_t n;
	uint64_t last_id;
	struct sio_nvme_held {
		uint64_t borrower, sequence; /* sequence: of the request for it */
		uint64_t key;		     /* of whoever gives it back */
		struct sio_nvme_wire_lease l;
	} list[SIO_NVME_LEASES]; /* by id */
};

/*
 * @sequence: the number of the request: a repeated request is given the same lease. @key: whoever
 * gives it back must know it. @want:
 * everything but the id; its lba may be SIO_NVME_ANYWHERE: the first gap that is large enough.
 * @blocks: the size of the namespace.
 * 0: @want is complete; -EBUSY: @ret_other overlaps; -EEXIST: it has the name; -ENOSPC: no gap is
 * large enough, or there are too many leases; -ERANGE.
 */
int sio_nvme_leases_take(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence,
			 uint64_t key, uint64_t blocks, struct sio_nvme_wire_lease *want,
			 const struct sio_nvme_wire_lease **ret_other);
/* -EACCES: the lease does not belong to that borrower. */
int sio_nvme_leases_give(struct sio_nvme_leases *s, uint64_t borrower, uint64_t id, uint64_t key);
/* Ends the lease that this request of the borrower was given, if it was. */
void sio_nvme_leases_cancel(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence);
/* Ends all leases of a borrower. */
void sio_nvme_leases_end(struct sio_nvme_leases *s, uint64_t borrower);

#endif
