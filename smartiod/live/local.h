/* SPDX-License-Identifier: BSD-2-Clause */
/* The topology of a machine that belongs to no cluster. */
#ifndef SMARTIOD_LOCAL_H
#define SMARTIOD_LOCAL_H

#include <stdint.h>

#include "core/err.h"
#include "core/topology.h"

#define LOCAL_NODE 4 /* the smallest node id */

/*
 * One host, named as the machine, with an adapter 0 that leads nowhere: programs of one machine
 * make segments available through an adapter and connect by it, as programs of a cluster do. Its
 * devices are those that the port finds. Free with sio_topology_free().
 */
int local_topology(struct sio_topology **ret, struct sio_err *reterr);
/* Bytes of this machine's memory; 0: not known. */
uint64_t local_ram(void);

#endif
