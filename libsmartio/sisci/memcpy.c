/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCIMemCpy() where nothing is wrong and nothing unusual is asked for. A copy of 64 bytes takes
 * 2 ns, so nothing is locked, counted or called here; whatever is not plain goes to copy.c, which
 * tells what is wrong, too. All calls are the last thing done, so that no frame is needed.
 */
#include <string.h>

#include "session/quick.h"
#include "sisci/copy.h"
#include "sisci/error.h"
#include "smartio/io.h"

#define SMALL 128 /* from here on a call of memcpy() costs less than what it does better */

typedef uint8_t sixteen __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t eight __attribute__((aligned(1), may_alias));
typedef uint32_t four __attribute__((aligned(1), may_alias));
typedef uint16_t two __attribute__((aligned(1), may_alias));

/*
 * All is read before anything is written, in pieces that overlap. What is as long as a type is one
 * store, as registers want it.
 */
#define COPY_ENDS(type, to, from, size)                                                            \
	do {                                                                                       \
		type first = *(const type *)(from);                                                \
		type last = *(const type *)((from) + (size) - sizeof(type));                       \
		*(type *)(to) = first;                                                             \
		if ((size) != sizeof(type))                                                        \
			*(type *)((to) + (size) - sizeof(type)) = last;                            \
	} while (0)

static inline void copy_16_to_128(uint8_t *to, const uint8_t *from, size_t size)
{
	const uint8_t *from_end = from + size;
	uint8_t *to_end = to + size;
	sixteen a, b, c, d, e, f, g, h;

	if (size <= 32) {
		COPY_ENDS(sixteen, to, from, size);
		return;
	}
	a = *(const sixteen *)from;
	b = *(const sixteen *)(from + 16);
	c = *(const sixteen *)(from_end - 32);
	d = *(const sixteen *)(from_end - 16);
	if (size > 64) {
		e = *(const sixteen *)(from + 32);
		f = *(const sixteen *)(from + 48);
		g = *(const sixteen *)(from_end - 64);
		h = *(const sixteen *)(from_end - 48);
		*(sixteen *)(to + 32) = e;
		*(sixteen *)(to + 48) = f;
		*(sixteen *)(to_end - 64) = g;
		*(sixteen *)(to_end - 48) = h;
	}
	*(sixteen *)to = a;
	*(sixteen *)(to + 16) = b;
	*(sixteen *)(to_end - 32) = c;
	*(sixteen *)(to_end - 16) = d;
}

/* 1 to SMALL bytes. */
static inline void copy_small(uint8_t *to, const uint8_t *from, size_t size)
{
	if (size >= 16)
		copy_16_to_128(to, from, size);
	else if (size >= 8)
		COPY_ENDS(eight, to, from, size);
	else if (size >= 4)
		COPY_ENDS(four, to, from, size);
	else if (size >= 2)
		COPY_ENDS(two, to, from, size);
	else
		*to = *from;
}

static __attribute__((noinline)) void copy_more_out(uint8_t *to, const uint8_t *from, size_t size)
{
	if (size >= SIO_COPY_LARGE) {
		sio_copy_out(to, from, size);
		return;
	}
	if (size >= SIO_COPY_CHOSEN) {
		struct sio_choice *c = sio_copy_choice(to, size);
		bool due = !sio_choice_pausing(c, sio_copy_counted(size));

		if (due || sio_choice_way(c)) {
			sio_copy_out_chosen(c, due, to, from, size);
			return;
		}
	}
	memcpy(to, from, size);
	sio_to_fabric_barrier();
}

static __attribute__((noinline)) void copy_more(uint8_t *to, const uint8_t *from, size_t size)
{
	if (size < SIO_COPY_LARGE)
		memcpy(to, from, size);
	else
		sio_copy_large(to, from, size);
	sio_to_fabric_barrier();
}

static bool is_sequence(sci_sequence_t sequence)
{
	uint8_t *at;
	size_t bytes;

	return sio_quick_get((uintptr_t)sequence, &at, &bytes) && bytes == 0;
}

/* Return: it is done. No bytes are no case of ours: size - 1 is huge then. */
static inline __attribute__((always_inline)) bool copy_plainly(void *memory, sci_map_t map,
							       size_t offset, size_t size,
							       unsigned flags, sci_error_t *error)
{
	uint8_t *at, *to, *from;
	size_t bytes;

	if (!memory || flags & ~(unsigned)SCI_FLAG_BLOCK_READ ||
	    !sio_quick_get((uintptr_t)map, &at, &bytes))
		return false;
	if (__builtin_expect(offset >= bytes || size - 1 >= bytes - offset, 0))
		return false;
	if (error)
		*error = SCI_ERR_OK;
	sio_error_forget();
	to = flags ? memory : at + offset;
	from = flags ? at + offset : memory;
	if (size > SMALL) {
		if (flags)
			copy_more(to, from, size);
		else
			copy_more_out(to, from, size);
		return true;
	}
	copy_small(to, from, size);
	sio_to_fabric_barrier();
	return true;
}

/* Apart, so that who gives none does not pay for the registers. */
static __attribute__((noinline)) void copy_in_sequence(sci_sequence_t sequence, void *memory,
						       sci_map_t map, size_t offset, size_t size,
						       unsigned flags, sci_error_t *error)
{
	if (!is_sequence(sequence) || !copy_plainly(memory, map, offset, size, flags, error))
		sio_copy_slowly(sequence, memory, map, offset, size, flags, error);
}

void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap, size_t remoteOffset,
	       size_t size, unsigned int flags, sci_error_t *error)
{
	if (sequence)
		copy_in_sequence(sequence, memAddr, remoteMap, remoteOffset, size, flags, error);
	else if (!copy_plainly(memAddr, remoteMap, remoteOffset, size, flags, error))
		sio_copy_slowly(NULL, memAddr, remoteMap, remoteOffset, size, flags, error);
}
