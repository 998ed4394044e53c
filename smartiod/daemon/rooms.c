/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rooms of the daemon, in the order of effects (base/room.h): a borrow is lost before
 * connections are, and those before interrupts; what another host has of this one ends in the other
 * order. This file alone names them.
 */
#include "smartiod/daemon/dispatch.h"

static const struct smartiod_request requests[] = {
	{SIO_MSG_HELLO, false, smartiod_hello},
	{SIO_MSG_BYE, false, smartiod_bye},
	{SIO_MSG_ADAPTER, false, smartiod_adapter_query},
	{SIO_MSG_NODE_PROBE, false, smartiod_node_probe},
	{SIO_MSG_LINK, false, smartiod_link_query},
	{SIO_MSG_LIST, false, smartiod_list},
	{SIO_MSG_STATS, false, smartiod_stats},
	{0, false, NULL},
};

static const struct smartiod_message messages[] = {
	{SIO_PEER_HELLO, smartiod_peer_hello},
	{SIO_PEER_PING, smartiod_peer_ping},
	{SIO_PEER_STATS, smartiod_peer_stats},
	{0, NULL},
};

static const struct smartiod_rows rows[] = {
	{SIO_LIST_NODES, smartiod_node_row},
	{SIO_LIST_CLIENTS, smartiod_client_row},
	{0, NULL},
};

static const struct smartiod_room room_daemon = {
	.name = "daemon",
	.requests = requests,
	.messages = messages,
	.rows = rows,
	.start = smartiod_start_done,
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
