/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lender/: what clients and borrowers ask. */
#ifndef SMARTIOD_LENDER_REQUESTS_H
#define SMARTIOD_LENDER_REQUESTS_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

smartiod_client_fn smartiod_dev_admin_reset;
smartiod_peer_fn smartiod_lend_borrow, smartiod_lend_return, smartiod_lend_release_exclusive,
	smartiod_lend_borrow_end, smartiod_lend_dev_seg_create, smartiod_lend_dev_seg_lookup,
	smartiod_lend_dev_seg_end, smartiod_lend_bar_grant, smartiod_lend_bar_release,
	smartiod_lend_dma_map, smartiod_lend_dma_unmap, smartiod_lend_settled, smartiod_lend_reset,
	smartiod_lend_hold, smartiod_lend_unhold, smartiod_lend_vector, smartiod_lend_unvector,
	smartiod_peer_hold_release, smartiod_peer_bar_cut;

#endif
