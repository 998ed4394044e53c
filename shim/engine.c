// SPDX-License-Identifier: GPL-2.0-only
/*
 * The DMA engine of adapters that have none: a processor copies what the rings say. A transfer is
 * done in pieces; between two of them the channel's lock is free, so that what it reaches can be
 * taken away. Whatever is read from a ring is read once and checked. Channels have turns, so that
 * rings that are never empty hold up nobody.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/sched/clock.h>

#include "channel.h"

#define PIECE SZ_64K	 /* who waits for the lock waits for it */
#define PIECE_IO SZ_4K	 /* of a bus, which takes longer */
#define PIECE_READ SZ_1K /* through a bus: each word is waited for */
#define TURN_NS NSEC_PER_MSEC
#define LOOK_NS (50 * NSEC_PER_USEC)  /* at an empty ring, before the program has to wake it */
#define PUSH_NS (4ULL * NSEC_PER_SEC) /* members of a group may take: twice what they are given */

static struct workqueue_struct *engine;

/* ---- where the bytes are ---- */

/* One that can be reached without a break. */
struct place {
	void *ram; /* NULL: it is @io */
	void __iomem *io;
	u64 n;
};

static bool is_view(const struct sio_obj *o)
{
	return o->kind == SIO_KIND_BAR || o->kind == SIO_KIND_MAP;
}

/* Are the pages there? Who takes them away says so before it takes the channel's lock. */
static bool is_there(const struct sio_obj *o)
{
	if (!is_view(o))
		return !sio_group_sends(o) || sio_group_is_there(o);
	return !READ_ONCE(((const struct sio_view *)o)->revoked) &&
	       !(o->dev && READ_ONCE(o->dev->resetting));
}

static struct sio_range *range_of(const struct sio_channel *c, u32 slot, u64 offset, u32 access)
{
	struct sio_range *g;

	if (slot >= SIO_DMA_SLOTS)
		return NULL;
	g = c->slot[array_index_nospec(slot, SIO_DMA_SLOTS)];
	if (!g || !(g->o.access & access) || offset > g->o.length ||
	    c->entry.length > g->o.length - offset)
		return NULL;
	return g;
}

/* At most @n bytes at @offset of @g. */
static struct place find(const struct sio_range *g, u64 offset, u64 n)
{
	const struct sio_reach *r = g->of->reach;
	u64 at = g->offset + offset;
	const struct sio_mem *m;
	struct page *page;

	if (r->io)
		return (struct place){.io = r->io + at, .n = min_t(u64, n, PIECE_IO)};
	if (r->ram)
		return (struct place){.ram = r->ram + at, .n = n};
	m = (const struct sio_mem *)g->of;
	page = m->pages->page[m->first + PHYS_PFN(at)];
	return (struct place){.ram = page_address(page) + offset_in_page(at),
			      .n = min_t(u64, n, PAGE_SIZE - offset_in_page(at))};
}

/* ---- copying ---- */

static void copy(struct sio_channel *c, const struct place *to, const struct place *from, u64 n)
{
	if (!to->io && !from->io) {
		memcpy(to->ram, from->ram, n);
		return;
	}
	if (!from->io) {
		memcpy_toio(to->io, from->ram, n);
		return;
	}
	if (!to->io) {
		memcpy_fromio(to->ram, from->io, n);
		return;
	}
	for (u64 at = 0; at < n; at += sizeof(c->bounce)) {
		size_t k = min_t(u64, n - at, sizeof(c->bounce));

		memcpy_fromio(c->bounce, from->io + at, k);
		memcpy_toio(to->io + at, c->bounce, k);
	}
}

