/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path: submit, ring, poll. Loads and stores only: no allocation, no lock, no call but, of
 * a poller that finds nothing, smartio_yield(). A queue pair belongs to one thread. Source: NVM
 * Express Base Specification 1.4, sections 4.1 and 4.6.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "error.h"
#include "multi.h"
#include "probe.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define COLD __attribute__((cold, noinline))
#define OFFSET_WRONG (1ull << 63 | 3) /* not of a dword; or a sum with it may wrap */

static inline bool generation_changed(const struct smartio_nvme_queue *q)
{
	return __atomic_load_n(q->generation_word, __ATOMIC_RELAXED) != q->generation;
}

/* A dead queue has no free command, so that submit needs no look of its own. */
static void end_queue(struct smartio_nvme_queue *q, int error)
{
	if (!q->error)
		q->error = error;
	q->free = NULL;
}

bool sio_nvme_queue_stale(struct smartio_nvme_queue *q)
{
	if (!q->error && unlikely(generation_changed(q)))
		end_queue(q, -ECONNRESET);
	return q->error == -ECONNRESET || generation_changed(q);
}

COLD int sio_nvme_queue_dead(struct smartio_nvme_queue *q)
{
	const char *name = q->n->d.name;

	sio_nvme_queue_stale(q);
	if (q->error == -ECONNRESET)
		return sio_nvme_fail(q->error,
				     "%s was reset or lost; queue pair %u is gone with "
				     "what was in flight",
				     name, q->id);
	if (q->error == -ETIMEDOUT && q->multi && q->multi->overdue != q->id)
		return sio_nvme_fail(q->error,
				     "queue pair %u of %s has ended with queue pair %u, which "
				     "completes in the same completion queue, and a command of "
				     "which did not come back",
				     q->id, name, q->multi->overdue);
	if (q->error == -ETIMEDOUT)
		return sio_nvme_fail(q->error,
				     "a command of queue pair %u of %s did not come back within "
				     "%u ms, nor when it was aborted; what was in flight may have "
				     "been done or not, and may be done until the queue is closed",
				     q->id, name, q->options.timeout_ms);
	if (q->error == -ENETDOWN)
		return sio_nvme_fail(
			q->error,
			"%s, or the path to it, was lost while completions of queue "
			"pair %u were read; what was in flight may have been done or not, and "
			"may be done until the queue is closed",
			name, q->id);
	if (q->error == -EPIPE)
		return sio_nvme_fail(q->error,
				     "queue pair %u of %s has ended with a program that shared it",
				     q->id, name);
	if (q->error == -EBUSY)
		return sio_nvme_fail(q->error, "queue pair %u of %s was handed over to a device",
				     q->id, name);
	return sio_nvme_fail(
		q->error,
		"queue pair %u of %s is dead: the drive completed a command that was not in flight",
		q->id, name);
}

COLD int sio_nvme_out_of_range(const struct smartio_nvme_queue *q, uint64_t lba, uint64_t blocks)
{
	if (q->lease)
		return sio_nvme_fail(-ERANGE,
				     "blocks %" PRIu64 " + %" PRIu64
				     ": the queue's lease %s has %" PRIu64 " + %" PRIu64,
				     lba, blocks, q->lease->info.name, q->first,
				     q->blocks - q->first);
	return sio_nvme_fail(-ERANGE,
			     "blocks %" PRIu64 " + %" PRIu64 ": namespace %u ends at %" PRIu64, lba,
			     blocks, q->nsid, q->blocks);
}

