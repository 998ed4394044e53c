/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All commands of a queue except the plain transfers of io.c: with flags, with scattered data,
 * without data; several at once; and completion by callback. There is no lock and no system call
 * here, either. Source: NVM Express Base Specification 1.4, sections 4.3 and 6.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "multi.h"
#include "smartio/io.h"

#define FUA (1u << 30) /* dword 12 */
#define LIMITED_RETRY (1u << 31)
#define MAY_DEALLOCATE (1u << 25)
#define DEALLOCATE (1ull << (32 + 2)) /* dword 11 */
#define MOST_BLOCKS 65536u	      /* without data */

enum data { NO_DATA, BLOCKS, RANGES };

static const struct form {
	uint32_t op, flags;
	enum data data;
	const char *name;
} forms[] = {
	{SMARTIO_NVME_READ, SMARTIO_NVME_FUA | SMARTIO_NVME_LIMITED_RETRY, BLOCKS, "read"},
	{SMARTIO_NVME_WRITE, SMARTIO_NVME_FUA | SMARTIO_NVME_LIMITED_RETRY, BLOCKS, "write"},
	{SMARTIO_NVME_COMPARE, SMARTIO_NVME_FUA | SMARTIO_NVME_LIMITED_RETRY, BLOCKS, "compare"},
	{SMARTIO_NVME_WRITE_ZEROES,
	 SMARTIO_NVME_FUA | SMARTIO_NVME_LIMITED_RETRY | SMARTIO_NVME_MAY_DEALLOCATE, NO_DATA,
	 "write zeroes"},
	{SMARTIO_NVME_VERIFY, SMARTIO_NVME_FUA | SMARTIO_NVME_LIMITED_RETRY, NO_DATA, "verify"},
	{SMARTIO_NVME_DEALLOCATE, 0, RANGES, "deallocate"},
	{SMARTIO_NVME_FLUSH, 0, NO_DATA, "flush"},
};

static const struct form *form_of(uint32_t op)
{
	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].op == op)
			return &forms[i];
	return NULL;
}

static int check_blocks(const struct smartio_nvme_queue *q, uint64_t lba, uint64_t blocks)
{
	if (lba < q->first || lba >= q->blocks || blocks > q->blocks - lba)
		return sio_nvme_out_of_range(q, lba, blocks);
	return 0;
}

/* Whether a list of descriptors can name what PRP entries cannot. */
static bool sgl_fits(const struct smartio_nvme_queue *q, const struct smartio_nvme_piece *p,
		     uint32_t n)
{
	return n <= sio_nvme_sgl_most(q) && p->offset % 4 == 0 && p->bytes % 4 == 0;
}

static int check_piece(const struct smartio_nvme_queue *q, const struct smartio_nvme_piece *piece,
		       uint32_t i, uint32_t n)
{
	const struct smartio_nvme_piece *p = &piece[i];
	const bool first = i == 0;

	if (!p->buffer || p->buffer->n != q->n)
		return sio_nvme_fail(-EINVAL, "%s",
				     p->buffer ? "a buffer is of another smartio_nvme_open()"
					       : "a piece of the data has no buffer");
	if (p->offset > p->buffer->size || p->bytes > p->buffer->size - p->offset)
		return sio_nvme_fail(-ERANGE,
				     "%zu bytes at offset %zu go beyond a buffer of %zu bytes",
				     p->bytes, p->offset, p->buffer->size);
	if (p->bytes == 0)
		return sio_nvme_fail(-EINVAL, "a piece of 0 bytes; each piece must have data");
	if (sio_nvme_prp_fits(piece, i, n) || sgl_fits(q, p, n))
		return 0;
	if (sio_nvme_sgl_most(q))
		return sio_nvme_fail(
			-EINVAL,
			"%zu bytes at offset %zu of a buffer, in %u pieces: multiples of "
			"4, and at most %u pieces of this queue's commands, are right",
			p->bytes, p->offset, n, sio_nvme_sgl_most(q));
	if (first ? p->offset % 4 : p->offset % SIO_NVME_PAGE)
		return sio_nvme_fail(-EINVAL, "buffer offset %zu is not a multiple of %u",
				     p->offset, first ? 4 : SIO_NVME_PAGE);
	return sio_nvme_fail(-EINVAL,
			     "a piece that ends at %zu of its buffer, which is not the end of a "
			     "page, and is not the last one",
			     p->offset + p->bytes);
}

