/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an access of a device goes: memory and interrupts of hosts, windows between them, IOMMUs,
 * requester tables, multicast groups; and the plain lists that all of this is compared with.
 */
#ifndef EMU_MEMORY_MEMORY_H
#define EMU_MEMORY_MEMORY_H

#include "emu/base/state.h"

#define EMU_CPU_REQUESTERS 2 /* entries of each requester table that the CPUs have */

struct emu_ram {
	struct emu_object o;
	struct emu_mem mem;
	uint64_t address;	 /* physical */
	struct emu_group *group; /* NULL: none; of a fused one @mem is the group's */
	bool member, published;	 /* of the group */
	bool sender;		 /* of an exact group: addresses without memory */
	unsigned adapter;	 /* that it joined or sends through */
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
emu_handler emu_op_adapter;
int emu_adapter_init(struct emu_adapter *a, struct emu_host *h, unsigned index,
		     struct sio_err *reterr);
void emu_adapter_done(struct emu_adapter *a);
/* Empty tables for a host that starts. */
int emu_adapter_power_on(struct emu_adapter *a, struct sio_err *reterr);
void emu_adapter_power_off(struct emu_adapter *a);

/* source.c: what grants, DMA mappings and watches are of. */
/* Where an object lies in its host's physical map. */
uint64_t emu_source_physical(const struct emu_object *source, uint64_t offset);
/* Whole pages inside of @source, or -EINVAL with a text that begins with @what. */
int emu_range_check(struct emu_request *rq, const char *what, const struct emu_object *source,
		    uint64_t offset, uint64_t length);

/* No I/O address is left, as rq->err tells: -ENOSPC. */
int emu_no_iova(struct emu_request *rq);

/* mem.c */
emu_handler emu_op_alloc, emu_op_free, emu_op_give;
/* A place in the host's RAM; -ENOSPC tells what takes it up. */
int emu_ram_place(struct emu_request *rq, uint64_t size, uint64_t align, uint64_t highest,
		  uint64_t *ret);

/* mcast.c */
emu_handler emu_op_mcast;
void emu_group_leave(struct emu_ram *ram);
/* What leads to a multicast group can be written to alone. */
int emu_group_access(struct emu_request *rq, const char *what, const struct emu_object *target,
		     uint32_t access);

/* grant.c */
emu_handler emu_op_grant, emu_op_ungrant;
void emu_grant_cut(struct emu_grant *g);
struct emu_grant *emu_grant_find(struct emu_host *exporter, const struct sio_req_map *m,
				 unsigned importer, unsigned adapter);
/* Was @q granted to @peer through adapter @adapter? */
bool emu_irq_granted(const struct emu_irq *q, unsigned adapter, unsigned peer);

/* map.c */
emu_handler emu_op_map, emu_op_unmap;

/* requester.c */
emu_handler emu_op_requester_add, emu_op_requester_del;
void emu_requester_cut(struct emu_requester *q);
/* The entry that lets @d out through @a; NULL: none. */
struct emu_requester_entry *emu_requester_lookup(struct emu_adapter *a, uint32_t bdf);
/* What holds that entry for @d; NULL: nothing does. */
struct emu_requester *emu_requester_of(const struct emu_device *d, unsigned adapter);
void emu_requesters_power_on(struct emu_adapter *a);

/* dmamap.c */
emu_handler emu_op_dmamap, emu_op_dmaunmap, emu_op_settle;
/*
 * Its device or target is gone, or DMAUNMAP says so: it leads nowhere. A device that is there may
 * still send to its address, so nothing else gets that before the mapping ends.
 */
void emu_dmamap_cut(struct emu_dmamap *m);
/* Give @map its address in its device's domain, as @m wants it; take it back. */
int emu_dmamap_place(struct emu_request *rq, struct emu_dmamap *map,
		     const struct sio_req_dmamap *m);
void emu_dmamap_unplace(struct emu_dmamap *map);
/* End the quarantined mappings of @d that @owner made (0: all). Return: how many. */
uint64_t emu_dmamaps_settle(struct emu_device *d, uint64_t owner);

/* irq.c */
emu_handler emu_op_irq_new, emu_op_irq_free;
/* What a message to it says: which of those at its address it is. */
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
	bool counted;  /* on failure: the adapters passed are */
	uint32_t node; /* where it ended */
	uint32_t n_hops;
	struct emu_count *hop[EMU_HOPS]; /* adapters passed, in order; also set on failure */
	char reason[SIO_PORT_TEXT];	 /* on failure */
};
/* The byte at @addr, for a transaction that stays within the page. 0; -EFAULT. */
int emu_translate(struct emu_device *d, uint64_t addr, uint32_t access, struct emu_target *ret);
/*
 * Where the message @data at @addr ends that @d sends: at an interrupt of a host (0, *ret is set),
 * in memory (0, *ret is NULL, the byte is in @t), or nowhere (-EFAULT). @meant: the interrupt of
 * the device's own host, if it is for one: another one is not remapped to.
 */
int emu_translate_message(struct emu_device *d, uint64_t addr, uint32_t data,
			  const struct emu_object *meant, struct emu_irq **ret,
			  struct emu_target *t);

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
/* The memory of emu_check_mem() is elsewhere now. */
void emu_check_moved(struct emu_host *h, uint64_t key, uint8_t *data);
/* Forget the line of object @key of @h. */
void emu_check_forget(struct emu_host *h, uint32_t kind, uint64_t key);
/* Within one page; @data: where the tables led, NULL: to a fault. */
void emu_check_access(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
		      const uint8_t *data);

#endif
