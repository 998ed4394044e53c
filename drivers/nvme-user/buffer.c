/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for data. */
#include <errno.h>
#include <stdlib.h>

#include "client.h"
#include "error.h"

struct smartio_nvme_buffer sio_nvme_no_buffer, sio_nvme_many_buffers;

/* @b has its memory, or @rc tells why not. */
static int keep(struct smartio_nvme *n, struct smartio_nvme_buffer *b, int rc,
		struct smartio_nvme_buffer **ret)
{
	if (rc) {
		free(b);
		return rc;
	}
	b->n = n;
	b->size = b->mem.size;
	b->ioaddr = b->mem.ioaddr;
	sio_nvme_lock(n);
	b->next = n->buffers;
	n->buffers = b;
	sio_nvme_unlock(n);
	*ret = b;
	return 0;
}

int smartio_nvme_buffer_alloc(struct smartio_nvme *n, size_t bytes,
			      struct smartio_nvme_buffer **ret)
{
	struct smartio_nvme_buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return sio_nvme_fail(-ENOMEM, "no memory for a buffer");
	return keep(n, b, sio_nvme_mem_local(&n->d, bytes, &b->mem), ret);
}

int smartio_nvme_buffer_on_device(struct smartio_nvme *n, const char *device, uint32_t bar,
				  size_t offset, size_t bytes, struct smartio_nvme_buffer **ret)
{
	struct smartio_nvme_buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return sio_nvme_fail(-ENOMEM, "no memory for a buffer");
	return keep(n, b, sio_nvme_mem_bar(&n->d, device, bar, 0, offset, bytes, &b->mem), ret);
}

static bool holds(struct smartio_nvme_queue *q, uint32_t slot, const struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_buffer **held = __atomic_load_n(&q->held, __ATOMIC_RELAXED);

	held += slot * SMARTIO_NVME_PIECES;
	for (uint32_t i = 0; i < SMARTIO_NVME_PIECES; i++)
		if (__atomic_load_n(&held[i], __ATOMIC_RELAXED) == b)
			return true;
	return false;
}

/*
 * Only the thread of a queue changes its slots; another thread that frees a buffer may look, as no
 * command with that buffer can come any more.
 */
static bool uses(struct smartio_nvme_queue *q, const struct smartio_nvme_buffer *b)
{
	if (__atomic_load_n(q->generation_word, __ATOMIC_RELAXED) != q->generation)
		return false; /* the drive was reset */
	for (uint32_t i = 0; i < q->depth; i++) {
		const struct smartio_nvme_buffer *in =
			__atomic_load_n(&q->slot[i].buffer, __ATOMIC_RELAXED);

		if (in == b || (in == &sio_nvme_many_buffers && holds(q, i, b)))
			return true;
	}
	return false;
}

static bool in_flight(const struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_queue *lists[] = {b->n->queues, b->n->kept};

	for (unsigned i = 0; i < 2; i++)
		for (struct smartio_nvme_queue *q = lists[i]; q; q = q->next)
			if (uses(q, b))
				return true;
	return false;
}

void sio_nvme_buffer_end(struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_buffer **at = &b->n->buffers;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	if (!in_flight(b))
		sio_nvme_mem_done(&b->mem);
	free(b);
}

int smartio_nvme_buffer_free(struct smartio_nvme_buffer *b)
{
	struct smartio_nvme *n;
	bool busy;

	if (!b)
		return 0;
	n = b->n;
	sio_nvme_lock(n);
	busy = in_flight(b);
	if (!busy)
		sio_nvme_buffer_end(b);
	sio_nvme_unlock(n);
	if (busy)
		return sio_nvme_fail(-EBUSY, "a command that uses the buffer is in flight");
	return 0;
}

void *smartio_nvme_buffer_data(const struct smartio_nvme_buffer *b)
{
	return (void *)(uintptr_t)b->mem.at;
}

size_t smartio_nvme_buffer_size(const struct smartio_nvme_buffer *b)
{
	return b->size;
}
