/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of programs of this host: to segments of any host, groups, BARs. */
#ifndef SMARTIOD_CONNECTION_H
#define SMARTIOD_CONNECTION_H

#include "smartiod/segment/connection_life.h"
#include "smartiod/segment/segment.h"

struct smartiod_queue;
struct smartiod_range;

enum smartiod_route {
	SMARTIOD_LOCAL,	 /* the segment is on this host */
	SMARTIOD_REMOTE, /* through an adapter */
	SMARTIOD_BAR,	 /* a BAR of a borrowed device: borrower/barmap.c */
	SMARTIOD_GROUP,	 /* a multicast group: map is the port's memory for it */
};

struct smartiod_map;

/* Of a BAR: the borrower's. */
struct smartiod_connection_ops {
	/*
	 * SEG_MAP: makes a struct smartiod_map (smartiod_object_add(SMARTIOD_MAP)) that counts in
	 * c->n_maps, and replies struct sio_rep_seg_map.
	 */
	smartiod_client_fn *map;
	/* The map goes: give back what it had at port and lender. */
	void (*unmap)(struct smartiod *d, struct smartiod_map *m);
	/* The connection goes; it has no map any more. c->device is to be released. */
	void (*close)(struct smartiod *d, struct smartiod_connection *c);
};

/* What SEG_CONNECT and DEV_SEG_CONNECT make. */
struct smartiod_connection {
	struct smartiod_object o;
	struct smartiod_tree_node by_id; /* in d->connections */
	uint64_t id;			 /* ours; never used again */
	enum smartiod_route route;
	enum smartiod_connection_state state;
	uint32_t node, segment_id, pid;
	uint64_t uid, bytes;		  /* uid: the segment's at its exporter */
	unsigned adapter, peer_adapter;	  /* REMOTE */
	struct smartiod_segment *segment; /* LOCAL: one of ours, pinned by its ref */
	/* REMOTE: one window, shared by all maps. */
	enum { SMARTIOD_UNMAPPED, SMARTIOD_MAPPING, SMARTIOD_MAPPED } window;
	uint64_t map, map_offset, map_bus_addr; /* the port's */
	uint64_t grant;				/* the exporter's */
	uint64_t start;				/* of the exporter that gave it */
	int map_fd;				/* -1 */
	/*
	 * The window before: its grant goes back when the port has unmapped it. 0: there is none.
	 */
	uint64_t old_grant, old_start;
	struct smartiod_connection *next_unmapping; /* of d->unmapping, while old_grant is set */
	struct smartiod_connection **prev_unmapping;
	struct smartiod_op unmap;      /* embedded, so that giving back needs no memory */
	unsigned n_maps;	       /* live SMARTIOD_MAP objects */
	unsigned dma;		       /* DMA maps through it: SEG_DISCONNECT is EBUSY */
	struct smartiod_range *ranges; /* of DMA queues; they keep the window */
	bool exact; /* GROUP: of members with memory of their own; map is the way to them */
	unsigned pins;
	void *device;				   /* BAR: its borrow, */
	const struct smartiod_connection_ops *ops; /* and what it does with it */
	uint64_t borrow; /* whose private device segment it is, by the lender's number; else 0 */
};

/* Exporter or port has not answered. */
static inline bool smartiod_connection_connecting(const struct smartiod_connection *c)
{
	return c->state >= SMARTIOD_CONNECTION_CONNECTING &&
	       c->state <= SMARTIOD_CONNECTION_CONNECTING_LOST;
}
/* What it leads to is gone. */
static inline bool smartiod_connection_is_lost(const struct smartiod_connection *c)
{
	return c->state == SMARTIOD_CONNECTION_LOST ||
	       c->state == SMARTIOD_CONNECTION_CONNECTING_LOST;
}
/* Nothing more is to be made of it. */
static inline bool smartiod_connection_over(const struct smartiod_connection *c)
{
	return smartiod_connection_is_lost(c) || c->state == SMARTIOD_CONNECTION_CLOSED;
}
/* Something happens to it. An event that cannot come is an error of ours: it ends the daemon. */
void smartiod_connection_enter(struct smartiod *d, struct smartiod_connection *c,
			       enum smartiod_connection_event event);

struct smartiod_map {
	struct smartiod_object o;
	struct smartiod_connection *connection;
	void *bar; /* of a BAR: borrower/barmap.c's */
};

/*
 * Connect for @request of a client: replies struct sio_rep_seg_connect. @adapter SIO_ADAPTER_ANY:
 * whatever path is up.
 */
int smartiod_connect_open(struct smartiod *d, struct smartiod_session *s, const void *request,
			  uint32_t node, const struct smartiod_wanted *w, uint32_t adapter,
			  struct sio_err *reterr);
/* A new connection object with a handle. */
struct smartiod_connection *smartiod_connection_new(struct smartiod *d, struct smartiod_session *s,
						    enum smartiod_route route,
						    struct sio_err *reterr);
/*
 * The client let go of it, or is gone (@reason to the exporter: SCI_CB_DISCONNECT or _LOST).
 * Gives back all; the object stays while pinned.
 */
void smartiod_connection_close(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* Give its window back, if it has one; its grant when the port has unmapped it. */
void smartiod_window_release(struct smartiod *d, struct smartiod_connection *c);
/* Is a window to this grant of @node being made or unmapped, although its connection is lost? */
bool smartiod_window_has(struct smartiod *d, uint32_t node, uint64_t grant);
void smartiod_connection_unpin(struct smartiod *d, struct smartiod_connection *c);
/* Its last user may have gone: then it ends, if it is closed. */
void smartiod_connection_check(struct smartiod *d, struct smartiod_connection *c);
/* It was taken away: tell the library (lost = 1), give back window and grant. */
void smartiod_connection_lost(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* The exporter (@node) says something of the connection with this number. */
void smartiod_connection_event(struct smartiod *d, uint32_t node, uint64_t connection,
			       uint32_t reason, enum sio_segment_loss loss);
void smartiod_connection_free_all(struct smartiod *d);
/* A map with a handle, counted in c->n_maps. */
struct smartiod_map *smartiod_map_new(struct smartiod_session *s, struct smartiod_connection *c,
				      struct sio_err *reterr);
void smartiod_map_drop(struct smartiod *d, struct smartiod_map *m);
void smartiod_connection_node_down(struct smartiod *d, uint32_t node);
/* Its path went down, or is up again: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL. Nothing is lost. */
void smartiod_connection_path(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter, bool up);

/* What a queue reaches through a connection. */
struct smartiod_range {
	struct smartiod_range *next; /* of the connection */
	struct smartiod_queue *queue;
	uint64_t id; /* the port's; 0: not yet */
};

/* Of @c, for queue @q. NULL: no memory. */
struct smartiod_range *smartiod_range_new(struct smartiod_connection *c, struct smartiod_queue *q);
/* Forget @g (NULL: nothing) of @c; its window goes with the last of its users. */
void smartiod_range_forget(struct smartiod *d, struct smartiod_connection *c,
			   struct smartiod_range *g);
/* The connection goes or is lost. @tell: the port still has the ranges. */
void smartiod_ranges_end(struct smartiod *d, struct smartiod_connection *c, bool tell);
/* Tell the port that range @id ends; 0: nothing. */
void smartiod_port_detach(struct smartiod *d, uint64_t owner, uint64_t id);

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

#endif
