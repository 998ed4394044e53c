/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments: memory of this host that programs, peers and devices share. */
#ifndef SMARTIOD_SEGMENT_H
#define SMARTIOD_SEGMENT_H

#include "core/hash.h"
#include "smartiod/base/session.h"
#include "smartiod/segment/segment_life.h"

struct smartiod_grant;
struct smartiod_unclaimed;

/*
 * On a real host, the uid of a segment in the port's memory @mem is this constant plus the memory's
 * id.
 */
#define SMARTIOD_UID_MEM (1ULL << 63)
/* There, a bit of its memory's user_cookie: the rest is the segment's id. */
#define SMARTIOD_COOKIE_SEGMENT (1ULL << 62)

/* The exporter's reference for a connection to a segment, from any node, this one included. */
struct smartiod_ref {
	struct smartiod_ref *next, **prev;
	struct sio_hash_node by_connection; /* in the segment's refs_by_connection */
	uint32_t node, adapter;		    /* adapter: ours, where its path arrives */
	uint64_t connection;		    /* the importer's number */
	bool down;			    /* no path of it through the adapter is up */
	bool unheard; /* the importer's daemon, disconnected then, does not know of the removal */
	uint32_t meeting; /* of the daemons, at which the importer reported it last */
	/* RESTORE: about to end; and the exporter's library knows that it came and went. */
	bool leaving, known_gone;
};

/*
 * Memory of this host that can be reached by others. Lives until its session (or borrow) releases
 * it and nothing refers to it: refs, grants, pins, dma.
 */
struct smartiod_segment {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid; /* in d->segments */
	struct smartiod_tree_node by_id;  /* in d->segment_ids, while it is named */
	uint64_t uid; /* never used again; on a real host its memory's, once it has some */
	uint32_t id;
	struct smartiod_charge charge; /* of the program that made it */
	bool named;		       /* SEG_CONNECT finds it by id */
	uint32_t device;     /* the device that it belongs to: SEG_LOOKUP by uid; 0: none */
	bool is_private;     /* SCI_FLAG_PRIVATE */
	bool imported;	     /* a part of a program's file, which is never given to another */
	bool broadcast;	     /* a member of group @id */
	bool ready;	     /* memory is there */
	bool empty;	     /* SCI_FLAG_EMPTY, and not filled yet */
	bool filled;	     /* it was empty, and has been filled */
	bool filling;	     /* its memory is being allocated */
	uint32_t memory;     /* SIO_MEMORY_*, once it has some */
	bool shared;	     /* others of this host may attach to it */
	bool maker_released; /* the handle of who made it is gone */
	enum smartiod_segment_state state;
	bool owner_gone;	      /* the port frees the memory by itself */
	uint32_t prepared, available; /* bit per adapter */
	/*
	 * Of a segment of before the restart: adapters that it was ever available on, connections
	 * that its library was notified of.
	 */
	uint32_t exported, told;
	bool untold; /* further connections are reported when all peers have reported theirs */
	/* Removed, and peers that are expected may report that they are connected to it. */
	bool reserved;
	bool numberless; /* its id was not found out */
	/* Of a group: available as the port confirmed it, and by which request of which number. */
	uint32_t published, publish_turn, published_turn[SIO_MAX_ADAPTERS];
	unsigned publishing; /* requests to the port on their way */
	uint32_t pid;
	uint64_t owner, mem, bytes, phys; /* owner, mem: the port's */
	int fd;				  /* of the memory; -1 */
	uint64_t fd_offset;		  /* where that begins there */
	struct smartiod_attachment *attachments;
	struct smartiod_ref *refs; /* the newest first */
	struct sio_hash refs_by_connection;
	unsigned n_refs, n_grants;
	unsigned n_own_grants; /* of n_grants: for devices that this host's programs borrow, */
	unsigned n_orphaned;   /* and those that are orphaned, which are not among them */
	unsigned dma;	       /* DMA maps of local devices that reach it */
	unsigned pins;	       /* operations in progress */
};

