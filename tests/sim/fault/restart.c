/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartiod is killed and started again, on a host that goes on without it: programs, what they have
 * mapped and the port stay. A seed that has such a fault is one real host, without adapters. Soon
 * (restart), after up to more than a minute (absent), or with an answer of the port on its way to
 * it (unheard).
 */
#include "edge/edge.h"
#include "run/run.h"
#include "run/run.h"

#define BACK SIM_MS

static unsigned down; /* events that keep it from being started */
static unsigned away; /* those that do whatever others say */

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

/* Some at once: the next one is killed while it learns what there was before. */
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

/* ---- for long: calls are given up, and programs that die are not there when it comes back ---- */
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

/* ---- where the port has done something, and nobody will hear of it ---- */
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
