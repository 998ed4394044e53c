/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots of a DMA queue: what its engine can reach. A segment is attached as a whole, by a request
 * to smartiod, when a transfer uses it first; of a BAR the memory around what the transfer is of.
 */
#include <errno.h>

#include "sisci/dma/queue.h"

static bool reaches(const struct sio_dma_slot *slot, const struct sio_dma_side *s)
{
	return slot->range && slot->id == s->segment->id && slot->remote == s->remote &&
	       (!s->bar || (s->offset >= slot->first && s->offset - slot->first <= slot->length &&
			    s->bytes <= slot->length - (s->offset - slot->first)));
}

/* Does the smartiod that was started again have it? What a reset took away it has not. */
static bool is_there(const struct sio_dma_queue *q, const struct sio_dma_slot *slot)
{
	const struct sio_msg_queue_detach req = {.h.type = sio_to_le32(SIO_MSG_QUEUE_DETACH),
						 .queue = sio_to_le32(q->o.id),
						 .range = sio_to_le64(slot->range)};

	return sio_session_has(q->o.lib->session, &req.h);
}

static void forget_ended(struct sio_dma_queue *q)
{
	unsigned resumes = sio_session_resumes(q->o.lib->session);

	for (unsigned i = 0; i < q->n_slots; i++) {
		struct sio_dma_slot *s = &q->slot[i];

		if (!s->range || !s->bar || s->resumes == resumes)
			continue;
		if (is_there(q, s))
			s->resumes = resumes;
		else
			s->range = 0;
	}
}

static struct sio_dma_slot *find_slot(struct sio_dma_queue *q, const struct sio_dma_side *s)
{
	for (unsigned i = 0; i < q->n_slots; i++)
		if (reaches(&q->slot[i], s))
			return &q->slot[i];
	return NULL;
}

static void detach(struct sio_dma_queue *q, struct sio_dma_slot *slot)
{
	struct sio_msg_queue_detach req = {.queue = sio_to_le32(q->o.id),
					   .range = sio_to_le64(slot->range)};
	struct sio_msg rep;

	sio_ask(q->o.lib, SIO_MSG_QUEUE_DETACH, &req, sizeof(req), &rep, sizeof(rep), NULL);
	slot->range = 0;
}

/*
 * Where to note another one; what was used longest ago makes room when all are in use. NULL: this
 * very transfer, which began with use @first, has them all.
 */
static struct sio_dma_slot *free_slot(struct sio_dma_queue *q, uint64_t first)
{
	struct sio_dma_slot *oldest = &q->slot[0];

	for (unsigned i = 0; i < q->n_slots; i++) {
		if (!q->slot[i].range)
			return &q->slot[i];
		if (q->slot[i].used < oldest->used)
			oldest = &q->slot[i];
	}
	if (q->n_slots < SIO_DMA_SLOTS)
		return &q->slot[q->n_slots++];
	if (oldest->used >= first)
		return NULL;
	detach(q, oldest);
	return oldest;
}

/*
 * The slot was another's, whose segment is gone since. Return: this transfer uses it, by an entry
 * that is written already, and would copy what has the slot now.
 */
static bool takes_place(struct sio_dma_queue *q, const struct sio_dma_slot *s, uint64_t first)
{
	bool used = false;

	for (unsigned i = 0; i < q->n_slots; i++) {
		struct sio_dma_slot *other = &q->slot[i];

		if (other == s || !other->range || other->slot != s->slot)
			continue;
		used |= other->used >= first;
		other->range = 0;
	}
	return used;
}

/* What smartiod said of it: of a BAR it may be more than was asked for. */
static int note_slot(struct sio_dma_queue *q, struct sio_dma_slot *ret,
		     const struct sio_dma_side *s, uint64_t first,
		     const struct sio_rep_queue_attach *rep, struct sio_err *err)
{
	*ret = (struct sio_dma_slot){.range = sio_from_le64(rep->range),
				     .id = s->segment->id,
				     .remote = s->remote,
				     .bar = s->bar,
				     .resumes = sio_session_resumes(q->o.lib->session),
				     .slot = sio_from_le32(rep->slot),
				     .first = s->bar ? sio_from_le64(rep->first) : 0,
				     .length = sio_from_le64(rep->length)};
	if (takes_place(q, ret, first))
		return sio_refuse(err, SCI_ERR_SEGMENT_NOT_CONNECTED,
				  "a segment of this transfer ended while it was being started");
	if (reaches(ret, s))
		return 0;
	detach(q, ret);
	return sio_fail(err, -EPROTO, "smartiod attached other bytes of a BAR than were asked for");
}

static int attach(struct sio_dma_queue *q, struct sio_dma_slot *ret, const struct sio_dma_side *s,
		  uint64_t first, struct sio_err *err)
{
	struct sio_msg_queue_attach req = {.queue = sio_to_le32(q->o.id),
					   .segment = sio_to_le32(s->segment->id),
					   .remote = sio_to_le32(s->remote),
					   .offset = sio_to_le64(s->bar ? s->offset : 0),
					   .bytes = sio_to_le64(s->bar ? s->bytes : 0)};
	struct sio_rep_queue_attach rep;
	int rc = sio_ask(q->o.lib, SIO_MSG_QUEUE_ATTACH, &req, sizeof(req), &rep, sizeof(rep), err);

	if (!rc)
		return note_slot(q, ret, s, first, &rep, err);
	if (rc == -EPERM)
		return SCI_ERR_SEGMENT_NOT_PREPARED;
	/* ENOENT: it was removed, and we have not heard of that yet. */
	return rc == -ENOTCONN || rc == -ECONNRESET || (s->remote && rc == -ENOENT)
		       ? (int)SCI_ERR_SEGMENT_NOT_CONNECTED
		       : rc;
}

int sio_dma_place(struct sio_dma_queue *q, const struct sio_dma_side *side, uint64_t first,
		  uint32_t *ret_slot, uint64_t *ret_offset, struct sio_err *err)
{
	struct sio_dma_slot *s;
	int rc;

	forget_ended(q);
	s = find_slot(q, side);
	if (!s) {
		s = free_slot(q, first);
		if (!s)
			return sio_fail_exhausted(err, -ENOSPC, SIO_OUT_OF_DMA_SLOTS,
						  "one transfer can be between %d segments at most",
						  SIO_DMA_SLOTS);
		rc = attach(q, s, side, first, err);
		if (rc)
			return rc;
	}
	s->used = ++q->uses;
	*ret_slot = s->slot;
	*ret_offset = side->offset - s->first;
	return 0;
}
