/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decisions about a command that does not complete. Pure logic: the unit of time is a tick, a
 * fraction of the queue's time-out; limit.c has the clock, and carries the decisions out. Source:
 * NVM Express Base Specification 1.4, section 5.1 (an Abort is an attempt: a drive need not find
 * the command); the rest is our own.
 */
#ifndef NVME_USER_LATE_H
#define NVME_USER_LATE_H

#include <stdbool.h>

/* The age of a command in flight. A command is IN_TIME + n at its n-th tick. */
enum sio_nvme_age {
	SIO_NVME_IN_TIME = 0,
	SIO_NVME_LATE = 8,    /* the time-out has passed: the command is to be aborted */
	SIO_NVME_ASKED = 9,   /* its Abort was requested, or could not be requested */
	SIO_NVME_OVERDUE = 10 /* it has not completed after that: the queue pair is given up */
};
#define SIO_NVME_AGES 11u
/*
 * Most Aborts at the same time: what the specification recommends drives to accept (section
 * 5.15.2.2, ACL).
 */
#define SIO_NVME_ABORTS 4u
/* A command that was overdue this often is not sent again. */
#define SIO_NVME_TRIES 3u

/*
 * The age at the next tick. @can_abort: the manager can be asked to abort the command now; then
 * LATE becomes ASKED, and the caller asks. @quiet: no completion waits to be taken, so the
 * command's has not arrived.
 */
enum sio_nvme_age sio_nvme_age_next(enum sio_nvme_age age, bool can_abort, bool quiet);

#endif