COLD static int refuse(const struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba,
		       uint32_t blocks, const struct smartio_nvme_buffer *b, size_t offset)
{
	if (op != SMARTIO_NVME_READ && op != SMARTIO_NVME_WRITE)
		return sio_nvme_fail(-EINVAL, "operation %#x is not read, write or flush",
				     (unsigned)op);
	if (!b || b->n != q->n)
		return sio_nvme_fail(-EINVAL, "%s",
				     b ? "the buffer is of another smartio_nvme_open()"
				       : "a transfer needs a buffer");
	if (blocks == 0)
		return sio_nvme_fail(-EINVAL, "a transfer of 0 blocks; at least 1 is right");
	if (offset % 4)
		return sio_nvme_fail(-EINVAL, "buffer offset %zu is not a multiple of 4", offset);
	if (blocks > q->max_blocks)
		return sio_nvme_fail(-ERANGE, "%u blocks in one command; this queue takes %u",
				     blocks, q->max_blocks);
	if (lba < q->first || lba >= q->blocks || blocks > q->blocks - lba)
		return sio_nvme_out_of_range(q, lba, blocks);
	return sio_nvme_fail(-ERANGE, "%u blocks at offset %zu go beyond a buffer of %zu bytes",
			     blocks, offset, b->size);
}

/* Fill the next entry of the submission queue, each word once, and take the first free command. */
static inline void put_entry(struct smartio_nvme_queue *q, uint32_t op, uint64_t lba, uint64_t nlb,
			     uint64_t prp1, uint64_t prp2, struct smartio_nvme_buffer *b,
			     void *cookie)
{
	struct sio_nvme_slot *slot = q->free;
	volatile uint8_t *at = q->sqe;

	q->free = slot->next;
	slot->cookie = cookie;
	__atomic_store_n(&slot->buffer, b, __ATOMIC_RELAXED);
	sio_write64(at, slot->first | htole64(op));
	sio_write64(at + 8, 0);
	sio_write64(at + 16, 0);
	sio_write64(at + 24, htole64(prp1));
	sio_write64(at + 32, htole64(prp2));
	sio_write64(at + 40, htole64(lba));
	sio_write64(at + 48, htole64(nlb));
	sio_write64(at + 56, 0);
	at += 64;
	q->sqe = at == q->sq_end ? q->sq : at;
}

void sio_nvme_put(struct smartio_nvme_queue *q, uint32_t op, uint64_t lba, uint64_t nlb,
		  uint64_t prp1, uint64_t prp2, struct smartio_nvme_buffer *b, void *cookie)
{
	put_entry(q, op, lba, nlb, prp1, prp2, b, cookie);
}

/* Is it a transfer that the namespace, the buffer and this queue allow? */
static inline bool is_good(const struct smartio_nvme_queue *q, enum smartio_nvme_op op,
			   uint64_t lba, uint32_t blocks, const struct smartio_nvme_buffer *b,
			   size_t offset)
{
	/* blocks - 1: 0 becomes the largest number. No queue's max_blocks exceeds its namespace. */
	return (uint32_t)op - 1 <= 1 && b && b->n == q->n && blocks - 1 < q->max_blocks &&
	       lba <= q->blocks - blocks && !(offset & OFFSET_WRONG) &&
	       offset + blocks * q->block_size <= b->size;
}

/* As sio_nvme_note(), of one piece. */
static inline void note_transfer(struct smartio_nvme_queue *q, enum smartio_nvme_op op,
				 uint64_t lba, uint32_t blocks, struct smartio_nvme_buffer *b,
				 size_t offset)
{
	struct sio_nvme_note *note = &q->life->note[q->free - q->slot];

	note->lba = lba;
	note->nlb = blocks - 1;
	note->number = q->life->noted++;
	note->op = (uint32_t)op;
	note->n_pieces = 1;
	note->late = 0;
	note->piece.buffer = b;
	note->piece.offset = offset;
	note->piece.bytes = blocks * q->block_size;
}

