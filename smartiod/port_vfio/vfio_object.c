/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects and owners. What is owned by an owner ends with it in one order: interrupt vectors, views
 * of BARs, then memory and interrupts that nothing refers to. DMA mappings wait in quarantine, with
 * their memory, until the device is known to have released them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/port_vfio/vfio_own.h"

#define BATCH 64

static const char *kind_name(uint32_t kind)
{
	static const char *const name[] = {
		[SIO_KIND_OWNER] = "owner",   [SIO_KIND_MEM] = "memory",
		[SIO_KIND_BAR] = "BAR view",  [SIO_KIND_DMAMAP] = "mapping",
		[SIO_KIND_IRQ] = "interrupt", [SIO_KIND_VECTOR] = "vector"};

	return kind < sizeof(name) / sizeof(name[0]) && name[kind] ? name[kind] : "object";
}

void vfio_event(struct vfio_port *p, uint32_t op, void *evt, size_t size)
{
	struct sio_evt *h = evt;

	h->op = op;
	h->size = (uint32_t)size;
	if (p->overflow || p->ops->send(p->ctx, evt, size, NULL, 0) == -ENOBUFS)
		p->overflow = true;
}

void vfio_port_drained(struct vfio_port *p)
{
	struct sio_evt_overflow evt = {.h.op = 0};

	if (!p->overflow)
		return;
	p->overflow = false;
	vfio_event(p, SIO_EV_OVERFLOW, &evt, sizeof(evt));
}

void vfio_port_connected(struct vfio_port *p)
{
	p->overflow = false;
	p->daemon++;
	vfio_waiting_drop(p);
}

/* ---- the table ---- */

struct vfio_object *vfio_object_find(const struct vfio_port *p, uint32_t kind, uint64_t id)
{
	struct vfio_object *o = NULL;

	HASH_FIND(hh, p->objects, &id, sizeof(id), o);
	return o && o->kind == kind ? o : NULL;
}

struct vfio_object *vfio_object_new(struct vfio_request *rq, uint32_t kind)
{
	struct vfio_port *p = rq->port;
	struct vfio_object *o = calloc(1, sizeof(*o));

	if (!o)
		goto fail;
	o->id = p->last_id + 1;
	o->kind = kind;
	o->state = SIO_STATE_LIVE;
	o->owner = rq->owner ? rq->owner->id : 0;
	o->fd = -1;
	HASH_ADD(hh, p->objects, id, sizeof(o->id), o);
	if (!o->hh.tbl) {
		free(o);
		goto fail;
	}
	p->last_id++;
	vfio_changed(p, o);
	if (kind != SIO_KIND_OWNER && rq->owner)
		rq->owner->held++;
	return o;

fail:
	sio_no_memory(&rq->err, "another %s", kind_name(kind));
	return NULL;
}

int vfio_object_ends(struct vfio_request *rq, uint32_t kind, uint64_t id, const char *who,
		     struct vfio_object **ret)
{
	struct vfio_object *o = vfio_object_find(rq->port, kind, id);

	if (!o)
		return sio_fail(&rq->err, -ENOENT, "%s: no %s %#" PRIx64, who, kind_name(kind), id);
	if (rq->owner && o->owner != rq->owner->id)
		return sio_fail(&rq->err, -EPERM, "%s: %s %#" PRIx64 " belongs to owner %#" PRIx64,
				who, kind_name(kind), id, o->owner);
	*ret = o;
	return 0;
}

static void drop(struct vfio_port *p, struct vfio_object *o)
{
	struct vfio_object *owner = vfio_object_find(p, SIO_KIND_OWNER, o->owner);

	HASH_DEL(p->objects, o);
	vfio_forget(p, o);
	if (o->kind != SIO_KIND_OWNER && owner)
		owner->held--;
	if (o->device)
		o->device->objects--;
	if (o->fd >= 0)
		p->ops->close(p->ctx, o->fd);
	free(o);
}

