/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of the cluster's devices, of this host and of others. */
#ifndef SMARTIOD_DEVICE_H
#define SMARTIOD_DEVICE_H

#include "core/devstate.h"
#include "core/ledger.h"
#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

/*
 * The generation of a device, which counts its resets, for the whole cluster: an even number. The
 * port counts them, and outlives the daemon.
 */
static inline uint32_t smartiod_generation(uint64_t of_port)
{
	return (uint32_t)of_port * 2;
}

struct smartiod_lent;

/* A device of the cluster, of this host or another: from the topology, or found at a real port. */
struct smartiod_device {
	struct smartiod_tree_node by_fdid;
	uint32_t fdid, node;
	const struct sio_topo_device *topo;
	/*
	 * topo leads here if the topology does not know it: its host's kernel has found it, or
	 * (@dropped) the file does not list it any more. That one is known until we end, for what
	 * is left of it, and may come back by another file.
	 */
	struct sio_topo_device found;
	bool dropped;
	bool present; /* its host is up and offers it */
	bool unheard; /* its host has connected again, and has not announced it since */
	/*
	 * of this host: nobody has had it since it was added; earlier borrows are of another device
	 */
	bool fresh;
	uint32_t generation; /* smartiod_generation() of the port's; goes up when queues are gone */
	struct smartiod_hops hops;
	struct sio_rep_dev_list info; /* what DEV_LIST tells, but for adapter */
	/* Ours only. */
	struct sio_evt_device port;
	struct sio_ledger ledger;
	/* peers, by their places, that are to be notified of what has changed */
	uint64_t untold[(SIO_MAX_HOSTS + 63) / 64];
	enum sio_dev_state state;   /* reset.c */
	struct smartiod_lent *lent; /* lend.h: behind it, in the same memory */
};

struct smartiod_device *smartiod_device_find(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr);
/* The same, also if the device is not present now; NULL: no device of the cluster has that id. */
struct smartiod_device *smartiod_device_known(struct smartiod *d, uint32_t fdid);
/*
 * The same, of another host that has not announced it since our start: it was at place @bdf and of
 * that class. NULL with *reterr.
 */
struct smartiod_device *smartiod_device_again(struct smartiod *d, uint32_t fdid, uint32_t bdf,
					      uint32_t class_code, struct sio_err *reterr);
/* Is @f a virtual function of @physical? */
bool smartiod_device_is_function(struct smartiod *d, const struct smartiod_device *f,
				 const struct smartiod_device *physical);
/* A device of this host, for a request to the lender. */
struct smartiod_device *smartiod_device_ours(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr);
/* The device of this host with the port's id @id, if it is open; NULL. */
struct smartiod_device *smartiod_device_by_port(struct smartiod *d, uint64_t id);
/* Fills in what is announced of a device of this host, from the port's description. */
void smartiod_device_describe(struct smartiod *d, struct smartiod_device *dev);
/*
 * Opens a device that was added to the port. If there is no memory to look at it, look_missed()
 * does so, which the room's later() calls.
 */
void smartiod_device_look(struct smartiod *d, uint64_t id);
void smartiod_devices_look_missed(struct smartiod *d);
/*
 * Announces the device's state to all peers, and to who waits for it here: at once, because it has
 * come or gone; or, because a borrow or a reset has changed it, to the peers a little later with
 * what changes until then, for each change is a message to each host of the cluster. Nothing may
 * depend on that message: who asks the lender for something gets the state that the reply implies
 * before the reply, by tell().
 */
void smartiod_device_announce(struct smartiod *d, struct smartiod_device *dev);
void smartiod_device_announce_later(struct smartiod *d, struct smartiod_device *dev);
/* To @node alone, before it is told what follows from that state; tell(): unless it knows. */
void smartiod_device_announce_to(struct smartiod *d, struct smartiod_device *dev, uint32_t node);
void smartiod_device_tell(struct smartiod *d, struct smartiod_device *dev, uint32_t node);
/* announce.c, for the room: all of ours that are present, to @node; what has changed, to all. */
void smartiod_devices_announce(struct smartiod *d, uint32_t node);
void smartiod_devices_announce_changed(struct smartiod *d);
/* @node has connected again, and announces all that it offers; heard(): it has. */
void smartiod_devices_expect(struct smartiod *d, uint32_t node);
void smartiod_devices_heard(struct smartiod *d, uint32_t node);
/*
 * await.c: what is known of the device has changed; answers those for whom it is now as they want
 * it. The other one: the same for all devices of @node, because a path there has changed.
 */
void smartiod_device_changed(struct smartiod *d, struct smartiod_device *dev);
void smartiod_devices_changed(struct smartiod *d, uint32_t node);
void smartiod_device_info(struct smartiod *d, struct smartiod_device *dev,
			  struct sio_rep_dev_list *ret);

/* Has it its name and place from its host's kernel, not from the file? */
static inline bool smartiod_device_is_found(const struct smartiod_device *dev)
{
	return dev->topo == &dev->found && !dev->dropped;
}
/* A new entry, which is not in the table yet. NULL: no memory. */
struct smartiod_device *smartiod_device_new(struct smartiod *d, uint32_t fdid,
					    const struct sio_topo_device *topo);
/* Of the table, with nothing left of it. */
void smartiod_device_free(struct smartiod *d, struct smartiod_device *dev);
/* A device that the topology does not have, by a name to be given. NULL: the log says why. */
struct smartiod_device *smartiod_device_found(struct smartiod *d, const struct sio_topo_host *host,
					      uint32_t fdid);
/*
 * device_reload.c: the cluster's file changes to @t. First the devices that it adds are made, which
 * their hosts then announce; -ENOMEM: none is. Then, when @d->topology is @t, all others refer to
 * it as well; those that it lacks stay as they are until their hosts say that they are gone.
 */
int smartiod_devices_add(struct smartiod *d, const struct sio_topology *t, struct sio_err *reterr);
void smartiod_devices_follow(struct smartiod *d);
/* Names the device after its place, and its type after its class. */
void smartiod_device_name(struct smartiod *d, struct smartiod_device *dev, uint32_t bdf,
			  uint32_t class_code);
/* Lists and opens the devices of this host at the port: device_start.c. */
void smartiod_devices_start(struct smartiod *d);
/* The port's id of device @fdid; 0: it is not of this host. */
uint64_t smartiod_device_port_id(struct smartiod *d, uint32_t fdid);

/* The handlers of requests of clients and peers: device.c, announce.c, distance.c, await.c. */
SIO_CLIENT_DEVICE(SMARTIOD_CLIENT_FN)
SIO_PEER_DEVICE(SMARTIOD_PEER_FN)

#endif
