// SPDX-License-Identifier: GPL-2.0-only
/* Things that have ids: made, found, counted, ended. */
#include "smartio.h"

const char *sio_kind_name(u32 kind)
{
	static const char *const name[] = {
		[SIO_KIND_OWNER] = "owner",	    [SIO_KIND_MEM] = "memory",
		[SIO_KIND_DEVICE] = "open device",  [SIO_KIND_BAR] = "BAR view",
		[SIO_KIND_DMAMAP] = "DMA mapping",  [SIO_KIND_IRQ] = "interrupt",
		[SIO_KIND_GRANT] = "grant",	    [SIO_KIND_MAP] = "map",
		[SIO_KIND_REQUESTER] = "requester", [SIO_KIND_VECTOR] = "interrupt vector",
	};

	return kind < ARRAY_SIZE(name) && name[kind] ? name[kind] : "object";
}

int sio_obj_init(struct sio_request *rq, struct sio_obj *o, u32 kind, u64 id)
{
	int error;

	kref_init(&o->kref);
	INIT_LIST_HEAD(&o->of_owner);
	INIT_LIST_HEAD(&o->falling);
	o->kind = kind;
	o->state = SIO_STATE_LIVE;
	o->id = id ? id : ++sio.last_id;
	o->owner = rq->owner;
	error = xa_err(xa_store(&sio.objects, o->id, o, GFP_KERNEL));
	if (error)
		return sio_fail(rq, error, "no room for another %s", sio_kind_name(kind));
	if (kind != SIO_KIND_OWNER) {
		list_add_tail(&o->of_owner, &o->owner->objects);
		o->owner->n_objects++;
	}
	sio.n_of_kind[kind]++;
	return 0;
}

void *sio_obj_new(struct sio_request *rq, u32 kind, size_t size)
{
	struct sio_obj *o = kzalloc(size, GFP_KERNEL_ACCOUNT);

	if (!o) {
		sio_fail(rq, -ENOMEM, "out of memory for another %s", sio_kind_name(kind));
		return NULL;
	}
	if (sio_obj_init(rq, o, kind, 0)) {
		kfree(o);
		return NULL;
	}
	return o;
}

/* The last file is closed and the table has forgotten it. */
static void destroy(struct kref *kref)
{
	struct sio_obj *o = container_of(kref, struct sio_obj, kref);

	switch (o->kind) {
	case SIO_KIND_OWNER:
		sio_owner_free((struct sio_owner *)o);
		return;
	case SIO_KIND_MEM:
		sio_mem_free((struct sio_mem *)o);
		return;
	case SIO_KIND_BAR:
		sio_bar_free((struct sio_bar *)o);
		return;
	default:
		kfree(o);
	}
}

void sio_obj_get(struct sio_obj *o)
{
	kref_get(&o->kref);
}

void sio_obj_put(struct sio_obj *o)
{
	kref_put(&o->kref, destroy);
}

/*
 * What nothing refers to falls; a DMA mapping waits for the word that its device let go of it, unless
 * it has been cut because the device is gone.
 */
static void falls(struct sio_obj *o)
{
	if (o->refs || o->state != SIO_STATE_QUARANTINED || !list_empty(&o->falling))
		return;
	if (o->kind == SIO_KIND_DMAMAP && ((struct sio_dmamap *)o)->mapped)
		return;
	list_add_tail(&o->falling, &sio.falling);
}

void sio_obj_ref(struct sio_obj *o)
{
	o->refs++;
}

void sio_obj_unref(struct sio_obj *o)
{
	o->refs--;
	falls(o);
}

void sio_obj_quarantine(struct sio_obj *o)
{
	o->state = SIO_STATE_QUARANTINED;
	if (o->kind == SIO_KIND_DMAMAP)
		((struct sio_dmamap *)o)->ended_at = sio.epoch;
	falls(o);
}

