/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices: arrival and removal, views of BARs, interrupt vectors, resets. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/port_vfio/vfio_own.h"

#define PAGE 4096u
#define MSIX_ENTRY 16u
#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)

/* ---- finding ---- */

struct vfio_device *vfio_device_find(const struct vfio_port *p, uint64_t id)
{
	for (struct vfio_device *d = p->devices; d; d = d->next)
		if (d->info.id == id)
			return d->present ? d : NULL;
	return NULL;
}

int vfio_device_needed(struct vfio_request *rq, uint64_t id, bool open, const char *who,
		       struct vfio_device **ret)
{
	*ret = vfio_device_find(rq->port, id);
	if (!*ret)
		return sio_fail(&rq->err, -ENODEV, "%s: no device %#" PRIx64 " is here", who, id);
	if (open && !(*ret)->open)
		return sio_fail(&rq->err, -ENODEV, "%s: %s is not open", who, (*ret)->info.name);
	return 0;
}

/* ---- coming and going ---- */

static struct vfio_device *device_at(struct vfio_port *p, uint32_t bdf)
{
	struct vfio_device **at = &p->devices, *d;

	while ((d = *at)) {
		if (d->info.bdf == bdf)
			return d;
		at = &d->next;
	}
	d = calloc(1, sizeof(*d));
	if (d) {
		d->info.id = ++p->last_device;
		d->info.bdf = bdf;
		*at = d;
	}
	return d;
}

static void tell(struct vfio_port *p, const struct vfio_device *d, uint32_t op)
{
	struct sio_evt_device_state evt = {.device = d->info.id, .generation = d->info.generation};

	vfio_event(p, op, &evt, sizeof(evt));
}

uint64_t vfio_port_device_here(struct vfio_port *p, const struct sio_evt_device *info)
{
	struct vfio_device *d = device_at(p, info->bdf);
	uint64_t id, generation;

	if (!d || d->present)
		return d ? d->info.id : 0;
	id = d->info.id;
	generation = d->info.generation + 1;
	d->info = *info;
	d->info.id = id;
	d->entries = info->msix_count;
	d->info.generation = generation;
	d->present = d->changed = true;
	vfio_sync(p);
	tell(p, d, SIO_EV_DEVICE_BACK);
	return id;
}

/* What living owners have of it stays until they end it, and leads nowhere. */
void vfio_device_cut(struct vfio_port *p, struct vfio_device *d)
{
	struct vfio_object *o, *tmp;
	uint64_t vector = 0;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->device != d)
			continue;
		o->cut = true;
		vfio_changed(p, o);
	}
	do { /* an interrupt may end with its last vector: so one at a time */
		if (vector)
			vfio_object_free(p, vfio_object_find(p, SIO_KIND_VECTOR, vector));
		vector = 0;
		HASH_ITER (hh, p->objects, o, tmp) {
			if (o->kind == SIO_KIND_VECTOR && o->device == d)
				vector = o->id;
		}
	} while (vector);
	vfio_settle(p, d, 0, UINT64_MAX);
}

/* Others of its group that are open have its mappings, too: those do not go with it. */
static void unmap_of(struct vfio_port *p, struct vfio_device *d)
{
	const struct vfio_device *partner = d->space ? vfio_space_partner(p, d) : NULL;
	struct vfio_object *o, *tmp;

	if (!partner)
		return;
	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind != SIO_KIND_DMAMAP || o->device != d || o->cut)
			continue;
		if (o->target)
			p->ops->unmap(p->ctx, partner->info.id, vfio_object_iova(o), o->length);
		sio_range_free(&d->space->range, o->address);
	}
}

void vfio_port_device_gone(struct vfio_port *p, uint64_t id)
{
	struct vfio_device *d = vfio_device_find(p, id);

	if (!d)
		return;
	vfio_device_unmap_bars(p, d);
	/* Closed first: the kernel resets it and takes its mappings away. */
	if (d->open)
		p->ops->device_close(p->ctx, id);
	unmap_of(p, d);
	vfio_device_cut(p, d);
	vfio_space_leave(d);
	d->present = d->open = false;
	d->info.generation++;
	d->changed = true;
	tell(p, d, SIO_EV_DEVICE_GONE);
	vfio_owners_bury(p);
	vfio_sync(p);
}

static void answer_device(const struct vfio_device *d, struct sio_evt_device *evt)
{
	*evt = d->info;
	evt->h = (struct sio_evt){.error = 0};
	evt->present = 1 + d->open;
}

