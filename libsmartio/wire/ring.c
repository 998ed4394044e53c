/* SPDX-License-Identifier: BSD-2-Clause */
/* Data-interrupt rings. Pure data path: accessors and barriers of smartio/io.h, nothing else. */
#include <endian.h>
#include <errno.h>

#include "smartio/io.h"
#include "wire/ring.h"

#define ALIGN 8u
#define HEADER 4u /* a record's length word */

_Static_assert((SIO_RING_BYTES & (SIO_RING_BYTES - 1)) == 0, "positions wrap at 2^32");
_Static_assert(sizeof(struct sio_ring_head) <= SIO_RING_TOTAL - SIO_RING_BYTES, "head fits");
_Static_assert(2 * (SIO_RING_MESSAGE + 2 * ALIGN) <= SIO_RING_BYTES,
	       "an empty ring takes any message, wherever it begins");

static volatile uint8_t *record(const struct sio_ring *r, uint32_t position)
{
	return (volatile uint8_t *)r->shared + (SIO_RING_TOTAL - SIO_RING_BYTES) +
	       position % SIO_RING_BYTES;
}

static uint32_t record_bytes(uint32_t len)
{
	return (HEADER + len + ALIGN - 1) & ~(ALIGN - 1);
}

static uint32_t to_end(uint32_t position)
{
	return SIO_RING_BYTES - position % SIO_RING_BYTES;
}

/* Whether @tail and @head can be the words of one ring. */
static int possible(uint32_t tail, uint32_t head)
{
	return tail - head <= SIO_RING_BYTES && tail % ALIGN == 0 && head % ALIGN == 0;
}

void sio_ring_init(struct sio_ring *r, volatile void *memory)
{
	r->shared = memory;
	r->tail = r->head = 0;
}

int sio_ring_room(struct sio_ring *r, uint32_t len)
{
	uint32_t need = record_bytes(len), skip, head;

	if (len > SIO_RING_MESSAGE)
		return -EMSGSIZE;
	skip = to_end(r->tail) < need ? to_end(r->tail) : 0;
	if (SIO_RING_BYTES - (r->tail - r->head) >= skip + need)
		return 0;
	head = le32toh(sio_read32(&r->shared->head));
	/* The head only grows, up to our tail. */
	if (!possible(r->tail, head) || r->tail - head > r->tail - r->head)
		return -EPROTO;
	/* What is overwritten was read before. */
	sio_from_fabric_barrier(); /* pairs with the second one in sio_ring_pop() */
	r->head = head;
	return SIO_RING_BYTES - (r->tail - head) < skip + need ? -ENOSPC : 0;
}

int sio_ring_push(struct sio_ring *r, const void *data, uint32_t len)
{
	uint32_t skip, need = record_bytes(len);
	int rc = sio_ring_room(r, len);

	if (rc < 0)
		return rc;
	skip = to_end(r->tail) < need ? to_end(r->tail) : 0;
	if (skip) {
		sio_write32((volatile void *)record(r, r->tail), htole32(SIO_RING_WRAP));
		r->tail += skip;
	}
	if (len)
		sio_copy_to(record(r, r->tail) + HEADER, data, len);
	sio_write32((volatile void *)record(r, r->tail), htole32(len));
	r->tail += need;
	/* Records, then the tail that announces them. */
	sio_to_fabric_barrier(); /* pairs with the first one in sio_ring_pop() */
	sio_write32(&r->shared->tail, htole32(r->tail));
	/* And the tail before the interrupt: the memory may be write-combined. */
	sio_to_fabric_barrier(); /* pairs with the read of the descriptor before sio_ring_pop() */
	return 0;
}

int sio_ring_is_empty(const struct sio_ring *r)
{
	return r->tail == r->head && le32toh(sio_read32(&r->shared->tail)) == r->head;
}

/* Length of the record at the head, after a jump to the start if there is one. */
static int next_record(struct sio_ring *r, uint32_t *ret_len)
{
	uint32_t len = le32toh(sio_read32((volatile void *)record(r, r->head)));

	if (len == SIO_RING_WRAP) {
		/* A sender announces the jump and a record behind it at once. */
		if (r->head % SIO_RING_BYTES == 0 || to_end(r->head) >= r->tail - r->head)
			return -EPROTO;
		r->head += to_end(r->head);
		len = le32toh(sio_read32((volatile void *)record(r, r->head)));
	}
	if (len > SIO_RING_MESSAGE || record_bytes(len) > r->tail - r->head ||
	    record_bytes(len) > to_end(r->head))
		return -EPROTO;
	*ret_len = len;
	return 0;
}

int sio_ring_pop(struct sio_ring *r, void *data, uint32_t max, uint32_t *ret_len)
{
	uint32_t len;
	int rc;

	if (r->tail == r->head) {
		uint32_t tail = le32toh(sio_read32(&r->shared->tail));

		if (tail == r->head)
			return -EAGAIN;
		if (!possible(tail, r->head))
			return -EPROTO;
		/* The tail, then the records it announces. */
		sio_from_fabric_barrier(); /* pairs with the first one in sio_ring_push() */
		r->tail = tail;
	}
	rc = next_record(r, &len);
	if (rc < 0)
		return rc;
	*ret_len = len;
	if (len > max)
		return -EMSGSIZE;
	if (len)
		sio_copy_from(data, record(r, r->head) + HEADER, len);
	r->head += record_bytes(len);
	/* The record is read before its room is given back: an acquire fence orders that, too. */
	sio_from_fabric_barrier(); /* pairs with the one in sio_ring_room() */
	sio_write32(&r->shared->head, htole32(r->head));
	return (int)len;
}
