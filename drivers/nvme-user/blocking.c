/* SPDX-License-Identifier: BSD-2-Clause */
/* Read, write and flush that return when they are done, through memory of the queue's own. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "multi.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define CHUNK (128u << 10)
#define CHUNKS 4u
#define SILENCE_MS 30000u
#define COMPARE_FAILED 0x285u /* media and data integrity; NVMe 1.4, section 4.6.1.2.3 */

struct job {
	struct smartio_nvme_queue *q;
	enum smartio_nvme_op op;
	uint32_t flags;
	uint8_t *to;
	const uint8_t *from;
	struct smartio_nvme_buffer *direct; /* what has the data already; NULL: they are copied */
	size_t direct_at;
	uint64_t offset; /* on the namespace */
	size_t bytes, sent;
	uint32_t chunk, chunks; /* bytes of each, and how many */
	uint32_t busy;		/* bits: chunks in flight */
	size_t at[CHUNKS], len[CHUNKS];
	uint32_t status; /* the first that is not 0 */
	uint64_t bad_at;
};

static uint32_t chunk_of(const struct smartio_nvme_queue *q)
{
	if (q->max_blocks > CHUNK >> q->block_shift && CHUNK >= 1u << q->block_shift)
		return CHUNK;
	return q->max_blocks << q->block_shift;
}

int sio_nvme_get_bounce(struct smartio_nvme_queue *q)
{
	uint32_t chunks = q->depth < CHUNKS ? q->depth : CHUNKS;

	if (q->bounce)
		return 0;
	return smartio_nvme_buffer_alloc(q->n, (size_t)chunk_of(q) * chunks, &q->bounce);
}

int sio_nvme_check_bytes(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes)
{
	uint64_t block = 1ull << q->block_shift, end = q->blocks << q->block_shift;

	char space[32];

	snprintf(space, sizeof(space), "namespace %u", q->nsid);
	if (q->error && !sio_nvme_survives(q))
		return sio_nvme_queue_dead(q);
	if (sio_nvme_in_flight(q) != 0)
		return sio_nvme_fail(-EBUSY, "%u commands of the caller are in flight",
				     sio_nvme_in_flight(q));
	if (offset % block || bytes % block)
		return sio_nvme_fail(-EINVAL,
				     "offset %" PRIu64 " and length %" PRIu64 " are not multiples "
				     "of the block size, %" PRIu64,
				     offset, bytes, block);
	if (offset > end || bytes > end - offset)
		return sio_nvme_fail(
			-ERANGE, "offset %" PRIu64 " + %" PRIu64 ": %s of %s ends at %" PRIu64,
			offset, bytes, q->lease ? q->lease->info.name : space, q->n->d.name, end);
	if (bytes && offset < q->first << q->block_shift)
		return sio_nvme_out_of_range(q, offset >> q->block_shift, bytes >> q->block_shift);
	return 0;
}

static int send_chunk(struct job *j, uint32_t i)
{
	struct smartio_nvme_queue *q = j->q;
	size_t len = j->bytes - j->sent, at = (size_t)i * j->chunk;
	struct smartio_nvme_piece piece = {.buffer = j->direct ? j->direct : q->bounce,
					   .offset = j->direct ? j->direct_at + j->sent : at};
	struct smartio_nvme_command command = {.n_pieces = 1, .piece = &piece};
	int rc;

	if (len > j->chunk)
		len = j->chunk;
	piece.bytes = len;
	if (j->op != SMARTIO_NVME_READ && !j->direct)
		sio_copy_to(q->bounce->mem.at + at, j->from + j->sent, len);
	command.op = j->op;
	command.flags = j->flags;
	command.lba = (j->offset + j->sent) >> q->block_shift;
	command.blocks = (uint32_t)(len >> q->block_shift);
	command.cookie = (void *)(uintptr_t)i;
	rc = smartio_nvme_submit_commands(q, &command, 1);
	if (rc == -EAGAIN)
		return 0; /* it is about to have another queue pair */
	if (rc < 0)
		return rc;
	j->at[i] = j->sent;
	j->len[i] = len;
	j->busy |= 1u << i;
	j->sent += len;
	return 0;
}

static int fill(struct job *j)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < j->chunks && j->sent < j->bytes && !j->status; i++)
		if (!(j->busy >> i & 1))
			rc = send_chunk(j, i);
	return rc;
}

static void finish_chunk(struct job *j, const struct smartio_nvme_completion *c)
{
	uint32_t i = (uint32_t)(uintptr_t)c->cookie;

	j->busy &= ~(1u << i);
	if (c->status && !j->status) {
		j->status = c->status;
		j->bad_at = j->offset + j->at[i];
	} else if (!c->status && j->op == SMARTIO_NVME_READ && !j->direct) {
		sio_copy_from(j->to + j->at[i], j->q->bounce->mem.at + (size_t)i * j->chunk,
			      j->len[i]);
	}
}

static int silent(const struct smartio_nvme_queue *q)
{
	return sio_nvme_fail(-ETIMEDOUT, "%s has not answered for %u s", q->n->d.name,
			     SILENCE_MS / 1000);
}

