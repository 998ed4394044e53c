/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of all objects, and how a new process continues from those of an earlier one. A record is
 * written before anyone is notified of the change. A process that was killed in between has changed
 * the machine without a record: it has mapped memory (that is undone, since nobody was notified),
 * or unmapped it (the record says that it is mapped, and its end finds nothing to undo).
 */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "smartiod/port_vfio/vfio_own.h"

void vfio_changed(struct vfio_port *p, struct vfio_object *o)
{
	if (p->ops->keep && !o->prev)
		DL_APPEND(p->changed, o);
}

static void unlist(struct vfio_port *p, struct vfio_object *o)
{
	if (!o->prev)
		return;
	DL_DELETE(p->changed, o);
	o->prev = NULL;
}

void vfio_forget(struct vfio_port *p, struct vfio_object *o)
{
	unlist(p, o);
	if (o->kept)
		p->ops->forget(p->ctx, o->id);
}

static void keep(struct vfio_port *p, struct vfio_object *o)
{
	const struct vfio_record r = {.id = o->id,
				      .owner = o->owner,
				      .target = o->target ? o->target->id : 0,
				      .device = o->device ? o->device->info.id : 0,
				      .cookie = o->cookie,
				      .address = o->address,
				      .length = o->length,
				      .epoch = o->epoch,
				      .file_offset = o->file_offset,
				      .kind = o->kind,
				      .state = o->state,
				      .bar = o->bar,
				      .cut = o->cut,
				      .masked = o->masked,
				      .child = o->child};

	o->kept = true;
	p->ops->keep(p->ctx, &r, o->fd);
}

void vfio_sync(struct vfio_port *p)
{
	struct vfio_head h = {.boot_generation = p->start.boot_generation,
			      .last_id = p->last_id,
			      .last_device = p->last_device,
			      .epoch = p->epoch};
	struct vfio_object *o;

	if (!p->ops->keep)
		return;
	memcpy(h.boot_id, p->start.boot_id, sizeof(h.boot_id));
	p->ops->keep_head(p->ctx, &h);
	for (struct vfio_device *d = p->devices; d; d = d->next) {
		const struct vfio_device_record r = {.info = d->info,
						     .reset_epoch = d->reset_epoch,
						     .entries = d->entries,
						     .present = d->present,
						     .open = d->open};

		if (d->changed)
			p->ops->keep_device(p->ctx, &r);
		d->changed = false;
	}
	while ((o = p->changed)) {
		unlist(p, o);
		keep(p, o);
	}
}

/* ---- going on: devices ---- */

static int open_again(struct vfio_port *p, struct vfio_device *d, struct sio_err *err)
{
	struct vfio_space s = {.n_holes = 0};
	int r = p->ops->device_again(p->ctx, &d->info, &s, err);

	if (r < 0)
		return r;
	r = vfio_space_use(p, &s, d, err);
	d->open = r == 0;
	return r;
}

static int restore_device(struct vfio_port *p, const struct vfio_device_record *r)
{
	struct vfio_device **at = &p->devices, *d = calloc(1, sizeof(*d));
	struct sio_err err;

	if (!d)
		return -ENOMEM;
	d->info = r->info;
	d->reset_epoch = r->reset_epoch;
	d->entries = r->entries;
	d->changed = true;
	while (*at && (*at)->info.id < d->info.id)
		at = &(*at)->next;
	d->next = *at;
	*at = d;
	/* One that is not had again as it was is one that went, and may come back. */
	d->present = r->present && r->open && open_again(p, d, &err) == 0;
	if (r->present && !d->present)
		d->info.generation++;
	return 0;
}

static struct vfio_device *device_numbered(const struct vfio_port *p, uint64_t id)
{
	struct vfio_device *d = p->devices;

	while (d && d->info.id != id)
		d = d->next;
	return d;
}

/* ---- objects ---- */

static int restore_object(struct vfio_port *p, const struct vfio_kept *k,
			  const struct vfio_record *r)
{
	struct vfio_object *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	*o = (struct vfio_object){.id = r->id,
				  .owner = r->owner,
				  .kind = r->kind,
				  .state = r->state,
				  .cookie = r->cookie,
				  .address = r->address,
				  .length = r->length,
				  .epoch = r->epoch,
				  .file_offset = r->file_offset,
				  .bar = r->bar,
				  .cut = r->cut,
				  .masked = r->masked,
				  .child = r->child,
				  .kept = true,
				  .fd = k->take_fd(p->ctx, r->id)};
	HASH_ADD(hh, p->objects, id, sizeof(o->id), o);
	if (!o->hh.tbl) {
		if (o->fd >= 0)
			p->ops->close(p->ctx, o->fd);
		free(o);
		return -ENOMEM;
	}
	if (o->kind == SIO_KIND_MEM)
		p->memory += o->length;
	return 0;
}