int vfio_op_device_list(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_device_list *m = msg;

	for (const struct vfio_device *d = rq->port->devices; d; d = d->next)
		if (d->info.id > m->after && d->present) {
			answer_device(d, answer);
			return 0;
		}
	return sio_fail(&rq->err, -ENOENT, "DEVICE_LIST: no device behind %#" PRIx64,
			(uint64_t)m->after);
}

static int open_device(struct vfio_request *rq, struct vfio_device *d)
{
	struct vfio_port *p = rq->port;
	struct vfio_space s = {.n_holes = 0};
	int r = p->ops->device_open(p->ctx, d->info.id, &s, &rq->err);

	if (r < 0)
		return r;
	r = vfio_space_use(p, &s, d, &rq->err);
	if (r < 0) {
		p->ops->device_close(p->ctx, d->info.id);
		return r;
	}
	d->info.msix_count = s.vectors < d->entries ? s.vectors : d->entries;
	d->open = d->changed = true;
	return 0;
}

int vfio_op_device_open(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_device_open *m = msg;
	struct vfio_device *d;
	int r = vfio_device_needed(rq, m->device, false, "DEVICE_OPEN", &d);

	if (r < 0)
		return r;
	if (m->h.owner)
		return sio_fail(&rq->err, -EINVAL,
				"DEVICE_OPEN: devices are the daemon's: h.owner 0 is right");
	if (d->open && !(m->h.flags & SIO_DEVICE_FORCE))
		return sio_fail(&rq->err, -EBUSY, "DEVICE_OPEN: %s is open", d->info.name);
	r = d->open ? 0 : open_device(rq, d);
	if (r == 0)
		answer_device(d, answer);
	if (r == 0)
		((struct sio_evt_device *)answer)->present = 1;
	return r;
}

int vfio_op_device_close(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_device_close *m = msg;
	struct vfio_device *d = vfio_device_find(rq->port, m->device);

	(void)answer;
	if (!d || !d->open)
		return sio_fail(&rq->err, -ENOENT, "DEVICE_CLOSE: no open device %#" PRIx64,
				(uint64_t)m->device);
	if (d->objects)
		return sio_fail(&rq->err, -EBUSY,
				"DEVICE_CLOSE: %u mappings, views or vectors of %s are left",
				d->objects, d->info.name);
	rq->port->ops->device_close(rq->port->ctx, d->info.id);
	vfio_space_leave(d);
	d->open = false;
	d->changed = true;
	return 0;
}

/* ---- RESET, SETTLE, CONFIG ---- */

void vfio_device_was_reset(struct vfio_port *p, struct vfio_device *d, struct sio_evt_reset *ret)
{
	struct vfio_object *o, *tmp;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind == SIO_KIND_VECTOR && o->device == d && o->masked)
			p->ops->irq_move(p->ctx, o->fd, -1);
	}
	d->changed = true;
	ret->freed = vfio_settle(p, d, 0, d->reset_epoch);
	ret->generation = ++d->info.generation;
}

int vfio_op_reset(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_reset *m = msg;
	struct vfio_port *p = rq->port;
	struct vfio_device *d;
	int r = vfio_device_needed(rq, m->device, true, "RESET", &d);

	if (r < 0)
		return r;
	if (m->kind < SIO_RESET_FUNCTION || m->kind > SIO_RESET_DONE)
		return sio_fail(&rq->err, -EINVAL,
				"RESET: kind %u, %d (function), %d or %d is right", m->kind,
				SIO_RESET_FUNCTION, SIO_RESET_BUS, SIO_RESET_DONE);
	/* The kernel resets a function by the first way that it has, its bus last. */
	if (m->kind != SIO_RESET_DONE && !(d->info.resets & 1u << m->kind))
		return sio_fail(&rq->err, -EOPNOTSUPP, "RESET: the kernel has no such reset for %s",
				d->info.name);
	if (m->kind == SIO_RESET_BUS && d->info.resets & 1u << SIO_RESET_FUNCTION)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"RESET: of %s the function is reset, by kind %d", d->info.name,
				SIO_RESET_FUNCTION);
	/* Whoever ends from now on may have had queues that the reset did not find. */
	d->reset_epoch = ++p->epoch;
	d->changed = true;
	if (m->kind == SIO_RESET_DONE) {
		vfio_device_was_reset(p, d, answer);
		return 0;
	}
	/* Whoever has it next gives others its BARs again. */
	vfio_device_unmap_bars(p, d);
	r = p->ops->reset(p->ctx, d->info.id, &rq->err);
	if (r < 0)
		return r;
	d->resetting = true;
	d->reset = *m;
	d->reset_daemon = p->daemon;
	rq->later = true;
	return 0;
}

struct sums {
	uint64_t mems, bytes;
};

