/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What there is in the machine room. Nothing outside emu/ and its tests includes this.
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
 *   grant:  the peer may still use it until UNGRANT, or the host's end. One whose address alone
 *           is kept (UNGRANT with a flag) refers to nothing, and is the daemon's.
 * An owner ends once; SIO_EV_OWNER_END follows when its last object fell.
 */
#ifndef EMU_OBJECTS_H
#define EMU_OBJECTS_H

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
#include "emu/devices/model.h"
#include "emu/machine/room.h"
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
	struct emu_object *source; /* NULL: its address alone is left */
	unsigned adapter, peer_host, peer_adapter;
	uint32_t access;
	uint64_t offset, length; /* in the source */
	bool cut;		 /* its address leads nowhere: no source, or a gone device */
	uint64_t bus_addr;
	uint64_t start; /* emu_path_start() of the peer's way to us */
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
	bool cut;		/* they were, and are gone */
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
	bool cut; /* the device was pulled out, or reset: it is a view of nothing */
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
	bool placed; /* in the list of its device, which may use its address */
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
	uint64_t turn; /* how often it came back with other addresses; as of its other end */
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

#endif
