/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smartio.ko: what its files share.
 *
 * Who refers to whom (an arrow counts in refs of its target, which cannot go before it):
 *
 *   dmamap -> mem | bar of another device | map;  vector -> irq | map;  grant -> mem | bar |
 *   irq;  dmamap, vector through a map -> requester entry;  shadow -> map, irq;  mem that is a
 *   group's member in a BAR -> bar;  all -> owner
 *
 * What an access of a peer keeps that is late (settle.c) has a kref of its target instead.
 *
 * A range of a DMA channel counts nowhere: it ends with what it is of.
 *
 * An object is in the table from its making until FREE and the like, or until its owner has ended
 * and nothing refers to it; a DMA mapping of an ended owner until SETTLE, RESET or the device's
 * end, a grant until UNGRANT or the bridge's end, a shadow until no driver has it. Its struct, and
 * what backs it, live as long as a file of it (kref).
 *
 * Locks, outer first: a device's lock (the driver core's), sio.lock (all tables), mmap_lock,
 * views of devices and adapters; beside these two, a DMA channel's; the spinlocks are innermost.
 * Page faults take views only, and never while a reset is under way, so whoever holds sio.lock may
 * touch a process's memory map, but copies nothing from or to it, and waits for no reset.
 */
#ifndef SHIM_SMARTIO_H
#define SHIM_SMARTIO_H

#include <linux/dma-direction.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/poll.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include <smartio/uapi.h>

#define SIO_FIRST_ID 0x100000ULL /* above every device id, so that one number names one thing */
#define SIO_BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)
#define SIO_MAX_OUT 3 /* descriptors of an answer */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* A request and its answer, for the duration of one ioctl. */
struct sio_request {
	struct sio_owner *owner; /* of h.owner; NULL: none such */
	struct sio_dev *dev;	 /* the device that it is about */
	struct sio_obj *obj;	 /* the object that it makes */
	bool unseen;		 /* the object gets no descriptor */
	u32 ends;		 /* kind of the object that it is to end */
	struct file *file;	 /* the descriptor's file that came with it; NULL: none */
	int fd;			 /* the caller's number of that descriptor */
	u32 len, n_files;	 /* bytes and descriptors that came */
	struct file *out[SIO_MAX_OUT];
	int out_fd[SIO_MAX_OUT];
	unsigned int n_out;
	bool unsettled;		  /* what it ended has not settled */
	u32 reason;		  /* of a refusal: SIO_OUT_OF_* */
	char text[SIO_PORT_TEXT]; /* "": no refusal yet */
	union {
		struct sio_req h;
		struct sio_req_shadow shadow; /* the longest */
	} u;
	union {
		struct sio_evt h;
		struct sio_evt_error error;
		struct sio_evt_list list;
		struct sio_evt_stats stats; /* the longest */
		u64 words[8];
	} a;
};

/*
 * @msg: the request; @answer: of the size that the table of operations says, zeroed. A refusal is
 * made by sio_fail() where it arises, for the numbers are known there.
 */
typedef int sio_handler(struct sio_request *rq, const void *msg, void *answer);

struct sio_obj {
	struct kref kref;
	u64 id;
	u32 kind, state, refs, access;
	u64 address, length; /* as LIST shows them */
	u64 ended_at;	     /* sio.epoch when its owner ended */
	struct sio_owner *owner;
	struct sio_dev *dev; /* NULL: of none */
	struct sio_obj *target;
	struct sio_obj *through;	 /* a requester entry; NULL: none */
	struct smartio_adapter *adapter; /* NULL: of none */
	/*
	 * Since when (jiffies) an access that the bridge has under way keeps it; 0: none does. It
	 * may have ended for all but that, and then has a reference (kref) to what was its target.
	 */
	u64 kept;
	bool lingers;
	struct sio_obj *backing;
	u32 node; /* of the peer */
	struct list_head of_owner, of_dev, of_adapter, falling;
	struct sio_reach *reach; /* by DMA channels; NULL: no range is of it */
	struct inode *inode;	 /* while there are files */
	unsigned int n_files;
};

struct sio_kind {
	const char *name;
	size_t size; /* of its struct */
	/* undoes what the object stands for, whether it was made completely or not */
	void (*end)(struct sio_obj *o);
	void (*leave)(struct sio_obj *o);   /* its owner has ended, and it cannot be freed yet */
	void (*free)(struct sio_obj *o);    /* the last file is closed */
	const struct file_operations *fops; /* NULL: it has no files */
	int (*mmap)(struct sio_obj *o, struct vm_area_struct *vma); /* with sio_mmap_fops */
};

