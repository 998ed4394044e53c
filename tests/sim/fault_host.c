/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of hosts: crash and reboot with another layout, cables pulled, clocks that jump. */
#include "run.h"
#include "tables.h"

static unsigned draw(struct sim_fault_event *e, unsigned n)
{
	return (unsigned)(sim_draw(&e->rng) % n);
}

/* ---- crash: the host goes, with all that runs on it, and comes back elsewhere in its address map ---- */
static bool held_down[SIM_HOSTS]; /* an event will boot it */

static void crash_begin(struct sim_fault_event *e)
{
	e->a = draw(e, sim_hosts());
	/* Already down by another event: that one boots it. */
	e->b = !held_down[e->a];
	if (!e->b)
		return;
	held_down[e->a] = true;
	sim_host_crash(e->a);
}

static void boot_when_off(void *arg)
{
	unsigned host = (unsigned)(uintptr_t)arg;

	if (!sim_host_off(host)) {
		sim_after(SIM_MS, boot_when_off, arg);
		return;
	}
	held_down[host] = false;
	sim_host_boot(host);
}

static void crash_end(struct sim_fault_event *e)
{
	if (e->b)
		boot_when_off((void *)(uintptr_t)e->a);
}

/* Daemons that gave up by themselves took their hosts along. */
static void crash_heal(void)
{
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (!held_down[i] && !sim_host_alive(i))
			boot_when_off((void *)(uintptr_t)i);
}

const struct sim_fault sim_fault_crash = {
	.name = "crash",
	.most = 6,
	.longest = 2 * SIM_SECOND,
	.begin = crash_begin,
	.end = crash_end,
	.heal = crash_heal,
};

/* ---- link: a cable is out for a while ---- */
static unsigned cables_out[SIM_HOSTS][SIO_MAX_ADAPTERS];

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

static void link_set(unsigned host, unsigned adapter, bool up)
{
	sim_trace("host %u: cable of adapter %u is %s", sim_node(host), adapter, up ? "in" : "out");
	emu_room_link(sim_cluster->room, host, adapter, up);
	sim_room_kick();
	for (unsigned peer = 0; !up && peer < sim_hosts(); peer++)
		if (peer != host && no_path(host, peer))
			sim_peer_unlinked(host, peer);
}

static void link_begin(struct sim_fault_event *e)
{
	e->a = draw(e, sim_hosts());
	e->b = draw(e, sim_cluster->topology->host[e->a].n_adapters);
	if (cables_out[e->a][e->b]++ == 0)
		link_set(e->a, e->b, false);
}

static void link_end(struct sim_fault_event *e)
{
	if (--cables_out[e->a][e->b] == 0)
		link_set(e->a, e->b, true);
}

const struct sim_fault sim_fault_link = {
	.name = "link",
	.most = 20,
	.longest = SIM_SECOND,
	.begin = link_begin,
	.end = link_end,
};

/* ---- clock: a host's clock jumps ahead, as after its machine was suspended ---- */
static void clock_begin(struct sim_fault_event *e)
{
	static const uint64_t far[] = {SIM_MS, SIM_SECOND, 10 * SIM_SECOND, 86400 * SIM_SECOND};

	e->a = draw(e, sim_hosts());
	e->b = draw(e, 4);
	sim_clock_jump(e->a, far[e->b]);
}

const struct sim_fault sim_fault_clock = {.name = "clock", .most = 5, .begin = clock_begin};
