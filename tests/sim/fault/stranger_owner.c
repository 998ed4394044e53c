/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of the stranger, how it sends requests, and how its objects end. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "heap/alloc.h"
#include "fault/stranger.h"

struct stranger stranger;

uint64_t stranger_draw(uint64_t n)
{
	uint64_t r = sim_draw(&stranger.rng);

	return n ? r % n : 0;
}

struct thing *stranger_any(uint32_t kind, bool (*fits)(const struct thing *t, const void *arg),
			   const void *arg)
{
	struct thing *t;
	uint64_t n = 0;

	DL_FOREACH (stranger.things, t)
		n += t->kind == kind && (!fits || fits(t, arg));
	if (n == 0)
		return NULL;
	n = stranger_draw(n);
	DL_FOREACH (stranger.things, t)
		if (t->kind == kind && (!fits || fits(t, arg)) && n-- == 0)
			break;
	return t;
}

struct thing *stranger_find(unsigned host, uint64_t id)
{
	struct thing *t;

	DL_FOREACH (stranger.things, t)
		if (t->host == host && t->id == id)
			break;
	return t;
}

struct thing *stranger_new(uint32_t kind, unsigned host, uint64_t id, uint64_t owner)
{
	struct thing *t = calloc(1, sizeof(*t));

	assert(t);
	*t = (struct thing){.kind = kind,
			    .host = host,
			    .id = id,
			    .owner = owner,
			    .boot = sim_host_boots(host),
			    .fd = -1};
	DL_APPEND(stranger.things, t);
	return t;
}

static void drop(struct thing *t)
{
	DL_DELETE(stranger.things, t);
	if (t->fd >= 0)
		sim_fd_close(t->fd);
	free(t->bytes);
	free(t);
}

static void remember_grant(const struct thing *t)
{
	struct old_grant *o = &stranger.old[stranger.n_old++ % 16];

	*o = (struct old_grant){.host = t->host,
				.adapter = t->adapter,
				.peer = t->peer,
				.peer_adapter = t->peer_adapter,
				.bus = t->bus,
				.length = t->length,
				.generation = t->generation};
	memcpy(o->token, t->token, sizeof(o->token));
}

/* A DMA range of which @t is the channel or the target; NULL: there is none. */
static struct thing *range_of(const struct thing *t)
{
	struct thing *other;

	DL_FOREACH (stranger.things, other)
		if (other->kind == SIO_KIND_DMA_RANGE &&
		    (other->source == t || other->channel == t))
			break;
	return other;
}

/* Drops the record of an owner that has ended when it has no objects any more. */
static void bury(unsigned host, uint64_t owner)
{
	struct thing *w = stranger_find(host, owner), *t;

	if (!w || !w->ended)
		return;
	DL_FOREACH (stranger.things, t)
		if (t->host == host && t->owner == owner && t->kind != SIO_KIND_OWNER)
			return;
	drop(w);
}

void stranger_gone(struct thing *t)
{
	struct thing *source = t->source, *other;
	uint64_t owner = t->owner;
	unsigned host = t->host;
	bool grant = t->kind == SIO_KIND_GRANT;

	while ((other = range_of(t)))
		stranger_gone(other);
	if (grant)
		remember_grant(t);
	drop(t);
	if (grant && --source->refs == 0 && source->ended)
		stranger_gone(source);
	bury(host, owner);
}

static struct thing *child_of(const struct thing *w)
{
	struct thing *t;

	DL_FOREACH (stranger.things, t)
		if (t->kind == SIO_KIND_OWNER && t->host == w->host && t->owner == w->id &&
		    !t->ended)
			break;
	return t;
}

/* An object that ends with its owner: all do except grants and the memory of grants. */
static struct thing *falls(const struct thing *w)
{
	struct thing *t;

	DL_FOREACH (stranger.things, t)
		if (t->host == w->host && t->owner == w->id && t->kind != SIO_KIND_OWNER &&
		    t->kind != SIO_KIND_GRANT && t->refs == 0)
			break;
	return t;
}

