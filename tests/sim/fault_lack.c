/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Things run out: the n-th call of a program for a descriptor, thread or pages, the n-th request to
 * a port for something new, the n-th allocation of whoever comes.
 */
#include "alloc.h"
#include "run.h"
#include "tables.h"

/* ---- calls of a program ---- */
static void lack_begin(struct sim_fault_event *e)
{
	struct sim_proc *p = sim_draw_program(e);
	uint64_t steps = sim_draw(&e->rng) % 300;

	if (p)
		p->fail_at = p->steps + 1 + steps;
}

const struct sim_fault sim_fault_lack = {.name = "lack", .most = 100, .begin = lack_begin};

/* ---- requests to a port ---- */
static void port_begin(struct sim_fault_event *e)
{
	sim_port_fail_in = 1 + sim_draw(&e->rng) % 50;
}

static void port_heal(void)
{
	sim_port_fail_in = 0;
}

const struct sim_fault sim_fault_port = {
	.name = "port", .most = 100, .begin = port_begin, .heal = port_heal};

/* ---- memory ---- */
static void tell(void)
{
	struct sim_proc *p = sim_self();

	sim_trace("fault memory: an allocation fails%s%s", p ? " in " : "", p ? p->name : "");
}

static void memory_begin(struct sim_fault_event *e)
{
	sim_alloc_failed = tell;
	sim_alloc_fail_in = 1 + sim_draw(&e->rng) % 2000;
}

static void memory_heal(void)
{
	sim_alloc_fail_in = 0;
}

const struct sim_fault sim_fault_memory = {
	.name = "memory", .most = 50, .begin = memory_begin, .heal = memory_heal};
