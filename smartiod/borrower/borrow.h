/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The borrower's side of a borrow: the handles of programs of this host for devices, of this host
 * or of others. The lender's side of a borrow is in lender/, and is reached by messages alone.
 */
#ifndef SMARTIOD_BORROW_H
#define SMARTIOD_BORROW_H

#include "smartiod/base/peer.h"
#include "smartiod/borrower/borrow_life.h"
#include "smartiod/device/device.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/segment/connection.h"

/* A range of a segment of this host that the lender may request; uid 0: none. */
struct smartiod_dma_range {
	uint64_t uid, offset, bytes;
};

/* Borrower: a borrow of a client, which has a handle of it. */
struct smartiod_borrow {
	struct smartiod_object o;
	struct smartiod_borrow *next; /* of devices */
	struct smartiod_charge charge;
	struct smartiod_device *device;
	uint64_t id;	 /* the lender's number; 0: not yet */
	uint64_t ticket; /* proves to other lenders that this host has the borrow; 0: not known */
	uint32_t node;
	uint32_t adapter; /* the adapter of this host that it uses; SIO_ADAPTER_ANY */
	enum smartiod_borrow_state state;
	uint32_t generation; /* the device's, at the last reset of which the client was notified */
	bool released;	     /* it was exclusive, and was opened to others */
	struct smartiod_set_vector *vectors; /* those that its program has set */
	uint64_t shadow_dma; /* the DMA mapping of its shadow, by the lender's number; 0: none */
	/* the memory of that mapping, from the request for it on */
	struct smartiod_dma_range shadow_ram;
	struct smartiod_peer_map *peer_maps; /* what its shadow reaches of others, at the lender */
	/* of before our start: what its driver asks is asked again when the lender is met */
	bool shadow_asks;
	unsigned users; /* BAR connections, DMA maps */
	unsigned pins;	/* operations in progress */
	struct smartiod_placed *placed;
	struct smartiod_made *made;
	struct smartiod_bar_map *maps;	 /* of its BARs */
	struct smartiod_dma_handle *dma; /* its DMA mappings of segments */
};
/* Borrower: a BAR of another device, which the lender has mapped for this one (shadow_peer.c). */
struct smartiod_peer_map {
	struct smartiod_peer_map *next;
	struct sio_prep_dma_map mapped;
};
/* Borrower: a vector of the device. */
struct smartiod_set_vector {
	struct smartiod_set_vector *next;
	uint64_t asked; /* the request that sets it; 0: it is set */
	uint32_t number;
	bool leaving;	  /* its program takes it back, */
	uint32_t meeting; /* since this meeting with the lender's daemon */
};
/* Borrower: a device segment that lies in this host's memory. */
struct smartiod_placed {
	struct smartiod_placed *next;
	struct smartiod_segment *segment;
	uint32_t memtype;
	bool known; /* to the lender, who has its id for it */
};

/* Borrower: a device segment of the borrow's that lies in its lender's memory. */
struct smartiod_made {
	struct smartiod_made *next;
	uint64_t uid;
	bool connected; /* a program of this host has been connected to it since */
};

/* Borrower: what a mapping of a BAR (struct smartiod_map) has at port and lender. */
struct smartiod_bar_piece {
	uint64_t view, grant; /* the lender's */
	uint64_t map;	      /* our port's; 0: none */
	bool released;	      /* the lender has been notified that the address is free */
	bool doorbells;
	bool gone;		     /* a reset has taken them away */
	struct smartiod_op unmap;    /* embedded, so that giving back needs no memory; */
	struct smartiod_bar_map *of; /* the mapping that it belongs to; NULL: never requested */
	uint64_t watch;		     /* our port's; 0: none */
	int fd;			     /* of map; -1 */
	uint64_t fd_offset;
	uint64_t offset, bytes; /* in the segment */
};
struct smartiod_bar_map {
	struct smartiod_bar_map *next; /* of the borrow */
	struct smartiod_borrow *borrow;
	struct smartiod_connection *connection; /* NULL: closed */
	uint32_t adapter, peer_adapter;		/* the path to the lender */
	uint64_t start; /* the start of the lender that granted; 0: this host is the lender */
	uint32_t bar;
	bool is_member; /* its one piece is a member of multicast group @group */
	uint32_t group;
	bool closed; /* kept while the port unmaps pieces: their number is @unmapping */
	unsigned unmapping;
	unsigned n;
	struct smartiod_bar_piece piece[SIO_MAP_PIECES];
};

