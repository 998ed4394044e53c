/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that programs of one host share: their common memory. The first program makes a
 * segment of this host's memory and maps it for the drive; the others attach to it. Its maker
 * attaches as well and removes the handle that made it, so that the segment lives as long as any
 * sharer: the lock stays where it is when the maker was killed.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define SHUT_MS 5000u /* for a holder of the lock, which has it for a microsecond when it runs */

static size_t pages(size_t bytes)
{
	return (bytes + SIO_NVME_PAGE - 1) & ~(size_t)(SIO_NVME_PAGE - 1);
}

/* The size of one program's completion queue. */
static size_t own_bytes(uint32_t depth)
{
	return ((size_t)(depth + 1) * 16 + 63) & ~(size_t)63;
}

static size_t segment_bytes(const struct sio_nvme_share *s)
{
	return SIO_NVME_PAGE + pages((size_t)s->entries * 64) + pages((size_t)s->entries * 16) +
	       pages(s->most * own_bytes(s->depth));
}

int sio_nvme_share_shut_wait(struct sio_nvme_share *s)
{
	uint64_t deadline = sio_nvme_deadline(SHUT_MS);
	unsigned pauses = 0;
	int rc;

	while ((rc = sio_nvme_share_shut(s)) == -EAGAIN && smartio_now_ns() < deadline)
		sio_nvme_pause(&pauses);
	return rc;
}

/* ---- the segment ---- */
static void leave_segment(struct sio_nvme_share *s)
{
	sci_error_t err;

	if (s->reachable)
		SIO_NVME_UNTIL_FREE(err, SCIUnmapLocalSegmentForDevice(s->segment, s->adapter,
								       s->leg->d.handle, 0, &err));
	if (s->available)
		SIO_NVME_UNTIL_FREE(err, SCISetSegmentUnavailable(s->segment, s->adapter, 0, &err));
	if (s->map)
		SCIUnmapSegment(s->map, 0, &err);
	if (s->segment)
		SIO_NVME_UNTIL_FREE(err, SCIRemoveSegment(s->segment, 0, &err));
	s->reachable = s->available = false;
	s->map = NULL;
	s->segment = NULL;
	s->head = NULL;
}

void sio_nvme_share_close(struct sio_nvme_share *s)
{
	sci_error_t err;

	if (!s)
		return;
	leave_segment(s);
	if (s->notice)
		SCIRemoveDataInterrupt(s->notice, 0, &err);
	free(s->staged);
	free(s);
}

void sio_nvme_share_forget(struct sio_nvme_share *s)
{
	if (s && s->reachable) {
		s->reachable = s->available = false;
		s->map = NULL;
		s->segment = NULL;
	}
	sio_nvme_share_close(s);
}

/* Where the parts of the mapped segment begin. */
static void find_parts(struct sio_nvme_share *s)
{
	s->sq = (volatile uint8_t *)s->head + SIO_NVME_PAGE;
	s->cq = s->sq + pages((size_t)s->entries * 64);
	s->own_bytes = own_bytes(s->depth);
	s->own = s->cq + pages((size_t)s->entries * 16) + s->place * s->own_bytes;
	s->shift = 0;
	/* As make_slots() has it: more than the depth, so that no command id is 65,535. */
	while (1u << s->shift <= s->depth)
		s->shift++;
}

/*
 * Attaches to the segment, so that it exists as long as any program uses it, not as long as its
 * maker. -EAGAIN: no program uses it, so it has ended.
 */