/* All but the transfer within one page. Apart, so that that one needs no stack. */
__attribute__((noinline)) static int submit_other(struct smartio_nvme_queue *q,
						  enum smartio_nvme_op op, uint64_t lba,
						  uint32_t blocks, struct smartio_nvme_buffer *b,
						  size_t offset, void *cookie)
{
	uint64_t prp1, prp2;

	if (!q->free)
		return sio_nvme_no_command(q);
	if (op == SMARTIO_NVME_FLUSH) {
		if (q->life)
			sio_nvme_note(q, (uint32_t)op, 0, 0, NULL, 0);
		put_entry(q, (uint32_t)op, 0, 0, 0, 0, &sio_nvme_no_buffer, cookie);
		return 0;
	}
	if (!is_good(q, op, lba, blocks, b, offset) || lba < q->first)
		return refuse(q, op, lba, blocks, b, offset);
	if (q->life)
		note_transfer(q, op, lba, blocks, b, offset);
	prp1 = sio_nvme_reach(q, b) + offset;
	prp2 = sio_nvme_prp2(q, (uint32_t)(q->free - q->slot), prp1, blocks * q->block_size);
	put_entry(q, (uint32_t)op, lba, blocks - 1, prp1, prp2, b, cookie);
	return 0;
}

/*
 * Is it a good transfer within one page, of a queue with plain ones? Buffers begin with a page. A
 * sum that wraps ends in another page than it begins.
 */
static inline bool is_plain_transfer(const struct smartio_nvme_queue *q, enum smartio_nvme_op op,
				     uint64_t lba, uint32_t blocks,
				     const struct smartio_nvme_buffer *b, size_t offset)
{
	uint64_t last = offset + blocks * q->block_size - 1;

	return (uint32_t)op - 1 <= 1 && b && b->n == q->n && blocks - 1 < q->plain_blocks &&
	       lba < q->plain_end && offset % 4 == 0 && last < b->size &&
	       (offset ^ last) < SIO_NVME_PAGE;
}

int smartio_nvme_submit(struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba,
			uint32_t blocks, struct smartio_nvme_buffer *b, size_t offset, void *cookie)
{
	if (unlikely(!q->free || !is_plain_transfer(q, op, lba, blocks, b, offset)))
		return submit_other(q, op, lba, blocks, b, offset, cookie);
	put_entry(q, (uint32_t)op, lba, blocks - 1, b->ioaddr + offset, 0, b, cookie);
	return 0;
}

/* Entries filled since the last ring. */
static inline uint32_t waiting(const struct smartio_nvme_queue *q)
{
	ptrdiff_t bytes = q->sqe - q->rung;

	return (uint32_t)((bytes >= 0 ? bytes : bytes + (q->sq_end - q->sq)) / 64);
}

uint32_t sio_nvme_in_flight(const struct smartio_nvme_queue *q)
{
	return (uint32_t)(q->counters.submitted - q->counters.completed) + waiting(q) +
	       sio_nvme_unrung(q);
}

static inline void announce(struct smartio_nvme_queue *q)
{
	/*
	 * Entries and PRP lists must be there before the drive learns of them: pairs with the
	 * drive's order, in emu with the barrier in emu_nvme_fetch().
	 */
	sio_to_fabric_barrier();
	sio_write32(q->sq_doorbell, htole32((uint32_t)((q->sqe - q->sq) / 64)));
	SIO_NVME_PROBE(doorbell, q->id, q->sqe - q->sq);
	q->counters.submitted += waiting(q);
	q->counters.doorbells_sq++;
	q->rung = q->sqe;
}

/* The queues live, and a store to a doorbell is all that is to be done. */
static inline bool is_plain(const struct smartio_nvme_queue *q)
{
	return __atomic_load_n(q->generation_word, __ATOMIC_RELAXED) == q->plain;
}

COLD static void ring_and_wake(struct smartio_nvme_queue *q)
{
	if (sio_nvme_queue_stale(q))
		return;
	if (q->pushes) /* what stands behind the queue, lists of data pages, goes the same way */
		sio_push_stores(q->sq);
	if (q->share)
		sio_nvme_share_ring(q);
	else
		announce(q);
	sio_nvme_wake(q->doorbells->map, q->doorbells->sleeps);
	if (q->looks)
		sio_nvme_look(q);
}

