/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches: what wakes a sleeping device. There is one watch for each mapping of polled pages. What
 * a watch waits for is the edge's decision (struct emu_ops). This file decides who may have one,
 * and whether there is a mapping whose stores wake nobody, so that the room must poll.
 */
#include "emu/device/device.h"
#include "smartio/io.h"

/* A map of a host that was started again, or over a link with other addresses, leads nowhere. */
static bool leads_somewhere(const struct emu_map *m)
{
	const struct emu_path *p =
		emu_path_find(m->o.host, m->adapter, m->peer_host, m->peer_adapter);

	return m->o.host->room->host[m->peer_host].up && p &&
	       emu_path_start(m->o.host, p) == m->peer_generation;
}

/* The polled pages that a program may write to through @o; NULL: none. */
static struct emu_run *polled_run(const struct emu_object *o)
{
	const struct emu_bar *b = (const struct emu_bar *)o;

	if (o->kind == SIO_KIND_MAP)
		return ((const struct emu_map *)o)->polled;
	if (b->cut)
		return NULL;
	return b->access & SIO_ACCESS_WRITE && emu_run_polled(b->run) ? b->run : NULL;
}

static int check_target(struct emu_request *rq, const struct sio_req_watch *m,
			struct emu_object **ret, struct emu_run **ret_run)
{
	if (m->target_kind != SIO_KIND_BAR && m->target_kind != SIO_KIND_MAP)
		return sio_fail(&rq->err, -EINVAL,
				"WATCH: target kind %u, %d (BAR view) or %d (map) is right",
				m->target_kind, SIO_KIND_BAR, SIO_KIND_MAP);
	*ret = emu_object_find_any(rq, m->target_kind, m->target);
	if (!*ret)
		return rq->err.code;
	if ((*ret)->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"WATCH: owner %#" PRIx64 " of %s %#" PRIx64 " has ended",
				(*ret)->owner->o.id, emu_object_name(*ret), (*ret)->id);
	if (emu_bar_check(rq, "WATCH", *ret) < 0)
		return rq->err.code;
	if ((*ret)->kind == SIO_KIND_MAP && ((const struct emu_map *)*ret)->cut)
		return sio_fail(&rq->err, -ENODEV,
				"WATCH: the device behind map %#" PRIx64 " is gone", (*ret)->id);
	*ret_run = polled_run(*ret);
	if (!*ret_run)
		return sio_fail(&rq->err, -EACCES,
				"WATCH: %s %#" PRIx64
				" does not write to pages that a device looks at",
				emu_object_name(*ret), (*ret)->id);
	return emu_range_check(rq, "WATCH", *ret, m->offset, m->length);
}

static int check_way(struct emu_request *rq, const struct sio_req_watch *m)
{
	bool fault = m->kind == SIO_WATCH_FAULT;
	uint64_t end;

	if (m->kind < SIO_WATCH_TIMER || m->kind > SIO_WATCH_EVENT)
		return sio_fail(&rq->err, -EINVAL,
				"WATCH: kind %u, %d (timer), %d (fault) or %d (event) is right",
				m->kind, SIO_WATCH_TIMER, SIO_WATCH_FAULT, SIO_WATCH_EVENT);
	if (fault != (rq->fd >= 0))
		return sio_fail(&rq->err, -EINVAL,
				"WATCH: kind %u comes with %s descriptor, %s is right", m->kind,
				fault ? "no" : "a", fault ? "a userfaultfd" : "none");
	if (!fault && m->address)
		return sio_fail(&rq->err, -EINVAL,
				"WATCH: address %#" PRIx64 " with kind %u, 0 is right",
				(uint64_t)m->address, m->kind);
	if (fault && (m->address == 0 || m->address % EMU_PAGE ||
		      __builtin_add_overflow(m->address, m->length, &end)))
		return sio_fail(&rq->err, -EINVAL,
				"WATCH: address %#" PRIx64 " + %#" PRIx64 " is no range of pages",
				(uint64_t)m->address, (uint64_t)m->length);
	if (rq->host->n_of_kind[SIO_KIND_WATCH] >= EMU_WATCHES)
		return sio_fail_exhausted(&rq->err, -ENOSPC, SIO_OUT_OF_WATCHES,
					  "WATCH: %s has %d already, which is the most",
					  rq->host->topo->name, EMU_WATCHES);
	return 0;
}

