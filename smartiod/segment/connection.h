/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of programs of this host: to segments of any host, to groups, to BARs. */
#ifndef SMARTIOD_CONNECTION_H
#define SMARTIOD_CONNECTION_H

#include "smartiod/segment/connection_life.h"
#include "smartiod/segment/segment.h"

struct smartiod_forbid;
struct smartiod_queue;
struct smartiod_range;

enum smartiod_route {
	SMARTIOD_LOCAL,	 /* the segment is on this host */
	SMARTIOD_REMOTE, /* through an adapter */
	SMARTIOD_BAR,	 /* a BAR of a borrowed device: borrower/barmap.c */
	SMARTIOD_GROUP,	 /* a multicast group: map is the port's memory for it */
};

struct smartiod_map;

/* Memory of a BAR that a DMA queue is to reach. */
struct smartiod_reached {
	uint32_t kind;		 /* the target at the port: SIO_KIND_BAR, _MAP */
	uint64_t target, offset; /* offset: in it */
	uint64_t first, bytes;	 /* in the BAR */
	void *bar;		 /* given back with unreach() */
};
/*
 * @r NULL: it cannot be reached, and @op, which is of the client's request, has been answered. Else
 * the callee answers, after it has taken @r->bar. @op is freed after it returns.
 */
typedef void smartiod_reached_fn(struct smartiod *d, struct smartiod_op *op,
				 struct smartiod_connection *c, void *arg,
				 const struct smartiod_reached *r);

/* Operations on a connection to a BAR, which the borrower's room defines. */
struct smartiod_connection_ops {
	/*
	 * SEG_MAP: makes a struct smartiod_map (smartiod_object_add(SMARTIOD_MAP)) that counts in
	 * c->n_maps, and replies struct sio_rep_seg_map.
	 */
	smartiod_client_fn *map;
	/* The mapping ends: releases what it had at port and lender. */
	void (*unmap)(struct smartiod *d, struct smartiod_map *m);
	/*
	 * QUEUE_ATTACH: memory of the BAR around what @msg asks for, for the DMA engine of
	 * @adapter: @done is called with it, or without, unless an error is returned.
	 */
	int (*reach)(struct smartiod *d, struct smartiod_connection *c, const void *msg,
		     uint32_t adapter, smartiod_reached_fn *done, void *arg,
		     struct sio_err *reterr);
	/* What makes it restorable, of DMA queue @queue: the rest of @ret. */
	void (*reach_claim)(struct smartiod *d, const struct smartiod_session *s, uint32_t queue,
			    const void *bar, struct sio_rep_queue_attach *ret);
	/*
	 * Restart: what is reached of it is there again, at the port as *ret_target. *ret: as
	 * smartiod_reached.bar.
	 */
	int (*reach_again)(struct smartiod *d, struct smartiod_session *s,
			   struct smartiod_connection *c, const struct sio_msg_restore *m,
			   void **ret, uint64_t *ret_target, struct sio_err *reterr);
	/* Nothing reaches it any more. */
	void (*unreach)(struct smartiod *d, void *bar);
	/* The connection ends; it has no mapping any more. c->device is to be released. */
	void (*close)(struct smartiod *d, struct smartiod_connection *c);
};

