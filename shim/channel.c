// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA channels and the ranges that they may reach: how they come and end. A range ends with its
 * target and does not delay the target's end: under the channel's lock no piece is being copied,
 * and the next one finds an empty slot.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "channel.h"

/* ---- how an object is reached ---- */

/* Return: there was memory for it. Of a view that has ended the pages may be others' by now. */
static bool of_view(struct sio_reach *r, const struct sio_view *v)
{
	if (v->ended)
		return true;
	if (v->ram)
		r->ram = memremap(v->phys, v->o.length, MEMREMAP_WB);
	else if (v->combined)
		r->io = ioremap_wc(v->phys, v->o.length);
	else
		r->io = ioremap(v->phys, v->o.length);
	return r->ram || r->io;
}

/* The same. Memory of the kernel's is reached by its pages. */
static bool of_memory(struct sio_reach *r, const struct sio_mem *m)
{
	if (sio_group_sends(&m->o))
		return sio_group_map(r, m);
	if (!m->pages)
		r->ram = memremap(m->o.address, m->o.length, MEMREMAP_WB);
	return m->pages || r->ram;
}

static struct sio_reach *reach_new(const struct sio_obj *o)
{
	struct sio_reach *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (!r)
		return NULL;
	INIT_LIST_HEAD(&r->ranges);
	if (o->kind == SIO_KIND_MEM ? of_memory(r, (const struct sio_mem *)o)
				    : of_view(r, (const struct sio_view *)o))
		return r;
	kfree(r);
	return NULL;
}

static void unmap(struct sio_reach *r)
{
	if (r->io)
		iounmap(r->io);
	if (r->ram)
		memunmap(r->ram);
	r->io = NULL;
	r->ram = NULL;
}

static void reach_put(struct sio_obj *o)
{
	struct sio_reach *r = o->reach;

	if (!r || !list_empty(&r->ranges))
		return;
	unmap(r);
	kfree(r);
	o->reach = NULL;
}

/* ---- the end of a range ---- */

static void range_cut(struct sio_range *g)
{
	struct sio_channel *c = g->channel;

	if (!g->of)
		return;
	mutex_lock(&c->lock);
	c->slot[g->slot] = NULL;
	if (c->pushed == g)
		c->pushed = NULL;
	/* Another range may be in the slot before the next piece: it is none of this entry's. */
	if (c->busy && !c->error && (c->entry.source == g->slot || c->entry.target == g->slot))
		c->error = -EINVAL;
	mutex_unlock(&c->lock);
	list_del_init(&g->of_target);
	reach_put(g->of);
	g->of = NULL;
}

static void range_end(struct sio_obj *o)
{
	range_cut((struct sio_range *)o);
}

const struct sio_kind sio_kind_range = {
	.name = "range of a DMA channel",
	.size = sizeof(struct sio_range),
	.end = range_end,
};

static struct sio_range *first_range(const struct sio_obj *target)
{
	return list_first_entry(&target->reach->ranges, struct sio_range, of_target);
}

void sio_ranges_cut(struct sio_obj *target)
{
	while (target->reach) { /* which goes with the last one */
		struct sio_range *g = first_range(target);

		range_cut(g);
		if (list_empty(&g->o.falling))
			list_add_tail(&g->o.falling, &sio.falling);
	}
}

void sio_ranges_end(struct sio_obj *target)
{
	while (target->reach)
		sio_obj_end(&first_range(target)->o);
}

/* Each channel once, for its lock may be a piece away, and it may have many ranges of @target. */
void sio_ranges_settle(struct sio_obj *target)
{
	static u64 turn; /* guarded by sio.lock */
	struct sio_range *g;

	if (!target->reach)
		return;
	turn++;
	list_for_each_entry(g, &target->reach->ranges, of_target) {
		struct sio_channel *c = g->channel;

		if (c->settled == turn)
			continue;
		c->settled = turn;
		mutex_lock(&c->lock);
		mutex_unlock(&c->lock);
	}
}

/* Nothing reads what is unmapped here: who has the lock sees that the view is revoked. */
void sio_ranges_lose(struct sio_obj *target)
{
	struct sio_reach *r = target->reach;

	if (r)
		unmap(r);
}

/* ---- the files of a channel ---- */

static ssize_t bell_write(struct file *f, const char __user *from, size_t size, loff_t *pos)
{
	struct sio_channel *c = f->private_data;

	if (size < sizeof(u64))
		return -EINVAL;
	if (!READ_ONCE(c->ended))
		sio_channel_wake(c);
	return sizeof(u64);
}

