/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon does not read from its port for a while: the port drops the events that answer no
 * request, and sends OVERFLOW when the daemon reads again. Answers are not dropped.
 */
#include <string.h>

#include "edge/edge.h"
#include "run/run.h"

#define HOSTS 64

static unsigned deaf[HOSTS]; /* events of this fault that act on the host's daemon now */

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
	sim_host[e->a].port_busy++; /* OVERFLOW is still to be sent to its daemon */
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
