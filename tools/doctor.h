/* SPDX-License-Identifier: BSD-2-Clause */
/* What is wrong with this machine, and the command that mends it. */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

struct tool_finding {
	const char *what; /* of the check */
	bool good;
	char found[200]; /* one line */
	char mend[320];	 /* command or advice; "" if good */
};

struct tool_findings {
	struct tool_finding *f;
	size_t n;
};
/* One more, good so far; valid until the next. */
struct tool_finding *tool_findings_add(struct tool_findings *all, const char *what);

/* Run all checks of the machine. */
void tool_doctor_machine(struct tool_findings *ret);
/* Those of real devices: module, group, IOMMU, limits; one line if the module is not loaded. */
void tool_doctor_local(struct tool_findings *ret);
/* How the programs of the cluster that is meant, if one runs, wake its devices. */
void tool_doctor_waking(struct tool_findings *ret);

/* Whether something in a running cluster waits for a manager that is not there. */
void tool_doctor_quarantine(struct tool_finding *f);

/* smartio doctor --audit. @expect: a file with an earlier audit, or NULL. Return: exit status. */
int tool_audit_command(const char *expect, unsigned within_s);

#endif