static int attach(struct sio_nvme_share *s)
{
	size_t size;
	sci_error_t err;
	int rc;

	SCIAttachLocalSegment(s->leg->d.sd, &s->segment, s->id, &size, NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		s->segment = NULL;
		rc = sio_nvme_fail_sci(err, "%s: cannot attach to a shared queue pair's memory",
				       s->leg->d.name);
		return err == SCI_ERR_NO_SUCH_SEGMENT ? -EAGAIN : rc;
	}
	if (size < segment_bytes(s))
		return sio_nvme_fail(-EPROTO, "%s: a shared queue pair has %zu bytes, not %zu",
				     s->leg->d.name, size, segment_bytes(s));
	s->head = (struct sio_nvme_share_head *)(uintptr_t)SCIMapLocalSegment(
		s->segment, &s->map, 0, segment_bytes(s), NULL, 0, &err);
	if (err == SCI_ERR_OK)
		return 0;
	s->map = NULL;
	s->head = NULL;
	return sio_nvme_fail_sci(err, "%s: cannot map a shared queue pair", s->leg->d.name);
}

static int make_segment(struct sio_nvme_share *s)
{
	sci_local_segment_t made;
	sci_error_t err, ignored;
	int rc;

	SCICreateSegment(s->leg->d.sd, &made, smartio_random() & 0xffffff00, segment_bytes(s), NULL,
			 NULL, SCI_FLAG_AUTO_ID, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: no memory of %zu bytes for a shared queue pair",
					 s->leg->d.name, segment_bytes(s));
	s->id = SCIGetLocalSegmentId(made);
	SCIShareSegment(made, 0, &err);
	rc = err == SCI_ERR_OK ? attach(s)
			       : sio_nvme_fail_sci(err, "%s: cannot share memory", s->leg->d.name);
	SIO_NVME_UNTIL_FREE(ignored, SCIRemoveSegment(made, 0, &ignored));
	return rc;
}

static int reach_segment(struct sio_nvme_share *s)
{
	sci_ioaddr_t ioaddr;
	sci_error_t err;

	s->adapter = s->leg->d.adapter;
	SCIPrepareSegment(s->segment, s->adapter, 0, &err);
	if (err == SCI_ERR_OK)
		SCISetSegmentAvailable(s->segment, s->adapter, 0, &err);
	s->available = err == SCI_ERR_OK;
	if (s->available)
		SCIMapLocalSegmentForDevice(s->segment, s->adapter, s->leg->d.handle, &ioaddr, 0,
					    segment_bytes(s), 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot reach memory of %zu bytes by adapter %u",
					 s->leg->d.name, segment_bytes(s), s->adapter);
	s->reachable = true;
	s->ioaddr = ioaddr;
	return 0;
}

/*
 * The vector of a pair of our own, whose completions wake all that share it. Without one the
 * manager can have us join others only.
 */
static int make_interrupt(struct smartio_nvme_queue *q, struct sio_nvme_share *s)
{
	unsigned number = 0;
	int rc = sio_nvme_interrupt_open(q, &number);

	if (rc == 0)
		sio_write32(&s->head->interrupt, number + 1);
	else
		sio_nvme_interrupt_close(q);
	return rc == -EBUSY ? 0 : rc;
}

/* A pair of our own, until the manager says that there is none, and whose is to be joined. */
static int make(struct smartio_nvme_queue *q, struct sio_nvme_share *s)
{
	const uint32_t room = (q->n->meta.max_entries - 1) / q->depth;
	int rc;

	s->depth = q->depth;
	s->most = room < SIO_NVME_SHARERS ? room : SIO_NVME_SHARERS;
	s->entries = s->most * s->depth + 1;
	s->place = 0;
	rc = make_segment(s);
	if (rc == 0)
		rc = reach_segment(s);
	if (rc == 0 && q->options.flags & SMARTIO_NVME_INTERRUPT)
		rc = make_interrupt(q, s);
	if (rc)
		return rc;
	s->maker = true;
	find_parts(s);
	sio_write32(&s->head->depth, s->depth);
	sio_write32(&s->head->most, s->most);
	sio_write32(&s->head->entries, s->entries);
	sio_write32(&s->head->cq_phase, 1);
	for (unsigned i = 0; i < SIO_NVME_SHARERS; i++)
		sio_write32(&s->head->own[i].phase, 1);
	sio_write32(&s->head->version, SIO_NVME_VERSION);
	/* pairs with the load in enter() */
	sio_write32_release(&s->head->magic, SIO_NVME_SHARE_MAGIC);
	return 0;
}