static struct sums memory_of(const struct vfio_port *p)
{
	struct sums s = {0, 0};
	struct vfio_object *o, *tmp;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind == SIO_KIND_MEM) {
			s.mems++;
			s.bytes += o->length;
		}
	}
	return s;
}

int vfio_op_settle(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_settle *m = msg;
	struct sio_evt_settle *evt = answer;
	struct vfio_object *owner = vfio_object_find(rq->port, SIO_KIND_OWNER, m->h.owner);
	struct sums before = memory_of(rq->port), after;
	struct vfio_device *d;
	int r = vfio_device_needed(rq, m->device, false, "SETTLE", &d);

	if (r < 0)
		return r;
	if (m->h.owner == 0)
		return sio_fail(&rq->err, -EINVAL, "SETTLE: name an owner that has ended");
	if (!owner)
		return sio_fail(&rq->err, -ENOENT, "SETTLE: no owner %#" PRIx64,
				(uint64_t)m->h.owner);
	if (owner->state == SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"SETTLE: owner %#" PRIx64 " is alive: its mappings end by DMAUNMAP",
				(uint64_t)m->h.owner);
	evt->dmamaps = vfio_settle(rq->port, d, owner->id, UINT64_MAX);
	after = memory_of(rq->port);
	evt->mems = before.mems - after.mems;
	evt->bytes = before.bytes - after.bytes;
	return 0;
}

int vfio_op_config(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_config *m = msg;
	struct sio_evt_config *evt = answer;
	struct vfio_device *d;
	int r = vfio_device_needed(rq, m->device, false, "CONFIG", &d);

	if (r < 0)
		return r;
	return rq->port->ops->config(rq->port->ctx, d->info.name, m, &evt->value, &rq->err);
}

/* ---- BAR ---- */

static bool overlaps_table(const struct vfio_device *d, const struct sio_req_bar *m)
{
	uint64_t from = d->info.msix_offset / PAGE * PAGE;
	uint64_t to = d->info.msix_offset + (uint64_t)d->entries * MSIX_ENTRY;

	return d->entries && m->bar == d->info.msix_bar && m->offset < to &&
	       from < m->offset + m->length;
}

static int check_bar(struct vfio_request *rq, const struct vfio_device *d,
		     const struct sio_req_bar *m)
{
	uint64_t size = m->bar < SIO_DEVICE_BARS ? d->info.bar_size[m->bar] : 0;

	if (m->access != SIO_ACCESS_READ && m->access != BOTH)
		return sio_fail(&rq->err, -EINVAL, "BAR: access %#x, 1 or 3 is right", m->access);
	if (m->caching > SIO_CACHE_WRITE_COMBINED)
		return sio_fail(&rq->err, -EINVAL, "BAR: caching %u, 0 to %d are right", m->caching,
				SIO_CACHE_WRITE_COMBINED);
	if (size == 0)
		return sio_fail(&rq->err, -EINVAL, "BAR: %s has no BAR %u", d->info.name, m->bar);
	if (m->length == 0 || (m->offset | m->length) % PAGE)
		return sio_fail(&rq->err, -EINVAL,
				"BAR: %#" PRIx64 " + %#" PRIx64 ": whole pages are right",
				(uint64_t)m->offset, (uint64_t)m->length);
	if (m->offset > size || m->length > size - m->offset)
		return sio_fail(&rq->err, -EINVAL,
				"BAR: %#" PRIx64 " + %#" PRIx64 " ends behind BAR %u, of %#" PRIx64
				" bytes",
				(uint64_t)m->offset, (uint64_t)m->length, m->bar, size);
	if (overlaps_table(d, m))
		return sio_fail(
			&rq->err, -EACCES,
			"BAR: the interrupt table of %s is the port's: pages beside it are given "
			"out",
			d->info.name);
	if (m->caching == SIO_CACHE_WRITE_COMBINED)
		return sio_fail(
			&rq->err, -EOPNOTSUPP,
			"BAR: VFIO maps BARs uncached alone: smartio.ko has write-combined ones");
	return 0;
}

int vfio_op_bar(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_bar *m = msg;
	struct sio_evt_bar *evt = answer;
	struct vfio_port *p = rq->port;
	struct vfio_device *d;
	struct vfio_object *o;
	uint64_t offset = 0;
	int r = vfio_device_needed(rq, m->device, true, "BAR", &d);

	if (r == 0)
		r = check_bar(rq, d, m);
	if (r < 0)
		return r;
	r = p->ops->bar(p->ctx, d->info.id, m, &rq->fd[0], &offset, &rq->err);
	if (r < 0)
		return r;
	o = vfio_object_new(rq, SIO_KIND_BAR);
	if (!o)
		return rq->err.code;
	o->device = d;
	d->objects++;
	o->cookie = m->access;
	o->bar = m->bar;
	o->address = d->info.bar_addr[m->bar] + m->offset;
	evt->offset = offset;
	o->length = evt->length = m->length;
	evt->id = o->id;
	rq->n_fd = 1;
	return 0;
}