void sio_obj_drop(struct sio_obj *o)
{
	o->gone = true;
	xa_erase(&sio.objects, o->id);
	sio.n_of_kind[o->kind]--;
	list_del_init(&o->falling);
	if (o->kind != SIO_KIND_OWNER) {
		list_del_init(&o->of_owner);
		o->owner->n_objects--;
	}
	o->owner = NULL;
	sio_obj_put(o);
}

void sio_obj_end(struct sio_obj *o)
{
	switch (o->kind) {
	case SIO_KIND_MEM:
		sio.freed.mems++;
		sio.freed.bytes += ((struct sio_mem *)o)->size;
		break;
	case SIO_KIND_DEVICE:
		sio_opened_end((struct sio_opened *)o);
		break;
	case SIO_KIND_BAR:
		sio_bar_end((struct sio_bar *)o);
		break;
	case SIO_KIND_DMAMAP:
		sio.freed.dmamaps++;
		sio_dmamap_end((struct sio_dmamap *)o);
		break;
	case SIO_KIND_VECTOR:
		sio_vector_end((struct sio_vector *)o);
		break;
	}
	sio_obj_drop(o);
}

void sio_fall(void)
{
	struct sio_obj *o;

	while ((o = list_first_entry_or_null(&sio.falling, struct sio_obj, falling)))
		sio_obj_end(o);
}

void *sio_obj_find_any(struct sio_request *rq, u32 kind, u64 id)
{
	struct sio_obj *o = xa_load(&sio.objects, id);

	if (o && o->kind == kind)
		return o;
	sio_fail(rq, -ENOENT, "no %s %#llx", sio_kind_name(kind), id);
	return NULL;
}

void *sio_obj_find_live(struct sio_request *rq, u32 kind, u64 id)
{
	struct sio_obj *o = sio_obj_find_any(rq, kind, id);

	if (!o || o->state == SIO_STATE_LIVE)
		return o;
	sio_fail(rq, -EPERM, "owner %#llx of %s %#llx has ended", o->owner->o.id,
		 sio_kind_name(kind), id);
	return NULL;
}

/* For what is to end: -EPERM if it is not the asking owner's. */
static void *find_own(struct sio_request *rq, u32 kind, u64 id)
{
	struct sio_obj *o = sio_obj_find_any(rq, kind, id);

	if (!o || rq->u.h.owner == 0 || o->owner == rq->owner)
		return o;
	sio_fail(rq, -EPERM, "%s %#llx belongs to owner %#llx, not to %#llx", sio_kind_name(kind),
		 id, o->owner->o.id, rq->u.h.owner);
	return NULL;
}

/* All operations that end something have its id as their only field. */
int sio_op_end(struct sio_request *rq, const void *msg)
{
	static const u32 kinds[SIO_OP_COUNT] = {
		[SIO_OP_FREE] = SIO_KIND_MEM,	   [SIO_OP_DEVICE_CLOSE] = SIO_KIND_DEVICE,
		[SIO_OP_BAR_CLOSE] = SIO_KIND_BAR, [SIO_OP_DMAUNMAP] = SIO_KIND_DMAMAP,
		[SIO_OP_IRQ_FREE] = SIO_KIND_IRQ,
	};
	const struct sio_req_free *m = msg;
	struct sio_obj *o = find_own(rq, kinds[m->h.op], m->id);

	if (!o)
		return rq->error;
	if (o->kind == SIO_KIND_DMAMAP && o->state != SIO_STATE_LIVE)
		return sio_fail(rq, -EPERM, "DMA mapping %#llx is in quarantine: SETTLE or RESET",
				m->id);
	if (o->refs)
		return sio_fail(rq, -EBUSY, "%u grants, mappings, views or vectors of it are left",
				o->refs);
	if (o->kind == SIO_KIND_MEM && sio_pool_remove_pages((struct sio_mem *)o))
		return sio_fail(rq, -EBUSY, "memory that ALLOC took from the pool is in use");
	sio_obj_end(o);
	return 0;
}
