/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: the address space of a process (struct sio_world), and the room's (struct emu_ops). */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "base/sim.h"

unsigned sim_room_host;

#define MOST (1ull << 32) /* bytes of one map: others lie about a segment's length */

/* ---- of a process ---- */
static void remember(struct sim_proc *p, void *at, size_t len)
{
	p->maps = realloc(p->maps, (p->n_maps + 1) * sizeof(*p->maps));
	assert(p->maps);
	p->maps[p->n_maps].at = at;
	p->maps[p->n_maps++].len = len;
}

/* Each map gets addresses of its own; an address that a program asks for counts as taken. */
int sim_world_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	struct sim_proc *p = sim_step(w);

	(void)hint;
	if (fixed)
		return -EEXIST;
	if (sim_fails(p) || len > MOST)
		return -ENOMEM;
	*ret = fabric_reserve(p, len);
	remember(p, *ret, len);
	return 0;
}

/* ---- windows to other hosts ---- */
static int last_ended[SIM_HOSTS][SIM_HOSTS]; /* descriptors up to it */

/* The memory of a fused group belongs to all members. */
static bool leads_away(const struct sim_proc *p, const struct fabric_mem *m)
{
	return m->host != p->host && strcmp(m->name, "group") != 0;
}

bool sim_window_ended(int fd, unsigned from, unsigned to)
{
	return fd <= last_ended[from][to];
}

void sim_windows_start(void)
{
	memset(last_ended, 0, sizeof(last_ended));
}

static void end_map(const struct sim_proc *p, const struct sim_map *m, unsigned host)
{
	for (size_t done = 0; done < m->len; done += FABRIC_PAGE) {
		uint8_t *at = (uint8_t *)m->at + done;
		const struct fabric_mem *to = fabric_mem_at(at);

		if (to && leads_away(p, to) && (p->host == host || to->host == host))
			fabric_map_ones(at, FABRIC_PAGE);
	}
}

void sim_windows_end(unsigned host)
{
	for (unsigned i = 0; i < SIM_HOSTS; i++)
		last_ended[host][i] = last_ended[i][host] = sim_fd_last();
	SIM_EACH_PROC(p)
	for (unsigned i = 0; !p->dead && i < p->n_maps; i++)
		end_map(p, &p->maps[i], host);
}

int sim_world_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	struct sim_proc *p = sim_step(w);
	struct sim_object *o;

	sim_sync();
	if (sim_is_scarce(p, SIM_MAP_FD))
		return -ENOMEM;
	o = sim_fd(fd);
	assert(o->kind == SIM_MEM);
	if (leads_away(p, o->mem) && sim_window_ended(fd, p->host, o->mem->host))
		fabric_map_ones(at, len);
	else
		fabric_map(at, len, o->mem, offset, prot & SIO_PROT_WRITE);
	return 0;
}

int sim_world_map_ones(struct sio_world *w, void *at, size_t len)
{
	sim_step(w);
	sim_sync();
	fabric_map_ones(at, len);
	return 0;
}

int sim_world_map_aside(struct sio_world *w, void *at, size_t len, void **ret)
{
	struct sim_proc *p = sim_step(w);

	sim_sync();
	if (sim_is_scarce(p, SIM_MAP_ASIDE))
		return -ENOMEM;
	*ret = fabric_reserve(p, len);
	remember(p, *ret, len);
	fabric_move(at, *ret, len);
	fabric_map_ones(at, len);
	return 0;
}

static void forget(struct sim_proc *p, const void *at, size_t len)
{
	for (unsigned i = 0; i < p->n_maps; i++) {
		if (p->maps[i].at == at && p->maps[i].len == len) {
			p->maps[i] = p->maps[--p->n_maps];
			return;
		}
	}
	assert(!"unmap of what was not reserved");
}

int sim_world_map_back(struct sio_world *w, void *aside, void *at, size_t len)
{
	struct sim_proc *p = sim_step(w);

	sim_sync();
	if (sim_is_scarce(p, SIM_MAP_BACK))
		return -ENOMEM;
	fabric_move(aside, at, len);
	forget(p, aside, len);
	return 0;
}

