/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a host: a place in its physical map, and a file by which it is mapped. */
#include <stdio.h>

#include "emu/memory/memory.h"

#define HUGE_PAGE (2ull << 20)

static int check(struct emu_request *rq, const struct sio_req_alloc *m, uint64_t *ret_size,
		 uint64_t *ret_align)
{
	uint64_t unit = m->kind == SIO_ALLOC_HUGE ? HUGE_PAGE : EMU_PAGE, size;

	if (m->kind > SIO_ALLOC_CONTIGUOUS)
		return sio_fail(&rq->err, -EINVAL, "ALLOC: kind %u, 0 to %d are right", m->kind,
				SIO_ALLOC_CONTIGUOUS);
	if (m->access & ~(uint32_t)(SIO_ACCESS_READ | SIO_ACCESS_WRITE))
		return sio_fail(&rq->err, -EINVAL, "ALLOC: access %#x, 0 to 3 are right",
				m->access);
	if (m->align & (m->align - 1))
		return sio_fail(&rq->err, -EINVAL,
				"ALLOC: align %#" PRIx64 ", 0 or a power of 2 is "
				"right",
				(uint64_t)m->align);
	if (m->size == 0)
		return sio_fail(&rq->err, -EINVAL, "ALLOC: size 0");
	if (m->near_device && !emu_device_find(rq->host, m->near_device))
		return sio_fail(&rq->err, -ENODEV, "ALLOC: %s has no device %#" PRIx64,
				rq->host->topo->name, (uint64_t)m->near_device);
	if (m->size > rq->host->topo->ram_size || __builtin_add_overflow(m->size, unit - 1, &size))
		return sio_fail_exhausted(
			&rq->err, -ENOSPC, SIO_OUT_OF_RAM,
			"ALLOC: %" PRIu64 " bytes wanted, %s has %" PRIu64 " in all",
			(uint64_t)m->size, rq->host->topo->name, rq->host->topo->ram_size);
	*ret_size = size & ~(unit - 1);
	*ret_align = m->align > unit ? m->align : unit;
	return 0;
}

/* Bytes in the pool, or outside, whose owner has ended, and that a device or peer may write to. */
static uint64_t quarantined(const struct emu_host *h, bool pooled)
{
	const struct emu_object *o, *next;
	uint64_t bytes = 0;

	HASH_ITER (hh, h->objects, o, next) {
		const struct emu_ram *m = (const struct emu_ram *)o;

		if (o->kind == SIO_KIND_MEM && o->state == SIO_STATE_QUARANTINED &&
		    m->pooled == pooled)
			bytes += m->mem.size;
	}
	return bytes;
}

/* A part of the host's RAM that had no place for what was wanted. */
struct room {
	uint64_t size, free, largest, kept;
};

static struct room room_of(const struct emu_host *h, bool pooled)
{
	const struct sio_range *r = pooled ? &h->pool : &h->ram;

	if (!r->size)
		return (struct room){0};
	return (struct room){.size = r->size,
			     .free = sio_range_free_bytes(r),
			     .largest = sio_range_largest(r),
			     .kept = quarantined(h, pooled)};
}

/* There would be a place without what is in quarantine. */
static bool waits(const struct room *r, uint64_t size)
{
	return r->kept && size > r->free && size <= r->free + r->kept;
}

/* @in_pool: the pool was tried before. */
static int no_ram(struct emu_request *rq, uint64_t size, bool in_pool)
{
	const struct emu_host *h = rq->host;
	const struct room ram = room_of(h, false), pool = room_of(h, true);
	char more[112] = "";

	if (pool.size)
		snprintf(more, sizeof(more),
			 "; its pool has %" PRIu64 ", %" PRIu64 " free, %" PRIu64 " in quarantine",
			 pool.size, pool.free, pool.kept);
	return sio_fail_exhausted(
		&rq->err, -ENOSPC,
		waits(&ram, size) || (in_pool && waits(&pool, size)) ? SIO_OUT_OF_QUARANTINE
								     : SIO_OUT_OF_RAM,
		"%s: %" PRIu64 " bytes wanted, %" PRIu64 " of %" PRIu64 " are free, %" PRIu64
		" in one piece, %" PRIu64 " in quarantine%s",
		h->topo->name, size, ram.free, ram.size, ram.largest, ram.kept, more);
}

