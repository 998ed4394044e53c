/* SPDX-License-Identifier: BSD-2-Clause */
/* Make and end a queue pair. Its memory is placed by access hints and used again when it ends. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "options.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "smartio/uapi.h"

#define DEPTH 32u
#define DRAIN_MS 30000u /* for what is in flight when a queue is closed */
#define SQ_HINTS (SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE)
#define CQ_HINTS (SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ)

/* ---- memory ---- */
static void put_spare(struct smartio_nvme *n, struct sio_nvme_mem *mem)
{
	if (mem->other) { /* of a device that others may want */
		sio_nvme_mem_done(mem);
		free(mem);
		return;
	}
	mem->next = n->spare;
	n->spare = mem;
}

static int get_memory(struct smartio_nvme *n, size_t size, unsigned hints, unsigned flags,
		      struct sio_nvme_mem **ret)
{
	struct sio_nvme_mem **at, *mem;
	int rc;

	for (at = &n->spare; (mem = *at); at = &mem->next) {
		if (mem->size >= size && mem->hints == hints && mem->flags == flags) {
			*at = mem->next;
			*ret = mem;
			return 0;
		}
	}
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return sio_nvme_fail(-ENOMEM, "no memory for a queue");
	rc = sio_nvme_mem_device(&n->d, size, hints, flags, mem);
	if (rc) {
		free(mem);
		return rc;
	}
	*ret = mem;
	return 0;
}

/* Of a device that this queue has for itself. */
static int get_device(struct smartio_nvme *n, const char *device, size_t size,
		      struct sio_nvme_mem **ret)
{
	struct sio_nvme_mem *mem = calloc(1, sizeof(*mem));
	int rc;

