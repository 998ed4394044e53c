/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are answered from the module's LIST: further columns, and operations on all objects
 * of a kind.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "smartiod/port_shim/shim_port_own.h"

/* ---- looking ---- */

int shim_call_find(const struct shim_call *c, uint32_t kind, uint64_t id,
		   struct sio_list_entry *ret)
{
	struct shim_call q = {.n_fds = 0};
	struct sio_req_list *m = (void *)&q.req;
	const struct sio_evt_list *l = (const void *)&q.answer;
	int r;

	*ret = (struct sio_list_entry){0};
	if (id == 0)
		return -ENOENT;
	m->kind = kind;
	m->after = id - 1;
	r = shim_call_ask(c, &q, SIO_OP_LIST, sizeof(*m));
	if (r < 0)
		return r;
	if (l->count == 0 || l->entry[0].id != id)
		return -ENOENT;
	*ret = l->entry[0];
	return 0;
}

int shim_call_for_all(const struct shim_call *c, uint32_t kind,
		      void (*each)(const struct sio_list_entry *e, void *data), void *data)
{
	struct shim_call q = {.n_fds = 0};
	struct sio_req_list *m = (void *)&q.req;
	const struct sio_evt_list *l = (const void *)&q.answer;

	do {
		int r;

		m->kind = kind;
		r = shim_call_ask(c, &q, SIO_OP_LIST, sizeof(*m));
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < l->count; i++) {
			m->after = l->entry[i].id;
			each(&l->entry[i], data);
		}
	} while (l->more);
	return 0;
}

/* ---- SETTLE: the mappings of ended owners, one after the other ---- */

struct settle {
	struct shim_call *call;
	uint64_t device, owner;
	uint64_t n, mems, bytes;
	int error; /* of the first that could not be ended */
};

static bool is_settled(const struct settle *s, const struct sio_list_entry *e)
{
	return e->state == SIO_STATE_QUARANTINED && e->owner == s->owner;
}

static void settle_one(const struct sio_list_entry *e, void *data)
{
	struct shim_call q = {.req.words[sizeof(struct sio_req) / 8] = e->id};
	struct settle *s = data;

	int r;

	if (e->device != s->device || !is_settled(s, e))
		return;
	q.req.h.flags = SIO_DMAUNMAP_SETTLED;
	r = shim_call_ask(s->call, &q, SIO_OP_DMAUNMAP, sizeof(struct sio_req_dmaunmap));
	s->call->unsettled |= q.unsettled;
	s->n += r == 0;
	if (r < 0 && r != -ENOENT && !s->error)
		s->error = r;
}

static void settle_count(const struct sio_list_entry *e, void *data)
{
	struct settle *s = data;

	s->mems += is_settled(s, e);
	s->bytes += is_settled(s, e) ? e->length : 0;
}

/* Whoever asks again settles the rest. What was freed by it may stay untold. */
static int settle_all(struct shim_call *c, struct settle *s, struct settle *after)
{
	int r = shim_call_for_all(c, SIO_KIND_MEM, settle_count, s);

	if (r == 0)
		r = shim_call_for_all(c, SIO_KIND_DMAMAP, settle_one, s);
	if (r == 0)
		r = s->error;
	if (r == 0 && shim_call_for_all(c, SIO_KIND_MEM, settle_count, after) < 0)
		*after = *s;
	return r;
}

/* An owner that has ended; else it is refused. */
static bool needs_ended(struct shim_call *c, uint64_t owner)
{
	struct sio_list_entry e;
	int r = shim_call_find(c, SIO_KIND_OWNER, owner, &e);

	if (r == -ENOENT)
		shim_call_refuse(c, r, "SETTLE: no owner %#" PRIx64, owner);
	else if (r < 0)
		shim_call_refuse(c, r,
				 "SETTLE: the kernel module does not report owner %#" PRIx64 ": %s",
				 owner, strerror(-r));
	else if (e.state == SIO_STATE_LIVE)
		shim_call_refuse(
			c, -EPERM,
			"SETTLE: owner %#" PRIx64 " is alive: its mappings end by DMAUNMAP", owner);
	return r == 0 && e.state != SIO_STATE_LIVE;
}

