/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the port by VFIO share: objects, devices, and a request under way. */
#ifndef SMARTIOD_VFIO_OWN_H
#define SMARTIOD_VFIO_OWN_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/port.h"
#include "core/range.h"
#include "smartiod/port_vfio/vfio_port.h"

/*
 * One object of any kind. They are in the table in the order of their ids. An object that ended
 * with its owner, but is in use, is in quarantine (state) until nothing refers to it.
 */
struct vfio_object {
	uint64_t id, owner; /* owner: of an owner its parent */
	uint32_t kind, state;
	uint32_t refs; /* mem, bar: mappings; irq: vectors */
	struct vfio_object
		*target; /* dmamap: its memory or BAR, NULL: it leads nowhere; vector: its irq */
	struct vfio_device *device;
	uint64_t cookie;	  /* owner, memory: user_cookie; bar: access */
	uint64_t address, length; /* dmamap: IOVA; bar: physical; vector: length is its number */
	uint32_t bar;
	uint64_t held;	      /* owner: objects */
	uint64_t epoch;	      /* in quarantine: since when */
	uint64_t file_offset; /* mem: where it begins in its file */
	int fd;		      /* mem, irq; vector: what comes while it is masked; -1 */
	bool cut;	      /* its device went and is, at most, another one now */
	bool masked;
	bool child;			 /* an owner without a descriptor */
	bool closed;			 /* an owner that ends when a reset is done */
	bool kept;			 /* there is a record of it */
	struct vfio_object *next, *prev; /* among those that differ from it; prev NULL: not */
	UT_hash_handle hh;
};

/* Where the device of a DMA mapping sees it. */
static inline struct sio_dev_addr vfio_object_iova(const struct vfio_object *o)
{
	return (struct sio_dev_addr){o->address};
}

/* I/O addresses of an IOMMU group: all of its devices that are open have the same. */
struct vfio_addresses {
	struct sio_range range;
	unsigned devices;
};

struct vfio_device {
	struct vfio_device *next;
	struct sio_evt_device info; /* id and generation, too */
	uint32_t entries; /* of its interrupt table: info reports those that can be used */
	bool present, open;
	unsigned objects;
	struct vfio_addresses *space; /* NULL: it is not open */
	bool resetting, changed;
	struct sio_req_reset reset;	    /* that waits for its answer */
	uint64_t reset_epoch, reset_daemon; /* which daemon asked */
};

struct vfio_waiting;

struct vfio_port {
	const struct vfio_ops *ops;
	void *ctx;
	struct vfio_start start;
	struct vfio_object *objects;
	unsigned n_ended;	     /* owners */
	struct vfio_device *devices; /* in the order of ids */
	uint64_t last_id, last_device, epoch;
	uint64_t daemon; /* how many have come */
	uint64_t memory; /* bytes of ALLOC and IMPORT */
	uint64_t requests, refused;
	int status_fd;
	uint64_t status_size;
	struct vfio_object *changed;  /* since vfio_sync() */
	bool overflow;		      /* events were dropped */
	struct vfio_waiting *waiting; /* for a reset */
};

struct vfio_request {
	struct vfio_port *port;
	struct vfio_object *owner; /* NULL: the daemon */
	const int *fds;
	unsigned n_fds;
	int fd[SIO_PORT_MAX_FDS]; /* of the answer */
	unsigned n_fd;
	bool close; /* those when they were sent */
	bool later; /* it is answered later */
	struct sio_err err;
};

/* ---- vfio_object.c ---- */

/* -ENOMEM: rq->err tells. */
struct vfio_object *vfio_object_new(struct vfio_request *rq, uint32_t kind);
struct vfio_object *vfio_object_find(const struct vfio_port *p, uint32_t kind, uint64_t id);
/* For who ends it: 0; -ENOENT; -EPERM: another owner's. */
int vfio_object_ends(struct vfio_request *rq, uint32_t kind, uint64_t id, const char *who,
		     struct vfio_object **ret);
/* Gone at once, and what it referred to if nothing else does and its owner has ended. */
void vfio_object_free(struct vfio_port *p, struct vfio_object *o);
/* A mapping leads nowhere any more; its address is still taken. */
void vfio_object_unmap(struct vfio_port *p, struct vfio_object *o);
/* DMA mappings in quarantine of @device (@owner 0: of all) since before @epoch. Counts. */
uint64_t vfio_settle(struct vfio_port *p, const struct vfio_device *d, uint64_t owner,
		     uint64_t epoch);
void vfio_owner_end(struct vfio_port *p, struct vfio_object *o);
/* Has it, or a child of it, vectors of a device that is reset now? The kernel lets none go. */
bool vfio_owner_waits(const struct vfio_port *p, uint64_t owner);
/* Those whose descriptors were closed meanwhile. */
void vfio_owners_end_closed(struct vfio_port *p);
/* Owners that have ended and of whom nothing is left are forgotten, and that is reported. */
void vfio_owners_bury(struct vfio_port *p);
void vfio_event(struct vfio_port *p, uint32_t op, void *evt, size_t size);

/* What an owner that has ended has goes, or into quarantine; its children before. */
void vfio_owner_ends(struct vfio_port *p, struct vfio_object *o);

/* ---- vfio_keep.c ---- */

/* It differs from its record. */
void vfio_changed(struct vfio_port *p, struct vfio_object *o);
/* It goes, and its record. */
void vfio_forget(struct vfio_port *p, struct vfio_object *o);
/* All records are as what they are about. */
void vfio_sync(struct vfio_port *p);

/* ---- handlers: 0 or -errno with rq->err ---- */

typedef int vfio_handler(struct vfio_request *rq, const void *msg, void *answer);
/* Those that vfio_request.c does not have itself; its table says which there are. */
#define VFIO_HANDLER(NAME, name, ...) vfio_handler vfio_op_##name;
SIO_PORT_REQUESTS(VFIO_HANDLER)

/* What waits for a reset was asked by a daemon that is dead: another one must not hear of it. */
void vfio_waiting_drop(struct vfio_port *p);
/* What was kept and what was in quarantine before reset_epoch has ended. */
void vfio_device_was_reset(struct vfio_port *p, struct vfio_device *d, struct sio_evt_reset *ret);
/* @d->space is of what the kernel told, or its group's. @d has none if it fails. (vfio_space.c) */
int vfio_space_use(struct vfio_port *p, const struct vfio_space *s, struct vfio_device *d,
		   struct sio_err *reterr);
/* It is open no more. */
void vfio_space_leave(struct vfio_device *d);
/* Another open device that has the same addresses, and so the same mappings; NULL: none. */
struct vfio_device *vfio_space_partner(const struct vfio_port *p, const struct vfio_device *d);
/* What other devices have mapped of its BARs leads nowhere. */
void vfio_device_unmap_bars(struct vfio_port *p, const struct vfio_device *d);
/* What there is of a device that has gone, or is not open, leads nowhere. */
void vfio_device_cut(struct vfio_port *p, struct vfio_device *d);
struct vfio_device *vfio_device_find(const struct vfio_port *p, uint64_t id);
/* The same for a request that needs it here, and @open. -ENODEV. */
int vfio_device_needed(struct vfio_request *rq, uint64_t id, bool open, const char *who,
		       struct vfio_device **ret);

#endif
