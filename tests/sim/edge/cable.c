/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulated cluster's cables, switches and links between those, as its operator sees them. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include "base/sim.h"
#include "edge/cable.h"

#define MOST_PATHS (SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS)
#define MOST_BETWEEN 64 /* switches, and links between two */

static unsigned cables_out[SIM_HOSTS][SIO_MAX_ADAPTERS];
static uint64_t changed[SIM_HOSTS][SIO_MAX_ADAPTERS], pulled[SIM_HOSTS][SIO_MAX_ADAPTERS];

static unsigned switches_out[MOST_BETWEEN], trunks_out[MOST_BETWEEN];

/*
 * Switches that are connected by links and switches that are in have one colour; DARK: without
 * power. Computed here by other code than the machine room's, which is being checked.
 */
#define DARK UINT32_MAX
static uint32_t colour[MOST_BETWEEN];
static bool painted; /* otherwise everything is as in the topology */

static void paint(void)
{
	const struct sio_topology *t = sim_cluster->topology;
	bool more = true;

	painted = true;
	for (unsigned i = 0; i < t->n_switches; i++)
		colour[i] = switches_out[i] ? DARK : i;
	while (more) {
		more = false;
		for (unsigned i = 0; i < t->n_trunks; i++) {
			const unsigned *sw = t->trunk[i].sw;
			uint32_t *a = &colour[sw[0]], *b = &colour[sw[1]];

			if (trunks_out[i] || *a == DARK || *b == DARK || *a == *b)
				continue;
			*a = *b = *a < *b ? *a : *b;
			more = true;
		}
	}
}

static bool led_between(unsigned host, const struct sio_path *p, unsigned peer)
{
	const struct sio_topology *t = sim_cluster->topology;
	const struct sio_topo_adapter *a = &t->host[host].adapter[p->adapter];
	const struct sio_topo_adapter *b = &t->host[peer].adapter[p->peer_adapter];

	if (!painted || a->attach != SIO_ATTACH_SWITCH || b->attach != SIO_ATTACH_SWITCH)
		return true;
	return colour[a->attach_index] != DARK &&
	       colour[a->attach_index] == colour[b->attach_index];
}

static unsigned paths(unsigned host, unsigned peer, struct sio_path path[MOST_PATHS])
{
	return sio_topology_paths(sim_cluster->topology, sim_node(host), sim_node(peer), path,
				  MOST_PATHS);
}

static bool is_open(unsigned host, const struct sio_path *p, unsigned peer)
{
	return !cables_out[host][p->adapter] && !cables_out[peer][p->peer_adapter] &&
	       led_between(host, p, peer);
}

static bool no_path(unsigned host, unsigned peer)
{
	struct sio_path path[MOST_PATHS];
	unsigned n = paths(host, peer, path);

	for (unsigned i = 0; i < n; i++)
		if (is_open(host, &path[i], peer))
			return false;
	return n > 0;
}

/*
 * A way from one to the other goes: what is borrowed over it is lost, whether others are left or
 * not.
 */
