/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pair of a queue: its memory, which is placed by access hints and used again for the
 * next pair, and the requests to the manager. A queue that outlives its pairs has one after the
 * other.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "multi.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "smartio/uapi.h"

#define SQ_HINTS (SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE)
#define CQ_HINTS (SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ)
#define JOIN_TRIES 1000u /* of shared pairs that end before they are joined */
/* While programs that ask at the same time have a vector each, all but one for a moment. */
#define VECTOR_TRIES 100u

/* ---- memory ---- */
void sio_nvme_put_spare(struct smartio_nvme *n, struct sio_nvme_mem *mem)
{
	if (mem->other) { /* of a device that others may want */
		sio_nvme_mem_done(mem);
		free(mem);
		return;
	}
	mem->next = n->spare;
	n->spare = mem;
}

/* Memory of a queue, by what makes it fit for one. */
struct kind {
	size_t size;
	unsigned hints, flags;
};

static struct sio_nvme_mem **find_spare(struct smartio_nvme *n, const struct kind *k)
{
	struct sio_nvme_mem **at = &n->spare;

	while (*at &&
	       ((*at)->size < k->size || (*at)->hints != k->hints || (*at)->flags != k->flags))
		at = &(*at)->next;
	return at;
}

static int make_memory(struct smartio_nvme *n, const struct kind *k, struct sio_nvme_mem **ret)
{
	struct sio_nvme_mem *mem = calloc(1, sizeof(*mem));
	int rc;

	if (!mem)
		return sio_nvme_no_memory("a queue");
	rc = sio_nvme_mem_device(&n->d, k->size, k->hints, k->flags, mem);
	if (rc) {
		free(mem);
		return rc;
	}
	*ret = mem;
	return 0;
}

static int get_memory(struct smartio_nvme *n, size_t size, unsigned hints, unsigned flags,
		      struct sio_nvme_mem **ret)
{
	const struct kind k = {size, hints, flags};
	struct sio_nvme_mem **at = find_spare(n, &k), *mem = *at;

	if (!mem)
		return make_memory(n, &k, ret);
	*at = mem->next;
	*ret = mem;
	return 0;
}

/*
 * Of a device that this queue has for itself. Of another drive the lender would refuse it, too,
 * but only when the drive had been reset for us: its memory is what the owner of its registers
 * makes of it, who may switch it off, or give it to another borrower, while this drive fetches
 * commands there.
 */
static int get_device(struct smartio_nvme *n, const char *device, size_t size,
		      struct sio_nvme_mem **ret)
{
	struct sio_nvme_mem *mem;
	int rc;

	if (sio_nvme_is_drive(device))
		return sio_nvme_fail(-EOPNOTSUPP,
				     "%s is a drive, whose memory is its owner's, who may switch "
				     "it off under a queue of %s: a memory device or an "
				     "accelerator is right, or memory of %s itself",
				     device, n->d.name, n->d.name);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return sio_nvme_no_memory("a queue");
	rc = sio_nvme_mem_bar(&n->d, device, SIO_MEMDEV_BAR_RAM, SCI_FLAG_EXCLUSIVE, 0, size, mem);
	if (rc) {
		free(mem);
		return rc;
	}
	*ret = mem;
	return 0;
}

static unsigned placement_flags(uint32_t placement)
{
	if (placement == SMARTIO_NVME_PLACE_DEVICE)
		return SCI_FLAG_DEVICE_SIDE_ONLY;
	return placement == SMARTIO_NVME_PLACE_LOCAL ? SCI_FLAG_LOCAL_ONLY : 0;
}

static size_t pages(size_t bytes)
{
	return (bytes + SIO_NVME_PAGE - 1) & ~(size_t)(SIO_NVME_PAGE - 1);
}

/* Bytes of the submission queue, and of the lists of commands' data pages, which lie behind it. */
static size_t sq_bytes(const struct smartio_nvme_queue *q)
{
	return pages((size_t)q->entries * 64);
}

/* Entries of the completion queue, which may be for more submission queues than this one's. */
static uint32_t cq_entries(const struct smartio_nvme_queue *q)
{
	return q->multi ? q->multi->entries : q->entries;
}

static size_t list_bytes(const struct smartio_nvme_queue *q)
{
	return pages((size_t)q->depth << sio_nvme_prp_shift(q->max_transfer));
}

/*
 * The lender may not answer for long, and others have use for the lock meanwhile. They may close
 * the queue; the leg is neither opened nor closed by anybody but the thread that works aside.
 */
