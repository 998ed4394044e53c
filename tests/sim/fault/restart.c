/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartiod is killed and started again, on a host that continues without it: programs, their
 * mappings and the port stay. A cluster with such a fault is one real host, without adapters.
 * smartiod is back soon (restart), after up to more than a minute (absent), or it is killed while
 * an answer of the port is on its way to it (unheard).
 */
#include "edge/edge.h"
#include "run/run.h"

#define BACK SIM_MS

static unsigned down; /* events of "restart" during which it does not run */
static unsigned away; /* events of "absent", during which no other event starts it */

static void restart_prepare(uint64_t *rng)
{
	(void)rng;
	sim_outliving = true;
	down = away = 0;
}

static void start(void)
{
	if (away == 0)
		sim_daemon_start(0);
}

/*
 * Mostly it is started at once, and killed again at the end of the event, perhaps while it still
 * recovers; else it is started at the end.
 */
static void restart_begin(struct sim_fault_event *e)
{
	sim_did.restart += sim_host[0].daemon != NULL;
	sim_daemon_kill(0);
	e->a = sim_draw(&e->rng) % 4 > 0;
	if (e->a)
		start();
	else
		down++;
}

static void restart_end(struct sim_fault_event *e)
{
	sim_did.restart += e->a && sim_host[0].daemon;
	if (e->a)
		sim_daemon_kill(0);
	else
		down--;
	if (down == 0)
		start();
}

/* ---- for long: calls time out, and programs die before it is back ---- */
static void absent_begin(struct sim_fault_event *e)
{
	(void)e;
	away++;
	sim_did.absent += sim_host[0].daemon != NULL;
	sim_daemon_kill(0);
}

static void absent_end(struct sim_fault_event *e)
{
	(void)e;
	away--;
	if (down == 0)
		start();
}

/* ---- when the port has done something, of which no smartiod will be notified ---- */
static void back(void *arg)
{
	(void)arg;
	if (down == 0 && !sim_stopping)
		start();
}

static void unheard(void)
{
	sim_did.unheard += sim_host[0].daemon != NULL;
	sim_daemon_kill(0);
	sim_after(BACK, back, NULL);
}

static void unheard_begin(struct sim_fault_event *e)
{
	sim_on_unheard = unheard;
	sim_unheard_in = 1 + sim_draw(&e->rng) % 40;
}

static void restart_heal(void)
{
	sim_unheard_in = 0;
	if (sim_outliving)
		sim_daemon_start(0);
}

const struct sim_fault sim_fault_restart = {
	.name = "restart",
	.did = &sim_did.restart,
	.most = 20,
	.longest = 200 * SIM_MS,
	.seldom = 8,
	.prepare = restart_prepare,
	.begin = restart_begin,
	.end = restart_end,
	.heal = restart_heal,
};

const struct sim_fault sim_fault_absent = {
	.name = "absent",
	.did = &sim_did.absent,
	.most = 3,
	.longest = 75 * SIM_SECOND,
	.seldom = 8,
	.prepare = restart_prepare,
	.begin = absent_begin,
	.end = absent_end,
	.heal = restart_heal,
};

const struct sim_fault sim_fault_unheard = {
	.name = "unheard",
	.did = &sim_did.unheard,
	.most = 60,
	.seldom = 4,
	.prepare = restart_prepare,
	.begin = unheard_begin,
	.heal = restart_heal,
};
