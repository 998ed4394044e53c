/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device half of smartiod, as the base half calls it: registry, ledger, BAR maps, DMA maps,
 * quarantine. Implemented in device.c, borrow.c, barmap.c, dmamap.c, quarantine.c.
 */
#ifndef SMARTIOD_DEVICE_H
#define SMARTIOD_DEVICE_H

#include "smartiod/base/internal.h"

/* ---- life of the daemon ---- */

/* Before anything else, and last. d->devices is theirs. */
int smartiod_device_init(struct smartiod *d, struct sio_err *reterr);
void smartiod_device_free(struct smartiod *d);
/*
 * The port was greeted (INFO, ADAPTERs, STATUS): list and open the devices, adopt borrows, then
 * call smartiod_start_done(), or smartiod_fatal(). May do so before it returns.
 */
void smartiod_device_start(struct smartiod *d);

/*
 * The daemon's normal life begins, as does that of programs from before its start: resets that wait
 * for that.
 */
void smartiod_device_ready(struct smartiod *d);

/* ---- requests of clients ---- */

smartiod_client_fn smartiod_dev_list, smartiod_dev_borrow, smartiod_dev_return,
	smartiod_dev_release_exclusive, smartiod_dev_seg_create, smartiod_dev_seg_connect,
	smartiod_dma_map, smartiod_dma_unmap, smartiod_dev_settled, smartiod_dev_reset,
	smartiod_dev_hold, smartiod_dev_unhold, smartiod_dev_vector, smartiod_dev_unvector,
	smartiod_dev_admin_reset;

/*
 * SEG_MAP and SEG_UNMAP of a connection whose route is SMARTIOD_BAR. Map makes a struct
 * smartiod_map (smartiod_object_add(SMARTIOD_MAP)) that counts in c->n_maps and replies struct
 * sio_rep_seg_map.
 */
smartiod_client_fn smartiod_bar_map, smartiod_seg_watch;
/* The map goes (the client's word, or its end): give back what it had at port and lender. */
void smartiod_bar_unmap(struct smartiod *d, struct smartiod_map *m);
/* The connection goes; it has no map any more. c->device is theirs to release. */
void smartiod_bar_close(struct smartiod *d, struct smartiod_connection *c);

/* ---- requests and news of peers ---- */

smartiod_peer_fn smartiod_peer_devices, smartiod_peer_borrow, smartiod_peer_return,
	smartiod_peer_release_exclusive, smartiod_peer_borrow_end, smartiod_peer_dev_seg_create,
	smartiod_peer_dev_seg_lookup, smartiod_peer_bar_grant, smartiod_peer_bar_release,
	smartiod_peer_dma_map, smartiod_peer_dma_unmap, smartiod_peer_settled, smartiod_peer_reset,
	smartiod_peer_device_event, smartiod_peer_borrow_lost, smartiod_peer_dev_seg_end,
	smartiod_peer_hold, smartiod_peer_unhold, smartiod_peer_hold_release, smartiod_peer_vector,
	smartiod_peer_unvector;
/*
 * A reply of type SIO_PEER_BORROW.._DEVICE_EVENT that nobody waits for any more (time-out): give
 * back what it brought. Its size is checked.
 */
void smartiod_device_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg);

/* ---- comings and goings ---- */

/* The peer's HELLO came: announce our devices to it. */
void smartiod_device_peer_ready(struct smartiod *d, struct smartiod_peer *p);
/*
 * Programs of this host lose what they borrowed of @node: with the host, or with the last path to
 * it, when both hosts are up. They hear of it before they hear of other memory of that host: who
 * finds ones where a device wrote must know already that the device is lost.
 */
void smartiod_device_borrows_lost(struct smartiod *d, uint32_t node, bool link);
/*
 * The peer's host is down. Its devices are not there, its borrows end, quarantine of what it
 * borrowed begins, grants that we imported from it are void. Operations that waited for it have
 * failed, and its connections and our borrows of its devices are lost already.
 */
void smartiod_device_node_down(struct smartiod *d, uint32_t node);
/* Does a program of this host borrow a device of @node? */
bool smartiod_device_borrowed(struct smartiod *d, uint32_t node);
/* Does one of us and @node borrow a device of the other? */
bool smartiod_device_lent(struct smartiod *d, uint32_t node);
/* The last path to it is down, both hosts are up: what it borrowed here ends. */
void smartiod_device_link_lost(struct smartiod *d, uint32_t node);
/* A path to a peer is down. What devices reach through it is cut off. */
void smartiod_device_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			       uint32_t peer_adapter);
/*
 * The session's client is gone; its operations are orphans, its segments ended. End its borrows:
 * take every SMARTIOD_BORROW and SMARTIOD_DMA_MAP out of s->objects. The port's owner is closed
 * just before.
 */
void smartiod_device_session_end(struct smartiod *d, struct smartiod_session *s);
/* OWNER_GONE, OWNER_END of an owner that is no session's: a borrow's. */
void smartiod_device_owner_gone(struct smartiod *d, const struct sio_evt_owner_gone *evt);
void smartiod_device_owner_end(struct smartiod *d, uint64_t owner);
/* SIO_EV_DEVICE_GONE and _BACK, SIO_EV_FAULT. */
void smartiod_device_event(struct smartiod *d, const struct sio_evt_device_state *evt);
void smartiod_device_fault(struct smartiod *d, const struct sio_evt_fault *evt);

/*
 * The last connection to a segment that SEG_CONNECT cannot name (of a device) is gone: a device
 * segment ends with it. Called by smartiod_segment_unref() and what else drops references.
 */
void smartiod_device_segment_idle(struct smartiod *d, struct smartiod_segment *seg);

/*
 * The plain interrupt that a vector of a device of ours triggers is gone, or the way to it. @link
 * is freed, perhaps later.
 */
void smartiod_vector_lost(struct smartiod *d, struct smartiod_dint_link *link);

/* ---- listings ---- */

/*
 * SIO_LIST_BORROWS, SIO_LIST_DMA_MAPS: the row with the smallest key greater than @after.
 * Return: false: none.
 */
bool smartiod_device_row(struct smartiod *d, uint32_t kind, uint64_t after,
			 struct sio_wire_row *ret);
/* The port's id of our device @fdid; 0: not ours. */
uint64_t smartiod_device_port_id(struct smartiod *d, uint32_t fdid);

/*
 * An interrupt of ours is about to go: no vector that a program from before us left there may keep
 * it.
 */
void smartiod_device_irq_ends(struct smartiod *d, uint64_t irq);

#endif
