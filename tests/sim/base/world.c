/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct sio_world for a process of the simulator. Every call counts as a step: a place to switch
 * to another coroutine, a place to die, and a place to fail. base/space.c has the address space.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "fabric/fabric.h"
#include "base/sim.h"

struct sio_world_lock {
	struct sim_coro *holder;
	uint64_t wakes; /* so far */
};

struct sio_world_thread {
	struct sim_coro *coro;
};

static struct sim_proc *proc_of(struct sio_world *w)
{
	return (struct sim_proc *)w;
}

bool sim_steady;
const struct sim_edge *sim_edge;

static void die_later(void *arg)
{
	SIM_EACH_PROC(p)
	if (p->pid == (uintptr_t)arg && !p->dead) {
		sim_trace("%s killed", p->name);
		sim_did.death++;
		sim_proc_kill(p);
		return;
	}
}

struct sim_proc *sim_step(struct sio_world *w)
{
	struct sim_proc *p = proc_of(w);

	assert(sim_self() == p);
	sim_advance(20);
	p->steps++;
	if (!p->kill_at || p->steps != p->kill_at || (p->dies_here && !p->dies_here(p))) {
		/* it lives on */
	} else if (p->kill_later) {
		sim_after(p->kill_later, die_later, (void *)(uintptr_t)p->pid);
	} else {
		sim_trace("%s killed in step %llu", p->name, (unsigned long long)p->steps);
		sim_did.death++;
		sim_proc_kill(p);
		sim_coro_exit();
	}
	if (!sim_steady && sim_chance(1, 16))
		sim_coro_pause(sim_below(200));
	return p;
}

/*
 * The same for a call that, live, is or has a locked instruction: it orders the program's accesses.
 */
static struct sim_proc *enter(struct sio_world *w)
{
	struct sim_proc *p = sim_step(w);

	sim_sync();
	return p;
}

bool sim_fails(struct sim_proc *p)
{
	if (!p->fail_at || p->steps < p->fail_at)
		return false;
	sim_trace("%s: step %llu fails", p->name, (unsigned long long)p->steps);
	sim_did.lack++;
	p->fail_at = 0;
	return true;
}

uint64_t sim_scarce_in[SIM_SCARCE];

bool sim_is_scarce(struct sim_proc *p, enum sim_scarce what)
{
	static const char *const name[SIM_SCARCE] = {"send", "map", "map_aside", "map_back"};

	bool of_all = sim_scarce_in[what] > 0 && --sim_scarce_in[what] == 0;

	if (!of_all && (p->scarce_in[what] == 0 || --p->scarce_in[what] > 0))
		return false;
	sim_trace("%s: %s fails", p->name, name[what]);
	sim_did.scarce++;
	return true;
}

void sim_sleep(uint64_t ns)
{
	sim_step(&sim_self()->world);
	sim_coro_pause(ns);
}

static uint64_t now_of(struct sim_proc *p)
{
	return sim_edge->clock(p->host);
}

/* Until @deadline of the process's own clock. */
static void block(struct sim_proc *p, uint64_t deadline)
{
	sim_coro_block(deadline == SIO_FOREVER ? UINT64_MAX
					       : sim_edge->from_clock(p->host, deadline));
	sim_sync();
}

/* ---- connection ---- */
static int world_connect(struct sio_world *w)
{
	struct sim_proc *p = enter(w);

	return sim_fails(p) ? -EMFILE : sim_edge->conn_open(p);
}

static ssize_t world_send(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
			  unsigned n_fds)
{
	struct sim_proc *p = enter(w);

	p->unsent++;
	if (p->scarce_in[SIM_SEND] == 0 && p->scarce_more) {
		p->scarce_more--;
		return -ENOMEM;
	}
	if (sim_is_scarce(p, SIM_SEND))
		return -ENOBUFS;
	p->unsent = 0;
	return sim_edge->conn_send(sim_fd(fd)->conn, buf, len, fds, n_fds);
}

/* As the kernel does it: what finds no room is lost, and the last entry says so. */
static void lose_one(struct sim_proc *p, int *fds, unsigned n_fds)
{
	sim_proc_drop(p, fds[n_fds - 1]);
	sim_fd_close(fds[n_fds - 1]);
	fds[n_fds - 1] = -EMFILE;
}

