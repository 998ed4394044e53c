/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues: opened with all that their options ask for, and closed. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hybrid.h"
#include "multi.h"
#include "options.h"
#include "smartio/ext.h"

#define DEPTH 32u
#define FLAGS                                                                                      \
	(SMARTIO_NVME_INTERRUPT | SMARTIO_NVME_SURVIVE | SMARTIO_NVME_ALONE |                      \
	 SMARTIO_NVME_SHARED | SMARTIO_NVME_HYBRID)
#define DRAIN_MS 30000u /* for what is in flight when a queue is closed */

/* What is the queue's own; its device memory goes to the spare list. */
static void free_queue(struct smartio_nvme_queue *q)
{
	sio_nvme_survivor_free(q);
	free(q->limit);
	free(q->hybrid);
	sio_nvme_multi_leave(q);
	sio_nvme_pair_close(q);
	free(q->held);
	free(q->near);
	free(q->slot);
	free(q);
}

/* ---- open ---- */
static int choose_namespace(struct smartio_nvme_queue *q, uint32_t id)
{
	struct smartio_nvme *n = q->n;

	q->nsid = id ? id : 1;
	for (uint32_t i = 0; i < n->n_ns; i++) {
		if (n->ns[i].id != q->nsid)
			continue;
		if (n->ns[i].block_size < 512 || n->ns[i].block_size > 65536 ||
		    n->ns[i].block_size & (n->ns[i].block_size - 1))
			return sio_nvme_fail(-ENOTSUP,
					     "namespace %u of %s has a format that this "
					     "driver does not know",
					     q->nsid, n->d.name);
		q->blocks = n->ns[i].blocks;
		q->block_size = n->ns[i].block_size;
		q->block_shift = (uint32_t)__builtin_ctz(n->ns[i].block_size);
		return 0;
	}
	return sio_nvme_fail(-EINVAL, "%s has no namespace %u", n->d.name, q->nsid);
}

/* The depth, of a completion queue for several and of those that complete there. */
static int choose_cq_depth(struct smartio_nvme_queue *q, const struct smartio_nvme_queue_options *o)
{
	const uint32_t most = q->n->meta.max_entries - 1;
	const uint32_t room = q->multi ? q->multi->room : o->cq_depth;

	if (!q->multi && !o->cq_depth)
		return 0;
	if (!o->depth && q->depth > room && room)
		q->depth = room;
	if (!q->multi && (o->cq_depth > most || o->cq_depth < q->depth))
		return sio_nvme_fail(-EINVAL,
				     "cq_depth %u: a completion queue of %s for several, of which "
				     "the first has depth %u, is for %u to %u commands",
				     o->cq_depth, q->n->d.name, q->depth, q->depth, most);
	if (q->depth > room)
		return sio_nvme_fail(-ENOSPC,
				     "depth %u: the completion queue of queue pair %u has room for "
				     "%u commands more; opened with a larger cq_depth it has more",
				     q->depth, o->completes_in->id, room);
	return q->multi ? 0 : sio_nvme_multi_make(q);
}

static int choose_sizes(struct smartio_nvme_queue *q, const struct smartio_nvme_queue_options *o)
{
	const struct sio_nvme_meta *meta = &q->n->meta;
	uint32_t most = meta->max_entries - 1;
	int rc;

	q->depth = o->depth ? o->depth : most < DEPTH ? most : DEPTH;
	/* One entry stays empty; 65,535 is no command id that may be used (section 4.2). */
	if (most > 65534)
		most = 65534;
	if (q->depth > most)
		return sio_nvme_fail(-EINVAL, "depth %u: a queue of %s takes 1 to %u commands",
				     q->depth, q->n->d.name, most);
	if (o->flags & SMARTIO_NVME_SHARED && most > 2 * SIO_NVME_SHARED_DEPTH)
		most = 2 * SIO_NVME_SHARED_DEPTH;
	if (o->flags & SMARTIO_NVME_SHARED && q->depth > most / 2)
		return sio_nvme_fail(-EINVAL,
				     "depth %u: a program that shares a queue of %s has 1 to %u "
				     "commands in flight",
				     q->depth, q->n->d.name, most / 2);
	rc = choose_cq_depth(q, o);
	if (rc)
		return rc;
	q->entries = q->depth + 1;
	q->max_transfer = o->max_transfer ? o->max_transfer : meta->max_transfer;
	if (q->max_transfer > meta->max_transfer || q->max_transfer < 1u << q->block_shift)
		return sio_nvme_fail(-EINVAL, "a largest transfer of %u bytes: %s takes %u to %u",
				     q->max_transfer, q->n->d.name, 1u << q->block_shift,
				     meta->max_transfer);
	q->max_blocks = q->max_transfer >> q->block_shift;
	if (q->max_blocks > 65536)
		q->max_blocks = 65536;
	if (q->lease)
		q->blocks = q->first + q->lease->info.blocks;
	if (q->max_blocks > q->blocks - q->first)
		q->max_blocks = (uint32_t)(q->blocks - q->first);
	/* What is to be sent again is noted, which submits of one page have no instructions for. */
	if (!q->lease && !(o->flags & SMARTIO_NVME_SURVIVE)) {
		q->plain_blocks = SIO_NVME_PAGE >> q->block_shift;
		if (q->plain_blocks > q->max_blocks)
			q->plain_blocks = q->max_blocks;
		q->plain_end = q->blocks - q->plain_blocks + 1;
	}
	q->max_transfer = (q->max_transfer + SIO_NVME_PAGE - 1) & ~(SIO_NVME_PAGE - 1);
	return 0;
}

