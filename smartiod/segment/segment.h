/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments: memory of this host that programs, peers and devices share. */
#ifndef SMARTIOD_SEGMENT_H
#define SMARTIOD_SEGMENT_H

#include "core/hash.h"
#include "smartiod/base/session.h"
#include "smartiod/segment/segment_life.h"

struct smartiod_grant;
struct smartiod_leftover;

/* A connection to a segment of ours, from any node, our own included. */
struct smartiod_ref {
	struct smartiod_ref *next, **prev;
	struct sio_hash_node by_connection; /* in the segment's refs_by_connection */
	uint32_t node, adapter;		    /* adapter: ours, where its path arrives */
	uint64_t connection;		    /* the importer's number */
	bool down;			    /* no path of it through the adapter is up */
	/* RESTORE: about to go; and the exporter knows that it came and went. */
	bool leaving, known_gone;
};

/*
 * Memory of this host that can be reached by others. Lives until its session (or borrow) lets go
 * of it and nothing refers to it: refs, grants, pins, dma.
 */
struct smartiod_segment {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid; /* in d->segments */
	struct smartiod_tree_node by_id;  /* in d->segment_ids, while it is named */
	uint64_t uid;			  /* never used again */
	uint32_t id;
	bool named;	 /* SEG_CONNECT finds it by id */
	uint32_t device; /* whose segment it is: SEG_LOOKUP by uid; 0: of none */
	bool is_private; /* SCI_FLAG_PRIVATE */
	bool broadcast;	 /* a member of group @id */
	bool ready;	 /* memory is there */
	bool empty;	 /* SCI_FLAG_EMPTY, and not filled yet */
	bool filled;	 /* it was, and is no more */
	bool filling;	 /* its memory is being allocated */
	bool shared;	 /* others of this host may attach to it */
	bool let_go;	 /* the handle of who made it is gone */
	enum smartiod_segment_state state;
	bool owner_gone;	      /* the port frees the memory by itself */
	uint32_t prepared, available; /* bit per adapter */
	/*
	 * Of one that was here before us: adapters it was ever available on, connections told of.
	 */
	uint32_t exported, told;
	/* Of a group: available as the port confirmed it, and by which request of which number. */
	uint32_t published, publish_turn, published_turn[SIO_MAX_ADAPTERS];
	unsigned publishing; /* requests to the port on their way */
	uint32_t pid;
	uint64_t owner, mem, bytes, phys; /* owner, mem: the port's */
	int fd;				  /* of the memory; -1 */
	struct smartiod_attachment *attachments;
	struct smartiod_ref *refs; /* the newest first */
	struct sio_hash refs_by_connection;
	unsigned n_refs, n_grants;
	unsigned n_own_grants; /* of n_grants: for devices that this host's programs borrow, */
	unsigned n_adrift;     /* and those that are adrift, which are not among them */
	unsigned dma;	       /* DMA maps of local devices that reach it */
	unsigned pins;	       /* operations in progress */
};

/* Another program's handle of a segment. */
struct smartiod_attachment {
	struct smartiod_object o;
	struct smartiod_attachment *next;
	struct smartiod_segment *segment; /* NULL: it has ended */
};

/* What a handle of either kind stands for; NULL with *reterr. _ready: with its memory. */
struct smartiod_segment *smartiod_segment_get(struct smartiod_session *s, uint32_t handle,
					      struct sio_err *reterr);
struct smartiod_segment *smartiod_segment_get_ready(struct smartiod_session *s, uint32_t handle,
						    struct sio_err *reterr);
/* A handle that was found goes, if others of its segment stay. Return: whether. */
bool smartiod_segment_let_go(struct smartiod_session *s, uint32_t handle);
/* Has it more than one handle? */
bool smartiod_segment_has_others(const struct smartiod_segment *seg);
/*
 * Is @handle that of the maker, while others have some, and can the port give us the memory? Then
 * that comes first, and answers SEG_REMOVE. -ENOMEM, -EMFILE: nothing is changed.
 */
bool smartiod_segment_can_give(const struct smartiod *d, const struct smartiod_session *s,
			       uint32_t handle, const struct smartiod_segment *seg);
int smartiod_segment_give(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct smartiod_segment *seg, struct sio_err *reterr);
/* A handle that was found is not told of the end that follows. */
void smartiod_segment_forget_handle(struct smartiod_session *s, uint32_t handle);
/* The segment ends: its other handles stand for nothing. */
void smartiod_segment_detach_all(struct smartiod *d, struct smartiod_segment *seg);
/* The program of an attachment is gone. */
void smartiod_attachment_drop(struct smartiod *d, struct smartiod_object *o);
struct smartiod_segment *smartiod_segment_by_id(struct smartiod *d, uint32_t id);

/*
 * A segment without memory yet. @s NULL: no client's (device segments: by uid only). @named: gets
 * @id in the host's space of ids, -EEXIST if taken.
 */