static ssize_t world_recv(struct sio_world *w, int fd, void *buf, size_t len, int *fds,
			  unsigned max_fds, unsigned *ret_fds, uint64_t deadline)
{
	struct sim_proc *p = enter(w);

	for (;;) {
		ssize_t n =
			sim_edge->conn_recv(p, sim_fd(fd)->conn, buf, len, fds, max_fds, ret_fds);

		if (n != -EAGAIN) {
			if (n > 0 && ret_fds && *ret_fds > 0 && sim_fails(p))
				lose_one(p, fds, *ret_fds);
			return n;
		}
		if (now_of(p) >= deadline)
			return -ETIMEDOUT;
		sim_wait_add(fd);
		block(p, deadline);
		sim_wait_clear(sim_coro_current());
	}
}

static bool readable(int fd)
{
	struct sim_object *o;

	/* Closed by another thread meanwhile: POLLNVAL. */
	if (!sim_fd_open(fd))
		return true;
	o = sim_fd(fd);
	if (o->kind == SIM_GATE) /* a shut one tells the end, as epoll does with EPOLLHUP */
		return o->shut ? sim_edge->conn_ended(sim_fd(o->behind)->conn)
			       : readable(o->behind);
	if (o->kind == SIM_CONN)
		return sim_edge->conn_readable(o->conn);
	return o->kind == SIM_EVENT && o->count > 0;
}

static void wait_for(int fd)
{
	const struct sim_object *o = sim_fd(fd);

	sim_wait_add(fd);
	if (o->kind == SIM_GATE)
		sim_wait_add(o->behind);
}

static int world_poll(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	struct sim_proc *self = enter(w);

	for (;;) {
		int found = 0;

		for (unsigned i = 0; i < n; i++) {
			p[i].readable = p[i].fd >= 0 && readable(p[i].fd);
			found += p[i].readable;
		}
		if (found > 0 || now_of(self) >= deadline)
			return found;
		for (unsigned i = 0; i < n; i++)
			if (p[i].fd >= 0)
				wait_for(p[i].fd);
		block(self, deadline);
		sim_wait_clear(sim_coro_current());
	}
}

static void world_close(struct sio_world *w, int fd)
{
	struct sim_proc *p = enter(w);

	sim_proc_drop(p, fd);
	sim_fd_close(fd);
}

static int world_event_new(struct sio_world *w)
{
	struct sim_proc *p = enter(w);
	int fd;

	if (sim_fails(p))
		return -EMFILE;
	fd = sim_fd_new(SIM_EVENT);
	sim_proc_hold(p, fd);
	return fd;
}

static int world_gate_new(struct sio_world *w, int fd)
{
	struct sim_proc *p = enter(w);
	int gate;

	if (sim_fails(p))
		return -EMFILE;
	gate = sim_fd_new(SIM_GATE);
	sim_fd(gate)->behind = fd;
	sim_proc_hold(p, gate);
	return gate;
}

static void world_gate_set(struct sio_world *w, int gate, int fd, bool open)
{
	struct sim_object *o = sim_fd(gate);

	enter(w);
	assert(o->kind == SIM_GATE && o->behind == fd);
	o->shut = !open;
	if (open)
		sim_object_ready(o);
}

/* To an event descriptor of its own, or an interrupt somewhere. */
static void event_write(int fd)
{
	const struct sim_object *o = sim_fd(fd);

	bool far = o->hardware && o->host != sim_self()->host;

	if (far && sim_window_ended(fd, sim_self()->host, o->host))
		return;
	if (far)
		fabric_core_signal(fabric_access->core(), o->host, fd);
	else
		sim_event_add(fd, 1);
}

static int world_event_write(struct sio_world *w, int fd)
{
	enter(w);
	event_write(fd);
	return 0;
}

static int world_event_read(struct sio_world *w, int fd, uint64_t *ret_count)
{
	struct sim_object *o;

	enter(w);
	o = sim_fd(fd);
	assert(o->kind == SIM_EVENT);
	if (o->count == 0)
		return -EAGAIN;
	*ret_count = o->count;
	o->count = 0;
	return 0;
}

/* Devices of the simulator never sleep. */
static unsigned world_wake_ways(struct sio_world *w)
{
	sim_step(w);
	return SIO_WAKE_TIMER;
}

static int world_fault_new(struct sio_world *w, void *at, size_t len)
{
	(void)at;
	(void)len;
	sim_step(w);
	return -EOPNOTSUPP;
}

