/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of a seed, from the cluster's start to the last check for leaks. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "run/run.h"
#include "sim_commit.h"

#define BOOT_LIMIT (30 * SIM_SECOND)
/* After the faults' end all daemons agree, and everything can be had again. */
#define LIVE_LIMIT (60 * SIM_SECOND)
#define CRASH_STACK 65536u

struct sim_options sim_options = {.seconds = 10};
struct sim_result sim_result;
static bool calm;

bool sim_calm(void)
{
	return calm;
}

void sim_fail(const char *oracle, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sim_trace("FAILED: oracle %s: %s", oracle, text);
	fflush(stdout);
	fprintf(stderr, "FAILED seed %" PRIu64 " commit %s at %" PRIu64 ".%06u s: %s: %s\n",
		sim_options.seed, SIM_COMMIT, sim_now() / SIM_SECOND,
		(unsigned)(sim_now() % SIM_SECOND / 1000), oracle, text);
	sim_trace_end();
	_exit(1);
}

/* ---- crashes: of an assertion, of what a check of the room's found, of a bare dereference ---- */
static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU};
#define N_CRASHES (sizeof(crashes) / sizeof(crashes[0]))

/* A crash is reported as an oracle's failure is; then the process dies of its signal. */
static void on_crash(int sig)
{
	const char *name = sigabbrev_np(sig);
	char line[200];
	ssize_t n;

	for (unsigned i = 0; i < N_CRASHES; i++)
		signal(crashes[i], SIG_DFL);
	/* The line first: what follows is not made for a handler, and the heap may be broken. */
	alarm(10);
	snprintf(line, sizeof(line),
		 "FAILED seed %" PRIu64 " commit %s at %" PRIu64 ".%06u s: crash: SIG%s\n",
		 sim_options.seed, SIM_COMMIT, sim_now() / SIM_SECOND,
		 (unsigned)(sim_now() % SIM_SECOND / 1000), name);
	n = write(STDERR_FILENO, line, strlen(line));
	(void)n;
	sim_trace("FAILED: crash: SIG%s", name);
	sim_trace_end();
	raise(sig);
}

/* The handler has a stack of its own, because a program's stack may have overflowed. */
static void crashes_start(void)
{
	static char stack[CRASH_STACK];
	const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction a = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};

	sigaltstack(&alternative, NULL);
	for (unsigned i = 0; i < N_CRASHES; i++)
		sigaction(crashes[i], &a, NULL);
	fabric_on_crash = on_crash;
}

/* ---- oracles ---- */
static uint64_t next_check[64];

static void oracles_check(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; sim_oracles[i]; i++) {
		if (sim_now() >= next_check[i]) {
			sim_oracles[i]->check();
			next_check[i] = sim_now() + sim_oracles[i]->every;
		}
		if (next_check[i] < next)
			next = next_check[i];
	}
	sim_watch(next, oracles_check);
}

static void oracles_start(void)
{
	for (unsigned i = 0; sim_oracles[i]; i++) {
		const struct sim_oracle *o = sim_oracles[i];

		assert(i < sizeof(next_check) / sizeof(next_check[0]));
		if (o->start)
			o->start();
		next_check[i] = o->check ? sim_now() : UINT64_MAX;
	}
	oracles_check();
}

static bool all_back(void *arg)
{
	(void)arg;
	for (unsigned i = 0; sim_oracles[i]; i++)
		if (sim_oracles[i]->back && !sim_oracles[i]->back())
			return false;
	return true;
}

static void report_leaks(void)
{
	char text[512] = "";

	for (unsigned i = 0; sim_oracles[i]; i++) {
		const struct sim_oracle *o = sim_oracles[i];

		if (!o->back || o->back())
			continue;
		if (o->explain)
			o->explain(text, sizeof(text));
		sim_fail(o->name, "60 s after the faults not all is back: %s", text);
	}
}

/* ---- the run ---- */
static bool all_ready(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (!sim_host_ready(i))
			return false;
	return true;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static const char *who_runs(void)
{
	SIM_EACH_PROC(p)
	if (!p->dead)
		return p->name;
	return "nobody";
}

/* Faults are over: hosts come up, programs end, everything works, nothing is left. */
static void settle(void)
{
	uint64_t limit = sim_now() + LIVE_LIMIT;

	calm = true;
	if (!sim_run(all_ready, NULL, LIVE_LIMIT))
		sim_fail("liveness", "60 s after the faults a host is not ready");
	sim_programs_stop();
	if (!sim_run(sim_programs_ended, NULL, limit - sim_now()))
		sim_fail("liveness", "%s still runs 60 s after the faults", who_runs());
	for (unsigned i = 0; sim_oracles[i]; i++)
		if (sim_oracles[i]->ended)
			sim_oracles[i]->ended();
	sim_probe(limit);
	if (!sim_run(all_back, NULL, limit > sim_now() ? limit - sim_now() : 0))
		report_leaks();
}

void sim_run_seed(void)
{
	uint64_t length = (uint64_t)(sim_options.seconds * SIM_SECOND);

	crashes_start();
	sim_start(sim_options.seed);
	calm = false;
	sim_plan_choose();
	sim_cluster_start(sim_draw_cluster(sim_options.seed, sim_options.hosts));
	if (!sim_run(all_ready, NULL, BOOT_LIMIT))
		sim_fail("liveness", "the cluster does not start");
	oracles_start();
	sim_plan_make();
	sim_plan_begin();
	sim_programs_start();
	sim_run(never, NULL, length);
	sim_plan_heal();
	settle();
	sim_watch(UINT64_MAX, NULL);
	sim_trace("fabric: %" PRIu64 " stores, %" PRIu64 " interrupts, in the order %016" PRIx64,
		  fabric_sum.stores, fabric_sum.interrupts, fabric_sum.hash);
	sim_result.hash = sim_trace_hash();
	sim_result.events = sim_events();
	sim_result.virtual_ns = sim_now();
	sim_result.hosts = sim_hosts();
	sim_result.device_faults = sim_cluster->faults;
	sim_result.plan = sim_plan_events();
	sim_cluster_stop();
	sim_end();
	sim_trace_end();
}
