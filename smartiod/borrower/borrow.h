/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The borrower's side of a borrow: what programs of this host have of devices, ours or other
 * hosts'. What the lender keeps of it is lender/'s, and is asked for by messages.
 */
#ifndef SMARTIOD_BORROW_H
#define SMARTIOD_BORROW_H

#include "smartiod/base/peer.h"
#include "smartiod/borrower/borrow_life.h"
#include "smartiod/device/device.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/segment/connection.h"

/* Borrower: what a client has a handle of. */
struct smartiod_borrow {
	struct smartiod_object o;
	struct smartiod_borrow *next; /* of devices */
	struct smartiod_device *device;
	uint64_t id;	 /* the lender's number; 0: not yet */
	uint64_t ticket; /* proves that it is ours; 0: we do not know it */
	uint32_t node;
	enum smartiod_borrow_state state;
	uint32_t generation; /* RESTORED: the device's when the client last heard of it */
	unsigned users;	     /* BAR connections, DMA maps */
	unsigned pins;	     /* operations in progress */
	struct smartiod_placed *placed;
	struct smartiod_bar_map *maps;	 /* of its BARs */
	struct smartiod_dma_handle *dma; /* of segments for it */
};
/* Borrower: a device segment that lies in this host's memory. */
struct smartiod_placed {
	struct smartiod_placed *next;
	struct smartiod_segment *segment;
};

/* Borrower: what a struct smartiod_map of a BAR has at port and lender. */
struct smartiod_bar_piece {
	uint64_t view, grant; /* the lender's */
	uint64_t map;	      /* our port's; 0: none */
	bool released;	      /* the lender was told that its address is nobody's */
	bool doorbells;
	bool gone;		     /* they are: a reset took them away */
	struct smartiod_op unmap;    /* embedded, so that giving back needs no memory; */
	struct smartiod_bar_map *of; /* whose it is; NULL: never asked for */
	uint64_t watch;		     /* our port's; 0: none */
	int fd;			     /* of map; -1 */
	uint64_t fd_offset;
	uint64_t offset, bytes; /* in the segment */
};
struct smartiod_bar_map {
	struct smartiod_bar_map *next; /* of the borrow */
	struct smartiod_borrow *borrow;
	struct smartiod_connection *connection; /* NULL: closed */
	uint32_t adapter, peer_adapter;		/* the way to the lender */
	uint64_t start;				/* of the lender, when it granted; 0: we are */
	bool closed; /* kept by @unmapping, pieces that the port unmaps */
	unsigned unmapping;
	unsigned n;
	struct smartiod_bar_piece piece[SIO_MAP_PIECES];
};

/* Borrower: a client's DMA map. */
struct smartiod_dma_handle {
	struct smartiod_object o;
	struct smartiod_dma_handle *next; /* of the borrow */
	struct smartiod_borrow *borrow;
	struct smartiod_connection *connection; /* pinned; NULL: a local segment */
	uint64_t map;				/* the lender's number; 0: not yet */
	bool busy;				/* an operation has it */
};

/* ---- borrow.c ---- */

static inline bool smartiod_borrow_lost(const struct smartiod_borrow *b)
{
	return b->state == SMARTIOD_BORROW_LOST || b->state == SMARTIOD_BORROW_ENDED_LOST;
}
static inline bool smartiod_borrow_ended(const struct smartiod_borrow *b)
{
	return b->state == SMARTIOD_BORROW_ENDED || b->state == SMARTIOD_BORROW_ENDED_LOST;
}

struct smartiod_borrow *smartiod_borrow_get(struct smartiod_session *s, uint32_t handle,
					    struct sio_err *reterr);
void smartiod_borrow_unpin(struct smartiod *d, struct smartiod_borrow *b);
/* A request of a client that its lender answers. */
struct smartiod_borrow_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
};
/*
 * Ask the lender; @step gets the answer, ends the operation and unpins. NULL: it is yes or no
 * alone.
 */
