/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owners, and what happens when one ends. Memory, BAR views, interrupts, windows and requester
 * entries that nothing refers to are freed at once. The rest stays as it is: DMA mappings until the
 * message that the device has released them (SETTLE, RESET), grants until the peer has released
 * them (UNGRANT), and the objects that these refer to as long as they do.
 */
#include "emu/base/state.h"

struct emu_owner *emu_owner_find(struct emu_host *h, uint64_t id)
{
	struct emu_object *o;

	if (id == 0)
		return &h->daemon;
	o = emu_object_by_id(h, id);
	return o && o->kind == SIO_KIND_OWNER ? (struct emu_owner *)o : NULL;
}

int emu_op_owner_new(struct emu_request *rq, const void *msg)
{
	const struct sio_req_owner_new *m = msg;
	struct emu_room *r = rq->host->room;
	struct sio_evt_owner_new evt;
	struct emu_owner *w = NULL;
	bool child = m->h.flags & SIO_OWNER_CHILD;
	int fd = -1, rc;

	if (m->h.owner != 0 && !child)
		return sio_fail(&rq->err, -EINVAL,
				"OWNER_NEW: h.owner is %#" PRIx64
				", 0 is right for all but a child",
				(uint64_t)m->h.owner);
	if (!rq->owner)
		return sio_fail(&rq->err, -ENOENT, "OWNER_NEW: no owner %#" PRIx64,
				(uint64_t)m->h.owner);
	if (rq->owner->ended)
		return sio_fail(&rq->err, -EPERM,
				"OWNER_NEW: owner %#" PRIx64
				" has ended: a living one, or 0, is right",
				(uint64_t)m->h.owner);
	w = emu_object_new(rq, SIO_KIND_OWNER, sizeof(*w), 0);
	if (!w)
		return rq->err.code;
	w->user_cookie = m->user_cookie;
	w->pid = m->pid;
	memset(&evt, 0, sizeof(evt));
	evt.id = w->o.id;
	if (child) {
		w->parent = rq->owner;
		DL_APPEND(w->parent->children, w);
		emu_answer(rq, &evt, sizeof(evt), NULL, 0);
		return 0;
	}
	rc = r->ops->owner_new(r->ctx, rq->host->index, w->o.id, &fd);
	if (rc < 0) {
		emu_object_drop(&w->o);
		return sio_fail(&rq->err, rc, "OWNER_NEW: no descriptor for another owner");
	}
	emu_answer(rq, &evt, sizeof(evt), &fd, 1);
	r->ops->close(r->ctx, fd);
	return 0;
}

/* Frees the edge's end of the owner's descriptor. A child has none. */
static void release_descriptor(const struct emu_owner *w)
{
	struct emu_room *r = w->o.host->room;

	if (!w->parent)
		r->ops->owner_free(r->ctx, w->o.host->index, w->o.id);
}

static void release(struct emu_object *o)
{
	const struct emu_owner *w = (const struct emu_owner *)o;

	if (!w->ended)
		release_descriptor(w);
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	e->cookie = ((const struct emu_owner *)o)->user_cookie;
}

const struct emu_kind emu_kind_owner = {
	.name = "owner", .rank = EMU_RANK_OWNER, .descriptors = 1, .release = release, .row = row};

void emu_owners_bury(struct emu_host *h)
{
	struct emu_owner **p = &h->ended;

	while (*p) {
		struct emu_owner *w = *p;
		struct sio_evt_owner_end evt;

		if (w->n_objects != 0) {
			p = &w->ended_next;
			continue;
		}
		*p = w->ended_next;
		memset(&evt, 0, sizeof(evt));
		evt.h.owner = w->o.id;
		emu_event(h, &evt, sizeof(evt), SIO_EV_OWNER_END);
		emu_object_free(&w->o);
	}
}

static void count_rest(const struct emu_owner *w, struct sio_evt_owner_gone *evt)
{
	const struct emu_object *o;

	DL_FOREACH (w->objects, o) {
		evt->dmamaps += o->kind == SIO_KIND_DMAMAP;
		evt->grants += o->kind == SIO_KIND_GRANT;
		evt->maps += o->kind == SIO_KIND_MAP;
		if (o->kind == SIO_KIND_MEM) {
			evt->mems++;
			evt->bytes += emu_kind_of(o)->length(o);
		}
	}
}

static void end(struct emu_owner *w)
{
	struct emu_host *h = w->o.host;
	struct sio_evt_owner_gone evt;
	struct emu_object *o = NULL;

	while (w->children)
		end(w->children);
	w->ended = true;
	w->o.state = SIO_STATE_QUARANTINED;
	release_descriptor(w);
	/* The parent may be forgotten before a child that the device may still write to. */
	if (w->parent) {
		DL_DELETE(w->parent->children, w);
		w->parent = NULL;
		w->o.owner = &h->daemon;
	}
	DL_FOREACH (w->objects, o)
		if (emu_kind_of(o)->owner_ended)
			emu_kind_of(o)->owner_ended(o);
	DL_FOREACH (w->objects, o)
		emu_object_quarantine(o);
	emu_objects_fall(h);
	memset(&evt, 0, sizeof(evt));
	evt.h.owner = w->o.id;
	count_rest(w, &evt);
	emu_event(h, &evt, sizeof(evt), SIO_EV_OWNER_GONE);
	w->ended_next = h->ended;
	h->ended = w;
}

void emu_owner_hup(struct emu_host *h, uint64_t id)
{
	struct emu_owner *w = id ? emu_owner_find(h, id) : NULL;

	if (!h->up || !w || w->ended)
		return;
	end(w);
	emu_owners_bury(h);
}

int emu_op_owner_close(struct emu_request *rq, const void *msg)
{
	const struct sio_req_owner_close *m = msg;

	if (m->h.owner == 0)
		return sio_fail(&rq->err, -EINVAL, "OWNER_CLOSE: owner 0 is the daemon itself");
	if (!rq->owner)
		return sio_fail(&rq->err, -ENOENT, "OWNER_CLOSE: no owner %#" PRIx64,
				(uint64_t)m->h.owner);
	if (rq->owner->ended)
		return sio_fail(&rq->err, -EPERM,
				"OWNER_CLOSE: owner %#" PRIx64 " has ended already: once is right",
				(uint64_t)m->h.owner);
	emu_answer_ok(rq);
	end(rq->owner);
	return 0;
}
