/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs of tests that work in rounds until their standard input ends. Such a program prints
 * "running" after its first round, or when others can use it. At SIGUSR1 it prints "on" when a
 * round has begun and ended since, so that a test knows that it is not stuck.
 */
#ifndef TESTS_LIB_ROUNDS_H
#define TESTS_LIB_ROUNDS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t rounds_asked;

static inline void rounds_on_signal(int number)
{
	(void)number;
	rounds_asked = 1;
}

/* Before the first round: SIGUSR1 is a question from now on. */
static inline void rounds_begin(void)
{
	signal(SIGUSR1, rounds_on_signal);
}

/* Waits for @wait_ms at most. Return: whether the input has ended. */
static inline bool rounds_end(int wait_ms)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, wait_ms) > 0;
}

static inline void rounds_running(void)
{
	printf("running\n");
	fflush(stdout);
}

/* After each round. One that had begun before the question does not count. */
static inline void rounds_answer(void)
{
	static int rounds;

	if (!rounds_asked || ++rounds < 2)
		return;
	rounds_asked = rounds = 0;
	printf("on\n");
	fflush(stdout);
}

#endif
