/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sample as OpenMetrics text, version 1.0.0, which Prometheus and others scrape
 * (docs/views.md lists the metrics).
 */
#ifndef TOOLS_OPENMETRICS_H
#define TOOLS_OPENMETRICS_H

#include <stdio.h>

#include "view/sample.h"

/*
 * Writes all of @s, families one after the other, to "# EOF". An unknown value has no sample: a
 * scraper sees a gap, not a counter that falls to 0. @version: of this program.
 */
void tool_openmetrics_write(FILE *out, const struct tool_sample *s, const char *version);

#endif
