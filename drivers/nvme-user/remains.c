/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What queues still have of a path that was lost: their memory stays mapped until whoever polls
 * them has closed them, or has found that they are lost. That keeps the path from nothing: the lost
 * borrow becomes a leg of its own, which belongs to these queues alone, and the path is made anew
 * beside it.
 */
#include <errno.h>
#include <stdlib.h>

#include "client.h"
#include "error.h"

/* Has it something of a pair over @leg? Between two pairs it has not, whatever its leg. */
static bool has_pair(const struct smartio_nvme_queue *q, const struct smartio_nvme *leg)
{
	return q->leg == leg && (q->sq_mem || q->cq_mem || q->share || q->doorbells);
}

static bool has(const struct smartio_nvme_queue *q, const struct smartio_nvme *leg)
{
	for (; q; q = q->next)
		if (has_pair(q, leg) || (q->life && q->life->old_leg == leg))
			return true;
	return false;
}

static bool in_use(const struct smartio_nvme *n, const struct smartio_nvme *leg)
{
	return has(n->queues, leg) || has(n->kept, leg) || has(n->opening, leg);
}

static void move_memory(struct sio_nvme_mem *mem, struct smartio_nvme *to)
{
	if (mem)
		mem->d = &to->d;
}

/* The thread of a queue, in sio_nvme_leg(), finds one leg or the other: both are lost. */
static void move_queue(struct smartio_nvme_queue *q, const struct smartio_nvme *from,
		       struct smartio_nvme *to)
{
	struct sio_nvme_survivor *s = q->life;

	if (has_pair(q, from)) {
		move_memory(q->sq_mem, to);
		move_memory(q->cq_mem, to);
		if (q->share)
			q->share->leg = to;
		__atomic_store_n(&q->leg, to, __ATOMIC_RELAXED);
	}
	if (!s || s->old_leg != from)
		return;
	move_memory(s->old_sq, to);
	move_memory(s->old_cq, to);
	if (s->old_share)
		s->old_share->leg = to;
	s->old_leg = to;
}

void sio_nvme_leg_end(struct smartio_nvme *leg)
{
	struct sio_nvme_mem *spare;

	while ((spare = leg->spare)) {
		leg->spare = spare->next;
		sio_nvme_mem_done(spare);
		free(spare);
	}
	sio_nvme_unlink_manager(leg);
	sio_nvme_owed_forget(leg);
	sio_nvme_doorbells_close(leg);
}

int sio_nvme_remains_leave(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	struct smartio_nvme *old;

	sio_nvme_unlink_manager(leg);
	sio_nvme_owed_forget(leg);
	if (!in_use(n, leg)) {
		sio_nvme_leg_end(leg);
		sio_nvme_device_return(&leg->d);
		return 0;
	}
	old = calloc(1, sizeof(*old));
	if (!old)
		return sio_nvme_no_memory("what queues have of a lost path");
	old->d = leg->d;
	old->bar = leg->bar;
	old->doorbells = leg->doorbells;
	old->generation = leg->generation;
	old->gone = n->gone;
	n->gone = old;
	for (struct smartio_nvme_queue *q = n->queues; q; q = q->next)
		move_queue(q, leg, old);
	for (struct smartio_nvme_queue *q = n->kept; q; q = q->next)
		move_queue(q, leg, old);
	for (struct smartio_nvme_queue *q = n->opening; q; q = q->next)
		move_queue(q, leg, old);
	leg->bar = NULL;
	leg->doorbells = NULL;
	leg->d.handle = NULL;
	return 0;
}

bool sio_nvme_remains_idle(const struct smartio_nvme *n)
{
	for (const struct smartio_nvme *old = n->gone; old; old = old->gone)
		if (!in_use(n, old))
			return true;
	return false;
}

void sio_nvme_remains_end(struct smartio_nvme *n)
{
	struct smartio_nvme **at = &n->gone, *old;

	while ((old = *at)) {
		if (in_use(n, old)) {
			at = &old->gone;
			continue;
		}
		*at = old->gone;
		sio_nvme_leg_end(old);
		sio_nvme_device_return(&old->d);
		free(old);
	}
}
