/* SPDX-License-Identifier: BSD-2-Clause */
/* What is on its way to daemons, as the files of the tests' world share it. */
#ifndef TESTS_SMARTIOD_WORLD_QUEUE_H
#define TESTS_SMARTIOD_WORLD_QUEUE_H

#include "world.h"

enum packet_kind { TO_PORT_EVENT, TO_PEER_UP, TO_PEER_DOWN, TO_PEER_MESSAGE };

struct world_packet {
	struct world_packet *next;
	enum packet_kind kind;
	unsigned host, from;
	uint64_t epoch, boot;
	int fds[4];
	unsigned n_fds;
	size_t len;
	_Alignas(8) unsigned char data[];
};

/* @host: whose daemon it is for; @from: of a port the same host. */
struct world_packet *world_push(struct world *w, enum packet_kind kind, unsigned host,
				unsigned from, const void *data, size_t len);

#endif
