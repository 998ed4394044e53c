/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA mappings: of memory, and of other devices' BARs. */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/port_vfio/vfio_own.h"

#define PAGE 4096u
#define LARGE_PAGE (2u << 20) /* of an IOMMU: a mapping that is aligned so costs one entry */
#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)

void vfio_device_unmap_bars(struct vfio_port *p, const struct vfio_device *d)
{
	struct vfio_object *o, *tmp;
	uint64_t map;

	do { /* a view in quarantine ends with its last mapping: so one at a time */
		map = 0;
		HASH_ITER (hh, p->objects, o, tmp) {
			if (o->kind == SIO_KIND_DMAMAP && o->target && o->target->device == d)
				map = o->id;
		}
		if (map)
			vfio_object_unmap(p, vfio_object_find(p, SIO_KIND_DMAMAP, map));
	} while (map);
}

/* A view of another device's BAR: no more of it than the view allows. */
static int check_view(struct vfio_request *rq, const struct vfio_device *d,
		      const struct sio_req_dmamap *m, const struct vfio_object *view)
{
	if (view->device == d)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"DMAMAP: BAR view %#" PRIx64
				" is of the same device; only others' are mapped",
				view->id);
	if (view->cut)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"DMAMAP: the device of BAR view %#" PRIx64 " has gone", view->id);
	if (m->access & ~view->cookie)
		return sio_fail(&rq->err, -EACCES,
				"DMAMAP: BAR view %#" PRIx64
				" is read-only: one that may be written is right",
				view->id);
	return 0;
}

static int check_target(struct vfio_request *rq, const struct vfio_device *d,
			const struct sio_req_dmamap *m, struct vfio_object **ret)
{
	struct vfio_object *mem = vfio_object_find(rq->port, m->target_kind, m->target);

	switch (m->target_kind) {
	case SIO_KIND_MEM:
	case SIO_KIND_BAR:
		break;
	case SIO_KIND_APERTURE:
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"DMAMAP: VFIO maps memory of this host alone, not kind %u",
				m->target_kind);
	case SIO_KIND_MAP:
		return sio_fail(&rq->err, -ENOENT, "DMAMAP: VFIO has no windows to other hosts");
	default:
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: target kind %u, %d (memory) or %d (BAR view) is right",
				m->target_kind, SIO_KIND_MEM, SIO_KIND_BAR);
	}
	if (!mem || mem->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -ENOENT, "DMAMAP: no %s %#" PRIx64,
				m->target_kind == SIO_KIND_BAR ? "BAR view" : "memory",
				(uint64_t)m->target);
	if (m->access == 0 || m->access > BOTH)
		return sio_fail(&rq->err, -EINVAL, "DMAMAP: access %#x, 1 to 3 are right",
				m->access);
	if (m->length == 0 || (m->offset | m->length) % PAGE)
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: %#" PRIx64 " + %#" PRIx64 ": whole pages are right",
				(uint64_t)m->offset, (uint64_t)m->length);
	if (m->offset > mem->length || m->length > mem->length - m->offset)
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: %#" PRIx64 " + %#" PRIx64 " ends behind target %#" PRIx64
				", of %#" PRIx64 " bytes",
				(uint64_t)m->offset, (uint64_t)m->length, mem->id, mem->length);
	*ret = mem;
	return m->target_kind == SIO_KIND_BAR ? check_view(rq, d, m, mem) : 0;
}

static int map_target(struct vfio_request *rq, const struct vfio_device *d,
		      const struct sio_req_dmamap *m, const struct vfio_object *target,
		      struct sio_dev_addr iova)
{
	const struct vfio_port *p = rq->port;
	struct sio_req_dmamap at = *m;
	uint64_t begin;

	at.offset += target->file_offset;
	if (target->kind == SIO_KIND_MEM)
		return p->ops->map(p->ctx, d->info.id, target->fd, &at, iova, &rq->err);
	begin = target->address - target->device->info.bar_addr[target->bar];
	return p->ops->map_bar(p->ctx, d->info.id, target->device->info.id, target->bar,
			       begin + m->offset, m, iova, &rq->err);
}

static int take_iova(struct vfio_request *rq, struct vfio_device *d, const struct sio_req_dmamap *m,
		     struct sio_dev_addr *ret)
{
	uint64_t align = m->length >= LARGE_PAGE ? LARGE_PAGE : PAGE;
	int r;

	if (m->iova == SIO_PORT_ANY) {
		r = sio_range_alloc(&d->space->range, m->length, align, m->highest, &ret->addr,
				    &rq->err);
		if (r != -ENOSPC)
			return r;
		return sio_fail_exhausted(
			&rq->err, -ENOSPC,
			m->highest == SIO_PORT_ANY ? SIO_OUT_OF_IOVA : SIO_OUT_OF_REACH,
			"DMAMAP: %s has no %#" PRIx64 " I/O addresses left up to %#" PRIx64,
			d->info.name, (uint64_t)m->length, (uint64_t)m->highest);
	}
	if (m->iova % PAGE)
		return sio_fail(&rq->err, -EINVAL,
				"DMAMAP: iova %#" PRIx64 ": a whole page is right",
				(uint64_t)m->iova);
	if (m->iova > m->highest || m->length - 1 > m->highest - m->iova)
		return sio_fail(&rq->err, -EINVAL, "DMAMAP: iova %#" PRIx64 " is above %#" PRIx64,
				(uint64_t)m->iova, (uint64_t)m->highest);
	ret->addr = m->iova;
	return sio_range_reserve(&d->space->range, m->iova, m->length, &rq->err);
}

int vfio_op_dmamap(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_dmamap *m = msg;
	struct sio_evt_dmamap *evt = answer;
	struct vfio_port *p = rq->port;
	struct vfio_object *o, *mem = NULL;
	struct vfio_device *d;
	struct sio_dev_addr iova = {0};
	int r = vfio_device_needed(rq, m->device, true, "DMAMAP", &d);

	if (r == 0)
		r = check_target(rq, d, m, &mem);
	if (r == 0)
		r = take_iova(rq, d, m, &iova);
	if (r < 0)
		return r;
	r = map_target(rq, d, m, mem, iova);
	if (r < 0)
		goto free_iova;
	o = vfio_object_new(rq, SIO_KIND_DMAMAP);
	if (!o) {
		r = rq->err.code;
		goto unmap;
	}
	o->device = d;
	d->objects++;
	o->target = mem;
	mem->refs++;
	o->address = evt->iova = iova.addr;
	o->length = evt->length = m->length;
	evt->id = o->id;
	return 0;

unmap:
	p->ops->unmap(p->ctx, d->info.id, iova, m->length);
free_iova:
	sio_range_free(&d->space->range, iova.addr);
	return r;
}

int vfio_op_dmaunmap(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_dmaunmap *m = msg;
	bool keep = m->h.flags & SIO_DMAUNMAP_KEEP_ADDRESS;
	struct vfio_object *o;
	int r = vfio_object_ends(rq, SIO_KIND_DMAMAP, m->id, "DMAUNMAP", &o);

	(void)answer;
	if (r < 0)
		return r;
	if (keep)
		vfio_object_unmap(rq->port, o);
	else if (o->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"DMAUNMAP: mapping %#" PRIx64 " is in quarantine: SETTLE ends it",
				o->id);
	else
		vfio_object_free(rq->port, o);
	return 0;
}