static inline void ring(struct smartio_nvme_queue *q)
{
	if (q->sqe == q->rung)
		return;
	/*
	 * After a reset the queue is gone, and who knows that says so. A doorbell that is rung all
	 * the same leads nowhere: it was taken away before anybody had the queue's number again.
	 */
	if (likely(is_plain(q)))
		announce(q);
	else
		ring_and_wake(q);
}

void smartio_nvme_ring(struct smartio_nvme_queue *q)
{
	ring(q);
}

/*
 * A completion that cannot be (memory that reads as ones after a loss, or a drive gone mad), or one
 * that does not count.
 */
COLD static void bad_completion(struct smartio_nvme_queue *q, int error)
{
	/* Of a loss we were told before the memory changed: pairs with device_lost(). */
	sio_from_fabric_barrier();
	if (!sio_nvme_queue_stale(q))
		end_queue(q, smartio_device_lost(sio_nvme_leg(q)->d.handle) ? -ECONNRESET : error);
}

/* Of a queue that @flushes. Return: whether there is something to poll now. */
static bool take_far(struct smartio_nvme_queue *q)
{
	int rc = sio_nvme_far_take(q);

	if (rc < 0)
		bad_completion(q, rc);
	return rc > 0;
}

/* All that came before was polled. Whoever survives goes on at the next poll. */
COLD static int found_dead(struct smartio_nvme_queue *q)
{
	sio_nvme_queue_stale(q);
	return sio_nvme_survives(q) ? 0 : sio_nvme_queue_dead(q);
}

COLD static int poll_dead(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
			  unsigned max)
{
	if (q->multi) {
		int n = (int)sio_nvme_multi_poll_dead(q, c, max);

		return n ? n : sio_nvme_queue_dead(q);
	}
	return sio_nvme_survives(q) ? sio_nvme_survive(q, c, max) : sio_nvme_queue_dead(q);
}

/* Of a queue whose completion queue is that of several: rings and polls for all of them. */
COLD static int poll_several(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
			     unsigned max)
{
	int n;

	for (struct smartio_nvme_queue *of = q->multi->users; of; of = of->peer)
		ring(of);
	n = sio_nvme_multi_poll(q, c, max);
	return n < 0 ? sio_nvme_queue_dead(q) : n;
}

/* The same as below of a queue that looks, as each does whose pair is shared. */
COLD static int look_on(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
			unsigned max)
{
	if (q->multi)
		return poll_several(q, c, max);
	/* It may have found some that lay in the common queue. */
	if (q->share && sio_nvme_share_take(q) && max)
		return smartio_nvme_poll(q, c, max);
	if (q->flushes && take_far(q) && max)
		return smartio_nvme_poll(q, c, max);
	q->counters.empty_polls++;
	if (q->error || generation_changed(q))
		return found_dead(q);
	if (++q->empty > q->patience) {
		q->counters.yields++;
		sio_nvme_look(q);
		smartio_yield();
	} else {
		sio_nvme_limit_look(q, false);
	}
	return 0;
}

static int poll_found_nothing(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
			      const struct smartio_nvme_completion *last)
{
	if (unlikely(q->looks))
		return look_on(q, c, (unsigned)(last - c));
	q->counters.empty_polls++;
	if (unlikely(q->error || generation_changed(q)))
		return found_dead(q);
	if (++q->empty > q->patience) {
		q->counters.yields++;
		smartio_yield();
	}
	return 0;
}

#define CQE_SQ_ID (0xffffull << 16)

uint64_t sio_nvme_expected(uint32_t id, bool phase)
{
	return (uint64_t)id << 16 | (phase ? SIO_NVME_CQE_PHASE : 0);
}

