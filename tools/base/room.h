/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the machine room of an emulated cluster, which has the role of its operator. */
#ifndef TOOLS_ROOM_H
#define TOOLS_ROOM_H

#include "core/err.h"
#include "core/outage.h"

/* Sends @request to the room of the cluster in @dir. Return: 0; or the reason why not. */
int tool_room_ask(const char *dir, const char *request, struct sio_err *reterr);
/*
 * Which cluster switches and links between them are down. @t outlives what is returned, which
 * sio_outage_free() frees.
 */
int tool_room_outage(const char *dir, const struct sio_topology *t, struct sio_outage **ret,
		     struct sio_err *reterr);

#endif