static int place_outside(struct emu_request *rq, uint64_t size, uint64_t align, uint64_t highest,
			 bool in_pool, uint64_t *ret)
{
	struct emu_host *h = rq->host;
	int rc = -ENOSPC;

	if (h->ram.size)
		rc = sio_range_alloc(&h->ram, size, align, highest, ret, &rq->err);
	return rc == -ENOSPC ? no_ram(rq, size, in_pool) : rc;
}

int emu_ram_place(struct emu_request *rq, uint64_t size, uint64_t align, uint64_t highest,
		  uint64_t *ret)
{
	return place_outside(rq, size, align, highest, false, ret);
}

/* In the pool. What does not fit there lies elsewhere, and machines reach it access by access. */
static bool place_in_pool(struct emu_request *rq, struct emu_ram *m, uint64_t size, uint64_t align,
			  uint64_t highest)
{
	struct emu_host *h = rq->host;
	struct sio_err err;

	if (!h->pool.size)
		return false;
	m->pooled = sio_range_alloc(&h->pool, size, align, highest, &m->address, &err) == 0;
	if (!m->pooled && !h->pool_full)
		emu_log(h->room,
			"%s: %" PRIu64 " bytes of a segment do not fit into its pool of %" PRIu64
			" bytes, of which %" PRIu64 " are free: machines reach what lies outside "
			"access by access",
			h->topo->name, size, h->topo->pool_size, sio_range_free_bytes(&h->pool));
	h->pool_full |= !m->pooled;
	m->file_offset = m->pooled ? m->address - h->topo->ram_base : 0;
	return m->pooled;
}

int emu_ram_power_on(struct emu_host *h, struct sio_err *reterr)
{
	const struct sio_topo_host *t = h->topo;
	uint64_t pool = h->room->ops->mem_part ? t->pool_size : 0;
	int rc = 0;

	h->pool_full = false;
	if (pool > EMU_PAGE)
		rc = sio_range_init(&h->pool, t->name, t->ram_base + EMU_PAGE, pool - EMU_PAGE,
				    reterr);
	if (rc == 0 && pool < t->ram_size)
		rc = sio_range_init(&h->ram, t->name, t->ram_base + pool, t->ram_size - pool,
				    reterr);
	return rc;
}

void emu_ram_power_off(struct emu_host *h)
{
	sio_range_done(&h->ram);
	sio_range_done(&h->pool);
	memset(&h->ram, 0, sizeof(h->ram));
	memset(&h->pool, 0, sizeof(h->pool));
}

uint64_t emu_ram_free_bytes(const struct emu_host *h)
{
	return sio_range_free_bytes(&h->ram) + sio_range_free_bytes(&h->pool);
}

static void unplace(struct emu_ram *m)
{
	struct emu_host *h = m->o.host;

	sio_range_free(m->pooled ? &h->pool : &h->ram, m->address);
}

static void clear(struct emu_room *r, const struct emu_mem *mem)
{
	if (r->ops->mem_zero)
		r->ops->mem_zero(r->ctx, mem);
	else
		memset(mem->data, 0, mem->size);
}

/* Into the host's physical map. */
static int enter(struct emu_request *rq, struct emu_ram *m, uint64_t size)
{
	struct emu_host *h = rq->host;
	struct sio_region region = {
		.base = m->address, .size = size, .kind = SIO_KIND_MEM, .object = m};
	int rc = sio_addrmap_add(&h->map, &region, &rq->err);

	if (rc < 0)
		return rc;
	rc = emu_check_mem(h, m->o.id, m->address, size, m->mem.data);
	if (rc < 0)
		sio_addrmap_remove(&h->map, m->address);
	return rc;
}

static int back(struct emu_request *rq, struct emu_ram *m, uint64_t size)
{
	struct emu_room *r = rq->host->room;
	int rc = m->pooled ? r->ops->mem_part(r->ctx, rq->host->topo->node, m->file_offset, size,
					      &m->mem)
			   : r->ops->mem_new(r->ctx, "segment", size, &m->mem);

	if (rc == 0 && m->pooled) /* whoever had it may have stored there since it was freed */
		clear(r, &m->mem);
	if (rc < 0)
		return sio_fail(&rq->err, rc,
				rc == -EMFILE
					? "ALLOC: the machine room has no descriptor left for "
					  "%" PRIu64 " bytes: raise the hard limit (ulimit -Hn) "
					  "before the cluster comes up"
					: "ALLOC: no file for %" PRIu64 " bytes",
				size);
	rc = enter(rq, m, size);
	if (rc < 0)
		r->ops->mem_free(r->ctx, &m->mem);
	return rc;
}