/* Of completion queues for several submission queues. */
static int check_multi(const struct smartio_nvme_queue_options *o)
{
	if (!o->cq_depth && !o->completes_in)
		return 0;
	if (o->cq_depth && o->completes_in)
		return sio_nvme_fail(-EINVAL, "cq_depth is for the queue whose completion queue "
					      "it is, not for those that complete there");
	if (o->flags & SMARTIO_NVME_SURVIVE)
		return sio_nvme_fail(-EINVAL,
				     "a queue that survives gets another pair by itself, and one "
				     "that is shared ends with any program: submission queues of "
				     "one completion queue are opened without these flags (%#x)",
				     SMARTIO_NVME_SURVIVE | SMARTIO_NVME_SHARED);
	if (o->completes_in && (o->flags & SMARTIO_NVME_INTERRUPT || o->cq_placement))
		return sio_nvme_fail(-EINVAL,
				     "interrupt and placement of a completion queue are those of "
				     "queue pair %u, which has it: they are chosen when that is "
				     "opened",
				     o->completes_in->id);
	return 0;
}

static int check_options(const struct smartio_nvme_queue_options *o)
{
	if (o->sq_device && o->sq_placement)
		return sio_nvme_fail(
			-EINVAL, "with a submission queue in %s no other placement can be chosen",
			o->sq_device);
	if (o->sq_placement > SMARTIO_NVME_PLACE_CMB || o->cq_placement > SMARTIO_NVME_PLACE_LOCAL)
		return sio_nvme_fail(-EINVAL,
				     "placement %u: there are 0 (auto), 1 (device), 2 (local), and "
				     "3 (the drive's own memory), of submission queues alone",
				     o->sq_placement > SMARTIO_NVME_PLACE_CMB ? o->sq_placement
									      : o->cq_placement);
	if (o->flags & ~FLAGS)
		return sio_nvme_fail(-EINVAL,
				     "flags %#x of a queue; only %#x (interrupt, survive, alone, "
				     "shared, hybrid) are allowed",
				     o->flags, FLAGS);
	if (o->reserved)
		return sio_nvme_fail(-EINVAL, "a reserved option of a queue is not 0");
	if (o->flags & SMARTIO_NVME_HYBRID && !(o->flags & SMARTIO_NVME_INTERRUPT))
		return sio_nvme_fail(-EINVAL,
				     "a hybrid queue polls, then sleeps until its interrupt: "
				     "hybrid is for queues with one (flag %#x)",
				     SMARTIO_NVME_INTERRUPT);
	if (o->poll_us && !(o->flags & SMARTIO_NVME_HYBRID))
		return sio_nvme_fail(-EINVAL, "poll_us is for hybrid queues (flag %#x)",
				     SMARTIO_NVME_HYBRID);
	if ((o->flags & SMARTIO_NVME_ALONE || o->survive_ms) && !(o->flags & SMARTIO_NVME_SURVIVE))
		return sio_nvme_fail(-EINVAL,
				     "alone and survive_ms are for queues that survive (flag %#x)",
				     SMARTIO_NVME_SURVIVE);
	if (o->flags & SMARTIO_NVME_SHARED && !(o->flags & SMARTIO_NVME_SURVIVE))
		return sio_nvme_fail(-EINVAL,
				     "a shared queue pair ends with any program that shares it: "
				     "shared is for queues that survive (flag %#x)",
				     SMARTIO_NVME_SURVIVE);
	if (o->flags & SMARTIO_NVME_SHARED && (o->sq_placement || o->cq_placement))
		return sio_nvme_fail(-EINVAL, "shared queue pairs lie in this host's memory: a "
					      "placement cannot be chosen");
	if (o->flags & SMARTIO_NVME_SURVIVE &&
	    (o->sq_device || o->sq_placement == SMARTIO_NVME_PLACE_CMB))
		return sio_nvme_fail(-EINVAL, "a queue in %s cannot survive a reset",
				     o->sq_device ? o->sq_device : "the drive's own memory");
	return check_multi(o);
}

