/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs that branch off another one where a program dies. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/branch.h"

#define NAMED 3 /* exit status of who has said what failed */

static struct {
	const char *program;
	struct branch_reports *reports;
	uint64_t seed;
	uint64_t from, stride; /* steps of the program that dies */
	uint64_t here;	       /* the step in which it died in this branch; 0: this is the trunk */
	void (*begin)(uint64_t step);
} B;

struct branch_reports *branch_start(const char *program)
{
	B.program = program;
	B.reports = mmap(NULL, sizeof(*B.reports), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(B.reports != MAP_FAILED);
	return B.reports;
}

static pid_t child(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert(pid >= 0);
	return pid;
}

static void wait_for(pid_t pid, uint64_t step)
{
	int status;

	assert(waitpid(pid, &status, 0) == pid);
	if (status == 0)
		return;
	/* The trunk has named the branch that failed. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != NAMED)
		fprintf(stderr, "failed; to see it again: %s %" PRIu64 " %" PRIu64 " TRACE\n",
			B.program, B.seed, step);
	exit(NAMED);
}

void branch_child(void (*run)(uint64_t seed, uint64_t kill_at), uint64_t seed, uint64_t kill_at)
{
	pid_t pid;

	B.seed = seed;
	pid = child();
	if (pid == 0) {
		run(seed, kill_at);
		_exit(0);
	}
	wait_for(pid, kill_at);
}

/* Whether the program dies in this step: in the branch. */
static bool branch(struct sim_proc *p)
{
	uint64_t step = p->steps - B.from;
	pid_t pid = child();

	assert(step < BRANCH_STEPS);
	if (pid == 0) {
		B.here = step;
		if (B.begin)
			B.begin(step);
		return true;
	}
	wait_for(pid, step);
	B.reports->deaths++;
	B.reports->last = step;
	p->kill_at += B.stride;
	return false;
}

void branch_at(struct sim_proc *p, uint64_t stride, void (*begin)(uint64_t step))
{
	B.from = p->steps;
	B.stride = stride;
	B.begin = begin;
	p->kill_at = p->steps + 1;
	p->dies_here = branch;
}

void branch_report(uint64_t hash)
{
	if (B.here)
		B.reports->hash[B.here] = hash;
	else
		B.reports->trunk = hash;
}
