/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside segment/: what clients and peers ask. */
#ifndef SMARTIOD_SEGMENT_REQUESTS_H
#define SMARTIOD_SEGMENT_REQUESTS_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

/* segment_create.c, segment_adapter.c, removal.c, segment_share.c */
smartiod_client_fn smartiod_seg_create, smartiod_seg_fill, smartiod_seg_prepare,
	smartiod_seg_available, smartiod_seg_unavailable, smartiod_seg_remove, smartiod_seg_share,
	smartiod_seg_attach;
/* connect.c, window.c */
smartiod_client_fn smartiod_seg_connect, smartiod_seg_disconnect, smartiod_seg_map,
	smartiod_seg_unmap;
/* export.c, grant.c, adrift.c, connect.c */
smartiod_peer_fn smartiod_peer_seg_lookup, smartiod_peer_seg_release, smartiod_peer_seg_grant,
	smartiod_peer_grant_release, smartiod_peer_grant_query, smartiod_peer_seg_event;

#endif
