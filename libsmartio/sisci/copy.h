/* SPDX-License-Identifier: BSD-2-Clause */
/* What copies by this CPU have in common. */
#ifndef SISCI_COPY_H
#define SISCI_COPY_H

#include "core/choice.h"
#include "sisci/segment.h"

/*
 * The map of a handle, with a reference, and the address in it of [@offset, @offset + @size), for
 * writing or reading. -ERANGE, -EACCES, -ENETDOWN; lost: as sio_object_fail_lost().
 */
int sio_copy_range(struct sio_library *lib, sci_map_t handle, size_t offset, size_t size,
		   bool write, struct sio_mapping **ret, uint8_t **ret_at, struct sio_err *err);

/* What is seen of a map when a copy begins; and what became of the copy until now. */
struct sio_copy_watch {
	uint32_t seen[SIO_HANDLE_WORDS], cuts;
};
void sio_copy_begin(const struct sio_mapping *m, struct sio_copy_watch *ret);
sci_sequence_status_t sio_copy_judge(const struct sio_mapping *m,
				     const struct sio_copy_watch *watch);

#define SIO_COPY_LARGE                                                                             \
	(512u << 10) /* from here on a string move beats memcpy(), where it is fast */

/* SCIMemCpy(), with all that may be asked for, and all errors (memcpy.c has the short way). */
void sio_copy_slowly(sci_sequence_t sequence, void *memory, sci_map_t map, size_t offset,
		     size_t size, unsigned flags, sci_error_t *error);
/* SIO_COPY_LARGE bytes and more, in the way that is best for so many. */
void sio_copy_large(volatile void *to, const volatile void *from, size_t size);

/* ---- copy_middle.c: any number of bytes, with the fence behind ---- */

typedef void sio_copy_fn(uint8_t *to, const uint8_t *from, size_t size);
/* By the widest registers that are well used here. */
extern sio_copy_fn *sio_copy_middle __attribute__((visibility("hidden")));
/* By registers of 16, 32 or 64 bytes; NULL: this processor has none. */
sio_copy_fn *sio_copy_by(unsigned bytes);

/* ---- copy_out.c: to a map; all is there before what is written after ---- */

#define SIO_COPY_CHOSEN 512u /* bytes; from here on there is a choice of ways */
#define SIO_COPY_PLACES 64u  /* that are told apart, if none meet by their hash */
#define SIO_COPY_SIZES 12u   /* powers of two from SIO_COPY_CHOSEN on, to SIO_COPY_PIECE */
#define SIO_COPY_PIECE ((size_t)SIO_COPY_CHOSEN << (SIO_COPY_SIZES - 1)) /* of a longer copy */
#define SIO_COPY_WHOLE (2 * SIO_COPY_PIECE) /* from here on copies are compared as a whole */
#define SIO_COPY_WHOLE_SIZES 3u		    /* powers of two */

extern struct sio_choice sio_copy_choices[SIO_COPY_PLACES][SIO_COPY_SIZES]
	__attribute__((visibility("hidden")));

/* @n: not 0. */
static inline unsigned sio_copy_log2(size_t n)
{
	return 63u - (unsigned)__builtin_clzll(n);
}

/* Of a copy of @size bytes: its power of two, from SIO_COPY_CHOSEN on. */
static inline unsigned sio_copy_kind(size_t size)
{
	unsigned kind = sio_copy_log2(size / SIO_COPY_CHOSEN);

	return kind < SIO_COPY_SIZES ? kind : SIO_COPY_SIZES - 1;
}

/* Of this thread. */
extern __thread uint8_t sio_copy_count
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* 2 MiB of addresses share one. */
static inline unsigned sio_copy_place(const volatile void *to)
{
	_Static_assert(SIO_COPY_PLACES == 1u << (64 - 58), "a hash of six bits");
	return (unsigned)(((uintptr_t)to >> 21) * 0x9e3779b97f4a7c15u >> 58);
}

/* By which way @size bytes are best written at @to: a place and a power of two share one. */
static inline struct sio_choice *sio_copy_choice(const volatile void *to, size_t size)
{
	return &sio_copy_choices[sio_copy_place(to)][sio_copy_kind(size)];
}

/* How many copies are to be counted with this one: short ones all at once, now and then. */
static inline uint32_t sio_copy_counted(size_t size)
{
	if (size >= SIO_COPY_LARGE)
		return 1;
	return ++sio_copy_count % 16 ? 0 : 16;
}

void sio_copy_out(volatile void *to, const void *from, size_t size);
/*
 * Of less than two pieces, when it is not the plain way that is due. @due: a trial's call, if
 * nobody else is at it.
 */
void sio_copy_out_chosen(struct sio_choice *c, bool due, volatile void *to, const void *from,
			 size_t size);

#endif
