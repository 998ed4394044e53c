/* SPDX-License-Identifier: BSD-2-Clause */
/* The smartiod of this very machine (smartiod --shim), alone or of a cluster. */
#ifndef TOOLS_LOCAL_H
#define TOOLS_LOCAL_H

#include <stdbool.h>

#include "core/err.h"
#include "core/topology.h"

#define TOOL_LOCAL_STATE "/run/smartiod"

/* Does somebody listen there? */
bool tool_local_runs(void);
/*
 * Who has borrowed this machine's device at @place, as "0000:05:00.0". -ENODEV: it knows none; else
 * why it cannot be asked.
 */
int tool_local_borrowers(const char *place, unsigned *ret);
/*
 * This machine, and behind it the others of its cluster, with the devices that they have now;
 * sio_topology_free().
 */
int tool_local_topology(struct sio_topology **ret, struct sio_err *reterr);

#endif
