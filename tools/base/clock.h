/* SPDX-License-Identifier: BSD-2-Clause */
/* The time by which commands wait: it goes on evenly, whatever is done to the date. */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t tool_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

#endif
