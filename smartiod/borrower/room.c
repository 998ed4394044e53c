/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the borrower's room: what programs of this host have of devices. */
#include <stdio.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

static const struct smartiod_request requests[] = {
	SIO_CLIENT_BORROWER(SMARTIOD_OWNERS){0, false, NULL},
};

static const struct smartiod_message messages[] = {
	SIO_PEER_BORROWER(SMARTIOD_PEERS){0, NULL},
};

static const struct smartiod_restorable restores[] = {
	{SIO_MSG_SHADOW, SMARTIOD_RESTORE_ALL, smartiod_shadow_again, smartiod_shadow_not_again},
	{0, 0, NULL, NULL},
};

/* ---- late replies; what other requests made ends with the borrow ---- */

static void borrow_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_borrow *borrow = reply;
	struct sio_peer_borrower end = {.h.type = sio_to_le32(SIO_PEER_BORROW_END),
					.borrower = borrow->borrower,
					.fdid = borrow->fdid};

	smartiod_peer_send(d, node, &end, sizeof(end));
}

void smartiod_bar_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_bar_grant *bar = reply;
	struct sio_peer_bar_release release = {.h.type = sio_to_le32(SIO_PEER_BAR_RELEASE),
					       .borrower = bar->borrower,
					       .fdid = bar->fdid};
	uint32_t n = sio_from_le32(bar->n_pieces);

	for (uint32_t i = 0; i < n && i < SIO_MAP_PIECES; i++) {
		release.view = bar->piece[i].view;
		release.grant = bar->piece[i].g.grant;
		smartiod_peer_send(d, node, &release, sizeof(release));
		smartiod_grant_release(d, node, sio_from_le64(bar->piece[i].g.grant));
	}
}

static const struct smartiod_late late[] = {
	{SIO_PEER_BORROW, borrow_late},
	{SIO_PEER_BAR_GRANT, smartiod_bar_late},
	{SIO_PEER_GROUP_JOIN, smartiod_member_late},
	{SIO_PEER_DMA_MAP, smartiod_dma_late},
	{SIO_PEER_HOLD, smartiod_hold_late},
	{SIO_PEER_VECTOR, smartiod_vector_late},
	{0, NULL},
};

/* ---- losses ---- */

static void imports_lost(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	if (why == SMARTIOD_LINK_DOWN)
		smartiod_borrow_link_lost(d, node);
	else
		smartiod_borrow_node_down(d, node);
	smartiod_held_lost(d, node);
}

static void path(struct smartiod *d, const struct smartiod_path_change *p)
{
	if (!p->up)
		smartiod_borrow_path_down(d, p->node, p->adapter, p->peer_adapter);
}

/* Of one of ours the lender tells, borrow by borrow. */
static void device_gone(struct smartiod *d, struct smartiod_device *dev)
{
	if (dev->node == d->node)
		return;
	smartiod_borrow_device_gone(d, dev);
	smartiod_held_end(d, dev);
}

static void free_all(struct smartiod *d)
{
	smartiod_borrow_free_all(d);
	smartiod_held_free_all(d);
}

static void port_event(struct smartiod *d, const struct sio_evt *evt)
{
	if (evt->op == SIO_EV_SHADOW_CONFIG)
		smartiod_shadow_config(d, (const struct sio_evt_shadow_config *)evt);
}

static void parting(struct smartiod *d, uint32_t node, bool gone)
{
	(void)gone; /* a path is enough */
	smartiod_borrows_parting(d, node);
}

const struct smartiod_room smartiod_room_borrower = {
	.name = "borrower",
	.requests = requests,
	.messages = messages,
	.restores = restores,
	.late = late,
	.free_all = free_all,
	.resume = smartiod_borrow_resume,
	.answered = smartiod_shadows_answered,
	.imports_lost = imports_lost,
	.path = path,
	.borrows = smartiod_borrows_of,
	.forbidden = smartiod_borrows_forbidden,
	.parting = parting,
	.maps_for = smartiod_dma_maps,
	.session_end = smartiod_borrow_session_end,
	.device_gone = device_gone,
	.doorbells_gone = smartiod_borrow_doorbells_gone,
	.segment_idle = smartiod_borrow_segment_idle,
	.has_grant = smartiod_bar_has_grant,
	.port_event = port_event,
};
