/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups and their members. The topology says which kind the groups of the cluster are.
 *
 * Fused: the members of a group, and those who send to it, have one memory. So a store through any
 * mapping is at all members at once and in order; and a member's local stores are seen by the
 * others, which hardware does not do. The memory is made by the first member, and is freed with the
 * last reference.
 *
 * Exact: each member has memory of its own, and a sender has addresses alone: see fanout.c. A
 * member may be an overlay: memory in a device's BAR instead of RAM. It refers to the view that
 * contains it, and ends before that; whatever takes the view's pages away cuts it (device/cut.c).
 */
#include "emu/memory/memory.h"

static struct emu_group *find_group(struct emu_request *rq, const struct sio_req_mcast *m)
{
	if (m->group < EMU_GROUPS)
		return &rq->host->room->group[m->group];
	sio_fail(&rq->err, -EINVAL, "MCAST: group %u, 0 to %u are right", m->group, EMU_GROUPS - 1);
	return NULL;
}

static uint32_t mode_of(const struct emu_request *rq)
{
	return rq->host->room->topo->exact_multicast ? SIO_MCAST_EXACT : SIO_MCAST_FUSED;
}

/* Groups of the cluster are of one kind. */
static int check_mode(struct emu_request *rq, const struct sio_req_mcast *m)
{
	uint32_t has = mode_of(rq);

	if (m->mode && m->mode != has)
		return sio_fail(&rq->err, -EOPNOTSUPP, "MCAST: mode %u, groups here have %u",
				m->mode, has);
	return 0;
}

static int check_what(struct emu_request *rq, const struct sio_req_mcast *m)
{
	bool about_member = m->what == SIO_MCAST_PUBLISH || m->what == SIO_MCAST_UNPUBLISH;

	if (m->what < SIO_MCAST_JOIN || m->what > SIO_MCAST_UNPUBLISH)
		return sio_fail(&rq->err, -EINVAL, "MCAST: what %u, %d to %d are right", m->what,
				SIO_MCAST_JOIN, SIO_MCAST_UNPUBLISH);
	if ((m->target != 0) != about_member)
		return sio_fail(&rq->err, -EINVAL,
				"MCAST: target %#" PRIx64 ", %s is right for what %u",
				(uint64_t)m->target, about_member ? "a member" : "0", m->what);
	if ((m->length != 0) != (m->what == SIO_MCAST_JOIN))
		return sio_fail(&rq->err, -EINVAL, "MCAST: length %" PRIu64 ", %s is right",
				(uint64_t)m->length,
				m->what == SIO_MCAST_JOIN ? "at least 1" : "0");
	if (m->mode > SIO_MCAST_EXACT || (m->mode && m->what != SIO_MCAST_JOIN))
		return sio_fail(&rq->err, -EINVAL, "MCAST: mode %u, 0 to %d are right of JOIN",
				m->mode, SIO_MCAST_EXACT);
	if (!m->source_kind && (m->source || m->offset))
		return sio_fail(&rq->err, -EINVAL,
				"MCAST: source %#" PRIx64 " and offset %#" PRIx64
				" without a source_kind, 0 is right",
				(uint64_t)m->source, (uint64_t)m->offset);
	if (m->source_kind && m->what != SIO_MCAST_JOIN)
		return sio_fail(&rq->err, -EINVAL, "MCAST: source_kind %u, 0 is right but for JOIN",
				m->source_kind);
	return check_mode(rq, m);
}

/* Memory that its borrowers may write; what a write to other pages does is the device's to say. */
static int check_view(struct emu_request *rq, const struct emu_bar *b)
{
	if (b->o.state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"MCAST: owner %#" PRIx64 " of BAR view %#" PRIx64 " has ended",
				b->o.owner->o.id, b->o.id);
	if (emu_bar_check(rq, "MCAST", &b->o) < 0)
		return rq->err.code;
	if (b->run->pages->kind != EMU_PAGE_MEMORY)
		return sio_fail(&rq->err, -EACCES,
				"MCAST: BAR view %#" PRIx64
				" is of registers or doorbells; memory of a device is right",
				b->o.id);
	if (!(b->access & SIO_ACCESS_WRITE))
		return sio_fail(&rq->err, -EACCES, "MCAST: BAR view %#" PRIx64 " is read-only",
				b->o.id);
	return 0;
}

