/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster file for the daemons in virtual machines, made from the machines of a topology. */
#ifndef TOOLS_MACHINE_CONFIG_H
#define TOOLS_MACHINE_CONFIG_H

#include <limits.h>
#include <stddef.h>
#include <json-c/json.h>

#include "core/err.h"
#include "core/topology.h"

/* The PCI slots of a machine's bus 0. */
enum {
	/* The file with the memory of all mapped machines, then pools, as functions; more below. */
	MACHINE_SLOT_MEMORY = 0x07,
	MACHINE_SLOT_DRIVE = 0x08,   /* the file that is its drive; then devices of the topology */
	MACHINE_SLOT_ADAPTER = 0x10, /* at most SIO_MAX_ADAPTERS */
	MACHINE_SLOT_AGENT = 0x14,   /* the network to who runs the machine */
	MACHINE_SLOT_PEER = 0x15,    /* one network to each other machine */
	MACHINE_SLOT_END = 0x1f,     /* q35 has things of its own there */
};
#define MACHINE_MAX (MACHINE_SLOT_END - MACHINE_SLOT_PEER + 1)
#define MACHINE_POOLS (MACHINE_SLOT_MEMORY * 8 - 1) /* at most */
#define MACHINE_PORT 7470			    /* of smartiod */

/*
 * The IP address of the machine of that index, in the caller's memory: its own, or one that we give
 * it.
 */
#define MACHINE_ADDRESS_TEXT 48
const char *machine_address(const struct sio_topology *t, unsigned index,
			    char text[MACHINE_ADDRESS_TEXT]);

/* Makes the cluster's file for the daemons: the machines as real hosts. The caller releases it. */
struct json_object *machine_cluster(const struct sio_topology *t);
/* What the machines' daemons get. */
struct machine_files {
	char cluster[PATH_MAX]; /* the cluster's file */
	char keys[PATH_MAX];	/* the folder with all keys */
};

/*
 * Finds these files in @dir, the state folder of the cluster @t, or makes them: "machine.yaml", of a
 * cluster whose hosts have no addresses; "machine.keys", where there are no emulated hosts that have
 * keys already. They live as long as the emulated cluster.
 */
int machine_config(const char *dir, const struct sio_topology *t, struct machine_files *ret,
		   struct sio_err *reterr);

#endif