static int check_pieces(const struct smartio_nvme_queue *q, const struct smartio_nvme_command *c,
			uint64_t bytes)
{
	uint64_t sum = 0;

	if (c->n_pieces == 0 || c->n_pieces > SMARTIO_NVME_PIECES || !c->piece)
		return sio_nvme_fail(-EINVAL, "data in %u pieces; 1 to %u are possible",
				     c->piece ? c->n_pieces : 0, SMARTIO_NVME_PIECES);
	for (uint32_t i = 0; i < c->n_pieces; i++) {
		int rc = check_piece(q, c->piece, i, c->n_pieces);

		if (rc)
			return rc;
		sum += c->piece[i].bytes;
	}
	if (sum != bytes)
		return sio_nvme_fail(-EINVAL,
				     "the pieces have %" PRIu64 " bytes, the command %" PRIu64, sum,
				     bytes);
	return 0;
}

/* The drive checks them once more, as it finds them. */
static int check_ranges(const struct smartio_nvme_queue *q, const struct smartio_nvme_command *c)
{
	const volatile uint8_t *at;
	int rc;

	if (c->blocks == 0 || c->blocks > SMARTIO_NVME_RANGES || c->n_pieces != 1)
		return sio_nvme_fail(-EINVAL, "%u ranges in %u pieces; 1 to %u in one are possible",
				     c->blocks, c->n_pieces, SMARTIO_NVME_RANGES);
	rc = check_pieces(q, c, c->blocks * sizeof(struct smartio_nvme_range));
	if (rc)
		return rc;
	at = c->piece->buffer->mem.at + c->piece->offset;
	for (uint32_t i = 0; rc == 0 && i < c->blocks; i++, at += 16) {
		struct smartio_nvme_range r;

		sio_copy_from(&r, at, sizeof(r));
		if (r.blocks)
			rc = check_blocks(q, le64toh(r.lba), le32toh(r.blocks));
	}
	return rc;
}

static int check_transfer(const struct smartio_nvme_queue *q, const struct smartio_nvme_command *c,
			  const struct form *f)
{
	uint32_t most = f->data == BLOCKS ? q->max_blocks : MOST_BLOCKS;
	int rc;

	if (c->blocks == 0)
		return sio_nvme_fail(-EINVAL, "%s of 0 blocks; at least 1 is right", f->name);
	if (c->blocks > most)
		return sio_nvme_fail(-ERANGE, "%u blocks in one command; this queue takes %u",
				     c->blocks, most);
	rc = check_blocks(q, c->lba, c->blocks);
	if (rc == 0 && f->data == BLOCKS)
		return check_pieces(q, c, c->blocks * q->block_size);
	if (rc == 0 && c->n_pieces)
		return sio_nvme_fail(-EINVAL, "%s takes no data", f->name);
	return rc;
}

static int check(const struct smartio_nvme_queue *q, const struct smartio_nvme_command *c,
		 const struct form *f)
{
	if (!f)
		return sio_nvme_fail(-EINVAL, "operation %#x is none of enum smartio_nvme_op",
				     c->op);
	if (c->flags & ~f->flags)
		return sio_nvme_fail(-EINVAL, "%s does not allow the flags %#x", f->name,
				     c->flags & ~f->flags);
	if (c->reserved[0] || c->reserved[1])
		return sio_nvme_fail(-EINVAL, "a reserved field of the command is not 0");
	if (f->data == RANGES)
		return check_ranges(q, c);
	if (c->op != SMARTIO_NVME_FLUSH)
		return check_transfer(q, c, f);
	if (c->lba || c->blocks || c->n_pieces)
		return sio_nvme_fail(-EINVAL, "flush takes neither blocks nor data");
	return 0;
}

static uint32_t dword12(const struct smartio_nvme_command *c)
{
	return (c->flags & SMARTIO_NVME_FUA ? FUA : 0) |
	       (c->flags & SMARTIO_NVME_LIMITED_RETRY ? LIMITED_RETRY : 0) |
	       (c->flags & SMARTIO_NVME_MAY_DEALLOCATE ? MAY_DEALLOCATE : 0);
}

