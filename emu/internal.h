/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the machine room share. Nothing outside emu/ and its tests includes this.
 *
 * Who refers to whom (an arrow counts in refs of its target, which cannot go before it):
 *
 *   dmamap -> mem | map | bar of another device;  dmamap -> device, requester (if through a map)
 *   grant  -> mem | bar | irq
 *   bar    -> device;  requester -> device
 *   vector -> irq | map of a peer's irq;  vector -> device, requester (if through a map)
 * A watch counts nowhere: it ends with its target. So does a range of a DMA channel (engine.h).
 *
 * States of an object: LIVE until its owner ends, then QUARANTINED. A quarantined object falls
 * (is freed without being asked) as soon as nothing refers to it, except
 *   dmamap: the device may still use it until SETTLE or RESET, or the host's end,
 *   grant:  the peer may still use it until UNGRANT, or the host's end.
 * An owner ends once; SIO_EV_OWNER_END follows when its last object fell.
 */
#ifndef EMU_INTERNAL_H
#define EMU_INTERNAL_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "core/addrmap.h"
#include "core/err.h"
#include "core/iommu.h"
#include "core/lut.h"
#include "core/pcie.h"
#include "core/range.h"
#include "core/topology.h"
#include "emu/device.h"
#include "emu/room.h"
#include "smartio/uapi.h"

#define EMU_PAGE ((uint64_t)SIO_PAGE_SIZE)
#define EMU_FIRST_ID 0x100000 /* above every device id, so that one number names one thing */
#define EMU_CPU_REQUESTERS 2  /* entries of each requester table that the CPUs have */
#define EMU_MSI_BASE 0xfee00000ull
#define EMU_MSI_SIZE 0x100000ull
#define EMU_FAULTS 64	  /* kept per host */
#define EMU_XLATS 2048	  /* translations kept per device (8 MiB of buffers); a power of 2 */
#define EMU_VECTORS 2048u /* most of one device, as PCI has it */
#define EMU_HOPS 2	  /* most adapters that a transaction passes */
#define EMU_WATCHES 1024  /* of one host: each may hold a descriptor */
#define EMU_GROUPS 8	  /* multicast groups of the cluster */
#define EMU_LAST_KIND SIO_KIND_VECTOR
#define EMU_RANKS 9 /* object.c: the order in which things fall */

struct emu_host;
struct emu_owner;
struct emu_engine;
struct emu_dma_range;

/* What passed a place, by PCIe's rules. Sums wrap, as counters of hardware do. */
struct emu_count {
	struct sio_pcie_count pcie;
	uint64_t msg, faults;
};

