/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smartio.ko: what its files share.
 *
 * Who refers to whom (an arrow counts in refs of its target, which cannot go before it):
 *
 *   dmamap -> mem | bar of another device;  vector -> irq;  dmamap, bar, vector -> open device
 *
 * An object is in the table from its making until FREE and the like, or until its owner has ended
 * and nothing refers to it; a DMA mapping of an ended owner until SETTLE, RESET or the device's
 * end. Its struct, and what backs it, live as long as a file of it (kref).
 *
 * Locks, outer first: a device's lock (the driver core's), sio.lock (all tables), mmap_lock,
 * sio_dev.views, pool lock; the spinlocks are innermost. Page faults take views only, so whoever
 * holds sio.lock may touch a process's memory map, but copies nothing from or to it.
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
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <smartio/uapi.h>

#define SIO_FIRST_ID 0x100000ULL /* above every device id, so that one number names one thing */
#define SIO_BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)
#define SIO_LATER 1 /* a handler's answer comes by sio_finish() */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

struct sio_owner;

/* Something that the daemon reads. */
struct sio_event {
	struct list_head node;
	bool answer;
	unsigned int n_files;
	struct file *file[SIO_PORT_MAX_FDS];
	u32 room; /* bytes behind data */
	union {
		struct sio_evt h;
		struct sio_evt_error error;
		u64 words[0];
	} u;
};

struct sio_request {
	struct list_head node; /* behind a device's reset */
	u64 session;
	struct sio_event *answer; /* NULL: sent */
	struct sio_owner *owner;  /* of h.owner; NULL: none such */
	struct sio_mem *mem;	  /* made by prepare */
	struct file *file;	  /* that came along; NULL: none */
	int fd;			  /* the caller's number of it */
	unsigned int n_files;	  /* that came along */
	u32 len;
	int error; /* of sio_fail() */
	char text[SIO_PORT_TEXT];
	union {
		struct sio_req h;
		u64 words[0];
	} u;
};

struct sio_obj {
	struct kref kref;
	u64 id;
	u32 kind, state, refs;
	bool gone; /* no longer in the table */
	struct sio_owner *owner;
	struct list_head of_owner, falling;
	struct inode *inode; /* while there are files */
	unsigned int n_files;
};

struct sio_owner {
	struct sio_obj o;
	struct list_head objects;
	u64 n_objects, user_cookie;
	u32 pid;
	bool ended;
	u64 parent; /* its id: a child in quarantine may be there longer than its parent */
	struct list_head children, sibling;
	struct list_head ended_node;
	struct sio_event *gone, *end; /* made before, so that they can always be sent */
	wait_queue_head_t wait;
};

/* Pages that stay in place. */
struct sio_pages {
	struct kref kref;
	struct page **page;
	u64 n;
	bool pinned;
	struct mm_struct *mm; /* whose limit they count against; NULL: nobody's */
};

struct sio_pool;

/* Memory: pages, or a piece of a pool, or another driver's. */
struct sio_mem {
	struct sio_obj o;
	u64 size; /* bytes */
	u64 phys; /* of its first byte; 0: dma-buf */
	u32 access, pieces;
	struct sio_pages *pages;
	u64 first; /* in pages */
	struct sio_pool *pool;
	bool makes_pool; /* IMPORT with SIO_IMPORT_POOL */
	struct dma_buf *dmabuf;
	u64 charged; /* bytes, against memory_limit */
};

struct sio_irq {
	struct sio_obj o;
	wait_queue_head_t wait; /* its lock guards count */
	u64 count;
};

struct sio_vector {
	struct sio_obj o;
	struct sio_irq *irq;
	struct sio_dev *dev;
	unsigned int number;
	int line;
	bool mask, cut;
};

struct sio_opened {
	struct sio_obj o;
	struct sio_dev *dev;
	bool stale; /* the device it was for has gone */
};

struct sio_bar {
	struct sio_obj o;
	struct list_head of_dev;
	struct sio_dev *dev;
	u64 phys, length;
	u32 access, caching;
	bool revoked;	   /* guarded by dev->views */
	struct xarray own; /* pages for stores after that */
};

struct sio_dmamap {
	struct sio_obj o;
	struct list_head of_dev;
	struct sio_dev *dev;
	struct sio_obj *target;
	u64 offset, length, iova;
	u64 ended_at; /* sio.epoch when its owner ended */
	enum dma_data_direction dir;
	bool mapped;
	bool single; /* by dma_map_page or dma_map_resource */
	bool resource;
	struct sg_table sgt;
	struct dma_buf_attachment *attach;
	struct sg_table *attached;
};

