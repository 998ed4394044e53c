// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups, of bridges that have them: what is written to a group the fabric copies to each
 * member. All are exact: each member has memory of its own, which is an object of memory like any;
 * or it is memory in a BAR. Who sends has a range of the window that leads to the group: an object
 * of memory, too, because the port has it so, but without pages. How large a group is, and who is
 * in it, the bridge knows, for members are of all hosts.
 */
#include <linux/io.h>

#include "channel.h"

/* What a memory object is to a group. */
struct sio_group {
	u32 index;
	bool member;  /* else who sends */
	bool overlay; /* a member in a BAR */
	bool joined;  /* @handle is ours */
	u64 handle;
	struct sio_dma dma; /* a member as the bridge's function reaches it */
	bool held;	    /* @where is ours */
	bool dead;	    /* the bridge has gone */
	struct smartio_bridge_map where;
};

static struct sio_group *group_of(const struct sio_obj *o)
{
	return o->kind == SIO_KIND_MEM ? ((const struct sio_mem *)o)->group : NULL;
}

bool sio_group_sends(const struct sio_obj *o)
{
	const struct sio_group *g = group_of(o);

	return g && !g->member;
}

bool sio_group_has_memory(const struct sio_obj *o)
{
	const struct sio_group *g = group_of(o);

	return !g || (g->member && !g->overlay);
}

u32 sio_group_listed(const struct sio_obj *o)
{
	const struct sio_group *g = group_of(o);

	return g->index | (g->member ? SIO_LIST_MEMBER : SIO_LIST_SENDER);
}

bool sio_group_is_reached(const struct sio_obj *o, bool in, u64 *ret)
{
	const struct sio_group *g = group_of(o);

	if (g->member)
		*ret = g->dma.address;
	return g->member ? in && g->joined : !in && g->held;
}

int sio_group_check(struct sio_request *rq, const struct sio_obj *o, u32 access)
{
	const struct sio_group *g = group_of(o);

	if (sio_group_has_memory(o))
		return 0;
	if (g->overlay)
		return sio_fail(
			rq, -EINVAL,
			"memory %#llx is a group's member in BAR view %#llx, which is right", o->id,
			o->target ? o->target->id : 0);
	if (g->dead)
		return sio_fail(rq, -ENETDOWN, "memory %#llx leads nowhere any more", o->id);
	if (access != SIO_ACCESS_WRITE)
		return sio_fail(rq, -EINVAL,
				"access %#x to a multicast group, %d (writing) is right", access,
				SIO_ACCESS_WRITE);
	return 0;
}

/* ---- who sends ---- */

bool sio_group_map(struct sio_reach *r, const struct sio_mem *m)
{
	const struct sio_group *g = m->group;

	if (g->dead)
		return true; /* nothing is copied there */
	if (page_is_ram(PHYS_PFN(g->where.at)))
		r->ram = memremap(g->where.at, m->o.length, MEMREMAP_WB);
	else
		r->io = ioremap(g->where.at, m->o.length);
	return r->io || r->ram;
}

bool sio_group_is_there(const struct sio_obj *o)
{
	return !READ_ONCE(group_of(o)->dead);
}

u32 sio_group_missed(const struct sio_obj *o)
{
	const struct smartio_adapter *a = o->adapter;
	u32 missed = 0;

	if (sio_group_is_there(o))
		a->ops->group_missed(a->bridge, group_of(o)->index, false, &missed);
	return missed;
}

/* Without a wait: who asks for it has locks. */
int sio_group_push(const struct sio_obj *o, u32 *ret_missed)
{
	const struct smartio_adapter *a = o->adapter;

	*ret_missed = 0;
	if (!sio_group_is_there(o))
		return -ENETDOWN;
	return a->ops->group_missed(a->bridge, group_of(o)->index, true, ret_missed);
}

void sio_group_settle(const struct sio_obj *o)
{
	if (sio_group_is_there(o))
		sio_settle_group(o->adapter, group_of(o)->index);
}

/* Channels first, under whose lock a piece may be on its way. */
static void send_no_more(struct sio_obj *o)
{
	const struct smartio_adapter *a = o->adapter;
	struct sio_group *g = group_of(o);

	WRITE_ONCE(g->dead, true);
	sio_dmamaps_cut(o);
	sio_ranges_settle(o);
	sio_ranges_lose(o);
	if (g->held)
		a->ops->unmap(a->bridge, g->where.handle);
	g->held = false;
}

/* ---- members ---- */

/* False: a write may still come. */
static bool leave(struct sio_group *g, const struct smartio_adapter *a)
{
	if (g->joined && a->ops->leave(a->bridge, g->handle) && !a->going)
		return false;
	g->joined = false;
	sio_dma_unmap(&g->dma);
	return true;
}

void sio_group_leave(struct sio_obj *o)
{
	struct sio_group *g = group_of(o);

	if (g && g->member && o->adapter && !leave(g, o->adapter))
		sio_keep(o);
}

void sio_groups_cut(const struct sio_obj *target)
{
	struct sio_obj *o;
	unsigned long id;

	xa_for_each(&sio.objects, id, o)
		if (o->target == target)
			sio_group_leave(o);
}

