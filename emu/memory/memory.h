/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paths of devices' accesses: memory and interrupts of hosts, windows between them, IOMMUs,
 * requester tables, multicast groups; and the simple lists that all of this is checked against.
 */
#ifndef EMU_MEMORY_MEMORY_H
#define EMU_MEMORY_MEMORY_H

#include "emu/base/state.h"

#define EMU_CPU_REQUESTERS 2 /* entries of each requester table that the CPUs have */

struct emu_ram {
	struct emu_object o;
	struct emu_mem mem;
	uint64_t file_offset;	 /* where it begins in its file: imported, or pooled */
	bool pooled;		 /* its file is the host's pool */
	uint64_t address;	 /* physical */
	uint64_t user_cookie;	 /* of ALLOC */
	struct emu_group *group; /* NULL: none; of a fused one @mem is the group's */
	bool member, published;	 /* of the group */
	bool sender;		 /* of an exact group: addresses without memory */
	unsigned adapter;	 /* that it joined or sends through */
	/* For a member in a device's BAR: the view that shows it; @mem has its size alone. */
	struct emu_bar *overlay;
	uint64_t overlay_offset;
	bool is_overlay;			 /* also when @overlay has been taken away */
	struct emu_ram *group_prev, *group_next; /* members */
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

/* inward.c: grants to machines. Return: 0; -ENOMEM. */
int emu_inward_add(struct emu_grant *g);
/* Nothing happens to one that is not there, of a host. */
void emu_inward_remove(struct emu_grant *g);
/*
 * Finds grants that hold all @len bytes at @address, one by one: *at is SIZE_MAX at first. NULL:
 * there are no more.
 */
struct emu_grant *emu_inward_next(const struct emu_inward *in, uint64_t address, uint64_t len,
				  size_t *at);
void emu_inward_done(struct emu_inward *in);

struct emu_map {
	struct emu_object o;
	unsigned adapter, peer_host, peer_adapter;
	uint64_t peer_generation;
	uint64_t bus_addr, length; /* at the peer */
	uint64_t grant;		   /* the peer's, as its daemon says */
	struct sio_window_at at;   /* in our window */
	bool trigger;
	uint32_t message; /* of the interrupt that it triggers */
	bool bell;	  /* of a machine's interrupt: the edge's watch with its id rings it */
	bool limit_said;  /* the log has that a trigger was dropped */
	/* Of a machine's doorbells: where programs store, and the room's list of these. */
	struct emu_mem stores;
	struct emu_map *stores_prev, *stores_next;
	struct emu_run *polled; /* pages that it may write to and a device looks at; NULL: none */
	struct emu_map *polled_prev, *polled_next; /* the others of these */
	bool cut;				   /* they were, and are gone */
};

struct emu_requester {
	struct emu_object o;
	struct emu_requester *prev, *next; /* of the device, through this adapter */
	struct emu_device *device;	   /* NULL: known by its bdf only, or pulled out */
	unsigned adapter, entry;
};

struct emu_dmamap {
	struct emu_object o;
	struct emu_dmamap *dev_prev, *dev_next; /* of its device */
	struct emu_device *device;
	struct emu_object *target;	 /* NULL: cut off; its address is taken still */
	struct emu_requester *requester; /* NULL: not through a window */
	uint64_t offset, length;
	uint64_t iova, physical;
	bool wanted;	/* its address was asked for */
	uint64_t taken; /* what it has of the domain's addresses begins there; SIO_PORT_ANY: none */
	uint32_t access;
	bool placed; /* in the list of its device, which may use its address */
};

struct emu_irq {
	struct emu_object o;
	int fd;
	uint64_t address; /* where a message would have to go */
};

extern const struct emu_kind emu_kind_mem, emu_kind_grant, emu_kind_map, emu_kind_requester,
	emu_kind_dmamap, emu_kind_irq;

/* adapter.c */
int emu_adapter_init(struct emu_adapter *a, struct emu_host *h, unsigned index,
		     const struct sio_topo_adapter *t, struct sio_err *reterr);
void emu_adapter_done(struct emu_adapter *a);
/* Makes empty tables for a host that starts. */
int emu_adapter_power_on(struct emu_adapter *a, struct sio_err *reterr);
/* Puts its window into its host's physical map. */
int emu_adapter_place(struct emu_adapter *a, struct sio_err *reterr);
void emu_adapter_power_off(struct emu_adapter *a);

/* source.c: the objects that grants, DMA mappings and watches refer to. */
/* The address of an object in its host's physical map. */
uint64_t emu_source_physical(const struct emu_object *source, uint64_t offset);
/*
 * Checks that the range is whole pages inside of @source; -EINVAL with a text that begins with
 * @what.
 */
int emu_range_check(struct emu_request *rq, const char *what, const struct emu_object *source,
		    uint64_t offset, uint64_t length);

/* Fails with -ENOSPC: no I/O address is left, as rq->err says. */
int emu_no_iova(struct emu_request *rq);

/* mem.c */
/* The host's RAM when it starts, all of it free; when it ends; and its bytes that nothing has. */
int emu_ram_power_on(struct emu_host *h, struct sio_err *reterr);
void emu_ram_power_off(struct emu_host *h);
uint64_t emu_ram_free_bytes(const struct emu_host *h);
/* Finds a place in the host's RAM outside its pool; -ENOSPC says what takes it up. */
int emu_ram_place(struct emu_request *rq, uint64_t size, uint64_t align, uint64_t highest,
		  uint64_t *ret);

/* mcast.c */
void emu_group_leave(struct emu_ram *ram);
/* The view that overlay @ram is on is unowned now: nothing reaches the overlay. */
void emu_overlay_cut(struct emu_ram *ram);
/* The memory of a member; of an overlay unless it was cut. */
void *emu_member_data(const struct emu_ram *ram);
/*
 * Checks a mapping of a multicast group, which can only be written to; an overlay can be mapped and
 * granted only by its view.
 */
int emu_group_access(struct emu_request *rq, const char *what, const struct emu_object *target,
		     uint32_t access);

/* grant.c */
void emu_grant_cut(struct emu_grant *g);
struct emu_grant *emu_grant_find(struct emu_host *exporter, const struct sio_req_map *m,
				 unsigned importer, unsigned adapter);
/* Was @q granted to @peer through adapter @adapter? */
bool emu_irq_granted(const struct emu_irq *q, unsigned adapter, unsigned peer);

/* machine.c: machines beside the room. */
/* What a processor gets of a machine: */
enum emu_machine_way {
	EMU_BY_FILE,   /* its memory */
	EMU_BY_BELL,   /* a descriptor that triggers an interrupt */
	EMU_BY_STORES, /* pages whose stores are carried on: stores.c */
};
/* Finds the target of MAP, which machine @peer has granted. -errno: rq->err has the reason. */
int emu_machine_find(struct emu_request *rq, const struct sio_req_map *m,
		     const struct emu_host *peer, struct emu_reached *ret,
		     enum emu_machine_way *ret_way);
/* Is what @map leads to granted in the start of the machine that it was mapped in, and joined? */
bool emu_machine_leads_there(const struct emu_map *map);
/*
 * Makes an event descriptor by which programs trigger @map, which is of a machine's interrupt; it
 * is the edge's.
 */
int emu_machine_bell(struct emu_request *rq, struct emu_map *map, int *ret_fd);
/* Triggers it. The trigger cannot be notified of a failure: it counts as a fault of the adapter. */
void emu_machine_ring(struct emu_map *map);
/*
 * stores.c: doorbells of a machine's devices. Makes the pages of @map. -errno: rq->err has the
 * reason. The second function frees them; nothing happens if there are none.
 */
int emu_stores_new(struct emu_request *rq, struct emu_map *map);
void emu_stores_free(struct emu_map *map);
/* Carries on what programs have stored. Return: how many stores. */
unsigned emu_stores_step(struct emu_room *r);
/* emu_room_inbound() */
int emu_machine_inbound(struct emu_room *r, const struct emu_inbound *x, uint8_t **ret);

/* requester.c */
void emu_requester_cut(struct emu_requester *q);
/* The entry that lets @d out through @a; NULL: none. */
struct emu_requester_entry *emu_requester_lookup(struct emu_adapter *a, uint32_t bdf);
/* The object that has this entry for @d; NULL: none. */
struct emu_requester *emu_requester_of(const struct emu_device *d, unsigned adapter);
void emu_requesters_power_on(struct emu_adapter *a);

/* dmamap.c */
/*
 * Cuts the mapping, because its device or target is gone, or by DMAUNMAP. A device that still
 * exists may send to its address, so nothing else gets the address before the mapping ends.
 */
void emu_dmamap_cut(struct emu_dmamap *m);
/*
 * Assigns @map its address in its device's domain, as @m requests it; the second function frees it.
 */
int emu_dmamap_place(struct emu_request *rq, struct emu_dmamap *map,
		     const struct sio_req_dmamap *m);
void emu_dmamap_unplace(struct emu_dmamap *map);
/* Ends the quarantined mappings of @d that @owner made (0: all). Return: how many. */
uint64_t emu_dmamaps_settle(struct emu_device *d, uint64_t owner);

/* irq.c */
/* The data of a message to the interrupt, which tells apart those at the same address. */
static inline uint32_t emu_irq_message(const struct emu_irq *q)
{
	return (uint32_t)q->o.id;
}
static inline bool emu_is_message_address(uint64_t addr)
{
	return addr >= EMU_MSI_BASE && addr < EMU_MSI_BASE + EMU_MSI_SIZE;
}

/* translate.c */
struct emu_target {
	uint8_t *data;		      /* of the byte at the address asked for; NULL: see @sender */
	uint32_t access;	      /* what is allowed there */
	const struct emu_ram *sender; /* an exact group's; the byte lies @sender_offset in it */
	uint64_t sender_offset;
	bool fleeting; /* @data is good for this access alone */
	bool counted;  /* on failure: the adapters passed are */
	uint32_t node; /* where it ended */
	uint16_t n_hops;
	bool far;			 /* emu_way_is(@way) */
	struct emu_count *hop[EMU_HOPS]; /* adapters passed, in order; also set on failure */
	struct emu_way way;		 /* what else is, as far as it came */
	char reason[SIO_PORT_TEXT];	 /* on failure */
};
/* Translates @addr, for a transaction that stays within the page. 0; -EFAULT. */
int emu_translate(struct emu_device *d, struct sio_dev_addr addr, uint32_t access,
		  struct emu_target *ret);
/*
 * Finds the destination of the message @data to @addr that @d sends: an interrupt of a host (0,
 * *ret is set), memory (0, *ret is NULL, the byte is in @t), a machine (0, neither: it has been
 * sent), or nothing (-EFAULT). @meant: the interrupt of the device's own host, if it is for one: no
 * other is remapped to.
 */
int emu_translate_message(struct emu_device *d, struct sio_dev_addr addr, uint32_t data,
			  const struct emu_object *meant, struct emu_irq **ret,
			  struct emu_target *t);

/* Adds to a sum that engines, on threads of their own, and the room share. */
static inline void emu_add(uint64_t *sum, uint64_t n)
{
	if (n)
		__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}
static inline void emu_count_add(struct sio_pcie_count *sum, const struct sio_pcie_count *c)
{
	emu_add(&sum->read_requests, c->read_requests);
	emu_add(&sum->completions, c->completions);
	emu_add(&sum->read_bytes, c->read_bytes);
	emu_add(&sum->write_tlps, c->write_tlps);
	emu_add(&sum->write_bytes, c->write_bytes);
}

/* way.c */
/* Does the path pass a chassis, or a link between switches? */
bool emu_way_is(const struct emu_way *w);
/* The path goes from one adapter to the other. */
static inline void emu_way_cross(struct emu_way *w, const struct sio_topo_adapter *from,
				 const struct sio_topo_adapter *to)
{
	if (from->attach != SIO_ATTACH_SWITCH || to->attach != SIO_ATTACH_SWITCH)
		return;
	w->sw[0] = (uint8_t)from->attach_index;
	w->sw[1] = (uint8_t)to->attach_index;
}
/* Counts @c for all links of the path. */
void emu_way_count(const struct emu_way *w, struct emu_room *r, const struct sio_pcie_count *c);
/* Links that a write to a multicast group has passed, a bit each, so that each is counted once. */
struct emu_spread {
	uint64_t passed[(SIO_MAX_HOSTS * SIO_MAX_CHASSIS + SIO_MAX_TRUNKS + 63) / 64];
};
void emu_way_spread(const struct emu_way *w, struct emu_room *r, struct emu_spread *spread,
		    const struct sio_pcie_count *c);

/* fault.c; @access: SIO_FAULT_* */
void emu_fault_record(struct emu_device *d, struct sio_dev_addr addr, size_t len, uint32_t access,
		      const struct emu_target *t);

/*
 * check.c: plain lists of what was allocated, granted, mapped and opened, kept apart from the
 * tables above. Except in builds with NDEBUG, accesses of devices are looked up there too: every
 * one unless emu_room_check_every() set it otherwise. A difference calls the hook (abort() unless a
 * test set another).
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
/* The memory of emu_check_mem() has moved. */
void emu_check_moved(struct emu_host *h, uint64_t key, uint8_t *data);
/* Removes the line of object @key of @h. */
void emu_check_forget(struct emu_host *h, uint32_t kind, uint64_t key);
/* Checks an access within one page; @data: where the tables led, NULL: to a fault. */
void emu_check_access(struct emu_device *d, struct sio_dev_addr addr, size_t len, uint32_t access,
		      const uint8_t *data);

#endif
