/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct sio_world for a process of the simulator. Every call counts as a step: a place to switch
 * to another coroutine and a place to die.
 */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim.h"

struct sim_proc *sim_procs[SIM_PROCS];

struct sio_world_lock {
	struct sim_coro *holder;
};

struct sio_world_thread {
	struct sim_coro *coro;
};

static struct sim_proc *proc_of(struct sio_world *w)
{
	return (struct sim_proc *)w;
}

static struct sim_proc *step(struct sio_world *w)
{
	struct sim_proc *p = proc_of(w);

	assert(sim_coro_current() && sim_coro_proc(sim_coro_current()) == p);
	sim_advance(20);
	p->steps++;
	if (p->kill_at && p->steps == p->kill_at) {
		sim_trace("%s killed in step %llu", p->name, (unsigned long long)p->steps);
		sim_proc_kill(p);
		sim_coro_exit();
	}
	if (sim_random() % 16 == 0)
		sim_coro_pause(sim_random() % 200);
	return p;
}

void sim_proc_hold(struct sim_proc *p, int fd)
{
	assert(p->n_fds < sizeof(p->fds) / sizeof(p->fds[0]));
	p->fds[p->n_fds++] = fd;
}

void sim_proc_drop(struct sim_proc *p, int fd)
{
	for (unsigned i = 0; i < p->n_fds; i++) {
		if (p->fds[i] == fd) {
			p->fds[i] = p->fds[--p->n_fds];
			return;
		}
	}
	assert(!"the process does not hold this descriptor");
}

/* ---- connection ---- */
static int world_connect(struct sio_world *w)
{
	return sim_conn_open(step(w));
}

static ssize_t world_send(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
			  unsigned n_fds)
{
	return sim_conn_send(step(w), sim_fd(fd)->conn, buf, len, fds, n_fds);
}

static ssize_t world_recv(struct sio_world *w, int fd, void *buf, size_t len, int *fds,
			  unsigned max_fds, unsigned *ret_fds, uint64_t deadline)
{
	struct sim_proc *p = step(w);

	for (;;) {
		ssize_t n = sim_conn_recv(p, sim_fd(fd)->conn, buf, len, fds, max_fds, ret_fds);

		if (n != -EAGAIN)
			return n;
		if (sim_now() >= deadline)
			return -ETIMEDOUT;
		sim_coro_block(deadline);
	}
}

static bool readable(int fd)
{
	struct sim_object *o = sim_fd(fd);

	if (o->kind == SIM_CONN)
		return sim_conn_readable(o->conn);
	return o->kind == SIM_EVENT && o->count > 0;
}

static int world_poll(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	step(w);
	for (;;) {
		int found = 0;

		for (unsigned i = 0; i < n; i++) {
			p[i].readable = p[i].fd >= 0 && readable(p[i].fd);
			found += p[i].readable;
		}
		if (found > 0 || sim_now() >= deadline)
			return found;
		sim_coro_block(deadline);
	}
}

static void world_close(struct sio_world *w, int fd)
{
	struct sim_proc *p = step(w);

	sim_proc_drop(p, fd);
	sim_fd_close(fd);
	sim_notify(p);
}

static int world_event_new(struct sio_world *w)
{
	struct sim_proc *p = step(w);
	int fd = sim_fd_new(SIM_EVENT);

	sim_proc_hold(p, fd);
	return fd;
}

static int world_event_write(struct sio_world *w, int fd)
{
	step(w);
	assert(sim_fd(fd)->kind == SIM_EVENT);
	sim_fd(fd)->count++;
	sim_notify(NULL);
	return 0;
}

static int world_event_read(struct sio_world *w, int fd, uint64_t *ret_count)
{
	struct sim_object *o;

	step(w);
	o = sim_fd(fd);
	assert(o->kind == SIM_EVENT);
	if (o->count == 0)
		return -EAGAIN;
	*ret_count = o->count;
	o->count = 0;
	return 0;
}

