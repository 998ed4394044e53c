/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smartio_ntb.ko: what its files share. client.c is the client of the Linux NTB API: it finds
 * NTBs, and looks who is at their other ends. bridge.c is the bridge of smartio.ko that each is.
 * place.c knows where memory must lie to be reached through the first window.
 */
#ifndef SHIM_NTB_CLIENT_H
#define SHIM_NTB_CLIENT_H

#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/ntb.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../bridge.h"
#include "windows.h"

struct ntb_bridge_peer {
	int pidx;
	u32 port;
	/* With the link as it is our windows lead where @ws says; or they cannot. */
	bool armed, refused;
	bool known, up;
	u32 row; /* the how manieth it was to be known */
	u32 node, adapter, changes;
	u64 boot;
	struct sio_ntb_windows ws; /* of this host's memory */
	/* Through which this host reaches the peer's. */
	u32 n_out;
	struct {
		phys_addr_t base;
		u64 size;
	} out[SIO_NTB_WINDOWS];
	void __iomem *header;
	struct sio_ntb_header seen;
};

struct ntb_bridge {
	struct ntb_dev *ntb;
	struct smartio_adapter *a;
	struct mutex lock; /* peers, the header */
	u32 index;
	u64 boot;
	u64 size; /* of what the first window leads to */
	u64 base;
	/* place.c */
	bool iommu;
	u64 old_mask;
	struct sio_ntb_header *header;
	u32 *bells;
	dma_addr_t bells_bus;
	/* Who is notified of which doorbell. */
	spinlock_t bell_lock;
	struct {
		void (*rung)(void *arg);
		void *arg;
	} bell[SIO_NTB_BELLS];
	u64 doorbell;
	u32 n_peers, n_known;
	struct ntb_bridge_peer *peer;
	struct delayed_work work;
	unsigned int wait_ms; /* until those that are silent are looked at again */
};

/* client.c */
extern unsigned int ntb_bridge_node;
extern bool ntb_bridge_device_reads;
/* With the lock: what the peer says of itself now. Return: whether it is something good. */
bool ntb_bridge_read_header(struct ntb_bridge_peer *p);
/* With the lock, while the link is up: window @w to @p leads where @p->ws says. */
int ntb_bridge_set_window(struct ntb_bridge *b, struct ntb_bridge_peer *p, u32 w);
/* With the lock: the header says where the windows to @p lead. */
void ntb_bridge_write_row(struct ntb_bridge *b, const struct ntb_bridge_peer *p);

/*
 * place.c: make room for at most @b->size bytes (and @memory without an IOMMU) that peers reach
 * through the first window, at @b->base: the header, the bells, and what is granted. Return: 0, or
 * an error and a line in the log.
 */
int ntb_bridge_place(struct ntb_bridge *b, u64 memory);
void ntb_bridge_unplace(struct ntb_bridge *b);

/* bridge.c */
extern const struct smartio_bridge_ops ntb_bridge_ops;
/* A doorbell was rung: tell whose bells it was for. */
void ntb_bridge_rung(struct ntb_bridge *b);

#endif
