/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the machine room: hosts with their adapters, devices and paths. Structures that only
 * the rooms above use are declared there: memory.h, engine.h, device.h. Nothing outside emu/ and
 * its tests includes these.
 */
#ifndef EMU_BASE_STATE_H
#define EMU_BASE_STATE_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/addrmap.h"
#include "core/err.h"
#include "core/iommu.h"
#include "core/lut.h"
#include "core/outage.h"
#include "core/pcie.h"
#include "core/range.h"
#include "core/topology.h"
#include "emu/base/edge.h"
#include "emu/base/object.h"
#include "emu/base/request.h"
#include "emu/base/slot_life.h"
#include "emu/devices/model.h"
#include "smartio/uapi.h"

#define EMU_PAGE ((uint64_t)SIO_PAGE_SIZE)
#define EMU_MSI_BASE 0xfee00000ull
#define EMU_MSI_SIZE 0x100000ull
#define EMU_FAULTS 64  /* kept per host */
#define EMU_XLATS 2048 /* translations kept per device (8 MiB of buffers); a power of 2 */
#define EMU_HOPS 2     /* most adapters that a transaction passes */
#define EMU_GROUPS 8   /* multicast groups of the cluster */

struct emu_check;
struct emu_device;
struct emu_dmamap;
struct emu_engine;
struct emu_grant;
struct emu_map;
struct emu_ram;
struct emu_requester;
struct emu_vector;
struct sio_vfio_config;

/*
 * Packets and bytes that passed a place, by PCIe's rules. The sums wrap, as counters of hardware
 * do.
 */
struct emu_count {
	struct sio_pcie_count pcie;
	uint64_t msg, faults;
};

static inline void emu_count_message(struct emu_count *c)
{
	c->msg++;
	c->pcie.write_tlps++;
	c->pcie.write_bytes += SIO_MSI_BYTES;
}

/* One entry of an adapter's requester table. */
struct emu_requester_entry {
	uint32_t bdf;
	uint32_t holders; /* reference count of objects; 0: free */
	UT_hash_handle hh;
	struct emu_requester_entry *next_free;
};

struct emu_adapter {
	struct emu_host *host;
	const struct sio_topo_adapter *topo;
	unsigned index;
	bool cable;	    /* in its socket; emu_room_link() */
	bool changing;	    /* another one takes its place: nobody begins to use it */
	struct sio_lut lut; /* of what goes out */
	struct emu_requester_entry *requester, *by_bdf, *free_requesters;
	unsigned requesters_used; /* the CPUs' included */
	struct sio_iommu iommu;	  /* of what comes in, if the host's IOMMU is on */
	struct sio_range iova;
	struct emu_count count;
	struct emu_engine *engine;   /* NULL: it has no channels */
	struct sio_pcie_count dma;   /* that engines sent through it; atomic */
	uint64_t delay_ns;	     /* its link adds this to transfers of engines */
	uint64_t start;		     /* of a machine's: counts its starts; 0: it is off */
	struct sio_topo_adapter was; /* @topo of one that the file does not have any more */
};

/* A run of pages of a BAR with one purpose. */
struct emu_run {
	struct emu_device *device;
	const struct emu_dev_pages *pages;
	struct emu_mem mem;    /* doorbells, controller memory */
	struct emu_mem view;   /* registers: the pages of the owner, made afresh for each */
	struct emu_mem mirror; /* registers: the read-only mirror for all others */
	struct emu_bar *writer;
	struct emu_bar *views; /* of these pages, but for those that were cut */
	/* Maps of all hosts whose stores the device looks at here. */
	struct emu_map *windows;
};

struct emu_bar {
	struct emu_object o;
	struct emu_bar *prev, *next; /* of its run */
	struct emu_device *device;
	struct emu_run *run;
	uint64_t offset, length; /* in the run */
	uint32_t access;
	bool mirror;
	bool cut; /* the device was pulled out, or reset: it is a view of nothing */
	unsigned n_grants;
	struct emu_mem own; /* a part of controller memory: pages of its own */
};

