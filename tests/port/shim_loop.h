/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of smartio.ko share that go through smartio_loop.ko (shim_adapter.c). */
#ifndef TESTS_PORT_SHIM_LOOP_H
#define TESTS_PORT_SHIM_LOOP_H

#include "shim.h"

#define NEAR 0 /* adapters: who maps; who grants */
#define FAR 1

/* What a peer granted, and the way there. */
struct loop_window {
	uint64_t owner, source, grant, map;
	uint64_t granted, bus; /* as devices of the peer address it, and of this host */
	uint64_t length;
	int source_fd, map_fd;
	volatile uint32_t *there, *here;
};

/* @length bytes of memory, granted and mapped. */
bool loop_begin(struct port_world *w, struct loop_window *x, uint64_t owner, uint64_t length);
void loop_finish(struct port_world *w, struct loop_window *x);
/* End @id by @op, which must be answered with @error. */
void loop_end(struct port_world *w, uint32_t op, uint64_t id, int error);
/* A parameter of the loop's module. */
void loop_set(struct port_world *w, const char *parameter, const char *text);
/* Until the path of adapter 0 is told to be in @state. */
void loop_hear_link(struct port_world *w, uint32_t state, uint64_t generation, uint64_t turn);

/*
 * Multicast groups (shim_group.c): a member's memory; whether writes reach it; a way to write to
 * the group. The adapter and the owner of the last two are NEAR and the daemon, unless told.
 */
uint64_t group_join(struct port_world *w, uint64_t owner, uint64_t length, int *ret_fd);
void group_publish(struct port_world *w, uint64_t member, bool yes, int error);
uint64_t group_connect(struct port_world *w, uint64_t owner, int error);
void shim_groups(struct port_world *w);
/* What there is of a group while its bridge goes, and what is left then. */
struct group_held {
	uint64_t member, sender;
	int fd;
};
bool group_hold(struct port_world *w, struct group_held *g);
void group_lost(struct port_world *w, struct group_held *g);

void shim_channels(struct port_world *w); /* shim_channel.c */

/*
 * shim_late.c: the end of @id by @op is asked for while an access may still come, which holds up
 * its answer alone.
 */
void late_end(struct port_world *w, uint32_t op, uint64_t id);
/* A grant that is kept for such an access, and is late until somebody says otherwise. */
bool late_grant(struct port_world *w);
void shim_late(struct port_world *w);

#endif
