/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside borrower/: what clients ask, and lenders tell. */
#ifndef SMARTIOD_BORROWER_REQUESTS_H
#define SMARTIOD_BORROWER_REQUESTS_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

smartiod_client_fn smartiod_dev_borrow, smartiod_dev_return, smartiod_dev_release_exclusive,
	smartiod_dev_settled, smartiod_dev_reset, smartiod_dev_seg_create, smartiod_dev_seg_connect,
	smartiod_seg_watch, smartiod_dma_map, smartiod_dma_unmap, smartiod_dev_hold,
	smartiod_dev_unhold, smartiod_dev_vector, smartiod_dev_unvector, smartiod_shadow,
	smartiod_shadow_del;
smartiod_peer_fn smartiod_peer_device_event, smartiod_peer_borrow_lost;

#endif