/* The page of @d with its word, when it is first asked for. */
static int make_doze(struct emu_request *rq, struct emu_device *d)
{
	struct emu_room *r = d->room;
	int rc;

	if (d->doze.data)
		return 0;
	rc = r->ops->mem_new(r->ctx, "doze", EMU_PAGE, &d->doze);
	if (rc < 0) {
		memset(&d->doze, 0, sizeof(d->doze));
		return sio_fail(&rq->err, rc, "WATCH: no memory for a page: " SIO_MORE_MEMORY);
	}
	rc = r->ops->mem_seal(r->ctx, &d->doze);
	if (rc < 0) {
		r->ops->mem_free(r->ctx, &d->doze);
		memset(&d->doze, 0, sizeof(d->doze));
		return sio_fail(&rq->err, rc, "WATCH: a page cannot be sealed");
	}
	return 0;
}

/* Frees it with the last watch that needs it, or when its host is powered off. */
static void drop_doze(struct emu_device *d)
{
	struct emu_room *r = d->room;

	if (d->n_dozing || !d->doze.data)
		return;
	r->ops->mem_free(r->ctx, &d->doze);
	memset(&d->doze, 0, sizeof(d->doze));
}

/* Give the edge the descriptor to wait for: the program's, or one of ours for both. */
static int begin(struct emu_request *rq, const struct sio_req_watch *m, struct emu_watch *w,
		 int *ret_fd)
{
	struct emu_room *r = rq->host->room;
	int fd = rq->fd, rc = 0;

	if (m->kind == SIO_WATCH_EVENT) {
		rc = make_doze(rq, w->run->device);
		if (rc < 0)
			return rc;
		rc = r->ops->event_new(r->ctx, &fd);
	}
	if (rc < 0)
		return sio_fail(&rq->err, rc, "WATCH: no event descriptor");
	rc = r->ops->watch_new(r->ctx, rq->host->index, w->o.id, m->kind, fd, m->address,
			       m->length);
	if (rc == 0) {
		rq->fd = -1;
		*ret_fd = fd;
		return 0;
	}
	if (fd != rq->fd)
		r->ops->close(r->ctx, fd);
	return sio_fail(&rq->err, rc,
			m->kind == SIO_WATCH_FAULT
				? "WATCH: the descriptor is no userfaultfd in which %#" PRIx64
				  " + %#" PRIx64 " is registered for write protection (error %d)"
				: "WATCH: %#" PRIx64 " + %#" PRIx64 ": not to be had (error %d)",
			(uint64_t)m->address, (uint64_t)m->length, -rc);
}

int emu_op_watch(struct emu_request *rq, const void *msg)
{
	const struct sio_req_watch *m = msg;
	struct emu_object *target = NULL;
	struct sio_evt_watch evt;
	struct emu_run *run = NULL;
	struct emu_watch *w;
	int rc, fds[2] = {-1, -1};

	rc = check_target(rq, m, &target, &run);
	if (rc == 0)
		rc = check_way(rq, m);
	if (rc < 0)
		return rc;
	w = emu_object_new(rq, SIO_KIND_WATCH, sizeof(*w), 0);
	if (!w)
		return rq->err.code;
	w->run = run;
	w->kind = m->kind;
	w->length = m->length;
	if (m->kind != SIO_WATCH_TIMER)
		rc = begin(rq, m, w, &fds[1]);
	if (rc < 0) {
		drop_doze(run->device);
		emu_object_drop(&w->o);
		return rc;
	}
	w->boot = run->device->host->boot_generation;
	run->device->n_dozing += m->kind == SIO_WATCH_EVENT;
	w->target = target;
	emu_object_attach(&w->o, target);
	memset(&evt, 0, sizeof(evt));
	evt.id = w->o.id;
	fds[0] = run->device->doze.fd;
	emu_answer(rq, &evt, sizeof(evt), fds, m->kind == SIO_WATCH_EVENT ? 2 : 0);
	return 0;
}

