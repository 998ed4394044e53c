/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, interrupts, and the requests about all objects: LIST, STATS, IDENTIFY, REOPEN. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/port_vfio/vfio_own.h"

#define PAGE 4096u
#define HUGE_PAGE (2u << 20)

/* ---- memory ---- */

static int memory_is_used_up(struct vfio_request *rq, const char *request, uint64_t wanted)
{
	uint64_t limit = rq->port->start.memory_limit;

	return sio_fail_exhausted(&rq->err, -ENOSPC, SIO_OUT_OF_RAM,
				  "%s: %" PRIu64 " bytes wanted, %" PRIu64 " of %" PRIu64
				  " are free (smartio-vfio --memory-limit)",
				  request, wanted, limit - rq->port->memory, limit);
}

static int check_alloc(struct vfio_request *rq, const struct sio_req_alloc *m, uint64_t *ret_size)
{
	const struct vfio_port *p = rq->port;
	uint64_t left = p->start.memory_limit - p->memory;

	if (m->size == 0)
		return sio_fail(&rq->err, -EINVAL, "ALLOC: size 0");
	if (m->align & (m->align - 1))
		return sio_fail(&rq->err, -EINVAL,
				"ALLOC: align %#" PRIx64 ", 0 or a power of 2 is right",
				(uint64_t)m->align);
	if (m->kind > SIO_ALLOC_CONTIGUOUS)
		return sio_fail(&rq->err, -EINVAL, "ALLOC: kind %u, 0 to %d are right", m->kind,
				SIO_ALLOC_CONTIGUOUS);
	if (m->access > (SIO_ACCESS_READ | SIO_ACCESS_WRITE))
		return sio_fail(&rq->err, -EINVAL, "ALLOC: access %#x, 0 to 3 are right",
				m->access);
	if (m->near_device && !vfio_device_find(p, m->near_device))
		return sio_fail(&rq->err, -ENODEV, "ALLOC: no device %#" PRIx64 " is here",
				(uint64_t)m->near_device);
	if (m->size > left || m->size > left - left % PAGE || m->align > p->start.memory_limit ||
	    m->highest < PAGE)
		return memory_is_used_up(rq, "ALLOC", m->size);
	*ret_size = (m->size + PAGE - 1) / PAGE * PAGE;
	return 0;
}

/*
 * The IOMMU makes whatever pages one range for a device, so that any memory is contiguous; aligned
 * is what the device sees of it (DMAMAP).
 */
int vfio_op_alloc(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_alloc *m = msg;
	struct sio_evt_alloc *evt = answer;
	struct vfio_port *p = rq->port;
	struct vfio_object *o;
	uint64_t size = 0;
	bool huge;
	int r = check_alloc(rq, m, &size);

	if (r < 0)
		return r;
	o = vfio_object_new(rq, SIO_KIND_MEM);
	if (!o)
		return rq->err.code;
	huge = m->kind == SIO_ALLOC_HUGE && size % HUGE_PAGE == 0;
	r = p->ops->memory_new(p->ctx, size, huge, &o->fd, &rq->err);
	if (r < 0) {
		vfio_object_free(p, o);
		return r;
	}
	o->length = size;
	o->cookie = m->user_cookie;
	p->memory += size;
	evt->id = o->id;
	evt->size = size;
	rq->fd[0] = o->fd;
	rq->n_fd = 1;
	return 0;
}

/*
 * The range of a file of @size bytes that @m is about. It counts as memory of ours does: a device
 * that it is mapped for makes pages of all of it, and holds them in place.
 */
static int check_range(struct vfio_request *rq, const struct sio_req_import *m, uint64_t size,
		       uint64_t *ret_length)
{
	uint64_t left = rq->port->start.memory_limit - rq->port->memory;
	uint64_t rest = m->offset < size ? size - m->offset : 0;
	uint64_t length = m->length ? m->length : rest;

	if (length == 0 || length > rest || (m->offset | length) % PAGE)
		return sio_fail(&rq->err, -EINVAL,
				"IMPORT: range %#" PRIx64 " + %#" PRIx64 " of %#" PRIx64
				" bytes: whole pages (%#x) in there are right",
				(uint64_t)m->offset, (uint64_t)m->length, size, PAGE);
	if (length > left)
		return memory_is_used_up(rq, "IMPORT", length);
	*ret_length = length;
	return 0;
}

