/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes through the fabric, with some of its links out: between adapters, and between devices and
 * hosts. Pure: what is out is told, and all is computed anew.
 *
 * A route between hosts leaves the one through an adapter, crosses cables and cluster switches, and
 * enters the other through one of its own: no host and no device passes anything on to a third.
 * One within a host is the shortest in its tree, so two devices in a chassis meet there, below the
 * root.
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
	/* Those passed, indices at both hosts; SIO_GRAPH_NONE: it stays within one host. */
	unsigned adapter, peer_adapter;
	unsigned hops; /* chips between the ends: chassis, root, adapters, switches */
};

/* Links of the longest route: two deepest trees and as many switches as there can be. */
#define SIO_ROUTE_LINKS (SIO_MAX_SWITCHES + 2 * SIO_MAX_CHASSIS + 6)

/* All links are in. @g has to stay. Return: 0 and what sio_routes_free() frees; -ENOMEM. */
int sio_routes_new(const struct sio_graph *g, struct sio_routes **ret);
void sio_routes_free(struct sio_routes *r);
/* From now on the links whose element of @out (g->n_links of them) is set are out. */
void sio_routes_set(struct sio_routes *r, const bool *out);

/*
 * Paths between two hosts (indices in the topology), as sio_topology_paths(): fewest hops first,
 * then lowest adapters; at most @max are written. An adapter whose link to its own host is out has
 * none. Return: how many there are.
 */
unsigned sio_routes_paths(const struct sio_routes *r, unsigned from, unsigned to,
			  struct sio_path *path, unsigned max);
/*
 * The route of fewest hops between two nodes that are hosts or devices; of equal ones that with the
 * lowest adapter at @from, then at @to. Return: 0; -EHOSTUNREACH; -EINVAL: it is neither.
 */
int sio_routes_find(const struct sio_routes *r, unsigned from, unsigned to, struct sio_route *ret);
/* The same, through adapter @adapter of @from's host: out of it, even to the own host: none. */
int sio_routes_find_via(const struct sio_routes *r, unsigned from, unsigned adapter, unsigned to,
			struct sio_route *ret);
/*
 * The links of a route that sio_routes_find() gave for these ends, in order; of trunks side by side
 * the first. Return: how many were written to @link, which holds SIO_ROUTE_LINKS.
 */
unsigned sio_routes_links(const struct sio_routes *r, unsigned from, unsigned to,
			  const struct sio_route *route, unsigned *link);

#endif
