/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio doctor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "base/command.h"
#include "doctor/doctor.h"
#include "base/output.h"
#include "base/state.h"

static int examine(struct doctor *d, bool verbose)
{
	int status;

	doctor_examine(d);
	status = tool_where.json ? doctor_print_json(d) : doctor_print_text(d, verbose);
	doctor_done(d);
	return status;
}

/* Removes what crashed clusters have left behind, those of `cluster run` included. */
static int clean(void)
{
	char **names, dir[PATH_MAX], base[PATH_MAX];
	struct json_object *o;
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
	if (status || !tool_where.json)
		return status;
	o = tool_json_object();
	tool_json_number(o, "removed", cleaned);
	return tool_json_print("doctor-clean", o);
}

struct wanted {
	const char *expect, *within, *root;
	bool audit, clean, verbose, measure, hardware;
	unsigned within_s;
};

static int check(const struct tool_command *self, struct wanted *w)
{
	bool looks = w->verbose || w->measure || w->hardware || w->root;
	unsigned long seconds;
	char *end;

	if ((w->expect || w->within) && !w->audit)
		return tool_usage(self->name, "--expect and --within belong to --audit");
	if (w->audit && w->clean)
		return tool_usage(self->name, "--audit or --clean, not both");
	if ((w->audit || w->clean) && looks)
		return tool_usage(self->name, "--audit and --clean stand alone: no --verbose, "
					      "--measure, --hardware or --root with them");
	if (w->root && *w->root != '/')
		return tool_usage(self->name, "--root %s: wanted is an absolute path", w->root);
	if (!w->within)
		return 0;
	seconds = strtoul(w->within, &end, 10);
	if (*w->within < '0' || *w->within > '9' || *end || seconds > 3600)
		return tool_usage(self->name, "--within %s: wanted seconds, 0 to 3600", w->within);
	w->within_s = (unsigned)seconds;
	return 0;
}

static struct wanted w;

static int doctor(const struct tool_command *self, int argc, char **argv)
{
	struct doctor d = {.source.root = ""};
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	status = check(self, &w);
	if (status)
		return status;
	if (w.audit)
		return tool_audit_command(w.expect, w.within_s);
	if (w.clean)
		return clean();
	d.measure = w.measure;
	d.hardware = w.hardware;
	d.source.root = w.root && strcmp(w.root, "/") != 0 ? w.root : "";
	return examine(&d, w.verbose);
}

static const struct tool_option options[] = {
	{"verbose", 'v', &w.verbose, .text = "also what is in order, and what does not apply here"},
	{"measure", 'm', &w.measure,
	 .text = "also what falsifies figures: clock, frequency, shared processors"},
	{"hardware", .flag = &w.hardware,
	 .text = "also what real devices need, if nothing here uses any yet"},
	{"root", .value = &w.root, .takes = "DIR", .kind = TOOL_FOLDERS,
	 .text = "read /proc, /sys and /etc below DIR: another machine's tree"},
	{"audit", .flag = &w.audit,
	 .text = "compare what daemons, machine room and system hold of the cluster"},
	{"expect", .value = &w.expect, .takes = "FILE", .kind = TOOL_FILES,
	 .text = "the audit must equal an earlier one's output in FILE"},
	{"within", .value = &w.within, .takes = "SECONDS",
	 .text = "wait so long for the audit to be good (and as expected)"},
	{"clean", .flag = &w.clean, .text = "remove what crashed clusters left"},
	{.name = NULL}};

const struct tool_command tool_doctor_command = {
	.name = "doctor",
	.usage = "[-v] [-m] [--hardware] [--root DIR] | --audit | --clean",
	.summary = "Say what is wrong with this machine and its clusters, and how to mend it",
	.help = "Each line that is WARN or BAD has its cause, and the command that mends it. Exit status: 0 all\n"
		"is well, 1 warnings, 2 something is bad. The audit prints counts only, so that audits of\n"
		"equal situations are equal byte by byte; what does not agree goes to standard error, and the\n"
		"exit status then is 1.\n",
	.page = "smartio-doctor",
	.schemas = "doctor audit doctor-clean",
	.options = options,
	.run = doctor};