struct sio_owner {
	struct sio_obj o;
	u64 user_cookie;
	u64 parent; /* the parent's id; the parent may end before */
	struct list_head objects;
};

/* A count that programs wait for. */
struct sio_count {
	wait_queue_head_t wait; /* its lock guards n */
	u64 n;
};

struct sio_irq;
struct sio_reach;
struct sio_shadow;
struct sio_aperture;
struct sio_group;

/* Pages that stay in place. */
struct sio_pages {
	u64 n;
	bool pinned;
	struct mm_struct *mm; /* the process whose limit they count against; NULL: none */
	u64 charged;	      /* against that */
	struct page *page[];
};

/* Memory: pages, or a piece of a pool, or another driver's. */
struct sio_mem {
	struct sio_obj o; /* address: of its first byte; 0: dma-buf; I/O address of an aperture */
	u32 pieces;
	bool all_ram;
	struct sio_pages *pages;
	struct file *pins; /* the file that owns the pages; NULL: the module owns them */
	u64 first;	   /* in pages */
	struct sio_pool *pool;
	struct dma_buf *dmabuf;
	bool moved;		       /* the dma-buf's driver has taken it back */
	struct sio_aperture *aperture; /* NULL: there is memory */
	bool filled;		       /* by the driver of a shadow */
	u64 charged;		       /* bytes, against memory_limit */
	u64 user_cookie;	       /* of ALLOC */
	struct sio_group *group;       /* NULL: it has to do with no multicast group */
};

/* A view: pages by which processors reach devices and peers. */
struct sio_view {
	struct sio_obj o;
	u64 phys;
	bool combined; /* its stores: write-combined */
	bool ram;
	bool revoked;
	bool ended;	   /* revoked for good */
	struct xarray own; /* pages for stores meanwhile */
};

struct sio_bar {
	struct sio_view v;
};

/* A DMA mapping: a range that a function may reach. */
struct sio_dma {
	struct device *dev;
	struct sio_dev *of;	   /* NULL: an adapter's function */
	u64 phys, address, length; /* address: as the function uses it */
	enum dma_data_direction dir;
	bool mapped;
	bool resource; /* mapped as such: it has no struct pages */
	struct sg_table sgt;
	struct dma_buf_attachment *attach;
	struct sg_table *attached; /* of a dma-buf; NULL: it is none, or not mapped */
	bool moved;		   /* the dma-buf's driver takes it back */
	bool unpinned;		   /* the dma-buf's driver may move it: nobody reaches it by this */
	bool cut;		   /* it leads nowhere, and its address stays reserved */
	bool own;		   /* it is in the domain of @of's own */
	bool chosen;		   /* in that alone: its address is the requester's choice */
};

struct sio_dmamap {
	struct sio_obj o;
	struct sio_dma dma;
	bool wanted; /* its address was asked for */
	bool held;   /* HOLD: its view's owner may end */
};

/* A place where a function is, was, or will be again. Never freed before the module. */
struct sio_dev {
	struct list_head node;
	u64 id, generation;
	u32 bdf;
	struct pci_dev *pdev; /* NULL: not there */
	bool going;	      /* no new use */
	bool silenced;	      /* until a reset: memory that it may use was taken back */
	bool open;
	struct list_head objects;
	struct iommu_domain *domain;  /* its own, which it is in; NULL: it is in the kernel's */
	struct iommu_domain *kernels; /* the DMA API's, if it has one of its own */
	unsigned int n_chosen;	      /* mappings that it has its own for, */
	u64 chosen_bytes, tables;     /* how much, and tables of that domain at most */
	struct {
		u64 first, length;
	} counted[16]; /* the ranges whose tables were counted last */
	unsigned int next_counted;
	bool had_no_snoop; /* before it got that domain */
	/* Read by page faults, written by whoever removes pages from mappings. */
	struct rw_semaphore views;
	bool resetting; /* written with sio.lock */
	wait_queue_head_t reset_over;
	u32 msix_count, msix_bar, msix_offset;
	struct sio_irq **line; /* by interrupt line; NULL: an interrupt is dropped */
	unsigned int n_lines;
};

struct sio_state {
	struct mutex lock;
	struct xarray objects;
	u64 last_id, last_device;
	struct sio_owner daemon;
	struct list_head falling, devices;
	u64 epoch;
	u64 unsettled; /* how often something was left under way */
};
extern struct sio_state sio;