int smartiod_segment_new(struct smartiod *d, struct smartiod_session *s, uint64_t owner, bool named,
			 uint32_t id, uint64_t bytes, struct smartiod_segment **ret,
			 struct sio_err *reterr);
/* Its memory came: the answer to an ALLOC. Takes the descriptor. */
void smartiod_segment_ready(struct smartiod_segment *seg, const struct smartiod_answer *a);
/*
 * No new users from now on; those there are, are told (@reason SCI_CB_*) and lose it. Memory
 * and object go when the last one has let go. @owner_gone: the port frees the memory by itself.
 */
void smartiod_segment_end(struct smartiod *d, struct smartiod_segment *seg, uint32_t reason,
			  bool owner_gone);
/*
 * Nobody can find it any more, and its id is free: @event is GIVE, or what leads to KEPT or ENDED.
 * _kept: and its importers, who have it from now on, are told.
 */
void smartiod_segment_leave(struct smartiod *d, struct smartiod_segment *seg,
			    enum smartiod_segment_event event);
void smartiod_segment_kept(struct smartiod *d, struct smartiod_segment *seg,
			   enum smartiod_segment_event event);
/* May it be granted or mapped anew: by its owner, who needs a handle, or by an importer? */
bool smartiod_segment_usable(const struct smartiod_segment *seg, bool by_owner);
struct smartiod_segment *smartiod_segment_by_uid(struct smartiod *d, uint64_t uid);
/* Users. The put may free the segment. */
static inline void smartiod_segment_pin(struct smartiod_segment *seg)
{
	seg->pins++;
}
void smartiod_segment_unpin(struct smartiod *d, struct smartiod_segment *seg);
/* Users may have gone: a removed segment ends. */
void smartiod_segment_check(struct smartiod *d, struct smartiod_segment *seg);
/* Somebody has it, or is about to. What is adrift (adrift.c) is the memory's affair alone. */
static inline bool smartiod_segment_used(const struct smartiod_segment *seg)
{
	return seg->n_refs || seg->n_grants > seg->n_adrift || seg->dma || seg->pins;
}
static inline void smartiod_segment_dma_get(struct smartiod_segment *seg)
{
	seg->dma++;
}
void smartiod_segment_dma_put(struct smartiod *d, struct smartiod_segment *seg);
/*
 * A connection comes; the exporter's library is told of it after the importer has its answer. If we
 * are killed between the two it hears of it from the next smartiod; the other way round it would
 * have heard of one that nobody has, which is asked for again.
 */
int smartiod_segment_ref(struct smartiod_segment *seg, uint32_t node, uint32_t adapter,
			 uint64_t connection, struct sio_err *reterr);
void smartiod_segment_connected(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				uint32_t adapter);
/* @reason 0: nobody is told. */
void smartiod_segment_unref(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
			    uint64_t connection, uint32_t reason);
void smartiod_segment_free_all(struct smartiod *d);
void smartiod_segment_refs_free(struct smartiod_segment *seg);
bool smartiod_segment_has_ref(const struct smartiod_segment *seg, uint32_t node,
			      uint64_t connection);
/* A segment that somebody wants to connect to: by its id, or a device's by its uid. */
struct smartiod_wanted {
	uint64_t uid; /* 0: by @id */
	uint32_t id;
	uint32_t device; /* fdid, with a uid */
	uint64_t borrow; /* whose private device segment it is: it ends with its path; 0: none */
};
/*
 * May somebody connect, arriving at @adapter (SIO_ADAPTER_ANY: from this host itself: available
 * anywhere)? NULL with *reterr.
 */
struct smartiod_segment *smartiod_segment_lookup(struct smartiod *d,
						 const struct smartiod_wanted *w, uint32_t adapter,
						 struct sio_err *reterr);
/* Drop the references of a node; the exporter's library gets SCI_CB_LOST. */
void smartiod_segment_node_down(struct smartiod *d, uint32_t node);
/* A path of a node to @adapter changed: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL. */
void smartiod_segment_path(struct smartiod *d, uint32_t node, uint32_t adapter);
/* Take the reference of each importer on @adapter (or SIO_ADAPTER_ANY) away and tell it why. */
void smartiod_segment_cut(struct smartiod *d, struct smartiod_segment *seg, uint32_t adapter,
			  uint32_t reason);
/* Tell the importers on @adapter that they are to leave. */
void smartiod_segment_ask_to_leave(struct smartiod *d, struct smartiod_segment *seg,
				   uint32_t adapter);
/* Tell all importers that it was removed, and is kept for them. */
void smartiod_segment_tell_removed(struct smartiod *d, struct smartiod_segment *seg);

void smartiod_segment_grant_put(struct smartiod *d, struct smartiod_segment *seg,
				const struct smartiod_grant *grant);
/* A leftover becomes its memory. */
void smartiod_segment_take_leftover(struct smartiod *d, struct smartiod_segment *seg,
				    struct smartiod_leftover *l);

#endif
