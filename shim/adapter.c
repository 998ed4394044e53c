// SPDX-License-Identifier: GPL-2.0-only
/* Adapters: bridges that were registered, by index, and their events. */
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "adapter.h"

static struct smartio_adapter *adapters[SIO_MAX_ADAPTERS];

u32 sio_adapters_count(void)
{
	u32 n = 0;

	for (u32 i = 0; i < SIO_MAX_ADAPTERS; i++)
		if (adapters[i] && adapters[i]->ops)
			n = i + 1;
	return n;
}

u64 sio_adapters_boot(void)
{
	for (u32 i = 0; i < SIO_MAX_ADAPTERS; i++)
		if (adapters[i] && adapters[i]->ops)
			return adapters[i]->boot;
	return 0;
}

struct smartio_adapter *sio_adapter_find(struct sio_request *rq, u32 index)
{
	if (index < SIO_MAX_ADAPTERS && adapters[index] && adapters[index]->ops)
		return adapters[index];
	sio_fail(rq, -ENODEV, "no adapter %u is here", index);
	return NULL;
}

struct smartio_adapter *sio_adapter_at(u32 index)
{
	return adapters[index] && adapters[index]->ops ? adapters[index] : NULL;
}

void sio_obj_of_adapter(struct sio_obj *o, struct smartio_adapter *a, u32 node)
{
	o->adapter = a;
	o->node = node;
	list_add_tail(&o->of_adapter, &a->objects);
}

void sio_adapters_report(void)
{
	for (u32 i = 0; i < SIO_MAX_ADAPTERS; i++)
		if (adapters[i] && adapters[i]->ops)
			sio_link_report(adapters[i]);
}

void sio_adapters_free(void)
{
	for (u32 i = 0; i < SIO_MAX_ADAPTERS; i++) {
		if (adapters[i]) {
			cancel_work_sync(&adapters[i]->work);
			cancel_delayed_work_sync(&adapters[i]->again);
		}
		kfree(adapters[i]);
	}
}

/* ---- ADAPTER ---- */

int sio_op_adapter(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_adapter *m = msg;
	struct smartio_adapter *a = sio_adapter_find(rq, m->index);
	struct smartio_bridge_info info = {};
	struct sio_evt_adapter *evt = answer;

	if (!a)
		return -ENODEV;
	a->ops->info(a->bridge, &info);
	evt->index = a->index;
	evt->node = a->node;
	evt->bdf = (u32)pci_domain_nr(a->pdev->bus) << 16 | pci_dev_id(a->pdev);
	evt->link_up = info.link_up;
	evt->link_width = info.link_width;
	evt->link_generation = info.link_generation;
	evt->programmed_by = info.programmed_by;
	evt->iommu = sio_iommu_of(&a->pdev->dev) != SIO_IOMMU_OFF;
	evt->window_base = info.window_base;
	evt->window_size = info.window_size;
	evt->entry_size = info.entry_size;
	evt->alignment = info.alignment;
	evt->entries_total = info.entries_total;
	evt->entries_free = info.entries_free;
	evt->requesters_total = info.requesters_total;
	evt->requesters_free = info.requesters_free;
	evt->dma_bits = info.dma_bits;
	evt->mcast_groups = info.groups;
	evt->capabilities = info.capabilities;
	evt->windows = info.windows;
	return 0;
}

/* ---- STATS ---- */

static void count(struct sio_evt_stats *evt, const char *name, u64 value)
{
	struct sio_counter *c = &evt->counter[evt->count];

	if (evt->count == SIO_COUNTER_MAX)
		return;
	strscpy(c->name, name, sizeof(c->name));
	c->value = value;
	evt->count++;
}