/* Each kind is defined in the file that makes its objects. */
extern const struct sio_kind sio_kind_owner, sio_kind_mem, sio_kind_bar, sio_kind_dmamap,
	sio_kind_irq, sio_kind_vector, sio_kind_grant, sio_kind_map, sio_kind_requester,
	sio_kind_shadow, sio_kind_channel, sio_kind_range;

/* port.c: notes why a request is refused. Return: @error. */
__printf(3, 4) int sio_fail(struct sio_request *rq, int error, const char *fmt, ...);
/* The same, with the resource that ran out (SIO_OUT_OF_*). */
__printf(4, 5) int sio_fail_exhausted(struct sio_request *rq, int error, u32 reason,
				      const char *fmt, ...);

/* events.c */
/*
 * Queues an event for the daemon: @evt, of @size bytes, with its fields filled in. Callable in any
 * context. Return: false: the event is dropped.
 */
bool sio_event(u32 op, void *evt, u32 size);
/* A new daemon has opened the port: the queue begins empty. */
void sio_events_start(void);
ssize_t sio_events_read(char __user *to, size_t size);
__poll_t sio_events_poll(struct file *f, poll_table *wait);

/*
 * Checks that a range is whole pages, at least one, of an object that has @size bytes and is called
 * @of; else -EINVAL.
 */
int sio_check_range(struct sio_request *rq, const char *of, u64 offset, u64 length, u64 size);

/* object.c; with sio.lock */
/* A new object in the table, which belongs to rq->owner; or an error. */
void *sio_obj_new(struct sio_request *rq, u32 kind);
/* The last step of a creation: descriptors for the answer; or, with an error, undoes it. */
int sio_obj_made(struct sio_request *rq, int error);
/* Makes @o an object of @d that refers to @target (either may be NULL). */
void sio_obj_tie(struct sio_obj *o, struct sio_dev *d, struct sio_obj *target);
/* Makes @o refer to the requester entry @entry (may be NULL). */
void sio_obj_through(struct sio_obj *o, struct sio_obj *entry);
/* Drops a reference. */
void sio_obj_unref(struct sio_obj *o);
/* What a device or a peer could reach is cut: the object is freed if its owner has ended. */
void sio_obj_falls(struct sio_obj *o);
/* The object's owner has ended: it is quarantined. */
void sio_obj_quarantine(struct sio_obj *o);
/* Undoes what the object stands for and takes it out of the table. */
void sio_obj_end(struct sio_obj *o);
const char *sio_kind_name(u32 kind);
/* Finds an object; -ENOENT; -EPERM: a live one is required, and its owner has ended. */
void *sio_obj_find(struct sio_request *rq, u32 kind, u64 id, bool live);
/* Checks that the object belongs to the requesting owner, or that the daemon asks; else -EPERM. */
int sio_check_owner(struct sio_request *rq, const struct sio_obj *o);
/* Frees the objects that nothing refers to any more. */
void sio_fall(void);
/* @o belongs to the daemon from now on. */
void sio_obj_give(struct sio_obj *o);
sio_handler sio_op_end, sio_op_give, sio_op_list, sio_op_reopen;
/* A descriptor of @o for the answer, in file @fops. */
int sio_answer_file(struct sio_request *rq, struct sio_obj *o, const struct file_operations *fops,
		    int flags);
int sio_file_release(struct inode *inode, struct file *f);
int sio_mmap(struct file *f, struct vm_area_struct *vma);
extern const struct file_operations sio_mmap_fops;

/* NULL: none such. */
struct sio_owner *sio_owner_find(u64 id);
void sio_owner_end(struct sio_owner *w);
sio_handler sio_op_owner_new, sio_op_owner_close;

/* mem.c */
sio_handler sio_op_alloc;
/* @m gets @size bytes, in one piece or, where that need not be, in several; or a refusal. */
int sio_mem_make(struct sio_request *rq, struct sio_mem *m, u64 size, bool one);
u64 sio_mem_pfn(const struct sio_mem *m, u64 index);
struct sio_pages *sio_pages_new(u64 n);
void sio_pages_free(struct sio_pages *p);
/* @m is @n of @pages from @first on. */
void sio_mem_set_pages(struct sio_mem *m, struct sio_pages *pages, u64 first, u64 n);
int sio_pool_init(void);
void sio_pool_exit(void); /* also if that failed */
/* Adds @m to the memory that ALLOC takes from. */
int sio_pool_add(struct sio_mem *m);
/* -EBUSY: something of @m is in use. */
int sio_pool_remove(struct sio_request *rq, struct sio_mem *m);