/* A place where a function is, was, or will be again. Never freed before the module. */
struct sio_dev {
	struct list_head node;
	u64 id, generation;
	u32 bdf;
	struct pci_dev *pdev; /* NULL: not there */
	bool going;	      /* no new use */
	struct sio_opened *opened;
	struct list_head bars, dmamaps;
	struct rw_semaphore views; /* guards resetting and bars' revoked against faults */
	bool resetting;
	wait_queue_head_t wait;
	struct work_struct reset_work;
	struct sio_request *reset; /* under way */
	struct list_head behind;   /* requests that wait for it */
	struct sio_vector **vector;
	unsigned int n_vectors;
	u32 msix_count, msix_bar, msix_offset;
	atomic64_t interrupts, faults;
	struct work_struct fault_work;
	spinlock_t fault_lock;
	struct {
		u64 address;
		bool write;
	} fault[8];
	unsigned int n_faults;
};

struct sio_state {
	struct mutex lock;
	struct xarray objects;
	u64 last_id, last_device;
	struct sio_owner daemon;
	struct list_head falling, ended, devices;
	u64 epoch;
	struct sio_evt_settle freed; /* tally of what fell since it was set to 0 */
	u64 boot_generation;
	u8 boot_id[16];
	u64 requests, refused, events_lost;
	u64 n_of_kind[SIO_KIND_VECTOR + 1];
	struct workqueue_struct *work;
};
extern struct sio_state sio;

/* main.c: what the daemon reads */
struct sio_event *sio_event_new(u32 room);
void sio_event_free(struct sio_event *e);
/* Takes @e. Of what nobody asked for: @size bytes, header but op and owner zero. */
void sio_send_answer(struct sio_event *e, u64 session);
void sio_send_news(struct sio_event *e, u32 op, u32 size);

/* request.c */
int sio_fail(struct sio_request *rq, int error, const char *fmt, ...) __printf(3, 4);
/* The place for a successful answer of @size bytes, zeroed. */
void *sio_answer(struct sio_request *rq, u32 size);
/* Whole pages of what has @size bytes, or -EINVAL. */
int sio_check_range(struct sio_request *rq, const char *of, u64 offset, u64 length, u64 size);
/* Descriptor for the answer; takes @f (IS_ERR: returns its error). */
int sio_answer_file(struct sio_request *rq, struct file *f);
/* Send it now, before what the handler does next. */
void sio_answer_send(struct sio_request *rq);
/* Takes @rq. */
void sio_request(struct sio_request *rq);
/* End of a request that answered SIO_LATER, and what follows from it. With sio.lock; takes @rq. */
void sio_finish(struct sio_request *rq, int rc);
void sio_run(struct sio_request *rq);
u64 sio_served(void);
u32 sio_answer_room(u32 op);

typedef int sio_handler(struct sio_request *rq, const void *msg);

/* object.c; all with sio.lock but sio_obj_get/put */
const char *sio_kind_name(u32 kind);
int sio_obj_init(struct sio_request *rq, struct sio_obj *o, u32 kind, u64 id);
void *sio_obj_new(struct sio_request *rq, u32 kind, size_t size);
void sio_obj_get(struct sio_obj *o);
void sio_obj_put(struct sio_obj *o);
void sio_obj_ref(struct sio_obj *o);
void sio_obj_unref(struct sio_obj *o);
/* Undo what it stands for and take it out of the table. */
void sio_obj_end(struct sio_obj *o);
/* The second half of that: before it stood for anything. */
void sio_obj_drop(struct sio_obj *o);
void sio_obj_quarantine(struct sio_obj *o);
/* NULL: rq->error and a text, here and in sio_obj_new(). */
void *sio_obj_find_any(struct sio_request *rq, u32 kind, u64 id);
/* The same; -EPERM if its owner has ended. */
void *sio_obj_find_live(struct sio_request *rq, u32 kind, u64 id);
sio_handler sio_op_end;
void sio_fall(void);

/* owner.c */
void sio_owner_init(struct sio_owner *w);
struct sio_owner *sio_owner_find(u64 id);
void sio_owner_end(struct sio_owner *w);
void sio_owners_bury(void);
void sio_owner_free(struct sio_owner *w);
sio_handler sio_op_owner_new, sio_op_owner_close, sio_op_settle;
extern const struct file_operations sio_owner_fops;