/*
 * The parts of an access's path that are not adapters: in the hosts where it begins and ends, the
 * chassis between two places in them (`in` of the topology; 0: up to the root), and the links
 * between two cluster switches. Zeroed where it is not used, so that two can be compared.
 */
struct emu_way {
	struct emu_host *host[2];   /* NULL: no second one */
	uint8_t from[2], to[2];	    /* in each host, in the order of the access */
	uint8_t sw[2], reserved[2]; /* the same switch twice: no link is crossed */
};

/* A cached translation of a page of a device's address space. Valid while @gen is the room's. */
struct emu_xlat {
	uint64_t page, gen;
	uint8_t *data;
	/* a sender of a multicast group: then @data is NULL, and the translation is not cached */
	const struct emu_ram *sender;
	uint64_t sender_offset;
	uint32_t access;
	uint16_t n_hops;
	bool far; /* the path has more than adapters: @way */
	struct emu_count *hop[EMU_HOPS];
	struct emu_way way;
};

struct emu_device {
	struct emu_dev dev;
	struct emu_room *room;
	struct emu_host *host;
	const struct sio_topo_device *topo;
	uint32_t number; /* of all that its host has had; never given again */
	/* Of a virtual function; then from a physical one through its virtual ones, in order. */
	struct emu_device *physical, *next_function;
	const struct emu_adapter *engine_of; /* a DMA engine: it uses this adapter alone */
	const struct emu_dev_model *model;
	void *state; /* the model's; NULL: none yet */
	struct emu_dev_config config;
	struct emu_run run[EMU_DEV_PAGES];
	uint64_t bar_addr[6];
	struct sio_vfio_config *space; /* device/config.c */
	struct emu_object *opened;     /* NULL: it is not */
	struct emu_dmamap *dmamaps;
	struct emu_requester *requesters[SIO_MAX_ADAPTERS];
	struct emu_vector **vector; /* msix_count entries; NULL: masked, not set */
	uint8_t *pending;	    /* a bit array in hardware, a byte each here */
	struct sio_iommu iommu;
	struct sio_range iova;
	uint64_t generation; /* counts resets */
	enum emu_slot_state slot;
	unsigned writable_views;
	struct emu_mem doze; /* its first word says that the device sleeps, for EVENT watches */
	unsigned n_dozing;   /* those that look at it */
	uint64_t wakes[SIO_WATCH_EVENT + 1]; /* by kind of watch */
	struct emu_count count;
	uint64_t xlat_misses;
	uint32_t unchecked;		 /* counts accesses, for emu_room_check_every() */
	struct emu_device *next_removed; /* emu_room.removed */
	struct sio_topo_device was;	 /* @topo of a device that was removed */
	struct emu_xlat to_group;	 /* the last access to a sender of a group */
	struct emu_xlat xlat[EMU_XLATS];
};

/* A path to a peer, which has a slot in the status page. */
struct emu_path {
	unsigned adapter, peer_host, peer_adapter;
	uint32_t state, generation, errors;
	uint32_t reported; /* the generation that the host's daemon was sent last */
	uint64_t turn;	   /* how often it came back with other addresses; as of its other end */
	/* Links on the path, while it is up; the number that the daemon was sent. */
	uint32_t hops, reported_hops;
	bool changed;
	bool gone; /* the file in force does not have it: down, and no one finds it */
};

struct emu_fault {
	uint64_t device, address, length, nearest;
	uint32_t access, node;
	char reason[SIO_PORT_TEXT];
};

struct emu_fault_log {
	struct emu_fault ring[EMU_FAULTS];
	uint64_t count;	       /* of all faults; the last is ring[(count - 1) % EMU_FAULTS] */
	uint64_t window_start; /* events are limited per span of time */
	unsigned sent;
	bool overflow;
};

/* Counts what emu_objects_fall() has freed since it was last set to zero. */
struct emu_tally {
	uint64_t dmamaps, grants, maps, mems, bytes;
};

/* A host's grants to machines, by address: inward.c. */
struct emu_inward {
	struct emu_inward_row {
		struct emu_grant *grant;
		uint64_t end; /* the greatest of the grants up to this one */
	} * at;
	size_t n, size;
};