struct emu_object {
	UT_hash_handle hh;		 /* in the host's table, by id */
	struct emu_object *prev, *next;	 /* of its owner */
	struct emu_object *falling_next; /* of its rank: unreferenced and quarantined, freed soon */
	struct emu_host *host;
	struct emu_owner *owner;
	uint64_t id;
	uint32_t kind;	/* SIO_KIND_* */
	uint32_t state; /* SIO_STATE_* */
	uint32_t refs;
	bool falling;
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

struct emu_ram {
	struct emu_object o;
	struct emu_mem mem;
	uint64_t address; /* physical */
	struct emu_dma_range *ranges;
	struct emu_group *group; /* NULL: none; of a fused one @mem is the group's */
	bool member, published;	 /* of the group */
	bool sender;		 /* of an exact group: addresses without memory */
	unsigned adapter;	 /* that it joined or sends through */
	struct emu_ram *group_prev, *group_next; /* members */
};

/* A multicast group: mcast.c. */
struct emu_group {
	struct emu_mem mem; /* fused: everybody's; exact: its size alone */
	struct emu_ram *member;
	unsigned users; /* objects that have @mem; 0: there is none */
	unsigned members, published;
};

struct emu_grant {
	struct emu_object o;
	struct emu_object *source;
	unsigned adapter, peer_host, peer_adapter;
	uint32_t access;
	uint64_t offset, length; /* in the source */
	bool cut;		 /* a BAR's, whose device was pulled out */
	uint64_t bus_addr;
	uint8_t token[SIO_TOKEN];
	uint64_t token_start; /* its first bytes: the key */
	UT_hash_handle by_token;
	struct emu_granted_irq {
		uint64_t irq;
		uint32_t adapter, peer_host;
	} granted; /* the key of those that are of interrupts */
	UT_hash_handle by_irq;
};

struct emu_map {
	struct emu_object o;
	unsigned adapter, peer_host, peer_adapter;
	uint64_t peer_generation;
	uint64_t bus_addr, length; /* at the peer */
	uint64_t window_offset;	   /* in our window */
	bool trigger;
	uint32_t message;	/* of the interrupt that it triggers */
	struct emu_run *polled; /* pages that it may write to and a device looks at; NULL: none */
	bool cut;		/* they were, and the device has been pulled out */
	struct emu_watch *watches;
	struct emu_dma_range *ranges;
};

struct emu_requester {
	struct emu_object o;
	struct emu_requester *prev, *next; /* of the device, through this adapter */
	struct emu_device *device;	   /* NULL: known by its bdf only, or pulled out */
	unsigned adapter, entry;
};

struct emu_bar {
	struct emu_object o;
	struct emu_device *device;
	struct emu_run *run;
	uint64_t offset, length; /* in the run */
	uint32_t access;
	bool mirror;
	bool cut; /* the device was pulled out: it is a view of nothing */
	unsigned n_grants;
	struct emu_watch *watches;
};

/* How one mapping of polled pages wakes their device. */
struct emu_watch {
	struct emu_object o;
	struct emu_watch *prev, *next; /* of the target */
	struct emu_object *target;     /* struct emu_bar or emu_map */
	struct emu_run *run;
	uint32_t kind; /* SIO_WATCH_* */
	uint64_t length;
	uint64_t boot; /* of the device's host when it began */
	uint32_t fired;
};

struct emu_dmamap {
	struct emu_object o;
	struct emu_dmamap *dev_prev, *dev_next; /* of its device */
	struct emu_device *device;
	struct emu_object *target;	 /* NULL: cut off, its device or target was pulled out */
	struct emu_requester *requester; /* NULL: not through a window */
	uint64_t offset, length;
	uint64_t iova, physical;
	uint32_t access;
};

struct emu_irq {
	struct emu_object o;
	int fd;
	uint64_t address; /* where a message would have to go */
};

/* An entry of a device's interrupt table that stands for something. */
struct emu_vector {
	struct emu_object o;
	struct emu_device *device;
	struct emu_object *target;	 /* interrupt or map; NULL: whatever lies at @address */
	struct emu_requester *requester; /* NULL: not through a window */
	uint64_t address;		 /* as the device addresses it */
	uint64_t iova;			 /* of the page, in the device's domain; @has_iova */
	bool has_iova;
	bool mask;
	uint32_t data, number;
};

struct emu_opened {
	struct emu_object o;
	struct emu_device *device;
};

/* One entry of an adapter's requester table. */
struct emu_requester_entry {
	uint32_t bdf;
	uint32_t holders; /* objects; 0: free */
	UT_hash_handle hh;
	struct emu_requester_entry *next_free;
};

struct emu_adapter {
	struct emu_host *host;
	const struct sio_topo_adapter *topo;
	unsigned index;
	bool link;	    /* the cable; false after emu_room_link(..., false) */
	struct sio_lut lut; /* of what goes out */
	struct emu_requester_entry *requester, *by_bdf, *free_requesters;
	unsigned requesters_used; /* the CPUs' included */
	struct sio_iommu iommu;	  /* of what comes in, if the host's IOMMU is on */
	struct sio_range iova;
	struct emu_count count;
	struct emu_engine *engine; /* NULL: it has no channels */
	struct sio_pcie_count dma; /* that engines sent through it; atomic */
};

/* A run of pages of a BAR with one purpose. */
struct emu_run {
	struct emu_device *device;
	const struct emu_dev_pages *pages;
	struct emu_mem mem;    /* doorbells, controller memory */
	struct emu_mem view;   /* registers: of the one who may write; fresh each time */
	struct emu_mem mirror; /* registers: of the others */
	struct emu_bar *writer;
};

/* A page of a device's address space, found before. Valid while @gen is the room's. */
struct emu_xlat {
	uint64_t page, gen;
	uint8_t *data;
	const struct emu_ram *sender; /* NULL; else @data is, and it is not kept */
	uint64_t sender_offset;
	uint32_t access;
	uint32_t n_hops;
	struct emu_count *hop[EMU_HOPS];
};

struct emu_device {
	struct emu_dev dev;
	struct emu_room *room;
	struct emu_host *host;
	const struct sio_topo_device *topo;
	const struct emu_adapter *engine_of; /* a DMA engine: goes out through this one alone */
	const struct emu_dev_model *model;
	void *state; /* the model's; NULL: none yet */
	struct emu_dev_config config;
	struct emu_run run[EMU_DEV_PAGES];
	uint64_t bar_addr[6];
	struct emu_opened *opened;
	struct emu_dmamap *dmamaps;
	struct emu_requester *requesters[SIO_MAX_ADAPTERS];
	struct emu_vector **vector; /* msix_count; NULL: masked, stands for nothing */
	uint8_t *pending;	    /* a bit array in hardware, a byte each here */
	struct sio_iommu iommu;
	struct sio_range iova;
	uint64_t generation; /* counts resets */
	bool gone;	     /* pulled out: it does nothing and has no pages */
	bool unpowered;	     /* and its host has lost its power since */
	unsigned writable_views;
	struct emu_mem doze;		     /* its first word: asleep, for EVENT watches */
	unsigned n_dozing;		     /* those that look at it */
	uint64_t wakes[SIO_WATCH_EVENT + 1]; /* by kind of watch */
	struct emu_count count;
	uint64_t xlat_misses;
	uint32_t unchecked;	  /* counts accesses, for emu_room_check_every() */
	struct emu_xlat to_group; /* the last that was to a sender */
	struct emu_xlat xlat[EMU_XLATS];
};

/* One way to a peer, as its slot in the status page. */
struct emu_path {
	unsigned adapter, peer_host, peer_adapter;
	uint32_t state, generation, errors;
	bool changed;
};

struct emu_fault {
	uint64_t device, address, length, nearest;
	uint32_t access, node;
	char reason[SIO_PORT_TEXT];
};

struct emu_fault_log {
	struct emu_fault ring[EMU_FAULTS];
	uint64_t count;	       /* of all times; the last is ring[(count - 1) % EMU_FAULTS] */
	uint64_t window_start; /* events are limited per span of time */
	unsigned sent;
	bool overflow;
};

/* What objects_fall() freed since it was last set to zero. */
struct emu_tally {
	uint64_t dmamaps, grants, maps, mems, bytes;
};

struct emu_host {
	struct emu_room *room;
	const struct sio_topo_host *topo;
	unsigned index;
	bool up;
	uint64_t boot_generation;
	uint8_t boot_id[16];
	uint64_t last_id; /* goes on across starts: a late word about an owner finds nothing */
	struct emu_object *objects;
	struct emu_grant *grants; /* by the start of their tokens */
	struct emu_grant
		*irq_grants; /* by what they are of, and for whom; keys come more than once */
	struct emu_object *falling[EMU_RANKS];
	struct emu_owner *ended; /* those that have something left */
	struct emu_owner daemon; /* owner 0 */
	struct emu_tally freed;
	struct sio_range ram;
	struct sio_addrmap map;
	struct emu_adapter adapter[SIO_MAX_ADAPTERS];
	struct emu_device *device;
	unsigned n_devices; /* as many as are made */
	struct emu_mem status;
	struct emu_path *path;
	unsigned n_paths;
	struct emu_fault_log faults;
	uint64_t requests, requests_refused, events;
	uint64_t n_of_kind[EMU_LAST_KIND + 1];
	bool engine_runs; /* the edge was told to run the engines */
};

struct emu_check;

struct emu_room {
	const struct sio_topology *topo;
	const struct emu_ops *ops;
	void *ctx;
	uint64_t gen; /* counts whatever may make a kept translation wrong */
	struct emu_host *host;
	unsigned n_hosts;     /* as many as are made */
	uint64_t descriptors; /* that the objects of one host may hold */
	struct emu_group group[EMU_GROUPS];
	struct emu_check *check;
	uint32_t check_mask; /* of an access's number; 0 there: compare it with the list */
	struct sio_pcie pcie;
	struct sio_pcie_count page_read, page_write; /* of a whole aligned page */
	uint64_t writable_views;		     /* of all devices */
	bool watch_dirty;			     /* @naps may be wrong */
	bool naps;
	uint64_t n_naps, n_sleeps;
	struct emu_device **device; /* of all hosts: what step() runs through */
	unsigned n_devices;
};

/* One request on its way through its handler. */
struct emu_request {
	struct emu_host *host;
	const struct sio_req *h;
	struct emu_owner *owner; /* of h->owner; what is made hangs on it */
	int fd;			 /* that came along, -1: none; who keeps it sets -1 */
	struct sio_err err;
};

/* room.c */
void emu_log(struct emu_room *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void emu_event(struct emu_host *h, void *evt, size_t size, uint32_t op);
/* A kept translation may be wrong from now on. */
static inline void emu_invalidate(struct emu_room *r)
{
	r->gen++;
}

/* Engines stand still between these two; once, not nested. */
static inline void emu_engines_stop(struct emu_room *r)
{
	if (r->ops->engines_stop)
		r->ops->engines_stop(r->ctx);
}
static inline void emu_engines_go(struct emu_room *r)
{
	if (r->ops->engines_go)
		r->ops->engines_go(r->ctx);
}

/* request.c */
/* Answer with success; @evt starts with struct sio_evt. @fds stay the caller's. */
void emu_answer(struct emu_request *rq, void *evt, size_t size, const int *fds, unsigned n_fds);
void emu_answer_ok(struct emu_request *rq);
uint64_t emu_served(const struct emu_room *r);
typedef int emu_handler(struct emu_request *rq, const void *msg);

/* again.c */
/* Hosts go on when their daemon ends, and another one comes. */
static inline bool emu_outlives(const struct emu_room *r)
{
	return r->ops->identify;
}
emu_handler emu_op_identify, emu_op_reopen;

/* object.c */
const char *emu_kind_name(uint32_t kind);
/*
 * Make an object of @size bytes known, with the next id (or @id, if not 0): a struct that begins
 * with struct emu_object. NULL: rq->err says why, here and below.
 */
void *emu_object_new(struct emu_request *rq, uint32_t kind, size_t size, uint64_t id);
/* It hangs on @to from now on. */
void emu_object_give(struct emu_object *o, struct emu_owner *to);
void emu_object_ref(struct emu_object *o);
void emu_object_unref(struct emu_object *o);
/* Undo what it stands for and forget it. @o has no references. */
void emu_object_free(struct emu_object *o);
/* Forget what emu_object_new() made before it stood for anything. */
void emu_object_drop(struct emu_object *o);
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

/* owner.c */
struct emu_owner *emu_owner_find(struct emu_host *h, uint64_t id);
void emu_owner_end(struct emu_owner *w);
/* Tell and forget the ended owners that have nothing left. */
void emu_owners_bury(struct emu_host *h);
void emu_owner_forget(struct emu_owner *w);
emu_handler emu_op_owner_new, emu_op_owner_close, emu_op_settle;

/* mem.c */
emu_handler emu_op_alloc, emu_op_free, emu_op_give;
void emu_ram_release(struct emu_ram *m);

/* mcast.c */
emu_handler emu_op_mcast;
void emu_group_leave(struct emu_ram *ram);

/* grant.c */
emu_handler emu_op_grant, emu_op_ungrant;
void emu_grant_release(struct emu_grant *g);
void emu_grant_cut(struct emu_grant *g);
struct emu_grant *emu_grant_find(struct emu_host *exporter, const struct sio_req_map *m,
				 unsigned importer, unsigned adapter);
/* Was @q granted to @peer through adapter @adapter? */
bool emu_irq_granted(const struct emu_irq *q, unsigned adapter, unsigned peer);
/* Descriptor of what is granted; *ret_offset: of the grant's start in it. */
int emu_grant_fd(const struct emu_grant *g, uint64_t *ret_offset);
/* Where an object lies in its host's physical map. */
uint64_t emu_source_physical(const struct emu_object *source, uint64_t offset);
uint64_t emu_source_length(const struct emu_object *source);
/* Whole pages inside of @source, or -EINVAL with a text that begins with @what. */
int emu_range_check(struct emu_request *rq, const char *what, const struct emu_object *source,
		    uint64_t offset, uint64_t length);

/* map.c */
emu_handler emu_op_map, emu_op_unmap;
void emu_map_release(struct emu_map *m);

/* requester.c */
emu_handler emu_op_requester_add, emu_op_requester_del;
void emu_requester_release(struct emu_requester *q);
void emu_requester_cut(struct emu_requester *q);
/* The entry that lets @d out through @a; NULL: none. */
struct emu_requester_entry *emu_requester_lookup(struct emu_adapter *a, uint32_t bdf);
/* What holds that entry for @d; NULL: nothing does. */
struct emu_requester *emu_requester_of(const struct emu_device *d, unsigned adapter);
void emu_requesters_power_on(struct emu_adapter *a);

/* device.c; models.c */
extern const struct emu_dev_model *const emu_models[]; /* ends with NULL */
int emu_device_init(struct emu_device *d, struct emu_host *h, const struct sio_topo_device *topo,
		    struct sio_err *reterr);
void emu_device_done(struct emu_device *d);
/* Its host starts: fresh pages and regions, power-on reset of the model, if it is in its slot. */
int emu_device_power_on(struct emu_device *d, struct sio_err *reterr);
void emu_device_power_off(struct emu_device *d);
/* The same of one that is put into its slot and taken out; @power: it begins without media. */
int emu_device_plug(struct emu_device *d, bool power, struct sio_err *reterr);
void emu_device_unplug(struct emu_device *d);
/* One that is there; NULL. */
struct emu_device *emu_device_find(struct emu_host *h, uint64_t id);
/* -ENODEV none; -EPERM not open. */
int emu_device_get(struct emu_request *rq, uint64_t id, struct emu_device **ret);
emu_handler emu_op_device_list, emu_op_device_open, emu_op_device_close, emu_op_reset;
void emu_opened_release(struct emu_opened *o);

/* bar.c */
emu_handler emu_op_bar, emu_op_bar_close;
void emu_bar_release(struct emu_bar *b);
void emu_bar_cut(struct emu_bar *b);
/* -ENODEV if @o is a BAR view of a device that was pulled out. */
int emu_bar_check(struct emu_request *rq, const char *what, const struct emu_object *o);
struct emu_mem *emu_bar_mem(const struct emu_bar *b);
uint64_t emu_run_physical(const struct emu_run *run);
uint64_t emu_run_key(const struct emu_run *run); /* for emu_check_*: below all object ids */
volatile void *emu_bar_view(struct emu_dev *dev, unsigned index);
volatile void *emu_bar_mirror(struct emu_dev *dev, unsigned index);

/* Does the device look at these pages? */
static inline bool emu_run_polled(const struct emu_run *run)
{
	return run->pages->kind == EMU_PAGE_REGISTERS || run->pages->kind == EMU_PAGE_DOORBELLS;
}

/* watch.c */
emu_handler emu_op_watch, emu_op_unwatch;
void emu_watch_release(struct emu_watch *w);
/* The target goes. */
void emu_watches_end(struct emu_watch **watches);

/* dmamap.c */
emu_handler emu_op_dmamap, emu_op_dmaunmap;
void emu_dmamap_release(struct emu_dmamap *m);
/* Its device or target was pulled out: it leads nowhere, and holds nothing. */
void emu_dmamap_cut(struct emu_dmamap *m);
/* What leads to a multicast group can be written to alone. */
int emu_group_access(struct emu_request *rq, const char *what, const struct emu_object *target,
		     uint32_t access);
/* Give @map its address in its device's domain, as @m wants it; take it back. */
int emu_dmamap_place(struct emu_request *rq, struct emu_dmamap *map,
		     const struct sio_req_dmamap *m);
void emu_dmamap_unplace(struct emu_dmamap *map);
/* End the quarantined mappings of @d that @owner made (0: all). Return: how many. */
uint64_t emu_dmamaps_settle(struct emu_device *d, uint64_t owner);

/* irq.c */
emu_handler emu_op_irq_new, emu_op_irq_free;
void emu_irq_release(struct emu_irq *q);
/* What a message to it says: which of those at its address it is. */
static inline uint32_t emu_irq_message(const struct emu_irq *q)
{
	return (uint32_t)q->o.id;
}
static inline bool emu_is_message_address(uint64_t addr)
{
	return addr >= EMU_MSI_BASE && addr < EMU_MSI_BASE + EMU_MSI_SIZE;
}

/* vector.c */
emu_handler emu_op_vector;
void emu_vector_release(struct emu_vector *v);
/* The device raised @vector: send its message, or keep that there is one. */
void emu_vector_raise(struct emu_dev *dev, unsigned vector);
/* A reset of the device: what was kept is forgotten. */
void emu_vectors_reset(struct emu_device *d);

/* info.c */
emu_handler emu_op_info, emu_op_adapter;
int emu_adapter_init(struct emu_adapter *a, struct emu_host *h, unsigned index,
		     struct sio_err *reterr);
void emu_adapter_done(struct emu_adapter *a);
int emu_adapter_get(struct emu_request *rq, unsigned index, struct emu_adapter **ret);
/* Empty tables for a host that starts. */
int emu_adapter_power_on(struct emu_adapter *a, struct sio_err *reterr);
void emu_adapter_power_off(struct emu_adapter *a);

/* list.c, stats.c */
emu_handler emu_op_list, emu_op_stats;

/* status.c */
emu_handler emu_op_status;
int emu_paths_init(struct emu_host *h, struct sio_err *reterr);
int emu_status_new(struct emu_host *h);
void emu_status_free(struct emu_host *h);
/* Bring every path's state up to date: first the pages, then the word to the daemons. */
void emu_paths_update(struct emu_room *r);
struct emu_path *emu_path_find(struct emu_host *h, unsigned adapter, unsigned peer_host,
			       unsigned peer_adapter);

/* A transaction was lost on the way: the error count of the page goes up. */
void emu_path_lost(struct emu_host *h, struct emu_path *p);

/* dma.c, translate.c */
int emu_dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len);
int emu_dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len);

