/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines of a cluster whose hosts have addresses, as those beside emulated hosts do: they get the
 * cluster's own file, so that its rules and quotas hold in them, too.
 */
#ifndef TOOLS_MACHINE_ADDRESSED_H
#define TOOLS_MACHINE_ADDRESSED_H

#include <stdbool.h>
#include <json-c/json.h>

#include "core/err.h"
#include "core/topology.h"

bool machine_is_addressed(const struct sio_topology *t);
/* Checks that the daemon of @h, in a machine, can meet the others by these addresses. */
int machine_check_addresses(const struct sio_topology *t, const struct sio_topo_host *h,
			    struct sio_err *reterr);
/* Makes the list of addresses of emulated hosts, each once. The caller releases it. */
struct json_object *machine_host_addresses(const struct sio_topology *t);

#endif