static void unref(struct vfio_port *p, struct vfio_object *o)
{
	o->refs--;
	if (o->refs == 0 && o->state == SIO_STATE_QUARANTINED)
		vfio_object_free(p, o);
}

void vfio_object_unmap(struct vfio_port *p, struct vfio_object *o)
{
	struct vfio_object *mem = o->target;

	if (!mem)
		return;
	if (!o->cut)
		p->ops->unmap(p->ctx, o->device->info.id, vfio_object_iova(o), o->length);
	o->target = NULL;
	vfio_changed(p, o);
	unref(p, mem);
}

static void vector_end(struct vfio_port *p, struct vfio_object *o)
{
	struct vfio_object *irq = o->target;
	struct sio_err ignored;

	if (!o->cut)
		p->ops->vector(p->ctx, o->device->info.id, (uint32_t)o->length, -1, &ignored);
	o->target = NULL;
	if (irq)
		unref(p, irq);
}

void vfio_object_free(struct vfio_port *p, struct vfio_object *o)
{
	switch (o->kind) {
	case SIO_KIND_MEM:
		p->memory -= o->length; /* what ALLOC or IMPORT counted */
		break;
	case SIO_KIND_DMAMAP:
		vfio_object_unmap(p, o);
		if (!o->cut)
			sio_range_free(&o->device->space->range, o->address);
		break;
	case SIO_KIND_VECTOR:
		vector_end(p, o);
		break;
	default:
		break;
	}
	drop(p, o);
}

/* ---- quarantine ---- */

/* What to do with which objects; @device, @epoch: of mappings in quarantine alone. */
struct each {
	uint32_t kind, state;
	uint64_t owner, epoch; /* owner 0: all */
	const struct vfio_device *device;
	void (*what)(struct vfio_port *p, struct vfio_object *o);
};

static bool matches(const struct each *e, const struct vfio_object *o)
{
	return o->kind == e->kind && o->state == e->state && (!e->owner || o->owner == e->owner) &&
	       (!e->device || (o->device == e->device && o->epoch < e->epoch));
}

/* By their numbers, some at a time: the end of one may be the end of others. Counts. */
static uint64_t for_each(struct vfio_port *p, const struct each *e)
{
	struct vfio_object *o, *tmp;
	uint64_t n = 0, ids[BATCH];
	unsigned found;

	do {
		found = 0;
		HASH_ITER (hh, p->objects, o, tmp) {
			if (matches(e, o))
				ids[found++] = o->id;
			if (found == BATCH)
				break;
		}
		for (unsigned i = 0; i < found; i++) {
			o = vfio_object_find(p, e->kind, ids[i]);
			if (o)
				e->what(p, o);
		}
		n += found;
	} while (found == BATCH); /* what was done to them changed their state */
	return n;
}

uint64_t vfio_settle(struct vfio_port *p, const struct vfio_device *d, uint64_t owner,
		     uint64_t epoch)
{
	const struct each e = {.kind = SIO_KIND_DMAMAP,
			       .state = SIO_STATE_QUARANTINED,
			       .owner = owner,
			       .epoch = epoch,
			       .device = d,
			       .what = vfio_object_free};

	return for_each(p, &e);
}

static void quarantine(struct vfio_port *p, struct vfio_object *o)
{
	o->state = SIO_STATE_QUARANTINED;
	o->epoch = p->epoch;
	vfio_changed(p, o);
	if (o->refs == 0 && (o->kind != SIO_KIND_DMAMAP || o->cut))
		vfio_object_free(p, o);
}

static void report_rest(struct vfio_port *p, const struct vfio_object *owner)
{
	struct sio_evt_owner_gone evt = {.h.owner = owner->id};
	struct vfio_object *o, *tmp;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->owner != owner->id || o->kind == SIO_KIND_OWNER)
			continue;
		evt.dmamaps += o->kind == SIO_KIND_DMAMAP;
		evt.mems += o->kind == SIO_KIND_MEM;
		evt.bytes += o->kind == SIO_KIND_MEM ? o->length : 0;
	}
	vfio_event(p, SIO_EV_OWNER_GONE, &evt, sizeof(evt));
}