static const struct file_operations bell_fops = {
	.owner = THIS_MODULE,
	.write = bell_write,
	.release = sio_file_release,
};

static ssize_t finished_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct sio_channel *c = iocb->ki_filp->private_data;

	return sio_count_read(&c->finished, iocb, to);
}

/* The program wakes its own threads, too. */
static ssize_t finished_write(struct file *f, const char __user *from, size_t size, loff_t *pos)
{
	struct sio_channel *c = f->private_data;
	u64 n;
	int error = sio_count_get(from, size, &n);

	if (error)
		return error;
	sio_count_add(&c->finished, n);
	return sizeof(n);
}

static __poll_t finished_poll(struct file *f, poll_table *wait)
{
	struct sio_channel *c = f->private_data;

	return sio_count_poll(&c->finished, f, wait);
}

static const struct file_operations finished_fops = {
	.owner = THIS_MODULE,
	.read_iter = finished_read,
	.write = finished_write,
	.poll = finished_poll,
	.release = sio_file_release,
};

int sio_channel_files(struct sio_request *rq, struct sio_obj *o)
{
	int error = sio_answer_file(rq, o, &sio_mmap_fops, O_RDWR);

	if (!error)
		error = sio_answer_file(rq, o, &bell_fops, O_WRONLY);
	if (!error)
		error = sio_answer_file(rq, o, &finished_fops, O_RDWR);
	return error;
}

static int ring_mmap(struct sio_obj *o, struct vm_area_struct *vma)
{
	return remap_vmalloc_range(vma, ((struct sio_channel *)o)->ring, vma->vm_pgoff);
}

/* ---- life ---- */

static void channel_end(struct sio_obj *o)
{
	struct sio_channel *c = (struct sio_channel *)o;

	if (!c->adapter)
		return;
	c->adapter->n_channels--;
	WRITE_ONCE(c->ended, true);
	cancel_delayed_work_sync(&c->work);
	for (u32 i = 0; i < SIO_DMA_SLOTS; i++)
		if (c->slot[i])
			sio_obj_end(&c->slot[i]->o);
}

/* Who rang while it ended may have left work behind, which finds that it has ended. */
static void channel_free(struct sio_obj *o)
{
	struct sio_channel *c = (struct sio_channel *)o;

	if (c->adapter)
		cancel_delayed_work_sync(&c->work);
	vfree(c->ring);
}

const struct sio_kind sio_kind_channel = {
	.name = "DMA channel",
	.size = sizeof(struct sio_channel),
	.end = channel_end,
	.free = channel_free,
	.mmap = ring_mmap,
	.fops = &sio_mmap_fops,
};

void sio_channel_list(struct sio_list_entry *e, const struct sio_obj *o)
{
	const struct sio_range *g = (const struct sio_range *)o;

	if (o->kind == SIO_KIND_DMA)
		e->device = ((const struct sio_channel *)o)->adapter->index;
	else if (g->of)
		e->cookie = g->of->id;
}

/* ---- DMA ---- */

int sio_op_dma(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_dma *m = msg;
	struct sio_channel *c = (struct sio_channel *)rq->obj;
	struct smartio_adapter *a = sio_adapter_find(rq, m->adapter);
	struct sio_evt_dma *evt = answer;

	if (!a)
		return -ENODEV;
	if (a->n_channels == SIO_CHANNELS)
		return sio_fail_exhausted(rq, -ENOSPC, SIO_OUT_OF_DMA_CHANNELS,
					  "adapter %u has %u channels, all in use", a->index,
					  SIO_CHANNELS);
	c->o.length = PAGE_ALIGN(sizeof(*c->ring));
	c->o.access = SIO_BOTH;
	c->ring = vmalloc_user(c->o.length);
	if (!c->ring)
		return -ENOMEM;
	c->ring->asleep = 1; /* it looks when it is woken */
	mutex_init(&c->lock);
	sio_count_init(&c->finished);
	INIT_DELAYED_WORK(&c->work, sio_channel_work);
	a->n_channels++;
	c->adapter = a;
	evt->size = c->o.length;
	return 0;
}

/* ---- DMA_ATTACH ---- */

/* Reads of memory do nothing, and nobody waits for what is written there. */
static int check_bar(struct sio_request *rq, const struct sio_obj *o, u32 access)
{
	if (access & ~o->access)
		return sio_fail(rq, -EACCES, "access %#x of BAR view %#llx, which is for %#x",
				access, o->id, o->access);
	if (!o->dev->pdev || ((const struct sio_view *)o)->revoked)
		return sio_fail(rq, -ENODEV, "the pages of BAR view %#llx are gone", o->id);
	if (sio_bar_is_memory(o))
		return 0;
	return sio_fail(
		rq, -EOPNOTSUPP,
		"BAR view %#llx is of registers or doorbells: they are in no prefetchable BAR, and DMA channels reach memory",
		o->id);
}

