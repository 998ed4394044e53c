/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several submission queues of one thread that complete in one completion queue: one poll, one
 * doorbell and one interrupt for all of them. The id of its submission queue in each completion
 * says whose it is. All of them have a common fate: what ends one of them (a reset, a completion
 * that cannot be, a command that does not come back) ends all, for a poll is of all.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "error.h"
#include "multi.h"
#include "smartio/ext.h"
#include "smartio/io.h"

/* An entry with a phase that never comes. */
static uint64_t nothing[2];

/* ---- begin and end ---- */
int sio_nvme_multi_make(struct smartio_nvme_queue *q)
{
	struct sio_nvme_multi *m = calloc(1, sizeof(*m));

	if (!m)
		return sio_nvme_no_memory("a completion queue of several");
	m->ids = q->n->n_pairs + 1;
	m->by_id = calloc(m->ids, sizeof(struct smartio_nvme_queue *));
	if (!m->by_id) {
		free(m);
		return sio_nvme_no_memory("a completion queue of several");
	}
	m->entries = q->options.cq_depth + 1;
	m->room = q->options.cq_depth;
	m->holders = 1;
	q->multi = m;
	return 0;
}

int sio_nvme_multi_join(struct smartio_nvme_queue *q, struct smartio_nvme_queue *of)
{
	struct sio_nvme_multi *m = of->multi;

	if (of->n != q->n)
		return sio_nvme_fail(-EINVAL,
				     "queue pair %u, in whose completion queue this one "
				     "is to complete, belongs to another "
				     "smartio_nvme_open()",
				     of->id);
	if (!m || m->first != of)
		return sio_nvme_fail(-EINVAL,
				     "queue pair %u has no completion queue for several: open it "
				     "with cq_depth, for the commands of all that complete there",
				     of->id);
	if (q->leg != of->leg)
		return sio_nvme_fail(-EINVAL,
				     "queue pair %u, in whose completion queue this one is to "
				     "complete, goes over the second path: without a lease this "
				     "one goes over the first",
				     of->id);
	m->holders++;
	q->multi = m;
	return 0;
}

void sio_nvme_multi_use(struct smartio_nvme_queue *q, volatile uint8_t *cq, bool flushes)
{
	struct sio_nvme_multi *m = q->multi;

	m->cq = m->cqe = cq;
	m->cq_end = cq + (size_t)m->entries * 16;
	m->phase = SIO_NVME_CQE_PHASE;
	m->flushes = flushes;
}

void sio_nvme_multi_blind(struct smartio_nvme_queue *q)
{
	q->cq = q->cqe = (volatile uint8_t *)nothing;
	q->cq_end = q->cq + sizeof(nothing);
	q->expected = SIO_NVME_CQE_PHASE;
}

void sio_nvme_multi_add(struct smartio_nvme_queue *q)
{
	struct sio_nvme_multi *m = q->multi;

	if (!q->options.completes_in) {
		m->first = q;
		m->doorbell = q->cq_doorbell;
	}
	/* A queue that was closed, and that another client's thread had deleted since. */
	if (m->by_id[q->id])
		sio_nvme_multi_settle(m->by_id[q->id]);
	q->done_end = &q->done;
	q->peer = m->users;
	m->users = q;
	m->by_id[q->id] = q;
	m->n++;
	m->open++;
	m->room -= q->depth;
}

void sio_nvme_multi_close(struct smartio_nvme_queue *q, bool busy)
{
	q->closed = true;
	q->busy = busy;
	q->multi->open--;
}

static bool is_stale(const struct smartio_nvme_queue *q)
{
	return __atomic_load_n(q->generation_word, __ATOMIC_RELAXED) != q->generation;
}

static void end_all(struct sio_nvme_multi *m, int error)
{
	for (struct smartio_nvme_queue *q = m->users; q; q = q->peer) {
		if (!q->error)
			q->error = error;
		q->free = NULL;
	}
}

void sio_nvme_multi_leave(struct smartio_nvme_queue *q)
{
	struct sio_nvme_multi *m = q->multi;
	struct smartio_nvme_queue **at;

	if (!m)
		return;
	if (q->done_end) {
		for (at = &m->users; *at != q; at = &(*at)->peer)
			;
		*at = q->peer;
		if (m->by_id[q->id] == q)
			m->by_id[q->id] = NULL;
		m->n--;
		m->room += q->depth;
	}
	if (m->first == q) {
		m->first = NULL;
		end_all(m, -ECONNRESET);
	}
	q->multi = NULL;
	if (--m->holders)
		return;
	free(m->by_id);
	free(m);
}