static int by_id(const struct vfio_object *a, const struct vfio_object *b)
{
	return a->id < b->id ? -1 : a->id > b->id;
}

/* What it refers to, and that it is referred to. */
static void link_object(struct vfio_port *p, struct vfio_object *o, const struct vfio_record *r)
{
	struct vfio_object *owner = vfio_object_find(p, SIO_KIND_OWNER, o->owner);

	if (o->kind != SIO_KIND_OWNER && owner)
		owner->held++;
	o->device = device_numbered(p, r->device);
	if (o->device)
		o->device->objects++;
	else
		o->cut = r->device; /* which nobody wrote down */
	if (o->kind == SIO_KIND_DMAMAP)
		o->target = vfio_object_find(p, SIO_KIND_MEM, r->target);
	if (o->kind == SIO_KIND_DMAMAP && !o->target)
		o->target = vfio_object_find(p, SIO_KIND_BAR, r->target);
	if (o->kind == SIO_KIND_VECTOR)
		o->target = vfio_object_find(p, SIO_KIND_IRQ, r->target);
	if (o->target)
		o->target->refs++;
}

/* Its address is taken; its vector goes where it went. */
static int occupy(struct vfio_port *p, struct vfio_object *o)
{
	struct sio_err err;

	if (!o->device || o->cut)
		return 0;
	if (!o->device->open) {
		o->cut = true;
		vfio_changed(p, o);
		return 0;
	}
	if (o->kind == SIO_KIND_VECTOR)
		p->ops->vector_again(p->ctx, o->device->info.id, (uint32_t)o->length);
	if (o->kind == SIO_KIND_DMAMAP)
		return sio_range_reserve(&o->device->space->range, o->address, o->length, &err);
	return 0;
}

/* ---- what was done and not written down ---- */

