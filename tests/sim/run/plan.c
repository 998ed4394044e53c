/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of a seed's faults: a random subset of them, each with a random number of events at
 * random times, in a list with numbers. What is in the list does not depend on what the programs
 * do, so that leaving events out (--faults, --events) leaves the others as they are.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"

#define MAX_FAULTS 64

bool sim_has_liar;

static struct sim_fault_event *plan;
static unsigned n_plan, max_plan;
static bool chosen[MAX_FAULTS];
static uint64_t begun[MAX_FAULTS]; /* events of each fault */
static unsigned running;	   /* events that have begun and not ended */

bool sim_list_has(const char *list, const char *name)
{
	size_t len = strlen(name);
	bool has = !list;

	while (list && *list) {
		size_t word = strcspn(list, ",");
		bool not = *list == '-';

		if (word == 3 && strncmp(list, "all", 3) == 0)
			has = true;
		else if (word == len + not &&strncmp(list + not, name, len) == 0)
			has = !not ;
		list += word;
		list += *list == ',';
	}
	return has;
}

/* "3,7-9" */
static bool in_numbers(const char *list, unsigned number)
{
	while (list && *list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (number >= first && number <= last)
			return true;
		list = *end ? end + 1 : NULL;
	}
	return false;
}

/* A random stream for each name: what one fault draws does not change what another one draws. */
static uint64_t stream(const char *name)
{
	uint64_t h = sim_options.seed ^ 0xcbf29ce484222325ull;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3ull;
	return h;
}

void sim_plan_choose(void)
{
	uint64_t all = stream("faults");
	/* One seed of eight has no faults at all. */
	bool none = sim_draw(&all) % 8 == 0;
	/* Few at once show what many would hide. */
	uint64_t part = 1 + sim_draw(&all) % 3;

	for (unsigned i = 0; sim_faults[i]; i++) {
		const struct sim_fault *f = sim_faults[i];
		uint64_t rng = stream(f->name);
		bool drawn = sim_draw(&rng) % 4 < part;

		if (f->seldom)
			drawn &= sim_draw(&rng) % f->seldom == 0;

		assert(i < MAX_FAULTS);
		/* Faults that the command line names are present whatever the seed says. */
		if (sim_options.faults && !strstr(sim_options.faults, "all"))
			drawn = true;
		else if (none)
			drawn = false;
		chosen[i] = drawn && sim_list_has(sim_options.faults, f->name);
		if (chosen[i] && f->prepare)
			f->prepare(&rng);
	}
}

bool sim_has_fault(const char *name)
{
	for (unsigned i = 0; sim_faults[i]; i++)
		if (strcmp(sim_faults[i]->name, name) == 0)
			return chosen[i];
	return false;
}

bool sim_only_restarts(void)
{
	bool some = false;

	for (unsigned i = 0; sim_faults[i]; i++) {
		if (!chosen[i])
			continue;
		some = strcmp(sim_faults[i]->name, "restart") == 0 ||
		       strcmp(sim_faults[i]->name, "unheard") == 0;
		if (!some)
			return false;
	}
	return some;
}

static int by_time(const void *a, const void *b)
{
	const struct sim_fault_event *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->rng < y->rng ? -1 : x->rng > y->rng;
}

static void add_events(const struct sim_fault *f, uint64_t span)
{
	uint64_t rng = stream(f->name) + 1;
	uint64_t most = f->most * (span / SIM_MS + 1) / 10000 + 1;
	uint64_t n = f->begin ? 1 + sim_draw(&rng) % most : 0;

	for (; n > 0; n--) {
		struct sim_fault_event *e;

		if (n_plan == max_plan) {
			max_plan = max_plan ? max_plan * 2 : 64;
			plan = realloc(plan, max_plan * sizeof(*plan));
			assert(plan);
		}
		e = &plan[n_plan++];
		memset(e, 0, sizeof(*e));
		e->fault = f;
		e->at = sim_draw(&rng) % span;
		e->length = f->longest ? 1 + sim_draw(&rng) % f->longest : 0;
		e->rng = sim_draw(&rng);
	}
}

void sim_plan_make(void)
{
	uint64_t span = (uint64_t)(sim_options.seconds * 0.8 * SIM_SECOND) + 1;

	n_plan = 0;
	for (unsigned i = 0; sim_faults[i]; i++)
		if (chosen[i])
			add_events(sim_faults[i], span);
	if (n_plan > 0)
		qsort(plan, n_plan, sizeof(*plan), by_time);
	for (unsigned i = 0; i < n_plan; i++)
		plan[i].number = i;
}

void sim_plan_print(void)
{
	const char *before = SIM_COUNTED;

	for (unsigned i = 0; sim_faults[i]; i++) {
		const struct sim_fault *f = sim_faults[i];

		if (!chosen[i])
			continue;
		printf("%s%s %" PRIu64, before, f->name, *f->did);
		if (f->begin)
			printf("/%" PRIu64, begun[i]);
		before = ", ";
	}
	if (*before == ',')
		printf("\n");
}

unsigned sim_plan_events(void)
{
	return n_plan;
}

static void event_end(void *arg)
{
	struct sim_fault_event *e = arg;

	sim_trace("fault %s number %u ends", e->fault->name, e->number);
	running--;
	e->fault->end(e);
}

static void count(const struct sim_fault *f)
{
	for (unsigned i = 0; sim_faults[i]; i++)
		begun[i] += sim_faults[i] == f;
}

static void event_begin(void *arg)
{
	struct sim_fault_event *e = arg;

	sim_trace("fault %s number %u", e->fault->name, e->number);
	count(e->fault);
	e->fault->begin(e);
	if (!e->fault->end)
		return;
	running++;
	sim_after(e->length, event_end, e);
}

void sim_plan_begin(void)
{
	for (unsigned i = 0; i < n_plan; i++)
		if (!sim_options.events || in_numbers(sim_options.events, i))
			sim_after(plan[i].at, event_begin, &plan[i]);
}

static bool all_ended(void *arg)
{
	(void)arg;
	return running == 0;
}

/* Ends all faults. Those under way end first, which takes no longer than the longest of them. */
void sim_plan_heal(void)
{
	if (!sim_run(all_ended, NULL, 3600 * SIM_SECOND))
		assert(!"a fault does not end");
	for (unsigned i = 0; sim_faults[i]; i++)
		if (sim_faults[i]->heal)
			sim_faults[i]->heal();
}

/* ---- what faults are and hold ---- */
unsigned sim_liar(void)
{
	return sim_has_liar && !sim_outliving && sim_hosts() > 2 ? sim_hosts() - 1 : SIM_NO_LIAR;
}

bool sim_fault_owns(unsigned host, uint64_t owner)
{
	for (unsigned i = 0; sim_faults[i]; i++)
		if (sim_faults[i]->owns && sim_faults[i]->owns(host, owner))
			return true;
	return false;
}

bool sim_fault_acts(void)
{
	for (unsigned i = 0; sim_faults[i]; i++)
		if (sim_faults[i]->acts && sim_faults[i]->acts())
			return true;
	return false;
}
