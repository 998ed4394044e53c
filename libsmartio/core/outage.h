/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cluster switches without power and trunks between them that are out, and what that leaves of the
 * ways through the fabric. Cables of adapters are not looked at. Pure.
 */
#ifndef CORE_OUTAGE_H
#define CORE_OUTAGE_H

#include "core/topology.h"

struct sio_outage;

/* Everything is in. @t has to stay. Return: 0 and what sio_outage_free() frees; -ENOMEM. */
int sio_outage_new(const struct sio_topology *t, struct sio_outage **ret);
/* NULL is fine. */
void sio_outage_free(struct sio_outage *o);

/*
 * Take the switch, or the trunk, of this number in the topology out, or put it (@in) back. A trunk
 * leads nowhere while a switch at one of its ends is out, and is as it was when that is back.
 * Return: whether that changes anything.
 */
bool sio_outage_switch(struct sio_outage *o, unsigned index, bool in);
bool sio_outage_trunk(struct sio_outage *o, unsigned index, bool in);
bool sio_outage_switch_in(const struct sio_outage *o, unsigned index);
/* It is not out itself; a switch at one of its ends may be. */
bool sio_outage_trunk_in(const struct sio_outage *o, unsigned index);

/* An adapter's port has power at its other end: nothing is said of its cable. */
bool sio_outage_port_in(const struct sio_outage *o, const struct sio_topo_adapter *a);
/* Does a way that the topology has between these two adapters lead through what is in? */
bool sio_outage_joins(const struct sio_outage *o, const struct sio_topo_adapter *a,
		      const struct sio_topo_adapter *b);

#endif