void stranger_owner_ends(struct thing *w)
{
	struct thing *t;
	uint64_t id = w->id;
	unsigned host = w->host;

	while ((t = child_of(w)))
		stranger_owner_ends(t);
	DL_FOREACH (stranger.things, t)
		if (t->host == host && t->owner == id && t->kind != SIO_KIND_OWNER)
			t->ended = true;
	while ((t = falls(w)))
		stranger_gone(t);
	w->ended = true;
	w->owner = 0;
	if (w->fd >= 0)
		sim_fd_close(w->fd);
	w->fd = -1;
	bury(host, id);
}

/* Windows of other hosts that led there stay. */
void stranger_forget_dead(void)
{
	struct thing *t, *next;

	DL_FOREACH_SAFE (stranger.things, t, next) {
		if (sim_cluster->room->host[t->host].up && t->boot == sim_host_boots(t->host))
			continue;
		if (t->kind == SIO_KIND_GRANT)
			remember_grant(t);
		drop(t);
	}
}

/* ---- requests ---- */
static bool is_one_of(int error, const int *errors)
{
	/* Where no error is expected the port may still lack room for something new. */
	if (!errors || !*errors)
		return error == 0 || error == -ENOSPC || error == -ENOMEM || error == -EMFILE;
	for (; *errors; errors++)
		if (*errors == error)
			return true;
	return false;
}

int stranger_ask(unsigned host, void *req, size_t size, uint32_t op, const int *errors)
{
	struct sio_req *h = req;
	uint64_t fail_in = sim_alloc_fail_in;

	while (stranger.n_fds > 0)
		sim_fd_close(stranger.fds[--stranger.n_fds]);
	h->size = (uint32_t)size;
	h->op = op;
	h->cookie = 1;
	stranger.acting = true;
	stranger.answer.h.op = 0;
	sim_room_host = host;
	sim_alloc_fail_in = 0;
	emu_room_request(sim_cluster->room, host, req, size, NULL, 0);
	sim_alloc_fail_in = fail_in;
	stranger.acting = false;
	assert(stranger.answer.h.op == op);
	stranger.error = stranger.answer.h.error;
	sim_did.stranger++;
	sim_trace("stranger: port %u op %u error %d", sim_node(host), op, stranger.error);
	if (!is_one_of(stranger.error, errors))
		sim_fail("stranger", "port of node %u: op %u gives %d, not %d: %s", sim_node(host),
			 op, stranger.error, errors ? errors[0] : 0,
			 stranger.error ? stranger.answer.refusal.text : "");
	return stranger.error;
}

int stranger_end(unsigned host, uint32_t op, uint64_t id, uint64_t owner, const int *errors)
{
	struct sio_req_free req = {.h.owner = owner, .id = id};

	return stranger_ask(host, &req, sizeof(req), op, errors);
}

/* ---- owners ---- */
static bool lives_on(const struct thing *t, const void *arg)
{
	return !t->ended && t->host == *(const unsigned *)arg;
}

uint64_t stranger_owner(unsigned host)
{
	const struct thing *t = stranger_any(SIO_KIND_OWNER, lives_on, &host);

	return t ? t->id : 0;
}

bool stranger_lives(unsigned host, uint64_t owner)
{
	const struct thing *t = stranger_find(host, owner);

	return t && !t->ended;
}

uint64_t stranger_asker(const struct thing *t, bool *ret_foreign)
{
	const struct thing *other = stranger_any(SIO_KIND_OWNER, stranger_is_on, &t->host);

	*ret_foreign = false;
	switch (stranger_draw(4)) {
	case 0:
		*ret_foreign = other && other->id != t->owner;
		return other ? other->id : t->owner;
	case 1:
		return 0;
	default:
		return t->owner;
	}
}

void stranger_end_any(unsigned host, uint32_t kind, uint32_t op)
{
	struct thing *t = stranger_any(kind, stranger_is_on, &host);
	struct errors want = {0};
	bool foreign;
	uint64_t who;

	if (!t)
		return;
	who = stranger_asker(t, &foreign);
	errors_add(&want, foreign, -EPERM);
	if (stranger_end(host, op, t->id, who, want.e) == 0)
		stranger_gone(t);
}

struct emu_path *stranger_path(const struct thing *map)
{
	return emu_path_find(&sim_cluster->room->host[map->host], map->adapter, map->peer,
			     map->peer_adapter);
}
