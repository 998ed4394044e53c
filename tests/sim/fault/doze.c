/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Not faults, but conditions that seeds rarely have by themselves. doze: DMA engines fall asleep
 * whenever they find nothing to do, and have to be woken. flood: programs trigger data interrupts
 * until the ring is full. busy: where drives have faults they have managers and clients, whatever
 * else the seed drew.
 */
#include "edge/edge.h"
#include "run/run.h"

static void forgotten(unsigned host)
{
	sim_fail("engines", "those of node %u sleep, and have had work for a second",
		 sim_node(host));
}

static void prepare(uint64_t *rng)
{
	sim_engine_naps = sim_draw(rng) | 1;
	sim_engine_forgotten = forgotten;
}

const struct sim_fault sim_fault_doze = {.name = "doze", .did = &sim_did.doze, .prepare = prepare};

static void busy_prepare(uint64_t *rng)
{
	(void)rng;
	sim_busy = true;
}

const struct sim_fault sim_fault_busy = {
	.name = "busy", .did = &sim_did.busy, .seldom = 2, .prepare = busy_prepare};

const struct sim_fault sim_fault_flood = {.name = "flood", .did = &sim_did.flood};
