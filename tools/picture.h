/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster drawn with characters: switches, links, hosts and their devices. */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/topology.h"

/* What is known of the running cluster; NULL functions draw the topology alone. */
struct tool_picture_live {
	void *ctx;
	bool (*host_up)(void *ctx, uint32_t node);
	/* A few words about a device ("lent to manager, client1"), or NULL. */
	const char *(*device_note)(void *ctx, uint32_t fdid);
};

/* Draw to @out. Return: 0; -EIO: @out failed. */
int tool_picture(FILE *out, const struct sio_topology *t, const struct tool_picture_live *live);

#endif
