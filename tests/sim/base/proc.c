/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of the simulated hosts: their start, their death, their descriptors and memory. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/did.h"
#include "base/sim.h"

struct sim_proc *sim_procs;
static struct sim_proc *unreaped;
static uint32_t last_pid = 100;

void sim_proc_hold(struct sim_proc *p, int fd)
{
	if (p->n_fds == p->max_fds) {
		p->max_fds = p->max_fds ? p->max_fds * 2 : 32;
		p->fds = realloc(p->fds, p->max_fds * sizeof(*p->fds));
		assert(p->fds);
	}
	p->fds[p->n_fds++] = fd;
}

void sim_proc_drop(struct sim_proc *p, int fd)
{
	for (unsigned i = p->n_fds; i-- > 0;) {
		if (p->fds[i] == fd) {
			p->fds[i] = p->fds[--p->n_fds];
			return;
		}
	}
	assert(!"the process does not hold this descriptor");
}

struct sim_proc *sim_self(void)
{
	return sim_coro_current() ? sim_coro_current()->proc : NULL;
}

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

	assert(p);
	DL_APPEND(sim_procs, p);
	p->world = sim_world;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->host = host;
	p->pid = ++last_pid;
	/* some waits sleep at once, without polling first */
	p->world.look_ns = p->pid % 2 ? 200000 : 0;
	p->main = main;
	p->arg = arg;
	sim_coro_new(p, proc_main, p);
	return p;
}

void sim_proc_stop(struct sim_proc *p, uint64_t when)
{
	uint64_t length = when - sim_now();

	sim_did.stop++;
	p->stopped = when;
	if (p->stopped > p->stopped_last)
		p->stopped_last = p->stopped;
	/* A stopped program may exceed its time-outs by the time for which it was stopped. */
	for (struct sim_coro *c = p->coros; c; c = c->next)
		if (c->call)
			c->call_limit += length;
}

void sim_proc_kill(struct sim_proc *p)
{
	if (p->dead)
		return;
	p->dead = true;
	for (struct sim_coro *c = p->coros; c; c = c->next)
		sim_wait_clear(c);
	while (p->n_fds > 0) {
		unsigned i = (unsigned)sim_below(p->n_fds);
		int fd = p->fds[i];

		p->fds[i] = p->fds[--p->n_fds];
		sim_fd_close(fd);
	}
	sim_space_free(p);
	p->dead_next = unreaped;
	unreaped = p;
	if (!sim_coro_current())
		sim_proc_reap();
}

void sim_proc_reap(void)
{
	while (unreaped) {
		struct sim_proc *p = unreaped;

		unreaped = p->dead_next;
		sim_coros_free(p);
		p->reaped = true;
		if (p->gone)
			p->gone(p);
	}
}

void sim_proc_free(struct sim_proc *p)
{
	if (!p)
		return;
	assert(sim_self() != p);
	sim_proc_kill(p);
	/*
	 * It may have been killed by a coroutine of another process, while its own coroutine still
	 * runs.
	 */
	if (!p->reaped)
		sim_coros_free(p);
	for (struct sim_proc **at = &unreaped; *at; at = &(*at)->dead_next) {
		if (*at == p) {
			*at = p->dead_next;
			break;
		}
	}
	DL_DELETE(sim_procs, p);
	free(p->fds);
	free(p);
}

struct sim_proc *sim_living(uint32_t pid)
{
	SIM_EACH_PROC(p)
	if (p->pid == pid)
		return p->dead ? NULL : p;
	return NULL;
}