static int poll_some(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	uint64_t deadline = 0;
	unsigned polls = 0;
	int n;

	while ((n = smartio_nvme_poll(q, c, max)) == 0) {
		if (++polls % 256)
			continue;
		if (deadline == 0)
			deadline = sio_nvme_deadline(SILENCE_MS);
		else if (smartio_now_ns() >= deadline)
			return silent(q);
	}
	return n;
}

static int wait_some(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	int n;

	if (!sio_nvme_told_by(q)->interrupt)
		return poll_some(q, c, max);
	while ((n = smartio_nvme_poll(q, c, max)) == 0) {
		n = smartio_nvme_wait(q, SILENCE_MS);
		if (n <= 0)
			return n < 0 ? n : silent(q);
	}
	return n;
}

int sio_nvme_wait_some(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
		       unsigned max)
{
	int n;

	/* What comes meanwhile of others that complete there is the program's, at its next poll. */
	if (q->multi)
		q->multi->only = q;
	n = wait_some(q, c, max);
	if (q->multi)
		q->multi->only = NULL;
	return n;
}

int sio_nvme_status_error(uint32_t status)
{
	if (status == COMPARE_FAILED)
		return -EILSEQ;
	return status == SMARTIO_NVME_UNSURE ? -ECONNABORTED : -EIO;
}

static const char *name_of(enum smartio_nvme_op op)
{
	if (op == SMARTIO_NVME_COMPARE)
		return "compare";
	return op == SMARTIO_NVME_READ ? "read" : "write";
}

/* Data in registered memory go where they are; others by memory of the queue's own. */
static int find_memory(struct job *j)
{
	const void *data = j->op == SMARTIO_NVME_READ ? j->to : j->from;

	j->direct = sio_nvme_registered(j->q->n, data, j->bytes);
	if (!j->direct)
		return sio_nvme_get_bounce(j->q);
	j->direct_at = (uintptr_t)data - (uintptr_t)j->direct->mem.at;
	return 0;
}

static int move(struct job *j)
{
	struct smartio_nvme_completion c[CHUNKS];
	int n, rc;

	j->chunk = chunk_of(j->q);
	j->chunks = j->q->depth < CHUNKS ? j->q->depth : CHUNKS;
	do {
		rc = fill(j);
		if (rc == 0 && !j->busy) {
			rc = sio_nvme_await_life(j->q);
			if (rc == 0)
				continue;
		}
		if (rc)
			return rc;
		n = sio_nvme_wait_some(j->q, c, CHUNKS);
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			finish_chunk(j, &c[i]);
	} while (j->busy || (j->sent < j->bytes && !j->status));
	if (j->status)
		return sio_nvme_fail(sio_nvme_status_error(j->status),
				     "%s at %" PRIu64 " of %s: %s", name_of(j->op), j->bad_at,
				     j->q->n->d.name, smartio_nvme_status_string(j->status));
	return 0;
}

static int transfer(struct job *j)
{
	int rc = sio_nvme_check_bytes(j->q, j->offset, j->bytes);

	if (rc == 0 && j->bytes)
		rc = find_memory(j);
	if (rc == 0 && j->bytes)
		rc = move(j);
	sio_nvme_registered_done(j->direct);
	return rc;
}

int smartio_nvme_read(struct smartio_nvme_queue *q, void *data, uint64_t offset, size_t bytes)
{
	struct job j = {
		.q = q, .op = SMARTIO_NVME_READ, .to = data, .offset = offset, .bytes = bytes};

	return transfer(&j);
}

int smartio_nvme_write(struct smartio_nvme_queue *q, const void *data, uint64_t offset,
		       size_t bytes)
{
	return smartio_nvme_write_flags(q, data, offset, bytes, 0);
}

int smartio_nvme_write_flags(struct smartio_nvme_queue *q, const void *data, uint64_t offset,
			     size_t bytes, uint32_t flags)
{
	struct job j = {.q = q,
			.op = SMARTIO_NVME_WRITE,
			.flags = flags,
			.from = data,
			.offset = offset,
			.bytes = bytes};

	return transfer(&j);
}

int smartio_nvme_compare(struct smartio_nvme_queue *q, const void *data, uint64_t offset,
			 size_t bytes)
{
	struct job j = {
		.q = q, .op = SMARTIO_NVME_COMPARE, .from = data, .offset = offset, .bytes = bytes};

	return transfer(&j);
}

int smartio_nvme_flush(struct smartio_nvme_queue *q)
{
	struct smartio_nvme_completion c;
	int rc = sio_nvme_check_bytes(q, 0, 0);

	if (rc == 0)
		rc = sio_nvme_await_life(q);
	if (rc == 0)
		rc = smartio_nvme_submit(q, SMARTIO_NVME_FLUSH, 0, 0, NULL, 0, NULL);
	if (rc)
		return rc;
	rc = sio_nvme_wait_some(q, &c, 1);
	if (rc < 0)
		return rc;
	if (c.status)
		return sio_nvme_fail(sio_nvme_status_error(c.status), "flush of %s: %s",
				     q->n->d.name, smartio_nvme_status_string(c.status));
	return 0;
}