/* ---- pages of the program itself: memory of its host that no other program knows ---- */
static void map_private(struct sim_proc *p, void *at, size_t len, const void *contents)
{
	void *view;
	struct fabric_mem *m = fabric_mem_new(p->host, "pages", len, &view);

	if (contents)
		memcpy(m->bytes, contents, len);
	fabric_map(at, len, m, 0, true);
	fabric_mem_close(view);
	fabric_mem_unref(m); /* the map holds a reference now */
}

void *sim_pages_new(size_t len)
{
	struct sim_proc *p = sim_self();
	void *at = fabric_reserve(p, len);

	remember(p, at, len);
	map_private(p, at, len, NULL);
	return at;
}

void sim_pages_free(void *at, size_t len)
{
	forget(sim_self(), at, len);
	sim_sync();
	fabric_unmap(at, len);
}

/* The memory behind all of @len, as this processor sees it. NULL: no mapped pages. */
static struct fabric_mem *memory_at(void *at, size_t len)
{
	struct fabric_view v;

	if (!fabric_is_ours(at))
		return NULL;
	if (sim_coro_current()->core)
		fabric_core_barrier(sim_coro_current()->core, FABRIC_FULL);
	v = fabric_look(at, 1, true);
	assert(!v.mem || (v.offset == 0 && len <= v.mem->size));
	return v.mem;
}

int sim_world_pages_adopt(struct sio_world *w, void *at, size_t len, int fd)
{
	struct sim_proc *p = sim_step(w);
	struct fabric_mem *from, *to = sim_fd(fd)->mem;

	sim_sync();
	from = memory_at(at, len);
	if (!from)
		return -EOPNOTSUPP;
	if (sim_fails(p))
		return -ENOMEM;
	memcpy(to->bytes, from->bytes, len);
	fabric_map(at, len, to, 0, true);
	return 0;
}

int sim_world_pages_release(struct sio_world *w, void *at, size_t len, int fd)
{
	struct sim_proc *p = sim_step(w);
	struct fabric_mem *m;

	(void)fd;
	sim_sync();
	m = memory_at(at, len);
	if (sim_fails(p))
		return -ENOMEM;
	if (m)
		map_private(p, at, len, m->bytes);
	return 0;
}

void sim_world_unmap(struct sio_world *w, void *at, size_t len)
{
	forget(sim_step(w), at, len);
	sim_sync();
	fabric_unmap(at, len);
}

void sim_space_free(struct sim_proc *p)
{
	for (unsigned i = 0; i < p->n_maps; i++)
		fabric_unmap(p->maps[i].at, p->maps[i].len);
	free(p->maps);
	p->maps = NULL;
	p->n_maps = 0;
}

/* ---- memory of the machine room ---- */
int sim_mem_new(void *ctx, const char *name, uint64_t size, struct emu_mem *ret)
{
	(void)ctx;
	ret->fd = sim_fd_new(SIM_MEM);
	ret->size = size;
	sim_fd(ret->fd)->mem = fabric_mem_new(sim_room_host, name, size, &ret->data);
	if (fabric_is_device(sim_fd(ret->fd)->mem))
		sim_fd(ret->fd)->mem->in = ret->in;
	return 0;
}

/*
 * Whoever maps it for writing is refused by whoever hands it out; the library asks for what it may.
 */
int sim_mem_seal(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	fabric_mem_seal(sim_fd(m->fd)->mem);
	return 0;
}

void sim_mem_zero(void *ctx, const struct emu_mem *m)
{
	(void)ctx;
	fabric_mem_zero(sim_fd(m->fd)->mem);
}

void sim_mem_ones(void *ctx, const struct emu_mem *m)
{
	(void)ctx;
	fabric_mem_ones(sim_fd(m->fd)->mem);
}

void sim_mem_free(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	fabric_mem_close(m->data);
	sim_fd_close(m->fd);
}