void sio_group_lose(struct sio_obj *o)
{
	if (group_of(o)->member)
		sio_group_leave(o);
	else
		send_no_more(o);
}

void sio_group_end(struct sio_obj *o)
{
	if (group_of(o) && o->adapter)
		sio_group_lose(o);
}

/* ---- MCAST ---- */

static int check(struct sio_request *rq, const struct sio_req_mcast *m, u32 groups)
{
	bool about_member = m->what == SIO_MCAST_PUBLISH || m->what == SIO_MCAST_UNPUBLISH;
	bool joins = m->what == SIO_MCAST_JOIN;

	if (m->group >= groups)
		return sio_fail(rq, -EINVAL, "group %u, 0 to %u are right", m->group, groups - 1);
	if (m->what < SIO_MCAST_JOIN || m->what > SIO_MCAST_UNPUBLISH)
		return sio_fail(rq, -EINVAL, "what %u, %d to %d are right", m->what, SIO_MCAST_JOIN,
				SIO_MCAST_UNPUBLISH);
	if ((m->target != 0) != about_member)
		return sio_fail(rq, -EINVAL, "target %#llx, %s is right for what %u", m->target,
				about_member ? "a member" : "0", m->what);
	if ((m->length != 0) != joins)
		return sio_fail(rq, -EINVAL, "length %llu, %s is right", m->length,
				joins ? "at least 1" : "0");
	if (m->mode > SIO_MCAST_EXACT || (m->mode && !joins))
		return sio_fail(rq, -EINVAL, "mode %u, 0 to %d are right of JOIN", m->mode,
				SIO_MCAST_EXACT);
	if (!m->source_kind && (m->source || m->offset))
		return sio_fail(rq, -EINVAL,
				"source %#llx and offset %#llx without a source_kind, 0 is right",
				m->source, m->offset);
	if (m->source_kind && !joins)
		return sio_fail(rq, -EINVAL, "source_kind %u, 0 is right but for JOIN",
				m->source_kind);
	if (m->mode == SIO_MCAST_FUSED)
		return sio_fail(rq, -EOPNOTSUPP, "mode %u, groups here have %d", m->mode,
				SIO_MCAST_EXACT);
	return 0;
}

/* The view that a member is to lie in, or an error. */
static struct sio_obj *find_view(struct sio_request *rq, const struct sio_req_mcast *m)
{
	struct sio_obj *o;
	int error;

	if (m->source_kind != SIO_KIND_BAR)
		return ERR_PTR(sio_fail(
			rq, -EINVAL, "source kind %u, 0 (memory is made) or %d (BAR view) is right",
			m->source_kind, SIO_KIND_BAR));
	o = sio_obj_find(rq, SIO_KIND_BAR, m->source, true);
	if (IS_ERR(o))
		return o;
	if (((const struct sio_view *)o)->revoked || !o->dev->pdev)
		error = sio_fail(rq, -ENODEV, "the pages of BAR view %#llx are gone", o->id);
	else if (!(o->access & SIO_ACCESS_WRITE))
		error = sio_fail(rq, -EACCES, "BAR view %#llx is read-only", o->id);
	else if (!sio_bar_is_memory(o))
		error = sio_fail(
			rq, -EACCES,
			"BAR view %#llx is of registers or doorbells: it is in no prefetchable BAR; memory of a device is right",
			o->id);
	else
		error = sio_check_range(rq, "the BAR view", m->offset, m->length, o->length);
	return error ? ERR_PTR(error) : o;
}

/* The member's bytes get an address of the bridge's function. */
static int place(struct sio_request *rq, struct sio_mem *mem, const struct sio_req_mcast *m)
{
	struct device *dev = &mem->o.adapter->pdev->dev;
	struct sio_group *g = mem->group;
	struct sio_obj *view;
	int error;

	if (!m->source_kind) {
		error = sio_mem_make(rq, mem, m->length, sio_iommu_of(dev) == SIO_IOMMU_OFF);
		return error ? error
			     : sio_dma_map(rq, &g->dma, dev, &mem->o, 0, mem->o.length,
					   SIO_ACCESS_WRITE);
	}
	view = find_view(rq, m);
	if (IS_ERR(view))
		return PTR_ERR(view);
	sio_obj_tie(&mem->o, NULL, view);
	rq->unseen = g->overlay = true;
	mem->o.access = SIO_ACCESS_WRITE;
	mem->o.address = view->address + m->offset;
	mem->o.length = m->length;
	return sio_dma_map(rq, &g->dma, dev, view, m->offset, m->length, SIO_ACCESS_WRITE);
}

static int join(struct sio_request *rq, struct sio_mem *mem, const struct sio_req_mcast *m)
{
	const struct smartio_adapter *a = mem->o.adapter;
	struct sio_group *g = mem->group;
	struct smartio_bridge_group now = {};
	int error;

	g->member = true;
	error = place(rq, mem, m);
	if (error)
		return error;
	error = a->ops->join(a->bridge, m->group, g->dma.address, mem->o.length, &g->handle);
	g->joined = !error;
	if (error == -ENOSPC)
		return sio_fail_exhausted(rq, error, SIO_OUT_OF_GRANTS,
					  "adapter %u has no row left for members of groups",
					  a->index);
	if (error != -ERANGE)
		return error ? sio_fail(rq, error, "the bridge of adapter %u says %pe", a->index,
					ERR_PTR(error))
			     : 0;
	a->ops->group(a->bridge, m->group, &now);
	return sio_fail(rq, error, "%llu bytes wanted, group %u was made with %llu", mem->o.length,
			m->group, now.size);
}

