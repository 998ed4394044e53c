/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "base/hint.h"
#include "base/output.h"

int tool_usage(const char *command, const char *fmt, ...)
{
	char before[128], hint[TOOL_HINT_TEXT];
	va_list ap;

	snprintf(before, sizeof(before), "smartio: %s%s", command, *command ? ": " : "");
	va_start(ap, fmt);
	tool_say(before, true, fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try '%s%s%s --help'.\n", tool_hint(NULL, hint), *command ? " " : "",
		command);
	return TOOL_EXIT_USAGE;
}
