/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what doctor found, for people and for programs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor/doctor_facts.h"
#include "base/output.h"

#define EXIT_WARNING 1
#define EXIT_BAD 2

static const struct {
	const char *name, *text; /* for programs; for people */
} verdicts[DOCTOR_VERDICTS] = {
	[DOCTOR_NOT_HERE] = {"not-applicable", "n/a"},
	[DOCTOR_UNKNOWN] = {"unknown", "?"},
	[DOCTOR_FINE] = {"ok", "ok"},
	[DOCTOR_NOTE] = {"note", "note"},
	[DOCTOR_WARNING] = {"warning", "WARN"},
	[DOCTOR_BAD] = {"bad", "BAD"},
};

const char *doctor_verdict_name(enum doctor_verdict v)
{
	return verdicts[v].name;
}

static enum doctor_verdict worst(const struct doctor *d)
{
	enum doctor_verdict v = DOCTOR_FINE;

	for (size_t i = 0; i < d->n_findings; i++)
		if (d->finding[i].verdict > v && d->finding[i].verdict != DOCTOR_NOTE)
			v = d->finding[i].verdict;
	return v;
}

static int exit_status(enum doctor_verdict v)
{
	return v == DOCTOR_BAD ? EXIT_BAD : v == DOCTOR_WARNING ? EXIT_WARNING : 0;
}

static size_t count(const struct doctor *d, enum doctor_verdict v)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_findings; i++)
		n += d->finding[i].verdict == v;
	return n;
}

/* Counts states, not findings: a state may be found several times. */
static size_t count_states(const struct doctor *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_findings; i++)
		n += i == 0 || d->finding[i].state != d->finding[i - 1].state;
	return n;
}

static void print_finding(const struct doctor_finding *f)
{
	printf("%-4s  %-18s %s\n", verdicts[f->verdict].text, f->state->id, f->evidence);
	if (f->verdict < DOCTOR_WARNING)
		return;
	printf("      %-18s %s: %s\n", "", f->state->title, f->state->cause);
	printf("      %-18s mend: %s\n", "", f->mend);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void print_summary(const struct doctor *d)
{
	size_t bad = count(d, DOCTOR_BAD), warnings = count(d, DOCTOR_WARNING), running = 0;

	DOCTOR_EACH_CLUSTER (d, c)
		running += c->state == TOOL_STATE_RUNNING && c->room == DOCTOR_LIVES;
	if (bad || warnings)
		printf("%zu bad, %zu warning%s", bad, warnings, plural(warnings));
	else
		printf("ok");
	printf(": %zu states looked for on this machine", count_states(d));
	if (running)
		printf(" and %zu cluster%s", running, plural(running));
	printf(", %zu of them not possible here", count(d, DOCTOR_NOT_HERE));
	if (count(d, DOCTOR_UNKNOWN))
		printf(", %zu not to be known", count(d, DOCTOR_UNKNOWN));
	puts(" (--verbose lists all)");
}

int doctor_print_text(const struct doctor *d, bool verbose)
{
	for (size_t i = 0; i < d->n_findings; i++)
		if (verbose || d->finding[i].verdict >= DOCTOR_NOTE)
			print_finding(&d->finding[i]);
	print_summary(d);
	if (fflush(stdout) != 0 || ferror(stdout))
		return tool_error("cannot write to standard output: %s", strerror(errno));
	return exit_status(worst(d));
}

int doctor_print_json(const struct doctor *d)
{
	struct json_object *all = tool_json_object(), *array = tool_json_array();
	int status;

	tool_json_string(all, "verdict", doctor_verdict_name(worst(d)));
	for (size_t i = 0; i < d->n_findings; i++) {
		const struct doctor_finding *f = &d->finding[i];
		struct json_object *o = tool_json_object();

		tool_json_string(o, "state", f->state->id);
		tool_json_string(o, "area", f->area->name);
		tool_json_string(o, "verdict", doctor_verdict_name(f->verdict));
		tool_json_string(o, "title", f->state->title);
		tool_json_string(o, "cause", f->state->cause);
		tool_json_string(o, "evidence", f->evidence);
		tool_json_string(o, "mend", f->mend);
		tool_json_append(array, o);
	}
	tool_json_add(all, "findings", array);
	status = tool_json_print("doctor", all);
	return status ? status : exit_status(worst(d));
}