static int make_hybrid(struct smartio_nvme_queue *q)
{
	q->hybrid = malloc(sizeof(*q->hybrid));
	if (!q->hybrid)
		return sio_nvme_no_memory("a hybrid queue");
	sio_nvme_hybrid_start(q->hybrid, q->options.poll_us * 1000ull);
	return 0;
}

static int make_slots(struct smartio_nvme_queue *q)
{
	uint32_t slots = 1;

	/* More than the depth: so no command id is 65,535, which must not be used (section 4.2). */
	while (slots <= q->depth)
		slots *= 2;
	q->slot = calloc(slots, sizeof(*q->slot));
	if (!q->slot)
		return sio_nvme_no_memory("%u commands", q->depth);
	q->slot_mask = (slots - 1) * (uint32_t)sizeof(*q->slot);
	q->use = (uint16_t)slots;
	for (uint32_t i = q->depth; i-- > 0;) {
		q->slot[i].cid = htole16((uint16_t)i);
		q->slot[i].nsid = htole32(q->nsid);
		q->slot[i].next = q->free;
		q->free = &q->slot[i];
	}
	return 0;
}

/* What the queue may use; of the lease, if it has one. */
static int choose_blocks(struct smartio_nvme_queue *q, const struct smartio_nvme_queue_options *o)
{
	const struct smartio_nvme_lease *lease = o->lease;

	if (!lease)
		return choose_namespace(q, o->namespace_id);
	if (lease->n != q->n)
		return sio_nvme_fail(-EINVAL, "the lease belongs to another smartio_nvme_open()");
	if (o->namespace_id && o->namespace_id != lease->info.nsid)
		return sio_nvme_fail(-EINVAL, "lease %s is of namespace %u, not %u",
				     lease->info.name, lease->info.nsid, o->namespace_id);
	q->lease = lease;
	q->first = lease->info.lba;
	return choose_namespace(q, lease->info.nsid);
}

static void go_over(struct smartio_nvme_queue *q, struct smartio_nvme *leg)
{
	q->leg = leg;
	q->over_second = leg != q->n;
	q->generation_word = leg->generation;
	q->generation = __atomic_load_n(q->generation_word, __ATOMIC_RELAXED);
}

/* What is left of the time to wait for a pair, since @start. */
static uint32_t time_left(uint32_t wait_ms, uint64_t start)
{
	const uint64_t gone_ms = (smartio_now_ns() - start) / 1000000;

	if (wait_ms == UINT32_MAX)
		return wait_ms;
	return gone_ms < wait_ms ? wait_ms - (uint32_t)gone_ms : 0;
}

/* The path that the queue does not go over, if it is open; NULL. */
static struct smartio_nvme *other_path(const struct smartio_nvme_queue *q)
{
	struct smartio_nvme *legs[] = {q->n, q->n->second};

	for (unsigned i = 0; i < 2; i++)
		if (legs[i] && legs[i] != q->leg && sio_nvme_leg_open(legs[i]))
			return legs[i];
	return NULL;
}

/*
 * There was no pair over this path, for all are @taken or it is lost: may there be one over the
 * other? Not for a queue that may not go there at all: sio_nvme_leg_for(); nor for one that
 * completes where another does. Pairs are joined over the adapter of their makers.
 */
static bool may_go_over(const struct smartio_nvme_queue *q, bool taken)
{
	const uint32_t flags = q->options.flags;

	if (flags & SMARTIO_NVME_SHARED && taken)
		return true;
	return !sio_nvme_leg_open(q->leg) &&
	       (flags & SMARTIO_NVME_SURVIVE || (q->options.lease && !q->options.completes_in));
}

/*
 * A path that is lost while the queue waits for a pair is not the only one: it waits over the
 * other, not longer in all.
 */
static int open_pair(struct smartio_nvme_queue *q, bool *ret_unsure)
{
	const uint64_t start = smartio_now_ns();
	const uint32_t wait_ms = q->options.wait_ms;
	int rc = sio_nvme_pair_open(q, ret_unsure);

	/* Over the other one, and if that is lost instead, back. */
	for (unsigned i = 0; i < 2 && rc && !*ret_unsure; i++) {
		struct smartio_nvme *other = other_path(q);

		if (!other || !may_go_over(q, rc == -ENOSPC && i == 0))
			break;
		sio_nvme_pair_close(q);
		go_over(q, other);
		q->options.wait_ms = time_left(wait_ms, start);
		rc = sio_nvme_pair_open(q, ret_unsure);
	}
	return rc;
}

