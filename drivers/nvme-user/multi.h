/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A completion queue in which several submission queues of one thread complete (NVMe 1.4, section
 * 4.1). The queue whose pair has it is the first of its users; each of the others has a submission
 * queue alone. A user's own fields of a completion queue (cq, cqe, expected) name an entry that
 * never arrives, so that smartio_nvme_poll() of any other queue is what it was, and that of a user
 * comes here.
 */
#ifndef NVME_USER_MULTI_H
#define NVME_USER_MULTI_H

#include "client.h"

struct sio_nvme_multi {
	volatile uint8_t *cq, *cq_end, *cqe; /* begin, end, next entry to arrive */
	volatile uint32_t *doorbell;
	uint64_t phase; /* of the next completion, where it stands in it */
	uint32_t entries;
	bool flushes; /* completions may come before their data */
	/* NULL: no longer there, after a reset: then all users are dead. */
	struct smartio_nvme_queue *first;
	struct smartio_nvme_queue *users; /* a list, by @peer */
	struct smartio_nvme_queue **by_id;
	uint32_t ids;	  /* the length of that table */
	uint32_t n, open; /* users; those that are not closed */
	uint32_t holders; /* queues that refer to this, also such that are no users yet */
	uint32_t room;	  /* commands that more users may have in flight */
	uint32_t overdue; /* the queue pair whose command did not come back; 0: none */
	uint64_t taken;	  /* completions */
	/*
	 * While a call waits for completions of one queue: that queue. Those of others are put
	 * aside until they are polled.
	 */
	const struct smartio_nvme_queue *only;
};

/* The queue's pair is to have a completion queue for several; or to complete in that of another. */
int sio_nvme_multi_make(struct smartio_nvme_queue *q);
int sio_nvme_multi_join(struct smartio_nvme_queue *q, struct smartio_nvme_queue *of);
/* The memory of the completion queue, of @q as its first user. */
void sio_nvme_multi_use(struct smartio_nvme_queue *q, volatile uint8_t *cq, bool flushes);
/* What a user has in place of a completion queue of its own. */
void sio_nvme_multi_blind(struct smartio_nvme_queue *q);
/* The drive has the queue: it is a user from now on. */
void sio_nvme_multi_add(struct smartio_nvme_queue *q);
/*
 * The program has closed the queue, @busy: with commands in flight. It is a user until it is freed.
 * Under the lock.
 */
void sio_nvme_multi_close(struct smartio_nvme_queue *q, bool busy);
/*
 * The drive has deleted the submission queue of @q: what it has completed of it before is taken
 * and dropped, so that nothing of it arrives later.
 */
void sio_nvme_multi_settle(struct smartio_nvme_queue *q);
/* The queue is freed. One that is no user yet is fine. */
void sio_nvme_multi_leave(struct smartio_nvme_queue *q);
/* Do others complete in the completion queue of this queue's pair? */
bool sio_nvme_multi_is_used(const struct smartio_nvme_queue *q);
/*
 * Is a queue open that completes where this one does? Then this one, although it is closed, belongs
 * to the thread of that. Under the lock.
 */
static inline bool sio_nvme_multi_is_open(const struct smartio_nvme_queue *q)
{
	return q->multi && q->multi->open;
}

/*
 * Takes completions of all users, whose doorbells were rung. Return: how many; -errno: they have
 * ended.
 */
int sio_nvme_multi_poll(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
			unsigned max);
/* The same of a queue that is dead: what was put aside. 0: all of it was taken. */
unsigned sio_nvme_multi_poll_dead(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
				  unsigned max);
/* Is there a completion for a poll? */
static inline bool sio_nvme_multi_waits(const struct sio_nvme_multi *m)
{
	for (const struct smartio_nvme_queue *q = m->users; q && !m->only; q = q->peer)
		if (q->done)
			return true;
	return !((le64toh(sio_read64(m->cqe + 8)) ^ m->phase) & SIO_NVME_CQE_PHASE);
}
/* As sio_nvme_limit_look(), after the commands of all users; if one has ended, all do. */
void sio_nvme_multi_look(struct sio_nvme_multi *m, bool now);
/* The shortest tick of all users: sio_nvme_limit_tick(). */
uint64_t sio_nvme_multi_tick(const struct sio_nvme_multi *m);

/* The queue that has the interrupt for the completions of @q. */
static inline const struct smartio_nvme_queue *sio_nvme_told_by(const struct smartio_nvme_queue *q)
{
	return q->multi && q->multi->first ? q->multi->first : q;
}

#endif
