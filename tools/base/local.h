/* SPDX-License-Identifier: BSD-2-Clause */
/* The smartiod of this machine itself (smartiod --shim), alone or of a cluster. */
#ifndef TOOLS_LOCAL_H
#define TOOLS_LOCAL_H

#include <stdbool.h>

#include "core/err.h"
#include "core/topology.h"

#define TOOL_LOCAL_STATE "/run/smartiod"

/* Does a daemon listen there? */
bool tool_local_runs(void);
/*
 * Counts the borrowers of this machine's device at @place, as "0000:05:00.0". -ENODEV: no such
 * device; otherwise the reason why the daemon cannot be asked.
 */
int tool_local_borrowers(const char *place, unsigned *ret);
/*
 * The topology of this machine, and behind it the others of its cluster, with the devices that they
 * have now; sio_topology_free().
 */
int tool_local_topology(struct sio_topology **ret, struct sio_err *reterr);

#endif