/* ---- address space ---- */
static void remember(struct sim_proc *p, void *at, size_t len)
{
	p->maps = realloc(p->maps, (p->n_maps + 1) * sizeof(*p->maps));
	assert(p->maps);
	p->maps[p->n_maps].at = at;
	p->maps[p->n_maps++].len = len;
}

static int world_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	struct sim_proc *p = step(w);
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

static int world_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	struct sim_object *o;
	int flags = 0;

	step(w);
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

static int world_map_ones(struct sio_world *w, void *at, size_t len)
{
	step(w);
	if (mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return -errno;
	memset(at, 0xff, len);
	return 0;
}

static int world_map_aside(struct sio_world *w, void *at, size_t len, void **ret)
{
	struct sim_proc *p = step(w);

	*ret = mremap(at, 0, len, MREMAP_MAYMOVE);
	if (*ret == MAP_FAILED)
		return -errno;
	remember(p, *ret, len);
	return world_map_ones(w, at, len);
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

static int world_map_back(struct sio_world *w, void *aside, void *at, size_t len)
{
	struct sim_proc *p = step(w);

	if (mremap(aside, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		return -errno;
	forget(p, aside, len);
	return 0;
}

/* What runs in the simulator has no pages of its own. */
static int world_pages_adopt(struct sio_world *w, void *at, size_t len, int fd)
{
	(void)at;
	(void)len;
	(void)fd;
	step(w);
	return -EOPNOTSUPP;
}

static int world_pages_release(struct sio_world *w, void *at, size_t len)
{
	(void)at;
	(void)len;
	step(w);
	return 0;
}

static void world_unmap(struct sio_world *w, void *at, size_t len)
{
	forget(step(w), at, len);
	munmap(at, len);
}

/* Devices of the simulator never sleep. */
static unsigned world_wake_ways(struct sio_world *w)
{
	step(w);
	return SIO_WAKE_TIMER;
}

static int world_fault_new(struct sio_world *w, void *at, size_t len)
{
	(void)at;
	(void)len;
	step(w);
	return -EOPNOTSUPP;
}

/* ---- time and chance ---- */
static uint64_t world_now(struct sio_world *w)
{
	step(w);
	return sim_now();
}

static uint64_t world_random(struct sio_world *w)
{
	step(w);
	return sim_random();
}

static void world_yield(struct sio_world *w)
{
	step(w);
	sim_coro_pause(200 + sim_random() % 1000);
}

static uint32_t world_pid(struct sio_world *w)
{
	return step(w)->pid;
}

static void world_log(struct sio_world *w, const char *text)
{
	sim_trace("%s: %s", step(w)->name, text);
}

/* ---- threads and locks ---- */
static int world_thread_start(struct sio_world *w, void (*fn)(void *), void *arg,
			      struct sio_world_thread **ret)
{
	struct sim_proc *p = step(w);

	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->coro = sim_coro_new(p, fn, arg);
	return 0;
}

static void world_thread_join(struct sio_world *w, struct sio_world_thread *t)
{
	step(w);
	while (!sim_coro_finished(t->coro))
		sim_coro_block(SIO_FOREVER);
	free(t);
}

static bool world_thread_is_self(struct sio_world *w, struct sio_world_thread *t)
{
	step(w);
	return t->coro == sim_coro_current();
}

static int world_lock_new(struct sio_world *w, struct sio_world_lock **ret)
{
	step(w);
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void world_lock_free(struct sio_world *w, struct sio_world_lock *l)
{
	step(w);
	assert(!l->holder);
	free(l);
}

static void take(struct sio_world_lock *l)
{
	assert(l->holder != sim_coro_current());
	while (l->holder)
		sim_coro_block(SIO_FOREVER);
	l->holder = sim_coro_current();
}

static void world_lock(struct sio_world *w, struct sio_world_lock *l)
{
	step(w);
	take(l);
}

static void world_unlock(struct sio_world *w, struct sio_world_lock *l)
{
	struct sim_proc *p = step(w);

	assert(l->holder == sim_coro_current());
	l->holder = NULL;
	sim_notify(p);
}

static int world_wait(struct sio_world *w, struct sio_world_lock *l, uint64_t deadline)
{
	struct sim_proc *p = step(w);

	assert(l->holder == sim_coro_current());
	if (sim_now() >= deadline)
		return -ETIMEDOUT;
	l->holder = NULL;
	sim_notify(p);
	/* Wakes for other reasons too: callers look again, as they must. */
	sim_coro_block(deadline);
	take(l);
	return sim_now() >= deadline ? -ETIMEDOUT : 0;
}

static void world_wake_all(struct sio_world *w, struct sio_world_lock *l)
{
	(void)l;
	sim_notify(step(w));
}

static const struct sio_world table = {
	.connect = world_connect,
	.send = world_send,
	.recv = world_recv,
	.poll = world_poll,
	.close = world_close,
	.event_new = world_event_new,
	.event_write = world_event_write,
	.event_read = world_event_read,
	.reserve = world_reserve,
	.map = world_map,
	.map_ones = world_map_ones,
	.map_aside = world_map_aside,
	.map_back = world_map_back,
	.pages_adopt = world_pages_adopt,
	.pages_release = world_pages_release,
	.unmap = world_unmap,
	.wake_ways = world_wake_ways,
	.fault_new = world_fault_new,
	.now = world_now,
	.random = world_random,
	.yield = world_yield,
	.pid = world_pid,
	.log = world_log,
	.thread_start = world_thread_start,
	.thread_join = world_thread_join,
	.thread_is_self = world_thread_is_self,
	.lock_new = world_lock_new,
	.lock_free = world_lock_free,
	.lock = world_lock,
	.unlock = world_unlock,
	.wait = world_wait,
	.wake_all = world_wake_all,
};

struct sio_world *sio_world_current(void)
{
	assert(sim_coro_current());
	return &sim_coro_proc(sim_coro_current())->world;
}

void **sio_world_library(struct sio_world *w)
{
	return &proc_of(w)->library;
}

/* ---- processes ---- */
static void proc_main(void *arg)
{
	struct sim_proc *p = arg;

	p->main(p);
	p->finished = true;
	sim_trace("%s ended with %d", p->name, p->result);
	/* exit(): other threads stop where they are, descriptors close. */
	sim_proc_kill(p);
}

struct sim_proc *sim_proc_new(const char *name, unsigned host, void (*main)(struct sim_proc *p),
			      void *arg)
{
	struct sim_proc *p = calloc(1, sizeof(*p));
	unsigned i = 0;

	assert(p);
	while (i < SIM_PROCS && sim_procs[i])
		i++;
	assert(i < SIM_PROCS);
	sim_procs[i] = p;
	p->world = table;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->host = host;
	p->index = i;
	p->pid = 100 + i;
	p->main = main;
	p->arg = arg;
	sim_coro_new(p, proc_main, p);
	return p;
}

void sim_proc_kill(struct sim_proc *p)
{
	if (p->dead)
		return;
	p->dead = true;
	while (p->n_fds > 0) {
		unsigned i = (unsigned)(sim_random() % p->n_fds);
		int fd = p->fds[i];

		p->fds[i] = p->fds[--p->n_fds];
		sim_fd_close(fd);
	}
	for (unsigned i = 0; i < p->n_maps; i++)
		munmap(p->maps[i].at, p->maps[i].len);
	free(p->maps);
	p->maps = NULL;
	p->n_maps = 0;
}

void sim_proc_free(struct sim_proc *p)
{
	if (!p)
		return;
	sim_proc_kill(p);
	sim_coros_free(p);
	sim_procs[p->index] = NULL;
	/* The record stays with its coroutines': wake-ups may still be on their way. */
}
