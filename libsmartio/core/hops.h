/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hops without a graph: how many chips are between two ends, within a host or on a path from one
 * host to another. sio_routes_find() counts the same. Pure arithmetic.
 *
 * With a host's IOMMU on, all traffic between two of its devices or adapters goes up to the root,
 * which translates it, and down again (PCI Express Base Specification 4.0, 6.12: requests are
 * redirected upstream, or the IOMMU would not see them); with it off the traffic turns at the first
 * chassis that both are in.
 */
#ifndef CORE_HOPS_H
#define CORE_HOPS_H

#include <limits.h>

#include "core/topology.h"

/* An end in the tree of a host: a device's or an adapter's `in`, or the memory beside the root. */
#define SIO_HOPS_MEMORY UINT_MAX
/* The chassis nearest to both ends that both are in, as `in`; 0: the root. */
unsigned sio_hops_meeting(const struct sio_topo_host *h, unsigned a, unsigned b);
/* Chips between two ends of one host. */
unsigned sio_hops_within(const struct sio_topo_host *h, unsigned a, unsigned b);
/*
 * The same for a real host, by the chassis above each end: those nearest to the root first, as any
 * names that tell them apart, 0 behind the last, SIO_HOPS_ABOVE at most. @b NULL: the memory.
 */
#define SIO_HOPS_ABOVE 8
unsigned sio_hops_above(const uint32_t *a, const uint32_t *b, bool iommu);
/*
 * Chips between an end of one host and an end of another, over @path: @here of them between the one
 * end and its adapter, @there at the other host.
 */
unsigned sio_hops_over(const struct sio_path *path, unsigned here, unsigned there);

#endif