int emu_op_alloc(struct emu_request *rq, const void *msg)
{
	const struct sio_req_alloc *m = msg;
	bool part = m->h.flags & SIO_ALLOC_PART;
	struct sio_evt_alloc evt;
	struct emu_ram *ram = NULL;
	uint64_t size = 0, align = 0;
	int rc = check(rq, m, &size, &align);

	if (rc < 0)
		return rc;
	ram = emu_object_new(rq, SIO_KIND_MEM, sizeof(*ram), 0);
	if (!ram)
		return rq->err.code;
	ram->user_cookie = m->user_cookie;
	if (!part || !place_in_pool(rq, ram, size, align, m->highest))
		rc = place_outside(rq, size, align, m->highest, part, &ram->address);
	if (rc < 0)
		goto drop_object;
	rc = back(rq, ram, size);
	if (rc < 0)
		goto free_place;
	memset(&evt, 0, sizeof(evt));
	evt.id = ram->o.id;
	evt.size = size;
	evt.address = ram->address;
	evt.offset = ram->file_offset;
	emu_answer(rq, &evt, sizeof(evt), &ram->mem.fd, 1);
	return 0;

free_place:
	unplace(ram);
drop_object:
	emu_object_drop(&ram->o);
	return rc;
}

static int check_import(struct emu_request *rq, const struct sio_req_import *m)
{
	if (m->kind == SIO_IMPORT_DMABUF)
		return sio_fail(
			&rq->err, -EOPNOTSUPP,
			"IMPORT: memfds alone: an emulated cluster does not reach memory "
			"of real devices (dma-buf); host memory stands in, of CUDA programs "
			"by cudaHostRegister()");
	if ((m->kind != SIO_IMPORT_MEMFD && m->kind != SIO_IMPORT_FILE) || m->h.flags)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"IMPORT: kind %u, flags %#x; the machine room takes memfds alone "
				"(kind %d, no flags)",
				m->kind, m->h.flags, SIO_IMPORT_MEMFD);
	if (!rq->host->room->ops->mem_take)
		return sio_fail(&rq->err, -EOPNOTSUPP, "IMPORT: no foreign memory is taken here");
	if (rq->fd < 0 || m->address)
		return sio_fail(&rq->err, -EINVAL,
				"IMPORT: a descriptor, and address 0, are right");
	if (m->access != (SIO_ACCESS_READ | SIO_ACCESS_WRITE))
		return sio_fail(&rq->err, -EINVAL, "IMPORT: access %#x, 3 is right", m->access);
	if (m->length == 0 || (m->offset | m->length) % EMU_PAGE)
		return sio_fail(&rq->err, -EINVAL,
				"IMPORT: range %#" PRIx64 " + %#" PRIx64 " is not of whole pages",
				(uint64_t)m->offset, (uint64_t)m->length);
	return 0;
}

static int take_file(struct emu_request *rq, struct emu_ram *ram, const struct sio_req_import *m)
{
	struct emu_room *r = rq->host->room;
	int rc = r->ops->mem_take(r->ctx, rq->fd, m->offset, m->length, &ram->mem);

	if (rc == -EBADF)
		return sio_fail(&rq->err, rc,
				"IMPORT: a memfd of ordinary pages that is sealed against "
				"shrinking (F_SEAL_SHRINK) is right");
	if (rc < 0)
		return sio_fail(&rq->err, rc,
				"IMPORT: %#" PRIx64 " bytes at %#" PRIx64 " cannot be mapped: "
				"error %d",
				(uint64_t)m->length, (uint64_t)m->offset, -rc);
	rq->fd = -1;
	ram->file_offset = m->offset;
	return 0;
}