/* Another program's handle of a segment. */
struct smartiod_attachment {
	struct smartiod_object o;
	struct smartiod_attachment *next;
	struct smartiod_segment *segment; /* NULL: it has ended */
};

/*
 * The segment of a handle, the maker's or an attached one; NULL with *reterr. _ready: only if it
 * has its memory.
 */
struct smartiod_segment *smartiod_segment_get(struct smartiod_session *s, uint32_t handle,
					      struct sio_err *reterr);
struct smartiod_segment *smartiod_segment_get_ready(struct smartiod_session *s, uint32_t handle,
						    struct sio_err *reterr);
/*
 * Releases a handle that was found before, if others of its segment stay. Return: it was released.
 */
bool smartiod_segment_release_handle(struct smartiod_session *s, uint32_t handle);
/* Does the segment have more than one handle? */
bool smartiod_segment_has_others(const struct smartiod_segment *seg);
/*
 * Is @handle the maker's, while there are others, and can the port give the memory to the daemon?
 * Then that is done first, and the answer of the port answers SEG_REMOVE. -ENOMEM, -EMFILE: nothing
 * is changed.
 */
bool smartiod_segment_can_give(const struct smartiod *d, const struct smartiod_session *s,
			       uint32_t handle, const struct smartiod_segment *seg);
int smartiod_segment_give(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct smartiod_segment *seg, struct sio_err *reterr);
/* Forgets a handle that was found before: it is not notified of the end that follows. */
void smartiod_segment_forget_handle(struct smartiod_session *s, uint32_t handle);
/* The segment ends: its attached handles become invalid. */
void smartiod_segment_detach_all(struct smartiod *d, struct smartiod_segment *seg);
/* The program of an attached handle has ended. */
void smartiod_attachment_drop(struct smartiod *d, struct smartiod_object *o);
struct smartiod_segment *smartiod_segment_by_id(struct smartiod *d, uint32_t id);

/*
 * Makes a segment without memory. @s NULL: it belongs to no client (device segments, found by uid
 * only). @named: it gets @id in the host's space of ids; -EEXIST if that is taken.
 */
int smartiod_segment_new(struct smartiod *d, struct smartiod_session *s, uint64_t owner, bool named,
			 uint32_t id, uint64_t bytes, struct smartiod_segment **ret,
			 struct sio_err *reterr);
/* The segment gets its memory: the answer to an ALLOC. Takes the descriptor. */
void smartiod_segment_ready(struct smartiod *d, struct smartiod_segment *seg,
			    const struct smartiod_answer *a);
/*
 * Ends the segment: nobody can use it from now on; its importers are notified (@reason: SCI_CB_*)
 * and lose it. Memory and object are freed when the last one has released it. @owner_gone: the port
 * frees the memory by itself.
 */
void smartiod_segment_end(struct smartiod *d, struct smartiod_segment *seg, uint32_t reason,
			  bool owner_gone);
/*
 * Removes the segment from the look-up and frees its id. @event: GIVE, or one that leads to KEPT or
 * ENDED. _kept: the importers, who keep it from now on, are notified as well.
 */
void smartiod_segment_leave(struct smartiod *d, struct smartiod_segment *seg,
			    enum smartiod_segment_event event);
void smartiod_segment_kept(struct smartiod *d, struct smartiod_segment *seg,
			   enum smartiod_segment_event event);
/*
 * May a new grant or mapping of the segment be made: by its owner, who needs a handle, or by an
 * importer?
 */