int smartiod_borrow_ask(struct smartiod *d, struct smartiod_session *s, const void *request,
			struct smartiod_borrow *b, smartiod_step *step, void *msg, size_t len,
			struct sio_err *reterr);
/* The lender calls it @id. */
void smartiod_borrow_lent(struct smartiod *d, struct smartiod_borrow *b, uint64_t id);
/* With a handle of @s, pinned. NULL with *reterr. */
struct smartiod_borrow *smartiod_borrow_new(struct smartiod *d, struct smartiod_session *s,
					    struct smartiod_device *dev, struct sio_err *reterr);
/* placed.c: a connection to a BAR; NULL with *reterr. */
struct smartiod_connection *smartiod_connect_bar(struct smartiod *d, struct smartiod_session *s,
						 struct smartiod_borrow *b, uint32_t bar,
						 struct sio_err *reterr);
void smartiod_borrow_unuse(struct smartiod *d, struct smartiod_borrow *b);
void smartiod_borrow_node_down(struct smartiod *d, uint32_t node);
/* The last path to it is down: the same, and it is told. */
void smartiod_borrow_link_lost(struct smartiod *d, uint32_t node);
void smartiod_borrow_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			       uint32_t peer_adapter);
void smartiod_borrow_device_gone(struct smartiod *d, struct smartiod_device *dev);
/* A reset of @dev took its doorbells away: from borrow @id. */
void smartiod_borrow_doorbells_gone(struct smartiod *d, struct smartiod_device *dev, uint64_t id);
bool smartiod_borrows_of(struct smartiod *d, uint32_t node);
void smartiod_borrow_session_end(struct smartiod *d, struct smartiod_session *s);
void smartiod_borrow_free_all(struct smartiod *d);
bool smartiod_borrow_segment_idle(struct smartiod *d, struct smartiod_segment *seg);

/* ---- barmap.c ---- */

extern const struct smartiod_connection_ops smartiod_bar_ops;

/* A map of @c (NULL: for a shadow, until the borrow ends), which is about to be asked for. */
struct smartiod_bar_map *smartiod_bar_map_new(struct smartiod *d, struct smartiod_borrow *b,
					      struct smartiod_connection *c,
					      const struct sio_path *path);
/* Those for a shadow. _is_of: are there some? */
bool smartiod_shadow_is_of(const struct smartiod_borrow *b);
void smartiod_shadow_bars_close(struct smartiod *d, struct smartiod_borrow *b);
/* The way to the lender is gone: so are its windows; the library is told. */
void smartiod_bar_map_lost(struct smartiod *d, struct smartiod_bar_map *bar);
/* The device was reset: the doorbells among its pieces lead nowhere. */
void smartiod_bar_map_doorbells_gone(struct smartiod *d, struct smartiod_bar_map *bar);
/* Is @grant of @node, a lender, mapped, or about to be? */
bool smartiod_bar_has_grant(struct smartiod *d, uint32_t node, uint64_t grant);

/* ---- shadow.c ---- */

/* What ends the shadow of @s, which has one. */
void smartiod_shadow_fill_del(struct smartiod_session *s, struct sio_req_shadow_del *ret);

/* ---- barwatch.c ---- */

/* The piece goes, or gets another watch. */
void smartiod_bar_unwatch(struct smartiod *d, struct smartiod_bar_piece *p);

/* ---- dmamap.c ---- */

/* With a handle of @s, busy. @c NULL: of a local segment. NULL with *reterr. */
struct smartiod_dma_handle *smartiod_dma_handle_new(struct smartiod_session *s,
						    struct smartiod_borrow *b,
						    struct smartiod_connection *c,
						    struct sio_err *reterr);
void smartiod_dma_handles_end(struct smartiod *d, struct smartiod_session *s);
/* A mapping that was waited for too long. */
void smartiod_dma_late(struct smartiod *d, uint32_t node, const void *reply);
/* The same of a hold, of a vector. */
void smartiod_hold_late(struct smartiod *d, uint32_t node, const void *reply);
void smartiod_vector_late(struct smartiod *d, uint32_t node, const void *reply);

#endif
