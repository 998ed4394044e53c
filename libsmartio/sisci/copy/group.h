/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies into exact multicast groups, which no store of this CPU reaches. */
#ifndef SISCI_GROUP_H
#define SISCI_GROUP_H

#include "sisci/segment/segment.h"

/*
 * Writes @size bytes to each member, where @at is their place in the map's pages, and waits until
 * they have arrived. Threads take turns. Return: 0; SCI_ERR_TRANSFER_FAILED: not every member has
 * the bytes, and sequences of the map report it; other errors: no member has them.
 */
int sio_group_copy(struct sio_mapping *m, const void *from, const uint8_t *at, size_t size,
		   struct sio_err *err);

#endif
