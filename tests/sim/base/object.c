/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of the simulator: numbers for counted objects, never used again. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>

#include "base/sim.h"
#include "fabric/fabric.h"

#define FIRST_FD 1000

static struct sim_object **table;
static unsigned n_table, max_table, open_fds;

static int slot_for(struct sim_object *o)
{
	if (n_table == max_table) {
		max_table = max_table ? max_table * 2 : 1024;
		table = realloc(table, max_table * sizeof(struct sim_object *));
		assert(table);
	}
	table[n_table] = o;
	open_fds++;
	return FIRST_FD + (int)n_table++;
}

int sim_fd_last(void)
{
	return FIRST_FD + (int)n_table - 1;
}

int sim_fd_new(enum sim_kind kind)
{
	struct sim_object *o = calloc(1, sizeof(*o));

	assert(o);
	o->kind = kind;
	o->refs = 1;
	return slot_for(o);
}

struct sim_object *sim_fd(int fd)
{
	assert(fd >= FIRST_FD && (unsigned)(fd - FIRST_FD) < n_table);
	assert(table[fd - FIRST_FD]);
	return table[fd - FIRST_FD];
}

bool sim_fd_open(int fd)
{
	assert(fd >= FIRST_FD && (unsigned)(fd - FIRST_FD) < n_table);
	return table[fd - FIRST_FD];
}

int sim_fd_dup(int fd)
{
	struct sim_object *o = sim_fd(fd);

	o->refs++;
	return slot_for(o);
}

void sim_fd_close(int fd)
{
	struct sim_object *o = sim_fd(fd);

	table[fd - FIRST_FD] = NULL;
	open_fds--;
	if (--o->refs > 0)
		return;
	if (o->kind == SIM_MEM)
		fabric_mem_unref(o->mem);
	else if (o->kind == SIM_OWNER)
		sim_edge->owner_closed(o->host, o->id);
	else if (o->kind == SIM_CONN)
		sim_edge->conn_close(o->conn);
	if (o->watch)
		sim_edge->irq_gone(o->watch);
	for (struct sim_waiter *w = o->waiters; w; w = w->next)
		w->object = NULL;
	free(o);
}

unsigned sim_fd_count(void)
{
	return open_fds;
}

void sim_event_add(int fd, uint64_t count)
{
	struct sim_object *o = sim_fd(fd);

	assert(o->kind == SIM_EVENT);
	/* As with an eventfd, a count that would overflow is dropped. */
	if (o->count > UINT64_MAX - 1 - count)
		return;
	o->count += count;
	sim_object_ready(o);
}

void sim_object_ready(struct sim_object *o)
{
	for (struct sim_waiter *w = o->waiters; w; w = w->next)
		sim_coro_notify(w->coro);
	if (o->watch)
		sim_edge->irq_ready(o->watch);
}

static void link_waiter(struct sim_waiter *w)
{
	w->at = &w->object->waiters;
	w->next = w->object->waiters;
	if (w->next)
		w->next->at = &w->next;
	w->object->waiters = w;
}

static void unlink_waiter(struct sim_waiter *w)
{
	if (!w->object)
		return;
	*w->at = w->next;
	if (w->next)
		w->next->at = w->at;
	w->object = NULL;
}

void sim_wait_add(int fd)
{
	struct sim_coro *c = sim_coro_current();

	if (c->n_waiters == c->max_waiters) {
		/*
		 * Waiters are in lists that contain their addresses, so they must leave them while
		 * they are moved.
		 */
		for (unsigned i = 0; i < c->n_waiters; i++) {
			struct sim_object *o = c->waiters[i].object;

			unlink_waiter(&c->waiters[i]);
			c->waiters[i].object = o;
		}
		c->max_waiters = c->max_waiters ? c->max_waiters * 2 : 8;
		c->waiters = realloc(c->waiters, c->max_waiters * sizeof(*c->waiters));
		assert(c->waiters);
		for (unsigned i = 0; i < c->n_waiters; i++)
			if (c->waiters[i].object)
				link_waiter(&c->waiters[i]);
	}
	c->waiters[c->n_waiters] = (struct sim_waiter){.object = sim_fd(fd), .coro = c};
	link_waiter(&c->waiters[c->n_waiters++]);
}

void sim_wait_clear(struct sim_coro *c)
{
	while (c->n_waiters > 0)
		unlink_waiter(&c->waiters[--c->n_waiters]);
}
