/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A data-interrupt ring: one sender, one receiver, in the receiver's memory. The sender writes
 * messages and tail, the receiver head. Both are shared with another program that may be hostile:
 * each is read once and checked. Logic in ring.c; data path, no system call.
 *
 * Layout: struct sio_ring_head, then SIO_RING_BYTES of records {le32 length, bytes, padding to 8}.
 * A record never wraps: a length of SIO_RING_WRAP means "go on at the start". head and tail are
 * byte positions that only grow (mod 2^32).
 */
#ifndef WIRE_RING_H
#define WIRE_RING_H

#include <stdint.h>

#define SIO_RING_BYTES 65536u /* of records; a power of 2, as positions wrap at 2^32 */
#define SIO_RING_TOTAL (4096u + SIO_RING_BYTES) /* of memory */
#define SIO_RING_MESSAGE 8192u			/* longest message */
#define SIO_RING_WRAP 0xffffffffu

struct sio_ring_head {
	volatile uint32_t tail; /* sender's */
	uint32_t pad0[31];
	volatile uint32_t head; /* receiver's */
	uint32_t pad1[31];
};

/* The private half of each end. */
struct sio_ring {
	volatile struct sio_ring_head *shared;
	uint32_t tail, head; /* ours, and what we last saw of the other's */
};

void sio_ring_init(struct sio_ring *r, volatile void *memory);
/*
 * Return: 0; -ENOSPC: full, nothing was written; -EMSGSIZE; -EPROTO: the other end's position is
 * impossible.
 */
int sio_ring_push(struct sio_ring *r, const void *data, uint32_t len);
/*
 * Would a push of @len bytes succeed now? Then it will until it is made. Return: as
 * sio_ring_push().
 */
int sio_ring_room(struct sio_ring *r, uint32_t len);
/* For the receiver: nothing is left to be popped. If the sender is gone, this is final. */
int sio_ring_is_empty(const struct sio_ring *r);
/*
 * Return: length; -EAGAIN: empty; -EMSGSIZE: longer than @max, and *ret_len has the length (the
 * message stays); -EPROTO.
 */
int sio_ring_pop(struct sio_ring *r, void *data, uint32_t max, uint32_t *ret_len);

#endif