/* Borrower: a client's DMA map. */
struct smartiod_dma_handle {
	struct smartiod_object o;
	struct smartiod_dma_handle *next; /* of the borrow */
	struct smartiod_charge charge;
	struct smartiod_borrow *borrow;
	struct smartiod_connection *connection; /* pinned; NULL: a local segment */
	struct smartiod_dma_range own; /* of a local segment; a restored mapping has none */
	uint64_t map;		       /* the lender's number; 0: not yet */
	bool busy;		       /* an operation uses it */
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
/*
 * The path to a borrowed device of another host: over the borrow's adapter, and then the same as
 * before as long as it has a map of a BAR; or the shortest that is up.
 */
int smartiod_borrow_path(struct smartiod *d, const struct smartiod_borrow *b, struct sio_path *ret,
			 struct sio_err *reterr);
void smartiod_borrow_unpin(struct smartiod *d, struct smartiod_borrow *b);
/* A request of a client that its lender answers. */
struct smartiod_borrow_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
	uint64_t number;		/* @step's own */
};
/*
 * Sends a request to the lender. @step gets the answer, ends the operation and unpins; NULL: the
 * answer is success or an error alone.
 */
int smartiod_borrow_ask(struct smartiod *d, struct smartiod_session *s, const void *request,
			struct smartiod_borrow *b, smartiod_step *step, uint64_t number, void *msg,
			size_t len, struct sio_err *reterr);
/* The lender has granted the borrow, under the number @id. */
void smartiod_borrow_lent(struct smartiod *d, struct smartiod_borrow *b, uint64_t id);
/* A new borrow with a handle of @s, pinned. NULL with *reterr. */
struct smartiod_borrow *smartiod_borrow_new(struct smartiod *d, struct smartiod_session *s,
					    struct smartiod_device *dev, struct sio_err *reterr);
/*
 * vector_ask.c: restores vector @number, which the borrow has set; @leaving: its program is taking
 * it back. -EINVAL, -ENOMEM with *reterr.
 */
int smartiod_vector_known(struct smartiod_borrow *b, uint32_t number, bool leaving,
			  struct sio_err *reterr);
void smartiod_vectors_forget(struct smartiod_borrow *b);
/*
 * The program lets devices of @node trigger what its connection @link leads to, if that is of
 * this host.
 */
void smartiod_vector_sender(struct smartiod *d, struct smartiod_session *s, uint32_t link,
			    uint32_t node);
/* placed.c: a connection to a BAR; NULL with *reterr. */
struct smartiod_connection *smartiod_connect_bar(struct smartiod *d, struct smartiod_session *s,
						 struct smartiod_borrow *b, uint32_t bar,
						 struct sio_err *reterr);
/* The same, of @bytes bytes, where the lender has not announced its device yet. */
struct smartiod_connection *smartiod_bar_connection(struct smartiod *d, struct smartiod_session *s,
						    struct smartiod_borrow *b, uint32_t bar,
						    uint64_t bytes, struct sio_err *reterr);
/* A segment of @b in this host's memory, charged to @s without asking; NULL with *reterr. */
struct smartiod_placed *smartiod_placed_new(struct smartiod *d, struct smartiod_session *s,
					    struct smartiod_borrow *b, uint32_t id,
					    uint32_t memtype, uint64_t bytes,
					    struct sio_err *reterr);
