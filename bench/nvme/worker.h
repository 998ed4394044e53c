/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the benchmark's worker share. A worker is one process in one role. It says
 * "ready" and its process id, then takes a command per line and answers each with one line of JSON;
 * between commands it sleeps. It ends at the end of its input.
 */
#ifndef BENCH_NVME_WORKER_H
#define BENCH_NVME_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "histogram.h"

#define BENCH_WORDS 8

static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* vDSO */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A command: a word and up to BENCH_WORDS - 1 numbers. False: end of input. */
struct bench_command {
	char name[32];
	unsigned n;
	uint64_t arg[BENCH_WORDS];
};
void bench_ready(void);
bool bench_next(struct bench_command *c);
/* Ends the process: the command is not one of this role's, or has another number of arguments. */
void bench_expect(const struct bench_command *c, const char *name, unsigned n);
void bench_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Sleep, by the kernel's timer. */
void bench_sleep(uint64_t ns);

/* What a stretch of work took: when, how long it ran, how long it could have but others did. */
struct bench_usage {
	uint64_t at, ran, waited;
};
struct bench_usage bench_usage(void);
/* "at", "took", "ran" and "waited", in nanoseconds, from @before until now. */
void bench_print_usage(struct bench_usage before);
/* {"count":..,"min":..,"max":..,"buckets":[[ns,n],..]} */
void bench_print_histogram(const struct bench_histogram *h);
void bench_end_answer(void);

int bench_role_client(int argc, char **argv);
int bench_role_bare_device(int argc, char **argv);
int bench_role_bare_client(int argc, char **argv);
int bench_role_line(int argc, char **argv);
int bench_role_wake(int argc, char **argv);

#endif
