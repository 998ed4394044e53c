/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects: the resources of hosts that have an id. They belong to owners, refer to each other, and
 * end in one order.
 *
 * References (an arrow counts in refs of its target, which cannot end before its source):
 *
 *   dmamap -> mem | map | bar of another device;  dmamap -> device, requester (if through a map)
 *   grant  -> mem | bar | irq
 *   bar    -> device;  requester -> device
 *   vector -> irq | map of a peer's irq;  vector -> device, requester (if through a map)
 *   member of a multicast group -> bar, if it is an overlay
 * A watch and a range of a DMA channel are attached to their target: they are not counted, and end
 * with it.
 *
 * States of an object: LIVE until its owner ends, then QUARANTINED. A quarantined object falls
 * (is freed without a request) as soon as nothing refers to it, except
 *   dmamap: the device may still use it until SETTLE or RESET, or the host's end,
 *   grant:  the peer may still use it until UNGRANT, or the host's end. A grant whose address alone
 *           is kept (UNGRANT with a flag) refers to nothing, and belongs to the daemon.
 * An owner ends once; SIO_EV_OWNER_END follows when its last object fell.
 *
 * The kinds of objects stand in one table, machine/kinds.c; each kind is defined by the file that
 * makes its objects.
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

#define EMU_FIRST_ID 0x20000000 /* above every device id, so that one number names one thing */
#define EMU_LAST_KIND SIO_KIND_VECTOR

struct emu_host;
struct emu_owner;
struct emu_request;
struct emu_room;

/*
 * The order in which unreferenced objects are freed, and all objects of a host that crashes:
 * senders before what they send through, windows before memory, a device after what belongs to it,
 * owners last.
 */
enum emu_rank {
	EMU_RANK_SENDER, /* and whatever is attached to another object */
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
	UT_hash_handle hh;		/* in the host's table, by id */
	struct emu_object *prev, *next; /* of its owner */
	/* Next object of its rank that is unreferenced and quarantined, to be freed soon. */
	struct emu_object *falling_next;
	struct emu_object *attached; /* objects that end with this one */
	/* Links in the list of the object that this one is attached to. */
	struct emu_object *attached_prev, *attached_next;
	struct emu_host *host;
	struct emu_owner *owner;
	uint64_t id;
	uint32_t kind;	/* SIO_KIND_* */
	uint32_t state; /* SIO_STATE_* */
	uint32_t refs;
	uint32_t descriptors; /* descriptors of the edge that it holds */
	/* The rank of its kind, unless it refers to objects that are freed before those. */
	enum emu_rank rank;
	bool falling;
};

/*
 * A kind of objects. All functions except release() and row() may be NULL, where the kind has no
 * such property.
 */
struct emu_kind {
	const char *name;
	enum emu_rank rank;
	uint32_t descriptors; /* of the edge, that every object of this kind holds */
	/* Undoes what the object stands for. What was attached to it has ended. */
	void (*release)(struct emu_object *o);
	/*
	 * The object's owner has ended. May a device or a peer still use it, until it is released
	 * explicitly?
	 */
	bool (*in_use)(const struct emu_object *o);
	/*
	 * The object's owner has ended, and what stays of it is about to be reported: references to
	 * it are released.
	 */
	void (*owner_ended)(struct emu_object *o);
	/*
	 * Fills in the rest of the object's row of LIST: id, owner and state are filled in already.
	 */
	void (*row)(const struct emu_object *o, struct sio_list_entry *e);
	/* The address of byte @offset in its host's physical map. */
	uint64_t (*physical)(const struct emu_object *o, uint64_t offset);
	uint64_t (*length)(const struct emu_object *o);
	/* The descriptor of its memory; *ret_offset: of the first byte in that file. */
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
 * Makes an object of @size bytes, a struct that begins with struct emu_object, with the next id (or
 * @id, if not 0). NULL: rq->err has the reason, as for the functions below.
 */
void *emu_object_new(struct emu_request *rq, uint32_t kind, size_t size, uint64_t id);
/*
 * The object holds one more descriptor of the edge as long as it lives. -EMFILE: its host has no
 * more.
 */
int emu_object_hold(struct emu_request *rq, struct emu_object *o);
/* @to owns it from now on. */
void emu_object_give(struct emu_object *o, struct emu_owner *to);
void emu_object_ref(struct emu_object *o);
void emu_object_unref(struct emu_object *o);
/* @o ends with @target, at the latest. */
void emu_object_attach(struct emu_object *o, struct emu_object *target);
void emu_object_detach(struct emu_object *o, struct emu_object *target);
/* Undoes what the object stands for and frees it. @o has no references. */
void emu_object_free(struct emu_object *o);
/* Frees an object of emu_object_new() that does not stand for anything yet. */
void emu_object_drop(struct emu_object *o);
/* Any object of @h with this id; NULL. */
struct emu_object *emu_object_by_id(const struct emu_host *h, uint64_t id);
/*
 * Finds an object that a new resource refers to. It may belong to any owner of this host: the
 * daemon answers for that. -ENOENT.
 */
void *emu_object_find_any(struct emu_request *rq, uint32_t kind, uint64_t id);
/* Finds an object that is to end: -EPERM if it does not belong to the requesting owner. */
void *emu_object_find(struct emu_request *rq, uint32_t kind, uint64_t id);
/* The object's owner has ended: it is quarantined. */
void emu_object_quarantine(struct emu_object *o);
void emu_objects_fall(struct emu_host *h);
/* Frees all objects of a host that is down, without events. */
void emu_objects_clear(struct emu_host *h);

/* list.c: the row of LIST about @o. */
void emu_object_row(const struct emu_object *o, struct sio_list_entry *ret);

/* owner.c */
struct emu_owner *emu_owner_find(struct emu_host *h, uint64_t id);
/* The last copy of the owner's descriptor was closed. */
void emu_owner_hup(struct emu_host *h, uint64_t id);
/* Reports and frees the ended owners that have no objects left. */
void emu_owners_bury(struct emu_host *h);

#endif
