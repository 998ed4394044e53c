// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device Lending: a borrowed function in this host's PCI tree, made by smartio_lend.ko. This file
 * knows what its parts are, and who owns them: its BARs are maps, its vectors interrupts. Drivers
 * bind and unbind without sio.lock, because that may take as long as they like. Meanwhile the
 * objects that the function consists of stay: the shadow counts in their refs.
 */
#include <linux/completion.h>
#include <linux/iommu.h>

#include "adapter.h"
#include "lend.h"

#define SHADOW_MAX_MS 60000 /* half of what the kernel calls a hung task */
#define PARTS (SIO_DEVICE_BARS + SIO_SHADOW_VECTORS + 1)

/* o.address: its place, as of ADAPTER. */
struct sio_shadow {
	struct sio_obj o;
	struct smartio_shadow *made; /* NULL: not yet, or it has gone */
	struct sio_obj *part[PARTS]; /* that it counts in the refs of */
	unsigned int n_parts;
	u64 bar_bytes[SIO_DEVICE_BARS]; /* that something is behind, of each; not the table's */
	u32 timeout_ms;			/* that its driver waits for configuration space */
	bool leaving;			/* @leave is about to run, or has run */
	struct work_struct leave;
	struct completion gone;
};

static const struct smartio_lend_ops *lend; /* guarded by sio.lock; stays while there are shadows */

int smartio_lend_register(const struct smartio_lend_ops *ops)
{
	int error = 0;

	mutex_lock(&sio.lock);
	if (lend)
		error = -EBUSY;
	else
		lend = ops;
	mutex_unlock(&sio.lock);
	return error;
}
EXPORT_SYMBOL_GPL(smartio_lend_register);

void smartio_lend_unregister(const struct smartio_lend_ops *ops)
{
	mutex_lock(&sio.lock);
	lend = NULL;
	mutex_unlock(&sio.lock);
}
EXPORT_SYMBOL_GPL(smartio_lend_unregister);

static int not_loaded(struct sio_request *rq)
{
	return sio_fail(rq, -EOPNOTSUPP, "smartio_lend.ko is not loaded: modprobe smartio_lend");
}

bool sio_shadow_in_use(const struct sio_obj *o)
{
	return ((const struct sio_shadow *)o)->made;
}

void sio_shadow_interrupt(struct sio_shadow *s, unsigned int vector)
{
	lend->interrupt(s->made, vector);
}

u32 sio_shadow_name(const struct sio_shadow *s, u64 *ret_id, u64 *ret_owner)
{
	*ret_id = s->o.id;
	*ret_owner = s->o.owner->o.id;
	return s->timeout_ms;
}

bool sio_shadow_leaves(const struct sio_shadow *s)
{
	return READ_ONCE(s->leaving);
}

int sio_shadow_reopen(struct sio_request *rq, u64 id)
{
	struct sio_shadow *s = sio_obj_find(rq, SIO_KIND_SHADOW, id, true);

	if (IS_ERR(s))
		return PTR_ERR(s);
	sio_asks_repeat(s);
	return 0;
}

/* ---- parts ---- */

static void take_part(struct sio_shadow *s, struct sio_obj *o)
{
	o->refs++;
	s->part[s->n_parts++] = o;
}

static void put_parts(struct sio_shadow *s)
{
	while (s->n_parts) {
		struct sio_obj *o = s->part[--s->n_parts];

		if (o->kind == SIO_KIND_MEM)
			((struct sio_mem *)o)->filled = false;
		sio_obj_unref(o);
	}
}

static void unchain(struct sio_shadow *s)
{
	for (unsigned int i = 0; i < s->n_parts; i++)
		if (s->part[i]->kind == SIO_KIND_IRQ)
			sio_irq_unchain((struct sio_irq *)s->part[i], s);
	synchronize_rcu();
}

/* Vectors are in their order behind the BARs. */
static int chain(struct sio_shadow *s)
{
	unsigned int vector = 0;
	int error = 0;

	for (unsigned int i = 0; i < s->n_parts && !error; i++)
		if (s->part[i]->kind == SIO_KIND_IRQ)
			error = sio_irq_chain((struct sio_irq *)s->part[i], s, vector++);
	return error;
}

/* ---- going ---- */

/* Its driver may need interrupts until it has gone. */
static void unplug(struct sio_shadow *s)
{
	lend->del(s->made);
	mutex_lock(&sio.lock);
	unchain(s);
	lend->free(s->made);
	s->made = NULL;
	module_put(lend->owner);
}

