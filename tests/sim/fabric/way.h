/* SPDX-License-Identifier: BSD-2-Clause */
/* The path between a requester and what it reaches, by the topology. Pure logic. */
#ifndef SIM_FABRIC_WAY_H
#define SIM_FABRIC_WAY_H

#include "core/topology.h"
#include "fabric/timing.h"

/* Processors or memory of a host (in: SIO_HOPS_MEMORY), or a device there or its registers. */
struct fabric_end {
	unsigned host, in;
};

/*
 * The path that the daemons choose, while all is up: by the fewest chips. @t NULL: a test's, where
 * nothing takes time.
 */
void fabric_find_way(const struct sio_topology *t, const struct fabric_end *requester,
		     const struct fabric_end *target, struct fabric_way *w);

#endif
