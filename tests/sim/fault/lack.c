/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resources run out: the n-th call of a program for a descriptor, thread or pages fails, the n-th
 * request to a port for something new, or the n-th allocation of any program, daemon or port.
 */
#include <string.h>

#include "heap/alloc.h"
#include "run/run.h"

/* ---- calls of a program ---- */
static void lack_begin(struct sim_fault_event *e)
{
	struct sim_proc *p = sim_draw_program(e);
	uint64_t steps = sim_draw(&e->rng) % 300;

	if (p)
		p->fail_at = p->steps + 1 + steps;
}

const struct sim_fault sim_fault_lack = {
	.name = "lack", .did = &sim_did.lack, .most = 100, .begin = lack_begin};

#define MOST_IN_A_ROW 40

/* ---- calls of kinds that are rare among all calls, so that "lack" seldom meets one ---- */
static void scarce_begin(struct sim_fault_event *e)
{
	static const struct {
		enum sim_scarce what;
		unsigned within;
	} some[] = {{SIM_SEND, 100},	{SIM_SEND, 20},	    {SIM_MAP_FD, 20},  {SIM_MAP_FD, 4},
		    {SIM_MAP_ASIDE, 4}, {SIM_MAP_ASIDE, 1}, {SIM_MAP_BACK, 4}, {SIM_MAP_BACK, 1}};
	struct sim_proc *p = sim_draw_program(e);
	uint64_t which = sim_draw(&e->rng) % (sizeof(some) / sizeof(some[0]));
	uint64_t nth = 1 + sim_draw(&e->rng) % some[which].within;
	/* Half of the time several packets in a row, up to more than a request is tried. */
	uint64_t row = sim_draw(&e->rng) % 2 ? 0 : sim_draw(&e->rng) % MOST_IN_A_ROW;

	if (some[which].what == SIM_MAP_ASIDE || some[which].what == SIM_MAP_BACK)
		sim_scarce_in[some[which].what] = nth; /* of any program: few make such calls */
	else if (p)
		p->scarce_in[some[which].what] = nth;
	if (p && some[which].what == SIM_SEND)
		p->scarce_more = row;
}

static void scarce_heal(void)
{
	memset(sim_scarce_in, 0, sizeof(sim_scarce_in));
}

const struct sim_fault sim_fault_scarce = {.name = "scarce",
					   .did = &sim_did.scarce,
					   .most = 200,
					   .begin = scarce_begin,
					   .heal = scarce_heal};

/* ---- requests to a port ---- */
static void port_begin(struct sim_fault_event *e)
{
	static const unsigned within[] = {4, 50};
	uint64_t which = sim_draw(&e->rng) % 2;

	sim_port_fail_in = 1 + sim_draw(&e->rng) % within[which];
}

static void port_heal(void)
{
	sim_port_fail_in = 0;
}

const struct sim_fault sim_fault_port = {
	.name = "port", .did = &sim_did.port, .most = 100, .begin = port_begin, .heal = port_heal};

/* ---- memory ---- */
static void tell(void)
{
	struct sim_proc *p = sim_self();

	sim_trace("fault memory: an allocation fails%s%s", p ? " in " : "", p ? p->name : "");
	sim_did.memory++;
}

static void memory_begin(struct sim_fault_event *e)
{
	static const unsigned within[] = {20, 200, 2000};
	uint64_t which = sim_draw(&e->rng) % 3;

	sim_alloc_failed = tell;
	sim_alloc_fail_in = 1 + sim_draw(&e->rng) % within[which];
}

static void memory_heal(void)
{
	sim_alloc_fail_in = 0;
}

const struct sim_fault sim_fault_memory = {.name = "memory",
					   .did = &sim_did.memory,
					   .most = 50,
					   .begin = memory_begin,
					   .heal = memory_heal};