	if (!mem)
		return sio_nvme_fail(-ENOMEM, "no memory for a queue");
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

/* The lists of commands' data pages lie behind the submission queue. */
static int get_queue_memory(struct smartio_nvme_queue *q,
			    const struct smartio_nvme_queue_options *o)
{
	size_t sq = pages((size_t)q->entries * 64), lists;
	int rc;

	q->list_shift = sio_nvme_prp_shift(q->max_transfer);
	lists = pages((size_t)q->depth << q->list_shift);
	if (o->sq_device)
		rc = get_device(q->n, o->sq_device, sq + lists, &q->sq_mem);
	else
		rc = get_memory(q->n, sq + lists, SQ_HINTS, placement_flags(o->sq_placement),
				&q->sq_mem);
	if (rc == 0)
		rc = get_memory(q->n, (size_t)q->entries * 16, CQ_HINTS,
				placement_flags(o->cq_placement), &q->cq_mem);
	if (rc)
		return rc;
	q->sq = q->sqe = q->rung = q->sq_mem->at;
	q->sq_end = q->sq + (size_t)q->entries * 64;
	q->cq = q->cqe = q->cq_mem->at;
	q->cq_end = q->cq + (size_t)q->entries * 16;
	/* Not what was asked for counts: hints go elsewhere when this host's memory is used up. */
	q->flushes = SCIGetRemoteSegmentNodeId(q->cq_mem->remote) != q->n->d.node;
	q->list = q->sq + sq;
	q->list_ioaddr = q->sq_mem->ioaddr + sq;
	sio_nvme_mem_clear(q->cq_mem, (size_t)q->entries * 16);
	sio_to_fabric_barrier();
	return 0;
}

/* What is the queue's own; its device memory goes to the spare list. */
static void free_queue(struct smartio_nvme_queue *q)
{
	if (q->sq_mem)
		put_spare(q->n, q->sq_mem);
	if (q->cq_mem)
		put_spare(q->n, q->cq_mem);
	sio_nvme_doorbells_put(q->doorbells);
	sio_nvme_interrupt_close(q);
	free(q->held);
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

static int choose_sizes(struct smartio_nvme_queue *q, const struct smartio_nvme_queue_options *o)
{
	const struct sio_nvme_meta *meta = &q->n->meta;
	uint32_t most = meta->max_entries - 1;

	q->depth = o->depth ? o->depth : most < DEPTH ? most : DEPTH;
	/* One entry stays empty; 65,535 is no command id that may be used (section 4.2). */
	if (most > 65534)
		most = 65534;
	if (q->depth > most)
		return sio_nvme_fail(-EINVAL, "depth %u: a queue of %s takes 1 to %u commands",
				     q->depth, q->n->d.name, most);
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
	q->plain_blocks = q->lease ? 0 : q->max_blocks;
	q->max_transfer = (uint32_t)pages(q->max_transfer);
	return 0;
}

static int check_options(const struct smartio_nvme_queue_options *o)
{
	if (o->sq_device && o->sq_placement)
		return sio_nvme_fail(-EINVAL, "a submission queue in %s has no other placement",
				     o->sq_device);
	if (o->sq_placement > SMARTIO_NVME_PLACE_LOCAL ||
	    o->cq_placement > SMARTIO_NVME_PLACE_LOCAL)
		return sio_nvme_fail(-EINVAL,
				     "placement %u: there are 0 (auto), 1 (device) and 2 (local)",
				     o->sq_placement > SMARTIO_NVME_PLACE_LOCAL ? o->sq_placement
										: o->cq_placement);
	if (o->reserved)
		return sio_nvme_fail(-EINVAL, "a reserved option of the queue is not 0");
	if (o->flags & ~SMARTIO_NVME_INTERRUPT)
		return sio_nvme_fail(-EINVAL, "flags %#x of a queue: there is %#x (interrupt)",
				     o->flags, SMARTIO_NVME_INTERRUPT);
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
		return sio_nvme_fail(-ENOMEM, "no memory for %u commands", q->depth);
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

/* For who is told whose queue pairs they are. */
static void put_program(struct sio_nvme_req *req)
{
	strncpy(req->create.program, program_invocation_short_name, SIO_NVME_PROGRAM - 1);
}

/* @ret_unsure: the drive may have the queues although we do not know of them. */
static int ask_create(struct smartio_nvme_queue *q, const struct sio_nvme_turn *turn,
		      bool *ret_unsure)
{
	struct smartio_nvme *n = q->n;
	struct sio_nvme_req req = {.op = SIO_NVME_OP_CREATE,
				   .vector = q->vector,
				   .create = {.sq = q->sq_mem->ioaddr,
					      .cq = q->cq_mem->ioaddr,
					      .sq_entries = q->entries,
					      .cq_entries = q->entries,
					      .notify = turn->notice ? 1 : 0,
					      .notice = turn->notice ? turn->number : 0,
					      .formats = n->formats}};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	int rc;

	*ret_unsure = false;
	if (!rep)
		return sio_nvme_fail(-ENOMEM, "no memory for a reply");
	put_program(&req);
	rep->h.error = 0;
	rc = sio_nvme_ask(n, &req, rep, ret_unsure);
	if (rc == 0 && (rep->create.qid == 0 || rep->create.qid > n->n_pairs))
		rc = sio_nvme_fail(-EPROTO, "the manager of %s gave queue pair %u of %u", n->d.name,
				   rep->create.qid, n->n_pairs);
	else if (rc == 0 || (rep->h.error && rep->h.error != ENODEV))
		*ret_unsure = false;
	if (rc == 0) {
		q->id = rep->create.qid;
		q->key = rep->create.key;
		q->expected = sio_nvme_expected(q->id, true);
		/* Those of the manager's time; another number now means that they are gone. */
		q->generation = n->meta.generation;
	}
	free(rep);
	return rc;
}

/* Until there is one, or it is no use to wait. */
static int wait_create(struct smartio_nvme_queue *q, uint32_t wait_ms, bool *ret_unsure)
{
	struct sio_nvme_turn turn;
	int rc = sio_nvme_turn_open(q->n, wait_ms, &turn);

	if (rc)
		return rc;
	do {
		rc = ask_create(q, &turn, ret_unsure);
		if (rc != -ENOSPC || smartio_nvme_exhausted() != SIO_OUT_OF_QUEUE_PAIRS ||
		    !turn.notice)
			break;
		rc = sio_nvme_turn_wait(q->n, &turn);
		if (rc == 0) /* once more, so that it is said who has them now */
			sio_nvme_turn_close(&turn);
	} while (rc >= 0);
	sio_nvme_turn_close(&turn);
	return rc;
}

static int ask_delete(struct smartio_nvme_queue *q)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_DELETE, .del = {.qid = q->id, .key = q->key}};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	int rc = -ENOMEM;

	if (rep)
		rc = sio_nvme_ask(q->n, &req, rep, NULL);
	free(rep);
	return rc;
}

/* What the queue may use; of the lease, if it has one. */
static int choose_blocks(struct smartio_nvme_queue *q, const struct smartio_nvme_queue_options *o)
{
	const struct smartio_nvme_lease *lease = o->lease;

	if (!lease)
		return choose_namespace(q, o->namespace_id);
	if (lease->n != q->n)
		return sio_nvme_fail(-EINVAL, "the lease is of another smartio_nvme_open()");
	if (o->namespace_id && o->namespace_id != lease->info.nsid)
		return sio_nvme_fail(-EINVAL, "lease %s is of namespace %u, not %u",
				     lease->info.name, lease->info.nsid, o->namespace_id);
	q->lease = lease;
	q->first = lease->info.lba;
	return choose_namespace(q, lease->info.nsid);
}

/* The drive was reset since, and whoever did that does not know of the lease. */
static int check_lease(struct smartio_nvme_queue *q, bool *ret_unsure)
{
	if (!q->lease || q->lease->generation == q->n->meta.generation)
		return 0;
	*ret_unsure = ask_delete(q) != 0;
	return sio_nvme_fail(-ESTALE, "the manager that gave lease %s of %s has ended",
			     q->lease->info.name, q->n->d.name);
}

/* The drive has the queues; without doorbells they are of no use. */
static int take_doorbells(struct smartio_nvme_queue *q, bool *ret_unsure)
{
	int rc = sio_nvme_doorbells_take(q);
	char why[SIO_NVME_TEXT];

	if (rc == 0)
		return 0;
	strncpy(why, smartio_nvme_error(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	*ret_unsure = ask_delete(q) != 0;
	return sio_nvme_fail(rc, "%s", why);
}

static int open_queue(struct smartio_nvme_queue *q, const struct smartio_nvme_queue_options *o,
		      bool *ret_unsure)
{
	int rc = choose_blocks(q, o);

	if (rc == 0)
		rc = choose_sizes(q, o);
	if (rc == 0)
		rc = make_slots(q);
	if (rc == 0)
		rc = get_queue_memory(q, o);
	if (rc == 0 && o->flags & SMARTIO_NVME_INTERRUPT)
		rc = sio_nvme_interrupt_open(q);
	if (rc == 0)
		rc = wait_create(q, o->wait_ms, ret_unsure);
	if (rc == 0)
		rc = check_lease(q, ret_unsure);
	if (rc == 0)
		rc = take_doorbells(q, ret_unsure);
	return rc;
}

/* The drive may use its memory: it stays until the drive is reset or the process ends. */
static void keep(struct smartio_nvme_queue *q)
{
	q->next = q->n->kept;
	q->n->kept = q;
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
		return sio_nvme_fail(-ENOMEM, "no memory for a queue");
	memset(q, 0, sizeof(*q));
	q->n = n;
	q->patience = SIO_NVME_PATIENT;
	q->generation_word = n->generation;
	sio_nvme_lock(n);
	sio_nvme_queues_forget(n, false);
	q->generation = __atomic_load_n(n->generation, __ATOMIC_RELAXED);
	rc = open_queue(q, &options, &unsure);
	if (rc == 0) {
		q->next = n->queues;
		n->queues = q;
	} else if (unsure) {
		keep(q);
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

	while (sio_nvme_in_flight(q) > 0 && (n = smartio_nvme_poll(q, c, 16)) >= 0) {
		if (n > 0)
			continue;
		if (smartio_now_ns() >= deadline)
			return;
		sio_nvme_pause(&pauses);
	}
}

void smartio_nvme_queue_close(struct smartio_nvme_queue *q)
{
	struct smartio_nvme_queue **at;
	struct smartio_nvme *n;

	if (!q)
		return;
	n = q->n;
	drain(q);
	sio_nvme_lock(n);
	for (at = &n->queues; *at != q; at = &(*at)->next)
		;
	*at = q->next;
	if (sio_nvme_queue_stale(q) || ask_delete(q) == 0 || sio_nvme_queue_stale(q)) {
		if (q->bounce)
			sio_nvme_buffer_end(q->bounce);
		free_queue(q);
	} else {
		keep(q);
	}
	sio_nvme_unlock(n);
}

void sio_nvme_queues_forget(struct smartio_nvme *n, bool all)
{
	struct smartio_nvme_queue **at = &n->kept, *q;

	while ((q = *at)) {
		bool gone = sio_nvme_queue_stale(q);

		if (!gone && !all) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		if (!gone) {
			/* The structures alone; the mappings end with SCITerminate(). */
			free(q->sq_mem);
			free(q->cq_mem);
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
