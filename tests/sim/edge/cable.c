/* SPDX-License-Identifier: BSD-2-Clause */
/* The cables of the simulated cluster's adapters. */
#include "edge/cable.h"
#include "base/sim.h"

static unsigned cables_out[SIM_HOSTS][SIO_MAX_ADAPTERS];
static uint64_t changed[SIM_HOSTS][SIO_MAX_ADAPTERS], pulled[SIM_HOSTS][SIO_MAX_ADAPTERS];

static bool no_path(unsigned host, unsigned peer)
{
	struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned n = sio_topology_paths(sim_cluster->topology, sim_node(host), sim_node(peer), path,
					SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS);

	for (unsigned i = 0; i < n; i++)
		if (!cables_out[host][path[i].adapter] && !cables_out[peer][path[i].peer_adapter])
			return false;
	return n > 0;
}

/*
 * A way from one to the other goes: what is borrowed over it is lost, whether others are left or
 * not.
 */
static bool leads(unsigned host, unsigned adapter, unsigned peer)
{
	struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned n = sio_topology_paths(sim_cluster->topology, sim_node(host), sim_node(peer), path,
					SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS);

	for (unsigned i = 0; i < n; i++)
		if (path[i].adapter == adapter && !cables_out[peer][path[i].peer_adapter])
			return true;
	return false;
}

static void link_set(unsigned host, unsigned adapter, bool up)
{
	sim_trace("host %u: cable of adapter %u is %s", sim_node(host), adapter, up ? "in" : "out");
	changed[host][adapter] = sim_now();
	if (!up)
		pulled[host][adapter] = sim_now();
	emu_room_link(sim_cluster->room, host, adapter, up);
	sim_room_kick();
	for (unsigned peer = 0; !up && peer < sim_hosts(); peer++)
		if (peer != host && leads(host, adapter, peer))
			sim_path_gone(host, peer);
	for (unsigned peer = 0; !up && peer < sim_hosts(); peer++)
		if (peer != host && no_path(host, peer))
			sim_peer_unlinked(host, peer);
}

bool sim_cable_out(unsigned host, unsigned adapter)
{
	if (cables_out[host][adapter]++ > 0)
		return false;
	link_set(host, adapter, false);
	return true;
}

void sim_cables_anew(unsigned host)
{
	const struct sio_topo_host *t = &sim_cluster->topology->host[host];

	sim_trace("host %u: its links have other addresses", sim_node(host));
	for (unsigned i = 0; i < t->n_adapters; i++)
		emu_room_link_turn(sim_cluster->room, host, i);
	sim_windows_end(host);
}

void sim_cable_in(unsigned host, unsigned adapter)
{
	if (--cables_out[host][adapter] == 0)
		link_set(host, adapter, true);
}

bool sim_cable_is_out(unsigned host, unsigned adapter)
{
	return cables_out[host][adapter] > 0;
}

uint64_t sim_cable_changed(unsigned host, unsigned adapter)
{
	return changed[host][adapter];
}

uint64_t sim_cable_pulled(unsigned host, unsigned adapter)
{
	return pulled[host][adapter];
}
