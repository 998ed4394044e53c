/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of hosts: crash and reboot with another layout, cables pulled, clocks that jump. */
#include "edge/cable.h"
#include "run/run.h"

static unsigned draw(struct sim_fault_event *e, unsigned n)
{
	return (unsigned)(sim_draw(&e->rng) % n);
}

/* ---- crash: a host, with all programs on it; it boots again with another address map ---- */
static bool held_down[SIM_HOSTS]; /* an event of this fault is to boot it */

static void crash_begin(struct sim_fault_event *e)
{
	e->a = draw(e, sim_hosts());
	/* Already down by another event: that one boots it. */
	e->b = !held_down[e->a];
	if (!e->b)
		return;
	held_down[e->a] = true;
	sim_did.crash += sim_host_alive(e->a);
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

/* Also boots hosts whose daemons ended by themselves, which is a crash of the host. */
static void crash_heal(void)
{
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (!held_down[i] && !sim_host_alive(i))
			boot_when_off((void *)(uintptr_t)i);
}

const struct sim_fault sim_fault_crash = {
	.name = "crash",
	.did = &sim_did.crash,
	.most = 6,
	.longest = 2 * SIM_SECOND,
	.begin = crash_begin,
	.end = crash_end,
	.heal = crash_heal,
};

/* ---- link: a cable is out for a while ---- */
static void link_begin(struct sim_fault_event *e)
{
	e->a = draw(e, sim_hosts());
	e->b = draw(e, sim_cluster->topology->host[e->a].n_adapters);
	sim_did.link += sim_cable_out(e->a, e->b);
}

static void link_end(struct sim_fault_event *e)
{
	sim_cable_in(e->a, e->b);
}

const struct sim_fault sim_fault_link = {
	.name = "link",
	.did = &sim_did.link,
	.most = 20,
	.longest = SIM_SECOND,
	.begin = link_begin,
	.end = link_end,
};

/* ---- between: a switch, or a link between two switches, is out for a while ---- */
static void between_begin(struct sim_fault_event *e)
{
	const struct sio_topology *t = sim_cluster->topology;

	e->a = draw(e, t->n_switches + t->n_trunks);
	sim_did.between +=
		e->a < t->n_switches ? sim_switch_out(e->a) : sim_trunk_out(e->a - t->n_switches);
}

static void between_end(struct sim_fault_event *e)
{
	const struct sio_topology *t = sim_cluster->topology;

	if (e->a < t->n_switches)
		sim_switch_in(e->a);
	else
		sim_trunk_in(e->a - t->n_switches);
}

const struct sim_fault sim_fault_between = {
	.name = "between",
	.did = &sim_did.between,
	.most = 10,
	.longest = SIM_SECOND,
	.begin = between_begin,
	.end = between_end,
};

/*
 * ---- anew: all cables of a host are out, and its links come back with other addresses: windows to
 * and from it are dead, and have to be made anew, although no host has started again ----
 */
static void anew_begin(struct sim_fault_event *e)
{
	e->a = draw(e, sim_hosts());
	for (unsigned i = 0; i < sim_cluster->topology->host[e->a].n_adapters; i++)
		sim_cable_out(e->a, i);
}

static void anew_end(struct sim_fault_event *e)
{
	sim_did.anew += sim_cluster->topology->host[e->a].n_adapters > 0;
	sim_cables_anew(e->a);
	for (unsigned i = 0; i < sim_cluster->topology->host[e->a].n_adapters; i++)
		sim_cable_in(e->a, i);
}

const struct sim_fault sim_fault_anew = {
	.name = "anew",
	.did = &sim_did.anew,
	.most = 8,
	.longest = SIM_SECOND,
	.begin = anew_begin,
	.end = anew_end,
};

/* ---- clock: a host's clock jumps ahead, as after its machine was suspended ---- */
static void clock_begin(struct sim_fault_event *e)
{
	static const uint64_t far[] = {SIM_MS, SIM_SECOND, 10 * SIM_SECOND, 86400 * SIM_SECOND};

	e->a = draw(e, sim_hosts());
	e->b = draw(e, 4);
	sim_did.clock++;
	sim_clock_jump(e->a, far[e->b]);
}

const struct sim_fault sim_fault_clock = {
	.name = "clock", .did = &sim_did.clock, .most = 5, .begin = clock_begin};
