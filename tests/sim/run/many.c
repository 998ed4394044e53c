/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many seeds, each in a process of its own, several at once; and the search for fewer faults with
 * which a seed still fails. This is the one file of the simulator that lives in real time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/run.h"

#define MAX_ARGS 32
#define LINE 16384 /* characters of arguments, which may list hundreds of events */
/* seconds of processor time: no seed takes that long, not even with sanitizers */
#define STUCK_S 100

struct job {
	pid_t pid;
	char *what; /* its arguments, as one line */
	int out;    /* its output */
	bool fixed; /* from the file of fixed seeds */
};

static struct {
	struct job *job;
	unsigned n, max, failed, passed;
	bool stop;
} M;

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SIM_SECOND + (uint64_t)ts.tv_nsec;
}

/* Runs this program again with the words of @line. */
static void child(const char *line)
{
	static char words[LINE], self[] = "smartio-sim", quiet[] = "--quiet";
	const struct rlimit stuck = {STUCK_S, STUCK_S + 10};
	char *argv[MAX_ARGS] = {self, quiet}, *save = NULL;
	unsigned n = 2;

	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok_r(words, " \t\n", &save); w && n < MAX_ARGS - 1;
	     w = strtok_r(NULL, " \t\n", &save))
		argv[n++] = w;
	setrlimit(RLIMIT_CPU, &stuck);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static int start(struct job *j, const char *line)
{
	j->out = memfd_create("output", MFD_CLOEXEC);
	if (j->out < 0)
		return -errno;
	j->what = strdup(line);
	fflush(NULL);
	j->pid = fork();
	if (j->pid < 0) {
		close(j->out);
		free(j->what);
		return -errno;
	}
	if (j->pid == 0) {
		dup2(j->out, 1);
		dup2(j->out, 2);
		child(line);
	}
	return 0;
}

static void show(int fd)
{
	char text[4096];
	ssize_t n;

	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stderr);
}

/* Takes a job that has ended out of the list. Return: the seed passed. */
static bool finish(struct job *j, int status)
{
	bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	if (good) {
		M.passed++;
		sim_tally_add(j->fixed, j->out);
	} else {
		M.failed++;
		fprintf(stderr, "smartio-sim %s\n", j->what ? j->what : "");
		show(j->out);
		if (WIFSIGNALED(status))
			fprintf(stderr, "ended by signal %d%s\n", WTERMSIG(status),
				WTERMSIG(status) == SIGXCPU ? ": stuck" : "");
	}
	close(j->out);
	free(j->what);
	*j = M.job[--M.n];
	return good;
}

static void wait_one(void)
{
	int status;
	pid_t pid = wait(&status);

	for (unsigned i = 0; i < M.n; i++) {
		if (M.job[i].pid == pid) {
			finish(&M.job[i], status);
			return;
		}
	}
}

static void run_line(const char *line, bool fixed)
{
	int rc;

	while (M.n == M.max)
		wait_one();
	M.job[M.n].fixed = fixed;
	rc = start(&M.job[M.n], line);
	if (rc < 0) {
		fprintf(stderr, "smartio-sim: %s: cannot run: %s\n", line, strerror(-rc));
		M.failed++;
		return;
	}
	M.n++;
}

/* Enough failures: one is all that was wanted. */
static bool enough(void)
{
	return M.stop && M.failed;
}

/* Runs one seed in @part. Return: how many ran. */
static long run_range(const char *line, unsigned part)
{
	unsigned long long first, last;
	char one[32];
	long n = 0;

	if (sscanf(line, "%llu-%llu", &first, &last) != 2)
		return 0;
	for (; first <= last && !enough(); first += part, n++) {
		snprintf(one, sizeof(one), "%llu", first);
		run_line(one, true);
	}
	return n;
}

/*
 * A line: "SEED [OPTIONS] # what it was" or "FIRST-LAST". Return: how many; -1: no such file. Of a
 * range one seed in many->part is run, of single ones one in many->every; each time others, so that
 * all of them are run in the end.
 */
static long run_fixed(const struct sim_many *many)
{
	const char *path = many->fixed;
	FILE *f = fopen(path, "r");
	unsigned at = (unsigned)time(NULL) % many->every;
	char line[512];
	long n = 0;

	if (!f) {
		fprintf(stderr, "smartio-sim: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (!enough() && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = '\0';
		if (line[strspn(line, " \t")] == '\0')
			continue;
		if (line[strspn(line, "0123456789")] == '-') {
			n += run_range(line, many->part);
			continue;
		}
		if (at++ % many->every != 0)
			continue;
		run_line(line, true);
		n++;
	}
	fclose(f);
	return n;
}

static void run_new(uint64_t seed)
{
	char line[512];
	size_t n;

	n = (size_t)snprintf(line, sizeof(line), "%" PRIu64 " --seconds %g", seed,
			     sim_options.seconds);
	if (sim_options.hosts)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " --hosts %u", sim_options.hosts);
	if (sim_options.workload && n < sizeof(line))
		n += (size_t)snprintf(line + n, sizeof(line) - n, " --workload %s",
				      sim_options.workload);
	if (sim_options.faults && n < sizeof(line))
		n += (size_t)snprintf(line + n, sizeof(line) - n, " --faults %s",
				      sim_options.faults);
	if (sim_options.cascade && n < sizeof(line))
		n += (size_t)snprintf(line + n, sizeof(line) - n, " --cascade");
	if (sim_unchecked && n < sizeof(line))
		n += (size_t)snprintf(line + n, sizeof(line) - n, " --unchecked");
	if (n >= sizeof(line)) {
		fprintf(stderr, "smartio-sim: options too long\n");
		M.failed++;
		return;
	}
	run_line(line, false);
}

