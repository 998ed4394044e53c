/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Distances: how far a device or a chassis is from the memory and the adapters of its host. For
 * emulated hosts they follow from the topology, which every daemon reads. For a real host its own
 * daemon reads them from sysfs and sends them to the other daemons.
 */
#ifndef SMARTIOD_HOPS_H
#define SMARTIOD_HOPS_H

#include "smartiod/base/state.h"

/* What is in chassis @in of emulated host @h (`in` of the topology), or SIO_HOPS_MEMORY. */
struct smartiod_hops smartiod_hops_of(const struct sio_topo_host *h, unsigned in);
/* What is below switches @above of this host, a real one; NULL: its memory. */
struct smartiod_hops smartiod_hops_above(const struct smartiod *d, const uint32_t *above,
					 bool iommu);
/* As messages have them. */
void smartiod_hops_encode(const struct smartiod_hops *hops, uint8_t ret[SIO_WIRE_HOPS]);
struct smartiod_hops smartiod_hops_decode(const uint8_t hops[SIO_WIRE_HOPS]);

#endif
