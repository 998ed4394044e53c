/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second borrow of the drive by the manager that serves it, over another adapter than its first.
 * Nothing of the drive is done with it. While it is there the lender takes the drive for used, and
 * does not reset it, although all other borrows were lost with one link; and a segment that it has
 * made tells clients that the manager, if it is not found, will be back.
 */
#ifndef NVME_USER_HOLD_H
#define NVME_USER_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "shared.h"

struct sio_nvme_hold {
	struct sio_nvme_device d; /* handle NULL: not borrowed */
	struct sio_nvme_shared mark;
	uint64_t look_at, pause_ns; /* when what it lacks is tried again, and how long after that */
};

/*
 * The manager has borrowed the drive as @d: does what the hold of it lacks, at most once a second.
 * A path that is down, a host with one adapter, or a refusal, as by a quota, is no error.
 */
void sio_nvme_hold_look(struct sio_nvme_hold *h, const struct sio_nvme_device *d);
/* Is the drive borrowed over another path than @d's, and can clients see that? */
bool sio_nvme_hold_is_made(const struct sio_nvme_hold *h, const struct sio_nvme_device *d);
/* Ends it. None is fine. */
void sio_nvme_hold_end(struct sio_nvme_hold *h);
/* Does whoever has borrowed the drive as @d see that a manager has one? */
bool sio_nvme_hold_is_seen(struct sio_nvme_device *d);

#endif