static void shadow_gone(struct work_struct *work)
{
	struct sio_shadow *s = container_of(work, struct sio_shadow, leave);

	unplug(s);
	put_parts(s);
	complete_all(&s->gone);
	sio_obj_unref(&s->o);
	sio_fall();
	mutex_unlock(&sio.lock);
}

/* Its driver is unbound, by and by. */
static void leave(struct sio_obj *o)
{
	struct sio_shadow *s = (struct sio_shadow *)o;

	if (!s->made || s->leaving)
		return;
	WRITE_ONCE(s->leaving, true);
	sio_asks_leave();
	o->refs++;
	queue_work(system_long_wq, &s->leave);
}

/*
 * The driver will give memory back without having stopped the device, which may be at work all the
 * same: first it must not reach this host any more.
 */
static void lose(struct sio_shadow *s)
{
	struct sio_obj *o;

	lend->lost(s->made);
	sio_asks_lose(s);
	list_for_each_entry(o, &s->o.owner->objects, of_owner)
		if (o->kind == SIO_KIND_MEM &&
		    (((struct sio_mem *)o)->all_ram || ((struct sio_mem *)o)->aperture))
			sio_grants_cut(o);
}

void sio_shadows_lose(const struct sio_obj *map)
{
	struct sio_obj *o;
	unsigned long id;

	xa_for_each(&sio.objects, id, o) {
		struct sio_shadow *s = (struct sio_shadow *)o;

		if (o->kind != SIO_KIND_SHADOW || !s->made)
			continue;
		for (unsigned int i = 0; i < s->n_parts; i++)
			if (s->part[i] == map) {
				lose(s);
				leave(o);
			}
	}
}

void smartio_shadow_cut(struct sio_shadow *s)
{
	mutex_lock(&sio.lock);
	if (s->made) {
		lose(s);
		leave(&s->o);
	}
	mutex_unlock(&sio.lock);
}
EXPORT_SYMBOL_GPL(smartio_shadow_cut);

static void shadow_end(struct sio_obj *o)
{
	put_parts((struct sio_shadow *)o);
}

const struct sio_kind sio_kind_shadow = {
	.name = "shadow",
	.size = sizeof(struct sio_shadow),
	.end = shadow_end,
	.leave = leave,
};

int sio_op_shadow_del(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_shadow_del *m = msg;
	struct sio_shadow *s;
	int error;

	if (!lend)
		return not_loaded(rq);
	s = sio_obj_find(rq, SIO_KIND_SHADOW, m->id, false);
	if (IS_ERR(s))
		return PTR_ERR(s);
	error = sio_check_owner(rq, &s->o);
	if (error)
		return error;
	if (s->o.refs && !s->leaving)
		return sio_fail(rq, -EBUSY, "shadow %#llx is being made or ended", s->o.id);
	if (m->h.flags & SIO_SHADOW_LOST && s->made)
		lose(s);
	leave(&s->o);
	s->o.refs++;
	mutex_unlock(&sio.lock);
	error = wait_for_completion_killable(&s->gone);
	mutex_lock(&sio.lock);
	sio_obj_unref(&s->o);
	if (error)
		return sio_fail(rq, -EINTR, "its driver has not released it yet");
	if (!s->o.refs)
		sio_obj_end(&s->o);
	return 0;
}

/* ---- SHADOW ---- */

static int check(struct sio_request *rq, const struct sio_req_shadow *m)
{
	if (!lend)
		return not_loaded(rq);
	if (m->timeout_ms > SHADOW_MAX_MS)
		return sio_fail(rq, -EINVAL, "timeout_ms %u, %d at most is right", m->timeout_ms,
				SHADOW_MAX_MS);
	if (m->vectors > SIO_SHADOW_VECTORS)
		return sio_fail(rq, -EINVAL, "%u vectors, %d at most are right", m->vectors,
				SIO_SHADOW_VECTORS);
	if (m->vectors ? m->table_bar >= SIO_DEVICE_BARS || !m->bar_map[m->table_bar]
		       : m->table_bar)
		return sio_fail(rq, -EINVAL, "the table of %u vectors in BAR %u, which is none",
				m->vectors, m->table_bar);
	/* The last address of all stands for a mapping that failed (DMA_MAPPING_ERROR). */
	if (!m->dma_length || m->dma_base > U64_MAX - m->dma_length ||
	    !PAGE_ALIGNED(m->dma_base | m->dma_length))
		return sio_fail(rq, -EINVAL,
				"window %#llx + %#llx, whole pages below the last are right",
				m->dma_base, m->dma_length);
	return 0;
}