static int open_queue(struct smartio_nvme_queue *q, const struct smartio_nvme_queue_options *o,
		      bool *ret_unsure)
{
	int rc = 0;

	/* One of two ways, while it is taken apart or made again. */
	if (q->leg->stage != SIO_NVME_LEG_OPEN)
		return sio_nvme_fail(-ENODEV, "the path to %s is lost", q->n->d.name);
	rc = choose_blocks(q, o);
	if (rc == 0 && o->completes_in) {
		rc = sio_nvme_multi_join(q, o->completes_in);
		if (rc == 0 && (sio_nvme_queue_stale(o->completes_in) || o->completes_in->error))
			rc = sio_nvme_queue_dead(o->completes_in);
	}
	if (rc == 0)
		rc = choose_sizes(q, o);
	if (rc == 0)
		rc = make_slots(q);
	if (rc == 0 && o->flags & SMARTIO_NVME_SURVIVE)
		rc = sio_nvme_survivor_make(q);
	if (rc == 0 && o->timeout_ms)
		rc = sio_nvme_limit_make(q);
	if (rc == 0 && o->flags & SMARTIO_NVME_HYBRID)
		rc = make_hybrid(q);
	q->looks = q->life || q->limit || q->multi;
	if (rc == 0)
		rc = open_pair(q, ret_unsure);
	if (rc == 0 && q->life)
		sio_nvme_survivor_begin(q);
	if (rc == 0 && q->multi)
		sio_nvme_multi_add(q);
	return rc;
}

void sio_nvme_keep(struct smartio_nvme_queue *q)
{
	q->next = q->n->kept;
	q->n->kept = q;
}

static bool is_of_before(const struct smartio_nvme_queue *q)
{
	return __atomic_load_n(q->generation_word, __ATOMIC_RELAXED) != q->generation;
}

static int still_busy(const struct smartio_nvme_queue *q)
{
	return sio_nvme_fail(-EBUSY,
			     "commands of queue pair %u, which is closed, did not come back: the "
			     "queues that complete in its completion queue must be closed first",
			     q->id);
}

/*
 * Under the lock. Deletes queues that no manager could delete before: commands in them may still be
 * executed, after those of the next queue, so that one is made only when they are gone. Without a
 * manager it is not made at all. Those of a borrow that was lost are not ours to delete. Return: 1:
 * once more, of what others completed in; 0; -EBUSY.
 */
static int delete_kept(struct smartio_nvme *n)
{
	bool again = false;

	for (struct smartio_nvme_queue *q = n->kept; q; q = q->next) {
		const bool open = sio_nvme_multi_is_open(q);
		int rc;

		/* Another thread may poll where it completes: nothing of it is changed here. */
		if (q->gone || !(q->key || q->unanswered) || !sio_nvme_leg_open(q->leg) ||
		    (open ? is_of_before(q) : sio_nvme_queue_stale(q)))
			continue;
		if (sio_nvme_multi_is_used(q)) {
			if (open && q->busy)
				return still_busy(q);
			again = again || !open;
			continue;
		}
		rc = sio_nvme_ask_delete(q);
		/* The manager may have got the first request, and answered too late. */
		if (rc && rc != -EACCES)
			return 0;
		q->gone = true;
		if (!open)
			q->error = -ECONNRESET;
	}
	return again;
}

/* Those of a completion queue for several go before the one that has it. */
int sio_nvme_queues_delete(struct smartio_nvme *n)
{
	int rc = delete_kept(n);

	sio_nvme_queues_forget(n, false);
	if (rc <= 0)
		return rc;
	rc = delete_kept(n);
	sio_nvme_queues_forget(n, false);
	return rc < 0 ? rc : 0;
}

static void is_opened(const struct smartio_nvme_queue *q)
{
	struct smartio_nvme_queue **at = &q->n->opening;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
}

int smartio_nvme_queue_open(struct smartio_nvme *n, const struct smartio_nvme_queue_options *o,
			    struct smartio_nvme_queue **ret)
{
	struct smartio_nvme_queue_options options;
	struct smartio_nvme_queue *q;
	bool unsure = false;
	int rc = sio_nvme_options(&options, sizeof(options), o);