/* Records the buffers whose memory the command uses, for smartio_nvme_buffer_free(). */
static int hold_buffers(struct smartio_nvme_queue *q, const struct smartio_nvme_command *c,
			struct smartio_nvme_buffer **ret)
{
	struct smartio_nvme_buffer **held = q->held;

	*ret = c->n_pieces ? c->piece->buffer : &sio_nvme_no_buffer;
	if (c->n_pieces < 2)
		return 0;
	if (!held) {
		held = calloc((size_t)q->depth * SMARTIO_NVME_PIECES,
			      sizeof(struct smartio_nvme_buffer *));
		if (!held)
			return sio_nvme_no_memory("a list of buffers");
		__atomic_store_n(&q->held, held, __ATOMIC_RELAXED);
	}
	held += (size_t)(q->free - q->slot) * SMARTIO_NVME_PIECES;
	for (uint32_t i = 0; i < SMARTIO_NVME_PIECES; i++)
		__atomic_store_n(&held[i], i < c->n_pieces ? c->piece[i].buffer : NULL,
				 __ATOMIC_RELAXED);
	*ret = &sio_nvme_many_buffers;
	return 0;
}

static int submit(struct smartio_nvme_queue *q, const struct smartio_nvme_command *c)
{
	uint64_t prp1 = 0, prp2 = 0, lba = c->lba, nlb = 0;
	const struct form *f = form_of(c->op);
	struct smartio_nvme_buffer *b;
	uint32_t op = c->op;
	int rc;

	if (!q->free)
		return sio_nvme_no_command(q);
	rc = check(q, c, f);
	if (rc == 0)
		rc = hold_buffers(q, c, &b);
	if (rc)
		return rc;
	if (f->data == RANGES)
		lba = DEALLOCATE | (c->blocks - 1);
	else if (c->blocks)
		nlb = dword12(c) | (c->blocks - 1);
	if (q->life && sio_nvme_note(q, c->op, lba, nlb, c->piece, c->n_pieces))
		return -ENOMEM;
	if (c->n_pieces)
		op |= sio_nvme_name_pieces(q, (uint32_t)(q->free - q->slot), c->piece, c->n_pieces,
					   &prp1, &prp2);
	sio_nvme_put(q, op, lba, nlb, prp1, prp2, b, c->cookie);
	return 0;
}

int smartio_nvme_submit_commands(struct smartio_nvme_queue *q, const struct smartio_nvme_command *c,
				 unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = submit(q, &c[i]);

		if (rc)
			return i ? (int)i : rc;
	}
	return (int)n;
}

/* Each once; their memory is in use as long as the drive may write to it. */
static void end_calls_of(struct smartio_nvme_queue *q)
{
	for (uint32_t i = 0; i < q->depth; i++) {
		struct smartio_nvme_call *call = q->slot[i].cookie;

		if (!q->slot[i].buffer || !call)
			continue;
		q->slot[i].cookie = NULL;
		call->done(call, SMARTIO_NVME_LOST);
	}
}

/* All that complete in the same completion queue have ended together. */
static void end_calls(struct smartio_nvme_queue *q)
{
	if (!q->multi) {
		end_calls_of(q);
		return;
	}
	for (struct smartio_nvme_queue *of = q->multi->users; of; of = of->peer)
		if (!of->closed)
			end_calls_of(of);
}

int smartio_nvme_poll_calls(struct smartio_nvme_queue *q, unsigned max)
{
	struct smartio_nvme_completion c[32];
	unsigned done = 0;
	int n;

	do {
		unsigned room = max - done < 32 ? max - done : 32;

		n = smartio_nvme_poll(q, c, room);
		for (int i = 0; i < n; i++) {
			struct smartio_nvme_call *call = c[i].cookie;

			call->done(call, c[i].status);
		}
		if (n < 0)
			end_calls(q);
		else
			done += (unsigned)n;
	} while (n == 32 && done < max);
	return n < 0 && done == 0 ? n : (int)done;
}
