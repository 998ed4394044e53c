/* SPDX-License-Identifier: BSD-2-Clause */
/* The borrower's room: what programs of this host have of devices. */
#include <stdio.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

static const struct smartiod_request requests[] = {
	{SIO_MSG_DEV_BORROW, true, smartiod_dev_borrow},
	{SIO_MSG_DEV_RETURN, true, smartiod_dev_return},
	{SIO_MSG_DEV_RELEASE_EXCLUSIVE, true, smartiod_dev_release_exclusive},
	{SIO_MSG_DEV_SETTLED, true, smartiod_dev_settled},
	{SIO_MSG_DEV_RESET, true, smartiod_dev_reset},
	{SIO_MSG_DEV_SEG_CREATE, true, smartiod_dev_seg_create},
	{SIO_MSG_DEV_SEG_CONNECT, true, smartiod_dev_seg_connect},
	{SIO_MSG_SEG_WATCH, true, smartiod_seg_watch},
	{SIO_MSG_DMA_MAP, true, smartiod_dma_map},
	{SIO_MSG_DMA_UNMAP, true, smartiod_dma_unmap},
	{SIO_MSG_DEV_HOLD, true, smartiod_dev_hold},
	{SIO_MSG_DEV_UNHOLD, true, smartiod_dev_unhold},
	{SIO_MSG_DEV_VECTOR, true, smartiod_dev_vector},
	{SIO_MSG_DEV_UNVECTOR, true, smartiod_dev_unvector},
	{SIO_MSG_SHADOW, true, smartiod_shadow},
	{SIO_MSG_SHADOW_DEL, true, smartiod_shadow_del},
	{0, false, NULL},
};

static const struct smartiod_message messages[] = {
	{SIO_PEER_DEVICE_EVENT, smartiod_peer_device_event},
	{SIO_PEER_BORROW_LOST, smartiod_peer_borrow_lost},
	{0, NULL},
};

/* ---- late replies; what other requests made ends with the borrow ---- */

static void borrow_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_borrow *borrow = reply;
	struct sio_peer_borrower end = {.h.type = sio_to_le32(SIO_PEER_BORROW_END),
					.borrower = borrow->borrower,
					.fdid = borrow->fdid};

	smartiod_peer_tell(d, node, &end, sizeof(end));
}

static void bar_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_bar_grant *bar = reply;
	struct sio_peer_bar_release release = {.h.type = sio_to_le32(SIO_PEER_BAR_RELEASE),
					       .borrower = bar->borrower,
					       .fdid = bar->fdid};
	uint32_t n = sio_from_le32(bar->n_pieces);

	for (uint32_t i = 0; i < n && i < SIO_MAP_PIECES; i++) {
		release.view = bar->piece[i].view;
		release.grant = bar->piece[i].g.grant;
		smartiod_peer_tell(d, node, &release, sizeof(release));
		smartiod_grant_release(d, node, sio_from_le64(bar->piece[i].g.grant));
	}
}

static const struct smartiod_late late[] = {
	{SIO_PEER_BORROW, borrow_late},		 {SIO_PEER_BAR_GRANT, bar_late},
	{SIO_PEER_DMA_MAP, smartiod_dma_late},	 {SIO_PEER_HOLD, smartiod_hold_late},
	{SIO_PEER_VECTOR, smartiod_vector_late}, {0, NULL},
};

/* ---- losses ---- */

static void imports_lost(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	if (why == SMARTIOD_LINK_DOWN)
		smartiod_borrow_link_lost(d, node);
	else
		smartiod_borrow_node_down(d, node);
}

static void path(struct smartiod *d, const struct smartiod_path_change *p)
{
	if (!p->up)
		smartiod_borrow_path_down(d, p->node, p->adapter, p->peer_adapter);
}

/* Of one of ours the lender tells, borrow by borrow. */
static void device_gone(struct smartiod *d, struct smartiod_device *dev)
{
	if (dev->node != d->node)
		smartiod_borrow_device_gone(d, dev);
}

const struct smartiod_room smartiod_room_borrower = {
	.name = "borrower",
	.requests = requests,
	.messages = messages,
	.late = late,
	.free_all = smartiod_borrow_free_all,
	.imports_lost = imports_lost,
	.path = path,
	.borrows = smartiod_borrows_of,
	.session_end = smartiod_borrow_session_end,
	.device_gone = device_gone,
	.doorbells_gone = smartiod_borrow_doorbells_gone,
	.segment_idle = smartiod_borrow_segment_idle,
	.has_grant = smartiod_bar_has_grant,
};
