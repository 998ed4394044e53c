/* SPDX-License-Identifier: BSD-2-Clause */
/* The boundary between the memory model (fabric/fabric.h) and the accesses of programs and room. */
#include "edge/edge.h"
#include "fabric/fabric.h"

const struct fabric_params *sim_hardware;

/* The hardware's parameters differ by seed: half of the seeds have the defaults. */
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
	p->chassis_ps = p->switch_ps;
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

static struct fabric_core *access_core(void)
{
	struct sim_coro *c = sim_coro_current();

	if (!c)
		return NULL;
	if (!c->core)
		c->core = fabric_core_new(c->proc->host);
	return c->core;
}

static uint64_t access_now(void)
{
	return sim_now();
}

static void access_wait(uint64_t ns)
{
	sim_coro_pause(ns);
}

/* What it knew when it decided to is old then. */
static void access_ring(void)
{
	struct sim_proc *p = sim_self();

	p->rung++;
	if (p->stop_ring == 0 || --p->stop_ring > 0 || p->stop_until <= sim_now())
		return;
	sim_trace("fault stop: %s is about to ring", p->name);
	sim_proc_stop(p, p->stop_until);
	sim_coro_pause(p->stopped - sim_now());
}

static void access_polled(void)
{
	sim_room_look();
}

static void settle_now(void *arg)
{
	(void)arg;
	if (sim_cluster)
		fabric_settle(sim_now());
}

static void access_settle(uint64_t when)
{
	sim_after(when > sim_now() ? when - sim_now() : 0, settle_now, NULL);
}

static void look_now(void *arg)
{
	(void)arg;
	if (sim_cluster)
		sim_room_look();
}

static void access_look(uint64_t when)
{
	sim_after(when > sim_now() ? when - sim_now() : 0, look_now, NULL);
}

static void access_signal(int fd)
{
	sim_event_add(fd, 1);
	sim_fd_close(fd);
}

static void access_forget(int fd)
{
	sim_fd_close(fd);
}

static int access_dup(int fd)
{
	return sim_fd_dup(fd);
}

static const char *access_who(void)
{
	return sim_coro_current() ? sim_self()->name : "the room";
}

const struct fabric_access sim_access = {
	.core = access_core,
	.wait = access_wait,
	.ring = access_ring,
	.polled = access_polled,
	.settle = access_settle,
	.look = access_look,
	.signal = access_signal,
	.forget = access_forget,
	.dup = access_dup,
	.now = access_now,
	.who = access_who,
};