bool sio_nvme_multi_is_used(const struct smartio_nvme_queue *q)
{
	return q->multi && q->multi->first == q && q->multi->n > 1;
}

/* ---- completions ---- */
/* In flight, and of this use of its slot; NULL: there is none. */
static struct sio_nvme_slot *find(const struct smartio_nvme_queue *q, uint64_t e)
{
	const uint16_t cid = (uint16_t)(e >> 32);
	struct sio_nvme_slot *slot =
		&q->slot[(cid * sizeof(*q->slot) & q->slot_mask) / sizeof(*q->slot)];

	return le16toh(slot->cid) == cid && slot->buffer ? slot : NULL;
}

/* Its submitter is told: the slot is free. A dead queue has no free command. */
static void give_back(struct smartio_nvme_queue *q, struct sio_nvme_slot *slot)
{
	q->counters.completed++;
	if (q->error)
		return;
	slot->next = q->free;
	q->free = slot;
}

static void tell(struct smartio_nvme_queue *q, struct sio_nvme_slot *slot, uint32_t status,
		 struct smartio_nvme_completion *c)
{
	*c = (struct smartio_nvme_completion){
		.cookie = slot->cookie, .status = status, .queue = q->id};
	give_back(q, slot);
}

/* Until it is polled: meanwhile the command counts as in flight, and its status is in its slot. */
static void put_aside(struct smartio_nvme_queue *q, struct sio_nvme_slot *slot, uint32_t status)
{
	slot->opcode = (uint16_t)status;
	slot->next = NULL;
	*q->done_end = slot;
	q->done_end = &slot->next;
}

/* What was put aside, of @m->only or of all. Return: how many. */
static unsigned take_aside(struct sio_nvme_multi *m, struct smartio_nvme_completion *c,
			   unsigned max)
{
	unsigned n = 0;

	for (struct smartio_nvme_queue *q = m->users; q; q = q->peer) {
		struct sio_nvme_slot *slot;

		while (n < max && (slot = q->done) && (!m->only || m->only == q)) {
			const uint32_t status = slot->opcode;

			q->done = slot->next;
			if (!q->done)
				q->done_end = &q->done;
			slot->opcode = 0;
			tell(q, slot, status, &c[n++]);
		}
	}
	return n;
}

/* One completion. Return: whether it is for the caller of the poll. */
static bool took_one(struct sio_nvme_multi *m, struct smartio_nvme_queue *q,
		     struct sio_nvme_slot *slot, uint32_t status, struct smartio_nvme_completion *c)
{
	slot->cid = htole16((uint16_t)(le16toh(slot->cid) + q->use));
	__atomic_store_n(&slot->buffer, NULL, __ATOMIC_RELAXED);
	if (m->only ? m->only == q : !q->closed) {
		tell(q, slot, status, c);
		return true;
	}
	if (q->closed)
		give_back(q, slot);
	else
		put_aside(q, slot, status);
	return false;
}

/* Completions were taken up to @at: see took() of io.c. */
static void move_on(struct sio_nvme_multi *m, volatile uint8_t *at)
{
	struct smartio_nvme_queue *first = m->first;

	m->cqe = at;
	/*
	 * The data is as new as its completion, and entries are read before they are given back:
	 * pairs with the order of the drive's writes, in emu with emu_dma_write().
	 */
	sio_from_fabric_barrier();
	if (is_stale(first))
		return;
	sio_write32(m->doorbell, htole32((uint32_t)((at - m->cq) / 16)));
	first->counters.doorbells_cq++;
}

/* A completion that cannot be: memory that reads as ones after a loss, or a drive gone mad. */
static void end_of_bad(struct sio_nvme_multi *m)
{
	/* Of a loss we were told before the memory changed: pairs with device_lost(). */
	sio_from_fabric_barrier();
	end_all(m, is_stale(m->first) || smartio_device_lost(sio_nvme_leg(m->first)->d.handle)
			   ? -ECONNRESET
			   : -EPROTO);
}

/* The drive has answered behind all that it wrote. False: the path to it is lost. */
static bool are_here(struct sio_nvme_multi *m)
{
	if (sio_nvme_far_pushed(m->first))
		return true;
	/* pairs with device_lost() */
	sio_from_fabric_barrier();
	end_all(m, is_stale(m->first) || smartio_device_lost(sio_nvme_leg(m->first)->d.handle)
			   ? -ECONNRESET
			   : -ENETDOWN);
	return false;
}

