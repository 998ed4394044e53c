/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: the address space of a process (struct sio_world), and the room's (struct emu_ops). */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim.h"

/* ---- of a process ---- */
static void remember(struct sim_proc *p, void *at, size_t len)
{
	p->maps = realloc(p->maps, (p->n_maps + 1) * sizeof(*p->maps));
	assert(p->maps);
	p->maps[p->n_maps].at = at;
	p->maps[p->n_maps++].len = len;
}

int sim_world_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	struct sim_proc *p = sim_step(w);
	void *at = mmap(hint, len, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				(fixed ? MAP_FIXED_NOREPLACE : 0),
			-1, 0);

	if (at == MAP_FAILED)
		return -errno;
	remember(p, at, len);
	*ret = at;
	return 0;
}

int sim_world_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	struct sim_object *o;
	int flags = 0;

	sim_step(w);
	o = sim_fd(fd);
	assert(o->kind == SIM_MEM);
	if (prot & SIO_PROT_READ)
		flags |= PROT_READ;
	if (prot & SIO_PROT_WRITE)
		flags |= PROT_WRITE;
	if (mmap(at, len, flags, MAP_SHARED | MAP_FIXED, o->memfd, (off_t)offset) == MAP_FAILED)
		return -errno;
	return 0;
}

int sim_world_map_ones(struct sio_world *w, void *at, size_t len)
{
	sim_step(w);
	if (mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return -errno;
	memset(at, 0xff, len);
	return 0;
}

int sim_world_map_aside(struct sio_world *w, void *at, size_t len, void **ret)
{
	struct sim_proc *p = sim_step(w);

	*ret = mremap(at, 0, len, MREMAP_MAYMOVE);
	if (*ret == MAP_FAILED)
		return -errno;
	remember(p, *ret, len);
	return sim_world_map_ones(w, at, len);
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

	if (mremap(aside, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		return -errno;
	forget(p, aside, len);
	return 0;
}

/* What runs in the simulator has no pages of its own. */
int sim_world_pages_adopt(struct sio_world *w, void *at, size_t len, int fd)
{
	(void)at;
	(void)len;
	(void)fd;
	sim_step(w);
	return -EOPNOTSUPP;
}

int sim_world_pages_release(struct sio_world *w, void *at, size_t len)
{
	(void)at;
	(void)len;
	sim_step(w);
	return 0;
}

void sim_world_unmap(struct sio_world *w, void *at, size_t len)
{
	forget(sim_step(w), at, len);
	munmap(at, len);
}

void sim_space_free(struct sim_proc *p)
{
	for (unsigned i = 0; i < p->n_maps; i++)
		munmap(p->maps[i].at, p->maps[i].len);
	free(p->maps);
	p->maps = NULL;
	p->n_maps = 0;
}

/* ---- the room's ---- */
int sim_mem_new(void *ctx, const char *name, uint64_t size, struct emu_mem *ret)
{
	int memfd = memfd_create(name, MFD_CLOEXEC), fd;

	(void)ctx;
	assert(memfd >= 0 && ftruncate(memfd, (off_t)size) == 0);
	fd = sim_fd_new(SIM_MEM);
	sim_fd(fd)->memfd = memfd;
	ret->fd = fd;
	ret->size = size;
	ret->data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert(ret->data != MAP_FAILED);
	return 0;
}

int sim_mem_seal(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	sim_fd(m->fd)->sealed = true;
	return 0;
}

void sim_mem_free(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	munmap(m->data, m->size);
	sim_fd_close(m->fd);
}