struct emu_target {
	uint8_t *data;		      /* of the byte at the address asked for; NULL: see @sender */
	uint32_t access;	      /* what is allowed there */
	const struct emu_ram *sender; /* an exact group's; the byte lies @sender_offset in it */
	uint64_t sender_offset;
	bool counted;  /* on failure: the adapters passed are */
	uint32_t node; /* where it ended */
	uint32_t n_hops;
	struct emu_count *hop[EMU_HOPS]; /* adapters passed, in order; also set on failure */
	char reason[SIO_PORT_TEXT];	 /* on failure */
};
/* The byte at @addr, for a transaction that stays within the page. 0; -EFAULT. */
int emu_translate(struct emu_device *d, uint64_t addr, uint32_t access, struct emu_target *ret);

/* fanout.c; @c passed an adapter: tell it. */
typedef void emu_passed(struct emu_adapter *a, const struct sio_pcie_count *c);
/*
 * @d writes @len bytes to @sender's group, @c in packets: to each member that can be reached, in
 * order. Return: 0; -EFAULT: the others have it, and *t says who was not reached.
 */
int emu_group_write(struct emu_device *d, const struct emu_ram *sender, uint64_t offset,
		    const void *from, size_t len, const struct sio_pcie_count *c,
		    emu_passed *passed, struct emu_target *t);