/* @n completions were taken, up to @at. */
static inline int took(struct smartio_nvme_queue *q, volatile uint8_t *at, uint64_t expected,
		       unsigned n)
{
	q->cqe = at;
	q->expected = expected;
	q->counters.completed += n;
	if (q->empty)
		sio_nvme_waited(q);
	/*
	 * The data is as new as its completion, and entries are read before they are given back:
	 * pairs with the order of the drive's writes, in emu with emu_dma_write().
	 */
	sio_from_fabric_barrier();
	if (likely(!generation_changed(q))) {
		sio_write32(q->cq_doorbell, htole32((uint32_t)((at - q->cq) / 16)));
		q->counters.doorbells_cq++;
	}
	return (int)n;
}

#define SLOT_SHIFT 5 /* its size: so the slot of a command id is a shift and a mask away */
_Static_assert(sizeof(struct sio_nvme_slot) == 1u << SLOT_SHIFT, "a slot's size");

/* With the queue, which is this one: in one store. */
static inline void put_status(struct smartio_nvme_completion *c, uint64_t status)
{
	_Static_assert(offsetof(struct smartio_nvme_completion, queue) ==
			       offsetof(struct smartio_nvme_completion, status) + 4,
		       "the status and the queue are one word");

	if (__BYTE_ORDER == __BIG_ENDIAN)
		status <<= 32;
	memcpy((char *)c + offsetof(struct smartio_nvme_completion, status), &status,
	       sizeof(status));
}

/* How far completions can be taken in a row: @max of them, or to the end of the queue. */
static inline volatile uint8_t *stop_at(volatile uint8_t *at, volatile uint8_t *end, unsigned max)
{
	return (uint64_t)(end - at) <= (uint64_t)max * 16 ? end : at + (uint64_t)max * 16;
}

int smartio_nvme_poll(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	struct smartio_nvme_completion *const first = c, *const last = c + max;
	struct sio_nvme_slot *const slots = q->slot, *slot, *free;
	volatile uint8_t *at = q->cqe, *const end = q->cq_end, *stop;
	const uint64_t mask = q->slot_mask;
	const uint16_t use = q->use;
	uint64_t expected = q->expected;

	ring(q);
	if (unlikely(q->error))
		return poll_dead(q, c, max);
	free = q->free;
again:
	stop = stop_at(at, end, (unsigned)(last - c));
	for (; at != stop; at += 16, c++, free = slot) {
		/* Its second half, once: SQ head, SQ id, command id, phase and status. */
		uint64_t e = le64toh(sio_read64(at + 8));
		uint16_t cid = (uint16_t)(e >> 32);

		if (unlikely((e ^ expected) & (SIO_NVME_CQE_PHASE | CQE_SQ_ID))) {
			if ((e ^ expected) & SIO_NVME_CQE_PHASE)
				goto out;
			goto bad;
		}
		/* Of this use of its slot, and in flight? */
		slot = (struct sio_nvme_slot *)((char *)slots + (e >> (32 - SLOT_SHIFT) & mask));
		if (unlikely(le16toh(slot->cid) != cid || !slot->buffer))
			goto bad;
		c->cookie = slot->cookie;
		put_status(c, e >> 49 & 0x7ff);
		slot->cid = htole16((uint16_t)(le16toh(slot->cid) + use));
		__atomic_store_n(&slot->buffer, NULL, __ATOMIC_RELAXED);
		slot->next = free;
	}
	if (unlikely(at == end)) {
		at = q->cq;
		expected ^= SIO_NVME_CQE_PHASE;
		if (c != last)
			goto again;
	}
out:
	q->free = free;
	return c == first ? poll_found_nothing(q, c, last)
			  : took(q, at, expected, (unsigned)(c - first));

bad:
	bad_completion(q, -EPROTO);
	return c == first ? found_dead(q) : took(q, at, expected, (unsigned)(c - first));
}

void smartio_nvme_queue_counters(const struct smartio_nvme_queue *q,
				 struct smartio_nvme_counters *c)
{
	*c = q->counters;
	c->submitted += waiting(q) + sio_nvme_unrung(q);
}