/* The last entry of the window that @map has may lead further than that. */
static u64 reach_of(const struct sio_map *map)
{
	const struct smartio_adapter *a = map->v.o.adapter;
	struct smartio_bridge_info info = {};

	a->ops->info(a->bridge, &info);
	return round_up(map->v.o.length, max_t(u64, info.entry_size, PAGE_SIZE));
}

static int take_bar(struct sio_request *rq, struct sio_shadow *s, const struct sio_req_shadow *m,
		    unsigned int i, struct smartio_shadow_info *info)
{
	struct sio_map *map = sio_obj_find(rq, SIO_KIND_MAP, m->bar_map[i], true);
	u64 size = m->bar_size[i];
	int error;

	if (IS_ERR(map))
		return PTR_ERR(map);
	error = sio_check_owner(rq, &map->v.o);
	if (error)
		return error;
	if (map->dead || map->v.revoked)
		return sio_fail(rq, -ENETDOWN, "map %#llx leads nowhere any more", map->v.o.id);
	if (map->trigger || !is_power_of_2(size) || size < map->v.o.length || size > reach_of(map))
		return sio_fail(
			rq, -EINVAL,
			"BAR %u of %#llx bytes: a power of 2, of %#llx bytes that are mapped to %#llx that their window's entries lead to, is right",
			i, size, map->v.o.length, map->trigger ? 0 : reach_of(map));
	if (info->parent && info->parent != map->v.o.adapter->pdev)
		return sio_fail(rq, -EINVAL, "BAR %u is behind another adapter", i);
	if (m->bar_type[i] & ~(SIO_BAR_64 | SIO_BAR_PREFETCH) ||
	    (m->bar_type[i] & SIO_BAR_64 && (i + 1 == SIO_DEVICE_BARS || m->bar_map[i + 1])))
		return sio_fail(rq, -EINVAL, "BAR %u cannot be of type %#x", i, m->bar_type[i]);
	info->parent = map->v.o.adapter->pdev;
	info->bar[i] = (struct smartio_shadow_bar){map->v.phys, size, m->bar_type[i]};
	s->bar_bytes[i] = m->vectors && i == m->table_bar ? 0 : map->v.o.length;
	take_part(s, &map->v.o);
	return 0;
}

static int take_vector(struct sio_request *rq, struct sio_shadow *s, u64 id)
{
	struct sio_obj *irq = sio_obj_find(rq, SIO_KIND_IRQ, id, true);
	int error = IS_ERR(irq) ? PTR_ERR(irq) : sio_check_owner(rq, irq);

	if (!error)
		take_part(s, irq);
	return error;
}

static int take_aperture(struct sio_request *rq, struct sio_shadow *s,
			 const struct sio_req_shadow *m, struct smartio_shadow_info *info)
{
	struct sio_mem *mem = sio_obj_find(rq, SIO_KIND_MEM, m->aperture, true);
	int error = IS_ERR(mem) ? PTR_ERR(mem) : sio_check_owner(rq, &mem->o);

	if (error)
		return error;
	if (!mem->aperture || mem->o.length != m->dma_length ||
	    iommu_get_domain_for_dev(&info->parent->dev) != sio_aperture_domain(mem))
		return sio_fail(
			rq, -EINVAL,
			"memory %#llx of %#llx bytes is no aperture of %#llx bytes behind the adapter",
			mem->o.id, mem->o.length, m->dma_length);
	if (mem->filled)
		return sio_fail(rq, -EBUSY, "aperture %#llx is another shadow's", mem->o.id);
	mem->filled = true;
	info->domain = sio_aperture_domain(mem);
	info->io_base = mem->o.address;
	take_part(s, &mem->o);
	return 0;
}

static int take_parts(struct sio_request *rq, struct sio_shadow *s, const struct sio_req_shadow *m,
		      struct smartio_shadow_info *info)
{
	int error = 0;

	for (unsigned int i = 0; i < SIO_DEVICE_BARS && !error; i++)
		if (m->bar_map[i])
			error = take_bar(rq, s, m, i, info);
	for (unsigned int i = 0; i < m->vectors && !error; i++)
		error = take_vector(rq, s, m->irq[i]);
	if (!error && !info->parent)
		return sio_fail(rq, -EINVAL, "a device without BARs, at least one is right");
	return error || !m->aperture ? error : take_aperture(rq, s, m, info);
}

