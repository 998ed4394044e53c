/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects: what hosts have that has an id. They hang on owners, are referred to, and end in one
 * order.
 *
 * Who refers to whom (an arrow counts in refs of its target, which cannot go before it):
 *
 *   dmamap -> mem | map | bar of another device;  dmamap -> device, requester (if through a map)
 *   grant  -> mem | bar | irq
 *   bar    -> device;  requester -> device
 *   vector -> irq | map of a peer's irq;  vector -> device, requester (if through a map)
 * A watch and a range of a DMA channel are attached to their target: they count nowhere, and end
 * with it.
 *
 * States of an object: LIVE until its owner ends, then QUARANTINED. A quarantined object falls
 * (is freed without being asked) as soon as nothing refers to it, except
 *   dmamap: the device may still use it until SETTLE or RESET, or the host's end,
 *   grant:  the peer may still use it until UNGRANT, or the host's end. One whose address alone
 *           is kept (UNGRANT with a flag) refers to nothing, and is the daemon's.
 * An owner ends once; SIO_EV_OWNER_END follows when its last object fell.
 *
 * What kinds of objects there are stands in one table, machine/kinds.c; each kind is defined by the
 * file that makes its objects.
 */
#ifndef EMU_BASE_OBJECT_H
#define EMU_BASE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "smartio/uapi.h"

#define EMU_FIRST_ID 0x100000 /* above every device id, so that one number names one thing */
#define EMU_LAST_KIND SIO_KIND_VECTOR

struct emu_host;
struct emu_owner;
struct emu_request;
struct emu_room;

/*
 * The order in which unreferenced objects fall, and all of a host that crashes: what sends before
 * what it goes through, windows before memory, the device after what is of it, owners last.
 */
enum emu_rank {
	EMU_RANK_SENDER, /* what is attached to something, too */
	EMU_RANK_GRANT,	 /* and channels of DMA engines */
	EMU_RANK_REQUESTER,
	EMU_RANK_MAP,
	EMU_RANK_BAR,
	EMU_RANK_IRQ,
	EMU_RANK_MEM,
	EMU_RANK_DEVICE,
	EMU_RANK_OWNER,
	EMU_RANKS
};

struct emu_object {
	UT_hash_handle hh;		 /* in the host's table, by id */
	struct emu_object *prev, *next;	 /* of its owner */
	struct emu_object *falling_next; /* of its rank: unreferenced and quarantined, freed soon */
	struct emu_object *attached;	 /* what ends with it */
	struct emu_object *attached_prev, *attached_next; /* of what this is attached to */
	struct emu_host *host;
	struct emu_owner *owner;
	uint64_t id;
	uint32_t kind;	/* SIO_KIND_* */
	uint32_t state; /* SIO_STATE_* */
	uint32_t refs;
	bool falling;
};

/* A kind of objects. All functions but release() and row() may be NULL: it has no such thing. */
struct emu_kind {
	const char *name;
	enum emu_rank rank;
	uint32_t descriptors; /* of the edge, that each object holds as long as it lives */
	/* Undo what it stands for. What is attached to it has ended. */
	void (*release)(struct emu_object *o);
	/* Its owner has ended. Does a device or a peer use it until somebody says otherwise? */
	bool (*in_use)(const struct emu_object *o);
	/* Its owner has ended, and what of it stays is about to be known: others let go of it. */
	void (*owner_ended)(struct emu_object *o);
	/* The rest of its row of LIST: who it is, whose and in which state stands there already. */
	void (*row)(const struct emu_object *o, struct sio_list_entry *e);
	/* Where its byte @offset lies in its host's physical map. */
	uint64_t (*physical)(const struct emu_object *o, uint64_t offset);
	uint64_t (*length)(const struct emu_object *o);
	/* Its descriptor; *ret_offset: of its first byte there. */
	int (*file)(const struct emu_object *o, uint64_t *ret_offset);
};

struct emu_owner {
	struct emu_object o;
	struct emu_object *objects;
	uint64_t n_objects;
	uint64_t user_cookie;
	uint32_t pid;
	bool ended;
	struct emu_owner *ended_next; /* of its host */
	struct emu_owner *parent;     /* NULL: it has a descriptor, or is the daemon */
	struct emu_owner *children, *prev, *next;
};
extern const struct emu_kind emu_kind_owner;

const struct emu_kind *emu_kind_of(const struct emu_object *o);
const char *emu_object_name(const struct emu_object *o);
/*
 * Make an object of @size bytes known, with the next id (or @id, if not 0): a struct that begins
 * with struct emu_object. NULL: rq->err says why, here and below.
 */
void *emu_object_new(struct emu_request *rq, uint32_t kind, size_t size, uint64_t id);
/* It hangs on @to from now on. */
void emu_object_give(struct emu_object *o, struct emu_owner *to);
void emu_object_ref(struct emu_object *o);
void emu_object_unref(struct emu_object *o);
/* @o ends with @target, at the latest. */
void emu_object_attach(struct emu_object *o, struct emu_object *target);
void emu_object_detach(struct emu_object *o, struct emu_object *target);
/* Undo what it stands for and forget it. @o has no references. */
void emu_object_free(struct emu_object *o);
/* Forget what emu_object_new() made before it stood for anything. */
void emu_object_drop(struct emu_object *o);
/* Any object of @h with this id; NULL. */
struct emu_object *emu_object_by_id(const struct emu_host *h, uint64_t id);
/* -ENOENT. What a new resource refers to may be anyone's of this host: the daemon answers for it.
 */
void *emu_object_find_any(struct emu_request *rq, uint32_t kind, uint64_t id);
/* The same for what is to end: -EPERM if it is not the asking owner's. */
void *emu_object_find(struct emu_request *rq, uint32_t kind, uint64_t id);
/* Its owner ended. */
void emu_object_quarantine(struct emu_object *o);
void emu_objects_fall(struct emu_host *h);
/* All at once, without a word: the host is down. */
void emu_objects_clear(struct emu_host *h);

/* list.c: the row of LIST about @o. */
void emu_object_row(const struct emu_object *o, struct sio_list_entry *ret);

/* owner.c */
struct emu_owner *emu_owner_find(struct emu_host *h, uint64_t id);
/* The last copy of its descriptor was closed. */
void emu_owner_hup(struct emu_host *h, uint64_t id);
/* Tell and forget the ended owners that have nothing left. */
void emu_owners_bury(struct emu_host *h);

#endif