int emu_op_unwatch(struct emu_request *rq, const void *msg)
{
	const struct sio_req_unwatch *m = msg;
	struct emu_watch *w = emu_object_find(rq, SIO_KIND_WATCH, m->id);

	if (!w)
		return rq->err.code;
	emu_object_free(&w->o);
	emu_answer_ok(rq);
	return 0;
}

/* No event watch any more; of a host that crashed since, nothing is left. */
static void stop(struct emu_watch *w)
{
	struct emu_device *d = w->run->device;

	if (w->kind != SIO_WATCH_EVENT || !d->host->up || w->boot != d->host->boot_generation)
		return;
	d->n_dozing--;
	drop_doze(d);
}

static void release(struct emu_object *o)
{
	struct emu_watch *w = (struct emu_watch *)o;
	struct emu_room *r = o->host->room;

	emu_object_detach(o, w->target);
	if (w->kind != SIO_WATCH_TIMER)
		r->ops->watch_free(r->ctx, w->o.host->index, w->o.id);
	stop(w);
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_watch *w = (const struct emu_watch *)o;

	e->cookie = w->target->id;
	e->address = w->kind;
	e->length = w->length;
	e->device = w->run->device->topo->fdid;
	e->node = w->run->device->host->topo->node;
	e->refs = w->fired;
}

const struct emu_kind emu_kind_watch = {
	.name = "watch", .rank = EMU_RANK_SENDER, .descriptors = 1, .release = release, .row = row};

static bool is_watched(const struct emu_object *target)
{
	const struct emu_object *o;

	DL_FOREACH2(target->attached, o, attached_next)
	if (o->kind == SIO_KIND_WATCH)
		return true;
	return false;
}

/* Whether stores through @o are seen by looking only. */
static bool needs_naps(const struct emu_object *o)
{
	const struct emu_bar *b = (const struct emu_bar *)o;
	const struct emu_map *m = (const struct emu_map *)o;
	const struct emu_watch *w = (const struct emu_watch *)o;

	if (o->state != SIO_STATE_LIVE)
		return false;
	switch (o->kind) {
	case SIO_KIND_BAR: /* of a granted one the daemon's descriptor is unowned */
		return polled_run(o) && !is_watched(o) && !b->n_grants;
	case SIO_KIND_MAP:
		return m->polled && !is_watched(o) && leads_somewhere(m);
	case SIO_KIND_WATCH:
		return w->kind == SIO_WATCH_TIMER && polled_run(w->target) &&
		       (w->target->kind != SIO_KIND_MAP ||
			leads_somewhere((const struct emu_map *)w->target));
	default:
		return false;
	}
}

bool emu_watches_nap(struct emu_room *r)
{
	struct emu_object *o, *tmp;

	if (!r->watch_dirty)
		return r->naps;
	r->watch_dirty = false;
	r->naps = false;
	for (unsigned i = 0; i < r->n_hosts && !r->naps; i++)
		HASH_ITER (hh, r->host[i].objects, o, tmp)
			if (needs_naps(o)) {
				r->naps = true;
				break;
			}
	return r->naps;
}

void emu_watches_doze(struct emu_room *r, bool asleep)
{
	for (unsigned i = 0; i < r->n_devices; i++)
		if (r->device[i]->doze.data)
			sio_write32(r->device[i]->doze.data, asleep);
	/* The word, then the last look: pairs with sio_nvme_wake() and sio_accel_wake(). */
	if (asleep)
		sio_full_barrier();
}

static struct emu_watch *find(const struct emu_host *h, uint64_t id)
{
	struct emu_object *o = emu_object_by_id(h, id);

	return o && o->kind == SIO_KIND_WATCH ? (struct emu_watch *)o : NULL;
}

void emu_watch_fired(struct emu_host *h, uint64_t id)
{
	struct emu_watch *w = find(h, id);
	struct emu_object *o = w ? NULL : emu_object_by_id(h, id);

	if (o && o->kind == SIO_KIND_MAP)
		emu_machine_ring((struct emu_map *)o);
	if (!w)
		return;
	w->fired++;
	w->run->device->wakes[w->kind]++;
}

void emu_watch_broken(struct emu_host *h, uint64_t id)
{
	struct emu_watch *w = find(h, id);

	if (!w)
		return;
	stop(w);
	w->kind = SIO_WATCH_TIMER;
	h->room->watch_dirty = true;
}