bool smartiod_segment_usable(const struct smartiod_segment *seg, bool by_owner);
struct smartiod_segment *smartiod_segment_by_uid(struct smartiod *d, uint64_t uid);
/* Temporary references. The last unpin may free the segment. */
static inline void smartiod_segment_pin(struct smartiod_segment *seg)
{
	seg->pins++;
}
void smartiod_segment_unpin(struct smartiod *d, struct smartiod_segment *seg);
/* Called when references may have ended: frees a removed segment that has none left. */
void smartiod_segment_check(struct smartiod *d, struct smartiod_segment *seg);
/* Is there a user of the segment, or about to be one? Orphaned grants (orphan.c) do not count. */
static inline bool smartiod_segment_used(const struct smartiod_segment *seg)
{
	return seg->n_refs || seg->n_grants > seg->n_orphaned || seg->dma || seg->pins ||
	       seg->reserved;
}
static inline void smartiod_segment_dma_get(struct smartiod_segment *seg)
{
	seg->dma++;
}
void smartiod_segment_dma_put(struct smartiod *d, struct smartiod_segment *seg);
/*
 * Adds the reference of a new connection. The exporter's library is notified after the importer has
 * its answer: if this daemon is killed between the two, the next one notifies it. In the other
 * order the library could have been notified of a connection that does not exist.
 */
int smartiod_segment_ref(struct smartiod_segment *seg, uint32_t node, uint32_t adapter,
			 uint64_t connection, struct sio_err *reterr);
void smartiod_segment_connected(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				uint32_t adapter);
/* Removes the reference of a connection. @reason: for the notification; 0: nobody is notified. */
void smartiod_segment_unref(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
			    uint64_t connection, uint32_t reason);
void smartiod_segment_free_all(struct smartiod *d);
void smartiod_segment_refs_free(struct smartiod_segment *seg);
/* resume.c: has @node a grant of its memory? */
bool smartiod_segment_granted(struct smartiod *d, const struct smartiod_segment *seg,
			      uint32_t node);
bool smartiod_segment_has_ref(const struct smartiod_segment *seg, uint32_t node,
			      uint64_t connection);
/* The segment of a connect request: by its id, or a device segment by its uid. */
struct smartiod_wanted {
	uint64_t uid; /* 0: by @id */
	uint32_t id;
	uint32_t device; /* fdid, with a uid */
	uint64_t borrow; /* whose private device segment it is: it ends with its path; 0: none */
	uint64_t via;	 /* the borrow of @device, whose lender reported @uid; 0: none */
	uint32_t lender, memtype;
};
/*
 * The segment that a request may connect to. @adapter: where the request's path arrives;
 * SIO_ADAPTER_ANY: from this host itself, to a segment that is available anywhere. NULL with
 * *reterr.
 */
struct smartiod_segment *smartiod_segment_lookup(struct smartiod *d,
						 const struct smartiod_wanted *w, uint32_t adapter,
						 struct sio_err *reterr);
/* Of the room's table. */
struct smartiod_forbid;
void smartiod_segments_forbidden(struct smartiod *d, const struct smartiod_forbid *f);
void smartiod_segments_parting(struct smartiod *d, uint32_t node);
/* The same: adapter @adapter is no more, and nothing is available there. */
void smartiod_segments_adapter_gone(struct smartiod *d, uint32_t adapter);
/* Drop the references of a node; the exporter's library gets SCI_CB_LOST. */
void smartiod_segment_node_down(struct smartiod *d, uint32_t node);
/* A path of a node to @adapter changed: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL. */
void smartiod_segment_path(struct smartiod *d, uint32_t node, uint32_t adapter);
/*
 * Takes away the reference of each importer on @adapter (or SIO_ADAPTER_ANY) and notifies it of the
 * reason.
 */
void smartiod_segment_cut(struct smartiod *d, struct smartiod_segment *seg, uint32_t adapter,
			  uint32_t reason);
/* Asks the importers on @adapter to disconnect. */
void smartiod_segment_ask_to_leave(struct smartiod *d, struct smartiod_segment *seg,
				   uint32_t adapter);
/* Notifies all importers that the segment was removed, and is kept for them. */
void smartiod_segment_notify_removed(struct smartiod *d, struct smartiod_segment *seg);

void smartiod_segment_grant_put(struct smartiod *d, struct smartiod_segment *seg,
				const struct smartiod_grant *grant);
/* An unclaimed resource of the port becomes its memory. */
void smartiod_segment_take_unclaimed(struct smartiod *d, struct smartiod_segment *seg,
				     struct smartiod_unclaimed *l);

#endif
