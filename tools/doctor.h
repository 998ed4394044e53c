/* SPDX-License-Identifier: BSD-2-Clause */
/* What is wrong with this machine, and the command that mends it. */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>

struct tool_finding {
	const char *what; /* of the check */
	bool good;
	char found[200]; /* one line */
	char mend[200];	 /* command or advice; "" if good */
};

#define TOOL_CHECKS 16
/* Run all checks of the machine. Return: how many there are. */
unsigned tool_doctor_machine(struct tool_finding *f, unsigned max);

/* smartio doctor --audit. @expect: a file with an earlier audit, or NULL. Return: exit status. */
int tool_audit_command(const char *expect, unsigned within_s);

#endif
