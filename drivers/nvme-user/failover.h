/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decisions about a queue that outlives its queue pair. Pure logic: survive.c carries them out.
 * Source: section 6.3 of the paper; NVM Express Base Specification 1.4, section 5.6 (commands that
 * Delete I/O Submission Queue leaves undone are never executed).
 */
#ifndef NVME_USER_FAILOVER_H
#define NVME_USER_FAILOVER_H

#include <stdbool.h>
#include <stdint.h>

enum sio_nvme_life {
	SIO_NVME_HOME,	/* the queue has a pair over its own path */
	SIO_NVME_AWAY,	/* ... over the other path */
	SIO_NVME_DRAIN, /* it returns to its own path: it takes no commands, those in flight end */
	SIO_NVME_DEAD,	/* it has no usable pair, and the last one may still exist */
	SIO_NVME_OVER,	/* the queue has failed for good */
	SIO_NVME_LIVES
};

enum sio_nvme_life_event {
	SIO_NVME_LOST, /* the drive was reset, or the path to it is lost */
	/*
	 * A manager has deleted the last pair and made another, over the queue's own path or the
	 * other.
	 */
	SIO_NVME_MADE_HOME,
	SIO_NVME_MADE_AWAY,
	SIO_NVME_HOME_IS_BACK, /* the queue's own path is open, with all that a pair needs */
	SIO_NVME_DRAINED,      /* no command is in flight */
	SIO_NVME_STAYS,	       /* what is in flight does not end: it is not the time to return */
	/* another pair took too long, or is impossible, or the drive may have lost power */
	SIO_NVME_GIVE_UP,
	SIO_NVME_LIFE_EVENTS
};

enum sio_nvme_life_act {
	SIO_NVME_NOTHING,
	SIO_NVME_STOP,	 /* take no more commands */
	SIO_NVME_RESUME, /* take commands again */
	SIO_NVME_RENEW,	 /* have the last pair deleted and another made */
	SIO_NVME_SETTLE, /* judge what was in flight: the last pair is gone */
	SIO_NVME_END	 /* what was in flight is lost */
};

/* Return: false: the event is impossible in that state; nothing is set. */
bool sio_nvme_life_next(enum sio_nvme_life state, enum sio_nvme_life_event event,
			enum sio_nvme_life *ret, enum sio_nvme_life_act *ret_act);

/* What happens to a command that was in flight when its submission queue was deleted. */
enum sio_nvme_fate {
	SIO_NVME_AGAIN, /* the command is sent again */
	SIO_NVME_REPORT /* its outcome is unknown: its submitter is notified */
};
/*
 * @op: enum smartio_nvme_op. @rung: the drive may have seen it. @alone: the submitter states that
 * nobody else writes to these blocks.
 */
enum sio_nvme_fate sio_nvme_fate(uint32_t op, bool rung, bool alone);

#endif