static int check_kind(struct vfio_request *rq, const struct sio_req_import *m)
{
	if (m->h.flags)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"IMPORT: VFIO has no pool, and nobody to give all memory to");
	if (m->kind == SIO_IMPORT_USER_PAGES || m->kind == SIO_IMPORT_DMABUF)
		return sio_fail(
			&rq->err, -EOPNOTSUPP,
			"IMPORT: VFIO does not map kind %u: use a segment of SmartIO or a memfd",
			m->kind);
	if (rq->n_fds != 1 || (m->kind != SIO_IMPORT_MEMFD && m->kind != SIO_IMPORT_HUGETLB &&
			       m->kind != SIO_IMPORT_FILE))
		return sio_fail(&rq->err, -EINVAL,
				"IMPORT: kind %u with %u descriptors, a file of kind %d, %d or %d "
				"is right",
				m->kind, rq->n_fds, SIO_IMPORT_MEMFD, SIO_IMPORT_HUGETLB,
				SIO_IMPORT_FILE);
	return 0;
}

int vfio_op_import(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_import *m = msg;
	struct sio_evt_import *evt = answer;
	struct vfio_port *p = rq->port;
	struct vfio_object *o;
	uint64_t size = 0, length = 0;
	int r = check_kind(rq, m);

	if (r < 0)
		return r;
	o = vfio_object_new(rq, SIO_KIND_MEM);
	if (!o)
		return rq->err.code;
	r = p->ops->memory_take(p->ctx, rq->fds[0], m->kind, &o->fd, &size, &rq->err);
	if (r == 0)
		r = check_range(rq, m, size, &length);
	if (r < 0) {
		vfio_object_free(p, o);
		return r;
	}
	o->length = length;
	o->file_offset = m->offset;
	p->memory += length;
	evt->id = o->id;
	evt->size = length;
	evt->offset = m->offset;
	evt->pieces = 1;
	rq->fd[0] = o->fd;
	rq->n_fd = 1;
	return 0;
}

int vfio_op_free(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_free *m = msg;
	struct vfio_object *o;
	int r = vfio_object_ends(rq, SIO_KIND_MEM, m->id, "FREE", &o);

	(void)answer;
	if (r < 0)
		return r;
	if (o->refs)
		return sio_fail(&rq->err, -EBUSY,
				"FREE: %u mappings of memory %#" PRIx64 " are left", o->refs,
				o->id);
	vfio_object_free(rq->port, o);
	return 0;
}

int vfio_op_give(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_give *m = msg;
	struct vfio_object *o, *owner;
	int r = vfio_object_ends(rq, SIO_KIND_MEM, m->id, "GIVE", &o);

	(void)answer;
	if (r < 0)
		return r;
	owner = vfio_object_find(rq->port, SIO_KIND_OWNER, o->owner);
	if (owner && owner->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"GIVE: owner %#" PRIx64
				" has ended: one of a living program is right",
				owner->id);
	if (owner)
		owner->held--;
	o->owner = 0;
	vfio_changed(rq->port, o);
	return 0;
}

/* ---- interrupts ---- */

int vfio_op_irq_new(struct vfio_request *rq, const void *msg, void *answer)
{
	struct sio_evt_irq_new *evt = answer;
	struct vfio_port *p = rq->port;
	struct vfio_object *o = vfio_object_new(rq, SIO_KIND_IRQ);
	int r;

	(void)msg;
	if (!o)
		return rq->err.code;
	r = p->ops->irq_new(p->ctx, &o->fd);
	if (r < 0) {
		vfio_object_free(p, o);
		return sio_fail(&rq->err, r, "IRQ_NEW: no descriptor for another interrupt");
	}
	evt->id = o->id;
	rq->fd[0] = rq->fd[1] = o->fd; /* an eventfd is both ends */
	rq->n_fd = 2;
	return 0;
}