/* *ret: the view that JOIN is to lay the member on; NULL: on none. */
static int find_overlay(struct emu_request *rq, const struct sio_req_mcast *m, struct emu_bar **ret)
{
	*ret = NULL;
	if (!m->source_kind)
		return 0;
	if (m->source_kind != SIO_KIND_BAR)
		return sio_fail(
			&rq->err, -EINVAL,
			"MCAST: source kind %u, 0 (memory is made) or %d (BAR view) is right",
			m->source_kind, SIO_KIND_BAR);
	if (mode_of(rq) != SIO_MCAST_EXACT)
		return sio_fail(
			&rq->err, -EOPNOTSUPP,
			"MCAST: the members of a fused group have one memory: overlays are of "
			"exact groups");
	*ret = emu_object_find_any(rq, SIO_KIND_BAR, m->source);
	if (!*ret || check_view(rq, *ret) < 0)
		return rq->err.code;
	return emu_range_check(rq, "MCAST", &(*ret)->o, m->offset, m->length);
}

/*
 * Members and senders of a group have it at addresses of their hosts' RAM. A member in a BAR takes
 * none, so its own host's RAM is no limit; but a group that is larger than any host's RAM would be
 * one that nobody can write to.
 */
static int check_overlay_fits(struct emu_request *rq, const struct sio_req_mcast *m)
{
	const struct sio_topology *t = rq->host->room->topo;
	const struct sio_topo_host *most = &t->host[0];

	for (unsigned i = 1; i < t->n_hosts; i++)
		if (t->host[i].ram_size > most->ram_size)
			most = &t->host[i];
	if (m->length <= most->ram_size)
		return 0;
	return sio_fail_exhausted(&rq->err, -ENOSPC, SIO_OUT_OF_RAM,
				  "MCAST: group %u of %" PRIu64
				  " bytes: no host has as much RAM; at most %" PRIu64
				  ", as %s has, are right",
				  m->group, (uint64_t)m->length, most->ram_size, most->name);
}

/* The group's memory, made now if there is none. */
static int get_memory(struct emu_request *rq, const struct sio_req_mcast *m, struct emu_group *g,
		      uint64_t *ret_size)
{
	struct emu_room *r = rq->host->room;
	uint64_t size;
	int rc;

	if (!m->source_kind && m->length > rq->host->topo->ram_size)
		return sio_fail_exhausted(
			&rq->err, -ENOSPC, SIO_OUT_OF_RAM,
			"MCAST: %" PRIu64 " bytes wanted, %s has %" PRIu64 " in all",
			(uint64_t)m->length, rq->host->topo->name, rq->host->topo->ram_size);
	size = (m->length + EMU_PAGE - 1) & ~(EMU_PAGE - 1);
	if (g->users && size > g->mem.size)
		return sio_fail(&rq->err, -ERANGE,
				"MCAST: %" PRIu64 " bytes wanted, group %u was made with %" PRIu64,
				size, m->group, g->mem.size);
	*ret_size = size;
	if (g->users)
		return 0;
	if (m->source_kind && check_overlay_fits(rq, m) < 0)
		return rq->err.code;
	if (r->topo->exact_multicast) {
		g->mem = (struct emu_mem){.fd = -1, .size = size};
		return 0;
	}
	rc = r->ops->mem_new(r->ctx, "group", size, &g->mem);
	return rc < 0 ? sio_fail(&rq->err, rc, "MCAST: no file for %" PRIu64 " bytes", size) : 0;
}

