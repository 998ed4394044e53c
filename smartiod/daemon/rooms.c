/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of the rooms, in the order in which events take effect (base/room.h): a borrow is lost
 * before connections are, and connections before interrupts; what another host has of this one ends
 * in the reverse order. Only this file names the rooms.
 */
#include "smartiod/daemon/dispatch.h"

static const struct smartiod_request requests[] = {
	SIO_CLIENT_DAEMON(SMARTIOD_ANYBODYS){0, false, NULL},
};

static const struct smartiod_message messages[] = {
	SIO_PEER_DAEMON(SMARTIOD_PEERS){0, NULL},
};

static const struct smartiod_rows rows[] = {
	{SIO_LIST_NODES, smartiod_node_row},
	{SIO_LIST_CLIENTS, smartiod_client_row},
	{SIO_LIST_ACCOUNTS, smartiod_account_row},
	{0, NULL},
};

static const struct smartiod_room room_daemon = {
	.name = "daemon",
	.requests = requests,
	.messages = messages,
	.rows = rows,
	.start = smartiod_start_done,
	.ready = smartiod_peer_start,
	.session_end = smartiod_reload_session_end,
	.free_all = smartiod_reload_free,
};

const struct smartiod_room *const smartiod_rooms[] = {
	&room_daemon,
	&smartiod_room_restart,
	&smartiod_room_borrower,
	&smartiod_room_lender,
	&smartiod_room_segment,
	&smartiod_room_dma,
	&smartiod_room_interrupt,
	&smartiod_room_device,
	NULL,
};