void smartiod_borrow_unuse(struct smartiod *d, struct smartiod_borrow *b);
/* @b cannot be gone on with: its lender ends it, and its program is notified that it is lost. */
void smartiod_borrow_give_up(struct smartiod *d, struct smartiod_borrow *b);
void smartiod_borrow_node_down(struct smartiod *d, uint32_t node);
/* The last path to @node is down: borrows of its devices are lost, and the lender is notified. */
void smartiod_borrow_link_lost(struct smartiod *d, uint32_t node);
/* Part of the room's table (base/room.h). */
struct smartiod_forbid;
void smartiod_borrows_forbidden(struct smartiod *d, const struct smartiod_forbid *f);
void smartiod_borrows_parting(struct smartiod *d, uint32_t node);
void smartiod_borrow_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			       uint32_t peer_adapter);
void smartiod_borrow_device_gone(struct smartiod *d, struct smartiod_device *dev);
/* A reset of @dev took its doorbells away from borrow @id. */
void smartiod_borrow_doorbells_gone(struct smartiod *d, struct smartiod_device *dev, uint64_t id);
bool smartiod_borrows_of(struct smartiod *d, uint32_t node);
void smartiod_borrow_session_end(struct smartiod *d, struct smartiod_session *s);
void smartiod_borrow_free_all(struct smartiod *d);
bool smartiod_borrow_segment_idle(struct smartiod *d, struct smartiod_segment *seg);

/* ---- barmap_ask.c ---- */

extern const struct smartiod_connection_ops smartiod_bar_ops;

/* ---- barmap.c ---- */

/*
 * A new mapping of @c (NULL: for a shadow, until the borrow ends), which is about to be requested.
 */
struct smartiod_bar_map *smartiod_bar_map_new(struct smartiod *d, struct smartiod_borrow *b,
					      struct smartiod_connection *c,
					      const struct sio_path *path);
/* Gives it back, with what was mapped. Nobody waits for the port: the device can be returned. */
void smartiod_bar_map_close(struct smartiod *d, struct smartiod_bar_map *bar);
/* The same of one piece, whose mapping stays. */
void smartiod_bar_piece_release(struct smartiod *d, struct smartiod_bar_map *bar,
				struct smartiod_bar_piece *p);
/* Mappings for a shadow. _is_of: are there some? */
bool smartiod_shadow_is_of(const struct smartiod_borrow *b);
void smartiod_shadow_bars_close(struct smartiod *d, struct smartiod_borrow *b);
/* The path to the lender is gone, and with it the windows of the mapping. */
void smartiod_bar_map_lost(struct smartiod *d, struct smartiod_bar_map *bar);
/* The device was reset: doorbells among the pieces lead nowhere. */
void smartiod_bar_map_doorbells_gone(struct smartiod *d, struct smartiod_bar_map *bar);
/* A bit for each piece that is doorbells. */
uint32_t smartiod_bar_doorbells(const struct smartiod_bar_map *bar);
/* The seal of a map of another host's BAR, which it has with its handle. */
uint64_t smartiod_bar_seal(const struct smartiod_session *s, uint32_t handle,
			   const struct smartiod_bar_map *bar);
/* Is @grant of the lender @node mapped, or about to be? */
bool smartiod_bar_has_grant(struct smartiod *d, uint32_t node, uint64_t grant);

/* ---- made.c ---- */

/*
 * The program of @b has made device segment @uid in a real lender's memory. So many at most are
 * noted, and for want of memory none: the lender keeps what is not known here as long as the
 * borrow.
 */
void smartiod_made_note(struct smartiod_borrow *b, uint64_t uid);
/* A program of this host is connected to device segment @uid of @node. */
void smartiod_made_connected(struct smartiod *d, uint32_t node, uint64_t uid);
void smartiod_made_forget(struct smartiod_borrow *b);
/* Resynchronisation: sends the lender of @b those of @b. */
void smartiod_made_resume(struct smartiod *d, const struct smartiod_borrow *b);

/* ---- shadow_end.c ---- */