/* 0; -EAGAIN: members have not taken all yet; -EFAULT: some missed it, or never take it. */
static int push_group(struct sio_channel *c)
{
	u64 now = ktime_get_ns();
	u32 missed;
	int error = sio_group_push(c->pushed->of, &missed);

	if (error == -EAGAIN && !c->push_until)
		c->push_until = now + PUSH_NS;
	if (error == -EAGAIN && now < c->push_until)
		return error;
	c->push_until = 0;
	c->pushed = NULL;
	return error || missed != c->missed ? -EFAULT : 0;
}

/*
 * What was written through a bus has arrived: a read of the same way comes behind it. 0; -EFAULT:
 * the way is gone, and who knows how far it came; -EAGAIN: it has not all arrived, to be called
 * again without the lock in between.
 */
static int push(struct sio_channel *c)
{
	const struct sio_range *g = c->pushed;

	if (!g)
		return 0;
	if (sio_group_sends(g->of))
		return push_group(c);
	c->pushed = NULL;
	wmb(); /* write-combining buffers are empty: pairs with the read, which comes behind them */
	if (is_there(g->of))
		readl(g->of->reach->io + g->offset);
	return is_there(g->of) ? 0 : -EFAULT;
}

/*
 * A piece of the entry under way. 0; -EINVAL: the entry; -EFAULT: the pages are not there; -EAGAIN:
 * as push().
 */
static int copy_piece(struct sio_channel *c)
{
	const struct sio_dma_entry *e = &c->entry;
	const struct sio_range *from = range_of(c, e->source, e->source_offset, SIO_ACCESS_READ);
	const struct sio_range *to = range_of(c, e->target, e->target_offset, SIO_ACCESS_WRITE);
	u64 end = min_t(u64, e->length, c->copied + PIECE);
	int error;

	if (!from || !to)
		return -EINVAL;
	if (!is_there(from->of) || !is_there(to->of))
		return -EFAULT;
	if (to->of->reach->io)
		end = min_t(u64, end, c->copied + PIECE_IO);
	if (from->of->reach->io)
		end = min_t(u64, end, c->copied + PIECE_READ);
	error = c->pushed != to ? push(c) : 0;
	if (error)
		return error;
	if (!c->pushed && sio_group_sends(to->of)) {
		c->missed = sio_group_missed(to->of);
		c->push_until = 0;
	}
	if (from->of->reach->io)
		/* Behind the tail, for write-combined memory: pairs with submit() in libsmartio. */
		rmb();
	while (c->copied < end) {
		struct place in = find(from, e->source_offset + c->copied, end - c->copied);
		struct place out = find(to, e->target_offset + c->copied, in.n);

		copy(c, &out, &in, out.n);
		c->copied += out.n;
	}
	if (to->of->reach->io || sio_group_sends(to->of))
		c->pushed = to;
	/* Ones of a path that broke meanwhile are no data, and what was written there is lost. */
	return is_there(from->of) && is_there(to->of) ? 0 : -EFAULT;
}

/* ---- the ring ---- */

/* The result first, then that the transfer is over, then a look who waits. */
static void finish(struct sio_channel *c)
{
	struct sio_dma_ring *ring = c->ring;

	WRITE_ONCE(ring->result[c->done % SIO_DMA_RESULTS], c->error);
	smp_store_release(&ring->done, ++c->done); /* pairs with sio_dma_settle() in libsmartio */
	c->error = 0;
	smp_mb(); /* done, then the look: pairs with sleep_until() in libsmartio */
	if (READ_ONCE(ring->waiting))
		sio_count_add(&c->finished, 1);
}

static void entry_done(struct sio_channel *c)
{
	c->busy = false;
	WRITE_ONCE(c->ring->head, ++c->head);
	if (c->entry.flags & SIO_DMA_LAST)
		finish(c);
}

static bool is_ready(const struct sio_channel *c)
{
	return c->busy || READ_ONCE(c->ring->tail) != c->head;
}

