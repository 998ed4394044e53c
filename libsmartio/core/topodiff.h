/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The differences between two descriptions of a cluster: the file that is in force and a new one.
 * Pure logic; the caller decides which differences can take effect without a restart.
 */
#ifndef CORE_TOPODIFF_H
#define CORE_TOPODIFF_H

#include "core/topology.h"

enum sio_topo_what {
	SIO_TOPO_CLUSTER,
	SIO_TOPO_HOST,
	SIO_TOPO_ADAPTER,
	SIO_TOPO_CHASSIS,
	SIO_TOPO_DEVICE,
	SIO_TOPO_SWITCH,
	SIO_TOPO_TRUNK,
	SIO_TOPO_ACCESS, /* access but for its rules */
	SIO_TOPO_RULE,
	SIO_TOPO_QUOTA,
	SIO_TOPO_WHATS
};
enum sio_topo_how { SIO_TOPO_ADDED, SIO_TOPO_REMOVED, SIO_TOPO_CHANGED };

#define SIO_TOPO_CHANGE_TEXT 200

struct sio_topo_change {
	enum sio_topo_what what;
	enum sio_topo_how how;
	char host[SIO_NAME_LEN];	 /* that has it, or is it; "": none */
	char key[24];			 /* CHANGED: of the file, what of it; "": several */
	char text[SIO_TOPO_CHANGE_TEXT]; /* the whole of it: "host 'c' is new" */
};

typedef void sio_topo_report(void *ctx, const struct sio_topo_change *c);

/*
 * Calls @tell for each difference. Hosts, devices, chassis and switches are the same if their names
 * are (a device's: within its host), adapters if their numbers are; rules if they have the same
 * meaning, in whichever line. Nothing is reported if both describe the same cluster.
 */
void sio_topology_diff(const struct sio_topology *old, const struct sio_topology *new,
		       sio_topo_report *tell, void *ctx);
/* Is it a difference of access rules or quotas, which daemons look up for every request? */
static inline bool sio_topo_is_policy(enum sio_topo_what what)
{
	return what == SIO_TOPO_ACCESS || what == SIO_TOPO_RULE || what == SIO_TOPO_QUOTA;
}
/*
 * Is it a difference of what leads where: a switch, a link between two, or which port, switch or
 * host an adapter's cable leads to, and how wide and fast it is? Nothing else of the adapter's.
 */
bool sio_topology_is_cable(const struct sio_topo_change *c);
/* Does an adapter come or go, or is it another one, wherever its cable leads? */
bool sio_topology_is_adapter(const struct sio_topo_change *c);
/*
 * Does a chassis come or go, or has it another link, other ports, or another aperture? Not one that
 * is behind another chassis than before: what is in it would have to be pulled out.
 */
bool sio_topology_is_chassis(const struct sio_topo_change *c);

#endif
