/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of the simulator: numbers for counted objects, never used again. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim.h"

#define FIRST_FD 1000

static struct sim_object **table;
static unsigned n_table, open_fds;

static int slot_for(struct sim_object *o)
{
	table = realloc(table, (n_table + 1) * sizeof(struct sim_object *));
	assert(table);
	table[n_table] = o;
	open_fds++;
	return FIRST_FD + (int)n_table++;
}

int sim_fd_new(enum sim_kind kind)
{
	struct sim_object *o = calloc(1, sizeof(*o));

	assert(o);
	o->kind = kind;
	o->refs = 1;
	o->memfd = -1;
	return slot_for(o);
}

struct sim_object *sim_fd(int fd)
{
	assert(fd >= FIRST_FD && (unsigned)(fd - FIRST_FD) < n_table);
	assert(table[fd - FIRST_FD]);
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
		close(o->memfd);
	else if (o->kind == SIM_OWNER)
		sim_owner_closed(o->host, o->id);
	else if (o->kind == SIM_CONN)
		sim_conn_close(o->conn);
	free(o);
}

unsigned sim_fd_count(void)
{
	return open_fds;
}