static bool take_entry(struct sio_channel *c)
{
	u32 ready = smp_load_acquire(&c->ring->tail) - c->head; /* pairs with submit() there */

	if (ready == 0)
		return false;
	if (ready > SIO_DMA_ENTRIES) {
		c->broken = true;
		return false;
	}
	memcpy(&c->entry, &c->ring->entry[c->head % SIO_DMA_ENTRIES], sizeof(c->entry));
	barrier(); /* from now on the copy is what counts */
	c->busy = true;
	c->copied = 0;
	return true;
}

static bool is_aborted(const struct sio_channel *c)
{
	return (s32)(READ_ONCE(c->ring->abort) - c->done) > 0;
}

/* The entry is copied, or has failed. The last one of a transfer is over when all has arrived. */
static int settle_entry(struct sio_channel *c)
{
	int error = c->entry.flags & SIO_DMA_LAST ? push(c) : 0;

	if (error == -EAGAIN)
		return error;
	if (!c->error)
		c->error = error;
	entry_done(c);
	return 0;
}

static int work_on_entry(struct sio_channel *c)
{
	int error = 0;

	if (!c->error && is_aborted(c))
		c->error = -ECANCELED;
	if (!c->error && (!c->copied || c->copied < c->entry.length))
		error = copy_piece(c);
	if (error == -EAGAIN)
		return error;
	if (!c->error)
		c->error = error;
	return c->error || c->copied == c->entry.length ? settle_entry(c) : 0;
}

enum did { NOTHING, SOMETHING, WAITED };

/* With the channel's lock, which must be free while it waits for others. */
static enum did step(struct sio_channel *c)
{
	if (c->broken || c->ended || (!c->busy && !take_entry(c)))
		return NOTHING;
	return work_on_entry(c) == -EAGAIN ? WAITED : SOMETHING;
}

/* Programs that start one transfer after the other find it awake. */
static bool look(const struct sio_channel *c)
{
	u64 until = local_clock() + LOOK_NS;

	while (!is_ready(c) && !READ_ONCE(c->ended)) {
		if (need_resched() || local_clock() > until)
			return false;
		cpu_relax();
	}
	return true;
}

/* Return: something came before the program could know that it has to ring. */
static bool doze(struct sio_channel *c)
{
	WRITE_ONCE(c->ring->asleep, 1);
	smp_mb(); /* then a look at the tail: pairs with sio_dma_ring() in libsmartio */
	if (!is_ready(c))
		return false;
	WRITE_ONCE(c->ring->asleep, 0);
	return true;
}

void sio_channel_work(struct work_struct *work)
{
	struct sio_channel *c = container_of(work, struct sio_channel, work.work);
	u64 until = local_clock() + TURN_NS;
	enum did did;

	WRITE_ONCE(c->ring->asleep, 0);
	for (;;) {
		mutex_lock(&c->lock);
		did = step(c);
		mutex_unlock(&c->lock);
		cond_resched_tasks_rcu_qs(); /* a ring that is never empty is no task that waits */
		if (did == WAITED)
			usleep_range(20, 50);
		if (did != NOTHING && local_clock() < until)
			continue;
		if (did != NOTHING) { /* who waits longer leaves the processor to others */
			queue_delayed_work(engine, &c->work, did == WAITED);
			return;
		}
		if (READ_ONCE(c->ended) || c->broken || (!look(c) && !doze(c)))
			return;
	}
}

/* ---- turns ---- */

void sio_channel_wake(struct sio_channel *c)
{
	queue_delayed_work(engine, &c->work, 0);
}

/*
 * As many channels copy at once as there are processors; an administrator may have fewer, or at
 * lower priority (WQ_SYSFS). Nothing is copied while devices are suspended.
 */
int sio_engine_init(void)
{
	engine = alloc_workqueue("smartio_dma", WQ_UNBOUND | WQ_FREEZABLE | WQ_SYSFS,
				 max_t(int, 2, num_online_cpus()));
	return engine ? 0 : -ENOMEM;
}

void sio_engine_exit(void)
{
	if (engine)
		destroy_workqueue(engine);
}