/*
 * Where a message ends: at an interrupt of a host (0, *ret is set), in memory (0, *ret is NULL, the
 * byte is in @t), or nowhere (-EFAULT). @v: whose it is.
 */
int emu_translate_message(const struct emu_vector *v, struct emu_irq **ret, struct emu_target *t);

/* fault.c; @access: SIO_FAULT_* */
void emu_fault_record(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
		      const struct emu_target *t);

/*
 * check.c: plain lists of what was allocated, granted, mapped and opened, kept apart from the
 * tables above. But for builds with NDEBUG, accesses of devices are looked up there too: every one
 * unless emu_room_check_every() told otherwise. A difference calls the hook (abort() unless a test
 * set another).
 */
#ifndef NDEBUG
#define EMU_CHECK 1
#else
#define EMU_CHECK 0
#endif
struct emu_check *emu_check_new(void);
void emu_check_free(struct emu_check *c);
void emu_check_hook(struct emu_check *c, void (*fail)(void *arg, const char *text), void *arg);
/* All return -ENOMEM or 0. */
int emu_check_mem(struct emu_host *h, uint64_t key, uint64_t physical, uint64_t len, uint8_t *data);
int emu_check_grant(struct emu_grant *g, uint64_t physical);
int emu_check_map(struct emu_map *m);
int emu_check_requester(struct emu_requester *q, uint32_t bdf);
int emu_check_dmamap(struct emu_dmamap *m);
/* Forget the line of object @key of @h. */
void emu_check_forget(struct emu_host *h, uint32_t kind, uint64_t key);
/* Within one page; @data: where the tables led, NULL: to a fault. */
void emu_check_access(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
		      const uint8_t *data);

#endif
