/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt vectors of devices (PCI Express base specification, MSI-X). Only the port writes to a
 * device's table: an entry is made by VECTOR and ends with its owner, at once, because a device
 * whose entry is masked sends no more. A message is a posted write of 4 bytes, ordered behind all
 * others of its device.
 */
#include <endian.h>

#include "emu/device/device.h"
#include "smartio/io.h"

static int find_target(struct emu_request *rq, const struct sio_req_vector *m, struct emu_device *d,
		       struct emu_object **ret, struct emu_requester **ret_requester)
{
	struct emu_object *o;
	struct emu_map *map;

	*ret = NULL;
	*ret_requester = NULL;
	if (m->irq == 0)
		return m->address % SIO_MSI_BYTES
			       ? sio_fail(&rq->err, -EINVAL,
					  "VECTOR: address %#" PRIx64 ", a multiple of %d is right",
					  (uint64_t)m->address, SIO_MSI_BYTES)
			       : 0;
	if (m->address || m->data)
		return sio_fail(&rq->err, -EINVAL,
				"VECTOR: name an interrupt, or address and data, not both");
	o = emu_object_by_id(rq->host, m->irq);
	map = (struct emu_map *)o;
	if (!o || (o->kind != SIO_KIND_IRQ && (o->kind != SIO_KIND_MAP || !map->trigger)))
		return sio_fail(
			&rq->err, -ENOENT,
			"VECTOR: no interrupt and no map of a peer's interrupt is %#" PRIx64,
			(uint64_t)m->irq);
	if (o->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"VECTOR: owner %#" PRIx64 " of %s %#" PRIx64 " has ended",
				o->owner->o.id, emu_object_name(o), o->id);
	*ret = o;
	if (o->kind == SIO_KIND_IRQ)
		return 0;
	*ret_requester = emu_requester_of(d, map->adapter);
	if (!*ret_requester)
		return sio_fail(&rq->err, -ENOENT,
				"VECTOR: %s is not in the requester table of adapter %u; "
				"REQUESTER_ADD first",
				d->topo->name, map->adapter);
	return 0;
}

static int check(struct emu_request *rq, const struct sio_req_vector *m, struct emu_device **ret)
{
	int rc = emu_device_get(rq, m->device, ret);
	const struct emu_vector *v;

	if (rc < 0)
		return rc;
	if (m->vector >= (*ret)->config.msix_count)
		return sio_fail(&rq->err, -EINVAL, "VECTOR: %s has %u vectors, %u is none of them",
				(*ret)->topo->name, (*ret)->config.msix_count, m->vector);
	if (m->mask > 1)
		return sio_fail(&rq->err, -EINVAL, "VECTOR: mask %u, 0 or 1 is right", m->mask);
	v = (*ret)->vector[m->vector];
	if (v && m->h.owner && v->o.owner != rq->owner)
		return sio_fail(
			&rq->err, -EBUSY,
			"VECTOR: vector %u of %s belongs to owner %#" PRIx64 ", not to %#" PRIx64,
			m->vector, (*ret)->topo->name, v->o.owner->o.id, (uint64_t)m->h.owner);
	return 0;
}

/* A page of the device's domain leads to the window's. */
static int place_page(struct emu_request *rq, struct emu_vector *v, uint64_t physical)
{
	struct emu_device *d = v->device;
	uint64_t highest = d->topo->dma_bits >= 64 ? UINT64_MAX : (1ull << d->topo->dma_bits) - 1;
	int rc = sio_range_alloc(&d->iova, 2 * EMU_PAGE, EMU_PAGE, highest, &v->iova, &rq->err);

	if (rc < 0)
		return rc == -ENOSPC ? emu_no_iova(rq) : rc;
	rc = sio_iommu_map(&d->iommu, (struct sio_dev_addr){v->iova}, EMU_PAGE, v->target,
			   physical & ~(EMU_PAGE - 1), SIO_ACCESS_WRITE, &rq->err);
	if (rc < 0) {
		sio_range_free(&d->iova, v->iova);
		return rc;
	}
	v->has_iova = true;
	v->address = v->iova + physical % EMU_PAGE;
	return 0;
}

/* What the device is to write, and where. */
static int place(struct emu_request *rq, struct emu_vector *v, const struct sio_req_vector *m)
{
	uint64_t physical;

	if (!v->target) {
		v->address = m->address;
		v->data = m->data;
		return 0;
	}
	physical = emu_source_physical(v->target, 0);
	v->address = physical;
	if (v->target->kind == SIO_KIND_IRQ) {
		v->data = emu_irq_message((const struct emu_irq *)v->target);
		return 0;
	}
	v->data = ((const struct emu_map *)v->target)->message;
	return v->o.host->topo->iommu ? place_page(rq, v, physical) : 0;
}

/* ---- messages ---- */

