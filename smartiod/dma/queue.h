/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues and what needs the window of a connection: queue.c, window.c. */
#ifndef SMARTIOD_QUEUE_H
#define SMARTIOD_QUEUE_H

#include "smartiod/base/internal.h"

/* What QUEUE_CREATE makes. */
struct smartiod_queue {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid; /* in d->queues */
	uint64_t channel;		  /* the port's; 0: not yet */
	uint32_t adapter;
	bool closed; /* the program let go of it, or is gone; freed when pins are gone */
	unsigned pins;
};

/* What a queue reaches through a connection. */
struct smartiod_range {
	struct smartiod_range *next; /* of the connection */
	struct smartiod_queue *queue;
	uint64_t id; /* the port's; 0: not yet */
};

/*
 * Something that needs a connection's window, first member of it. The first one makes the window,
 * the others wait for that. Made by smartiod_op_new() with step smartiod_window_step.
 */
struct smartiod_window_op {
	struct smartiod_op op;
	struct smartiod_connection
		*connection;	     /* pinned by the caller, and by the window's making */
	struct sio_wire_grant grant; /* what the exporter gave; 0: nothing yet */
	bool leads;
	/* The window is there, and the session: reply, and end the operation. */
	void (*ready)(struct smartiod *d, struct smartiod_window_op *w);
	/* It cannot be had, and who asked was told: end the operation. */
	void (*failed)(struct smartiod *d, struct smartiod_window_op *w);
};
smartiod_step smartiod_window_step;
void smartiod_window_go(struct smartiod *d, struct smartiod_window_op *w);

smartiod_client_fn smartiod_queue_create, smartiod_queue_remove, smartiod_queue_attach,
	smartiod_queue_detach;
/* The program lets go of a queue, or is gone; the port frees the channel by itself. */
void smartiod_queue_drop(struct smartiod *d, struct smartiod_object *o);
void smartiod_queue_free_all(struct smartiod *d);
/* The connection goes or is lost. @tell: the port still has the ranges. */
void smartiod_ranges_end(struct smartiod *d, struct smartiod_connection *c, bool tell);

#endif
