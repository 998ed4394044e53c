/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs in which calls of the library fail (failing.c, tests/api/fault_suite.py). A program that
 * ends before its time is not waited for by the others, and its test fails at once. Without
 * failing.c all of this is poll().
 */
#ifndef TESTS_LIB_FAILURE_H
#define TESTS_LIB_FAILURE_H

#include <poll.h>
#include <stdbool.h>

#define FAILURE_GIVEN_UP (-2)

/* failing.c: from now on calls are counted. @ends: called when the program ends, but by exit(). */
void sio_failing_begin(void (*ends)(void)) __attribute__((weak));

/* The test's own process: before the first program. */
void failure_up(void);
/* In a program: calls are counted; and it has done all that it had to. */
void failure_begin(void);
void failure_fine(void);
/* As poll(); FAILURE_GIVEN_UP: a program has ended before its time. Other programs end then. */
int failure_poll(struct pollfd *p, unsigned n, int limit_ms);
/* The programs of that test have ended. Return: whether one did before its time. */
bool failure_over(void);

#endif
