/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartiod/base/report.h"
#include "smartiod/base/state.h"

static bool has_room(struct smartiod_report *r)
{
	unsigned room = r->room ? 2 * r->room : 16;
	struct smartiod_report_line *line;

	if (r->n < r->room)
		return true;
	if (r->n == SMARTIOD_REPORT_LINES)
		return false;
	line = realloc(r->line, room * sizeof(*line));
	if (!line)
		return false;
	r->line = line;
	r->room = room;
	return true;
}

void smartiod_report(struct smartiod *d, uint32_t kind, const char *fmt, ...)
{
	struct smartiod_report *r = &d->report;
	va_list ap;

	r->count[kind]++;
	if (!has_room(r))
		return;
	r->line[r->n].kind = kind;
	va_start(ap, fmt);
	vsnprintf(r->line[r->n].text, sizeof(r->line[r->n].text), fmt, ap);
	va_end(ap);
	r->n++;
}

void smartiod_report_clear(struct smartiod *d)
{
	free(d->report.line);
	d->report = (struct smartiod_report){.client = 0};
}