/* The borrow of @s that has a shadow, or is about to; NULL: none. */
struct smartiod_borrow *smartiod_shadow_borrow(struct smartiod_session *s);
/* Fills in the request that ends the shadow of @s, which has one. */
void smartiod_shadow_fill_del(struct smartiod_session *s, struct sio_req_shadow_del *ret);
/*
 * The shadow of @b was not made, or has ended: releases what its lender has mapped for it. false:
 * there is nothing. true: @op gets the answer, and then calls _undone, which frees the memory.
 */
bool smartiod_shadow_undo(struct smartiod *d, struct smartiod_op *op, struct smartiod_borrow *b);
void smartiod_shadow_undone(struct smartiod *d, struct smartiod_borrow *b,
			    struct smartiod_segment *ram);

/* ---- shadow_again.c ---- */

/* Fills in what the library of @s restores its shadow by; @mem: what the device reaches. */
void smartiod_shadow_fill_claims(const struct smartiod_session *s, const struct smartiod_borrow *b,
				 uint64_t mem, struct sio_rep_shadow *ret);
smartiod_restore_fn smartiod_shadow_again;
void smartiod_shadow_not_again(struct smartiod *d, struct smartiod_session *s,
			       const struct sio_msg_restore *m);
/*
 * A request for a shadow of a program whose last one, in the making when this daemon was started,
 * is being ended: it is carried out when that has gone.
 */
int smartiod_shadow_later(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_shadow *m, struct sio_err *reterr);
/* The unclaimed shadow of @owner has gone, and what it consisted of. */
void smartiod_shadow_unclaimed_gone(struct smartiod *d, uint64_t owner);
/* The lender @node has been met: drivers of shadows of before our start are served. */
void smartiod_shadows_answered(struct smartiod *d, uint32_t node);

/* ---- shadow_peer.c ---- */

/*
 * Peer-to-peer between a shadow and all others of this host, one BAR after the other; begins with
 * zeros.
 */
struct smartiod_peering {
	uint64_t client; /* the session of the other shadow */
	unsigned place;	 /* counts through the BARs of this shadow, then those of the other */
	uint64_t bytes;
	uint64_t of, target;		/* the shadows for which was asked, */
	uint32_t node;			/* who, */
	struct sio_prep_dma_map mapped; /* and what was answered */
};
/*
 * Requests the mapping of the BAR at which @p is, or of the next that there is. false: there is
 * none left.
 */
bool smartiod_peering_ask(struct smartiod *d, struct smartiod_op *op, struct smartiod_peering *p);
/* The lender's answer: gives it to the kernel. false: there is nothing to give. */
bool smartiod_peering_mapped(struct smartiod *d, struct smartiod_op *op, struct smartiod_peering *p,
			     const struct smartiod_answer *a);
/* The kernel's answer. */
void smartiod_peering_answered(struct smartiod *d, struct smartiod_op *op,
			       struct smartiod_peering *p, const struct smartiod_answer *a);

/* ---- shadow_config.c ---- */

/* The driver of a shadow accesses a register that the lender has to serve. */
void smartiod_shadow_config(struct smartiod *d, const struct sio_evt_shadow_config *evt);

/* ---- resume.c ---- */

/* Resynchronisation: sends @node what programs of this host have of its devices. */
void smartiod_borrow_resume(struct smartiod *d, uint32_t node);
/*
 * Holds that owners of registers on this host have at other lenders: one more of @b's, or one less
 * of @borrow's, with number @hold. A hold outlives the borrow that took it, but not the device's
 * generation. -ENOMEM.
 */
int smartiod_held_add(struct smartiod *d, const struct smartiod_borrow *b, uint64_t hold,
		      uint32_t generation);
void smartiod_held_drop(struct smartiod *d, uint32_t fdid, uint64_t hold, uint64_t borrow);
/* The device was reset: holds of before the reset have ended. */
void smartiod_held_reset(struct smartiod *d, const struct smartiod_device *dev);
/* The device is gone: its holds have ended. */
void smartiod_held_end(struct smartiod *d, const struct smartiod_device *dev);
void smartiod_held_lost(struct smartiod *d, uint32_t node);
void smartiod_held_free_all(struct smartiod *d);

