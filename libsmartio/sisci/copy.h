/* SPDX-License-Identifier: BSD-2-Clause */
/* What copies by this CPU have in common. */
#ifndef SISCI_COPY_H
#define SISCI_COPY_H

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

#endif