/* ---- time and chance ---- */
static uint64_t world_now(struct sio_world *w)
{
	return now_of(sim_step(w));
}

static uint64_t world_random(struct sio_world *w)
{
	sim_step(w);
	return sim_random();
}

static void world_limits(struct sio_world *w, struct sio_limits *ret)
{
	(void)w;
	*ret = (struct sio_limits){
		.descriptors = 1024, .most_descriptors = 4096, .mappings = 65530};
}

static void world_yield(struct sio_world *w)
{
	sim_step(w);
	sim_coro_pause(sim_steady ? 20 : 200 + sim_below(1000));
}

static uint32_t world_pid(struct sio_world *w)
{
	return sim_step(w)->pid;
}

void (*sim_on_log)(const char *text);

static void world_log(struct sio_world *w, const char *text)
{
	sim_trace("%s: %s", sim_step(w)->name, text);
	if (sim_on_log)
		sim_on_log(text);
}

/* ---- threads and locks ---- */
static int world_thread_start(struct sio_world *w, void (*fn)(void *), void *arg,
			      struct sio_world_thread **ret)
{
	struct sim_proc *p = enter(w);

	if (sim_fails(p))
		return -EAGAIN;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->coro = sim_coro_new(p, fn, arg);
	return 0;
}

static void world_thread_join(struct sio_world *w, struct sio_world_thread *t)
{
	enter(w);
	while (!t->coro->finished)
		sim_coro_block(UINT64_MAX);
	sim_sync();
	free(t);
}

static bool world_thread_is_self(struct sio_world *w, struct sio_world_thread *t)
{
	sim_step(w);
	return t->coro == sim_coro_current();
}

static int world_lock_new(struct sio_world *w, struct sio_world_lock **ret)
{
	if (sim_fails(enter(w)))
		return -ENOMEM;
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void world_lock_free(struct sio_world *w, struct sio_world_lock *l)
{
	enter(w);
	assert(!l->holder);
	free(l);
}

static void take(struct sio_world_lock *l)
{
	assert(l->holder != sim_coro_current());
	while (l->holder)
		sim_coro_block(UINT64_MAX);
	sim_sync();
	l->holder = sim_coro_current();
}

static void world_lock(struct sio_world *w, struct sio_world_lock *l)
{
	enter(w);
	take(l);
}

static void world_unlock(struct sio_world *w, struct sio_world_lock *l)
{
	struct sim_proc *p = enter(w);

	assert(l->holder == sim_coro_current());
	l->holder = NULL;
	sim_notify(p);
}

static int world_wait(struct sio_world *w, struct sio_world_lock *l, uint64_t deadline)
{
	struct sim_proc *p = enter(w);
	uint64_t wakes = l->wakes;
	bool early = sim_chance(1, 16);

	assert(l->holder == sim_coro_current());
	if (now_of(p) >= deadline)
		return -ETIMEDOUT;
	l->holder = NULL;
	sim_notify(p);
	/* Now and then it wakes for other reasons too: callers look again, as they must. */
	do
		block(p, deadline);
	while (!early && l->wakes == wakes && now_of(p) < deadline);
	take(l);
	return now_of(p) >= deadline ? -ETIMEDOUT : 0;
}

static void world_wake_all(struct sio_world *w, struct sio_world_lock *l)
{
	struct sim_proc *p = enter(w);

	l->wakes++;
	sim_notify(p);
}

const struct sio_world sim_world = {
	.connect = world_connect,
	.send = world_send,
	.recv = world_recv,
	.poll = world_poll,
	.close = world_close,
	.event_new = world_event_new,
	.event_write = world_event_write,
	.event_read = world_event_read,
	.gate_new = world_gate_new,
	.gate_set = world_gate_set,
	.reserve = sim_world_reserve,
	.map = sim_world_map,
	.map_ones = sim_world_map_ones,
	.map_aside = sim_world_map_aside,
	.map_back = sim_world_map_back,
	.pages_adopt = sim_world_pages_adopt,
	.pages_release = sim_world_pages_release,
	.unmap = sim_world_unmap,
	.wake_ways = world_wake_ways,
	.fault_new = world_fault_new,
	.now = world_now,
	.random = world_random,
	.limits = world_limits,
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
	assert(sim_self());
	return &sim_self()->world;
}

void **sio_world_library(struct sio_world *w)
{
	return &proc_of(w)->library;
}