/*
 * restore.c: what the library of @s had of another host's device before smartiod was started again.
 * The lender says what of it there still is when the daemons meet.
 */
uint64_t smartiod_borrow_seal(const struct smartiod_session *s, uint32_t handle, uint64_t id,
			      uint32_t fdid, const struct sio_rep_dev_list *info);
smartiod_restore_fn smartiod_borrow_again;
int smartiod_dev_seg_placed_again(struct smartiod *d, struct smartiod_session *s,
				  struct smartiod_borrow *b, const struct sio_msg_restore *m,
				  struct sio_err *reterr);
int smartiod_dev_connection_again(struct smartiod *d, struct smartiod_session *s,
				  struct smartiod_borrow *b, const struct sio_msg_restore *m,
				  struct sio_err *reterr);
/* The connection's reach_again(). */
int smartiod_bar_reach_again(struct smartiod *d, struct smartiod_session *s,
			     struct smartiod_connection *c, const struct sio_msg_restore *m,
			     void **ret, uint64_t *ret_target, struct sio_err *reterr);
int smartiod_bar_map_again(struct smartiod *d, struct smartiod_session *s,
			   struct smartiod_connection *c, const struct sio_msg_restore *m,
			   struct sio_err *reterr);
/* overlay.c: a BAR's member of a group. Of a device of this host the lender checks the claim. */
int smartiod_member_map_again(struct smartiod *d, struct smartiod_session *s,
			      struct smartiod_connection *c, const struct sio_msg_restore *m,
			      struct smartiod_map **ret, struct sio_err *reterr);
int smartiod_dma_again(struct smartiod_session *s, struct smartiod_borrow *b,
		       const struct sio_msg_restore *m, struct sio_err *reterr);
/* The program of @s has not said in time what it has: its borrows of other hosts are lost. */
void smartiod_borrows_late(struct smartiod *d, const struct smartiod_session *s);
/* Does a borrow of @s wait for the word of its lender, who has not been met since our start? */
bool smartiod_borrows_wait(struct smartiod *d, const struct smartiod_session *s);

/* ---- barwatch.c ---- */

/* Ends the watch of a piece that ends, or that gets another watch. */
void smartiod_bar_unwatch(struct smartiod *d, struct smartiod_bar_piece *p);

/* ---- dmamap.c ---- */

/* A new DMA mapping with a handle of @s, busy. @c NULL: of a local segment. NULL with *reterr. */
struct smartiod_dma_handle *smartiod_dma_handle_new(struct smartiod_session *s,
						    struct smartiod_borrow *b,
						    struct smartiod_connection *c,
						    struct sio_err *reterr);
void smartiod_dma_handles_end(struct smartiod *d, struct smartiod_session *s);
/* Requests the end of mapping @map of @b; @op gets the answer. */
void smartiod_dma_ask_unmap(struct smartiod *d, struct smartiod_op *op,
			    const struct smartiod_borrow *b, uint64_t map);
/*
 * Does a program of this host map these bytes of segment @uid for a device of @node, or request
 * that?
 */
bool smartiod_dma_maps(struct smartiod *d, uint32_t node, uint64_t uid, uint64_t offset,
		       uint64_t bytes);
/* Late replies: a mapping for which nobody waits any more is unmapped. */
void smartiod_dma_late(struct smartiod *d, uint32_t node, const void *reply);
/* The same for pages of a BAR, a hold, a vector, a member of a multicast group. */
void smartiod_bar_late(struct smartiod *d, uint32_t node, const void *reply);
void smartiod_hold_late(struct smartiod *d, uint32_t node, const void *reply);
void smartiod_vector_late(struct smartiod *d, uint32_t node, const void *reply);
void smartiod_member_late(struct smartiod *d, uint32_t node, const void *reply);

#endif