int vfio_op_irq_free(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_irq_free *m = msg;
	struct vfio_object *o;
	int r = vfio_object_ends(rq, SIO_KIND_IRQ, m->id, "IRQ_FREE", &o);

	(void)answer;
	if (r < 0)
		return r;
	if (o->refs)
		return sio_fail(&rq->err, -EBUSY,
				"IRQ_FREE: %u vectors or grants of interrupt %#" PRIx64 " are left",
				o->refs, o->id);
	vfio_object_free(rq->port, o);
	return 0;
}

/* ---- what there is ---- */

static void object_row(const struct vfio_object *o, struct sio_list_entry *e)
{
	e->id = o->id;
	e->owner = o->owner;
	e->kind = o->kind;
	e->state = o->state;
	e->refs = o->refs;
	e->cookie = o->target ? o->target->id : o->cookie;
	e->address = o->address;
	e->length = o->length;
	e->device = o->device ? o->device->info.id : 0;
}

static void list_devices(const struct vfio_port *p, uint64_t after, struct sio_evt_list *evt)
{
	for (const struct vfio_device *d = p->devices; d; d = d->next) {
		if (!d->open || d->info.id <= after)
			continue;
		if (evt->count == SIO_LIST_MAX) {
			evt->more = 1;
			return;
		}
		evt->entry[evt->count++] = (struct sio_list_entry){.id = d->info.id,
								   .kind = SIO_KIND_DEVICE,
								   .state = SIO_STATE_LIVE,
								   .device = d->info.id};
	}
}

int vfio_op_list(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_list *m = msg;
	struct sio_evt_list *evt = answer;
	struct vfio_object *o, *tmp;

	if (m->kind < SIO_KIND_OWNER || m->kind > SIO_KIND_SHADOW ||
	    (m->kind > SIO_KIND_IRQ && m->kind < SIO_KIND_WATCH))
		return sio_fail(&rq->err, -EINVAL, "LIST: kind %u, %d to %d and %d to %d are right",
				m->kind, SIO_KIND_OWNER, SIO_KIND_IRQ, SIO_KIND_WATCH,
				SIO_KIND_SHADOW);
	if (m->kind == SIO_KIND_DEVICE) {
		list_devices(rq->port, m->after, evt);
		return 0;
	}
	HASH_ITER (hh, rq->port->objects, o, tmp) {
		if (o->kind != m->kind || o->id <= m->after)
			continue;
		if (evt->count == SIO_LIST_MAX) {
			evt->more = 1;
			break;
		}
		object_row(o, &evt->entry[evt->count++]);
	}
	return 0;
}

static void count(struct sio_evt_stats *evt, const char *name, uint64_t value)
{
	struct sio_counter *c = &evt->counter[evt->count++];

	snprintf(c->name, sizeof(c->name), "%s", name);
	c->value = value;
}

/* Objects of @kind, of @d alone if there is one, and their bytes. */
static uint64_t tally(const struct vfio_port *p, uint32_t kind, const struct vfio_device *d,
		      uint64_t *ret_bytes)
{
	struct vfio_object *o, *tmp;
	uint64_t n = 0, bytes = 0;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind != kind || (d && o->device != d))
			continue;
		n++;
		bytes += o->length;
	}
	if (ret_bytes)
		*ret_bytes = bytes;
	return n;
}

static void host_stats(const struct vfio_port *p, struct sio_evt_stats *evt)
{
	count(evt, "requests", p->requests);
	count(evt, "requests_refused", p->refused);
	count(evt, "owners", tally(p, SIO_KIND_OWNER, NULL, NULL));
	count(evt, "mems", tally(p, SIO_KIND_MEM, NULL, NULL));
	count(evt, "bars", tally(p, SIO_KIND_BAR, NULL, NULL));
	count(evt, "dmamaps", tally(p, SIO_KIND_DMAMAP, NULL, NULL));
	count(evt, "irqs", tally(p, SIO_KIND_IRQ, NULL, NULL));
}

