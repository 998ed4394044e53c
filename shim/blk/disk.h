/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smartio_blk.ko: block devices that are queue pairs of a shared NVMe drive. A program owns the
 * queue pair and everything that it consists of; this module does the I/O alone.
 *
 * Locks: disks_lock (the list of disks); a disk's lock, which guards its queues, is innermost, and
 * is taken in interrupts.
 */
#ifndef SHIM_BLK_DISK_H
#define SHIM_BLK_DISK_H

#include <linux/blk-mq.h>
#include <linux/nvme.h>
#include <linux/wait.h>

#include <smartio/disk.h>

#include "../use.h"

/* A queue pair goes from one to the next, and never back. */
enum disk_state {
	DISK_NEW, /* no I/O yet */
	DISK_LIVE,
	DISK_DEAD, /* no entry, and no doorbell, is written any more; all I/O fails */
};

struct disk_queue {
	spinlock_t lock;
	enum disk_state state;
	const char *why; /* it is dead */
	struct smartio_use *sq, *cq, *sq_doorbell, *cq_doorbell;
	u32 tail, rung, head;
	u16 phase;		 /* of the next completion */
	struct request **flying; /* by command id, which is the request's tag */
};

struct disk {
	struct sio_disk_attach is;
	pid_t holder;
	struct disk_queue queue;
	struct smartio_use *memory;
	struct smartio_listener *listener;
	struct blk_mq_tag_set set;
	struct gendisk *gendisk;
	wait_queue_head_t ended; /* for whoever has it: the queue is dead, or it is wanted back */
	bool wanted_back;
	struct list_head node;
};

/* Of a request: what became of it. */
struct disk_command {
	blk_status_t status;
};

/* Where a command's data passes through, and the list of its pages. */
static inline void *disk_slot(const struct disk *d, u32 tag)
{
	return d->memory->ram + (u64)tag * d->is.slot;
}

static inline u64 disk_slot_address(const struct disk *d, u32 tag)
{
	return d->is.memory_address + (u64)tag * d->is.slot;
}

static inline u64 disk_list_offset(const struct disk *d, u32 tag)
{
	return (u64)d->is.depth * d->is.slot + (u64)tag * SIO_DISK_LIST(d->is.slot);
}

/* queue.c */
/* Find what @d->is names. disk_queue_end() is to be called in any case. */
int disk_queue_begin(struct disk *d);
void disk_queue_end(struct disk *d);
/* I/O may come. -ENODEV: it is dead already. */
int disk_queue_start(struct disk *d);
/*
 * The command of @rq is the drive's from now on; it hears of it with the next ring. False: the
 * queue is dead, nothing was done.
 */
bool disk_queue_put(struct disk *d, struct request *rq, const struct nvme_command *c, bool ring);
void disk_queue_ring(struct disk *d);
/* Take what has been completed; whether @rq is no longer in flight. */
bool disk_queue_look(struct disk *d, const struct request *rq);
/* End it: all that is in flight fails with @status. In any context. */
void disk_queue_kill(struct disk *d, const char *why, blk_status_t status);

/* disk.c */
/* It is in /dev. On failure nothing is left of it. */
int disk_add(struct disk *d);
void disk_del(struct disk *d);
bool disk_is_open(const struct disk *d);

#endif
