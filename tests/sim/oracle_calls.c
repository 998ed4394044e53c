/* SPDX-License-Identifier: BSD-2-Clause */
/* Every call ends by its time-out, and by a limit if it has none. */
#include "tables.h"
#include "run.h"

static void check(void)
{
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
