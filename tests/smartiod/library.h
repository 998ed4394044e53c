/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that do what libraries do when their daemon is killed: connect to the next one, show
 * their owner, say what they have (the library's own journal), and ask again what was not answered.
 */
#ifndef TESTS_SMARTIOD_LIBRARY_H
#define TESTS_SMARTIOD_LIBRARY_H

#include "world.h"

/* All clients of kind SIO_CLIENT_LIBRARY made after this are such. One world at a time. */
void library_begin(struct world *w);
/* The world is about to go: all clients are killed. */
void library_end(struct world *w);
/* Let them go on as far as they can; to be called by the world's before_step. */
void library_pump(struct world *w, void *unused);
/* It is killed by world_kill(), or does not come back. */
void library_gone(struct world_client *c);
/* Are all connected, and have said what they had? */
bool library_settled(const struct world *w);
/* The next answer to it does not arrive: the daemon dies first. */
void library_lose_answer(struct world_client *c);
/* Does it wait for an answer, or for the next daemon? */
bool library_busy(const struct world_client *c);
/* Things that could not be restored, of all. */
unsigned library_lost(void);
/* Of those segments and interrupts of the program's own. */
unsigned library_lost_own(void);
/*
 * Of those what nobody misses: what the program was giving back, and device segments, which end
 * with their last connection, unknown to who made them.
 */
unsigned library_lost_harmless(void);
/* What @c would say now, in place of what it has; NULL: the first. false: no more. */
bool library_next(struct world_client *c, unsigned step, uint64_t *at, struct sio_msg_restore *ret);

/* ---- programs that speak for themselves, without their library ---- */

/* As owner @owner: the error of the answer, ~0 if there is none. */
uint32_t say_hello(struct world *w, struct world_client *c, uint64_t owner, uint32_t kind);
/* Return: the error of the answer; -1: there is none. */
int say(struct world *w, struct world_client *c, const struct sio_msg_restore *m);
void say_step(struct world *w, struct world_client *c, uint32_t step);
/*
 * The daemon of @host is started again, and @c has said HELLO to it by itself. No library goes on
 * from now on.
 */
void speak_to_next(struct world *w, struct world_client *c, unsigned host);

#endif
