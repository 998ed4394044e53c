/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the memory model (fabric.h) meets programs and room. */
#include "fabric.h"
#include "sim.h"

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

	if (o->hardware && o->host != sim_self()->host)
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