struct emu_host {
	struct emu_room *room;
	const struct sio_topo_host *topo;
	unsigned index;
	/* a machine beside the room: only the fields of adapters and paths are used */
	bool machine;
	bool up;
	bool overflow; /* an event was dropped, and so are all until emu_room_drained() */
	uint64_t boot_generation;
	uint8_t boot_id[16];
	/* Continues across starts: late messages about owners of an earlier start find nothing. */
	uint64_t last_id;
	struct emu_object *objects;
	struct emu_grant *grants; /* by the start of their tokens */
	struct emu_inward inward;
	/* By their target and their node; a key may occur more than once. */
	struct emu_grant *irq_grants;
	struct emu_object *falling[EMU_RANKS];
	struct emu_owner *ended; /* ended owners that have objects left */
	struct emu_owner daemon; /* owner 0 */
	struct emu_tally freed;
	/*
	 * RAM outside of the pool, and in it. A part that is empty has size 0. The pool's first
	 * page is the header by which machines know it (SIO_VNTB_POOL_KEY).
	 */
	struct sio_range ram, pool;
	bool pool_full; /* the log has that something did not fit there */
	struct sio_addrmap map;
	/*
	 * As many as are made: those of the topology, then those that it has no more, for as long
	 * as something of them is left.
	 */
	struct emu_adapter adapter[SIO_MAX_ADAPTERS];
	unsigned n_adapters;
	struct sio_pcie_count *chassis; /* what passed their links towards the host; atomic */
	struct emu_device **device;	/* as in the topology */
	unsigned n_devices;		/* as many as are made */
	uint32_t last_number;		/* of a device */
	struct emu_mem status;
	struct emu_path *path;
	unsigned n_paths;
	struct emu_fault_log faults;
	uint64_t requests, requests_refused, events;
	uint64_t n_of_kind[EMU_LAST_KIND + 1];
	uint64_t descriptors; /* that its objects hold at the edge */
	bool engine_runs;     /* the edge was asked to run the engines */
};

struct emu_check;

/* A multicast group: mcast.c. */
struct emu_group {
	struct emu_mem mem; /* fused: the members' common memory; exact: only its size */
	struct emu_ram *member;
	unsigned users; /* objects that have @mem; 0: there is none */
	unsigned members, published;
};

struct emu_room {
	const struct sio_topology *topo;
	const struct emu_ops *ops;
	void *ctx;
	const struct emu_operation *operations; /* SIO_OP_COUNT */
	const struct emu_kind *const *kinds;	/* by SIO_KIND_* */
	/* The generation: incremented when a cached translation may have become wrong. */
	uint64_t gen;
	struct emu_host *host;
	unsigned n_hosts;     /* as many as are made; a place may be vacant, as in the topology */
	unsigned max_hosts;   /* that @host has room for */
	unsigned n_machines;  /* machines, behind the hosts in @host, as many as are made */
	uint64_t descriptors; /* that the objects of one host may hold */
	struct emu_group group[EMU_GROUPS];
	struct sio_outage *outage; /* of switches and trunks */
	bool delays;		   /* a link was slow once: struct emu_adapter's delay_ns */
	/* Of links that are no adapter's: those of chassis, host by host, then trunks; atomic. */
	struct emu_links {
		struct sio_pcie_count *link;
		size_t n;
	} links;
	struct sio_pcie_count *trunk; /* in it */
	struct emu_check *check;
	uint32_t check_mask; /* of an access's number; 0 there: compare it with the list */
	struct sio_pcie pcie;
	struct sio_pcie_count page_read, page_write; /* of a whole aligned page */
	uint64_t writable_views;		     /* of all devices */
	bool watch_dirty;			     /* @naps may be wrong */
	bool naps;
	struct emu_map *stores; /* maps of doorbells of machines: memory/stores.c */
	uint64_t n_naps, n_sleeps;
	struct emu_device **device; /* of all hosts: what step() runs through */
	unsigned n_devices;
	/*
	 * Devices that a reload took away: what hosts have left of them refers to them until its
	 * owners end it. The greatest generation of one: those that come later begin there.
	 */
	struct emu_device *removed;
	uint64_t removed_generation;
};

