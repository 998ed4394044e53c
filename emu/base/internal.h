/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the machine room do for each other; what there is: objects.h. Nothing outside
 * emu/ and its tests includes this.
 */
#ifndef EMU_INTERNAL_H
#define EMU_INTERNAL_H

#include "emu/base/objects.h"

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
/* A place in the host's RAM; -ENOSPC tells what takes it up. */
int emu_ram_place(struct emu_request *rq, uint64_t size, uint64_t align, uint64_t highest,
		  uint64_t *ret);
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
/* One of the topology; one that is there, too; NULL. */
struct emu_device *emu_device_known(struct emu_host *h, uint64_t id);
struct emu_device *emu_device_find(struct emu_host *h, uint64_t id);
/* -ENODEV none; -EPERM not open. */
int emu_device_get(struct emu_request *rq, uint64_t id, struct emu_device **ret);
emu_handler emu_op_device_list, emu_op_device_open, emu_op_device_close, emu_op_reset;
void emu_opened_release(struct emu_opened *o);

/* bar.c */
emu_handler emu_op_bar, emu_op_bar_close;
void emu_bar_release(struct emu_bar *b);
void emu_bar_cut(struct emu_bar *b);
/* -ENODEV if @o is a BAR view that leads nowhere: of a device that was pulled out, or reset. */
int emu_bar_check(struct emu_request *rq, const char *what, const struct emu_object *o);
struct emu_mem *emu_bar_mem(const struct emu_bar *b);
uint64_t emu_run_physical(const struct emu_run *run);
uint64_t emu_run_key(const struct emu_run *run); /* for emu_check_*: below all object ids */
volatile void *emu_bar_view(struct emu_dev *dev, unsigned index);
volatile void *emu_bar_mirror(struct emu_dev *dev, unsigned index);

/* cut.c */
/* What hosts have of @run of @d (NULL: of all its pages) leads nowhere any more. */
void emu_pages_cut(struct emu_device *d, const struct emu_run *run);
/*
 * A reset takes the doorbells from all who have them: the device has new pages, and the old ones
 * read as ones. -errno: nothing was done.
 */
int emu_doorbells_renew(struct emu_device *d);
/* Whoever has it mapped reads ones from now on. */
void emu_fill_ones(const struct emu_mem *m);

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
/*
 * Its device or target is gone: it leads nowhere. A device that is there may still send to its
 * address, so nothing else gets that before the mapping ends.
 */
void emu_dmamap_cut(struct emu_dmamap *m);
/* What leads to a multicast group can be written to alone. */
int emu_group_access(struct emu_request *rq, const char *what, const struct emu_object *target,
		     uint32_t access);
/* Give @map its address in its device's domain, as @m wants it; take it back. */
/* No I/O address is left, as rq->err tells: -ENOSPC. */
int emu_no_iova(struct emu_request *rq);
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

/* adapter.c */
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

/* path.c */
emu_handler emu_op_status;
int emu_paths_init(struct emu_host *h, struct sio_err *reterr);
int emu_status_new(struct emu_host *h);
void emu_status_free(struct emu_host *h);
/* Bring every path's state up to date: first the pages, then the word to the daemons. */
void emu_paths_update(struct emu_room *r);
/* Its host hears of its cable, whoever is behind it. */
void emu_link_tell(struct emu_adapter *a);
/* Those over @adapter, and their other ends', have other addresses. */
void emu_paths_turn(struct emu_host *h, unsigned adapter);
/* The start of the peer, and of the way to it, that @p leads to now. */
uint64_t emu_path_start(const struct emu_host *h, const struct emu_path *p);
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
/* The memory of emu_check_mem() is elsewhere now. */
void emu_check_moved(struct emu_host *h, uint64_t key, uint8_t *data);
/* Forget the line of object @key of @h. */
void emu_check_forget(struct emu_host *h, uint32_t kind, uint64_t key);
/* Within one page; @data: where the tables led, NULL: to a fault. */
void emu_check_access(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
		      const uint8_t *data);

#endif