/* A connection, made by SEG_CONNECT or DEV_SEG_CONNECT. */
struct smartiod_connection {
	struct smartiod_object o;
	struct smartiod_tree_node by_id; /* in d->connections */
	uint64_t id;			 /* this daemon's number; never used again */
	enum smartiod_route route;
	enum smartiod_connection_state state;
	uint32_t node, segment_id, pid;
	uint64_t uid, bytes;		  /* uid: the segment's at its exporter */
	unsigned adapter, peer_adapter;	  /* REMOTE */
	uint64_t peer_boot;		  /* smartiod_path_start() when it was made */
	struct smartiod_segment *segment; /* LOCAL: a segment of this host, pinned by its ref */
	/* REMOTE: one window, shared by all maps. */
	enum { SMARTIOD_UNMAPPED, SMARTIOD_MAPPING, SMARTIOD_MAPPED } window;
	uint64_t map, map_offset, map_bus_addr; /* the port's */
	/* At the exporter: the bus address, and of a window of before our start its grant. */
	uint64_t there, there_grant;
	/* The exporter's. 0: the window is of before our start, and the exporter has not told. */
	uint64_t grant;
	uint64_t start; /* the start of the exporter that granted it */
	int map_fd;	/* -1 */
	/* The previous window: its grant is released when the port has unmapped it. */
	uint64_t old_grant, old_start, old_there, old_there_grant;
	struct smartiod_connection *next_unmapping;  /* of d->unmapping; */
	struct smartiod_connection **prev_unmapping; /* NULL: it is not there */
	struct smartiod_op unmap;      /* embedded, so that giving back needs no memory */
	unsigned n_maps;	       /* live SMARTIOD_MAP objects */
	unsigned dma;		       /* DMA maps through it: SEG_DISCONNECT is EBUSY */
	struct smartiod_range *ranges; /* of DMA queues; they keep the window */
	bool exact; /* GROUP: the members have memory of their own; map is the path to them */
	unsigned pins;
	void *device;				   /* BAR: its borrow, */
	const struct smartiod_connection_ops *ops; /* and its operations */
	/* the borrow whose private device segment it is, by the lender's number, or 0 */
	uint64_t borrow;
	/*
	 * Of a device segment: the borrow by which it was connected, the lender, and the kind of
	 * memory.
	 */
	uint64_t via;
	uint32_t lender, fdid, memtype;
};

/* Does it wait for an answer of the exporter or the port? */
static inline bool smartiod_connection_connecting(const struct smartiod_connection *c)
{
	return c->state >= SMARTIOD_CONNECTION_CONNECTING &&
	       c->state <= SMARTIOD_CONNECTION_CONNECTING_LOST;
}
/* Is the segment that it leads to gone? */
static inline bool smartiod_connection_is_lost(const struct smartiod_connection *c)
{
	return c->state == SMARTIOD_CONNECTION_LOST ||
	       c->state == SMARTIOD_CONNECTION_CONNECTING_LOST;
}
/* Is it lost or closed, so that no use may begin? */
static inline bool smartiod_connection_over(const struct smartiod_connection *c)
{
	return smartiod_connection_is_lost(c) || c->state == SMARTIOD_CONNECTION_CLOSED;
}
/*
 * Applies an event to the connection's state. An event that is not allowed in that state is a bug
 * of the daemon, and ends it.
 */
void smartiod_connection_enter(struct smartiod *d, struct smartiod_connection *c,
			       enum smartiod_connection_event event);

struct smartiod_map {
	struct smartiod_object o;
	struct smartiod_connection *connection;
	void *bar; /* of a BAR: borrower/barmap.c's */
	struct smartiod_charge charge;
};

/*
 * Connects for @request of a client: replies struct sio_rep_seg_connect. @adapter SIO_ADAPTER_ANY:
 * over any path that is up.
 */
int smartiod_connect_open(struct smartiod *d, struct smartiod_session *s, const void *request,
			  uint32_t node, const struct smartiod_wanted *w, uint32_t adapter,
			  struct sio_err *reterr);
/* A new connection with number @id, of which nobody has a handle. NULL: no memory. */
struct smartiod_connection *smartiod_connection_nobodys(struct smartiod *d,
							enum smartiod_route route, uint64_t id);
/*
 * A new connection object with a handle; _again: with the number @id, which it had before the
 * restart.
 */
struct smartiod_connection *smartiod_connection_again(struct smartiod *d,
						      struct smartiod_session *s,
						      enum smartiod_route route, uint64_t id,
						      struct sio_err *reterr);
struct smartiod_connection *smartiod_connection_new(struct smartiod *d, struct smartiod_session *s,
						    enum smartiod_route route,
						    struct sio_err *reterr);
/*
 * The client has released the connection, or has ended (@reason for the exporter: SCI_CB_DISCONNECT
 * or _LOST). Everything is released; the object stays while it is pinned.
 */