int sim_check_many(const struct sim_many *many)
{
	uint64_t begin = clock_ns(),
		 first = sim_options.seed ? sim_options.seed : (uint64_t)time(NULL) * 100000;
	long n_fixed = 0, new_seeds = many->soak > 0 ? 0 : many->new_seeds;
	uint64_t seed = first;

	M.max = many->jobs;
	M.stop = many->stop;
	M.job = calloc(M.max, sizeof(*M.job));
	if (!M.job)
		return 2;
	if (many->fixed)
		n_fixed = run_fixed(many);
	if (n_fixed < 0)
		return 2;
	if (new_seeds < 0)
		new_seeds = n_fixed;
	while (!enough() && (new_seeds-- > 0 || (double)(clock_ns() - begin) / 1e9 < many->soak))
		run_new(seed++);
	while (M.n > 0)
		wait_one();
	free(M.job);
	printf("%u seeds passed, %u failed: %ld fixed ones", M.passed, M.failed, n_fixed);
	if (seed > first)
		printf(", new ones %" PRIu64 " to %" PRIu64, first, seed - 1);
	printf("; %.1f s\n", (double)(clock_ns() - begin) / 1e9);
	sim_tally_print();
	if (many->all && sim_tally_missing())
		return 1;
	return M.failed ? 1 : 0;
}

/* ---- shrinking ---- */
static bool fails(const char *faults, const char *events)
{
	char line[LINE];
	struct job j;
	int status;

	snprintf(line, sizeof(line), "%" PRIu64 " --seconds %g --faults %s", sim_options.seed,
		 sim_options.seconds, *faults ? faults : "none");
	if (sim_options.hosts)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " --hosts %u",
			 sim_options.hosts);
	if (sim_options.workload)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " --workload %s",
			 sim_options.workload);
	if (sim_options.cascade)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " --cascade");
	if (sim_unchecked)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " --unchecked");
	if (events)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " --events %s", events);
	if (start(&j, line) < 0)
		return false;
	waitpid(j.pid, &status, 0);
	close(j.out);
	free(j.what);
	if (status == 0)
		return false;
	printf("fails: smartio-sim %s\n", line);
	return true;
}

static void join_faults(const bool *keep, char *list, size_t size)
{
	size_t n = 0;

	list[0] = '\0';
	for (unsigned i = 0; sim_faults[i] && n < size; i++)
		if (keep[i])
			n += (size_t)snprintf(list + n, size - n, "%s%s", n ? "," : "",
					      sim_faults[i]->name);
}

/* @keep as "3,7-9"; "" for none: no number is as high. */
static void join_events(const bool *keep, unsigned n, char *list, size_t size)
{
	size_t at = 0;

	snprintf(list, size, "999999");
	for (unsigned i = 0; i < n && at + 24 < size; i++) {
		unsigned last = i;

		if (!keep[i])
			continue;
		while (last + 1 < n && keep[last + 1])
			last++;
		at += (size_t)snprintf(list + at, size - at, "%s%u", at ? "," : "", i);
		if (last > i)
			at += (size_t)snprintf(list + at, size - at, "-%u", last);
		i = last;
	}
}

/* Leave out pieces of the list, halves first, then smaller ones, as long as it still fails. */
static void shrink_events(const char *faults, bool *keep, unsigned n)
{
	bool *less = malloc(n);
	char list[LINE / 2];

	for (unsigned piece = (n + 1) / 2; less && n > 0; piece = (piece + 1) / 2) {
		for (unsigned from = 0; from < n; from += piece) {
			unsigned had = 0;

			memcpy(less, keep, n);
			for (unsigned i = from; i < n && i < from + piece; i++) {
				had += less[i];
				less[i] = false;
			}
			join_events(less, n, list, sizeof(list));
			if (had && fails(faults, list))
				memcpy(keep, less, n);
		}
		if (piece == 1)
			break;
	}
	free(less);
}

int sim_shrink(void)
{
	bool keep[64] = {false}, *events;
	char faults[512], list[LINE / 2];
	unsigned n;

	sim_plan_choose();
	for (unsigned i = 0; sim_faults[i]; i++)
		keep[i] = sim_has_fault(sim_faults[i]->name);
	join_faults(keep, faults, sizeof(faults));
	if (!fails(faults, NULL)) {
		printf("seed %" PRIu64 " passes\n", sim_options.seed);
		return 1;
	}
	for (unsigned i = 0; sim_faults[i]; i++) {
		if (!keep[i])
			continue;
		keep[i] = false;
		join_faults(keep, faults, sizeof(faults));
		keep[i] = !fails(faults, NULL);
	}
	join_faults(keep, faults, sizeof(faults));
	sim_options.faults = *faults ? faults : "none";
	sim_plan_choose();
	sim_plan_make();
	n = sim_plan_events();
	events = malloc(n + 1);
	if (!events)
		return 2;
	memset(events, true, n + 1);
	shrink_events(faults, events, n);
	join_events(events, n, list, sizeof(list));
	printf("shrunk: ");
	if (!fails(faults, list))
		printf("nothing\n");
	free(events);
	return 0;
}