/* event.c */
void emu_log(struct emu_room *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void emu_event(struct emu_host *h, void *evt, size_t size, uint32_t op);

/* Invalidates all cached translations. */
static inline void emu_invalidate(struct emu_room *r)
{
	r->gen++;
}

/* May hosts come and go? Not where machines are behind them. */
static inline bool emu_grows(const struct emu_room *r)
{
	return r->ops->grows && r->topo->n_machines == 0;
}

/* Does the host go on when its daemon ends and another one is started? */
static inline bool emu_outlives(const struct emu_room *r)
{
	return r->ops->identify;
}

/* host.c: look-ups by number. */
/* -ENODEV, and rq->err says so. */
int emu_adapter_get(struct emu_request *rq, unsigned index, struct emu_adapter **ret);
/* The same for what is to be made there: -EBUSY while a reload changes it. */
int emu_adapter_use(struct emu_request *rq, unsigned index, struct emu_adapter **ret);
/* Is the device pulled out of its slot? */
static inline bool emu_device_is_out(const struct emu_device *d)
{
	return d->slot != EMU_SLOT_IN;
}
/*
 * Applies an event to the slot's state. An event that is not allowed in that state is a bug of the
 * room, and ends it.
 */
void emu_slot_enter(struct emu_device *d, enum emu_slot_event event);
/* A device of the topology; one that is also in its slot; NULL: there is none. */
struct emu_device *emu_device_known(struct emu_host *h, uint64_t id);
struct emu_device *emu_device_find(struct emu_host *h, uint64_t id);
/* -ENODEV none; -EPERM not open. */
int emu_device_get(struct emu_request *rq, uint64_t id, struct emu_device **ret);

/* pages.c: pages of BARs, and views of them. */
/* Does the device poll these pages? */
static inline bool emu_run_polled(const struct emu_run *run)
{
	return run->pages->kind == EMU_PAGE_REGISTERS || run->pages->kind == EMU_PAGE_DOORBELLS;
}
uint64_t emu_run_physical(const struct emu_run *run);
struct emu_mem *emu_bar_mem(const struct emu_bar *b);
/* -ENODEV if @o is a BAR view that leads nowhere: of a device that was pulled out, or reset. */
int emu_bar_check(struct emu_request *rq, const char *what, const struct emu_object *o);

/* path.c */
/* Is the adapter's link trained? The cable is in, and what is at its other end has power. */
bool emu_adapter_linked(const struct emu_adapter *a);
/* Do the links of the two adapters, and the switches between them, lead from one to the other? */
bool emu_adapters_joined(const struct emu_adapter *a, const struct emu_adapter *b);
/* Paths of a host that is off, which are found by emu_paths_follow(). */
int emu_paths_init(struct emu_host *h, struct sio_err *reterr);
void emu_paths_done(struct emu_host *h);
/*
 * The topology is another one: paths that it lacks are down from the next emu_paths_update() on,
 * new ones are behind those that there are, in the status page, too.
 */
void emu_paths_follow(struct emu_host *h);
int emu_status_new(struct emu_host *h);
void emu_status_free(struct emu_host *h);
/* Updates the state of every path: first the pages, then the events to the daemons. */
void emu_paths_update(struct emu_room *r);
/* Reports the state of the adapter's own link to its host. */
void emu_link_report(struct emu_adapter *a);
void emu_links_report_again(struct emu_host *h);
/* Paths over @adapter, and their other ends, have got other addresses. */
void emu_paths_turn(struct emu_host *h, unsigned adapter);
/* The present start of the peer of @p, combined with the number of the path's addresses (@turn). */
uint64_t emu_path_start(const struct emu_host *h, const struct emu_path *p);
struct emu_path *emu_path_find(struct emu_host *h, unsigned adapter, unsigned peer_host,
			       unsigned peer_adapter);
/* Transactions over @adapter had errors, which both ends of each path count. */
void emu_paths_errors(struct emu_host *h, unsigned adapter, uint32_t n);
/* A transaction was lost on the path: increments the error count of the page. */
void emu_path_lost(struct emu_host *h, struct emu_path *p);

#endif
