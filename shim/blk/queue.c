// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue pair. It may end because the drive was reset, the path to it is gone, a command did not
 * complete, or the drive completed a command that was not sent. Then it is dead at once, under the
 * lock: no doorbell is written any more, and each command in flight is ended once, by whoever takes
 * it out of @flying. Source: NVM Express Base Specification 1.4, sections 4.1 and 4.6.
 */
#include <linux/io.h>
#include <linux/slab.h>

#include "disk.h"

#define ENTRY sizeof(struct nvme_command)

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
	((struct disk_command *)blk_mq_rq_to_pdu(rq))->status = status;
	blk_mq_complete_request(rq);
}

/* With the lock. */
static void kill(struct disk *d, const char *why, blk_status_t status)
{
	struct disk_queue *q = &d->queue;

	if (q->state == DISK_DEAD)
		return;
	q->state = DISK_DEAD;
	q->why = why;
	for (u32 tag = 0; tag < d->is.depth; tag++)
		if (q->flying[tag])
			finish(q, tag, status);
	wake_up_all(&d->ended);
}

void disk_queue_kill(struct disk *d, const char *why, blk_status_t status)
{
	unsigned long flags;

	spin_lock_irqsave(&d->queue.lock, flags);
	kill(d, why, status);
	spin_unlock_irqrestore(&d->queue.lock, flags);
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
	if (q->rung == q->tail)
		return;
	/*
	 * Entries may be write-combined: they, and the data, arrive before the doorbell. Pairs with
	 * the drive's order: it fetches behind the doorbell.
	 */
	wmb();
	ring(q->sq_doorbell, q->tail);
	q->rung = q->tail;
}

/* The next completion, read once, if there is one: other programs can write there. */
static bool take(struct disk_queue *q, struct nvme_completion *ret)
{
	const struct nvme_completion *c = (struct nvme_completion *)q->cq->ram + q->head;

	ret->status = READ_ONCE(c->status);
	if ((le16_to_cpu(ret->status) & 1) != q->phase)
		return false;
	/* The rest of it, and the data, were written before: pairs with the drive's order. */
	dma_rmb();
	ret->command_id = READ_ONCE(c->command_id);
	ret->sq_id = READ_ONCE(c->sq_id);
	return true;
}

/* With the lock. */
static void reap(struct disk *d)
{
	struct disk_queue *q = &d->queue;
	struct nvme_completion c;
	bool found = false;

	while (q->state == DISK_LIVE && take(q, &c)) {
		u16 tag = c.command_id;

		if (le16_to_cpu(c.sq_id) != d->is.id || tag >= d->is.depth || !q->flying[tag]) {
			kill(d, "it completed what was not asked of it", BLK_STS_IOERR);
			return;
		}
		finish(q, tag, status_of(le16_to_cpu(c.status) >> 1));
		found = true;
		if (++q->head == d->is.entries) {
			q->head = 0;
			q->phase ^= 1;
		}
	}
	if (found && q->state == DISK_LIVE)
		ring(q->cq_doorbell, q->head);
}

/* ---- commands ---- */

bool disk_queue_put(struct disk *d, struct request *rq, const struct nvme_command *c, bool now)
{
	struct disk_queue *q = &d->queue;
	unsigned long flags;
	bool live;

	spin_lock_irqsave(&q->lock, flags);
	live = q->state == DISK_LIVE;
	if (live) {
		u64 at = q->tail * ENTRY;

		if (q->sq->io)
			memcpy_toio(q->sq->io + at, c, ENTRY);
		else
			memcpy(q->sq->ram + at, c, ENTRY);
		q->flying[rq->tag] = rq;
		if (++q->tail == d->is.entries)
			q->tail = 0;
		if (now)
			ring_sq(q);
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return live;
}

void disk_queue_ring(struct disk *d)
{
	unsigned long flags;

	spin_lock_irqsave(&d->queue.lock, flags);
	if (d->queue.state == DISK_LIVE)
		ring_sq(&d->queue);
	spin_unlock_irqrestore(&d->queue.lock, flags);
}

bool disk_queue_look(struct disk *d, const struct request *rq)
{
	unsigned long flags;
	bool gone;

	spin_lock_irqsave(&d->queue.lock, flags);
	reap(d);
	gone = d->queue.flying[rq->tag] != rq;
	spin_unlock_irqrestore(&d->queue.lock, flags);
	return gone;
}

/* ---- life ---- */

static void on_interrupt(void *arg)
{
	struct disk *d = arg;
	unsigned long flags;

	spin_lock_irqsave(&d->queue.lock, flags);
	reap(d);
	spin_unlock_irqrestore(&d->queue.lock, flags);
}

static void on_lost(void *arg)
{
	disk_queue_kill(arg, "it was reset, or the way there is lost", BLK_STS_IOERR);
}

static int use(struct disk *d, struct smartio_use **ret, u64 address, u64 bytes)
{
	struct smartio_use *u = smartio_use_get(address, bytes, on_lost, d);

	if (IS_ERR(u))
		return PTR_ERR(u);
	*ret = u;
	return 0;
}

int disk_queue_begin(struct disk *d)
{
	const struct sio_disk_attach *is = &d->is;
	struct disk_queue *q = &d->queue;
	int error;

	spin_lock_init(&q->lock);
	q->phase = 1;
	q->flying = kcalloc(is->depth, sizeof(*q->flying), GFP_KERNEL_ACCOUNT);
	error = q->flying ? 0 : -ENOMEM;
	if (!error)
		error = use(d, &q->sq, is->sq, is->entries * ENTRY);
	if (!error)
		error = use(d, &q->cq, is->cq, is->entries * sizeof(struct nvme_completion));
	if (!error)
		error = use(d, &q->sq_doorbell, is->sq_doorbell, sizeof(u32));
	if (!error)
		error = use(d, &q->cq_doorbell, is->cq_doorbell, sizeof(u32));
	if (!error)
		error = use(d, &d->memory, is->memory, disk_list_offset(d, is->depth));
	if (!error && (!q->cq->ram || !d->memory->ram))
		error = -EINVAL;
	if (error)
		return error;
	d->listener = smartio_listen(is->interrupt, on_interrupt, d);
	if (!IS_ERR(d->listener))
		return 0;
	error = PTR_ERR(d->listener);
	d->listener = NULL;
	return error;
}

int disk_queue_start(struct disk *d)
{
	int error = -ENODEV;

	spin_lock_irq(&d->queue.lock);
	if (d->queue.state == DISK_NEW) {
		d->queue.state = DISK_LIVE;
		error = 0;
	}
	spin_unlock_irq(&d->queue.lock);
	return error;
}

void disk_queue_end(struct disk *d)
{
	struct disk_queue *q = &d->queue;

	smartio_unlisten(d->listener);
	smartio_use_put(q->sq);
	smartio_use_put(q->cq);
	smartio_use_put(q->sq_doorbell);
	smartio_use_put(q->cq_doorbell);
	smartio_use_put(d->memory);
	kfree(q->flying);
}
