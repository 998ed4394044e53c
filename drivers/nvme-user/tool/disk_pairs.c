/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "disk_pairs.h"
#include "smartio/ext.h"
#include "smartio/uapi.h"

#define DEPTH 31u   /* with SLOT and lists, 2 MiB of memory in one piece */
#define SLOT 65536u /* bytes of one command */
#define PAGE 4096u  /* of the drive */
#define SHARE 4u    /* of the drive's pairs a disk takes one of so many, if it is not told */

/* ---- how many, and of what size ---- */

static uint32_t slot_of(const struct smartio_nvme_info *info)
{
	uint32_t slot = SLOT;

	while (slot > PAGE && slot > info->max_transfer)
		slot /= 2;
	return slot;
}

static unsigned processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	if (n < 1)
		return 1;
	return n < SIO_DISK_PAIRS ? (unsigned)n : SIO_DISK_PAIRS;
}

static unsigned default_count(const struct smartio_nvme_info *info)
{
	const unsigned share = info->queue_pairs / SHARE, most = processors();

	return share == 0 ? 1 : share < most ? share : most;
}

static int choose(struct disk_pairs *p, const struct smartio_nvme_lease *lease)
{
	const struct options *o = p->o;
	struct smartio_nvme_info info;

	if (o->depth > SIO_DISK_DEPTH)
		return failed("a disk has up to %u commands in flight in each queue, not %" PRIu64,
			      SIO_DISK_DEPTH, o->depth);
	if (o->queues > processors())
		return failed("a disk has one queue for each processor at most, which are %u here, "
			      "not %u",
			      processors(), o->queues);
	smartio_nvme_get_info(p->n, &info);
	p->slot = slot_of(&info);
	p->count = o->queues ? o->queues : default_count(&info);
	p->qo = (struct smartio_nvme_queue_options){.size = sizeof(p->qo),
						    .cq_placement = SMARTIO_NVME_PLACE_LOCAL,
						    .namespace_id = o->nsid,
						    .max_transfer = p->slot,
						    .flags = o->poll ? 0 : SMARTIO_NVME_INTERRUPT,
						    .depth = o->depth ? (uint32_t)o->depth : DEPTH,
						    .lease = lease};
	if (p->qo.depth > info.max_queue_entries - 1)
		p->qo.depth = info.max_queue_entries - 1;
	return EXIT_OK;
}

/* ---- one pair ---- */

static void close_pair(struct disk_pair *q)
{
	sci_error_t err;

	for (unsigned i = 0; i < 3; i++) {
		if (q->map[i])
			SCIUnmapSegment(q->map[i], 0, &err);
		q->map[i] = NULL;
	}
	smartio_nvme_queue_close(q->queue);
	q->queue = NULL;
}

static int map(struct disk_pair *q, unsigned which, sci_remote_segment_t segment, size_t from,
	       size_t bytes, unsigned flags, __u64 *ret)
{
	sci_error_t err;
	volatile void *at =
		SCIMapRemoteSegment(segment, &q->map[which], from, bytes, NULL, flags, &err);

	if (err != SCI_ERR_OK) {
		q->map[which] = NULL;
		return -EAGAIN;
	}
	*ret = (uintptr_t)at;
	return 0;
}

static size_t pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* -EAGAIN: not now, as when the drive was reset meanwhile. */
static int map_pair(struct disk_pair *q, struct sio_disk_pair *ret)
{
	const struct smartio_nvme_raw *raw = &q->raw;
	const size_t first = raw->sq_doorbell & ~(size_t)(PAGE - 1);
	__u64 doorbells = 0;
	int rc = map(q, 0, raw->sq, 0, pages((size_t)raw->entries * 64), 0, &ret->sq);

	if (rc == 0)
		rc = map(q, 1, raw->cq, 0, pages((size_t)raw->entries * 16), 0, &ret->cq);
	if (rc == 0)
		rc = map(q, 2, raw->bar, first, pages(raw->cq_doorbell + 4 - first),
			 SCI_FLAG_IO_MAP_IOSPACE, &doorbells);
	if (rc)
		return rc;
	ret->sq_doorbell = doorbells + (raw->sq_doorbell - first);
	ret->cq_doorbell = doorbells + (raw->cq_doorbell - first);
	ret->memory = (uintptr_t)smartio_nvme_buffer_data(q->memory);
	ret->memory_address = smartio_nvme_buffer_address(q->memory);
	ret->id = raw->id;
	ret->interrupt = raw->interrupt ? smartio_interrupt_fd(raw->interrupt) : -1;
	/* What was mapped before a reset leads nowhere; after one, to another's queues. */
	return smartio_device_generation(raw->device) == raw->generation ? 0 : -EAGAIN;
}

