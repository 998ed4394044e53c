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

#endif
