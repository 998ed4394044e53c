/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects: creation, look-up, reference counts, and the one order in which they are freed. */
#include "emu/base/state.h"

/* An open device is an object by its device id, which no other object of the host may get. */
_Static_assert(EMU_FIRST_ID > (SIO_MAX_NODE << 20 | SIO_TOPO_NUMBERS), "ids of devices lie below");

static const struct emu_kind *kind_of(const struct emu_room *r, uint32_t kind)
{
	return r->kinds[kind];
}

const struct emu_kind *emu_kind_of(const struct emu_object *o)
{
	return kind_of(o->host->room, o->kind);
}

const char *emu_object_name(const struct emu_object *o)
{
	return emu_kind_of(o)->name;
}

/* May the host's objects hold @n more descriptors, for a @kind? */
static int check_share(struct emu_request *rq, const struct emu_kind *kind, uint32_t n)
{
	const struct emu_host *h = rq->host;

	if (n == 0 || h->descriptors + n <= h->room->descriptors)
		return 0;
	return sio_fail(&rq->err, -EMFILE,
			"no %s: %s holds %" PRIu64 " of its share of %" PRIu64
			" descriptors; free some, or raise the machine room's hard limit (ulimit "
			"-Hn) and start it anew",
			kind->name, h->topo->name, h->descriptors, h->room->descriptors);
}

void *emu_object_new(struct emu_request *rq, uint32_t kind, size_t size, uint64_t id)
{
	struct emu_host *h = rq->host;
	const struct emu_kind *k = kind_of(h->room, kind);
	struct emu_object *o;

	if (check_share(rq, k, k->descriptors) < 0)
		return NULL;
	o = calloc(1, size);
	if (!o)
		goto fail;
	o->host = h;
	o->owner = rq->owner;
	o->kind = kind;
	o->state = SIO_STATE_LIVE;
	o->id = id ? id : ++h->last_id;
	HASH_ADD(hh, h->objects, id, sizeof(o->id), o);
	if (!o->hh.tbl) {
		free(o);
		goto fail;
	}
	if (kind != SIO_KIND_OWNER) {
		DL_APPEND(o->owner->objects, o);
		o->owner->n_objects++;
	}
	h->n_of_kind[kind]++;
	o->descriptors = k->descriptors;
	o->rank = k->rank;
	h->descriptors += o->descriptors;
	h->room->watch_dirty = true;
	return o;

fail:
	sio_no_memory(&rq->err, "another %s", k->name);
	return NULL;
}

int emu_object_hold(struct emu_request *rq, struct emu_object *o)
{
	int rc = check_share(rq, emu_kind_of(o), 1);

	if (rc < 0)
		return rc;
	o->descriptors++;
	o->host->descriptors++;
	return 0;
}

void emu_object_drop(struct emu_object *o)
{
	struct emu_host *h = o->host;

	HASH_DEL(h->objects, o);
	if (o->kind != SIO_KIND_OWNER) {
		DL_DELETE(o->owner->objects, o);
		o->owner->n_objects--;
	}
	h->n_of_kind[o->kind]--;
	h->descriptors -= o->descriptors;
	h->room->watch_dirty = true;
	free(o);
}

void emu_object_attach(struct emu_object *o, struct emu_object *target)
{
	DL_APPEND2(target->attached, o, attached_prev, attached_next);
}

void emu_object_detach(struct emu_object *o, struct emu_object *target)
{
	DL_DELETE2(target->attached, o, attached_prev, attached_next);
}

void emu_object_free(struct emu_object *o)
{
	while (o->attached)
		emu_object_free(o->attached);
	emu_kind_of(o)->release(o);
	emu_object_drop(o);
}

static void falls(struct emu_object *o)
{
	const struct emu_kind *k = emu_kind_of(o);

	if (o->falling || o->refs != 0 || o->state != SIO_STATE_QUARANTINED)
		return;
	if (k->in_use && k->in_use(o))
		return;
	o->falling = true;
	LL_PREPEND2(o->host->falling[o->rank], o, falling_next);
}

void emu_object_give(struct emu_object *o, struct emu_owner *to)
{
	DL_DELETE(o->owner->objects, o);
	o->owner->n_objects--;
	o->owner = to;
	DL_APPEND(to->objects, o);
	to->n_objects++;
}

void emu_object_ref(struct emu_object *o)
{
	o->refs++;
}

void emu_object_unref(struct emu_object *o)
{
	o->refs--;
	falls(o);
}

/* The falling object of the lowest rank, taken out of the list; NULL: none. */
static struct emu_object *next_falling(struct emu_host *h)
{
	for (unsigned i = 0; i < EMU_RANKS; i++) {
		struct emu_object *o = h->falling[i];

		if (o) {
			h->falling[i] = o->falling_next;
			return o;
		}
	}
	return NULL;
}

void emu_objects_fall(struct emu_host *h)
{
	struct emu_object *o;

	while ((o = next_falling(h)))
		emu_object_free(o);
}

void emu_object_quarantine(struct emu_object *o)
{
	o->state = SIO_STATE_QUARANTINED;
	o->host->room->watch_dirty = true;
	falls(o);
}

struct emu_object *emu_object_by_id(const struct emu_host *h, uint64_t id)
{
	struct emu_object *o;

	HASH_FIND(hh, h->objects, &id, sizeof(id), o);
	return o;
}

void *emu_object_find_any(struct emu_request *rq, uint32_t kind, uint64_t id)
{
	struct emu_object *o = emu_object_by_id(rq->host, id);

	if (o && o->kind == kind)
		return o;
	sio_fail(&rq->err, -ENOENT, "no %s %#" PRIx64, kind_of(rq->host->room, kind)->name, id);
	return NULL;
}

void *emu_object_find(struct emu_request *rq, uint32_t kind, uint64_t id)
{
	struct emu_object *o = emu_object_find_any(rq, kind, id);

	if (!o || rq->h->owner == 0 || o->owner == rq->owner)
		return o;
	sio_fail(&rq->err, -EPERM,
		 "%s %#" PRIx64 " belongs to owner %#" PRIx64 ", not to %#" PRIx64,
		 emu_object_name(o), id, o->owner->o.id, (uint64_t)rq->h->owner);
	return NULL;
}

void emu_objects_clear(struct emu_host *h)
{
	struct emu_object *o, *tmp;

	memset(h->falling, 0, sizeof(h->falling));
	h->ended = NULL;
	h->daemon.children = NULL;
	for (unsigned i = 0; i < EMU_RANKS; i++)
		HASH_ITER (hh, h->objects, o, tmp)
			if (o->rank == (enum emu_rank)i)
				emu_object_free(o);
	memset(h->falling, 0, sizeof(h->falling));
}
