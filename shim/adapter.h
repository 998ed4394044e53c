/* SPDX-License-Identifier: GPL-2.0-only */
/* Adapters, and what is granted and mapped through them. */
#ifndef SHIM_ADAPTER_H
#define SHIM_ADAPTER_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "bridge.h"
#include "smartio.h"

#define SIO_MAX_ADAPTERS 16
#define SIO_FAULTS 32 /* that wait to be reported */

struct sio_fault {
	bool in, write;
	u32 node, length;
	u64 address;
	char reason[64];
};

/* A place for a bridge. Never freed before the module. */
struct smartio_adapter {
	u32 index, node;
	const struct smartio_bridge_ops *ops; /* NULL: it has gone */
	void *bridge;
	struct pci_dev *pdev;
	u64 boot, window_base;
	bool link;
	bool changed;	/* some peer, since all were asked last */
	u32 n_channels; /* of its DMA engine */
	struct list_head objects;
	struct list_head lines;
	u64 aperture_first, aperture_end; /* I/O addresses that are ours; 0: none */
	struct rw_semaphore views;	  /* faults read; who takes pages out of mappings writes */
	struct work_struct work;
	u64 unsettled; /* groups, by number: what was written there may not have arrived */
	struct delayed_work again; /* a look at what is kept */
	bool going;		   /* nobody will tell any more that an access has come */
	spinlock_t fault_lock;
	struct sio_fault fault[SIO_FAULTS];
	unsigned int n_faults;
	u64 faults, path_changes; /* that the bridge has reported; read by sio_op_stats() */
};

/* An interrupt of this host as peers send it; for all whom it was granted through one adapter. */
struct sio_line {
	struct list_head of_adapter;
	struct sio_irq *irq;
	int number;
	unsigned int users;
	u64 address;
	u32 data;
};

/* o.address: on the bus behind the adapter; o.target: NULL once the address alone is left. */
struct sio_grant {
	struct sio_obj o;
	u64 start;
	u32 peer_adapter;
	u8 token[SIO_TOKEN];
	struct sio_dma dma;    /* memory and views */
	struct sio_line *line; /* an interrupt */
	u64 handle;
	bool let;      /* the bridge lets the peer through by @handle */
	bool cut;      /* nobody reaches it */
	bool unmapped; /* by us, and not by the kernel's DMA API, whose address it keeps */
};

/* o.address: as this host's devices address it. */
struct sio_map {
	struct sio_view v;
	u32 peer_adapter;
	u64 start;
	u64 bus_addr; /* the peer's */
	u64 grant;    /* the peer's */
	struct smartio_bridge_map where;
	bool held; /* @where is ours */
	bool bar;  /* SIO_MAP_BAR */
	bool dead; /* of another start of the peer, or the bridge has gone */
	bool trigger;
	u32 data;	    /* the message */
	bool word_ram;	    /* how @word was mapped */
	void __iomem *word; /* where it is sent; of memory: the first word of it */
};

struct sio_requester {
	struct sio_obj o; /* address: bus << 8 | device << 3 | function */
	u32 entry;
	bool held; /* the entry */
};

/* adapter.c */
/* Or NULL, and a refusal. */
struct smartio_adapter *sio_adapter_find(struct sio_request *rq, u32 index);
/* @o is of @a. */
void sio_obj_of_adapter(struct sio_obj *o, struct smartio_adapter *a, u32 node);
/* As INFO tells them: how many adapters; what counts this host's starts (0: nothing does). */
u32 sio_adapters_count(void);
u64 sio_adapters_boot(void);
/* NULL: there is none. */
struct smartio_adapter *sio_adapter_at(u32 index);
void sio_adapters_free(void);
/* Tell the daemon of all adapters' own links. */
void sio_adapters_report(void);
sio_handler sio_op_adapter, sio_op_stats;