/* Into the tree, and its driver binds. Without sio.lock; with it on return. */
static int plug_in(struct sio_shadow *s, const struct smartio_shadow_info *info)
{
	struct smartio_shadow *made;
	u32 bdf = 0;
	int error;

	made = lend->add(info, &bdf);
	mutex_lock(&sio.lock);
	if (IS_ERR(made)) {
		module_put(lend->owner);
		return PTR_ERR(made);
	}
	s->made = made;
	s->o.address = bdf;
	error = chain(s);
	mutex_unlock(&sio.lock);
	if (error) {
		unplug(s);
		return error;
	}
	lend->start(made);
	mutex_lock(&sio.lock);
	return 0;
}

/* What it needs may have gone while its driver was bound. */
static bool is_whole(const struct sio_shadow *s)
{
	for (unsigned int i = 0; i < s->n_parts; i++)
		if (s->part[i]->kind == SIO_KIND_MAP && ((struct sio_map *)s->part[i])->v.revoked)
			return false;
	return s->o.state == SIO_STATE_LIVE;
}

int sio_op_shadow(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_shadow *m = msg;
	struct sio_shadow *s = (struct sio_shadow *)rq->obj;
	struct smartio_shadow_info info = {.class_revision = m->class_revision,
					   .vendor = m->vendor,
					   .device = m->device,
					   .subsys_vendor = m->subsys_vendor,
					   .subsys_device = m->subsys_device,
					   .vectors = m->vectors,
					   .table_bar = m->table_bar,
					   .port = m->timeout_ms ? s : NULL,
					   .dma_base = m->dma_base,
					   .dma_length = m->dma_length,
					   .peers = m->h.flags & SIO_SHADOW_PEERS};
	struct sio_evt_shadow *evt = answer;
	int error = check(rq, m);

	s->timeout_ms = m->timeout_ms;
	INIT_WORK(&s->leave, shadow_gone);
	init_completion(&s->gone);
	if (!error)
		error = take_parts(rq, s, m, &info);
	if (error)
		return error;
	if (!try_module_get(lend->owner))
		return sio_fail(rq, -EOPNOTSUPP, "smartio_lend.ko is being unloaded");
	s->o.refs++; /* it stays, whoever ends */
	pci_dev_get(info.parent);
	mutex_unlock(&sio.lock);
	error = plug_in(s, &info);
	pci_dev_put(info.parent);
	s->o.refs--;
	if (error)
		return sio_fail(rq, error, "the kernel does not take the device: %pe",
				ERR_PTR(error));
	if (!is_whole(s)) {
		leave(&s->o);
		sio_obj_falls(&s->o);
	}
	evt->bdf = s->o.address;
	return 0;
}

/* ---- SHADOW_PEER ---- */

static struct sio_shadow *find_made(struct sio_request *rq, u64 id)
{
	struct sio_shadow *s = sio_obj_find(rq, SIO_KIND_SHADOW, id, true);

	if (IS_ERR(s) || (s->made && !s->leaving))
		return s;
	return ERR_PTR(sio_fail(rq, -ENODEV, "shadow %#llx is being made or ended", id));
}

static u64 bytes_of_bar(const struct sio_shadow *s, u32 bar)
{
	return bar < SIO_DEVICE_BARS ? s->bar_bytes[bar] : 0;
}

int sio_op_shadow_peer(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_shadow_peer *m = msg;
	struct sio_shadow *s, *target;
	u64 most;
	int error;

	if (!lend)
		return not_loaded(rq);
	s = find_made(rq, m->id);
	target = IS_ERR(s) ? s : find_made(rq, m->target);
	if (IS_ERR(target))
		return PTR_ERR(target);
	error = sio_check_owner(rq, &s->o);
	if (error)
		return error;
	most = bytes_of_bar(target, m->bar);
	if (s == target || !m->length || m->length > most || !PAGE_ALIGNED(m->address | m->length))
		return sio_fail(
			rq, -EINVAL,
			"%#llx bytes of BAR %u of shadow %#llx for %#llx: whole pages of another one's, %#llx at most, are right",
			m->length, m->bar, m->target, m->id, most);
	error = lend->peer(s->made, target->made, m->bar, m->address, m->length);
	return error ? sio_fail(rq, error, "BAR %u of shadow %#llx for %#llx: %pe", m->bar,
				m->target, m->id, ERR_PTR(error))
		     : 0;
}
