/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which borrower has which range of blocks for itself. Pure logic of the manager: ranges do not
 * overlap. What a borrower had is free when its queues are deleted.
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
		struct sio_nvme_wire_lease l;
	} list[SIO_NVME_LEASES]; /* by id */
};

/*
 * @sequence: of the request: the same one again is given the same lease. @want: all but the id;
 * its lba may be SIO_NVME_ANYWHERE: the first gap that is large enough. @blocks: of the namespace.
 * 0: @want is complete; -EBUSY: @ret_other overlaps; -EEXIST: it has the name; -ENOSPC: no gap is
 * large enough, or there are too many leases; -ERANGE.
 */
int sio_nvme_leases_take(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence,
			 uint64_t blocks, struct sio_nvme_wire_lease *want,
			 const struct sio_nvme_wire_lease **ret_other);
/* -EACCES: it is not that borrower's. */
int sio_nvme_leases_give(struct sio_nvme_leases *s, uint64_t borrower, uint64_t id);
/* All of a borrower's. */
void sio_nvme_leases_end(struct sio_nvme_leases *s, uint64_t borrower);

#endif
