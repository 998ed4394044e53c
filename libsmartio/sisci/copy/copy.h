/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files that copy by the CPU. */
#ifndef SISCI_COPY_H
#define SISCI_COPY_H

#include "sisci/segment/segment.h"
#include "smartio/io.h"

extern const struct sio_kind_ops sio_block_transfer_kind;

/*
 * Finds the map of a handle, with a reference, and the address in it of [@offset, @offset + @size),
 * for writing or reading. -ERANGE, -EACCES, -ENETDOWN; lost: as sio_object_fail_lost().
 */
int sio_copy_range(struct sio_library *lib, sci_map_t handle, size_t offset, size_t size,
		   bool write, struct sio_mapping **ret, uint8_t **ret_at, struct sio_err *err);

/* The state of a map when a copy begins, and what has become of the copy since. */
struct sio_copy_watch {
	uint32_t seen[SIO_HANDLE_WORDS], cuts;
};
void sio_copy_begin(const struct sio_mapping *m, struct sio_copy_watch *ret);
sci_sequence_status_t sio_copy_judge(const struct sio_mapping *m,
				     const struct sio_copy_watch *watch);

/* SCIMemCpy() with all flags and all errors (memcpy.c has the fast path). */
void sio_copy_slowly(sci_sequence_t sequence, void *memory, sci_map_t map, size_t offset,
		     size_t size, unsigned flags, sci_error_t *error);

/* ---- words.c ---- */

#define SIO_COPY_WORD sizeof(uint64_t)

/*
 * Copies by the widest aligned stores or loads of up to SIO_COPY_WORD bytes, in order of addresses:
 * each byte is touched once, and what fits into one access is one transaction.
 */
void sio_copy_words_out(volatile void *to, const void *from, size_t size);
void sio_copy_words_in(void *to, const volatile void *from, size_t size);

/*
 * Copies to and from a map, without the barrier that orders the copy. @words: the map is a BAR's. A
 * short copy may be a flag or a counter that is polled: memcpy() would store and load most of it
 * twice.
 */
static inline void sio_copy_out(volatile void *to, const void *from, size_t size, bool words)
{
	if (words || size <= SIO_COPY_WORD)
		sio_copy_words_out(to, from, size);
	else
		sio_copy_to(to, from, size);
}

static inline void sio_copy_in(void *to, const volatile void *from, size_t size, bool words)
{
	if (words || size <= SIO_COPY_WORD)
		sio_copy_words_in(to, from, size);
	else
		sio_copy_from(to, from, size);
}

#endif