/* What the hardware counts, or else what it has reported; and what is in use. */
int sio_op_stats(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_stats *m = msg;
	struct smartio_bridge_info info = {};
	struct sio_evt_stats *evt = answer;
	struct smartio_adapter *a;

	if (m->kind != SIO_KIND_ADAPTER)
		return sio_fail(rq, -EINVAL, "kind %u, smartio.ko counts of %d (adapter) alone",
				m->kind, SIO_KIND_ADAPTER);
	a = sio_adapter_find(rq, m->id > U32_MAX ? U32_MAX : m->id);
	if (!a)
		return -ENODEV;
	if (a->ops->counters)
		evt->count = a->ops->counters(a->bridge, evt->counter, SIO_COUNTER_MAX);
	if (!a->ops->counters) {
		spin_lock_irq(&a->fault_lock);
		count(evt, "faults", a->faults);
		spin_unlock_irq(&a->fault_lock);
		count(evt, "path_changes", a->path_changes);
	}
	a->ops->info(a->bridge, &info);
	count(evt, "lut_total", info.entries_total);
	count(evt, "lut_used", info.entries_total - info.entries_free);
	count(evt, "requesters_total", info.requesters_total);
	count(evt, "requesters_used", info.requesters_total - info.requesters_free);
	return 0;
}

/* ---- faults ---- */

static u64 distance(u64 a, u64 b)
{
	return a < b ? b - a : a - b;
}

/* Where peers or this host's processors reach @o through the adapter; false: they do not. */
static bool is_reached(const struct sio_obj *o, bool in, u64 *ret)
{
	*ret = o->address;
	if (o->kind == SIO_KIND_MEM)
		return sio_group_is_reached(o, in, ret);
	return o->kind == (in ? SIO_KIND_GRANT : SIO_KIND_MAP);
}

/* Whose it was: the grant that begins nearest to it, or the map that it went through. */
static void find_nearest(const struct smartio_adapter *a, const struct sio_fault *f,
			 struct sio_evt_fault *evt)
{
	u64 at = f->in ? f->address : a->window_base + f->address, from, nearest = SIO_PORT_ANY;
	const struct sio_obj *o, *best = NULL;

	list_for_each_entry(o, &a->objects, of_adapter)
		if (is_reached(o, f->in, &from) &&
		    (!best || distance(from, at) < distance(nearest, at))) {
			best = o;
			nearest = from;
		}
	evt->nearest = nearest;
	evt->mapping = best ? best->id : 0;
	evt->h.owner = best ? best->owner->o.id : 0;
	evt->address = at;
}

static bool next_fault(struct smartio_adapter *a, struct sio_fault *ret)
{
	bool some;

	spin_lock_irq(&a->fault_lock);
	some = a->n_faults;
	if (some) {
		*ret = a->fault[0];
		memmove(a->fault, a->fault + 1, --a->n_faults * sizeof(*ret));
	}
	spin_unlock_irq(&a->fault_lock);
	return some;
}

static void report_faults(struct smartio_adapter *a)
{
	struct sio_fault f;

	while (next_fault(a, &f)) {
		struct sio_evt_fault evt = {.length = f.length,
					    .access = f.write ? SIO_FAULT_WRITE : SIO_FAULT_READ,
					    .node = f.node};

		find_nearest(a, &f, &evt);
		strscpy(evt.reason, f.reason, sizeof(evt.reason));
		sio_event(SIO_EV_FAULT, &evt, sizeof(evt));
	}
}

/* One that finds the queue full is like those in it, and they are notified. */
void smartio_bridge_fault(struct smartio_adapter *a, bool in, bool write, u32 node, u64 address,
			  u32 length, const char *reason)
{
	unsigned long flags;
	struct sio_fault *f;

	spin_lock_irqsave(&a->fault_lock, flags);
	a->faults++;
	if (a->n_faults < SIO_FAULTS) {
		f = &a->fault[a->n_faults++];
		*f = (struct sio_fault){.in = in,
					.write = write,
					.node = node,
					.address = address,
					.length = length};
		strscpy(f->reason, reason, sizeof(f->reason));
	}
	spin_unlock_irqrestore(&a->fault_lock, flags);
	schedule_work(&a->work);
}
EXPORT_SYMBOL_GPL(smartio_bridge_fault);

/* ---- coming and going ---- */

static void look(struct work_struct *work)
{
	struct smartio_adapter *a = container_of(work, struct smartio_adapter, work);

	mutex_lock(&sio.lock);
	if (a->ops) {
		if (xchg(&a->changed, false)) /* faults alone are no reason to ask all peers */
			sio_links_look(a);
		report_faults(a);
	}
	mutex_unlock(&sio.lock);
}