static int check_map(struct sio_request *rq, const struct sio_obj *o, const struct sio_channel *c)
{
	const struct sio_map *map = (const struct sio_map *)o;

	if (map->trigger)
		return sio_fail(rq, -EINVAL, "map %#llx is of an interrupt", o->id);
	if (o->adapter != c->adapter)
		return sio_fail(rq, -EINVAL,
				"map %#llx goes through adapter %u, the channel is of %u", o->id,
				o->adapter->index, c->adapter->index);
	return 0;
}

static int check_memory(struct sio_request *rq, const struct sio_obj *o, u32 access,
			const struct sio_channel *c)
{
	const struct sio_mem *m = (const struct sio_mem *)o;

	if (m->group && sio_group_sends(o) && o->adapter != c->adapter)
		return sio_fail(
			rq, -EINVAL,
			"the way to a group, memory %#llx, goes through adapter %u, the channel is of %u",
			o->id, o->adapter->index, c->adapter->index);
	if (m->group)
		return sio_group_check(rq, o, access);
	if (m->dmabuf)
		return sio_fail(
			rq, -EOPNOTSUPP,
			"memory %#llx is another driver's dma-buf, which no processor of ours reaches",
			o->id);
	if (m->all_ram || m->aperture)
		return sio_fail(rq, -EINVAL, "memory %#llx is all RAM, or an aperture", o->id);
	return 0;
}

static struct sio_obj *find_target(struct sio_request *rq, const struct sio_req_dma_attach *m,
				   const struct sio_channel *c)
{
	struct sio_obj *o;
	int error;

	if (!m->access || m->access & ~SIO_BOTH)
		return ERR_PTR(sio_fail(rq, -EINVAL, "access %#x, 1 to %d are right", m->access,
					SIO_BOTH));
	if (m->target_kind != SIO_KIND_MEM && m->target_kind != SIO_KIND_MAP &&
	    m->target_kind != SIO_KIND_BAR)
		return ERR_PTR(
			sio_fail(rq, -EINVAL,
				 "target kind %u, %d (memory), %d (map) or %d (BAR view) is right",
				 m->target_kind, SIO_KIND_MEM, SIO_KIND_MAP, SIO_KIND_BAR));
	o = sio_obj_find(rq, m->target_kind, m->target, true);
	if (IS_ERR(o))
		return o;
	if (o->kind == SIO_KIND_MEM)
		error = check_memory(rq, o, m->access, c);
	else if (o->kind == SIO_KIND_MAP)
		error = check_map(rq, o, c);
	else
		error = check_bar(rq, o, m->access);
	if (!error)
		error = sio_check_range(rq, sio_kind_name(o->kind), m->offset, m->length,
					o->length);
	return error ? ERR_PTR(error) : o;
}

static int free_slot(struct sio_request *rq, const struct sio_channel *c)
{
	for (int i = 0; i < SIO_DMA_SLOTS; i++)
		if (!c->slot[i])
			return i;
	return sio_fail_exhausted(rq, -ENOSPC, SIO_OUT_OF_DMA_SLOTS,
				  "all %d slots of channel %#llx are in use", SIO_DMA_SLOTS,
				  c->o.id);
}

int sio_op_dma_attach(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_dma_attach *m = msg;
	struct sio_channel *c = sio_obj_find(rq, SIO_KIND_DMA, m->channel, true);
	struct sio_range *g = (struct sio_range *)rq->obj;
	struct sio_evt_dma_attach *evt = answer;
	struct sio_obj *target;
	int slot, error = IS_ERR(c) ? PTR_ERR(c) : sio_check_owner(rq, &c->o);

	if (error)
		return error;
	target = find_target(rq, m, c);
	slot = IS_ERR(target) ? PTR_ERR(target) : free_slot(rq, c);
	if (slot < 0)
		return slot;
	if (!target->reach)
		target->reach = reach_new(target);
	if (!target->reach)
		return -ENOMEM;
	g->channel = c;
	g->of = target;
	g->offset = m->offset;
	g->o.length = m->length;
	g->o.access = m->access;
	g->slot = slot;
	list_add_tail(&g->of_target, &target->reach->ranges);
	mutex_lock(&c->lock);
	c->slot[slot] = g;
	mutex_unlock(&c->lock);
	evt->slot = slot;
	return 0;
}
