/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio-sim: the command line. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/run.h"
#include "edge/trouble.h"
#include "sim_commit.h"

static const char usage[] =
	"usage: smartio-sim SEED [OPTION...]        one run; the same seed is the same run\n"
	"       smartio-sim --check FILE [OPTION...] the seeds in FILE, and as many new ones\n"
	"       smartio-sim --soak SECONDS [OPTION...] new seeds until the time is over\n"
	"       smartio-sim --list                  workloads, faults, oracles\n"
	"\n"
	"  --hosts N          2 to 60 hosts (drawn from the seed)\n"
	"  --cascade          each host at one of several switches, which links join\n"
	"  --seconds S        virtual time until programs are told to end (10)\n"
	"  --faults LIST      of those that the seed has only these; 'none'; 'all,-crash'; names alone\n"
	"                     switch them on whatever the seed says\n"
	"  --events LIST      numbers of the faults' events that happen, '3,7-9' (all)\n"
	"  --workload LIST    names, or 'none' (drawn from the seed)\n"
	"  --trace FILE       what happened, a line an event\n"
	"  --perfetto FILE    the same for ui.perfetto.dev\n"
	"  --shrink           find fewer faults and events with which SEED still fails\n"
	"  --new N            new seeds beside those of --check (as many as there are)\n"
	"  --part N           of ranges in --check's file run one seed in N (1)\n"
	"  --every N          of its other lines run one in N; from which, the clock says (1)\n"
	"  --jobs N           seeds run side by side (2)\n"
	"  --first SEED       the first new seed (from the clock)\n"
	"  --unchecked        the room trusts its tables, as in a release build\n"
	"  --all-faults       with --check: each fault must do something in the seeds of FILE\n"
	"  --stop             of many, end at the first that fails\n";

enum { SEED_MODE, CHECK, SOAK, SHRINK, LIST };

static struct {
	int mode;
	struct sim_many many;
} cmd = {.many = {.jobs = 2, .part = 1, .every = 1, .new_seeds = -1}};

static int list(void)
{
	for (unsigned i = 0; sim_workloads[i]; i++)
		printf("workload %s\n", sim_workloads[i]->name);
	for (unsigned i = 0; sim_faults[i]; i++)
		printf("fault %s\n", sim_faults[i]->name);
	for (unsigned i = 0; sim_oracles[i]; i++)
		printf("oracle %s\n", sim_oracles[i]->name);
	return 0;
}

/* Seconds of processor time, so that other work on this machine does not count. */
static double core_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int one(void)
{
	const struct sim_result *r = &sim_result;
	double begin, took;

	if ((sim_options.trace && sim_trace_file(sim_options.trace) < 0) ||
	    (sim_options.perfetto && sim_perfetto_file(sim_options.perfetto) < 0)) {
		fprintf(stderr, "smartio-sim: a trace file cannot be written\n");
		return 2;
	}
	begin = core_time();
	sim_run_seed();
	took = core_time() - begin;
	printf("seed %" PRIu64 " hash %016" PRIx64 " commit %s\n", sim_options.seed, r->hash,
	       SIM_COMMIT);
	sim_plan_print();
	if (!sim_options.quiet)
		printf("%u hosts, %" PRIu64 " programs (%" PRIu64 " killed), %" PRIu64
		       " calls, %u fault events, %" PRIu64 " comparisons of records, %" PRIu64
		       " at those of two, %" PRIu64 " events, %.3f s virtual, %.3f s of a core: "
		       "%.0f events a second, %.1f virtual seconds a second\n",
		       r->hosts, r->programs, r->killed, r->calls, r->plan, r->records, r->pairs,
		       r->events, (double)r->virtual_ns / 1e9, took, (double)r->events / took,
		       (double)r->virtual_ns / 1e9 / took);
	if (!sim_options.quiet && trouble_wanted)
		printf("drives: %" PRIu64 " completions lost, %" PRIu64 " late, %" PRIu64
		       " doubled, %" PRIu64 " in the wrong phase, %" PRIu64 " of nothing; %" PRIu64
		       " times fatal\n",
		       trouble_count[TROUBLE_LOST], trouble_count[TROUBLE_LATE],
		       trouble_count[TROUBLE_DOUBLED], trouble_count[TROUBLE_PHASE],
		       trouble_count[TROUBLE_STRAY], trouble_count[TROUBLE_FETCH]);
	if (!sim_options.quiet && r->dma > 0)
		printf("%" PRIu64 " accesses of drives were held against what programs asked for\n",
		       r->dma);
	if (!sim_options.quiet && sim_wild.commands + sim_wild.queues > 0)
		printf("wild addresses: %" PRIu64 " commands, %" PRIu64 " failed; %" PRIu64
		       " queues, %" PRIu64 " refused; %" PRIu64 " faults of devices told\n",
		       sim_wild.commands, sim_wild.refused, sim_wild.queues,
		       sim_wild.queues_refused, sim_result.device_faults);
	if (!sim_options.quiet && sim_wild.premature > 0)
		printf("%" PRIu64 " quarantines were ended too early; %" PRIu64
		       " faults of devices told\n",
		       sim_wild.premature, sim_result.device_faults);
	if (!sim_options.quiet && sim_wild.answers > 0)
		printf("the host that lies gave %" PRIu64 " answers that were not true\n",
		       sim_wild.answers);
	return 0;
}

