/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path: submit, ring, poll. Loads and stores only: no allocation, no lock, no call but, of
 * a poller that finds nothing, smartio_yield(). A queue pair belongs to one thread. Source: NVM
 * Express Base Specification 1.4, sections 4.1 and 4.6.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define COLD __attribute__((cold, noinline))
#define EMPTY_BEFORE_YIELD 200u

static inline bool generation_changed(const struct smartio_nvme_queue *q)
{
	return __atomic_load_n(q->generation_word, __ATOMIC_RELAXED) != q->generation;
}

/* A dead queue has no free command, so that submit needs no look of its own. */
static void end_queue(struct smartio_nvme_queue *q, int error)
{
	if (!q->error)
		q->error = error;
	q->n_free = 0;
}

bool sio_nvme_queue_stale(struct smartio_nvme_queue *q)
{
	if (!q->error && unlikely(generation_changed(q)))
		end_queue(q, -ECONNRESET);
	return q->error == -ECONNRESET || generation_changed(q);
}

COLD static int dead(struct smartio_nvme_queue *q)
{
	const char *name = q->n->d.name;

	sio_nvme_queue_stale(q);
	if (q->error == -ECONNRESET)
		return sio_nvme_fail(q->error,
				     "%s was reset or lost; queue pair %u is gone with "
				     "what was in flight",
				     name, q->id);
	return sio_nvme_fail(q->error,
			     "queue pair %u of %s is dead: the drive completed what was "
			     "not asked of it",
			     q->id, name);
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
		return sio_nvme_fail(-EINVAL, "a transfer of 0 blocks");
	if (offset % 4)
		return sio_nvme_fail(-EINVAL, "buffer offset %zu is not a multiple of 4", offset);
	if (blocks > q->max_blocks)
		return sio_nvme_fail(-ERANGE, "%u blocks in one command; this queue takes %u",
				     blocks, q->max_blocks);
	if (lba >= q->blocks || blocks > q->blocks - lba)
		return sio_nvme_fail(-ERANGE,
				     "blocks %" PRIu64 " + %u: namespace %u ends at %" PRIu64, lba,
				     blocks, q->nsid, q->blocks);
	return sio_nvme_fail(-ERANGE, "%u blocks at offset %zu of a buffer of %zu bytes", blocks,
			     offset, b->size);
}

/* Fill the next entry of the submission queue, each word once, and take command id @cid. */
static inline void put_entry(struct smartio_nvme_queue *q, uint32_t op, uint32_t cid, uint64_t lba,
			     uint64_t nlb, uint64_t prp1, uint64_t prp2,
			     struct smartio_nvme_buffer *b, void *cookie)
{
	volatile uint8_t *at = q->sq + (size_t)q->tail * 64;
	struct sio_nvme_slot *slot = &q->slot[cid];
	uint32_t tail = q->tail + 1;

	sio_write64(at, htole64((uint64_t)q->nsid << 32 | cid << 16 | op));
	sio_write64(at + 8, 0);
	sio_write64(at + 16, 0);
	sio_write64(at + 24, htole64(prp1));
	sio_write64(at + 32, htole64(prp2));
	sio_write64(at + 40, htole64(lba));
	sio_write64(at + 48, htole64(nlb));
	sio_write64(at + 56, 0);
	q->n_free--;
	slot->cookie = cookie;
	__atomic_store_n(&slot->buffer, b, __ATOMIC_RELAXED);
	q->tail = tail == q->entries ? 0 : tail;
}

/* A transfer of more than one page; apart, so that the short way needs no stack. */
__attribute__((noinline)) static int submit_pages(struct smartio_nvme_queue *q,
						  enum smartio_nvme_op op, uint64_t lba,
						  uint32_t blocks, struct smartio_nvme_buffer *b,
						  size_t offset, void *cookie)
{
	uint32_t cid = q->free[q->n_free - 1];
	uint64_t prp1 = b->ioaddr + offset;
	uint64_t prp2 = sio_nvme_prp2(q, cid, prp1, (uint64_t)blocks << q->block_shift);

	put_entry(q, (uint32_t)op, cid, lba, blocks - 1, prp1, prp2, b, cookie);
	return 0;
}

/* What is no transfer. */
COLD static int submit_other(struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba,
			     uint32_t blocks, struct smartio_nvme_buffer *b, size_t offset,
			     void *cookie)
{
	if (op != SMARTIO_NVME_FLUSH)
		return refuse(q, op, lba, blocks, b, offset);
	put_entry(q, (uint32_t)op, q->free[q->n_free - 1], 0, 0, 0, 0, &sio_nvme_no_buffer, cookie);
	return 0;
}

