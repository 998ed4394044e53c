/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of programs: death between any two steps; and that they are stopped for a while. */
#include "run.h"
#include "tables.h"

#define STOPS 14 /* the shortest are 2^STOPS times shorter than the longest */

struct sim_proc *sim_draw_program(struct sim_fault_event *e)
{
	unsigned n = 0;

	SIM_EACH_PROC(p)
	n += !p->dead;
	if (n == 0)
		return NULL;
	n = (unsigned)(sim_draw(&e->rng) % n);
	SIM_EACH_PROC(p)
	if (!p->dead && n-- == 0)
		return p;
	return NULL;
}

/*
 * In one of its next steps: while it does something, more often than while it sleeps. Or a moment
 * later: then it mostly waits for an answer, which finds nobody.
 */
static void death_begin(struct sim_fault_event *e)
{
	struct sim_proc *p = sim_draw_program(e);
	uint64_t steps = sim_draw(&e->rng) % 300, later = sim_draw(&e->rng);

	if (!p)
		return;
	p->kill_later = later % 2 ? 1 + (later >> 1) % 64000 : 0;
	sim_trace("fault death: %s in %llu steps", p->name, (unsigned long long)steps);
	if (steps == 0) {
		sim_did.death++;
		sim_proc_kill(p);
	} else {
		p->kill_at = p->steps + steps;
	}
}

const struct sim_fault sim_fault_death = {
	.name = "death", .did = &sim_did.death, .most = 100, .begin = death_begin};

/*
 * SIGSTOP, or a machine that swaps: its memory, descriptors and what devices do there go on, and
 * others wait for it in vain. Half the time for longer than they do, else as often for microseconds
 * as for seconds. Not between two accesses to the fabric, and news is taken first when it goes on
 * (coro.c): who is stopped between the look at the drive's generation and the doorbell rings, when
 * it goes on, that of whoever has its queue's number after a reset.
 */
static void stop_begin(struct sim_fault_event *e)
{
	struct sim_proc *p = sim_draw_program(e);
	uint64_t shift = sim_draw(&e->rng);

	e->length >>= shift % 2 ? (shift >> 1) % STOPS : (shift >> 1) % 2;
	if (!p)
		return;
	sim_trace("fault stop: %s", p->name);
	sim_did.stop++;
	p->stopped = sim_now() + e->length;
	if (p->stopped > p->stopped_last)
		p->stopped_last = p->stopped;
	/* It cannot do better than its time-outs, but for the time in which it does nothing. */
	for (struct sim_coro *c = p->coros; c; c = c->next)
		if (c->call)
			c->call_limit += e->length;
}

static void stop_end(struct sim_fault_event *e)
{
	(void)e; /* it wakes by itself: plan.c waits for the end of all */
}

const struct sim_fault sim_fault_stop = {
	.name = "stop",
	.did = &sim_did.stop,
	.most = 24,
	.longest = 12 * SIM_SECOND,
	.seldom = 4,
	.begin = stop_begin,
	.end = stop_end,
};
