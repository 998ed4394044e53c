/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smartio_blk.ko: block devices that are queue pairs of a shared NVMe drive. A program owns the
 * queue pairs and everything that they consist of; this module does the I/O alone.
 *
 * Locks: disks_lock (the list of disks, and changes of a disk's pairs); the lock of each queue is
 * innermost, and is taken in interrupts; nobody has two of them.
 */
#ifndef SHIM_BLK_DISK_H
#define SHIM_BLK_DISK_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/nvme.h>
#include <linux/wait.h>

#include <smartio/disk.h>

#include "../use.h"

/* NEW, LIVE, and then between LIVE and AWAY as often as it happens; never out of DEAD. */
enum disk_state {
	DISK_NEW, /* no I/O yet */
	DISK_LIVE,
	DISK_AWAY, /* the pair is gone: no doorbell is written, and requests wait for another one */
	DISK_DEAD, /* no doorbell is written any more; all I/O fails */
};

/* A queue pair of the drive. */
struct disk_pair {
	struct disk_queue *queue; /* that it is, or was, or may become the pair of */
	u32 id;
	struct smartio_use *sq, *cq, *sq_doorbell, *cq_doorbell;
	struct smartio_listener *listener; /* NULL: the drive does not interrupt */
	struct hrtimer timer;		   /* without it: the next look at completions */
	bool looks;			   /* the timer runs, or is about to */
	bool lost;			   /* some of it was taken away */
	u32 tail, rung, head;
	u16 phase; /* of the next completion */
};

/* A hardware queue, which has one pair after the other. */
struct disk_queue {
	spinlock_t lock;
	enum disk_state state;
	bool survives; /* a pair that is gone does not end the disk */
	struct disk *disk;
	struct disk_pair *pair;
	struct smartio_use *memory;
	u64 memory_at, memory_address; /* as the program, and the drive, have it */
	struct request **flying;       /* by command id, which is the request's tag */
	u32 in_flight;
	u32 sent, announced; /* commands put into the pair's queue, and of them those rung for */
};

struct disk {
	struct sio_disk_attach is;
	int number; /* negative: none yet */
	pid_t holder;
	const char *why;	  /* it is dead; NULL: it is not */
	struct disk_queue *queue; /* @is.n_pairs */
	struct blk_mq_tag_set set;
	struct gendisk *gendisk;
	wait_queue_head_t events; /* for whoever has it: what poll tells has changed */
	bool wanted_back;
	struct list_head node;
};

/* Of a request. */
struct disk_command {
	blk_status_t status;
	u32 number;	       /* by which it was sent to its pair */
	unsigned long sent_at; /* in jiffies */
};

static inline struct disk_command *disk_command_of(struct request *rq)
{
	return blk_mq_rq_to_pdu(rq);
}

/* Where a command's data passes through, and the list of its pages. */
static inline void *disk_slot(const struct disk_queue *q, u32 tag)
{
	return q->memory->ram + (u64)tag * q->disk->is.slot;
}

static inline u64 disk_slot_address(const struct disk_queue *q, u32 tag)
{
	return q->memory_address + (u64)tag * q->disk->is.slot;
}

static inline u64 disk_list_offset(const struct disk_queue *q, u32 tag)
{
	const struct sio_disk_attach *is = &q->disk->is;

	return (u64)is->depth * is->slot + (u64)tag * SIO_DISK_LIST(is->slot);
}

/* command.c */
/* The command of @rq, whose data are in its slot. False: the drive has no such command. */
bool disk_command_make(const struct disk_queue *q, struct nvme_command *c, struct request *rq);
/* The lists of the slots' pages, once. */
void disk_make_lists(const struct disk_queue *q);

/* queue.c */
/*
 * The command of @rq is the drive's from now on; it hears of it with the next ring. BLK_STS_IOERR:
 * the disk is dead; BLK_STS_RESOURCE: the queue waits for a pair, and @hctx is stopped until then.
 */
blk_status_t disk_queue_put(struct blk_mq_hw_ctx *hctx, struct request *rq,
			    const struct nvme_command *c, bool ring);
void disk_queue_ring(struct disk_queue *q);
/* Take what has been completed. */
void disk_queue_look(struct disk_queue *q);
/* That, and whether @rq has been in flight for too long. */
bool disk_queue_overdue(struct disk_queue *q, struct request *rq);
/* The pair of @q is gone: what is not completed waits for another one. With the lock. */
void disk_queue_leave(struct disk_queue *q);
/* The timer of a pair that does not interrupt. */
enum hrtimer_restart disk_pair_look(struct hrtimer *timer);
/* @q has @pair instead of the one before, which the drive has deleted. With the lock. */
void disk_queue_renew(struct disk_queue *q, struct disk_pair *pair);
/* End the disk: all that is in flight fails with @status. In any context. */
void disk_kill(struct disk *d, const char *why, blk_status_t status);
/* Of all its queues. */
enum disk_state disk_state_of(const struct disk *d);

/* pair.c */
/* Find what @pairs name. disk_queues_end() is to be called in any case. */
int disk_queues_begin(struct disk *d, const struct sio_disk_pair *pairs);
void disk_queues_end(struct disk *d);
/* I/O may come. -ENODEV: a pair is lost already. */
int disk_queues_start(struct disk *d);
/* None of the pairs is used any more. */
void disk_queues_leave(struct disk *d);
/* Other pairs for all queues, with disks_lock. -ENODEV: some are lost already. */
int disk_queues_renew(struct disk *d, const struct sio_disk_pair *pairs);
/* From now on the loss of a pair ends the disk; if one is gone already, that has ended now. */
void disk_queues_last(struct disk *d);

/* disk.c */
/* It is in /dev. disk_free() is to be called in any case. */
int disk_add(struct disk *d);
/* It is not any more. */
void disk_del(struct disk *d);
/* After the end of its queues, for what ends them looks at it. */
void disk_free(struct disk *d);
bool disk_is_open(const struct disk *d);

#endif