static int add_spare(struct smartio_nvme *n, struct smartio_nvme *leg, const struct kind *k,
		     bool aside)
{
	struct sio_nvme_mem *mem = NULL;
	int rc;

	if (*find_spare(leg, k))
		return 0;
	if (aside)
		sio_nvme_unlock(n);
	rc = make_memory(leg, k, &mem);
	if (aside)
		sio_nvme_lock(n);
	if (rc == 0)
		sio_nvme_put_spare(leg, mem);
	return rc;
}

int sio_nvme_pair_prepare(struct smartio_nvme_queue *q, struct smartio_nvme *leg, bool aside)
{
	const struct kind sq = {sq_bytes(q) + list_bytes(q), SQ_HINTS,
				placement_flags(q->options.sq_placement)};
	const struct kind cq = {(size_t)q->entries * 16, CQ_HINTS,
				placement_flags(q->options.cq_placement)};
	struct smartio_nvme *n = q->n;
	int rc;

	if (q->options.flags & SMARTIO_NVME_SHARED)
		return 0;
	rc = add_spare(n, leg, &sq, aside);
	return rc ? rc : add_spare(n, leg, &cq, aside);
}

static bool in_cmb(const struct smartio_nvme_queue *q)
{
	return q->options.sq_placement == SMARTIO_NVME_PLACE_CMB;
}

static void use_sq(struct smartio_nvme_queue *q, volatile uint8_t *at)
{
	q->pushes = q->sq_mem && q->sq_mem->other;
	q->sq = q->sqe = q->rung = at;
	q->sq_end = at + (size_t)q->entries * 64;
}

static void unmap_cmb(struct smartio_nvme_queue *q)
{
	sci_error_t err;

	if (q->cmb_map)
		SCIUnmapSegment(q->cmb_map, 0, &err);
	if (q->cmb)
		SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(q->cmb, 0, &err));
	q->cmb_map = NULL;
	q->cmb = NULL;
}

/* The pages that the manager has given: the lender lets us have them, and no others. */
static int map_cmb(struct smartio_nvme_queue *q, const struct sio_nvme_rep_pair *pair)
{
	const size_t offset = (size_t)(pair->cmb - 1) * SIO_NVME_PAGE;
	struct sio_nvme_device *d = &q->leg->d;
	volatile uint8_t *at;
	sci_error_t err;

	SCIConnectDeviceSegment(d->handle, &q->cmb, SIO_NVME_CMB_BAR, SCI_MEMTYPE_BAR, NULL, NULL,
				0, &err);
	if (err != SCI_ERR_OK) {
		q->cmb = NULL;
		return sio_nvme_fail_sci(err, "%s: cannot connect BAR %u", d->name,
					 SIO_NVME_CMB_BAR);
	}
	at = SCIMapRemoteSegment(q->cmb, &q->cmb_map, offset, sq_bytes(q), NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		q->cmb_map = NULL;
		return sio_nvme_fail_sci(err, "%s: cannot map %zu bytes at %#zx of BAR %u", d->name,
					 sq_bytes(q), offset, SIO_NVME_CMB_BAR);
	}
	use_sq(q, at);
	return 0;
}

static int use_cq(struct smartio_nvme_queue *q)
{
	/* Not what was asked for counts: hints go elsewhere when this host's memory is used up. */
	const bool flushes = SCIGetRemoteSegmentNodeId(q->cq_mem->remote) != q->leg->d.node;

	sio_nvme_mem_clear(q->cq_mem, (size_t)cq_entries(q) * 16);
	if (q->multi) {
		sio_nvme_multi_use(q, q->cq_mem->at, flushes);
		return 0;
	}
	q->flushes = flushes;
	q->looks = q->looks || flushes;
	if (flushes)
		return sio_nvme_far_use(q);
	q->cq = q->cqe = q->cq_mem->at;
	q->cq_end = q->cq + (size_t)q->entries * 16;
	return 0;
}

