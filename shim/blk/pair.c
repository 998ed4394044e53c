// SPDX-License-Identifier: GPL-2.0-only
/* Queue pairs and their queues: found in what the program has, exchanged, and released. */
#include <linux/slab.h>

#include "disk.h"

static void on_interrupt(void *arg)
{
	disk_queue_look(((struct disk_pair *)arg)->queue);
}

/* Of a queue's present pair; an earlier or a coming one only keeps it in mind. */
static void on_lost(void *arg)
{
	struct disk_pair *p = arg;
	struct disk_queue *q = p->queue;
	bool ends = false, waits = false;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	p->lost = true;
	if (q->pair == p && q->state == DISK_LIVE) {
		waits = q->survives;
		ends = !waits;
		if (waits)
			disk_queue_leave(q);
	}
	spin_unlock_irqrestore(&q->lock, flags);
	if (ends)
		disk_kill(q->disk, "it was reset, or the way there is lost", BLK_STS_IOERR);
	if (waits)
		wake_up_all(&q->disk->events);
}

/* It is another host's, which nobody needs to give us; no pair helps. */
static void on_memory_lost(void *arg)
{
	disk_kill(((struct disk_queue *)arg)->disk, "its memory is gone", BLK_STS_IOERR);
}

static int use(struct disk_pair *p, struct smartio_use **ret, u64 address, u64 bytes)
{
	struct smartio_use *u = smartio_use_get(address, bytes, on_lost, p);

	if (IS_ERR(u))
		return PTR_ERR(u);
	*ret = u;
	return 0;
}

/* ---- a pair ---- */

static void pair_end(struct disk_pair *p)
{
	if (IS_ERR_OR_NULL(p))
		return;
	smartio_unlisten(p->listener);
	hrtimer_cancel(&p->timer);
	smartio_use_put(p->sq);
	smartio_use_put(p->cq);
	smartio_use_put(p->sq_doorbell);
	smartio_use_put(p->cq_doorbell);
	kfree(p);
}

static int pair_find(struct disk_pair *p, const struct sio_disk_pair *is)
{
	u64 entries = p->queue->disk->is.entries;
	int error = use(p, &p->sq, is->sq, entries * sizeof(struct nvme_command));

	if (!error)
		error = use(p, &p->cq, is->cq, entries * sizeof(struct nvme_completion));
	if (!error)
		error = use(p, &p->sq_doorbell, is->sq_doorbell, sizeof(u32));
	if (!error)
		error = use(p, &p->cq_doorbell, is->cq_doorbell, sizeof(u32));
	if (!error && !p->cq->ram)
		error = -EINVAL;
	if (error || is->interrupt < 0)
		return error;
	p->listener = smartio_listen(is->interrupt, on_interrupt, p);
	if (!IS_ERR(p->listener))
		return 0;
	error = PTR_ERR(p->listener);
	p->listener = NULL;
	return error;
}

static struct disk_pair *pair_begin(struct disk_queue *q, const struct sio_disk_pair *is)
{
	struct disk_pair *p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	int error;

