/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <time.h>

#include "machine/tsc.h"

#define LONG_NS 200000000u
#define TRIES 1000

struct sample {
	uint64_t ns, ticks, unsure_ns;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return now(); /* what QEMU uses where there is no TSC */
#endif
}

/* Reads both clocks at once; of many attempts the one with the least time in between counts. */
static struct sample look(void)
{
	struct sample best = {.unsure_ns = UINT64_MAX};

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = now(), t = ticks(), after = now();

		if (after - before < best.unsure_ns)
			best = (struct sample){before, t, after - before};
	}
	return best;
}

uint64_t machine_tsc_khz(void)
{
	const struct timespec pause = {.tv_nsec = LONG_NS};
	struct sample first = look(), last;

	nanosleep(&pause, NULL);
	last = look();
	return (last.ticks - first.ticks) * 1000000 / (last.ns - first.ns);
}
