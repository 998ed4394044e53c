/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who was refused a queue pair and wants to hear when one comes free. Pure logic of the manager.
 *
 * All are told at once, the first that came first, and ask anew: so one that does not listen any
 * more keeps nobody waiting.
 */
#ifndef NVME_USER_WAITERS_H
#define NVME_USER_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#define SIO_NVME_WAITERS 1024u

struct sio_nvme_waiter {
	uint64_t borrower;
	uint32_t node, interrupt; /* where it is told */
};

struct sio_nvme_waiters {
	uint32_t n;
	struct sio_nvme_waiter list[SIO_NVME_WAITERS];
};

/* Once however often it asks. False: too many wait already. */
bool sio_nvme_waiters_add(struct sio_nvme_waiters *w, const struct sio_nvme_waiter *waiter);
/* It has ended. */
void sio_nvme_waiters_end(struct sio_nvme_waiters *w, uint64_t borrower);
/* Take the one that has waited longest. False: nobody waits. */
bool sio_nvme_waiters_next(struct sio_nvme_waiters *w, struct sio_nvme_waiter *ret);

#endif
