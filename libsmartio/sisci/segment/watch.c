/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How stores through a mapping of a BAR wake the device when it sleeps: by a page fault where the
 * system allows that; otherwise the device polls, until the program says that it will check a word
 * after each store (smartio_map_sleep_word()). docs/waking.md.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/segment/segment.h"
#include "smartio/ext.h"
#include "smartio/gpu.h"
#include "smartio/uapi.h"

_Static_assert(SIO_WAKE_TIMER == 1u << SIO_WATCH_TIMER && SIO_WAKE_FAULT == 1u << SIO_WATCH_FAULT &&
		       SIO_WAKE_EVENT == 1u << SIO_WATCH_EVENT,
	       "a bit for each way");

/* Polled pages of a map, as one piece. */
struct range {
	uint64_t offset, bytes; /* in the segment */
	uint32_t way;		/* SIO_WATCH_* */
};

struct sio_map_watch {
	struct range range[SIO_MAP_PIECES];
	unsigned n;
	bool asking; /* a thread changes the ways; under the lock */
	bool awake;  /* for good: stores come that nothing but looking sees; the asker writes it */
	void *page;  /* with the word; NULL: there is none */
	const volatile uint32_t *word;
	int event_fd; /* -1 */
};

/* Tell smartiod, with @fd (-1: none). @fds (2) take what EVENT brings. */
static int ask(struct sio_mapping *m, const struct range *r, uint32_t way, const int *fd, int *fds,
	       struct sio_rep_seg_watch *rep, struct sio_err *err)
{
	struct sio_msg_seg_watch req = {
		.map = sio_to_le32(m->o.id),
		.kind = sio_to_le32(way),
		.offset = sio_to_le64(r->offset),
		.bytes = sio_to_le64(r->bytes),
	};
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_SEG_WATCH,
				.req_fds = fd,
				.n_req_fds = fd ? 1 : 0,
				.rep = rep,
				.rep_len = sizeof(*rep),
				.fds = fds,
				.max_fds = fds ? 2 : 0};
	int rc;

	if (way == SIO_WATCH_FAULT)
		req.address = sio_to_le64((uintptr_t)m->base + (r->offset - m->offset));
	rc = sio_session_call(m->o.lib->session, &call, err);
	if (rc == 0 && fds)
		rc = sio_session_check_fds(m->o.lib->session, &call, 2, err);
	if (rc && fds)
		for (unsigned i = 0; i < call.n_fds; i++)
			m->o.lib->world->close(m->o.lib->world, fds[i]);
	return rc;
}

/* The descriptor goes to the machine room, and lives there only: its end lets waiting stores go. */
static int by_fault(struct sio_mapping *m, const struct range *r, struct sio_err *err)
{
	struct sio_world *w = m->o.lib->world;
	struct sio_rep_seg_watch rep;
	int fd = w->fault_new(w, (char *)m->base + (r->offset - m->offset), r->bytes), rc;

	if (fd < 0)
		return sio_fail(err, fd, "this system refuses userfaultfd for doorbells: error %d",
				-fd);
	rc = ask(m, r, SIO_WATCH_FAULT, &fd, NULL, &rep, err);
	w->close(w, fd);
	return rc;
}

static bool is_gone(int rc)
{
	return rc == -ESHUTDOWN || rc == -ECONNRESET || rc == -EBADF || rc == -EPROTO;
}

static int choose(struct sio_mapping *m, struct range *r, unsigned ways, struct sio_err *err)
{
	struct sio_rep_seg_watch rep;
	struct sio_err why = {.text = ""};
	int rc = -EOPNOTSUPP;

	r->way = SIO_WATCH_FAULT;
	if (ways & SIO_WAKE_FAULT)
		rc = by_fault(m, r, &why);
	if (rc && (is_gone(rc) || !(ways & SIO_WAKE_TIMER)))
		return sio_fail(err, rc, "%s%s",
				is_gone(rc) ? "" : "SMARTIO_WAKE=fault: ", why.text);
	if (rc == 0)
		return 0;
	r->way = SIO_WATCH_TIMER;
	rc = ask(m, r, SIO_WATCH_TIMER, NULL, NULL, &rep, err);
	/* Hardware never sleeps. */
	return rc == -EOPNOTSUPP ? 0 : rc;
}

int sio_mapping_watch(struct sio_mapping *m, const struct sio_rep_seg_map *rep, struct sio_err *err)
{
	struct sio_world *world = m->o.lib->world;
	struct sio_map_watch *w;
	unsigned ways;
	int rc = 0;

	w = calloc(1, sizeof(*w));
	if (!w)
		return sio_no_memory(err, "what wakes a device through a map");
	w->event_fd = -1;
	for (unsigned i = 0; i < sio_from_le32(rep->n_pieces); i++)
		if (sio_from_le32(rep->piece[i].flags) & SIO_BAR_POLLED &&
		    sio_from_le32(rep->piece[i].access) & SIO_ACCESS_WRITE)
			w->range[w->n++] =
				(struct range){.offset = sio_from_le64(rep->piece[i].offset),
					       .bytes = sio_from_le64(rep->piece[i].bytes)};
	if (w->n == 0) {
		free(w);
		return 0;
	}
	ways = world->wake_ways(world);
	if (!ways)
		rc = sio_fail(err, -EINVAL, "SMARTIO_WAKE: fault, eventfd or timer is right");
	for (unsigned i = 0; !rc && i < w->n; i++)
		rc = choose(m, &w->range[i], ways, err);
	if (rc) {
		free(w);
		return rc;
	}
	__atomic_store_n(&m->watch, w, __ATOMIC_RELEASE); /* pairs with watch_of() */
	return 0;
}

