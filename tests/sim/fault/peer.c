/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults between daemons: connections that break, messages that are delayed. And small tables. */
#include "run/run.h"

static void cut_begin(struct sim_fault_event *e)
{
	e->a = (unsigned)(sim_draw(&e->rng) % sim_hosts());
	e->b = (unsigned)(sim_draw(&e->rng) % sim_hosts());
	if (e->a != e->b)
		sim_peer_cut(e->a, e->b);
}

const struct sim_fault sim_fault_cut = {
	.name = "cut", .did = &sim_did.cut, .most = 20, .begin = cut_begin};

/* By up to 8 s, so that some replies arrive when nobody waits for them any more. */
static void delay_begin(struct sim_fault_event *e)
{
	static const uint64_t most[] = {SIM_MS, 100 * SIM_MS, SIM_SECOND, 8 * SIM_SECOND};

	sim_peer_delay = most[sim_draw(&e->rng) % 4];
}

static void delay_end(struct sim_fault_event *e)
{
	(void)e;
	sim_peer_delay = 0;
}

const struct sim_fault sim_fault_delay = {
	.name = "delay",
	.did = &sim_did.delay,
	.most = 5,
	.longest = 2 * SIM_SECOND,
	.begin = delay_begin,
	.end = delay_end,
};

/* Look-up and requester tables of few entries. */
static void tables_prepare(uint64_t *rng)
{
	sim_few_entries = 2u << sim_draw(rng) % 4;
	sim_few_requesters = 3 + (unsigned)(sim_draw(rng) % 3);
}

const struct sim_fault sim_fault_tables = {
	.name = "tables", .did = &sim_did.tables, .prepare = tables_prepare};
