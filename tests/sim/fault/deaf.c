/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon does not read for a while: its port drops the events that nobody asked for, and tells it
 * so when it has read what came before. Answers come.
 */
#include <string.h>

#include "edge/edge.h"
#include "run/run.h"
#include "run/run.h"

#define HOSTS 64

static unsigned deaf[HOSTS]; /* faults that keep this host's daemon from reading */

static bool dropped(unsigned host, uint32_t op)
{
	if (host >= HOSTS || !deaf[host])
		return false;
	sim_trace("port %u: fault deaf: event %#x is dropped", sim_node(host), op);
	sim_did.deaf++;
	return true;
}

static void prepare(uint64_t *rng)
{
	(void)rng;
	sim_on_event = dropped;
}

static void begin(struct sim_fault_event *e)
{
	e->a = (unsigned)(sim_draw(&e->rng) % sim_hosts());
	deaf[e->a % HOSTS]++;
	sim_host[e->a].port_busy++; /* its daemon has something still to hear */
}

static void end(struct sim_fault_event *e)
{
	if (!deaf[e->a % HOSTS])
		return;
	if (--deaf[e->a % HOSTS] == 0)
		emu_room_drained(sim_cluster->room, e->a);
	sim_host[e->a].port_busy--;
}

static void heal(void)
{
	for (unsigned host = 0; host < HOSTS && host < sim_hosts(); host++)
		if (deaf[host]) {
			sim_host[host].port_busy -= deaf[host];
			deaf[host] = 0;
			emu_room_drained(sim_cluster->room, host);
		}
}

const struct sim_fault sim_fault_deaf = {.name = "deaf",
					 .did = &sim_did.deaf,
					 .most = 30,
					 .longest = 50000000,
					 .seldom = 3,
					 .begin = begin,
					 .end = end,
					 .prepare = prepare,
					 .heal = heal};
