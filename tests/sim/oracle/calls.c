/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call ends by its time-out, and by a limit if it has none; and no daemon sleeps while
 * something that it works on has come to its time.
 */
#include "edge/daemon_state.h"
#include "run/run.h"

#define SLACK (10 * SIM_MS)

/* A clock that jumps passes times before the timer that was set for them has fired. */
static void check_daemons(void)
{
	uint32_t type;

	if (sim_has_fault("clock"))
		return;
	for (unsigned h = 0; h < sim_hosts(); h++)
		if (tables_late(h, SLACK, &type))
			sim_fail("calls",
				 "node %u: a request of type %u waits for a time that is over",
				 sim_node(h), type);
}

static void check(void)
{
	check_daemons();
	SIM_EACH_PROC(p)
	{
		if (p->dead)
			continue;
		for (struct sim_coro *c = p->coros; c; c = c->next)
			if (c->call && sim_now() - c->call_since > c->call_limit)
				sim_fail("calls", "%s: %s takes longer than %llu ms", p->name,
					 c->call, (unsigned long long)(c->call_limit / SIM_MS));
	}
}

const struct sim_oracle sim_oracle_calls = {.name = "calls", .every = 100 * SIM_MS, .check = check};