int sio_nvme_share_new(struct smartio_nvme_queue *q)
{
	struct sio_nvme_share *s = calloc(1, sizeof(*s));
	sci_error_t err;

	if (!s)
		return sio_nvme_no_memory("a shared queue");
	q->share = s;
	s->leg = q->leg;
	s->staged = aligned_alloc(64, (size_t)q->entries * 64);
	if (!s->staged)
		return sio_nvme_no_memory("%u commands", q->entries);
	/* The manager may reach us by another adapter than that to the lender. */
	SCICreateDataInterrupt(q->leg->d.sd, &s->notice, SMARTIO_ALL_ADAPTERS, &s->number, NULL,
			       NULL, 0, &err);
	if (err == SCI_ERR_OK)
		return make(q, s);
	s->notice = NULL;
	return sio_nvme_fail_sci(err, "no data interrupt for a shared queue pair");
}

/* ---- the queue ---- */
static void place_queue(struct smartio_nvme_queue *q)
{
	struct sio_nvme_share *s = q->share;

	q->sq = q->sqe = q->rung = s->staged;
	q->sq_end = q->sq + (size_t)q->entries * 64;
	q->cq = s->own;
	q->cq_end = q->cq + (size_t)(s->depth + 1) * 16;
	q->flushes = false;
	q->list_shift = sio_nvme_prp_shift(q->max_transfer);
	q->list = q->sq_mem->at;
	q->list_ioaddr = q->sq_mem->ioaddr;
	/* Command ids say whose they are. What is in flight is sent again with one of these. */
	q->use = (uint16_t)(SIO_NVME_SHARERS << s->shift);
	for (uint32_t i = 0; i < q->depth; i++)
		q->slot[i].cid = htole16((uint16_t)(s->place << s->shift | i));
}

/* Of a pair that another program has made. */
static int join_interrupt(struct smartio_nvme_queue *q)
{
	if (!(q->options.flags & SMARTIO_NVME_INTERRUPT) || q->share->maker)
		return 0;
	return sio_nvme_interrupt_join(q, sio_read32(&q->share->head->interrupt));
}

/* Our completions go on where those of who had the place before ended. */
static int enter(struct smartio_nvme_queue *q)
{
	const struct sio_nvme_share *s = q->share;
	const struct sio_nvme_share_head *h = s->head;

	/* A reader that sees the magic number sees the rest; pairs with make(). */
	if (sio_read32_acquire(&h->magic) != SIO_NVME_SHARE_MAGIC ||
	    sio_read32(&h->version) != SIO_NVME_VERSION || sio_read32(&h->depth) != s->depth ||
	    sio_read32(&h->most) != s->most || sio_read32(&h->entries) != s->entries)
		return sio_nvme_fail(-EPROTO,
				     "the memory of a shared queue pair of %s has invalid contents",
				     q->n->d.name);
	/* pairs with sio_nvme_share_shut() */
	if (sio_read32_acquire(&h->lock) == SIO_NVME_SHUT)
		return sio_nvme_fail(-EAGAIN, "a shared queue pair of %s has ended", q->n->d.name);
	q->cqe = q->cq + (size_t)(sio_read32(&h->own[s->place].next) % (s->depth + 1)) * 16;
	return 0;
}

int sio_nvme_share_take_place(struct smartio_nvme_queue *q, const struct sio_nvme_rep_pair *pair)
{
	struct sio_nvme_share *s = q->share;
	int rc = 0;

	s->key = pair->key;
	s->place = pair->place;
	if (pair->share != s->id || pair->place) {
		sio_nvme_interrupt_close(q);
		leave_segment(s);
		s->maker = false;
		s->id = pair->share;
		s->depth = pair->depth;
		s->most = pair->most;
		s->entries = s->most * s->depth + 1;
		rc = attach(s);
	}
	if (rc)
		return rc;
	find_parts(s);
	place_queue(q);
	rc = enter(q);
	return rc ? rc : join_interrupt(q);
}
