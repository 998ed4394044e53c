/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio doctor --audit: collects, checks and prints; repeats that while anything still changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doctor/audit.h"
#include "base/clock.h"
#include "base/command.h"
#include "doctor/doctor.h"
#include "base/output.h"

/* a disagreement that lasts so long is an error, and not a change in progress */
#define SETTLE_MS 1000
#define PAUSE_MS 20

static char *read_file(const char *path, struct sio_err *reterr)
{
	char *text = NULL;
	size_t len = 0, got;
	FILE *f = fopen(path, "re");

	if (!f) {
		sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	do {
		text = tool_grow(text, len + 4097, 1);
		got = fread(text + len, 1, 4096, f);
		len += got;
	} while (got);
	fclose(f);
	text[len] = '\0';
	return text;
}

static char *as_json(const struct audit_report *r)
{
	struct json_object *o = tool_json_object(), *counts = tool_json_object(), *where = NULL;
	struct json_object *problems = tool_json_array();

	for (size_t i = 0; i < r->n_lines; i++) {
		if (!json_object_object_get_ex(counts, r->line[i].where, &where)) {
			where = tool_json_object();
			tool_json_add(counts, r->line[i].where, where);
		}
		tool_json_number(where, r->line[i].what, r->line[i].count);
	}
	for (size_t i = 0; i < r->n_problems; i++)
		tool_json_append(problems, json_object_new_string(r->problem[i]));
	tool_json_add(o, "counts", counts);
	tool_json_add(o, "problems", problems);
	return tool_json_text("audit", o);
}

static char *as_text(const struct audit_report *r)
{
	size_t size = 0, len = 0;
	char *text = NULL;

	for (size_t i = 0; i < r->n_lines; i++) {
		size_t want = strlen(r->line[i].where) + strlen(r->line[i].what) + 32;

		text = tool_grow(text, size += want, 1);
		len += (size_t)snprintf(text + len, size - len, "%s: %s %" PRIu64 "\n",
					r->line[i].where, r->line[i].what, r->line[i].count);
	}
	return text ? text : tool_strdup("");
}

/* Collects and checks once. *ret_text: the summary, to be freed. */
static int look(struct audit_report *r, char **ret_text, struct sio_err *reterr)
{
	struct audit *a;
	int error;

	error = audit_collect(&a, reterr);
	if (error < 0)
		return error;
	*r = (struct audit_report){0};
	audit_check(a, r);
	audit_summary(a, r);
	audit_free(a);
	*ret_text = tool_where.json ? as_json(r) : as_text(r);
	return 0;
}

/* The lines of one text that differ from the line at the same place in the other. */
static void print_difference(const char *want, const char *got)
{
	while (*want || *got) {
		size_t w = strcspn(want, "\n"), g = strcspn(got, "\n");

		if (w != g || strncmp(want, got, w) != 0) {
			tool_error("audit: expected '%.*s', found '%.*s'", (int)w, want, (int)g,
				   got);
		}
		want += w + (want[w] == '\n');
		got += g + (got[g] == '\n');
	}
}

static bool is_good(const struct audit_report *r, const char *text, const char *want)
{
	return r->n_problems == 0 && (!want || strcmp(text, want) == 0);
}

int tool_audit_command(const char *expect, unsigned within_s)
{
	int64_t wait = within_s * 1000LL > SETTLE_MS ? within_s * 1000LL : SETTLE_MS;
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	int64_t deadline = tool_now_ms() + wait;
	struct audit_report r;
	char *want = NULL, *text;
	struct sio_err err;
	bool good;

	if (expect && !(want = read_file(expect, &err)))
		return tool_fail(&err);
	for (;;) {
		if (look(&r, &text, &err) < 0) {
			free(want);
			return tool_fail(&err);
		}
		good = is_good(&r, text, want);
		if (good || tool_now_ms() >= deadline)
			break;
		audit_report_done(&r);
		free(text);
		/* Nothing notifies us when another process has come to rest. */
		nanosleep(&pause, NULL);
	}
	fputs(text, stdout);
	tool_json_printed();
	for (size_t i = 0; i < r.n_problems; i++)
		tool_error("audit: %s", r.problem[i]);
	if (want && !good)
		print_difference(want, text);
	audit_report_done(&r);
	free(text);
	free(want);
	if (fflush(stdout) != 0)
		return tool_error("cannot write to standard output: %s", strerror(errno));
	return good ? 0 : TOOL_EXIT_FAILURE;
}
