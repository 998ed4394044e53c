/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry: devices of the cluster, ours and other hosts'. */
#ifndef SMARTIOD_DEVICE_H
#define SMARTIOD_DEVICE_H

#include "core/devstate.h"
#include "core/ledger.h"
#include "smartiod/base/session.h"

/* What the cluster counts resets of a device by: even. The port counts them, and outlives us. */
static inline uint32_t smartiod_generation(uint64_t of_port)
{
	return (uint32_t)of_port * 2;
}

struct smartiod_lent;

/* A device of the cluster, ours or another host's: of the topology, or found at a real port. */
struct smartiod_device {
	struct smartiod_tree_node by_fdid;
	uint32_t fdid, node;
	const struct sio_topo_device *topo;
	struct sio_topo_device found; /* topo leads here if the topology does not know it */
	bool present;		      /* its host is up and offers it */
	bool fresh; /* ours: nobody had it since it came; borrows of before are of another */
	uint32_t generation; /* smartiod_generation() of the port's; goes up when queues are gone */
	struct sio_rep_dev_list info; /* what DEV_LIST tells, but for adapter */
	/* Ours only. */
	struct sio_evt_device port;
	struct sio_ledger ledger;
	enum sio_dev_state state;   /* reset.c */
	struct smartiod_lent *lent; /* lend.h: behind it, in the same memory */
};

struct smartiod_device *smartiod_device_find(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr);
/* The same, also if it is not there now; NULL: no device of the cluster has that id. */
struct smartiod_device *smartiod_device_known(struct smartiod *d, uint32_t fdid);
/* A device of this host, for a request to the lender. */
struct smartiod_device *smartiod_device_ours(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr);
/* The device of ours that the port calls @id and has opened; NULL. */
struct smartiod_device *smartiod_device_by_port(struct smartiod *d, uint64_t id);
/* What others are told of it, from what the port said. */
void smartiod_device_describe(struct smartiod *d, struct smartiod_device *dev);
/* Open a device that came to the port. */
void smartiod_device_look(struct smartiod *d, uint64_t id);
/* Tell all peers how it is now. */
void smartiod_device_announce(struct smartiod *d, struct smartiod_device *dev);
void smartiod_device_info(struct smartiod *d, struct smartiod_device *dev,
			  struct sio_rep_dev_list *ret);

/* One that we know of now: NULL, no memory. It is not in the table yet. */
struct smartiod_device *smartiod_device_new(struct smartiod *d, uint32_t fdid,
					    const struct sio_topo_device *topo);
/* One that the topology does not know, by a name to be given. NULL: the log says why. */
struct smartiod_device *smartiod_device_found(struct smartiod *d, const struct sio_topo_host *host,
					      uint32_t fdid);
/* Its name is its place's, its type that of its class. */
void smartiod_device_name(struct smartiod *d, struct smartiod_device *dev, uint32_t bdf,
			  uint32_t class_code);
/* List and open ours at the port: device_start.c. */
void smartiod_devices_start(struct smartiod *d);
/* The port's id of our device @fdid; 0: not ours. */
uint64_t smartiod_device_port_id(struct smartiod *d, uint32_t fdid);

#endif
