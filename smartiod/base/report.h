/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report of a RELOAD: lines of text, which the client that asked for the RELOAD fetches one by
 * one.
 */
#ifndef SMARTIOD_REPORT_H
#define SMARTIOD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/client.h"

struct smartiod;

#define SMARTIOD_REPORT_LINES 4096 /* of more than these only their number is reported */

struct smartiod_report_line {
	uint32_t kind; /* SIO_RELOAD_* */
	char text[SIO_RELOAD_TEXT];
};

/* All zero: nothing. */
struct smartiod_report {
	uint64_t client; /* who asked */
	struct smartiod_report_line *line;
	unsigned n, room;
	unsigned count[SIO_RELOAD_KINDS]; /* those without a line among them */
};

/* One more; without memory it is counted alone. */
void smartiod_report(struct smartiod *d, uint32_t kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void smartiod_report_clear(struct smartiod *d);

#endif
