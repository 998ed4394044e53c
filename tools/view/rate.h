/* SPDX-License-Identifier: BSD-2-Clause */
/* Differences between two samples of a cluster, and their rates. Pure logic. */
#ifndef TOOLS_RATE_H
#define TOOLS_RATE_H

#include "view/sample.h"

struct tool_rate {
	bool known;
	double per_second;
	uint64_t grew; /* by, in the time between */
};

/*
 * The growth of a counter. One that passes 2^64 - 1 goes on from 0: that is assumed if it was in
 * the upper half before and is in the lower half now; any other that fell has begun again.
 * Return: false: it has begun again, and its growth is unknown.
 */
bool tool_rate_grew(uint64_t before, uint64_t now, uint64_t *ret);

/* The thing of @s that is the same as @t; NULL: there is none. */
const struct tool_counted *tool_rate_same(const struct tool_sample *s,
					  const struct tool_counted *t);

/*
 * Can @now be compared with @before (which may be NULL)? Not if one of them has no counters, if no
 * time has passed, if its host was started in between, or if any of its counters has begun again:
 * then the others have, too, though they may be larger than before already.
 */
bool tool_rate_comparable(const struct tool_counted *before, const struct tool_counted *now);

/*
 * The rate of one counter. Unknown if they are not comparable, or one of them does not have the
 * counter.
 */
struct tool_rate tool_rate_of(const struct tool_counted *before, const struct tool_counted *now,
			      const char *counter);
/* The sum of both; unknown if one is. */
struct tool_rate tool_rate_sum(struct tool_rate a, struct tool_rate b);
/*
 * The rate of commands of @now, all kinds together: NVMe commands, descriptors of a memory device,
 * transfers and kernels of an accelerator. Unknown if it counts none of them.
 */
struct tool_rate tool_rate_commands(const struct tool_counted *before,
				    const struct tool_counted *now);

#endif