int smartio_nvme_submit(struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba,
			uint32_t blocks, struct smartio_nvme_buffer *b, size_t offset, void *cookie)
{
	uint64_t bytes, prp1;

	if (unlikely(q->n_free == 0))
		return q->error ? dead(q) : -EAGAIN;
	if (unlikely((uint32_t)op - 1 > 1))
		return submit_other(q, op, lba, blocks, b, offset, cookie);
	bytes = (uint64_t)blocks << q->block_shift;
	/* blocks - 1: 0 becomes the largest number. No queue's max_blocks exceeds its namespace. */
	if (unlikely(!b || b->n != q->n || blocks - 1 >= q->max_blocks ||
		     lba > q->blocks - blocks || offset % 4 || offset > b->size ||
		     bytes > b->size - offset))
		return refuse(q, op, lba, blocks, b, offset);
	prp1 = b->ioaddr + offset;
	if ((prp1 & (SIO_NVME_PAGE - 1)) + bytes > SIO_NVME_PAGE)
		return submit_pages(q, op, lba, blocks, b, offset, cookie);
	put_entry(q, (uint32_t)op, q->free[q->n_free - 1], lba, blocks - 1, prp1, 0, b, cookie);
	return 0;
}

/* Entries filled since the last ring. */
static inline uint32_t waiting(const struct smartio_nvme_queue *q)
{
	return q->tail >= q->rung ? q->tail - q->rung : q->tail + q->entries - q->rung;
}

static inline void ring(struct smartio_nvme_queue *q)
{
	if (q->tail == q->rung)
		return;
	/*
	 * After a reset the doorbell may be another client's. What is between this load and the
	 * store stays open: hardware has no doorbell that asks who rings.
	 */
	if (unlikely(sio_nvme_queue_stale(q)))
		return;
	/* Entries and PRP lists must be there before the drive learns of them. */
	sio_to_fabric_barrier();
	sio_write32(q->sq_doorbell, htole32(q->tail));
	q->counters.submitted += waiting(q);
	q->counters.doorbells_sq++;
	q->rung = q->tail;
}

void smartio_nvme_ring(struct smartio_nvme_queue *q)
{
	ring(q);
}

static int poll_found_nothing(struct smartio_nvme_queue *q)
{
	q->counters.empty_polls++;
	if (unlikely(q->error || generation_changed(q)))
		return dead(q);
	if (++q->empty > EMPTY_BEFORE_YIELD) {
		q->counters.yields++;
		smartio_yield();
	}
	return 0;
}

/* A completion that cannot be: memory that reads as ones after a loss, or a drive gone mad. */
COLD static void bad_completion(struct smartio_nvme_queue *q)
{
	if (!sio_nvme_queue_stale(q))
		end_queue(q, smartio_device_lost(q->n->d.handle) ? -ECONNRESET : -EPROTO);
}

#define CQE_SQ_ID (0xffffull << 16)
#define CQE_PHASE (1ull << 48)

uint64_t sio_nvme_expected(uint32_t id, bool phase)
{
	return (uint64_t)id << 16 | (phase ? CQE_PHASE : 0);
}

int smartio_nvme_poll(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	uint64_t expected = q->expected;
	uint32_t head = q->head;
	unsigned n;

	ring(q);
	if (unlikely(q->error))
		return dead(q);
	for (n = 0; n < max; n++) {
		/* Its second half, once: SQ head, SQ id, command id, phase and status. */
		uint64_t e = le64toh(sio_read64(q->cq + (size_t)head * 16 + 8));
		uint64_t differs = (e ^ expected) & (CQE_PHASE | CQE_SQ_ID);
		uint32_t cid = (uint16_t)(e >> 32);
		struct sio_nvme_slot *slot;

		if (differs & CQE_PHASE)
			break;
		if (unlikely(differs || cid >= q->depth || !q->slot[cid].buffer)) {
			bad_completion(q);
			break;
		}
		slot = &q->slot[cid];
		c[n].cookie = slot->cookie;
		c[n].status = (uint32_t)(e >> 49) & 0x7ff;
		c[n].reserved = 0;
		__atomic_store_n(&slot->buffer, NULL, __ATOMIC_RELAXED);
		q->free[q->n_free++] = (uint16_t)cid;
		if (++head == q->entries) {
			head = 0;
			expected ^= CQE_PHASE;
		}
	}
	if (n == 0)
		return poll_found_nothing(q);
	q->head = head;
	q->expected = expected;
	q->empty = 0;
	q->counters.completed += n;
	/* The data is as new as its completion; and entries are read before they are given back. */
	sio_from_fabric_barrier();
	if (likely(!generation_changed(q))) {
		sio_write32(q->cq_doorbell, htole32(head));
		q->counters.doorbells_cq++;
	}
	return (int)n;
}

void smartio_nvme_queue_counters(const struct smartio_nvme_queue *q,
				 struct smartio_nvme_counters *c)
{
	*c = q->counters;
	c->submitted += waiting(q);
}