static int get_queue_memory(struct smartio_nvme_queue *q)
{
	const struct smartio_nvme_queue_options *o = &q->options;
	const size_t sq = sq_bytes(q), lists = list_bytes(q);
	int rc;

	q->list_shift = sio_nvme_prp_shift(q->max_transfer);
	if (in_cmb(q))
		rc = get_memory(q->leg, lists, SQ_HINTS, 0, &q->sq_mem);
	else if (o->sq_device)
		rc = get_device(q->leg, o->sq_device, sq + lists, &q->sq_mem);
	else
		rc = get_memory(q->leg, sq + lists, SQ_HINTS, placement_flags(o->sq_placement),
				&q->sq_mem);
	if (rc == 0 && !o->completes_in)
		rc = get_memory(q->leg, (size_t)cq_entries(q) * 16, CQ_HINTS,
				placement_flags(o->cq_placement), &q->cq_mem);
	if (rc)
		return rc;
	use_sq(q, q->sq_mem->at);
	if (q->cq_mem)
		rc = use_cq(q);
	if (rc)
		return rc;
	if (q->multi)
		sio_nvme_multi_blind(q);
	q->list = q->sq_mem->at + (in_cmb(q) ? 0 : sq);
	q->list_ioaddr = q->sq_mem->ioaddr + (in_cmb(q) ? 0 : sq);
	/* Before the manager is asked to create it: pairs with the drive's first completion. */
	sio_to_fabric_barrier();
	return 0;
}

/* For programs that list the owners of queue pairs. */
static void put_program(struct sio_nvme_req *req)
{
	strncpy(req->create.program, program_invocation_short_name, SIO_NVME_PROGRAM - 1);
}

/* Of a pair that is to be shared: what others need to know of it. */
static void put_share(const struct sio_nvme_share *s, bool raises, struct sio_nvme_req *req)
{
	req->create.sq = s->ioaddr + (uint64_t)(s->sq - (volatile uint8_t *)s->head);
	req->create.cq = s->ioaddr + (uint64_t)(s->cq - (volatile uint8_t *)s->head);
	req->create.sq_entries = req->create.cq_entries = s->entries;
	req->create.share = s->id;
	req->create.share_notice = s->number;
	req->create.share_depth = s->depth;
	req->create.share_most = s->most;
	req->create.share_over = s->leg->d.adapter;
	req->create.share_raises = raises;
}

static bool is_valid_reply(const struct smartio_nvme_queue *q, const struct sio_nvme_rep_pair *pair)
{
	if (pair->qid == 0 || pair->qid > q->leg->n_pairs)
		return false;
	if (!q->share)
		return pair->share == 0 && (pair->cmb != 0) == in_cmb(q);
	return pair->share && pair->most >= 2 && pair->most <= SIO_NVME_SHARERS &&
	       pair->place < pair->most && pair->depth >= q->depth &&
	       pair->depth <= SIO_NVME_SHARED_DEPTH;
}

/*
 * The answer to request @sequence did not come. It is taken back at once, so that no pair stays
 * taken of a client that asks for no other; and once more, with an answer, before its memory is
 * used again: sio_nvme_ask_delete(). Who has joined the pair of a shared segment may ring for it
 * until its lock is closed.
 */
static void take_back(struct smartio_nvme_queue *q, uint64_t sequence)
{
	q->unanswered = sequence;
	if (sio_nvme_leg_open(q->leg) && !(q->share && sio_nvme_share_shut(q->share)))
		sio_nvme_say_cancel(q->leg, sequence);
}

/* @ret_unsure: the drive may have the queues although we do not know of them. */
static int ask_create(struct smartio_nvme_queue *q, const struct sio_nvme_turn *turn,
		      struct sio_nvme_rep_pair *ret, bool *ret_unsure)
{
	const struct smartio_nvme_queue *of = q->options.completes_in;
	struct smartio_nvme *n = q->leg;
	struct sio_nvme_req req = {.op = SIO_NVME_OP_CREATE,
				   .vector = q->vector,
				   .create = {.sq = in_cmb(q) ? 0 : q->sq_mem->ioaddr,
					      .cmb = in_cmb(q),
					      .cq = q->cq_mem ? q->cq_mem->ioaddr : 0,
					      .sq_entries = q->entries,
					      .cq_entries = q->cq_mem ? cq_entries(q) : 0,
					      .notify = turn->notice ? 1 : 0,
					      .notice = turn->notice ? turn->number : 0,
					      .formats = n->formats,
					      .old_qid = q->old_id,
					      .old_key = q->old_key,
					      .cq_of = of ? of->id : 0,
					      .cq_key = of ? of->key : 0}};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	int rc;

