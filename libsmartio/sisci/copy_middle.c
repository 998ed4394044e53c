/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of a few lines of a cache, by as few stores as the processor can do it with. While a line
 * that somebody else reads is on its way, stores wait in a queue of some dozens, and when that is
 * full the processor waits, too: it is the number of stores that decides how many messages can be
 * under way.
 */
#include <string.h>

#include "sisci/copy.h"
#include "smartio/io.h"

static __attribute__((noinline)) void copy_rest(uint8_t *to, const uint8_t *from, size_t size)
{
	memcpy(to, from, size);
	sio_to_fabric_barrier();
}

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

/* Up to 32 bytes. */
static __attribute__((noinline)) void copy_small(uint8_t *to, const uint8_t *from, size_t size)
{
	if (size >= 16)
		COPY_ENDS(sixteen, to, from, size);
	else if (size >= 8)
		COPY_ENDS(eight, to, from, size);
	else if (size >= 4)
		COPY_ENDS(four, to, from, size);
	else if (size >= 2)
		COPY_ENDS(two, to, from, size);
	else if (size)
		*to = *from;
	sio_to_fabric_barrier();
}

#define GET(name, at) (*(const name##_part *)(at))
/* In the order that is written here: one line after the other is what readers get soonest. */
#define PUT(name, at, part) (*(volatile name##_part *)(at) = (part))
#define FOUR(bytes) (4 * (size_t)(bytes))
#define LOOP_MOST(bytes) (256 * (size_t)(bytes)) /* from here on memcpy() does as well */

/* NOLINTBEGIN(bugprone-macro-parentheses): attributes and types do not go in them */
/*
 * Up to eight parts all is read before anything is written, from both ends to the middle. Behind
 * that it is four parts at once, the last four where the end wants them.
 */
#define DEFINE_COPY(name, bytes, attributes, less, fence)                                          \
	typedef uint8_t name##_part __attribute__((vector_size(bytes), aligned(1), may_alias));    \
                                                                                                   \
	static inline attributes void name##_four(uint8_t *to, const uint8_t *from)                \
	{                                                                                          \
		name##_part a = GET(name, from), b = GET(name, from + (bytes));                    \
		name##_part c = GET(name, from + 2 * (bytes)), d = GET(name, from + 3 * (bytes));  \
                                                                                                   \
		PUT(name, to, a);                                                                  \
		PUT(name, to + (bytes), b);                                                        \
		PUT(name, to + 2 * (bytes), c);                                                    \
		PUT(name, to + 3 * (bytes), d);                                                    \
	}                                                                                          \
                                                                                                   \
	static attributes void name(uint8_t *to, const uint8_t *from, size_t size)                 \
	{                                                                                          \
		const uint8_t *from_end = from + size;                                             \
		uint8_t *to_end = to + size;                                                       \
                                                                                                   \
		if (__builtin_expect(size < (bytes), 0)) {                                         \
			less(to, from, size);                                                      \
			return;                                                                    \
		}                                                                                  \
		if (size <= 2 * (bytes)) {                                                         \
			name##_part a = GET(name, from), b = GET(name, from_end - (bytes));        \
                                                                                                   \
			if (size > (bytes))                                                        \
				PUT(name, to_end - (bytes), b);                                    \
			PUT(name, to, a);                                                          \
		} else if (size <= FOUR(bytes)) {                                                  \
			name##_part a = GET(name, from), b = GET(name, from + (bytes));            \
			name##_part c = GET(name, from_end - 2 * (bytes));                         \
			name##_part d = GET(name, from_end - (bytes));                             \
                                                                                                   \
			PUT(name, to, a);                                                          \
			PUT(name, to + (bytes), b);                                                \
			PUT(name, to_end - 2 * (bytes), c);                                        \
			PUT(name, to_end - (bytes), d);                                            \
		} else if (size <= LOOP_MOST(bytes)) {                                             \
			for (; from_end - from > (ptrdiff_t)FOUR(bytes);                           \
			     from += FOUR(bytes), to += FOUR(bytes))                               \
				name##_four(to, from);                                             \
			name##_four(to_end - FOUR(bytes), from_end - FOUR(bytes));                 \
		} else {                                                                           \
			copy_rest(to, from, size);                                                 \
			return;                                                                    \
		}                                                                                  \
		fence();                                                                           \
	}

/* NOLINTEND(bugprone-macro-parentheses) */

DEFINE_COPY(by_16, 16, , copy_small, sio_to_fabric_barrier)

#ifdef __x86_64__
#define ATTRIBUTES_32 __attribute__((target("avx2")))
#define ATTRIBUTES_64 __attribute__((target("avx512f,avx512vl,avx512bw")))
/* As sio_to_fabric_barrier(), which compilers do not take into functions for other processors. */
DEFINE_COPY(by_32, 32, ATTRIBUTES_32, copy_small, __builtin_ia32_sfence)
DEFINE_COPY(by_64, 64, ATTRIBUTES_64, by_32, __builtin_ia32_sfence)
#endif

sio_copy_fn *sio_copy_middle = by_16;

sio_copy_fn *sio_copy_by(unsigned bytes)
{
	if (bytes == 16)
		return by_16;
#ifdef __x86_64__
	__builtin_cpu_init();
	if (bytes == 32 && __builtin_cpu_supports("avx2"))
		return by_32;
	if (bytes == 64 && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
		return by_64;
#endif
	return NULL;
}

#ifdef __x86_64__
/* The widest registers make some of Intel's processors slower as a whole. */
static __attribute__((constructor)) void choose_width(void)
{
	sio_copy_fn *widest = sio_copy_by(64), *wide = sio_copy_by(32);

	if (widest && __builtin_cpu_is("amd"))
		sio_copy_middle = widest;
	else if (wide)
		sio_copy_middle = wide;
}
#endif