static bool leads(unsigned host, unsigned adapter, unsigned peer)
{
	struct sio_path path[MOST_PATHS];
	unsigned n = paths(host, peer, path);

	for (unsigned i = 0; i < n; i++)
		if (path[i].adapter == adapter && !cables_out[peer][path[i].peer_adapter] &&
		    led_between(host, &path[i], peer))
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

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* By switches and what joins them, too: when a way of the adapter was lost, and when each was. */
static uint64_t lost[SIM_HOSTS][SIO_MAX_ADAPTERS];
static uint64_t lost_way[SIM_HOSTS][SIO_MAX_ADAPTERS][SIM_HOSTS][SIO_MAX_ADAPTERS];

uint64_t sim_cable_pulled(unsigned host, unsigned adapter)
{
	return later(pulled[host][adapter], lost[host][adapter]);
}

uint64_t sim_way_lost(unsigned host, unsigned adapter, unsigned peer, unsigned peer_adapter)
{
	return later(later(pulled[host][adapter], pulled[peer][peer_adapter]),
		     lost_way[host][adapter][peer][peer_adapter]);
}

/* ---- switches, and links between them ---- */

/* Which paths of a pair were open, a bit each. */
static uint32_t was_open[SIM_HOSTS][SIM_HOSTS];

/* Return: how many are open. */
static unsigned look(void (*changed_to)(unsigned host, const struct sio_path *p, unsigned peer,
					bool open))
{
	struct sio_path path[MOST_PATHS];
	unsigned sum = 0;

	for (unsigned host = 0; host < sim_hosts(); host++) {
		for (unsigned peer = 0; peer < sim_hosts(); peer++) {
			unsigned n = host == peer ? 0 : paths(host, peer, path);
			uint32_t open = 0;

			for (unsigned i = 0; i < n; i++)
				open |= (uint32_t)is_open(host, &path[i], peer) << i;
			for (unsigned i = 0; changed_to && i < n; i++)
				if ((open ^ was_open[host][peer]) >> i & 1)
					changed_to(host, &path[i], peer, open >> i & 1);
			was_open[host][peer] = open;
			sum += (unsigned)__builtin_popcount(open);
		}
	}
	return sum;
}

/* Each pair is reported twice, once from each end. */
static void report_path(unsigned host, const struct sio_path *p, unsigned peer, bool open)
{
	changed[host][p->adapter] = sim_now();
	if (open)
		return;
	lost[host][p->adapter] = sim_now();
	lost_way[host][p->adapter][peer][p->peer_adapter] = sim_now();
	if (host < peer)
		sim_path_gone(host, peer);
	if (host < peer && no_path(host, peer))
		sim_peer_unlinked(host, peer);
}

/* Return: whether hosts have lost a path. */
static bool between_set(bool is_switch, unsigned index, bool in)
{
	unsigned before;

	sim_trace("%s %u is %s", is_switch ? "switch" : "trunk", index, in ? "in" : "out");
	before = look(NULL);
	paint();
	(is_switch ? emu_room_switch : emu_room_trunk)(sim_cluster->room, index, in);
	sim_room_kick();
	return look(report_path) < before;
}

bool sim_switch_out(unsigned index)
{
	assert(index < MOST_BETWEEN);
	return switches_out[index]++ == 0 && between_set(true, index, false);
}

void sim_switch_in(unsigned index)
{
	if (--switches_out[index] == 0)
		between_set(true, index, true);
}

bool sim_trunk_out(unsigned index)
{
	assert(index < MOST_BETWEEN);
	return trunks_out[index]++ == 0 && between_set(false, index, false);
}

void sim_trunk_in(unsigned index)
{
	if (--trunks_out[index] == 0)
		between_set(false, index, true);
}

bool sim_is_cut_off(unsigned host, unsigned adapter, unsigned peer, unsigned peer_adapter)
{
	const struct sio_path p = {.adapter = adapter, .peer_adapter = peer_adapter};
	const struct sio_topology *t = sim_cluster->topology;

	return peer_adapter < t->host[peer].n_adapters && adapter < t->host[host].n_adapters &&
	       t->host[host].adapter[adapter].attach == SIO_ATTACH_SWITCH &&
	       !led_between(host, &p, peer);
}

/* How many of the ways between them are cut off. An adapter that leads to a third host is none. */
static unsigned cut_off(unsigned host, unsigned peer, unsigned *ret_ways)
{
	struct sio_path path[MOST_PATHS];
	unsigned n = paths(host, peer, path), cut = 0;

	for (unsigned i = 0; i < n; i++)
		cut += sim_is_cut_off(host, path[i].adapter, peer, path[i].peer_adapter);
	*ret_ways = n;
	return cut;
}

bool sim_hosts_cut_off(unsigned host, unsigned peer)
{
	unsigned ways;

	return cut_off(host, peer, &ways) == ways;
}

bool sim_hosts_cut_somewhere(unsigned host, unsigned peer)
{
	unsigned ways;

	return cut_off(host, peer, &ways) > 0;
}