static struct vfio_object *live_child(struct vfio_port *p, uint64_t owner)
{
	struct vfio_object *o, *tmp;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind == SIO_KIND_OWNER && o->state == SIO_STATE_LIVE && o->owner == owner)
			return o;
	}
	return NULL;
}

void vfio_owner_ends(struct vfio_port *p, struct vfio_object *o)
{
	/* Vectors first, so that no interrupt comes to what is freed; mappings before memory. */
	static const uint32_t order[] = {SIO_KIND_VECTOR, SIO_KIND_BAR, SIO_KIND_DMAMAP,
					 SIO_KIND_IRQ, SIO_KIND_MEM};
	struct each e = {.state = SIO_STATE_LIVE, .owner = o->id, .what = quarantine};
	struct vfio_object *child;

	while ((child = live_child(p, o->id)))
		vfio_owner_end(p, child);
	p->epoch++;
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		e.kind = order[i];
		for_each(p, &e);
	}
	report_rest(p, o);
	p->n_ended++;
}

void vfio_owner_end(struct vfio_port *p, struct vfio_object *o)
{
	o->state = SIO_STATE_QUARANTINED;
	vfio_changed(p, o);
	p->ops->owner_free(p->ctx, o->id);
	vfio_owner_ends(p, o);
}

static bool is_of(const struct vfio_port *p, const struct vfio_object *o, uint64_t owner)
{
	while (o && o->owner != owner)
		o = vfio_object_find(p, SIO_KIND_OWNER, o->owner);
	return o;
}

bool vfio_owner_waits(const struct vfio_port *p, uint64_t owner)
{
	const struct vfio_object *o, *tmp;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind == SIO_KIND_VECTOR && o->device && o->device->resetting &&
		    is_of(p, o, owner))
			return true;
	}
	return false;
}

void vfio_port_owner_hup(struct vfio_port *p, uint64_t id)
{
	struct vfio_object *o = vfio_object_find(p, SIO_KIND_OWNER, id);

	if (!o || o->state != SIO_STATE_LIVE)
		return;
	if (vfio_owner_waits(p, id)) {
		o->closed = true;
		p->ops->owner_free(p->ctx, id); /* it has said all that it can */
		return;
	}
	vfio_owner_end(p, o);
	vfio_owners_bury(p);
	vfio_sync(p);
}

void vfio_owners_end_closed(struct vfio_port *p)
{
	struct vfio_object *o, *tmp;
	uint64_t id;

	do { /* the end of one may be the end of others */
		id = 0;
		HASH_ITER (hh, p->objects, o, tmp) {
			if (o->closed && o->state == SIO_STATE_LIVE && !vfio_owner_waits(p, o->id))
				id = o->id;
		}
		vfio_port_owner_hup(p, id);
	} while (id);
}

void vfio_owners_bury(struct vfio_port *p)
{
	struct sio_evt_owner_end evt = {.h.op = 0};
	struct vfio_object *o, *tmp;

	if (p->n_ended == 0)
		return;
	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->kind != SIO_KIND_OWNER || o->state != SIO_STATE_QUARANTINED || o->held)
			continue;
		evt.h = (struct sio_evt){.owner = o->id};
		drop(p, o);
		p->n_ended--;
		vfio_event(p, SIO_EV_OWNER_END, &evt, sizeof(evt));
	}
}

bool vfio_port_in_use(const struct vfio_port *p)
{
	struct vfio_object *o, *tmp;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->state == SIO_STATE_LIVE &&
		    (o->kind == SIO_KIND_OWNER || o->kind == SIO_KIND_MEM))
			return true;
	}
	return false;
}
