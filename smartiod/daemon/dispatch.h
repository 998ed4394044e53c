/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside daemon/: its start, what comes in from the edge, and the questions that it answers itself.
 */
#ifndef SMARTIOD_DISPATCH_H
#define SMARTIOD_DISPATCH_H

#include "smartiod/base/room.h"

/* All rooms of the daemon, in the order of effects; ends with NULL. rooms.c. */
extern const struct smartiod_room *const smartiod_rooms[];

/* ---- hello.c ---- */

smartiod_client_fn smartiod_hello, smartiod_bye;
/* d->refused is from the last SIO_REFUSED_RECENT_S seconds. */
bool smartiod_refused_lately(struct smartiod *d);

/* ---- session.c ---- */

void smartiod_session_owner_gone(struct smartiod *d, struct smartiod_session *s);
void smartiod_session_free_all(struct smartiod *d);
bool smartiod_client_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);

/* ---- peer.c ---- */

smartiod_peer_fn smartiod_peer_hello, smartiod_peer_ping;
void smartiod_peer_link_event(struct smartiod *d, const struct sio_evt_link *evt);
void smartiod_peer_start(struct smartiod *d);
uint64_t smartiod_peer_retry(struct smartiod *d, uint64_t now);

/* ---- link.c: the adapters' own ---- */

smartiod_client_fn smartiod_link_query;
/* What is found is so from now on. */
void smartiod_link_start(struct smartiod *d);
/* Of the event whose peer is this host. */
void smartiod_link_event(struct smartiod *d, const struct sio_evt_link *evt);

/* ---- daemon.c ---- */

/* The last room to start. */
void smartiod_start_done(struct smartiod *d);
/* An owner has ended at the port: a session's, or one that a room made. */
void smartiod_port_owner_gone(struct smartiod *d, uint64_t owner);

/* ---- overflow.c ---- */

/* SIO_EV_OVERFLOW. */
void smartiod_overflow(struct smartiod *d, const struct sio_evt_overflow *evt);
/* All that the port had when we started is known. */
void smartiod_overflow_ready(struct smartiod *d);

/* ---- query.c, list.c ---- */

smartiod_client_fn smartiod_adapter_query, smartiod_node_probe, smartiod_list, smartiod_stats;
smartiod_peer_fn smartiod_peer_stats;
bool smartiod_node_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);

#endif
