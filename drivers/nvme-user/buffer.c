/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for data. */
#include <errno.h>
#include <stdlib.h>

#include "client.h"
#include "error.h"

struct smartio_nvme_buffer sio_nvme_no_buffer, sio_nvme_many_buffers;

/*
 * Under the lock: over each way that is open. One that is lost gets it with all else, when it is
 * back.
 */
static int reach_both(struct smartio_nvme *n, struct smartio_nvme_buffer *b)
{
	int rc = 0;

	if (!b->mem.reachable && sio_nvme_leg_open(n))
		rc = sio_nvme_mem_join(&b->mem);
	if (rc && sio_nvme_leg_open(n))
		return rc;
	b->ioaddr = b->mem.ioaddr;
	if (!sio_nvme_leg_open(n->second))
		return b->mem.reachable
			       ? 0
			       : sio_nvme_fail(-ENODEV, "both paths to %s are lost", n->d.name);
	rc = sio_nvme_reach_open(&n->second->d, &b->mem, &b->second);
	if (rc == 0 || sio_nvme_leg_open(n->second) || !b->mem.reachable)
		return rc;
	return 0;
}

/* @b has its memory, or @rc has the reason why not. Under the lock. */
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
	rc = n->second ? reach_both(n, b) : 0;
	if (rc) {
		sio_nvme_mem_done(&b->mem);
		free(b);
		return rc;
	}
	b->next = n->buffers;
	n->buffers = b;
	*ret = b;
	return 0;
}

int smartio_nvme_buffer_alloc(struct smartio_nvme *n, size_t bytes,
			      struct smartio_nvme_buffer **ret)
{
	struct smartio_nvme_buffer *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return sio_nvme_no_memory("a buffer");
	/* Another thread may be about to take a lost way apart. */
	sio_nvme_lock(n);
	rc = keep(n, b, sio_nvme_mem_local(&n->d, bytes, &b->mem), ret);
	sio_nvme_unlock(n);
	return rc;
}

int smartio_nvme_buffer_register(struct smartio_nvme *n, void *address, size_t bytes,
				 struct smartio_nvme_buffer **ret)
{
	struct smartio_nvme_buffer *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return sio_nvme_no_memory("a buffer");
	sio_nvme_lock(n);
	b->foreign = true;
	rc = keep(n, b, sio_nvme_mem_foreign(&n->d, address, bytes, &b->mem), ret);
	if (rc == 0)
		__atomic_add_fetch(&n->foreign, 1, __ATOMIC_RELAXED);
	sio_nvme_unlock(n);
	return rc;
}

struct smartio_nvme_buffer *sio_nvme_registered(struct smartio_nvme *n, const void *data,
						size_t bytes)
{
	const uintptr_t at = (uintptr_t)data;
	struct smartio_nvme_buffer *b;

	/* Another thread may have the lock for long: then the data are copied. */
	if (__atomic_load_n(&n->foreign, __ATOMIC_RELAXED) == 0 || at % 4 || !sio_nvme_trylock(n))
		return NULL;
	for (b = n->buffers; b; b = b->next)
		if (b->foreign && at >= (uintptr_t)b->mem.at &&
		    at - (uintptr_t)b->mem.at <= b->size &&
		    bytes <= b->size - (at - (uintptr_t)b->mem.at))
			break;
	if (b)
		__atomic_add_fetch(&b->helpers, 1, __ATOMIC_RELAXED);
	sio_nvme_unlock(n);
	return b;
}

void sio_nvme_registered_done(struct smartio_nvme_buffer *b)
{
	if (b) /* pairs with the load in smartio_nvme_buffer_free() */
		__atomic_sub_fetch(&b->helpers, 1, __ATOMIC_RELEASE);
}

int smartio_nvme_buffer_on_device(struct smartio_nvme *n, const char *device, uint32_t bar,
				  size_t offset, size_t bytes, struct smartio_nvme_buffer **ret)
{
	struct smartio_nvme_buffer *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return sio_nvme_no_memory("a buffer");
	if (n->second) {
		free(b);
		return sio_nvme_fail(
			-ENOTSUP,
			"a client with two paths to its drive must have its data in memory "
			"of this host, not in a BAR of %s",
			device);
	}
	rc = sio_nvme_mem_bar(&n->d, device, bar, 0, offset, bytes, &b->mem);
	sio_nvme_lock(n);
	rc = keep(n, b, rc, ret);
	sio_nvme_unlock(n);
	return rc;
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
	/* The drive was reset. Whoever survives sends what was in flight again. */
	if (q->life ? sio_nvme_is_over(q)
		    : __atomic_load_n(q->generation_word, __ATOMIC_RELAXED) != q->generation)
		return false;
	for (uint32_t i = 0; i < q->depth; i++) {
		const struct smartio_nvme_buffer *in =
			__atomic_load_n(&q->slot[i].buffer, __ATOMIC_RELAXED);

		if (in == b || (in == &sio_nvme_many_buffers && holds(q, i, b)))
			return true;
	}
	return false;
}

/* While a queue that was handed over is open, its buffers are for whoever has it to know. */
static bool in_flight(const struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_queue *q;

	for (q = b->n->queues; q; q = q->next)
		if (uses(q, b))
			return true;
	for (q = b->n->kept; q; q = q->next)
		if (uses(q, b) || (q->handed_over && !sio_nvme_queue_stale(q)))
			return true;
	return false;
}

void sio_nvme_buffer_end(struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_buffer **at = &b->n->buffers;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	if (b->foreign)
		__atomic_sub_fetch(&b->n->foreign, 1, __ATOMIC_RELAXED);
	if (!in_flight(b)) {
		if (b->second.reachable)
			sio_nvme_reach_close(&b->n->second->d, &b->mem, &b->second);
		sio_nvme_mem_done(&b->mem);
	}
	free(b);
}

int smartio_nvme_buffer_free(struct smartio_nvme_buffer *b)
{
	struct smartio_nvme *n;
	bool busy;

	if (!b || sio_nvme_is_childs(b->n))
		return 0;
	n = b->n;
	sio_nvme_lock(n);
	/* Helpers are done with it: pairs with sio_nvme_registered_done(). */
	busy = __atomic_load_n(&b->helpers, __ATOMIC_ACQUIRE) || in_flight(b);
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