/* import.c */
sio_handler sio_op_import;
/* SIO_IOC_PIN, for objects that @w owns. */
long sio_pin(struct sio_owner *w, const void __user *arg);

/* device.c */
extern struct pci_driver sio_pci_driver;
struct sio_dev *sio_dev_find(u64 id);
sio_handler sio_op_device_list, sio_op_device_open, sio_op_device_close, sio_op_reset,
	sio_op_config;

/* view.c: a view of whole pages, or of a word; @lock is what its page faults hold. */
/* @v->o.length bytes at @phys. */
int sio_view_make(struct sio_view *v, u64 phys, bool combined);
int sio_view_mmap(struct sio_view *v, struct vm_area_struct *vma,
		  const struct vm_operations_struct *ops);
/* Handles a page fault: maps the page, in place of one that is @there. */
vm_fault_t sio_view_insert(struct sio_view *v, struct vm_fault *vmf, bool there);
/* Unmaps the pages of the view; page faults map them again. */
void sio_view_zap(struct sio_view *v);
/* The view reads as ones from now on, until it is revived. */
void sio_view_revoke(struct sio_view *v, struct rw_semaphore *lock);
void sio_view_revive(struct sio_view *v, struct rw_semaphore *lock);
void sio_view_end(struct sio_view *v, struct rw_semaphore *lock);
void sio_view_free(struct sio_obj *o);

/* use.c: other modules have no access to @o any more. */
void sio_uses_lose(const struct sio_obj *o);

/* bar.c */
sio_handler sio_op_bar;
/* Is it of a prefetchable BAR, where reads do nothing? Its device is there. */
bool sio_bar_is_memory(const struct sio_obj *o);
/* From now on all of the device's views read as ones. */
void sio_bars_revoke(struct sio_dev *d);
/* A reset begins: nothing is mapped from now on, and page faults wait. */
void sio_bars_hold(struct sio_dev *d);
/* The reset is over. */
void sio_bars_resume(struct sio_dev *d);

/* domain.c: an IOMMU domain of a function's own */
/* The domain that the kernel's DMA API maps in. */
struct iommu_domain *sio_domain_of(const struct sio_dma *m);
/* Maps what @m says of @target at @address. sio_dma_unmap() must be called in either case. */
int sio_domain_map(struct sio_request *rq, struct sio_dma *m, const struct sio_obj *target,
		   u64 offset, u64 address);
/* The same, wherever something is free in the function's own domain, which it must have. */
int sio_domain_place(struct sio_request *rq, struct sio_dma *m, const struct sio_obj *target,
		     u64 offset);
/*
 * The DMA API has mapped @m, as it must a dma-buf: it is in the function's own domain as well, if
 * there is one.
 */
int sio_domain_join(struct sio_request *rq, struct sio_dma *m);
/* It leads nowhere in there, and keeps its address. */
void sio_domain_cut(struct sio_dma *m);
/* The same, for good. */
void sio_domain_leave(struct sio_dma *m);
/* The function sends nothing: it goes back to the kernel's domain, if it needs its own no more. */
void sio_domain_rest(struct sio_dev *d);

/* dma.c */
/* What the kernel's DMA domain of a function does: SIO_IOMMU_*. */
u32 sio_iommu_of(struct device *dev);
u32 sio_dev_iommu(const struct sio_dev *d);
/*
 * Maps @length bytes at @offset of @target for @dev, as one range, or refuses. sio_dma_unmap() must
 * be called in either case.
 */
int sio_dma_map(struct sio_request *rq, struct sio_dma *m, struct device *dev,
		const struct sio_obj *target, u64 offset, u64 length, u32 access);
void sio_dma_unmap(struct sio_dma *m);
/* A page of zeros for reading, where nothing is mapped; iommu_unmap() takes it away. */
int sio_map_zeros(struct iommu_domain *domain, u64 iova);
/* dmabuf.c: the same for all of a dma-buf. */
int sio_dmabuf_map(struct sio_request *rq, struct sio_dma *m, const struct sio_mem *mem);
void sio_dmabuf_unmap(struct sio_dma *m);
/* Nobody reaches it any more, though it keeps its address: its driver may move it. */
void sio_dmabuf_unpin(struct sio_dma *m);
/* For want of memory it cannot be unmapped: it is left to itself, for ever. */
void sio_dmabuf_lose(struct sio_dma *m);
void sio_dmabufs_exit(void);
sio_handler sio_op_dmamap, sio_op_dmaunmap, sio_op_hold;
/* SIO_LIST_*, of a DMA mapping. */
u32 sio_dmamap_listed(const struct sio_dmamap *m);
/* Ends the mappings whose owners had ended by @epoch. */
u64 sio_dmamaps_settle(struct sio_dev *d, u64 epoch);
/*
 * Cuts all mappings of @target: behind an IOMMU no device reaches it any more. Addresses stay
 * reserved until their devices have released them; but those of a dma-buf, which are given back.
 */