void shim_call_settle(struct shim_call *c)
{
	struct sio_req_settle m;
	struct settle s = {.call = c}, after = {.call = c};
	struct sio_evt_device device;
	struct sio_evt_settle *evt;
	int r;

	if (!shim_call_formed(c, 0))
		return;
	memcpy(&m, &c->req, sizeof(m));
	s.device = m.device;
	s.owner = after.owner = m.h.owner;
	if (m.h.owner == 0) {
		shim_call_refuse(c, -EINVAL, "SETTLE: name an owner that has ended");
		return;
	}
	if (!shim_call_needs_device(c, "SETTLE: ", m.device, &device) || !needs_ended(c, m.h.owner))
		return;
	r = settle_all(c, &s, &after);
	if (r < 0) {
		shim_call_refuse(c, r, "SETTLE: not all could be settled: %s", strerror(-r));
		return;
	}
	evt = shim_call_answer(c, sizeof(*evt));
	evt->dmamaps = s.n;
	evt->mems = s.mems - after.mems;
	evt->bytes = s.bytes - after.bytes;
}

/* ---- IDENTIFY ---- */

/* A descriptor that can do nothing (O_PATH) proves nothing. */
static bool is_ours(int fd, uint64_t *ret_id)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != SIO_FS_MAGIC ||
	    fcntl(fd, F_GETFL) & O_PATH || fstat(fd, &st) < 0)
		return false;
	*ret_id = st.st_ino;
	return true;
}

void shim_call_identify(struct shim_call *c)
{
	struct sio_evt_identify *evt;
	struct sio_list_entry e;
	uint64_t id;

	if (!shim_call_formed(c, 1))
		return;
	if (c->n_fds != 1 || !is_ours(c->fd[0], &id)) {
		shim_call_refuse(c, -EBADF, "IDENTIFY: no descriptor of a resource came along");
		return;
	}
	evt = shim_call_answer(c, sizeof(*evt));
	evt->id = id;
	for (uint32_t kind = SIO_KIND_OWNER; kind <= SIO_KIND_VECTOR; kind++) {
		int r = shim_call_find(c, kind, id, &e);

		if (r < 0 && r != -ENOENT && r != -EINVAL) {
			shim_call_refuse(c, r,
					 "IDENTIFY: the kernel module does not identify it: %s",
					 strerror(-r));
			return;
		}
		if (r < 0)
			continue;
		evt->kind = kind;
		evt->state = e.state;
		evt->owner = e.owner;
		evt->user_cookie = kind == SIO_KIND_OWNER ? e.cookie : 0;
	}
}

/* ---- LIST ---- */

/* Open devices: to the module they are no objects. */
static void list_devices(struct shim_call *c)
{
	const struct sio_req_list *m = (const void *)&c->req;
	uint64_t after = m->after;
	struct sio_evt_list *evt = shim_call_answer(c, sizeof(*evt));
	struct shim_call q = {.n_fds = 0};
	const struct sio_evt_device *device = (const void *)&q.answer;
	int r;

	do {
		q.req.words[sizeof(struct sio_req) / 8] = after;
		r = shim_call_ask(c, &q, SIO_OP_DEVICE_LIST, sizeof(struct sio_req_device_list));
		if (r < 0 && r != -ENOENT)
			shim_call_refuse(c, r,
					 "LIST: the kernel module does not list the devices: %s",
					 strerror(-r));
		if (r < 0)
			return;
		after = device->id;
		if (device->present == SHIM_DEVICE_OPEN)
			evt->entry[evt->count++] = (struct sio_list_entry){.id = device->id,
									   .kind = SIO_KIND_DEVICE,
									   .state = SIO_STATE_LIVE,
									   .device = device->id};
	} while (evt->count < SIO_LIST_MAX);
	evt->more = 1;
}

void shim_call_list(struct shim_call *c)
{
	const struct sio_req_list *m = (const void *)&c->req;
	uint32_t kind = m->kind;

	if (!shim_call_formed(c, 0))
		return;
	if (kind < SIO_KIND_OWNER || kind > SIO_KIND_SHADOW ||
	    (kind > SIO_KIND_IRQ && kind < SIO_KIND_WATCH))
		shim_call_refuse(c, -EINVAL, "LIST: kind %u, %d to %d and %d to %d are right", kind,
				 SIO_KIND_OWNER, SIO_KIND_IRQ, SIO_KIND_WATCH, SIO_KIND_SHADOW);
	else if (kind == SIO_KIND_DEVICE)
		list_devices(c);
	else
		shim_call_module(c);
}
