/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cluster switches without power and trunks between them that are down, and which paths through the
 * fabric remain. Cables of adapters are not considered. Pure logic.
 */
#ifndef CORE_OUTAGE_H
#define CORE_OUTAGE_H

#include <limits.h>

#include "core/topology.h"

struct sio_outage;

/*
 * Everything is up. @t must exist as long as this. Return: 0 and what sio_outage_free() frees;
 * -ENOMEM.
 */
int sio_outage_new(const struct sio_topology *t, struct sio_outage **ret);
/* NULL is fine. */
void sio_outage_free(struct sio_outage *o);

/*
 * The topology of @before becomes that of @o: what was out there is out here, too, where @o has it.
 * From now on what @o's topology holds is in @t, where the caller moves it.
 */
void sio_outage_follow(struct sio_outage *o, const struct sio_outage *before,
		       const struct sio_topology *t);

/*
 * Takes the switch, or the trunk, of this number in the topology down, or up again (@in). A trunk
 * leads nowhere while a switch at one of its ends is down, and has its former state when that is up
 * again.
 * Return: whether that changes anything.
 */
bool sio_outage_switch(struct sio_outage *o, unsigned index, bool in);
bool sio_outage_trunk(struct sio_outage *o, unsigned index, bool in);
bool sio_outage_switch_in(const struct sio_outage *o, unsigned index);
/* Is the trunk itself up? A switch at one of its ends may be down. */
bool sio_outage_trunk_in(const struct sio_outage *o, unsigned index);

/*
 * Does the switch at the other end of an adapter's port have power? The state of the cable is not
 * considered.
 */
bool sio_outage_port_in(const struct sio_outage *o, const struct sio_topo_adapter *a);
/* Is there a path of the topology between these two adapters, all parts of which are up? */
bool sio_outage_joins(const struct sio_outage *o, const struct sio_topo_adapter *a,
		      const struct sio_topo_adapter *b);

/*
 * The first link of the shortest path from switch @from to switch @to, of several the lowest: its
 * number; SIO_OUTAGE_NONE: there is no path.
 */
#define SIO_OUTAGE_NONE UINT_MAX
unsigned sio_outage_next(const struct sio_outage *o, unsigned from, unsigned to);

/* Links between two adapters that are connected: sio_outage_joins(). */
unsigned sio_outage_hops(const struct sio_outage *o, const struct sio_topo_adapter *a,
			 const struct sio_topo_adapter *b);

#endif
