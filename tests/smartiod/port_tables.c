/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The books of the fake ports: resources, whose they are, and what the end of an owner leaves in
 * quarantine until nothing refers to it; and what goes back to the daemon.
 */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "port.h"

/* ---- resources ---- */

struct world_res *world_res_find(struct world *w, unsigned host, uint32_t kind, uint64_t id)
{
	struct world_res *r = w->res;

	while (r && (r->host != host || r->kind != kind || r->id != id))
		r = r->next;
	return r;
}

struct world_res *world_res_new(struct world *w, unsigned host, uint32_t kind, uint64_t owner)
{
	struct world_res *r = world_calloc(1, sizeof(*r));

	assert(r);
	r->host = host;
	r->kind = kind;
	r->owner = owner;
	r->id = ++w->next_id;
	if (w->falling)
		r->id = UINT32_MAX - r->id;
	r->next = w->res;
	w->res = r;
	return r;
}

void world_res_free(struct world *w, struct world_res *r)
{
	struct world_res **link = &w->res;

	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	/* What ends with its target does so at the next world_settle_memory(). */
	for (struct world_res *u = w->res; u; u = u->next)
		if (u->host == r->host && (u->watched == r->id || u->channel == r->id))
			u->quarantined = true;
	free(r);
}

unsigned world_resources(const struct world *w, uint32_t kind)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += !kind || r->kind == kind;
	return n;
}

unsigned world_count(const struct world *w, unsigned host, uint32_t kind)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += r->host == host && r->kind == kind;
	return n;
}

bool world_port_in_use(const struct world *w, const struct world_res *r)
{
	for (const struct world_res *u = w->res; u; u = u->next)
		if (u->host == r->host && u->target == r->id && u->target_kind == r->kind)
			return true;
	return false;
}

/* ---- events ---- */

void world_answer(struct world *w, unsigned host, const struct sio_req *req, void *evt, size_t len,
		  const int *fds, unsigned n_fds)
{
	struct sio_evt *h = evt;

	h->size = (uint32_t)len;
	h->op = req->op;
	h->cookie = req->cookie;
	h->owner = req->owner;
	world_port_push(w, host, evt, len, fds, n_fds);
}

void world_answer_error(struct world *w, unsigned host, const struct sio_req *req, int error,
			const char *text)
{
	struct sio_evt_error evt = {.h.error = error};

	snprintf(evt.text, sizeof(evt.text), "%s", text);
	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

void world_answer_ok(struct world *w, unsigned host, const struct sio_req *req)
{
	struct sio_evt_ok evt = {.h.error = 0};

	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

void world_port_event(struct world *w, unsigned host, uint32_t op, uint64_t owner, void *evt,
		      size_t len)
{
	struct sio_evt *h = evt;

	h->size = (uint32_t)len;
	h->op = op;
	h->owner = owner;
	world_port_push(w, host, evt, len, NULL, 0);
}

/* ---- owners ---- */

static bool owns(const struct world *w, unsigned host, uint64_t owner)
{
	for (const struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->owner == owner)
			return true;
	return false;
}

void world_settle_memory(struct world *w, unsigned host)
{
	bool again = true;

	while (again) {
		again = false;
		for (struct world_res *r = w->res, *next; r; r = next) {
			next = r->next;
			if (r->host != host || !r->quarantined || r->kind == SIO_KIND_GRANT ||
			    (r->kind == SIO_KIND_DMAMAP && !r->cut) || world_port_in_use(w, r) ||
			    (r->kind == WORLD_GRAVE && owns(w, host, r->id)))
				continue;
			world_res_free(w, r);
			again = true;
			break;
		}
	}
}

static const struct world_res *child_of(const struct world *w, unsigned host, uint64_t owner)
{
	const struct world_res *r = w->res;

	while (r && (r->host != host || r->kind != SIO_KIND_OWNER || r->owner != owner))
		r = r->next;
	return r;
}

void world_owner_end(struct world *w, unsigned host, uint64_t owner, bool tell)
{
	struct sio_evt_owner_gone evt = {.bytes = 0};
	const struct world_res *child;

	while ((child = child_of(w, host, owner)))
		world_owner_end(w, host, child->id, true);
	for (struct world_res *r = w->res, *next; r; r = next) {
		next = r->next;
		if (r->host != host)
			continue;
		if (r->kind == SIO_KIND_OWNER && r->id == owner) {
			r->kind = WORLD_GRAVE;
			r->quarantined = true;
		} else if (r->owner == owner) {
			r->quarantined = true;
			evt.dmamaps += r->kind == SIO_KIND_DMAMAP;
			evt.grants += r->kind == SIO_KIND_GRANT;
		}
	}
	if (w->owner_other)
		w->owner_other(w, host, owner);
	world_settle_memory(w, host);
	if (tell)
		world_port_event(w, host, SIO_EV_OWNER_GONE, owner, &evt, sizeof(evt));
}
