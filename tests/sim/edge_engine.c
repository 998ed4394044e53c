/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DMA engines of the room: their host's processors, but for that they act by themselves, and
 * the simulator says when. Those of a host that would find nothing are not asked.
 */
#include <string.h>

#include "edge.h"
#include "fabric.h"
#include "smartio/uapi.h"

static struct engines {
	uint64_t until;	 /* they copy; 0: the host has none */
	bool nothing;	 /* is what the last look found, and the next, until a ring is written to */
	uint64_t stores; /* into rings of the host, as of then */
} engines[SIM_HOSTS];

int sim_engine_start(void *ctx, unsigned host)
{
	(void)ctx;
	engines[host].until = 1;
	return 0;
}

void sim_engines_forget(void)
{
	memset(engines, 0, sizeof(engines));
}

bool sim_has_engines(void)
{
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (sim_port_count(i, SIO_KIND_DMA) > 0)
			return true;
	return false;
}

static bool rest(const struct engines *e, unsigned host)
{
	if (!e->nothing)
		return false;
	/* What a look at a ring would do: what is on its way to this host's memory arrives. */
	if (fabric_rings[host].open) {
		fabric_settle(sim_now());
		fabric_path_read(host, host, sim_now());
	}
	return e->stores == fabric_rings[host].stores;
}

static unsigned step(struct engines *e, unsigned host)
{
	unsigned work;

	fabric_act(host);
	work = emu_room_engine_step(sim_cluster->room, host);
	e->until = fabric_actor.clock;
	e->nothing = work == 0;
	e->stores = fabric_rings[host].stores;
	fabric_act(FABRIC_NOBODY);
	return work;
}

unsigned sim_engines_step(void)
{
	unsigned work = 0, n = sim_hosts();

	for (unsigned i = 0; i < n; i++) {
		struct engines *e = &engines[i];

		if (e->until && e->until <= sim_now() && sim_host[i].powered && !rest(e, i))
			work += step(e, i);
	}
	/* Who did nothing met with no fault. */
	if (work)
		emu_room_engines_collect(sim_cluster->room);
	return work;
}
