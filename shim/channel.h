/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA channels: a program's ring, and the ranges that it may name in it. A processor of this host
 * copies, for the bridges that we know have no engine that a peer's programs could be kept apart
 * on.
 *
 * channel.lock (inside sio.lock; nothing is taken inside it) is held for each piece that is copied.
 * So who takes a slot away under it, or has the lock after a view was revoked, knows that nothing
 * of it is copied any more.
 */
#ifndef SHIM_CHANNEL_H
#define SHIM_CHANNEL_H

#include <linux/workqueue.h>

#include "adapter.h"

#define SIO_CHANNELS 256 /* of one adapter */

/* How this processor reaches an object that ranges are of: once for all of them. */
struct sio_reach {
	struct list_head ranges;
	void *ram;	  /* NULL: by its pages, or by @io */
	void __iomem *io; /* NULL: it is memory of this host */
};

struct sio_range {
	struct sio_obj o; /* length: of the range */
	struct sio_channel *channel;
	struct sio_obj *of; /* NULL: it has ended, and the slot is free */
	struct list_head of_target;
	u64 offset; /* in @of */
	u32 slot;
};

struct sio_channel {
	struct sio_obj o; /* length: of the ring */
	struct smartio_adapter *adapter;
	struct sio_dma_ring *ring; /* the program's, too: nothing in it is believed */
	struct sio_count finished;
	struct delayed_work work;
	bool ended;
	u64 settled; /* by which sio_ranges_settle() last */
	struct mutex lock;
	struct sio_range *slot[SIO_DMA_SLOTS];
	/* The engine's. */
	u32 head, done;
	struct sio_dma_entry entry; /* a copy of the one at head, while @busy */
	u64 copied;		    /* of it */
	bool busy;
	bool broken;			/* its ring has made no sense: it is left alone */
	int error;			/* of the transfer so far */
	const struct sio_range *pushed; /* where it wrote last, beyond this host's memory */
	u32 missed;			/* by members of the group that is @pushed, before that */
	u64 push_until;			/* as long it is waited for; 0: it was not asked for yet */
	u8 bounce[SZ_1K];
};

/* group.c: who sends to a multicast group. */
/* The same for ranges: there was an address for it. */
bool sio_group_map(struct sio_reach *r, const struct sio_mem *m);
/* Does the way lead somewhere? It ends as views are revoked. */
bool sio_group_is_there(const struct sio_obj *o);
/* How many writes of this host to it some member has not got. */
u32 sio_group_missed(const struct sio_obj *o);
/* The same, of all that was written; -EAGAIN: it is not known of some yet; or -errno. */
int sio_group_push(const struct sio_obj *o, u32 *ret_missed);

/* engine.c */
/* Its turn comes, behind those that wait already. */
void sio_channel_wake(struct sio_channel *c);
/* Works through the ring until it is empty, or others have their turn. */
void sio_channel_work(struct work_struct *work);

#endif
