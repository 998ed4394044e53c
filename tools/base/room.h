/* SPDX-License-Identifier: BSD-2-Clause */
/* Words with the machine room of an emulated cluster, which is asked as its operator would be. */
#ifndef TOOLS_ROOM_H
#define TOOLS_ROOM_H

#include "core/err.h"
#include "core/outage.h"

/* Have the room of the cluster in @dir do what @request says. Return: 0; or why not. */
int tool_room_ask(const char *dir, const char *request, struct sio_err *reterr);
/*
 * Which cluster switches and links between them are out. @t outlives what is returned, which
 * sio_outage_free() frees.
 */
int tool_room_outage(const char *dir, const struct sio_topology *t, struct sio_outage **ret,
		     struct sio_err *reterr);

#endif