static int open_memory(struct disk_pairs *p, struct disk_pair *q)
{
	const size_t command = p->slot + SIO_DISK_LIST(p->slot);

	return q->memory ? 0 : smartio_nvme_buffer_alloc(p->n, p->qo.depth * command, &q->memory);
}

/* Return: 0, or an error of the driver's. */
static int make_pair(struct disk_pairs *p, struct disk_pair *q)
{
	int rc = smartio_nvme_queue_open(p->n, &p->qo, &q->queue);

	/* smartio_blk.ko looks by itself then. */
	if (rc == -ENOTSUP && p->qo.flags & SMARTIO_NVME_INTERRUPT) {
		p->qo.flags &= ~SMARTIO_NVME_INTERRUPT;
		rc = smartio_nvme_queue_open(p->n, &p->qo, &q->queue);
	}
	if (rc) {
		q->queue = NULL;
		return rc;
	}
	q->raw.size = sizeof(q->raw);
	rc = smartio_nvme_queue_hand_over(q->queue, &q->raw);
	return rc ? rc : open_memory(p, q);
}

/* ---- all ---- */

/* The first one, or each that was asked for, may be waited for. */
static int wait_and_make(struct disk_pairs *p, unsigned i)
{
	int rc = make_pair(p, &p->pair[i]);

	if (rc != -ENOSPC || smartio_nvme_exhausted() != SIO_OUT_OF_QUEUE_PAIRS ||
	    !p->o->pair_wait_ms || (i && !p->o->queues))
		return rc;
	fprintf(stderr, "smartio-nvme: waiting for a queue pair for up to %.4g s (%s)\n",
		p->o->pair_wait_ms / 1e3, smartio_nvme_error());
	p->qo.wait_ms = p->o->pair_wait_ms;
	rc = make_pair(p, &p->pair[i]);
	p->qo.wait_ms = 0;
	return rc;
}

static int make_all(struct disk_pairs *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		const int rc = wait_and_make(p, i);

		if (rc && (i == 0 || p->o->queues))
			return failed_nvme();
		if (rc) { /* fewer will do */
			close_pair(&p->pair[i]);
			p->count = i;
		}
	}
	return EXIT_OK;
}

int disk_pairs_open(struct disk_pairs *p, const struct options *o, struct smartio_nvme *n,
		    const struct smartio_nvme_lease *lease)
{
	int rc;

	p->o = o;
	p->n = n;
	rc = choose(p, lease);
	if (rc == EXIT_OK)
		rc = make_all(p);
	for (unsigned i = 0; i < p->count && rc == EXIT_OK; i++)
		if (map_pair(&p->pair[i], &p->kernel[i]))
			rc = failed("cannot map queue pair %u of %s: it was reset meanwhile, or %s",
				    p->pair[i].raw.id, o->device, smartio_last_error());
	return rc;
}

static bool is_hopeless(int rc)
{
	return rc == -ESTALE || rc == -EINVAL || rc == -ENODEV || rc == -ENOTSUP || rc == -EPROTO;
}

int disk_pairs_renew(struct disk_pairs *p, uint32_t wait_ms)
{
	int rc = 0;

	/* All of them go first: the drive may have no more. */
	for (unsigned i = 0; i < p->count; i++)
		close_pair(&p->pair[i]);
	for (unsigned i = 0; i < p->count && rc == 0; i++) {
		const struct smartio_nvme_raw before = p->pair[i].raw;
		const struct smartio_nvme_raw *now = &p->pair[i].raw;

		p->qo.wait_ms = wait_ms;
		rc = make_pair(p, &p->pair[i]);
		if (rc == 0 &&
		    (now->entries != before.entries || now->block_size != before.block_size ||
		     now->first != before.first || now->blocks != before.blocks))
			return -ESTALE;
		if (rc == 0)
			rc = map_pair(&p->pair[i], &p->kernel[i]);
	}
	return rc == 0 || is_hopeless(rc) ? rc : -EAGAIN;
}

void disk_pairs_close(struct disk_pairs *p)
{
	for (unsigned i = 0; i < p->count; i++)
		close_pair(&p->pair[i]);
	for (unsigned i = 0; i < SIO_DISK_PAIRS; i++)
		smartio_nvme_buffer_free(p->pair[i].memory);
}
