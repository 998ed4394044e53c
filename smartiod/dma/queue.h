/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues. */
#ifndef SMARTIOD_QUEUE_H
#define SMARTIOD_QUEUE_H

#include "smartiod/base/room.h"
#include "smartiod/base/session.h"

struct smartiod_connection;
struct smartiod_segment;

/* A DMA queue, made by QUEUE_CREATE. */
struct smartiod_queue {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid; /* in d->queues */
	uint64_t channel;		  /* the port's; 0: not yet */
	uint32_t adapter;
	bool closed; /* the program released it, or is gone; freed when pins are gone */
	unsigned pins;
};

/* queue.c */
/* A queue of @s, without its channel, pinned once. NULL, and *reterr. */
struct smartiod_queue *smartiod_queue_new(struct smartiod *d, struct smartiod_session *s,
					  uint32_t adapter, struct sio_err *reterr);
/* What @m names: one of the two is set. */
int smartiod_queue_target(struct smartiod_session *s, const struct sio_msg_queue_attach *m,
			  const struct smartiod_queue *q, struct smartiod_segment **ret_seg,
			  struct smartiod_connection **ret_connection, struct sio_err *reterr);

/* restore.c */
extern const struct smartiod_restorable smartiod_dma_restores[];

/* The handlers of clients' requests. */
SIO_CLIENT_DMA(SMARTIOD_CLIENT_FN)

#endif
