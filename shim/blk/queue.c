// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues. A pair may end because the drive was reset, or the path to it is gone: then its queue
 * waits for another one, if the disk survives that. Else, and when a command did not complete, or
 * the drive completed one that was not sent, the disk is dead. In both cases no doorbell is written
 * from then on, under the lock; each command in flight is ended once, by whoever takes it out of
 * @flying. Source: NVM Express Base Specification 1.4, sections 4.1 and 4.6.
 */
#include <linux/io.h>
#include <linux/jiffies.h>

#include "disk.h"

#define ENTRY sizeof(struct nvme_command)
#define LOOK_NS 100000 /* between two looks at a pair that does not interrupt */

/* ---- ends of commands ---- */

static blk_status_t status_of(u16 status)
{
	switch (status & 0x7ff) {
	case NVME_SC_SUCCESS:
		return BLK_STS_OK;
	case NVME_SC_CAP_EXCEEDED:
		return BLK_STS_NOSPC;
	case NVME_SC_LBA_RANGE:
	case NVME_SC_NS_NOT_READY:
		return BLK_STS_TARGET;
	case NVME_SC_INVALID_OPCODE:
	case NVME_SC_INVALID_FIELD:
	case NVME_SC_INVALID_NS:
		return BLK_STS_NOTSUPP;
	case NVME_SC_WRITE_FAULT:
	case NVME_SC_READ_ERROR:
	case NVME_SC_UNWRITTEN_BLOCK:
	case NVME_SC_ACCESS_DENIED:
	case NVME_SC_READ_ONLY:
		return BLK_STS_MEDIUM;
	case NVME_SC_GUARD_CHECK:
	case NVME_SC_APPTAG_CHECK:
	case NVME_SC_REFTAG_CHECK:
		return BLK_STS_PROTECTION;
	default:
		return BLK_STS_IOERR;
	}
}

/* With the lock. */
static void finish(struct disk_queue *q, u32 tag, blk_status_t status)
{
	struct request *rq = q->flying[tag];

	q->flying[tag] = NULL;
	q->in_flight--;
	disk_command_of(rq)->status = status;
	blk_mq_complete_request(rq);
}

static void kill(struct disk_queue *q, blk_status_t status)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	q->state = DISK_DEAD;
	for (u32 tag = 0; q->flying && tag < q->disk->is.depth; tag++)
		if (q->flying[tag])
			finish(q, tag, status);
	spin_unlock_irqrestore(&q->lock, flags);
}

void disk_kill(struct disk *d, const char *why, blk_status_t status)
{
	cmpxchg(&d->why, NULL, why);
	for (u32 i = 0; i < d->is.n_pairs; i++)
		kill(&d->queue[i], status);
	/* What waits for a pair fails, too. */
	if (d->gendisk)
		blk_mq_start_stopped_hw_queues(d->gendisk->queue, true);
	wake_up_all(&d->events);
}

enum disk_state disk_state_of(const struct disk *d)
{
	if (READ_ONCE(d->why))
		return DISK_DEAD;
	for (u32 i = 0; i < d->is.n_pairs; i++)
		if (READ_ONCE(d->queue[i].state) != DISK_LIVE)
			return READ_ONCE(d->queue[i].state);
	return DISK_LIVE;
}

/* ---- stores and loads ---- */

static void ring(const struct smartio_use *doorbell, u32 value)
{
	if (doorbell->io)
		writel(value, doorbell->io);
	else
		WRITE_ONCE(*(__le32 *)doorbell->ram, cpu_to_le32(value));
}

static void ring_sq(struct disk_queue *q)
{
	struct disk_pair *p = q->pair;

	if (p->rung == p->tail)
		return;
	/*
	 * Entries may be write-combined: they, and the data, arrive before the doorbell. Pairs with
	 * the drive's order: it fetches behind the doorbell.
	 */
	wmb();
	ring(p->sq_doorbell, p->tail);
	p->rung = p->tail;
	q->announced = q->sent;
}

/* The next completion, read once, if there is one: other programs can write there. */
static bool take(struct disk_pair *p, struct nvme_completion *ret)
{
	const struct nvme_completion *c = (struct nvme_completion *)p->cq->ram + p->head;

	ret->status = READ_ONCE(c->status);
	if ((le16_to_cpu(ret->status) & 1) != p->phase)
		return false;
	/* The rest of it, and the data, were written before: pairs with the drive's order. */
	dma_rmb();
	ret->command_id = READ_ONCE(c->command_id);
	ret->sq_id = READ_ONCE(c->sq_id);
	return true;
}

/* All completions that there are. With the lock. False: one is of nothing that was asked for. */
static bool take_all(struct disk_queue *q)
{
	const struct sio_disk_attach *is = &q->disk->is;
	struct disk_pair *p = q->pair;
	struct nvme_completion c;

	while (take(p, &c)) {
		u16 tag = c.command_id;

		if (le16_to_cpu(c.sq_id) != p->id || tag >= is->depth || !q->flying[tag])
			return false;
		finish(q, tag, status_of(le16_to_cpu(c.status) >> 1));
		if (++p->head == is->entries) {
			p->head = 0;
			p->phase ^= 1;
		}
	}
	return true;
}