	*ret_unsure = false;
	q->unanswered = 0;
	if (!rep)
		return sio_nvme_no_memory("a reply");
	put_program(&req);
	if (q->share)
		put_share(q->share, q->options.flags & SMARTIO_NVME_INTERRUPT, &req);
	rep->h.error = 0;
	rc = sio_nvme_ask(n, &req, rep, ret_unsure);
	if (rc == -ENXIO && q->options.sq_device)
		rc = sio_nvme_fail(-ENODEV,
				   "%s, where the submission queue of %s was to lie, is gone, or "
				   "its pages were taken away",
				   q->options.sq_device, n->d.name);
	if (rc == 0 && !is_valid_reply(q, &rep->create))
		rc = sio_nvme_fail(-EPROTO, "the manager of %s gave queue pair %u of %u", n->d.name,
				   rep->create.qid, n->n_pairs);
	else if (rc == 0 || (rep->h.error && rep->h.error != ENODEV))
		*ret_unsure = false;
	if (*ret_unsure)
		take_back(q, req.sequence);
	/* The last pair is deleted: what it still brings must not overwrite what is read again. */
	if (rc == 0 && q->life && q->life->old_leg)
		sio_nvme_far_settle(q->life->old_doorbells);
	if (rc == 0) {
		q->id = rep->create.qid;
		q->key = rep->create.key;
		q->sequence = rep->h.sequence;
		q->expected = sio_nvme_expected(q->id, true);
		/*
		 * The generation in which the manager serves; if the device has another one now,
		 * the queues are gone.
		 */
		q->generation = n->meta.generation;
		*ret = rep->create;
	}
	free(rep);
	return rc;
}

/* Until there is one, or it is no use to wait. */
static int wait_create(struct smartio_nvme_queue *q, struct sio_nvme_rep_pair *ret,
		       bool *ret_unsure)
{
	struct sio_nvme_turn turn;
	int rc = sio_nvme_turn_open(q->n, q->options.wait_ms, &turn);

	if (rc)
		return rc;
	do {
		rc = ask_create(q, &turn, ret, ret_unsure);
		if (rc != -ENOSPC || smartio_nvme_exhausted() != SIO_OUT_OF_QUEUE_PAIRS ||
		    !turn.notice)
			break;
		rc = sio_nvme_turn_wait(q, &turn);
		if (rc == 0) /* once more, so that it is said who has them now */
			sio_nvme_turn_close(&turn);
	} while (rc >= 0);
	sio_nvme_turn_close(&turn);
	return rc;
}

/*
 * Does it end for all that share it when this program leaves it? One whose lock is shut has ended
 * though its manager may not know: others would be given a place in it again and again.
 */
static bool ends(const struct smartio_nvme_queue *q)
{
	const struct sio_nvme_share *s = q->share;

	/* pairs with sio_nvme_share_shut() */
	return s->maker || (s->head && sio_read32_acquire(&s->head->lock) == SIO_NVME_SHUT) ||
	       (s->rang && (s->ended || q->error || sio_nvme_in_flight(q)));
}

static void put_delete(const struct smartio_nvme_queue *q, bool ends, struct sio_nvme_req *req)
{
	req->op = SIO_NVME_OP_DELETE;
	req->del.qid = q->id;
	req->del.key = q->key;
	if (!q->share)
		return;
	req->del.place = q->share->place;
	req->del.sequence = (uint32_t)q->sequence;
	req->del.flags = ends ? SIO_NVME_DEL_ENDS : 0;
}

int sio_nvme_ask_delete(struct smartio_nvme_queue *q)
{
	const bool over = q->share && ends(q);
	struct sio_nvme_req req = {.op = SIO_NVME_OP_CANCEL, .cancel = {.sequence = q->unanswered}};
	struct sio_nvme_rep rep; /* what is to be freed is not kept for want of memory */
	int rc = over ? sio_nvme_share_shut_wait(q->share) : 0;

	if (rc)
		return rc;
	if (!q->unanswered)
		put_delete(q, over, &req);
	rc = sio_nvme_ask(q->leg, &req, &rep, NULL);
	/* It is deleted, by us or by whoever shared it: its data must not come later. */
	if (rc == 0 || rc == -EACCES)
		sio_nvme_far_settle(q->doorbells);
	/* Another one of those that shared it has had it deleted. */
	return q->share && rc == -EACCES ? 0 : rc;
}

/*
 * The drive was reset since, and whoever did that does not know of the lease; or the path was lost
 * and is back, and its borrow is another one, which may have the lease as well.
 */
