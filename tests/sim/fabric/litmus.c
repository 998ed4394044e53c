/* SPDX-License-Identifier: BSD-2-Clause */
/* The runner of litmus tests, and the little world that the fabric needs. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include "fabric/litmus.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS 200000u /* an agent that waits longer waits for ever */
#define PAUSE_NS 400u	 /* at most, between two steps */

struct litmus_memory M;

static uint64_t now;
static struct fabric_core *core[AGENTS], *running;
static const struct litmus_agent *agents;

/* ---- the world ---- */
static struct fabric_core *access_core(void)
{
	return running;
}

static uint64_t access_now(void)
{
	return now;
}

static void access_wait(uint64_t ns)
{
	now += ns;
}

static void access_ring(void)
{
}

static void access_polled(void)
{
}

static void access_settle(uint64_t when)
{
	(void)when;
}

static void access_look(uint64_t when)
{
	(void)when;
}

static void access_signal(int fd)
{
	(void)fd;
	M.interrupts++;
}

static void access_forget(int fd)
{
	(void)fd;
}

static int access_dup(int fd)
{
	return fd;
}

static const char *access_who(void)
{
	return "litmus";
}

const struct fabric_access litmus_access = {
	.core = access_core,
	.wait = access_wait,
	.ring = access_ring,
	.polled = access_polled,
	.settle = access_settle,
	.look = access_look,
	.signal = access_signal,
	.forget = access_forget,
	.dup = access_dup,
	.now = access_now,
	.who = access_who,
};

/* ---- one seed ---- */
static void *memory(unsigned host, const char *name)
{
	void *at;

	/* A page, and what a ring needs. */
	fabric_mem_new(host, name, 80u << 10, &at);
	return at;
}

static void begin(const struct litmus *t, uint64_t seed)
{
	now = 1000000;
	memset(&M, 0, sizeof(M));
	M.variant = t->variant;
	M.link_up = true;
	fabric_access = &litmus_access;
	fabric_start(NULL, NULL, seed);
	M.x = memory(HOST_A, "segment");
	M.y = memory(HOST_B, "segment");
	M.z = memory(HOST_C, "segment");
	M.bell = memory(HOST_B, "bar");
	M.own_bell = memory(HOST_A, "bar");
	M.ring = memory(HOST_A, "dma");
	M.status = memory(HOST_A, "segment");
	agents = t->agent;
	for (unsigned i = 0; i < AGENTS; i++)
		core[i] = agents[i].step && agents[i].who <= HOST_C ? fabric_core_new(agents[i].who)
								    : NULL;
}

static void end(void)
{
	running = NULL;
	for (unsigned i = 0; i < AGENTS; i++) {
		fabric_core_free(core[i]);
		core[i] = NULL;
	}
	fabric_end();
}

static enum litmus_next run_step(unsigned i, unsigned n)
{
	enum litmus_next next;

	running = core[i];
	if (!running)
		fabric_act(agents[i].who == ENGINE_A ? (unsigned)HOST_A : agents[i].who);
	next = agents[i].step(n);
	if (!running)
		fabric_act(FABRIC_NOBODY);
	running = NULL;
	return next;
}

static bool run_seed(const struct litmus *t, uint64_t seed)
{
	unsigned at[AGENTS] = {0}, left = 0;
	bool over[AGENTS], seen;

	begin(t, seed);
	for (unsigned i = 0; i < AGENTS; i++) {
		over[i] = !agents[i].step;
		left += !over[i];
	}
	while (left > 0) {
		unsigned i = (unsigned)fabric_below(AGENTS);
		enum litmus_next next;

		if (over[i])
			continue;
		if (fabric_below(2))
			now += fabric_below(PAUSE_NS);
		assert(now < 1000000 + LIMIT_NS);
		next = run_step(i, at[i]);
		at[i] += next == NEXT;
		over[i] = next == DONE;
		left -= over[i];
	}
	seen = t->seen();
	end();
	return seen;
}

unsigned litmus_run(const struct litmus *t, unsigned n, unsigned seeds)
{
	unsigned wrong = 0;

	for (; n > 0; n--, t++) {
		unsigned seen = 0;
		uint64_t first = 0;

		for (uint64_t seed = 1; seed <= seeds; seed++) {
			if (!run_seed(t, seed))
				continue;
			if (seen++ == 0)
				first = seed;
		}
		printf("%-9s seen in %4u of %u seeds: %s", t->allowed ? "allowed" : "forbidden",
		       seen, seeds, t->name);
		if (t->allowed == (seen == 0)) {
			wrong++;
			printf(" -- WRONG");
			if (seen)
				printf(", first in seed %llu", (unsigned long long)first);
		}
		printf("\n");
	}
	return wrong;
}