/* With the lock. False: the disk is to be killed, without it. */
static bool reap(struct disk_queue *q)
{
	u32 head = q->pair->head;

	if (q->state != DISK_LIVE)
		return true;
	if (!take_all(q))
		return false;
	if (q->pair->head != head)
		ring(q->pair->cq_doorbell, q->pair->head);
	return true;
}

static void kill_broken(struct disk_queue *q)
{
	disk_kill(q->disk, "it completed what was not asked of it", BLK_STS_IOERR);
}

/* ---- commands ---- */

/* With the lock. */
static void put(struct disk_queue *q, struct request *rq, const struct nvme_command *c)
{
	struct disk_command *command = disk_command_of(rq);
	struct disk_pair *p = q->pair;
	u64 at = p->tail * ENTRY;

	if (p->sq->io)
		memcpy_toio(p->sq->io + at, c, ENTRY);
	else
		memcpy(p->sq->ram + at, c, ENTRY);
	if (++p->tail == q->disk->is.entries)
		p->tail = 0;
	command->number = q->sent++;
	command->sent_at = jiffies;
	if (p->listener || p->looks)
		return;
	p->looks = true;
	hrtimer_start(&p->timer, LOOK_NS, HRTIMER_MODE_REL);
}

blk_status_t disk_queue_put(struct blk_mq_hw_ctx *hctx, struct request *rq,
			    const struct nvme_command *c, bool now)
{
	struct disk_queue *q = hctx->driver_data;
	blk_status_t ret = BLK_STS_IOERR;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (q->state == DISK_LIVE) {
		q->flying[rq->tag] = rq;
		q->in_flight++;
		put(q, rq, c);
		if (now)
			ring_sq(q);
		ret = BLK_STS_OK;
	} else if (q->state == DISK_AWAY) {
		/* Under the lock, so that whoever ends this state finds it stopped. */
		blk_mq_stop_hw_queue(hctx);
		ret = BLK_STS_RESOURCE;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return ret;
}

void disk_queue_ring(struct disk_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (q->state == DISK_LIVE)
		ring_sq(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

void disk_queue_look(struct disk_queue *q)
{
	unsigned long flags;
	bool sane;

	spin_lock_irqsave(&q->lock, flags);
	sane = reap(q);
	spin_unlock_irqrestore(&q->lock, flags);
	if (!sane)
		kill_broken(q);
}

enum hrtimer_restart disk_pair_look(struct hrtimer *timer)
{
	struct disk_pair *p = container_of(timer, struct disk_pair, timer);
	struct disk_queue *q = p->queue;
	unsigned long flags;
	bool again;

	disk_queue_look(q);
	spin_lock_irqsave(&q->lock, flags);
	again = q->pair == p && q->state == DISK_LIVE && q->in_flight;
	p->looks = again;
	if (again)
		hrtimer_forward_now(timer, LOOK_NS);
	spin_unlock_irqrestore(&q->lock, flags);
	return again ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

bool disk_queue_overdue(struct disk_queue *q, struct request *rq)
{
	unsigned long limit = msecs_to_jiffies(q->disk->is.timeout_ms), flags;
	bool overdue;

	disk_queue_look(q);
	spin_lock_irqsave(&q->lock, flags);
	/* What was sent again begins anew. */
	overdue = q->state == DISK_LIVE && q->flying[rq->tag] == rq &&
		  time_after_eq(jiffies, disk_command_of(rq)->sent_at + limit);
	spin_unlock_irqrestore(&q->lock, flags);
	return overdue;
}

/* ---- the next pair ---- */

void disk_queue_leave(struct disk_queue *q)
{
	/*
	 * What the drive has completed before it has completed. Not later: the next pair may have
	 * the same memory.
	 */
	take_all(q);
	q->state = DISK_AWAY;
}

/* May it be done twice? */
static bool goes_again(const struct disk_queue *q, struct request *rq)
{
	/* Of the last the drive has not heard. */
	return q->disk->is.flags & SIO_DISK_ALONE || req_op(rq) == REQ_OP_READ ||
	       req_op(rq) == REQ_OP_FLUSH || (s32)(disk_command_of(rq)->number - q->announced) >= 0;
}

void disk_queue_renew(struct disk_queue *q, struct disk_pair *pair)
{
	struct nvme_command c;

	q->pair = pair;
	q->state = DISK_LIVE;
	for (u32 tag = 0; tag < q->disk->is.depth; tag++) {
		struct request *rq = q->flying[tag];

		if (!rq)
			continue;
		if (goes_again(q, rq) && disk_command_make(q, &c, rq))
			put(q, rq, &c);
		else
			finish(q, tag, BLK_STS_IOERR);
	}
	ring_sq(q);
}
