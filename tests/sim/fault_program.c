/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of programs: death between any two steps. */
#include "run.h"
#include "tables.h"

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
	if (steps == 0)
		sim_proc_kill(p);
	else
		p->kill_at = p->steps + steps;
}

const struct sim_fault sim_fault_death = {.name = "death", .most = 100, .begin = death_begin};
