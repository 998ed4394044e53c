/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues with a time-out. A submit does not read the clock. Instead, at each tick every command in
 * flight is marked with its age, in the word that links the command's slot while it is free.
 * Submitting and completing write that word, so a mark proves that this very command was in flight
 * at the ticks before. late.c decides what to do; where the queue pair is given up, survive.c makes
 * another one, or the queue ends.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "error.h"
#include "late.h"
#include "multi.h"
#include "smartio/ext.h"

#define LOOKS_PER_TIME 16u /* of who polls without a pause, so that few ask for the time */
#define PATIENCE_MS 100u   /* with the manager: meanwhile the queue's I/O waits */

struct sio_nvme_limit {
	uint64_t tick_ns, tick_at;
	uint64_t asked_time_at;	  /* when the time was asked for last */
	unsigned looks, per_time; /* of these looks one asks for the time */
	uint64_t asked_at;	  /* completions taken when an Abort was last asked for */
};

/* Marks: where they lie is what they say. */
static struct sio_nvme_slot marks[SIO_NVME_AGES];

static enum sio_nvme_age age_of(const struct sio_nvme_slot *slot)
{
	for (unsigned age = 0; age < SIO_NVME_AGES; age++)
		if (slot->next == &marks[age])
			return (enum sio_nvme_age)age;
	return SIO_NVME_IN_TIME;
}

int sio_nvme_limit_make(struct smartio_nvme_queue *q)
{
	q->limit = calloc(1, sizeof(*q->limit));
	if (!q->limit)
		return sio_nvme_no_memory("a queue's time-out");
	q->limit->per_time = 1;
	q->limit->tick_ns = (uint64_t)q->options.timeout_ms * 1000000 / SIO_NVME_LATE;
	return 0;
}

uint64_t sio_nvme_limit_tick(const struct smartio_nvme_queue *q)
{
	return q->limit ? q->limit->tick_ns : UINT64_MAX;
}

bool sio_nvme_was_overdue(const struct sio_nvme_slot *slot)
{
	return slot->next == &marks[SIO_NVME_ASKED] || slot->next == &marks[SIO_NVME_OVERDUE];
}

/*
 * Whether the drive found it does not matter: its completion comes soon, or does not. Under the
 * lock. False: no manager has answered.
 */
static bool ask_abort(struct smartio_nvme_queue *q, const struct sio_nvme_slot *slot)
{
	struct sio_nvme_req req = {
		.op = SIO_NVME_OP_ABORT,
		.abort = {.qid = q->id, .cid = le16toh(slot->cid), .key = q->key}};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	const unsigned patience = q->leg->patience_ms;
	int rc;

	q->counters.aborts++;
	if (!rep)
		return false;
	q->leg->patience_ms = PATIENCE_MS;
	rc = sio_nvme_ask(q->leg, &req, rep, NULL);
	q->leg->patience_ms = patience;
	free(rep);
	return rc == 0;
}

/*
 * A completion that came before the Abort was asked for has been taken if the queue is empty now,
 * or if as many were taken as it holds. Of a shared pair it lies in the common queue while who has
 * the lock is stopped; they are put into ours before that is moved on.
 */
static bool is_quiet(const struct smartio_nvme_queue *q)
{
	if (q->multi)
		return !sio_nvme_multi_waits(q->multi) ||
		       q->multi->taken - q->limit->asked_at >= q->multi->entries;
	return (!(q->share && sio_nvme_share_waits(q)) && !sio_nvme_completion_waits(q)) ||
	       q->counters.completed - q->limit->asked_at >= q->entries;
}

static void tick(struct smartio_nvme_queue *q)
{
	const bool quiet = is_quiet(q);
	unsigned aborts = 0;
	bool locked = false;

	for (uint32_t i = 0; i < q->depth; i++) {
		struct sio_nvme_slot *slot = &q->slot[i];
		enum sio_nvme_age age;

		if (!slot->buffer)
			continue;
		age = age_of(slot);
		if (age == SIO_NVME_LATE && !locked && sio_nvme_trylock(q->n))
			locked = true;
		age = sio_nvme_age_next(age, locked && aborts < SIO_NVME_ABORTS, quiet);
		if (age == SIO_NVME_ASKED && slot->next == &marks[SIO_NVME_LATE]) {
			/* One that does not answer is asked once, for this queue's I/O waits. */
			aborts = ask_abort(q, slot) ? aborts + 1 : SIO_NVME_ABORTS;
			q->limit->asked_at = q->multi ? q->multi->taken : q->counters.completed;
		}
		slot->next = &marks[age];
		if (age != SIO_NVME_OVERDUE)
			continue;
		q->counters.overdue++;
		if (!q->error)
			q->error = -ETIMEDOUT;
		q->free = NULL;
	}
	if (locked)
		sio_nvme_unlock(q->n);
}

void sio_nvme_limit_look(struct smartio_nvme_queue *q, bool now)
{
	struct sio_nvme_limit *l = q->limit;
	uint64_t time;

	if (!l || q->error || (!now && ++l->looks % l->per_time))
		return;
	time = smartio_now_ns();
	/* Of a program that polls now and then no look is one too many. */
	l->per_time = time - l->asked_time_at > l->tick_ns / LOOKS_PER_TIME ? 1 : LOOKS_PER_TIME;
	l->asked_time_at = time;
	if (time < l->tick_at)
		return;
	l->tick_at = time + l->tick_ns;
	tick(q);
}
