/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The API's tests in the simulator, from the same sources as on the live cluster. Programs are
 * coroutines, a test's own function is the event loop: when it waits, virtual time passes.
 *
 *   calls.h    calls of the C library that the tests make
 *   process.c  these, as a simulated program has them
 *   cluster.c  tests/lib/cluster.h
 *   main.c     the command line
 */
#ifndef SIM_API_H
#define SIM_API_H

#include <stdint.h>
#include <sys/types.h>

#include "api/calls.h"
#include "base/sim.h"

/* A program of a test; its pid is its number. */
struct api_program {
	struct sim_proc *proc;
	int (*fn)(void *arg);
	void *arg;
	int signal; /* it was killed by */
};

extern uint64_t api_seed;
extern uint64_t api_hash, api_events, api_virtual_ns; /* of the clusters that went down */

/* ---- api/process.c ---- */
pid_t api_program_new(unsigned host, int (*fn)(void *arg), void *arg);
struct api_program *api_program(pid_t pid);
/* Frees the records of all programs, which have ended. */
void api_programs_free(void);
/* The running program sleeps; or, if none runs, time passes. */
void api_sleep(uint64_t ns);
/*
 * Waits until @done returns true, at most a minute; for a program or, if none runs, for the test
 * itself.
 */
bool api_wait_until(bool (*done)(void *arg), void *arg);

#endif