static void put_memory(struct emu_room *r, struct emu_group *g)
{
	if (g->users)
		return;
	if (g->mem.data)
		r->ops->mem_free(r->ctx, &g->mem);
	memset(&g->mem, 0, sizeof(g->mem));
}

static int take_memory(struct emu_request *rq, struct emu_ram *ram, uint64_t size)
{
	struct emu_room *r = rq->host->room;
	int rc;

	if (ram->member && r->topo->exact_multicast) {
		rc = r->ops->mem_new(r->ctx, "member", size, &ram->mem);
		return rc < 0 ? sio_fail(&rq->err, rc, "MCAST: no file for %" PRIu64 " bytes", size)
			      : 0;
	}
	ram->mem = ram->group->mem;
	ram->mem.size = size;
	return 0;
}

static void give_memory(struct emu_ram *ram)
{
	struct emu_room *r = ram->o.host->room;

	/* An overlay has none of its own: that of its view. */
	if (ram->mem.data && ram->mem.data != ram->group->mem.data)
		r->ops->mem_free(r->ctx, &ram->mem);
}

/* A place in the host's map for @size bytes of the group's, or a member's own, memory. */
static int place(struct emu_request *rq, struct emu_ram *ram, uint64_t size)
{
	struct emu_host *h = rq->host;
	struct sio_region region = {.size = size, .kind = SIO_KIND_MEM, .object = ram};
	int rc = emu_ram_place(rq, size, EMU_PAGE, SIO_RANGE_ANYWHERE, &ram->address);

	if (rc < 0)
		return rc;
	region.base = ram->address;
	rc = sio_addrmap_add(&h->map, &region, &rq->err);
	if (rc < 0)
		goto free_place;
	rc = take_memory(rq, ram, size);
	if (rc < 0)
		goto unmap;
	if (!ram->sender)
		rc = emu_check_mem(h, ram->o.id, ram->address, size, ram->mem.data);
	if (rc < 0)
		goto give;
	return 0;

give:
	give_memory(ram);
unmap:
	sio_addrmap_remove(&h->map, ram->address);
free_place:
	sio_range_free(&h->ram, ram->address);
	return rc;
}

static void lay_over(struct emu_ram *ram, struct emu_bar *b, uint64_t offset, uint64_t size)
{
	ram->overlay = b;
	ram->overlay_offset = offset;
	ram->is_overlay = true;
	ram->mem = (struct emu_mem){.fd = -1, .size = size};
	ram->address = emu_source_physical(&b->o, offset);
	ram->o.rank = EMU_RANK_SENDER;
	emu_object_ref(&b->o);
}

static int enter(struct emu_request *rq, const struct sio_req_mcast *m, struct emu_group *g,
		 uint64_t size, struct emu_bar *overlay)
{
	struct emu_ram *ram = emu_object_new(rq, SIO_KIND_MEM, sizeof(*ram), 0);
	struct sio_evt_mcast evt;
	int rc = 0;

	if (!ram)
		return rq->err.code;
	ram->group = g;
	ram->member = m->what == SIO_MCAST_JOIN;
	ram->sender = !ram->member && mode_of(rq) == SIO_MCAST_EXACT;
	ram->adapter = m->adapter;
	if (overlay)
		lay_over(ram, overlay, m->offset, size);
	else
		rc = place(rq, ram, size);
	if (rc < 0) {
		emu_object_drop(&ram->o);
		return rc;
	}
	g->users++;
	g->members += ram->member;
	if (ram->member)
		DL_APPEND2(g->member, ram, group_prev, group_next);
	memset(&evt, 0, sizeof(evt));
	evt.id = ram->o.id;
	evt.size = size;
	evt.address = ram->address;
	evt.mode = mode_of(rq);
	evt.members = g->members;
	emu_answer(rq, &evt, sizeof(evt), &ram->mem.fd, !ram->sender && !overlay);
	return 0;
}

static void set_published(struct emu_ram *ram, bool on)
{
	if (ram->published == on)
		return;
	ram->published = on;
	ram->group->published += on ? 1 : -1;
}

