/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_TOPOLOGY_PATH_H
#define TESTS_TOPOLOGY_PATH_H

#include <errno.h>

#include "core/topology.h"

/* The first path through local adapter @adapter. Return: 0; -EHOSTUNREACH. */
static inline int topology_path(const struct sio_topology *t, uint32_t from, unsigned adapter,
				uint32_t to, struct sio_path *ret)
{
	struct sio_path all[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned n = sio_topology_paths(t, from, to, all, SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS);

	for (unsigned i = 0; i < n; i++) {
		if (all[i].adapter == adapter) {
			*ret = all[i];
			return 0;
		}
	}
	return -EHOSTUNREACH;
}

#endif