	if (!p)
		return ERR_PTR(-ENOMEM);
	p->queue = q;
	p->id = is->id;
	p->phase = 1;
	hrtimer_init(&p->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	p->timer.function = disk_pair_look;
	error = pair_find(p, is);
	if (!error)
		return p;
	pair_end(p);
	return ERR_PTR(error);
}

/* ---- queues ---- */

/* Before the first pair, whose interrupts and losses look at the queue. */
static void queue_init(struct disk_queue *q, struct disk *d, const struct sio_disk_pair *is)
{
	spin_lock_init(&q->lock);
	q->disk = d;
	q->survives = d->is.flags & SIO_DISK_SURVIVE;
	q->memory_at = is->memory;
	q->memory_address = is->memory_address;
}

static int queue_begin(struct disk_queue *q, const struct sio_disk_pair *is)
{
	struct smartio_use *memory;
	struct disk_pair *p;

	q->flying = kcalloc(q->disk->is.depth, sizeof(*q->flying), GFP_KERNEL_ACCOUNT);
	if (!q->flying)
		return -ENOMEM;
	p = pair_begin(q, is);
	if (IS_ERR(p))
		return PTR_ERR(p);
	q->pair = p;
	memory = smartio_use_get(is->memory, disk_list_offset(q, q->disk->is.depth), on_memory_lost,
				 q);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	q->memory = memory;
	return memory->ram ? 0 : -EINVAL;
}

int disk_queues_begin(struct disk *d, const struct sio_disk_pair *pairs)
{
	int error = 0;

	d->queue = kcalloc(d->is.n_pairs, sizeof(*d->queue), GFP_KERNEL_ACCOUNT);
	if (!d->queue)
		return -ENOMEM;
	for (u32 i = 0; i < d->is.n_pairs; i++)
		queue_init(&d->queue[i], d, &pairs[i]);
	for (u32 i = 0; i < d->is.n_pairs && !error; i++)
		error = queue_begin(&d->queue[i], &pairs[i]);
	return error;
}

void disk_queues_end(struct disk *d)
{
	for (u32 i = 0; d->queue && i < d->is.n_pairs; i++) {
		struct disk_queue *q = &d->queue[i];

		smartio_use_put(q->memory);
		pair_end(q->pair);
		kfree(q->flying);
	}
	kfree(d->queue);
}

int disk_queues_start(struct disk *d)
{
	int error = 0;

	for (u32 i = 0; i < d->is.n_pairs; i++) {
		struct disk_queue *q = &d->queue[i];

		spin_lock_irq(&q->lock);
		if (q->pair->lost || q->state != DISK_NEW)
			error = -ENODEV;
		else
			q->state = DISK_LIVE;
		spin_unlock_irq(&q->lock);
	}
	return error;
}

void disk_queues_last(struct disk *d)
{
	bool away = false;

	for (u32 i = 0; i < d->is.n_pairs; i++) {
		struct disk_queue *q = &d->queue[i];

		spin_lock_irq(&q->lock);
		q->survives = false;
		away |= q->state == DISK_AWAY;
		spin_unlock_irq(&q->lock);
	}
	if (away)
		disk_kill(d, "it was reset, and there is no other one", BLK_STS_IOERR);
}

/* ---- the next pairs ---- */

void disk_queues_leave(struct disk *d)
{
	for (u32 i = 0; i < d->is.n_pairs; i++) {
		struct disk_queue *q = &d->queue[i];

		spin_lock_irq(&q->lock);
		if (q->state == DISK_LIVE)
			disk_queue_leave(q);
		spin_unlock_irq(&q->lock);
	}
}

/* @p: the next pair of the queue; then the one before. */
static int exchange(struct disk_queue *q, struct disk_pair **p)
{
	struct disk_pair *old = q->pair;
	int error = -ENODEV;

	spin_lock_irq(&q->lock);
	if (q->state != DISK_DEAD && !(*p)->lost) {
		disk_queue_renew(q, *p);
		*p = old;
		error = 0;
	}
	spin_unlock_irq(&q->lock);
	return error;
}

static int exchange_all(struct disk *d, struct disk_pair **p)
{
	int error = 0;

	for (u32 i = 0; i < d->is.n_pairs && !error; i++)
		error = exchange(&d->queue[i], &p[i]);
	blk_mq_start_stopped_hw_queues(d->gendisk->queue, true);
	return error;
}

int disk_queues_renew(struct disk *d, const struct sio_disk_pair *pairs)
{
	struct disk_pair **p = kcalloc(d->is.n_pairs, sizeof(*p), GFP_KERNEL_ACCOUNT);
	int error = p ? 0 : -ENOMEM;

	for (u32 i = 0; i < d->is.n_pairs && !error; i++) {
		p[i] = pair_begin(&d->queue[i], &pairs[i]);
		error = PTR_ERR_OR_ZERO(p[i]);
	}
	if (!error)
		error = exchange_all(d, p);
	/* Those of before, or those that were in vain. */
	for (u32 i = 0; p && i < d->is.n_pairs; i++)
		pair_end(p[i]);
	kfree(p);
	return error;
}