static int publish(struct emu_request *rq, const struct sio_req_mcast *m, struct emu_group *g)
{
	struct emu_ram *ram = emu_object_find(rq, SIO_KIND_MEM, m->target);
	struct sio_evt_mcast evt;

	if (!ram)
		return rq->err.code;
	if (ram->group != g || !ram->member)
		return sio_fail(&rq->err, -EINVAL,
				"MCAST: memory %#" PRIx64 " is no member of group %u", ram->o.id,
				m->group);
	if (ram->is_overlay && !ram->overlay)
		return sio_fail(&rq->err, -ENODEV,
				"MCAST: the pages of the BAR that member %#" PRIx64
				" was laid on are gone",
				ram->o.id);
	set_published(ram, m->what == SIO_MCAST_PUBLISH);
	memset(&evt, 0, sizeof(evt));
	evt.id = ram->o.id;
	evt.size = ram->mem.size;
	evt.address = ram->address;
	evt.mode = mode_of(rq);
	evt.members = g->members;
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}

int emu_op_mcast(struct emu_request *rq, const void *msg)
{
	const struct sio_req_mcast *m = msg;
	struct emu_group *g = find_group(rq, m);
	struct emu_adapter *a = NULL;
	struct emu_bar *overlay = NULL;
	uint64_t size = 0;
	int rc = g ? 0 : rq->err.code;

	/* Of an adapter that has gone a member may be left. */
	if (rc == 0 && m->what != SIO_MCAST_UNPUBLISH)
		rc = emu_adapter_use(rq, m->adapter, &a);
	if (rc == 0)
		rc = check_what(rq, m);
	if (rc == 0)
		rc = find_overlay(rq, m, &overlay);
	if (rc < 0)
		return rc;
	if (m->what == SIO_MCAST_PUBLISH || m->what == SIO_MCAST_UNPUBLISH)
		return publish(rq, m, g);
	if (m->what == SIO_MCAST_CONNECT) {
		if (g->published == 0)
			return sio_fail(&rq->err, -ENOENT, "MCAST: nobody published group %u",
					m->group);
		return enter(rq, m, g, g->mem.size, NULL);
	}
	rc = get_memory(rq, m, g, &size);
	if (rc < 0)
		return rc;
	rc = enter(rq, m, g, size, overlay);
	if (rc < 0)
		put_memory(rq->host->room, g);
	return rc;
}

void emu_overlay_cut(struct emu_ram *ram)
{
	if (!ram->overlay)
		return;
	set_published(ram, false);
	emu_object_unref(&ram->overlay->o);
	ram->overlay = NULL;
}

void *emu_member_data(const struct emu_ram *ram)
{
	const struct emu_bar *b = ram->overlay;

	if (!b)
		return ram->mem.data;
	return (uint8_t *)emu_bar_mem(b)->data + b->offset + ram->overlay_offset;
}

void emu_group_leave(struct emu_ram *ram)
{
	struct emu_group *g = ram->group;

	set_published(ram, false);
	emu_overlay_cut(ram);
	if (ram->member)
		DL_DELETE2(g->member, ram, group_prev, group_next);
	give_memory(ram);
	g->members -= ram->member;
	g->users--;
	put_memory(ram->o.host->room, g);
}

int emu_group_access(struct emu_request *rq, const char *what, const struct emu_object *target,
		     uint32_t access)
{
	const struct emu_ram *ram = (const struct emu_ram *)target;

	if (target->kind != SIO_KIND_MEM)
		return 0;
	if (ram->is_overlay)
		return sio_fail(&rq->err, -EINVAL,
				"%s: memory %#" PRIx64
				" is a group's overlay on a BAR, whose view is right",
				what, ram->o.id);
	if (!ram->sender || access == SIO_ACCESS_WRITE)
		return 0;
	return sio_fail(&rq->err, -EINVAL,
			"%s: access %#x to a multicast group, %d (writing) is right", what, access,
			SIO_ACCESS_WRITE);
}