void smartio_bridge_changed(struct smartio_adapter *a)
{
	WRITE_ONCE(a->changed, true);
	schedule_work(&a->work);
}
EXPORT_SYMBOL_GPL(smartio_bridge_changed);

static struct smartio_adapter *place(u32 index)
{
	struct smartio_adapter *a = adapters[index];

	if (a)
		return a;
	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return NULL;
	a->index = index;
	INIT_LIST_HEAD(&a->objects);
	INIT_LIST_HEAD(&a->lines);
	init_rwsem(&a->views);
	INIT_WORK(&a->work, look);
	INIT_DELAYED_WORK(&a->again, sio_settle_again);
	spin_lock_init(&a->fault_lock);
	adapters[index] = a;
	return a;
}

/* One that there can be; what is wrong stands in the kernel's log. */
static int check(const struct smartio_bridge_info *info)
{
	if (info->pdev && info->index < SIO_MAX_ADAPTERS && info->boot && info->boot < 1 << 24 &&
	    info->alignment >= PAGE_SIZE && is_power_of_2(info->alignment) && info->groups <= 64)
		return 0;
	pr_err("smartio: a bridge of index %u (under %d is right), start %llu (1 to 2^24 - 1), alignment %#llx (a power of 2, %#lx at least), %u groups (64 at most)\n",
	       info->index, SIO_MAX_ADAPTERS, info->boot, info->alignment, PAGE_SIZE, info->groups);
	return -EINVAL;
}

static struct smartio_adapter *come(const struct smartio_bridge_ops *ops, void *bridge,
				    const struct smartio_bridge_info *info)
{
	struct smartio_adapter *a = place(info->index);

	if (!a)
		return ERR_PTR(-ENOMEM);
	if (a->ops)
		return ERR_PTR(-EBUSY);
	dma_set_max_seg_size(&info->pdev->dev, UINT_MAX);
	dma_set_seg_boundary(&info->pdev->dev, ULONG_MAX);
	a->bridge = bridge;
	a->pdev = info->pdev;
	a->node = info->node;
	a->boot = info->boot;
	a->window_base = info->window_base;
	a->n_faults = 0;
	sio_apertures_init(a, info->dma_bits);
	a->ops = ops;
	sio_links_look(a);
	return a;
}

struct smartio_adapter *smartio_bridge_register(const struct smartio_bridge_ops *ops, void *bridge)
{
	struct smartio_bridge_info info = {};
	struct smartio_adapter *a;
	int error;

	ops->info(bridge, &info);
	error = check(&info);
	if (error)
		return ERR_PTR(error);
	mutex_lock(&sio.lock);
	a = come(ops, bridge, &info);
	mutex_unlock(&sio.lock);
	return a;
}
EXPORT_SYMBOL_GPL(smartio_bridge_register);

/* What was made by it stays until it is ended, and leads nowhere. */
static void cut(struct sio_obj *o)
{
	if (o->kind == SIO_KIND_MAP)
		sio_map_lose((struct sio_map *)o);
	else if (o->kind == SIO_KIND_GRANT)
		sio_grant_cut((struct sio_grant *)o);
	else if (o->kind == SIO_KIND_MEM)
		sio_group_lose(o);
	else
		sio_requester_cut((struct sio_requester *)o);
	sio_keep_over(o); /* and what was kept may end */
}

/* First nobody here goes through it, then nobody comes in by it. */
void smartio_bridge_unregister(struct smartio_adapter *a)
{
	struct sio_obj *o, *next;

	mutex_lock(&sio.lock);
	sio_links_lose(a);
	a->going = true;
	list_for_each_entry_safe(o, next, &a->objects, of_adapter)
		cut(o);
	a->going = false;
	a->ops = NULL;
	a->unsettled = 0;
	sio_fall();
	mutex_unlock(&sio.lock);
	cancel_work_sync(&a->work);
	cancel_delayed_work_sync(&a->again);
}
EXPORT_SYMBOL_GPL(smartio_bridge_unregister);
