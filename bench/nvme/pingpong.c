/* SPDX-License-Identifier: BSD-2-Clause */
/* Round trips between two processes: a cache line, and a wake-up by eventfd. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "worker.h"

#define LINE_BATCHES 15u
#define LINE_TRIPS 400u

static void pin(const char *text)
{
	int cpu = atoi(text);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu < 0 || sched_setaffinity(0, sizeof(set), &set) < 0)
		bench_fail("processor %s is not one that this process may use", text);
}

/* A child pinned to @cpu that dies with its parent. True: in the child. */
static bool fork_pinned(const char *cpu)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		bench_fail("no process");
	if (pid > 0)
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	pin(cpu);
	return true;
}

static void signal_event(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		bench_fail("an event descriptor cannot be written to");
}

static void wait_event(int fd)
{
	uint64_t value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		bench_fail("an event descriptor cannot be read");
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct lines {
	uint32_t there __attribute__((aligned(128)));
	uint32_t back __attribute__((aligned(128)));
};

/* Wait for the other side; yields, should both sides share a processor after all. */
static void await(const uint32_t *word, uint32_t value)
{
	for (unsigned looks = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value;)
		if (++looks > 2000)
			sched_yield();
}

/* The median of LINE_BATCHES means. */
static uint64_t line_trip(struct lines *l, uint32_t *trip)
{
	uint64_t mean[LINE_BATCHES];

	for (unsigned b = 0; b < LINE_BATCHES; b++) {
		uint64_t start = bench_now();

		for (unsigned i = 0; i < LINE_TRIPS; i++) {
			__atomic_store_n(&l->there, ++*trip, __ATOMIC_RELEASE);
			await(&l->back, *trip);
		}
		mean[b] = (bench_now() - start) * 1000 / LINE_TRIPS; /* in picoseconds */
	}
	qsort(mean, LINE_BATCHES, sizeof(mean[0]), compare);
	return mean[LINE_BATCHES / 2];
}

int bench_role_line(int argc, char **argv)
{
	struct lines *l =
		mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int go = eventfd(0, EFD_CLOEXEC);
	struct bench_command command;
	uint32_t trip = 0;

	if (argc != 2)
		bench_fail("CPU CPU is right");
	if (l == MAP_FAILED || go < 0)
		bench_fail("no memory or descriptor");
	if (fork_pinned(argv[1]))
		for (;;) {
			wait_event(go);
			for (unsigned i = 0; i < LINE_BATCHES * LINE_TRIPS; i++) {
				await(&l->there, ++trip);
				__atomic_store_n(&l->back, trip, __ATOMIC_RELEASE);
			}
		}
	pin(argv[0]);
	bench_ready();
	while (bench_next(&command)) {
		bench_expect(&command, "trip", 0);
		signal_event(go);
		printf("{\"role\":\"line\",\"ps\":%" PRIu64, line_trip(l, &trip));
		bench_end_answer();
	}
	return 0;
}

int bench_role_wake(int argc, char **argv)
{
	int there = eventfd(0, EFD_CLOEXEC), back = eventfd(0, EFD_CLOEXEC);
	struct bench_histogram *h = malloc(sizeof(*h));
	struct bench_command command;

	if (argc != 2)
		bench_fail("CPU CPU is right");
	if (there < 0 || back < 0 || !h)
		bench_fail("no memory or descriptor");
	if (fork_pinned(argv[1]))
		for (;;) {
			wait_event(there);
			signal_event(back);
		}
	pin(argv[0]);
	bench_ready();
	while (bench_next(&command)) {
		/* how many, nanoseconds of sleep before each */
		bench_expect(&command, "trips", 2);
		bench_histogram_init(h);
		for (uint64_t i = 0; i < command.arg[0]; i++) {
			uint64_t start;

			if (command.arg[1])
				bench_sleep(command.arg[1]);
			start = bench_now();
			signal_event(there);
			wait_event(back);
			bench_histogram_add(h, bench_now() - start);
		}
		printf("{\"role\":\"wake\",");
		bench_print_histogram(h);
		bench_end_answer();
	}
	free(h);
	return 0;
}