/* Memory of a program's file: it has a place in the physical map as what ALLOC gives. */
int emu_op_import(struct emu_request *rq, const void *msg)
{
	const struct sio_req_import *m = msg;
	struct emu_room *r = rq->host->room;
	struct sio_evt_import evt;
	struct emu_ram *ram = NULL;
	int rc = check_import(rq, m);

	if (rc < 0)
		return rc;
	ram = emu_object_new(rq, SIO_KIND_MEM, sizeof(*ram), 0);
	if (!ram)
		return rq->err.code;
	rc = emu_ram_place(rq, m->length, EMU_PAGE, SIO_PORT_ANY, &ram->address);
	if (rc < 0)
		goto drop_object;
	rc = take_file(rq, ram, m);
	if (rc < 0)
		goto free_place;
	rc = enter(rq, ram, m->length);
	if (rc < 0)
		goto free_mem;
	memset(&evt, 0, sizeof(evt));
	evt.id = ram->o.id;
	evt.size = m->length;
	evt.address = ram->address;
	evt.offset = ram->file_offset;
	evt.pieces = 1;
	emu_answer(rq, &evt, sizeof(evt), &ram->mem.fd, 1);
	return 0;

free_mem:
	r->ops->mem_free(r->ctx, &ram->mem);
free_place:
	unplace(ram);
drop_object:
	emu_object_drop(&ram->o);
	return rc;
}

int emu_op_give(struct emu_request *rq, const void *msg)
{
	const struct sio_req_give *m = msg;
	struct emu_object *given = emu_object_by_id(rq->host, m->id), *o, *next;
	struct emu_owner *from, *to = &rq->host->daemon;

	given = emu_object_find(
		rq, given && given->kind == SIO_KIND_BAR ? SIO_KIND_BAR : SIO_KIND_MEM, m->id);
	if (!given)
		return rq->err.code;
	from = given->owner;
	if (from->ended)
		return sio_fail(&rq->err, -EPERM,
				"GIVE: owner %#" PRIx64 " of %s %#" PRIx64 " has ended", from->o.id,
				emu_object_name(given), given->id);
	DL_FOREACH_SAFE (from == to ? NULL : from->objects, o, next) {
		const struct emu_grant *g = (const struct emu_grant *)o;

		if (o == given || (o->kind == SIO_KIND_GRANT && g->source == given &&
				   given->kind == SIO_KIND_MEM))
			emu_object_give(o, to);
	}
	emu_answer_ok(rq);
	return 0;
}

int emu_op_free(struct emu_request *rq, const void *msg)
{
	const struct sio_req_free *m = msg;
	struct emu_ram *ram = emu_object_find(rq, SIO_KIND_MEM, m->id);

	if (!ram)
		return rq->err.code;
	if (ram->o.refs)
		return sio_fail(&rq->err, -EBUSY,
				"FREE: %u grants and DMA mappings of memory %#" PRIx64 " are left",
				ram->o.refs, ram->o.id);
	emu_object_free(&ram->o);
	emu_answer_ok(rq);
	return 0;
}

static void release(struct emu_object *o)
{
	struct emu_ram *m = (struct emu_ram *)o;
	struct emu_host *h = o->host;
	struct emu_room *r = h->room;

	h->freed.mems++;
	if (!m->is_overlay) { /* which lies where the BAR does */
		h->freed.bytes += m->mem.size;
		sio_addrmap_remove(&h->map, m->address);
		unplace(m);
	}
	if (m->pooled)
		clear(r, &m->mem);
	if (m->group)
		emu_group_leave(m); /* its memory, too */
	else
		r->ops->mem_free(r->ctx, &m->mem);
	emu_invalidate(r);
	emu_check_forget(h, o->kind, o->id);
}

static uint64_t physical(const struct emu_object *o, uint64_t offset)
{
	return ((const struct emu_ram *)o)->address + offset;
}

static uint64_t length(const struct emu_object *o)
{
	return ((const struct emu_ram *)o)->mem.size;
}

static int file(const struct emu_object *o, uint64_t *ret_offset)
{
	const struct emu_ram *ram = (const struct emu_ram *)o;

	*ret_offset = ram->file_offset;
	return ram->mem.fd;
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	e->cookie = ((const struct emu_ram *)o)->user_cookie;
	e->address = physical(o, 0);
	e->length = length(o);
}

const struct emu_kind emu_kind_mem = {.name = "memory",
				      .rank = EMU_RANK_MEM,
				      .descriptors = 1,
				      .release = release,
				      .row = row,
				      .physical = physical,
				      .length = length,
				      .file = file};