static void send(struct emu_vector *v)
{
	struct emu_device *d = v->device;
	struct emu_room *r = d->room;
	uint32_t data = htole32(v->data);
	struct emu_target t;
	static const struct sio_pcie_count message = {.write_tlps = 1,
						      .write_bytes = SIO_MSI_BYTES};
	struct emu_irq *q;
	int rc = emu_translate_message(d, (struct sio_dev_addr){v->address}, v->data, v->target, &q,
				       &t);

	emu_count_message(&d->count);
	for (unsigned i = 0; i < t.n_hops; i++)
		emu_count_message(t.hop[i]);
	if (t.far)
		emu_way_count(&t.way, r, &message);
	if (rc < 0)
		emu_fault_record(d, (struct sio_dev_addr){v->address}, SIO_MSI_BYTES, SIO_FAULT_MSI,
				 &t);
	else if (q)
		r->ops->event_signal(r->ctx, q->fd);
	else if (t.data)
		sio_write32(t.data, data);
}

void emu_vector_raise(struct emu_dev *dev, unsigned vector)
{
	struct emu_device *d = dev->room;
	struct emu_vector *v;

	if (vector >= d->config.msix_count)
		return;
	v = d->vector[vector];
	if (v && !v->mask)
		send(v);
	else if (v)
		d->pending[vector] = 1;
}

static void set_mask(struct emu_vector *v, bool mask)
{
	uint8_t *pending = &v->device->pending[v->number];

	v->mask = mask;
	if (mask || !*pending)
		return;
	*pending = 0;
	send(v);
}

void emu_vectors_reset(struct emu_device *d)
{
	if (d->pending)
		memset(d->pending, 0, d->config.msix_count);
}

/* ---- VECTOR ---- */

static struct emu_vector *vector_new(struct emu_request *rq, const struct sio_req_vector *m,
				     struct emu_device *d)
{
	struct emu_requester *requester;
	struct emu_object *target;
	struct emu_vector *v;

	if (find_target(rq, m, d, &target, &requester) < 0)
		return NULL;
	v = emu_object_new(rq, SIO_KIND_VECTOR, sizeof(*v), 0);
	if (!v)
		return NULL;
	v->device = d;
	v->number = m->vector;
	v->target = target;
	v->requester = requester;
	v->mask = true;
	if (place(rq, v, m) < 0) {
		emu_object_drop(&v->o);
		return NULL;
	}
	emu_object_ref(d->opened);
	if (target)
		emu_object_ref(target);
	if (requester)
		emu_object_ref(&requester->o);
	return v;
}

int emu_op_vector(struct emu_request *rq, const void *msg)
{
	const struct sio_req_vector *m = msg;
	struct emu_vector *v = NULL, *old;
	struct emu_device *d = NULL;
	bool take_away = m->irq == 0 && m->address == 0, kept = false;
	int rc = check(rq, m, &d);

	if (rc < 0)
		return rc;
	if (take_away && (m->data || m->mask))
		return sio_fail(&rq->err, -EINVAL,
				"VECTOR: data %#x and mask %u without an interrupt or an address, "
				"0 is right",
				m->data, m->mask);
	old = d->vector[m->vector];
	if (old && m->irq && old->target && old->target->id == m->irq && !m->address && !m->data) {
		emu_answer_ok(rq);
		set_mask(old, m->mask);
		return 0;
	}
	if (!take_away) {
		v = vector_new(rq, m, d);
		if (!v)
			return rq->err.code;
	}
	if (old) { /* what was pending is sent to the new target */
		kept = d->pending[m->vector];
		emu_object_free(&old->o);
	}
	emu_answer_ok(rq);
	if (v) {
		d->vector[m->vector] = v;
		d->pending[m->vector] = kept;
		set_mask(v, m->mask);
	}
	return 0;
}

static void release(struct emu_object *o)
{
	struct emu_vector *v = (struct emu_vector *)o;
	struct emu_device *d = v->device;

	if (d->vector[v->number] == v) {
		d->vector[v->number] = NULL;
		d->pending[v->number] = 0;
	}
	if (v->has_iova) {
		sio_iommu_unmap(&d->iommu, (struct sio_dev_addr){v->iova});
		sio_range_free(&d->iova, v->iova);
	}
	emu_invalidate(d->room);
	if (v->requester)
		emu_object_unref(&v->requester->o);
	if (v->target)
		emu_object_unref(v->target);
	emu_object_unref(d->opened);
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_vector *v = (const struct emu_vector *)o;

	e->cookie = v->target ? v->target->id : 0;
	e->address = v->address;
	e->length = v->number;
	e->device = v->device->topo->fdid;
}

const struct emu_kind emu_kind_vector = {
	.name = "interrupt vector", .rank = EMU_RANK_SENDER, .release = release, .row = row};