/* Return: how many completions may be taken: those whose data are here. */
static uint32_t ready(struct sio_nvme_multi *m)
{
	volatile uint8_t *at = m->cqe;
	uint64_t phase = m->phase;
	uint32_t n = 0;

	if (!m->flushes)
		return m->entries;
	for (; n < m->entries; n++) {
		if ((le64toh(sio_read64(at + 8)) ^ phase) & SIO_NVME_CQE_PHASE)
			break;
		at += 16;
		if (at == m->cq_end) {
			at = m->cq;
			phase ^= SIO_NVME_CQE_PHASE;
		}
	}
	return n == 0 || are_here(m) ? n : 0;
}

/* Return: how many. */
static unsigned take(struct sio_nvme_multi *m, struct smartio_nvme_completion *c, unsigned max)
{
	volatile uint8_t *at = m->cqe;
	unsigned n = 0;

	for (uint32_t left = ready(m); n < max && left > 0; left--) {
		/* Its second half, once: SQ head, SQ id, command id, phase and status. */
		const uint64_t e = le64toh(sio_read64(at + 8));
		const uint32_t id = e >> 16 & 0xffff;
		struct smartio_nvme_queue *q = id < m->ids ? m->by_id[id] : NULL;
		struct sio_nvme_slot *slot;

		if ((e ^ m->phase) & SIO_NVME_CQE_PHASE)
			break;
		slot = q ? find(q, e) : NULL;
		if (!slot) {
			end_of_bad(m);
			break;
		}
		m->taken++;
		n += took_one(m, q, slot, e >> 49 & 0x7ff, &c[n]);
		at += 16;
		if (at == m->cq_end) {
			at = m->cq;
			m->phase ^= SIO_NVME_CQE_PHASE;
		}
	}
	if (at != m->cqe)
		move_on(m, at);
	return n;
}

void sio_nvme_multi_settle(struct smartio_nvme_queue *q)
{
	struct sio_nvme_multi *m = q->multi;
	struct smartio_nvme_completion c[16];

	if (!m || m->first == q || !m->first || q->error || is_stale(q))
		return;
	if (!are_here(m))
		return;
	m->only = q;
	while (take(m, c, 16) || take_aside(m, c, 16))
		;
	m->only = NULL;
}

/* ---- poll ---- */
/* All users, if one has ended. Return: whether they have. */
static bool have_ended(struct sio_nvme_multi *m)
{
	for (struct smartio_nvme_queue *q = m->users; q; q = q->peer) {
		if (!q->error)
			continue;
		if (q->error == -ETIMEDOUT && !m->overdue)
			m->overdue = q->id;
		end_all(m, q->error);
		return true;
	}
	return false;
}

void sio_nvme_multi_look(struct sio_nvme_multi *m, bool now)
{
	for (struct smartio_nvme_queue *q = m->users; q; q = q->peer)
		sio_nvme_limit_look(q, now);
	have_ended(m);
}

unsigned sio_nvme_multi_poll_dead(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
				  unsigned max)
{
	have_ended(q->multi);
	return take_aside(q->multi, c, max);
}

static void found_nothing(struct smartio_nvme_queue *q)
{
	q->counters.empty_polls++;
	if (++q->empty <= q->patience)
		return;
	q->counters.yields++;
	smartio_yield();
}

int sio_nvme_multi_poll(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
			unsigned max)
{
	struct sio_nvme_multi *m = q->multi;
	unsigned n;

	/* Each poll, of whichever user, is a time to look after the commands of all. */
	sio_nvme_multi_look(m, false);
	n = take_aside(m, c, max);
	if (!q->error)
		n += take(m, &c[n], max - n);
	if (n && q->empty)
		sio_nvme_waited(q);
	if (n)
		return (int)n;
	if (!q->error && is_stale(q))
		end_all(m, -ECONNRESET);
	if (q->error)
		return q->error;
	found_nothing(q);
	return 0;
}

uint64_t sio_nvme_multi_tick(const struct sio_nvme_multi *m)
{
	uint64_t least = UINT64_MAX;

	for (const struct smartio_nvme_queue *q = m->users; q; q = q->peer)
		if (sio_nvme_limit_tick(q) < least)
			least = sio_nvme_limit_tick(q);
	return least;
}