	if (rc == 0)
		rc = check_options(&options);
	if (rc)
		return rc;
	q = aligned_alloc(64, (sizeof(*q) + 63) & ~(size_t)63);
	if (!q)
		return sio_nvme_no_memory("a queue");
	memset(q, 0, sizeof(*q));
	q->n = n;
	q->options = options;
	q->patience = SIO_NVME_PATIENT;
	sio_nvme_lock(n);
	rc = sio_nvme_queues_delete(n);
	go_over(q, sio_nvme_leg_for(n, q));
	q->next = n->opening;
	n->opening = q;
	if (rc == 0)
		rc = open_queue(q, &options, &unsure);
	is_opened(q);
	if (rc == 0) {
		q->next = n->queues;
		n->queues = q;
	} else if (unsure) {
		sio_nvme_keep(q);
	} else {
		free_queue(q);
	}
	sio_nvme_unlock(n);
	if (rc == 0)
		*ret = q;
	return rc;
}

/* ---- close ---- */
static void drain(struct smartio_nvme_queue *q)
{
	uint64_t deadline = sio_nvme_deadline(DRAIN_MS);
	struct smartio_nvme_completion c[16];
	unsigned pauses = 0;
	int n;

	if (q->multi) /* what comes of others meanwhile is theirs, at their next poll */
		q->multi->only = q;
	while (sio_nvme_in_flight(q) > 0 && (n = smartio_nvme_poll(q, c, 16)) >= 0) {
		if (n > 0)
			continue;
		if (smartio_now_ns() >= deadline)
			break;
		sio_nvme_pause(&pauses);
	}
	if (q->multi)
		q->multi->only = NULL;
}

static bool is_deleted(struct smartio_nvme_queue *q)
{
	return sio_nvme_queue_stale(q) || q->gone || sio_nvme_ask_delete(q) == 0 ||
	       sio_nvme_queue_stale(q);
}

static void end(struct smartio_nvme_queue *q)
{
	if (q->bounce)
		sio_nvme_buffer_end(q->bounce);
	sio_nvme_multi_settle(q);
	free_queue(q);
}

/* Nobody completes there any more: all that was closed before and kept for that goes. */
static void end_multi(struct smartio_nvme *n, const struct sio_nvme_multi *m, bool first)
{
	struct smartio_nvme_queue **at = &n->kept, *q;

	while ((q = *at)) {
		if (q->multi != m || (m->first == q) != first || sio_nvme_multi_is_used(q) ||
		    !is_deleted(q)) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		end(q);
	}
}

/*
 * The completion queue lives until the last of those that complete there is closed, and with it the
 * pair that has it.
 */
static void close_multi(struct smartio_nvme_queue *q)
{
	const struct sio_nvme_multi *m = q->multi;
	struct smartio_nvme *n = q->n;
	bool last;

	sio_nvme_multi_close(q, sio_nvme_in_flight(q) != 0);
	last = m->open == 0;
	if (!sio_nvme_multi_is_used(q) && is_deleted(q)) {
		last = last && m->holders > 1;
		end(q);
	} else {
		sio_nvme_keep(q);
	}
	if (!last)
		return;
	end_multi(n, m, false);
	end_multi(n, m, true);
}

void smartio_nvme_queue_close(struct smartio_nvme_queue *q)
{
	struct smartio_nvme_queue **at;
	struct smartio_nvme *n;

	if (!q || sio_nvme_is_childs(q->n))
		return;
	n = q->n;
	sio_nvme_survivor_end(q);
	drain(q);
	sio_nvme_lock(n);
	for (at = &n->queues; *at != q; at = &(*at)->next)
		;
	*at = q->next;
	if (q->multi)
		close_multi(q);
	else if (is_deleted(q))
		end(q);
	else
		sio_nvme_keep(q);
	sio_nvme_remains_end(n);
	sio_nvme_unlock(n);
}

void sio_nvme_queues_forget(struct smartio_nvme *n, bool all)
{
	struct smartio_nvme_queue **at = &n->kept, *q;

	while ((q = *at)) {
		/* What completes where another thread polls is left to that. */
		bool open = sio_nvme_multi_is_open(q), gone = !open && sio_nvme_queue_stale(q);

		if (!gone && !all) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		if (!gone) {
			/* The structures alone; the mappings end with SCITerminate(). */
			free(q->sq_mem);
			free(q->cq_mem);
			sio_nvme_share_forget(q->share);
			q->share = NULL;
			q->sq_mem = q->cq_mem = NULL;
		}
		free_queue(q);
	}
}

uint32_t smartio_nvme_queue_depth(const struct smartio_nvme_queue *q)
{
	return q->depth;
}

uint32_t smartio_nvme_queue_id(const struct smartio_nvme_queue *q)
{
	return q->id;
}
