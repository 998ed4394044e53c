/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster of two machines: a test's program runs on both, in step, and each forks the programs of
 * its own host. What one does the other is told by a TCP connection: steps, how programs ended,
 * counters. With SMARTIO_TEST_PAIR, to "NODE ADDRESS:PORT": this host's node, and where the one of
 * node 4 listens.
 */
#ifndef TESTS_LIB_PAIR_H
#define TESTS_LIB_PAIR_H

#include <stdbool.h>
#include <sys/types.h>

#define PAIR_FIRST 4u
#define PAIR_SECOND 8u

bool pair_is(void);
/* Of this machine. */
unsigned pair_node(void);
/* Connected to the other one's program, once for all clusters. Return: 0; -1: stderr says why. */
int pair_up(void);
/* Called for each step that comes from the other one. */
void pair_on_step(void (*fn)(unsigned step));
/* Both are here. What the other one sent before has been heard. */
void pair_barrier(void);
void pair_step(unsigned step);
/* In a program of the test: what others say is the test's own process's to hear. */
void pair_child(void);
bool pair_is_child(void);
/* The next program of the test; -1: it is another machine's, and *ret_pid stands for it. */
int pair_fork(bool here, pid_t *ret_pid);
/* How it ended, for the other machine. */
void pair_tell_end(int program, int status);
/* How that for which @pid stands ended; -1: @pid stands for none. */
int pair_end(pid_t pid, int limit_ms);
/* @n values that are known @here, for both; in a program of the test for itself. */
void pair_share(bool here, long long *values, unsigned n);
/* The test in hand cannot run on two machines: it is skipped, and says why. */
void pair_cannot(const char *needs);

#endif
