/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the memory model (fabric/fabric.h) meets programs and room. */
#include "fabric/fabric.h"
#include "base/sim.h"

const struct fabric_params *sim_hardware;

/* What hardware it is differs by seed: half of them have the defaults. */
void sim_access_params(struct fabric_params *p)
{
	fabric_params_default(p);
	if (sim_hardware)
		*p = *sim_hardware;
	if (sim_hardware || sim_below(2) == 0)
		return;
	p->tags = 1u << sim_below(9);
	p->adapter_ps = 50000 + (uint32_t)sim_below(300000);
	p->switch_ps = 50000 + (uint32_t)sim_below(300000);
	p->root_write_ps = 50000 + (uint32_t)sim_below(300000);
	p->root_read_ps = 100000 + (uint32_t)sim_below(600000);
	p->iommu_ps = (uint32_t)sim_below(500000);
	p->device_link.width = 1u << sim_below(5);
	p->device_link.generation = 1 + (uint32_t)sim_below(5);
	p->media_read_ns = 1000 + sim_below(100000);
	p->media_write_ns = 1000 + sim_below(200000);
	p->command_ns = sim_below(5000);
	p->media_units = 1 + (uint32_t)sim_below(16);
}

struct fabric_core *sim_core(void)
{
	struct sim_coro *c = sim_coro_current();

	if (!c)
		return NULL;
	if (!c->core)
		c->core = fabric_core_new(c->proc->host);
	return c->core;
}

void sim_sync(void)
{
	struct sim_coro *c = sim_coro_current();

	/* Who made no access yet has nothing to order. */
	if (c->core)
		fabric_core_sync(c->core);
}

void sim_event_write(int fd)
{
	const struct sim_object *o = sim_fd(fd);

	bool far = o->hardware && o->host != sim_self()->host;

	if (far && sim_window_ended(fd, sim_self()->host, o->host))
		return;
	if (far)
		fabric_core_signal(sim_core(), o->host, fd);
	else
		sim_event_add(fd, 1);
}

uint64_t sim_access_now(void)
{
	return sim_now();
}

void sim_access_wait(uint64_t ns)
{
	sim_coro_pause(ns);
}

/* What it knew when it decided to is old then. */
void sim_access_ring(void)
{
	struct sim_proc *p = sim_self();

	p->rung++;
	if (p->stop_ring == 0 || --p->stop_ring > 0 || p->stop_until <= sim_now())
		return;
	sim_trace("fault stop: %s is about to ring", p->name);
	sim_proc_stop(p, p->stop_until);
	sim_coro_pause(p->stopped - sim_now());
}

void sim_access_polled(void)
{
	sim_room_look();
}

static void settle(void *arg)
{
	(void)arg;
	if (sim_cluster)
		fabric_settle(sim_now());
}

void sim_access_settle(uint64_t when)
{
	sim_after(when > sim_now() ? when - sim_now() : 0, settle, NULL);
}

static void look(void *arg)
{
	(void)arg;
	if (sim_cluster)
		sim_room_look();
}

void sim_access_look(uint64_t when)
{
	sim_after(when > sim_now() ? when - sim_now() : 0, look, NULL);
}

void sim_access_signal(int fd)
{
	sim_event_add(fd, 1);
	sim_fd_close(fd);
}

void sim_access_forget(int fd)
{
	sim_fd_close(fd);
}

int sim_access_dup(int fd)
{
	return sim_fd_dup(fd);
}

const char *sim_access_who(void)
{
	return sim_coro_current() ? sim_self()->name : "the room";
}