/* file.c */
/* With sio.lock. A file of @o; its release must be sio_file_release(). */
struct file *sio_file_new(struct sio_obj *o, const char *name, const struct file_operations *fops,
			  int flags, u64 size);
int sio_file_release(struct inode *inode, struct file *f);
/* NULL: not ours. Valid while @f is held. */
struct sio_obj *sio_file_obj(struct file *f);
sio_handler sio_op_identify, sio_op_reopen;

/* mem.c */
int sio_prepare_alloc(struct sio_request *rq, const void *msg);
sio_handler sio_op_alloc;
struct file *sio_mem_file(struct sio_mem *m);
u64 sio_mem_pfn(const struct sio_mem *m, u64 index);
struct sio_pages *sio_pages_new(u64 n);
void sio_pages_put(struct sio_pages *p);
/* Not in the table yet; mem of @pages, which it takes, from @first on. */
struct sio_mem *sio_mem_of_pages(struct sio_pages *pages, u64 first, u64 n);
void sio_mem_free(struct sio_mem *m);
u64 sio_mem_limit(void);
u64 sio_mem_used(void);
extern const struct file_operations sio_mem_fops;

/* pool.c */
int sio_pool_init(void);
void sio_pool_exit(void);
int sio_pool_add_pages(struct sio_mem *m);
/* -EBUSY: something of @m is in use. */
int sio_pool_remove_pages(struct sio_mem *m);
struct sio_pool *sio_pool_alloc(u64 size, u64 align, u64 highest, u64 *ret_phys);
void sio_pool_free(struct sio_pool *pool, u64 phys, u64 size);
void sio_pool_sizes(u64 *ret_total, u64 *ret_free);

/* import.c */
int sio_prepare_import(struct sio_request *rq, const void *msg);
sio_handler sio_op_import;
long sio_pin(struct sio_owner *w, const struct sio_ioc_pin *pin);
int sio_dmabuf_map(struct sio_request *rq, struct sio_dmamap *map, struct sio_mem *m);
void sio_dmabuf_unmap(struct sio_dmamap *map);
int sio_dmabuf_mmap(struct sio_mem *m, struct vm_area_struct *vma);
void sio_dmabuf_put(struct sio_mem *m);

/* device.c */
extern struct pci_driver sio_pci_driver;
struct sio_dev *sio_dev_find(u64 id);
/* -ENODEV: not there; -EPERM: not open. */
int sio_dev_get(struct sio_request *rq, u64 id, struct sio_dev **ret);
u32 sio_dev_iommu(struct sio_dev *d);
void sio_devices_free(void);
void sio_opened_end(struct sio_opened *o);
sio_handler sio_op_device_list, sio_op_device_open;

/* reset.c */
void sio_reset_work(struct work_struct *work);
sio_handler sio_op_reset;

/* bar.c */
sio_handler sio_op_bar;
struct file *sio_bar_file(struct sio_bar *b);
void sio_bar_end(struct sio_bar *b);
void sio_bar_free(struct sio_bar *b);
/* From now on all of the device's views read as ones. */
void sio_bars_revoke(struct sio_dev *d);
/* Faults wait from now on; nothing is mapped. */
void sio_bars_hold(struct sio_dev *d);
void sio_bars_let(struct sio_dev *d);
int sio_ones_init(void);
void sio_ones_exit(void);
extern const struct file_operations sio_bar_fops;

/* dma.c */
sio_handler sio_op_dmamap;
void sio_dmamap_end(struct sio_dmamap *m);
/* Quarantined before @epoch; of @owner, 0: of all. */
u64 sio_dmamaps_settle(struct sio_dev *d, u64 owner, u64 epoch);
/* The device is gone for good. */
void sio_dmamaps_lose(struct sio_dev *d);

/* irq.c */
sio_handler sio_op_irq_new, sio_op_vector;
int sio_irq_files(struct sio_request *rq, struct sio_irq *q);
void sio_vector_end(struct sio_vector *v);
void sio_vectors_free(struct sio_dev *d);
extern const struct file_operations sio_irq_fops;

/* config.c, info.c */
sio_handler sio_op_config;
sio_handler sio_op_info, sio_op_adapter, sio_op_list, sio_op_status, sio_op_stats;
int sio_status_init(void);
void sio_status_exit(void);

#endif