/* Who has it mapped still has it: VFIO takes pages from nobody. */
int vfio_op_bar_close(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_bar_close *m = msg;
	struct vfio_object *o;
	int r = vfio_object_ends(rq, SIO_KIND_BAR, m->id, "BAR_CLOSE", &o);

	(void)answer;
	if (r == 0 && o->refs)
		return sio_fail(&rq->err, -EBUSY, "BAR_CLOSE: %u mappings lead to view %#" PRIx64,
				o->refs, o->id);
	if (r == 0)
		vfio_object_free(rq->port, o);
	return r;
}

/* ---- VECTOR ---- */

static struct vfio_object *vector_of(const struct vfio_port *p, const struct vfio_device *d,
				     uint32_t number)
{
	struct vfio_object *o, *tmp;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind == SIO_KIND_VECTOR && o->device == d && o->length == number && !o->cut)
			return o;
	}
	return NULL;
}

static int check_vector(struct vfio_request *rq, const struct vfio_device *d,
			const struct sio_req_vector *m, struct vfio_object **ret_irq)
{
	if (m->vector >= d->info.msix_count)
		return sio_fail(&rq->err, -EINVAL, "VECTOR: vector %u, %s has %u vectors",
				m->vector, d->info.name, d->info.msix_count);
	if (m->mask > 1)
		return sio_fail(&rq->err, -EINVAL, "VECTOR: mask %u, 0 or 1 is right", m->mask);
	if (m->irq && (m->address || m->data))
		return sio_fail(&rq->err, -EINVAL,
				"VECTOR: an interrupt or a message's address is right, not both");
	if (m->address)
		return sio_fail(
			&rq->err, -EOPNOTSUPP,
			"VECTOR: VFIO sends no messages: an interrupt of this host is right");
	*ret_irq = m->irq ? vfio_object_find(rq->port, SIO_KIND_IRQ, m->irq) : NULL;
	if (m->irq && (!*ret_irq || (*ret_irq)->state != SIO_STATE_LIVE))
		return sio_fail(&rq->err, -ENOENT, "VECTOR: no interrupt %#" PRIx64,
				(uint64_t)m->irq);
	return 0;
}

/* Where it goes: to @irq, or while it is masked to a descriptor of the vector's own. */
static int set_vector(struct vfio_request *rq, struct vfio_object *v, struct vfio_object *irq,
		      bool mask)
{
	struct vfio_port *p = rq->port;
	int r = v->fd >= 0 || !mask ? 0 : p->ops->irq_new(p->ctx, &v->fd);

	if (r < 0)
		return sio_fail(&rq->err, r, "VECTOR: no descriptor to mask it");
	r = p->ops->vector(p->ctx, v->device->info.id, (uint32_t)v->length, mask ? v->fd : irq->fd,
			   &rq->err);
	if (r < 0)
		return r;
	if (v->masked && !mask)
		p->ops->irq_move(p->ctx, v->fd, irq->fd);
	irq->refs++;
	if (v->target && --v->target->refs == 0 && v->target->state == SIO_STATE_QUARANTINED)
		vfio_object_free(p, v->target);
	v->target = irq;
	v->masked = mask;
	vfio_changed(p, v);
	return 0;
}

int vfio_op_vector(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_vector *m = msg;
	struct vfio_object *v, *irq = NULL;
	struct vfio_device *d;
	int r = vfio_device_needed(rq, m->device, true, "VECTOR", &d);

	(void)answer;
	if (r == 0)
		r = check_vector(rq, d, m, &irq);
	if (r < 0)
		return r;
	v = vector_of(rq->port, d, m->vector);
	if (v && rq->owner && v->owner != rq->owner->id)
		return sio_fail(&rq->err, -EBUSY, "VECTOR: vector %u belongs to owner %#" PRIx64,
				m->vector, v->owner);
	if (!irq) {
		if (v)
			vfio_object_free(rq->port, v);
		return 0;
	}
	if (v)
		return set_vector(rq, v, irq, m->mask);
	v = vfio_object_new(rq, SIO_KIND_VECTOR);
	if (!v)
		return rq->err.code;
	v->device = d;
	d->objects++;
	v->length = m->vector;
	r = set_vector(rq, v, irq, m->mask);
	if (r < 0)
		vfio_object_free(rq->port, v);
	return r;
}