static int connect(struct sio_request *rq, struct sio_mem *mem, const struct sio_req_mcast *m,
		   u64 alignment)
{
	const struct smartio_adapter *a = mem->o.adapter;
	struct smartio_bridge_group now = {};
	struct smartio_bridge_info info = {};
	struct sio_group *g = mem->group;
	int error;

	a->ops->group(a->bridge, m->group, &now);
	if (!now.open || !now.size)
		return sio_fail(rq, -ENOENT, "nobody published group %u", m->group);
	rq->unseen = true;
	mem->o.access = SIO_ACCESS_WRITE;
	mem->o.length = round_up(now.size, alignment);
	if (mem->o.length < now.size) /* other hosts say how much that is */
		return sio_fail(rq, -ERANGE, "group %u says that it has %#llx bytes", m->group,
				now.size);
	error = a->ops->map_group(a->bridge, m->group, mem->o.length, &g->where);
	g->held = !error;
	mem->o.address = g->where.at;
	if (!error)
		return 0;
	a->ops->info(a->bridge, &info);
	return sio_fail_exhausted(
		rq, error,
		info.entry_size * info.entries_free < mem->o.length ? SIO_OUT_OF_LUT_ENTRIES
								    : SIO_OUT_OF_WINDOW,
		"adapter %u: %#llx bytes wanted for group %u, %u of %u entries of %#llx bytes are free",
		a->index, mem->o.length, m->group, info.entries_free, info.entries_total,
		info.entry_size);
}

static void answer(const struct sio_mem *mem, struct sio_evt_mcast *evt)
{
	const struct smartio_adapter *a = mem->o.adapter;
	struct smartio_bridge_group now = {};

	a->ops->group(a->bridge, mem->group->index, &now);
	evt->id = mem->o.id;
	evt->size = mem->o.length;
	evt->address = mem->o.address;
	evt->mode = SIO_MCAST_EXACT;
	evt->members = now.members;
}

static int publish(struct sio_request *rq, const struct sio_req_mcast *m, struct smartio_adapter *a,
		   struct sio_evt_mcast *evt)
{
	struct sio_obj *o = sio_obj_find(rq, SIO_KIND_MEM, m->target, true);
	const struct sio_group *g = IS_ERR(o) ? NULL : group_of(o);
	int error = IS_ERR(o) ? PTR_ERR(o) : sio_check_owner(rq, o);

	if (error)
		return error;
	if (!g || !g->member || g->index != m->group || o->adapter != a)
		return sio_fail(rq, -EINVAL, "memory %#llx is no member of group %u of adapter %u",
				o->id, m->group, m->adapter);
	if (!g->joined || o->kept)
		return sio_fail(
			rq, -ENODEV,
			"the pages of the BAR that member %#llx lay in are gone, or it has left the group",
			o->id);
	a->ops->open(a->bridge, g->handle, m->what == SIO_MCAST_PUBLISH);
	answer((const struct sio_mem *)o, evt);
	return 0;
}

static int make(struct sio_request *rq, const struct sio_req_mcast *m, struct smartio_adapter *a,
		const struct smartio_bridge_info *info)
{
	struct sio_mem *mem = (struct sio_mem *)rq->obj;

	mem->group = kzalloc(sizeof(*mem->group), GFP_KERNEL_ACCOUNT);
	if (!mem->group)
		return -ENOMEM;
	mem->group->index = m->group;
	sio_obj_of_adapter(&mem->o, a, 0);
	return m->what == SIO_MCAST_JOIN ? join(rq, mem, m) : connect(rq, mem, m, info->alignment);
}

int sio_op_mcast(struct sio_request *rq, const void *msg, void *answer_to)
{
	const struct sio_req_mcast *m = msg;
	struct smartio_adapter *a = sio_adapter_find(rq, m->adapter);
	struct smartio_bridge_info info = {};
	int error;

	if (!a)
		return -ENODEV;
	a->ops->info(a->bridge, &info);
	if (!info.groups)
		return sio_fail(rq, -EOPNOTSUPP,
				"adapter %u has no multicast groups: its bridge offers none",
				a->index);
	error = check(rq, m, info.groups);
	if (error)
		return error;
	if (m->what == SIO_MCAST_PUBLISH || m->what == SIO_MCAST_UNPUBLISH)
		return publish(rq, m, a, answer_to);
	rq->obj = sio_obj_new(rq, SIO_KIND_MEM);
	if (IS_ERR(rq->obj))
		return PTR_ERR(rq->obj);
	error = make(rq, m, a, &info);
	if (!error)
		answer((const struct sio_mem *)rq->obj, answer_to);
	return sio_obj_made(rq, error);
}