void sio_mapping_watch_free(struct sio_mapping *m)
{
	struct sio_world *world = m->o.lib->world;
	struct sio_map_watch *w = m->watch;

	if (!w)
		return;
	/* As with lost maps: after SCITerminate() a program may still look at the word. */
	if (w->page && sio_library_is_up(m->o.lib))
		world->unmap(world, w->page, SIO_PAGE_SIZE);
	if (w->event_fd >= 0)
		world->close(world, w->event_fd);
	free(w);
}

static int map_word(struct sio_library *lib, struct sio_map_watch *w, int page_fd,
		    const struct sio_rep_seg_watch *rep)
{
	struct sio_world *world = lib->world;
	uint32_t at = sio_from_le32(rep->flag_offset);
	void *page = NULL;
	int rc;

	if (at > SIO_PAGE_SIZE - sizeof(uint32_t) || at % sizeof(uint32_t))
		return -EPROTO;
	rc = world->reserve(world, NULL, false, SIO_PAGE_SIZE, &page);
	if (rc < 0)
		return rc;
	rc = world->map(world, page, SIO_PAGE_SIZE, SIO_PROT_READ, page_fd, 0);
	if (rc < 0) {
		world->unmap(world, page, SIO_PAGE_SIZE);
		return rc;
	}
	w->page = page;
	w->word = (const volatile uint32_t *)((const char *)page + at);
	return 0;
}

/* One descriptor wakes the device for all ranges: of the first we keep it, and the word. */
static void by_event(struct sio_mapping *m, struct sio_map_watch *w, struct range *r)
{
	struct sio_library *lib = m->o.lib;
	struct sio_world *world = lib->world;
	struct sio_rep_seg_watch rep;
	struct sio_err err;
	int fds[2];

	if (ask(m, r, SIO_WATCH_EVENT, NULL, fds, &rep, &err) < 0)
		return;
	r->way = SIO_WATCH_EVENT;
	if (!w->word && map_word(lib, w, fds[0], &rep) == 0) {
		w->event_fd = fds[1];
		fds[1] = -1;
	}
	world->close(world, fds[0]);
	if (fds[1] >= 0)
		world->close(world, fds[1]);
	if (!w->word && ask(m, r, SIO_WATCH_TIMER, NULL, NULL, &rep, &err) == 0)
		r->way = SIO_WATCH_TIMER;
}

/* One thread at a time changes the ways. Return: false: the map is going. */
static bool take_turn(struct sio_mapping *m, struct sio_map_watch *w)
{
	struct sio_library *lib = m->o.lib;
	bool live;

	sio_session_lock(lib->session);
	while (w->asking)
		sio_session_wait(lib->session, NULL, 0, SIO_FOREVER);
	live = !m->o.lost && !sio_object_is_leaving(&m->o);
	w->asking = live;
	sio_session_unlock(lib->session);
	return live;
}

static void end_turn(struct sio_mapping *m, struct sio_map_watch *w)
{
	struct sio_library *lib = m->o.lib;

	sio_session_lock(lib->session);
	w->asking = false;
	sio_session_wake(lib->session);
	sio_session_unlock(lib->session);
}

static void promise(struct sio_mapping *m, struct sio_map_watch *w)
{
	bool done;

	if (!take_turn(m, w))
		return;
	done = w->word || w->awake;
	for (unsigned i = 0; !done && i < w->n; i++)
		if (w->range[i].way == SIO_WATCH_TIMER)
			by_event(m, w, &w->range[i]);
	end_turn(m, w);
}

static struct sio_map_watch *watch_of(struct sio_mapping *m)
{
	return __atomic_load_n(&m->watch, __ATOMIC_ACQUIRE); /* pairs with sio_mapping_watch() */
}

const volatile uint32_t *smartio_map_sleep_word(sci_map_t map)
{
	const volatile uint32_t *word = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_mapping *m = lib ? sio_object_get(lib, map, SIO_MAPPING, &err) : NULL;
	struct sio_map_watch *w = m ? watch_of(m) : NULL;

	if (w) {
		if (lib->world->wake_ways(lib->world) & SIO_WAKE_EVENT)
			promise(m, w);
		word = w->word;
	}
	if (m)
		sio_object_put(&m->o);
	return word;
}

void smartio_map_wake(sci_map_t map)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_mapping *m = lib ? sio_object_get(lib, map, SIO_MAPPING, &err) : NULL;
	struct sio_map_watch *w = m ? watch_of(m) : NULL;

	if (w && w->event_fd >= 0)
		lib->world->event_write(lib->world, w->event_fd);
	if (m)
		sio_object_put(&m->o);
}

static int keep_awake(struct sio_mapping *m, struct sio_map_watch *w, struct sio_err *err)
{
	struct sio_rep_seg_watch rep;
	int rc = 0;

	if (!take_turn(m, w))
		return sio_fail(err, -ECONNRESET, "the map is lost, or being removed");
	for (unsigned i = 0; !rc && i < w->n; i++) {
		if (w->range[i].way == SIO_WATCH_TIMER)
			continue;
		rc = ask(m, &w->range[i], SIO_WATCH_TIMER, NULL, NULL, &rep, err);
		if (!rc)
			w->range[i].way = SIO_WATCH_TIMER;
	}
	w->awake = w->awake || !rc;
	end_turn(m, w);
	return rc;
}

void smartio_map_keep_awake(sci_map_t map, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_mapping *m = lib ? sio_object_get(lib, map, SIO_MAPPING, &err) : NULL;
	struct sio_map_watch *w = m ? watch_of(m) : NULL;
	int rc = m ? 0 : err.code;

	if (w)
		rc = keep_awake(m, w, &err);
	if (m)
		sio_object_put(&m->o);
	sio_api_leave(error, rc, &err);
}
