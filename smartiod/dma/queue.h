/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues. */
#ifndef SMARTIOD_QUEUE_H
#define SMARTIOD_QUEUE_H

#include "smartiod/base/session.h"

/* A DMA queue, made by QUEUE_CREATE. */
struct smartiod_queue {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid; /* in d->queues */
	uint64_t channel;		  /* the port's; 0: not yet */
	uint32_t adapter;
	bool closed; /* the program released it, or is gone; freed when pins are gone */
	unsigned pins;
};

/* The handlers of clients' requests. */
SIO_CLIENT_DMA(SMARTIOD_CLIENT_FN)

#endif