static int by_address(const void *a, const void *b)
{
	const struct vfio_object *x = *(struct vfio_object *const *)a;
	const struct vfio_object *y = *(struct vfio_object *const *)b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static bool is_mapped_in(const struct vfio_addresses *a, const struct vfio_object *o)
{
	return o->kind == SIO_KIND_DMAMAP && o->device && o->device->space == a && o->target &&
	       !o->cut;
}

/* Between the mappings that there are, of @d and others of its group, nothing is mapped. */
static int unmap_rest(struct vfio_port *p, const struct vfio_device *d)
{
	struct vfio_object **map = calloc(HASH_COUNT(p->objects) + 1, sizeof(struct vfio_object *));
	struct vfio_object *o, *tmp;
	const struct sio_range *space = &d->space->range;
	struct sio_dev_addr at = {space->base}; /* from 0 on all 64 bits would be a length of 0 */
	size_t n = 0;

	if (!map)
		return -ENOMEM;
	HASH_ITER (hh, p->objects, o, tmp) {
		if (is_mapped_in(d->space, o))
			map[n++] = o;
	}
	qsort(map, n, sizeof(struct vfio_object *), by_address);
	for (size_t i = 0; i < n; i++) {
		if (map[i]->address > at.addr)
			p->ops->unmap_rest(p->ctx, d->info.id, at, map[i]->address - at.addr);
		at.addr = map[i]->address + map[i]->length;
	}
	p->ops->unmap_rest(p->ctx, d->info.id, at, space->base + space->size - at.addr);
	free(map);
	return 0;
}

/* With one before it that has the same addresses. */
static bool is_done(const struct vfio_port *p, const struct vfio_device *d)
{
	const struct vfio_device *before = p->devices;

	while (before != d && before->space != d->space)
		before = before->next;
	return before != d;
}

/* ---- what was lost ---- */

static bool is_lost(const struct vfio_object *o)
{
	bool of_device =
		o->kind == SIO_KIND_BAR || o->kind == SIO_KIND_DMAMAP || o->kind == SIO_KIND_VECTOR;
	bool has_fd = o->kind == SIO_KIND_MEM || o->kind == SIO_KIND_IRQ ||
		      (o->kind == SIO_KIND_VECTOR && o->masked);

	return (of_device && !o->device) || (has_fd && o->fd < 0);
}

/*
 * It ends, and what leads to it first; but the device may go on to use the address of a mapping, so
 * that stays its owner's until it is settled. Return: there was one.
 */
static bool end_lost(struct vfio_port *p)
{
	struct vfio_object *o, *tmp, *lost = NULL;

	HASH_ITER (hh, p->objects, o, tmp) {
		if (is_lost(o))
			lost = o;
	}
	if (!lost)
		return false;
	lost->refs++; /* it is not freed with the last of those */
	HASH_ITER (hh, p->objects, o, tmp) {
		if (o->target == lost && o->kind == SIO_KIND_DMAMAP)
			vfio_object_unmap(p, o);
		else if (o->target == lost)
			vfio_object_free(p, o);
	}
	vfio_object_free(p, lost);
	return true;
}

/* One whose end was under way goes on ending; one of a program is watched again. */
static void restore_owner(struct vfio_port *p, struct vfio_object *o)
{
	int fd = o->fd;

	o->fd = -1;
	if (o->state == SIO_STATE_QUARANTINED) {
		if (fd >= 0)
			p->ops->close(p->ctx, fd);
		vfio_owner_ends(p, o);
	} else if (!o->child && (fd < 0 || p->ops->owner_again(p->ctx, o->id, fd) < 0)) {
		vfio_owner_end(p, o);
	}
}

static bool is_orphan(const struct vfio_port *p, const struct vfio_object *o)
{
	return o->owner && !vfio_object_find(p, SIO_KIND_OWNER, o->owner);
}

/* In the order of their numbers: whose parent has ended ends with it. */
static void restore_owners(struct vfio_port *p)
{
	struct vfio_object *o, *tmp;
	uint64_t after = 0, next;

	do {
		next = UINT64_MAX;
		HASH_ITER (hh, p->objects, o, tmp) {
			if (o->kind == SIO_KIND_OWNER && o->id > after && o->id < next)
				next = o->id;
		}
		o = vfio_object_find(p, SIO_KIND_OWNER, next);
		if (o && is_orphan(p, o) && o->state == SIO_STATE_LIVE)
			vfio_owner_end(p, o);
		else if (o)
			restore_owner(p, o);
		after = next;
	} while (o);
}

static int restore_objects(struct vfio_port *p, const struct vfio_kept *k)
{
	struct vfio_object *o, *tmp;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < k->n_records; i++)
		if (k->record[i].id)
			r = restore_object(p, k, &k->record[i]);
	HASH_SRT(hh, p->objects, by_id);
	for (unsigned i = 0; r == 0 && i < k->n_records; i++) {
		o = NULL;
		HASH_FIND(hh, p->objects, &k->record[i].id, sizeof(k->record[i].id), o);
		if (o)
			link_object(p, o, &k->record[i]);
	}
	HASH_ITER (hh, p->objects, o, tmp) {
		if (r == 0)
			r = occupy(p, o);
	}
	for (const struct vfio_device *d = p->devices; r == 0 && d; d = d->next)
		if (!d->open)
			vfio_device_unmap_bars(p, d);
	for (const struct vfio_device *d = p->devices; r == 0 && d; d = d->next)
		if (d->open && !is_done(p, d))
			r = unmap_rest(p, d);
	return r;
}

int vfio_port_restore(struct vfio_port *p, const struct vfio_kept *k)
{
	int r = 0;

	if (k->head.boot_generation) { /* else nothing was written yet */
		p->start.boot_generation = k->head.boot_generation;
		memcpy(p->start.boot_id, k->head.boot_id, sizeof(p->start.boot_id));
	}
	p->last_id = k->head.last_id;
	p->last_device = k->head.last_device;
	p->epoch = k->head.epoch;
	for (unsigned i = 0; r == 0 && i < k->n_devices; i++)
		if (k->device[i].info.id)
			r = restore_device(p, &k->device[i]);
	if (r == 0)
		r = restore_objects(p, k);
	if (r < 0)
		return r;
	while (end_lost(p))
		;
	for (struct vfio_device *d = p->devices; d; d = d->next)
		if (!d->open)
			vfio_device_cut(p, d);
	restore_owners(p);
	vfio_owners_bury(p);
	vfio_sync(p);
	return 0;
}