void smartiod_connection_close(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* Releases the window, if there is one; its grant is released when the port has unmapped it. */
void smartiod_window_release(struct smartiod *d, struct smartiod_connection *c);
/* Is a window to this grant of @node being made or unmapped, although its connection is lost? */
bool smartiod_window_has(struct smartiod *d, uint32_t node, uint64_t grant);
void smartiod_connection_unpin(struct smartiod *d, struct smartiod_connection *c);
/* Called when a user may have ended: frees a closed connection that has none left. */
void smartiod_connection_check(struct smartiod *d, struct smartiod_connection *c);
/* The connection is lost: notifies the library (lost = 1), releases window and grant. */
void smartiod_connection_lost(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* A notification of the exporter, @node, about the connection with this number. */
void smartiod_connection_event(struct smartiod *d, uint32_t node, uint64_t connection,
			       uint32_t reason, enum sio_segment_loss loss);
/* Part of the room's table: reports programs that are connected. They stay connected. */
void smartiod_connections_forbidden(struct smartiod *d, const struct smartiod_forbid *f);
void smartiod_connections_parting(struct smartiod *d, uint32_t node);
void smartiod_connection_free_all(struct smartiod *d);
/* It is to a device segment: what @w says of the borrow and the lender. */
void smartiod_connection_via(struct smartiod_connection *c, const struct smartiod_wanted *w);
/* The seal of the map @handle of a connection to another host, by the port's map @window. */
uint64_t smartiod_window_seal(const struct smartiod_session *s, uint32_t handle,
			      const struct smartiod_connection *c, uint64_t window);
/* The seal of a connection to another host, which it has with its handle. */
uint64_t smartiod_connection_seal(const struct smartiod_session *s,
				  const struct smartiod_connection *c);
/*
 * The path leads to another start of the exporter, or by other addresses, than when @c was made:
 * its window leads nowhere. To be asked while the path is up.
 */
bool smartiod_connection_stale(struct smartiod *d, const struct smartiod_connection *c);
/* A new mapping with a handle, counted in c->n_maps. */
struct smartiod_map *smartiod_map_new(struct smartiod *d, struct smartiod_session *s,
				      struct smartiod_connection *c, struct sio_err *reterr);
void smartiod_map_drop(struct smartiod *d, struct smartiod_map *m);
void smartiod_connection_node_down(struct smartiod *d, uint32_t node);
/*
 * The path of connections went down, or is up again: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL.
 * Nothing is lost.
 */
void smartiod_connection_path(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter, bool up);

/* A range that a DMA queue reaches through a connection. */
struct smartiod_range {
	struct smartiod_range *next; /* of the connection */
	struct smartiod_queue *queue;
	uint64_t id; /* the port's; 0: not yet */
	void *bar;   /* of a connection to a BAR: what it reaches; NULL: not yet */
	struct smartiod_charge charge; /* the same, of another host's: a window of its own */
};

/* A new range of @c, for queue @q. NULL: no memory. */
struct smartiod_range *smartiod_range_new(struct smartiod_connection *c, struct smartiod_queue *q);
/* Forgets range @g (NULL: nothing) of @c; the window ends with its last user. */
void smartiod_range_forget(struct smartiod *d, struct smartiod_connection *c,
			   struct smartiod_range *g);
/* The connection ends or is lost: ends its ranges. @tell: the port still has them. */
void smartiod_ranges_end(struct smartiod *d, struct smartiod_connection *c, bool tell);
/* Of a connection that is freed: what they reach is its rooms' to free. */
void smartiod_ranges_free(struct smartiod_connection *c);
/* Ends range @id at the port; 0: nothing. */
void smartiod_port_detach(struct smartiod *d, uint64_t owner, uint64_t id);

/*
 * An operation that needs a connection's window; the first member of the operation. The first one
 * makes the window, the others wait for it. Made by smartiod_op_new() with step
 * smartiod_window_step.
 */
struct smartiod_window_op {
	struct smartiod_op op;
	struct smartiod_connection
		*connection;	     /* pinned by the caller, and by the window's making */
	struct sio_wire_grant grant; /* what the exporter granted; 0: nothing yet */
	bool leads;
	/*
	 * Called when there is a window, and the session still lives: replies, and ends the
	 * operation.
	 */
	void (*ready)(struct smartiod *d, struct smartiod_window_op *w);
	/* Called when there is no window; the client has got the error: ends the operation. */
	void (*failed)(struct smartiod *d, struct smartiod_window_op *w);
};
smartiod_step smartiod_window_step;
/* The port is to unmap a window of @c, which is not c->map any more. */
void smartiod_window_unmap(struct smartiod *d, struct smartiod_connection *c, uint64_t map,
			   uint64_t grant);
void smartiod_window_go(struct smartiod *d, struct smartiod_window_op *w);

#endif