void sio_dmamaps_cut(const struct sio_obj *target);
/*
 * The same for a BAR view, which may be freed, of mappings that are not held. Return: some are.
 */
bool sio_dmamaps_leave(const struct sio_obj *target);
/* What the device, which sends no more, has sent arrives at peers; groups: SIO_IOC_SETTLE. */
void sio_dmamaps_push(struct sio_dev *d);
/* The device is gone for good: ends its mappings. */
void sio_dmamaps_lose(struct sio_dev *d);

/* count.c */
void sio_count_init(struct sio_count *c);
void sio_count_add(struct sio_count *c, u64 n);
ssize_t sio_count_read(struct sio_count *c, struct kiocb *iocb, struct iov_iter *to);
/* What a program writes to be added; or an error. */
int sio_count_get(const char __user *from, size_t size, u64 *ret);
__poll_t sio_count_poll(struct sio_count *c, struct file *f, poll_table *wait);

/* engine.c */
int sio_engine_init(void);
void sio_engine_exit(void); /* also if that failed */

/* channel.c */
sio_handler sio_op_dma, sio_op_dma_attach;
/* What LIST says of a channel, or of a range, beside what it says of all. */
void sio_channel_list(struct sio_list_entry *e, const struct sio_obj *o);
/* The three descriptors of a channel. */
int sio_channel_files(struct sio_request *rq, struct sio_obj *o);
/* No channel reaches @target any more; its ranges fall. For loops over an owner's objects. */
void sio_ranges_cut(struct sio_obj *target);
/* The same, and they have ended. */
void sio_ranges_end(struct sio_obj *target);
/* A piece that a channel copied of @target when this was called has been copied. */
void sio_ranges_settle(struct sio_obj *target);
/* The pages of the view @target, which is revoked for good and settled, are not mapped any more. */
void sio_ranges_lose(struct sio_obj *target);

/* irq.c */
sio_handler sio_op_irq_new;
void sio_irq_add(struct sio_irq *q, u64 n);
/*
 * The interrupt becomes vector @vector of @s, and is not counted any more. -EBUSY: it is a vector
 * already.
 */
int sio_irq_chain(struct sio_irq *q, struct sio_shadow *s, unsigned int vector);
/*
 * Ends that, if the interrupt is a vector of @s. The last interrupt has been delivered when
 * synchronize_rcu() has returned, too.
 */
void sio_irq_unchain(struct sio_irq *q, const struct sio_shadow *s);

/* vector.c */
sio_handler sio_op_vector;
void sio_vectors_free(struct sio_dev *d);
/* What leads to the map that vector @o goes to. */
struct sio_dma *sio_vector_way(struct sio_obj *o);
/* Cuts the vectors that lead to @map. */
void sio_vectors_cut(const struct sio_obj *map);

/* shadow.c */
sio_handler sio_op_shadow, sio_op_shadow_del, sio_op_shadow_peer;
/*
 * The ids of the shadow and of its owner. Return: the ms that its driver waits. The shadow must not
 * end meanwhile.
 */
u32 sio_shadow_name(const struct sio_shadow *s, u64 *ret_id, u64 *ret_owner);
/* Is it about to go? As above. */
bool sio_shadow_leaves(const struct sio_shadow *s);
/* REOPEN of a shadow. */
int sio_shadow_reopen(struct sio_request *rq, u64 id);
/* Does a driver of this host use the shadow? */
bool sio_shadow_in_use(const struct sio_obj *o);
void sio_shadow_interrupt(struct sio_shadow *s, unsigned int vector);
/* The path of @map is gone: loses the shadows of which it is a BAR. */
void sio_shadows_lose(const struct sio_obj *map);

/* ask.c */
sio_handler sio_op_shadow_answer;
/* A daemon has opened the port, or has closed it. */
void sio_asks_hear(bool yes);
/* A shadow is about to go. */
void sio_asks_leave(void);
/* What the driver of @s waits for is asked again. */
void sio_asks_repeat(const struct sio_shadow *s);
/* Ends the waits for an answer about @s: there will be none. From any context that may sleep. */
void sio_asks_lose(const struct sio_shadow *s);

#endif