static int check_lease(struct smartio_nvme_queue *q, bool *ret_unsure)
{
	char why[SIO_NVME_TEXT];
	int rc = q->lease ? sio_nvme_lease_join(q->lease, q->leg) : 0;

	if (rc == 0)
		return 0;
	strncpy(why, smartio_nvme_error(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	*ret_unsure = sio_nvme_ask_delete(q) != 0;
	return sio_nvme_fail(rc, "%s", why);
}

/* The drive has the queues; without doorbells, or its own memory, they are of no use. */
static int take_bars(struct smartio_nvme_queue *q, const struct sio_nvme_rep_pair *pair,
		     bool *ret_unsure)
{
	int rc = in_cmb(q) ? map_cmb(q, pair) : 0;
	char why[SIO_NVME_TEXT];

	if (rc == 0)
		rc = sio_nvme_doorbells_take(q);
	if (rc == 0 && !q->error && (q->flushes || (q->multi && !q->options.completes_in)))
		rc = sio_nvme_far_begin(q);
	if (rc == 0)
		return 0;
	strncpy(why, smartio_nvme_error(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	*ret_unsure = sio_nvme_ask_delete(q) != 0;
	return sio_nvme_fail(rc, "%s", why);
}

/* The drive has the pair: what else is needed to use it. */
static int take_up(struct smartio_nvme_queue *q, const struct sio_nvme_rep_pair *pair,
		   bool *ret_unsure)
{
	int rc = check_lease(q, ret_unsure);

	return rc ? rc : take_bars(q, pair, ret_unsure);
}

/* ---- of a pair that programs of this host share ---- */
static int join(struct smartio_nvme_queue *q, bool *ret_unsure)
{
	struct sio_nvme_rep_pair pair;
	char why[SIO_NVME_TEXT];
	int rc = sio_nvme_share_new(q);

	if (rc == 0)
		rc = wait_create(q, &pair, ret_unsure);
	if (rc)
		return rc;
	rc = sio_nvme_share_take_place(q, &pair);
	if (rc == 0) {
		q->expected = sio_nvme_expected(q->id, sio_nvme_share_phase(q->share));
		return take_up(q, &pair, ret_unsure);
	}
	snprintf(why, sizeof(why), "%s", smartio_nvme_error());
	*ret_unsure = sio_nvme_ask_delete(q) != 0;
	return sio_nvme_fail(rc, "%s", why);
}

/* After @i times that this was the end of it: is there another try? */
static bool may_join_again(const struct smartio_nvme_queue *q, int rc, unsigned i)
{
	const bool lacks_vector = q->options.flags & SMARTIO_NVME_INTERRUPT && !q->vector;

	return (rc == -EAGAIN && i < JOIN_TRIES) ||
	       (rc == -EBUSY && lacks_vector && i < VECTOR_TRIES);
}

/* The manager is notified that nobody rings for the last one any more: so that is made sure of. */
static int open_shared(struct smartio_nvme_queue *q, bool *ret_unsure)
{
	struct sio_nvme_share *old = q->life->old_leg ? q->life->old_share : NULL;
	unsigned pauses = 0;
	int rc;

	if (old && sio_nvme_share_shut(old))
		return sio_nvme_fail(
			-EAGAIN,
			"a program that shared queue pair %u of %s was stopped while it used it",
			q->old_id, q->n->d.name);
	rc = get_memory(q->leg, list_bytes(q), SQ_HINTS, 0, &q->sq_mem);
	if (rc == 0)
		rc = join(q, ret_unsure);
	for (unsigned i = 0; !*ret_unsure && may_join_again(q, rc, i); i++) {
		sio_nvme_interrupt_close(q);
		sio_nvme_share_close(q->share);
		q->share = NULL;
		sio_nvme_pause(&pauses);
		rc = join(q, ret_unsure);
	}
	return rc;
}

int sio_nvme_pair_open(struct smartio_nvme_queue *q, bool *ret_unsure)
{
	struct sio_nvme_rep_pair pair;
	int rc = q->lease ? sio_nvme_lease_join(q->lease, q->leg) : 0;

	if (rc)
		return rc;
	if (q->options.flags & SMARTIO_NVME_SHARED)
		return open_shared(q, ret_unsure);
	rc = get_queue_memory(q);
	if (rc == 0 && q->options.flags & SMARTIO_NVME_INTERRUPT)
		rc = sio_nvme_interrupt_open(q, NULL);
	if (rc == 0)
		rc = wait_create(q, &pair, ret_unsure);
	return rc ? rc : take_up(q, &pair, ret_unsure);
}

void sio_nvme_pair_close(struct smartio_nvme_queue *q)
{
	unmap_cmb(q);
	if (q->sq_mem)
		sio_nvme_put_spare(q->leg, q->sq_mem);
	if (q->cq_mem)
		sio_nvme_put_spare(q->leg, q->cq_mem);
	sio_nvme_far_end(q);
	sio_nvme_doorbells_put(q->doorbells);
	sio_nvme_interrupt_close(q);
	sio_nvme_share_close(q->share);
	q->share = NULL;
	q->sq_mem = q->cq_mem = NULL;
	q->doorbells = NULL;
}
