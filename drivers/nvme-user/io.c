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
#define EMPTY_BEFORE_YIELD 200u

static inline bool generation_changed(const struct smartio_nvme_queue *q)
{
	return sio_read32(q->generation_word) != q->generation;
}

__attribute__((cold, noinline)) static int dead(struct smartio_nvme_queue *q)
{
	const char *name = q->n->d.name;

	if (!q->error && generation_changed(q))
		q->error = -ECONNRESET;
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

bool sio_nvme_queue_stale(struct smartio_nvme_queue *q)
{
	if (q->error == -ECONNRESET || !generation_changed(q))
		return q->error == -ECONNRESET;
	q->error = -ECONNRESET;
	return true;
}

__attribute__((cold, noinline)) static int
refuse(const struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba, uint32_t blocks,
       const struct smartio_nvme_buffer *b, size_t offset)
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

/* One entry of the submission queue, whole, each word once. */
static inline void put_entry(volatile uint8_t *at, uint32_t dw0, uint32_t nsid, uint64_t prp1,
			     uint64_t prp2, uint64_t lba, uint32_t nlb)
{
	sio_write64(at, htole64((uint64_t)nsid << 32 | dw0));
	sio_write64(at + 8, 0);
	sio_write64(at + 16, 0);
	sio_write64(at + 24, htole64(prp1));
	sio_write64(at + 32, htole64(prp2));
	sio_write64(at + 40, htole64(lba));
	sio_write64(at + 48, htole64(nlb));
	sio_write64(at + 56, 0);
}

int smartio_nvme_submit(struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba,
			uint32_t blocks, struct smartio_nvme_buffer *b, size_t offset, void *cookie)
{
	uint64_t prp1 = 0, prp2 = 0, bytes;
	struct sio_nvme_slot *slot;
	uint32_t cid;

	if (unlikely(q->error))
		return dead(q);
	if (unlikely(q->n_free == 0))
		return -EAGAIN;
	cid = q->free[q->n_free - 1];
	if (likely(op == SMARTIO_NVME_READ || op == SMARTIO_NVME_WRITE)) {
		bytes = (uint64_t)blocks << q->block_shift;
		/* blocks - 1: 0 becomes the largest number. */
		if (unlikely(!b || b->n != q->n || blocks - 1 >= q->max_blocks ||
			     lba >= q->blocks || blocks > q->blocks - lba || offset % 4 ||
			     offset > b->size || bytes > b->size - offset))
			return refuse(q, op, lba, blocks, b, offset);
		prp1 = b->ioaddr + offset;
		if ((prp1 & (SIO_NVME_PAGE - 1)) + bytes > SIO_NVME_PAGE)
			prp2 = sio_nvme_prp2(q, cid, prp1, bytes);
		blocks--;
	} else if (op == SMARTIO_NVME_FLUSH) {
		b = &sio_nvme_no_buffer;
		lba = blocks = 0;
	} else {
		return refuse(q, op, lba, blocks, b, offset);
	}
	put_entry(q->sq + (size_t)q->tail * 64, (uint32_t)op | cid << 16, q->nsid, prp1, prp2, lba,
		  blocks);
	q->n_free--;
	slot = &q->slot[cid];
	slot->cookie = cookie;
	__atomic_store_n(&slot->buffer, b, __ATOMIC_RELAXED);
	if (++q->tail == q->entries)
		q->tail = 0;
	q->counters.submitted++;
	return 0;
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
	q->rung = q->tail;
	q->counters.doorbells_sq++;
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
__attribute__((cold, noinline)) static void bad_completion(struct smartio_nvme_queue *q)
{
	if (!sio_nvme_queue_stale(q))
		q->error = smartio_device_lost(q->n->d.handle) ? -ECONNRESET : -EPROTO;
}

int smartio_nvme_poll(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	uint32_t head = q->head, phase = q->phase;
	unsigned n = 0;

	ring(q);
	if (unlikely(q->error))
		return dead(q);
	while (n < max) {
		/* Its second half, once: SQ head, SQ id, command id, phase and status. */
		uint64_t e = le64toh(sio_read64(q->cq + (size_t)head * 16 + 8));
		uint32_t cid = (uint32_t)(e >> 32) & 0xffff;
		struct sio_nvme_slot *slot;

		if ((uint32_t)(e >> 48 & 1) != phase)
			break;
		if (unlikely(cid >= q->depth || !q->slot[cid].buffer ||
			     (e >> 16 & 0xffff) != q->id)) {
			bad_completion(q);
			break;
		}
		slot = &q->slot[cid];
		c[n].cookie = slot->cookie;
		c[n].status = (uint32_t)(e >> 49) & 0x7ff;
		c[n].reserved = 0;
		__atomic_store_n(&slot->buffer, NULL, __ATOMIC_RELAXED);
		q->free[q->n_free++] = (uint16_t)cid;
		n++;
		if (++head == q->entries) {
			head = 0;
			phase ^= 1;
		}
	}
	if (n == 0)
		return poll_found_nothing(q);
	q->head = head;
	q->phase = phase;
	q->empty = 0;
	q->counters.completed += n;
	/* The data is as new as its completion; and the entries were read before they are given
	 * back. */
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
}
