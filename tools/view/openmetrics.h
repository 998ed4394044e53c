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
 * Write all of @s, families one after the other, to "# EOF". What is not known has no sample: a
 * scraper sees a gap, and no counter that falls to 0. @version: of this program.
 */
void tool_openmetrics_write(FILE *out, const struct tool_sample *s, const char *version);

#endif
