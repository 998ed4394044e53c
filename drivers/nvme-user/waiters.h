/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiters: clients that were refused a queue pair and want to be notified when one is free. Pure
 * logic of the manager. All are notified at once, in the order in which they came, and ask again:
 * so a client that does not listen any more delays nobody.
 */
#ifndef NVME_USER_WAITERS_H
#define NVME_USER_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#define SIO_NVME_WAITERS 1024u

struct sio_nvme_waiter {
	uint64_t borrower;
	uint32_t node, interrupt; /* where it is notified */
};

struct sio_nvme_waiters {
	uint32_t n;
	struct sio_nvme_waiter list[SIO_NVME_WAITERS];
};

/* A client is recorded once, however often it asks. False: too many wait already. */
bool sio_nvme_waiters_add(struct sio_nvme_waiters *w, const struct sio_nvme_waiter *waiter);
/* The waiting client has ended. */
void sio_nvme_waiters_end(struct sio_nvme_waiters *w, uint64_t borrower);
/* Takes the client that has waited longest. False: nobody waits. */
bool sio_nvme_waiters_next(struct sio_nvme_waiters *w, struct sio_nvme_waiter *ret);

#endif
