/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes through the fabric, with some of its links down: between adapters, and between devices and
 * hosts. Pure logic: the links that are down are a parameter, and every route is computed again
 * from them.
 *
 * A route between hosts leaves the one through an adapter, crosses cables and cluster switches, and
 * enters the other through one of its adapters: no host and no device forwards anything to a third.
 * A route within a host is the shortest in its tree, so two devices in a chassis meet there, below
 * the root; but with the host's IOMMU on, all traffic goes by way of the root (core/hops.h).
 */
#ifndef CORE_ROUTE_H
#define CORE_ROUTE_H

#include "core/graph.h"

struct sio_routes {
	const struct sio_graph *graph;
	bool *out;	   /* by number of a link */
	uint8_t *distance; /* trunks between each two switches */
};

struct sio_route {
	/*
	 * Adapters that the route passes, indices at both hosts; SIO_GRAPH_NONE: it stays within
	 * one host.
	 */
	unsigned adapter, peer_adapter;
	unsigned hops; /* chips between the ends: chassis, root, adapters, switches */
};

/* Links of the longest possible route: two deepest trees, up and down, and all switches. */
#define SIO_ROUTE_LINKS (SIO_MAX_SWITCHES + 4 * SIO_MAX_CHASSIS + 8)

/*
 * All links are up. @g must exist as long as this. Return: 0 and what sio_routes_free() frees;
 * -ENOMEM.
 */
int sio_routes_new(const struct sio_graph *g, struct sio_routes **ret);
void sio_routes_free(struct sio_routes *r);
/* From now on the links whose element of @out (g->n_links of them) is set are down. */
void sio_routes_set(struct sio_routes *r, const bool *out);

/*
 * Finds the route of fewest hops between two nodes that are hosts or devices; of equal ones that
 * with the lowest adapter at @from, then at @to. Return: 0; -EHOSTUNREACH; -EINVAL: a node is
 * neither.
 */
int sio_routes_find(const struct sio_routes *r, unsigned from, unsigned to, struct sio_route *ret);
/*
 * Lists the links of a route that sio_routes_find() found for these ends, in order; of parallel
 * trunks the first. Return: how many were written to @link, which has room for SIO_ROUTE_LINKS.
 */
unsigned sio_routes_links(const struct sio_routes *r, unsigned from, unsigned to,
			  const struct sio_route *route, unsigned *link);

#endif
