/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio doctor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "command.h"
#include "doctor.h"
#include "output.h"
#include "state.h"

static int print_json(const struct tool_finding *f, size_t n)
{
	struct json_object *array = tool_json_array();

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = tool_json_object();

		tool_json_string(o, "check", f[i].what);
		tool_json_bool(o, "good", f[i].good);
		tool_json_string(o, "found", f[i].found);
		tool_json_string(o, "mend", f[i].mend);
		tool_json_append(array, o);
	}
	return tool_json_print("doctor", array);
}

struct tool_finding *tool_findings_add(struct tool_findings *all, const char *what)
{
	all->f = tool_grow(all->f, all->n + 1, sizeof(*all->f));
	all->f[all->n] = (struct tool_finding){.what = what, .good = true};
	return &all->f[all->n++];
}

static int print_text(const struct tool_finding *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		printf("%-4s %-12s %s\n", f[i].good ? "ok" : "BAD", f[i].what, f[i].found);
		if (!f[i].good)
			printf("     %-12s mend: %s\n", "", f[i].mend);
	}
	if (fflush(stdout) != 0)
		return tool_error("cannot write to standard output: %s", strerror(errno));
	return 0;
}

static int examine(void)
{
	struct tool_findings all = {0};
	size_t bad = 0;
	int status;

	tool_doctor_machine(&all);
	tool_doctor_local(&all);
	tool_doctor_quarantine(tool_findings_add(&all, "quarantine"));
	tool_doctor_waking(&all);
	for (size_t i = 0; i < all.n; i++)
		bad += !all.f[i].good;
	status = tool_where.json ? print_json(all.f, all.n) : print_text(all.f, all.n);
	free(all.f);
	return status ? status : bad ? TOOL_EXIT_FAILURE : 0;
}

/* What crashed clusters left, those of `cluster run` too. */
static int clean(void)
{
	char **names, dir[PATH_MAX], base[PATH_MAX];
	unsigned was, cleaned = 0;
	struct sio_err err;
	int status = 0;
	size_t n;

	if (tool_state_base(base, sizeof(base), &err) < 0)
		return tool_fail(&err);
	for (int hidden = 0; hidden < 2; hidden++) {
		if (tool_state_list(&names, &n, TOOL_STATE_STALE, hidden, &err) < 0)
			return tool_fail(&err);
		for (size_t i = 0; i < n; i++) {
			if (tool_path(dir, sizeof(dir), &err, "%s/%s", base, names[i]) < 0 ||
			    tool_cluster_down(dir, &was, &err) < 0)
				status = tool_fail(&err);
			else
				cleaned++;
			free(names[i]);
		}
		free(names);
	}
	tool_note("removed what %u cluster%s had left", cleaned, cleaned == 1 ? "" : "s");
	return status;
}

static int doctor(const struct tool_command *self, int argc, char **argv)
{
	const char *expect = NULL, *within = NULL;
	bool audit = false, cleaning = false;
	const struct tool_option options[] = {{"audit", 0, &audit, NULL},
					      {"clean", 0, &cleaning, NULL},
					      {"expect", 0, NULL, &expect},
					      {"within", 0, NULL, &within},
					      {NULL, 0, NULL, NULL}};
	unsigned long seconds = 0;
	int status = 0;
	char *end;

	if (tool_options_words(self, argc, argv, options, 0, &status) < 0)
		return status;
	if ((expect || within) && !audit)
		return tool_usage(self->name, "--expect and --within belong to --audit");
	if (audit && cleaning)
		return tool_usage(self->name, "--audit or --clean, not both");
	if (within) {
		seconds = strtoul(within, &end, 10);
		if (*within < '0' || *within > '9' || *end || seconds > 3600)
			return tool_usage(self->name, "--within %s: wanted seconds, 0 to 3600",
					  within);
	}
	if (audit)
		return tool_audit_command(expect, (unsigned)seconds);
	return cleaning ? clean() : examine();
}

const struct tool_command tool_doctor_command = {
	"doctor", "[--audit | --clean]",
	"Say what is wrong with this machine or cluster, and mend it",
	"  --audit            compare what daemons, machine room and system hold of the cluster\n"
	"  --expect FILE      the audit must equal an earlier one's output in FILE\n"
	"  --within SECONDS   wait so long for the audit to be good (and as expected)\n"
	"  --clean            remove what crashed clusters left\n\n"
	"Without an option: checks this machine; each line that is BAD names the command that mends\n"
	"it. Of a running cluster it tells how each program wakes a sleeping device. The audit prints\n"
	"counts only, so that audits of equal situations are equal byte by byte; what does not agree\n"
	"goes to standard error. Exit status 1 if anything is wrong.\n",
	doctor};