static int bad(const char *what, const char *value)
{
	fprintf(stderr, "smartio-sim: %s: %s\n%s", what, value, usage);
	return 2;
}

/* Return: 0; else the exit status. */
static int option(int c)
{
	struct sim_options *o = &sim_options;
	char *end = NULL;

	switch (c) {
	case 'h':
		o->hosts = (unsigned)strtoul(optarg, &end, 10);
		return *end || o->hosts < 2 || o->hosts > SIM_HOSTS
			       ? bad("--hosts is 2 to 60, not", optarg)
			       : 0;
	case 's':
		o->seconds = strtod(optarg, &end);
		return *end || o->seconds <= 0 ? bad("--seconds is a time, not", optarg) : 0;
	case 'f':
		o->faults = optarg;
		return 0;
	case 'e':
		o->events = optarg;
		return 0;
	case 'w':
		o->workload = optarg;
		return 0;
	case 't':
		o->trace = optarg;
		return 0;
	case 'p':
		o->perfetto = optarg;
		return 0;
	case 'S':
		cmd.mode = SHRINK;
		return 0;
	case 'c':
		cmd.mode = CHECK;
		cmd.many.fixed = optarg;
		return 0;
	case 'k':
		cmd.mode = SOAK;
		cmd.many.soak = strtod(optarg, &end);
		return *end || cmd.many.soak <= 0 ? bad("--soak is a time, not", optarg) : 0;
	case 'n':
		cmd.many.new_seeds = strtol(optarg, &end, 10);
		return *end || cmd.many.new_seeds < 0 ? bad("--new is a number, not", optarg) : 0;
	case 'j':
		cmd.many.jobs = (unsigned)strtoul(optarg, &end, 10);
		return *end || cmd.many.jobs < 1 ? bad("--jobs is a number, not", optarg) : 0;
	case 'P':
		cmd.many.part = (unsigned)strtoul(optarg, &end, 10);
		return *end || cmd.many.part < 1 ? bad("--part is a number, not", optarg) : 0;
	case 'E':
		cmd.many.every = (unsigned)strtoul(optarg, &end, 10);
		return *end || cmd.many.every < 1 ? bad("--every is a number, not", optarg) : 0;
	case 'F':
		o->seed = strtoull(optarg, &end, 10);
		return *end ? bad("--first is a seed, not", optarg) : 0;
	case 'x':
		cmd.many.stop = true;
		return 0;
	case 'a':
		cmd.many.all = true;
		return 0;
	case 'u':
		sim_unchecked = true;
		return 0;
	case 'C':
		o->cascade = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'l':
		cmd.mode = LIST;
		return 0;
	default:
		fputs(usage, stderr);
		return 2;
	}
}

int sim_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"hosts", 1, NULL, 'h'},      {"seconds", 1, NULL, 's'},
		{"faults", 1, NULL, 'f'},     {"events", 1, NULL, 'e'},
		{"workload", 1, NULL, 'w'},   {"trace", 1, NULL, 't'},
		{"perfetto", 1, NULL, 'p'},   {"shrink", 0, NULL, 'S'},
		{"check", 1, NULL, 'c'},      {"soak", 1, NULL, 'k'},
		{"new", 1, NULL, 'n'},	      {"jobs", 1, NULL, 'j'},
		{"quiet", 0, NULL, 'q'},      {"first", 1, NULL, 'F'},
		{"part", 1, NULL, 'P'},	      {"list", 0, NULL, 'l'},
		{"unchecked", 0, NULL, 'u'},  {"stop", 0, NULL, 'x'},
		{"all-faults", 0, NULL, 'a'}, {"cascade", 0, NULL, 'C'},
		{"every", 1, NULL, 'E'},      {NULL, 0, NULL, 0}};
	char *end;
	int c, rc;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		rc = option(c);
		if (rc)
			return rc;
	}
	if (cmd.mode == LIST)
		return list();
	if (cmd.mode == CHECK || cmd.mode == SOAK)
		return sim_check_many(&cmd.many);
	if (optind != argc - 1)
		return bad("one seed is wanted",
			   optind < argc ? argv[optind + 1] : "none is there");
	sim_options.seed = strtoull(argv[optind], &end, 10);
	if (*end)
		return bad("a seed is a number, not", argv[optind]);
	return cmd.mode == SHRINK ? sim_shrink() : one();
}
