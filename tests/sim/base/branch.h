/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each death of a program, out of one run. The run goes on as if nobody died; in each step asked
 * for, a child branches off in which the program dies there, and which ends the run on its own.
 * What was before that step happens once, not once for each death. Both are children of the test:
 * what the dead leave allocated goes with them.
 */
#ifndef SIM_BASE_BRANCH_H
#define SIM_BASE_BRANCH_H

#include "base/sim.h"

#define BRANCH_STEPS (1u << 16)

/* What the children of a test report, in memory that they share. */
struct branch_reports {
	uint64_t trunk;		     /* hash of the run in which nobody died */
	uint64_t deaths, last;	     /* branches, and the step of the last one */
	uint64_t hash[BRANCH_STEPS]; /* of each branch; 0: none in that step */
};

/* To be called once, with the program's name for its command line. */
struct branch_reports *branch_start(const char *program);
/* @run(@seed, @kill_at) in a child; if it fails, the test ends and says how to see it again. */
void branch_child(void (*run)(uint64_t seed, uint64_t kill_at), uint64_t seed, uint64_t kill_at);
/*
 * In the child: from now on a branch in the first step of @p and each @stride-th after it; steps
 * count from here. @begin is called at the start of a branch; NULL.
 */
void branch_at(struct sim_proc *p, uint64_t stride, void (*begin)(uint64_t step));
/* At the end of the run, of the trunk and of each branch: the hash of its trace. */
void branch_report(uint64_t hash);

#endif