int vfio_op_stats(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_stats *m = msg;
	struct sio_evt_stats *evt = answer;
	struct vfio_port *p = rq->port;
	struct vfio_device *d;
	uint64_t bytes;
	int r;

	if (m->kind == 0 && m->id)
		return sio_fail(&rq->err, -EINVAL, "STATS: id %#" PRIx64 " of the host, 0 is right",
				(uint64_t)m->id);
	if (m->kind == 0) {
		host_stats(p, evt);
		return 0;
	}
	if (m->kind == SIO_KIND_ADAPTER)
		return sio_fail(&rq->err, -ENODEV, "STATS: VFIO has no adapters");
	if (m->kind != SIO_KIND_DEVICE)
		return sio_fail(&rq->err, -EINVAL,
				"STATS: kind %u, 0 (host), %d (adapter) or %d (device) is right",
				m->kind, SIO_KIND_ADAPTER, SIO_KIND_DEVICE);
	r = vfio_device_needed(rq, m->id, false, "STATS", &d);
	if (r < 0)
		return r;
	count(evt, "generation", d->info.generation);
	count(evt, "dmamaps", tally(p, SIO_KIND_DMAMAP, d, &bytes));
	count(evt, "dmamap_bytes", bytes);
	count(evt, "interrupts", p->ops->interrupts(p->ctx, d->info.name));
	return 0;
}

/* ---- for a daemon that was started again ---- */

/*
 * An owner's descriptor and memory are files of their own. A view of a BAR is its device's
 * descriptor, and all interrupts are alike: they prove nothing.
 */
int vfio_op_identify(struct vfio_request *rq, const void *msg, void *answer)
{
	struct sio_evt_identify *evt = answer;
	struct vfio_port *p = rq->port;
	struct vfio_object *o, *tmp;
	uint64_t want[2], have[2];

	(void)msg;
	if (rq->n_fds != 1 || p->ops->identity(p->ctx, rq->fds[0], want) < 0)
		return sio_fail(&rq->err, -EBADF,
				"IDENTIFY: no descriptor of an owner or of memory came along");
	if (want[0] == 0) { /* an owner's */
		o = vfio_object_find(p, SIO_KIND_OWNER, want[1]);
		if (!o)
			return sio_fail(
				&rq->err, -EBADF,
				"IDENTIFY: that owner is forgotten: one that has not ended is "
				"right");
		evt->user_cookie = o->cookie;
		goto found;
	}
	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind == SIO_KIND_MEM && p->ops->identity(p->ctx, o->fd, have) == 0 &&
		    memcmp(have, want, sizeof(have)) == 0)
			goto found;
	}
	return sio_fail(
		&rq->err, -EBADF,
		"IDENTIFY: no descriptor of ours came along: one that the port gave is right");

found:
	evt->id = o->id;
	evt->kind = o->kind;
	evt->state = o->state;
	evt->owner = o->owner;
	return 0;
}

int vfio_op_reopen(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_reopen *m = msg;
	struct sio_evt_reopen *evt = answer;
	struct vfio_object *o;
	int r = 0;

	if (m->kind != SIO_KIND_MEM && m->kind != SIO_KIND_BAR && m->kind != SIO_KIND_IRQ)
		return sio_fail(&rq->err, -EINVAL, "REOPEN: kind %u, %d, %d or %d is right",
				m->kind, SIO_KIND_MEM, SIO_KIND_BAR, SIO_KIND_IRQ);
	o = vfio_object_find(rq->port, m->kind, m->id);
	if (!o || o->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -ENOENT, "REOPEN: nothing of kind %u lives as %#" PRIx64,
				m->kind, (uint64_t)m->id);
	if (m->kind == SIO_KIND_BAR) {
		const struct sio_evt_device *d = &o->device->info;
		const struct sio_req_bar bar = {
			.device = d->id, .bar = o->bar, .offset = o->address - d->bar_addr[o->bar]};
		uint64_t offset = 0;

		r = o->cut ? sio_fail(&rq->err, -ENODEV, "REOPEN: its device has gone")
			   : rq->port->ops->bar(rq->port->ctx, bar.device, &bar, &rq->fd[0],
						&offset, &rq->err);
		evt->offset = offset;
	} else {
		rq->fd[0] = rq->fd[1] = o->fd;
		evt->offset = o->file_offset;
	}
	if (r < 0)
		return r;
	rq->n_fd = m->kind == SIO_KIND_IRQ ? 2 : 1;
	evt->length = m->kind == SIO_KIND_IRQ ? 0 : o->length;
	return 0;
}