/* link.c */
int sio_links_init(void);
void sio_links_free(void);
/* With sio.lock: see what has changed, and act. */
void sio_links_look(struct smartio_adapter *a);
/* The bridge goes: all is down. */
void sio_links_lose(struct smartio_adapter *a);
/* The way to a peer. 0; -EHOSTUNREACH and a refusal. */
int sio_link_find(struct sio_request *rq, struct smartio_adapter *a, u32 node, u32 adapter,
		  struct smartio_bridge_peer *ret);
/*
 * What of links was not reported to the daemon, or it forgot, is reported again. From any context.
 */
void sio_links_report_again(bool all);
void sio_link_report(const struct smartio_adapter *a);
sio_handler sio_op_status;

/* grant.c */
sio_handler sio_op_grant, sio_op_ungrant;
/* Nobody reaches it any more; it stays until it is ended, or longer (sio_keep()). */
void sio_grant_cut(struct sio_grant *g);
/* Those of @target. */
void sio_grants_cut(const struct sio_obj *target);

/* map.c */
sio_handler sio_op_map, sio_op_unmap;
void sio_map_down(struct sio_map *m);
/* The peer is there again, in the start @start. */
void sio_map_up(struct sio_map *m, u64 start);
/* The bridge goes. */
void sio_map_lose(struct sio_map *m);
/* What a device sent through it has arrived, or never will. */
void sio_map_push(struct sio_obj *o);

/* requester.c */
sio_handler sio_op_requester_add;
void sio_requester_cut(struct sio_requester *r);
/*
 * What lets @d send through @a; NULL: the bridge asks nobody. 0; or -EOPNOTSUPP, -ENOENT and a
 * refusal.
 */
int sio_requester_need(struct sio_request *rq, struct smartio_adapter *a, struct sio_dev *d,
		       u32 access, struct sio_obj **ret);

/* group.c */
sio_handler sio_op_mcast;
/* Is @o the way to write to a group, and no memory? */
bool sio_group_sends(const struct sio_obj *o);
/*
 * @o has to do with a group: may a device or a DMA channel @access it? 0; -EINVAL, -ENETDOWN and a
 * refusal.
 */
int sio_group_check(struct sio_request *rq, const struct sio_obj *o, u32 access);
/* It has memory of its own, which is as any. */
bool sio_group_has_memory(const struct sio_obj *o);
/* What LIST has of it, which has to do with a group, besides its adapter. */
u32 sio_group_listed(const struct sio_obj *o);
/* Members in the BAR view @target are reached no more; they stay. */
void sio_groups_cut(const struct sio_obj *target);
/* Is it a member, which peers write to (@in), or the way of who sends? *ret: its bus address. */
bool sio_group_is_reached(const struct sio_obj *o, bool in, u64 *ret);
/* What devices sent by it may not have arrived: SIO_IOC_SETTLE waits for it. */
void sio_group_settle(const struct sio_obj *o);
/* The bridge goes. */
void sio_group_lose(struct sio_obj *o);
/* Hooks of every memory object: its owner has ended; it ends. */
void sio_group_leave(struct sio_obj *o);
void sio_group_end(struct sio_obj *o);

/* settle.c; with sio.lock: */
/* What was written to the group may not have arrived. */
void sio_settle_group(struct smartio_adapter *a, u32 group);
/* An access to the grant or member @o may still come: it cannot be taken back yet. */
void sio_keep(struct sio_obj *o);
/* It has been taken back. */
void sio_keep_over(struct sio_obj *o);
void sio_settle_again(struct work_struct *work);
/* Without: SIO_IOC_SETTLE. 0; -EINTR: the caller dies. */
int sio_settle(void);

/* aperture.c */
/* Which addresses are ours: when a bridge comes, before anything is mapped for its function. */
void sio_apertures_init(struct smartio_adapter *a, u32 dma_bits);
struct iommu_domain *sio_aperture_domain(const struct sio_mem *m);
/* If @m is one. */
void sio_aperture_free(struct sio_mem *m);
sio_handler sio_op_aperture;

/* irq.c */
/* The line by which @irq is sent through @a; or an error. */
struct sio_line *sio_line_get(struct smartio_adapter *a, struct sio_irq *irq);
void sio_line_put(struct smartio_adapter *a, struct sio_line *l);

#endif
