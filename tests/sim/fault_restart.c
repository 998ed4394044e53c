/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartiod is killed and started again, on a host that goes on without it: programs, what they have
 * mapped and the port stay. A seed that has this fault is one real host, without adapters.
 */
#include "run.h"
#include "tables.h"

static unsigned down; /* events that keep it from being started */

static void restart_prepare(uint64_t *rng)
{
	(void)rng;
	sim_outliving = true;
	down = 0;
}

/* Some at once: the next one is killed while it learns what there was before. */
static void restart_begin(struct sim_fault_event *e)
{
	sim_daemon_kill(0);
	e->a = sim_draw(&e->rng) % 4 > 0;
	if (e->a)
		sim_daemon_start(0);
	else
		down++;
}

static void restart_end(struct sim_fault_event *e)
{
	if (e->a)
		sim_daemon_kill(0);
	else
		down--;
	if (down == 0)
		sim_daemon_start(0);
}

static void restart_heal(void)
{
	if (sim_outliving)
		sim_daemon_start(0);
}

const struct sim_fault sim_fault_restart = {
	.name = "restart",
	.most = 20,
	.longest = 200 * SIM_MS,
	.seldom = 8,
	.prepare = restart_prepare,
	.begin = restart_begin,
	.end = restart_end,
	.heal = restart_heal,
};
