/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies into exact multicast groups, which no store of this CPU reaches. */
#ifndef SISCI_GROUP_H
#define SISCI_GROUP_H

#include "sisci/segment/segment.h"

/*
 * Write @size bytes to each member, @at being their place in the map's pages, and wait until they
 * are there. Threads take turns. Return: 0; SCI_ERR_TRANSFER_FAILED: not every member has them, and
 * sequences of the map show it; other errors: nobody has.
 */
int sio_group_copy(struct sio_mapping *m, const void *from, const uint8_t *at, size_t size,
		   struct sio_err *err);

#endif
