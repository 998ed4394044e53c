/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A smartiod of a real host, as far as one program can see: segments and plain interrupts, whose
 * memory and descriptors outlive each connection. It hangs up when it likes: with a request unread,
 * with one done and not answered, or after an answer. What the program says next time must be what
 * it has.
 */
#ifndef TESTS_SESSION_SERVER_H
#define TESTS_SESSION_SERVER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Sets SMARTIO_SOCKET. @one_of: it hangs up at one of so many requests; 0: only if it is told to.
 */
void server_start(unsigned one_of, uint64_t seed);
/* Hang up and listen no more; true: a program that connects is refused. */
void server_away(bool away);
/* Its host has @n adapters; otherwise 1. */
void server_adapters(unsigned n);
/* It does not know any owner that is shown to it. */
void server_forget(void);
/* Hang up; the next one knows the owner, and cannot take over what it had. */
void server_lose_all(void);
/*
 * Hang up when asked to remove a segment, which is not done; the next one takes over what there is,
 * and then tells that it is lost: the handles are still to be given back.
 */
void server_lose_at_removal(void);
/* Send what is no message, and stay. */
void server_babble(void);
/* Tell of @n connections to each segment, in one word each. */
void server_connected(unsigned n);
/* The end: no connection, no thread, no socket. */
void server_stop(void);

struct server_counts {
	unsigned hellos, resumed, hung_up, restored, events;
	unsigned wrong; /* words that no program says that has what it has */
	unsigned segments, interrupts;
};
struct server_counts server_counts(void);
/* Trigger all interrupts once, whether somebody is connected or not. */
void server_trigger(void);

#endif
