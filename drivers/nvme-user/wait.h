/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a drive that can be borrowed, or for its manager, until a deadline. */
#ifndef NVME_USER_WAIT_H
#define NVME_USER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"

struct sio_nvme_wait {
	uint64_t deadline;
	unsigned pause_ms; /* the next one */
	bool refused; /* it was free to be borrowed, so the next attempt comes behind a pause */
};
/* @timeout_ms: UINT32_MAX: forever. */
void sio_nvme_wait_start(struct sio_nvme_wait *w, uint32_t timeout_ms);
/*
 * Borrows the drive, shared; while somebody has it exclusively sleeps until nobody has. -EBUSY:
 * until the deadline.
 */
int sio_nvme_wait_borrow(struct sio_nvme_wait *w, struct sio_nvme_device *d);
/*
 * Sleeps until @device, which is borrowed, has an event, and takes all that there are. Return:
 * false: the deadline has passed, and it did not sleep.
 */
bool sio_nvme_wait_event(struct sio_nvme_wait *w, sci_smartio_device_t device);

/*
 * The same for what may come without an event, too: it does not sleep for long.
 */
bool sio_nvme_wait_slice(struct sio_nvme_wait *w, sci_smartio_device_t device);

/* Takes the events of @device that are pending. */
void sio_nvme_take_events(sci_smartio_device_t device);

#endif
