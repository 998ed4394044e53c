/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal to daemon/: its start, the events from the edge, and the queries that it answers itself.
 */
#ifndef SMARTIOD_DISPATCH_H
#define SMARTIOD_DISPATCH_H

#include "smartiod/base/room.h"

/* All rooms of the daemon, in the order in which events take effect; ends with NULL. rooms.c. */
extern const struct smartiod_room *const smartiod_rooms[];

/* The handlers of requests of clients and peers. */
SIO_CLIENT_DAEMON(SMARTIOD_CLIENT_FN)
SIO_PEER_DAEMON(SMARTIOD_PEER_FN)

/* ---- hello.c ---- */

/* Was a program refused for its version in the last SIO_REFUSED_RECENT_S seconds (d->refused)? */
bool smartiod_refused_lately(struct smartiod *d);

/* ---- session.c ---- */

void smartiod_session_owner_gone(struct smartiod *d, struct smartiod_session *s);
void smartiod_session_free_all(struct smartiod *d);
bool smartiod_client_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);

/* ---- peer.c ---- */

void smartiod_peer_link_event(struct smartiod *d, const struct sio_evt_link *evt);
/* The port has one adapter more, of which paths may have been reported already. */
void smartiod_peer_links_again(struct smartiod *d);
void smartiod_peer_start(struct smartiod *d);
/*
 * The peer is not in the cluster's file any more: all that it shared with this host ends, as when
 * it is lost.
 */
void smartiod_peer_remove(struct smartiod *d, struct smartiod_peer *p);
/*
 * The peer is in the cluster's file, perhaps again: the daemon connects when a path leads to it.
 * @host is of the topology in force.
 */
void smartiod_peer_add(struct smartiod *d, const struct sio_topo_host *host);
uint64_t smartiod_peer_retry(struct smartiod *d, uint64_t now);

/* ---- link.c: the adapters' own ---- */

/* The states that are found at the start last from now on. */
void smartiod_link_start(struct smartiod *d);
/* Handles a LINK event about the link of an adapter itself, in which the peer is this host. */
void smartiod_link_event(struct smartiod *d, const struct sio_evt_link *evt);
/* The cluster's file was read anew. */
void smartiod_links_follow(struct smartiod *d);

/* ---- daemon.c ---- */

/* The last room to start. */
void smartiod_start_done(struct smartiod *d);
/* An owner has ended at the port: a session's, or one that a room made. */
void smartiod_port_owner_gone(struct smartiod *d, uint64_t owner);

/* ---- events.c ---- */

/* A program has handled events, or has ended: perhaps a tool waits for nobody any more. */
void smartiod_events_check(struct smartiod *d);

/* ---- overflow.c ---- */

/* SIO_EV_OVERFLOW. */
void smartiod_overflow(struct smartiod *d, const struct sio_evt_overflow *evt);
/* All that the port had at the daemon's start is known. */
void smartiod_overflow_ready(struct smartiod *d);

/* ---- accounts.c ---- */

bool smartiod_account_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);

/* ---- parting.c ---- */

/*
 * Reports, for a RELOAD: which hosts @t cuts off from this one, and what programs and other hosts
 * have that ends because of that, or because @t does not have the host.
 */
void smartiod_parting_report(struct smartiod *d, const struct sio_topology *t);

/* ---- reload.c ---- */

/* Has @t a host of that node id and name? With another one's certificate nobody goes on as it. */
bool smartiod_host_stays(const struct sio_topo_host *host, const struct sio_topology *t);

void smartiod_reload_session_end(struct smartiod *d, struct smartiod_session *s);
void smartiod_reload_free(struct smartiod *d);

/* ---- query.c ---- */

bool smartiod_node_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);

#endif
