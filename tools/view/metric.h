/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics: public name, unit and type of each counter of daemons, hosts, adapters and devices.
 */
#ifndef TOOLS_METRIC_H
#define TOOLS_METRIC_H

#include "base/hosts.h"

enum tool_metric_type {
	TOOL_METRIC_COUNTER, /* it rises for as long as what counts lives */
	TOOL_METRIC_GAUGE,   /* it is what is, now */
};

struct tool_metric {
	unsigned kinds;		    /* a bit for each TOOL_COUNTERS_* that has it */
	const char *counter, *name; /* name: without the prefix of its kind, and without _total */
	const char *unit;	    /* name ends with it; NULL: it is a number */
	enum tool_metric_type type;
	const char *help;
};

/* NULL: nothing but its name is known of this counter. */
const struct tool_metric *tool_metric_find(enum tool_counters kind, const char *counter);
/* The metric behind @m among those of @kind, from NULL to NULL. */
const struct tool_metric *tool_metric_next(const struct tool_metric *m, enum tool_counters kind);

#endif
