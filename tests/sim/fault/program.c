/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of programs: they are killed between any two steps, or stopped for a while. */
#include "run/run.h"

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
 * Kills a program in one of its next steps, so more often while it is active than while it sleeps;
 * or up to 64 µs after that step, when it mostly waits for a reply that then finds it dead.
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

static struct sim_proc *draw_ringer(struct sim_fault_event *e)
{
	unsigned n = 0;

	SIM_EACH_PROC(p)
	n += !p->dead && p->rung > 0;
	if (n == 0)
		return NULL;
	n = (unsigned)(sim_draw(&e->rng) % n);
	SIM_EACH_PROC(p)
	if (!p->dead && p->rung > 0 && n-- == 0)
		return p;
	return NULL;
}

/*
 * Stops it after it has checked that its queue still exists, and before it stores to the doorbell.
 */
static void stop_at_ring(struct sim_fault_event *e, uint64_t rings)
{
	struct sim_proc *p = draw_ringer(e);

	if (!p)
		return;
	p->stop_ring = 1 + rings;
	p->stop_until = sim_now() + e->length;
	sim_trace("fault stop: %s, at a doorbell", p->name);
}

static void stop_now(struct sim_fault_event *e)
{
	struct sim_proc *p = sim_draw_program(e);

	if (!p)
		return;
	sim_trace("fault stop: %s", p->name);
	sim_proc_stop(p, sim_now() + e->length);
}

/*
 * As by SIGSTOP, or by a machine that swaps: the program's memory and descriptors stay, devices
 * still access the memory, and others wait for the program in vain. Half of the time it is stopped
 * for longer than they wait, else for microseconds as often as for seconds. One time in four it is
 * stopped where it rings one of its next doorbells.
 */
static void stop_begin(struct sim_fault_event *e)
{
	uint64_t shift = sim_draw(&e->rng), where = sim_draw(&e->rng);

	if (where % 4 == 0) {
		e->length >>= (shift >> 1) % 4;
		stop_at_ring(e, (where >> 2) % 16);
	} else {
		e->length >>= shift % 2 ? (shift >> 1) % STOPS : (shift >> 1) % 2;
		stop_now(e);
	}
}

static void stop_end(struct sim_fault_event *e)
{
	(void)e; /* sim_proc_stop() has the time; run/plan.c waits for the ends of all events */
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
