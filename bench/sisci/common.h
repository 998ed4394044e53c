/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs that measure the API share. */
#ifndef BENCH_SISCI_COMMON_H
#define BENCH_SISCI_COMMON_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sisci_api.h"
#include "smartio/ext.h"

static inline void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, smartio_last_error());
	exit(1);
}

static inline void check(sci_error_t error, const char *what)
{
	if (error != SCI_ERR_OK)
		fail(what);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 16;
}

/* In which order @n parties take their turns: drawn again each round. */
static inline void draw_order(uint64_t *random, unsigned n, unsigned ret[])
{
	for (unsigned i = 0; i < n; i++) {
		unsigned at = (unsigned)(next_random(random) % (i + 1));

		ret[i] = ret[at];
		ret[at] = i;
	}
}

/*
 * What is compared is called in the same way, through a pointer: no compiler takes memcpy() in
 * line, and no linker's table of jumps is in between.
 */
static inline void call_memcpy(void *to, const void *from, size_t size)
{
	static void *(*volatile function)(void *, const void *, size_t) = memcpy;

	function(to, from, size);
}

static inline void call_sisci(sci_map_t map, size_t offset, void *from, size_t size,
			      sci_error_t *error)
{
	static void (*volatile function)(sci_sequence_t, void *, sci_map_t, size_t, size_t,
					 unsigned, sci_error_t *) = SCIMemCpy;

	function(NULL, from, map, offset, size, 0, error);
}

static inline void pin(const char *text)
{
	int cpu = atoi(text);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fail("this processor cannot be used");
}

static inline sci_desc_t begin(void)
{
	sci_error_t error;
	sci_desc_t sd;

	SCIInitialize(0, &error);
	check(error, "SCIInitialize");
	SCIOpen(&sd, 0, &error);
	check(error, "SCIOpen");
	return sd;
}

/* Exports a segment until the input ends. Does not return. */
static inline void serve(sci_desc_t sd, unsigned id, size_t bytes)
{
	sci_local_segment_t seg;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, bytes, NULL, NULL, 0, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(seg, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	SCISetSegmentAvailable(seg, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	exit(0); /* with everything open: the system reclaims it */
}

#endif
