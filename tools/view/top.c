/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio top: the activity of a cluster by its counters: as text, JSON, or on a terminal. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "view/top.h"

#define DELAY_LEAST 0.1
#define DELAY_MOST 3600.0
#define FRAMES_MOST 1000000000ul

int tool_top_take(const struct tool_top *top, struct tool_sample **ret, struct sio_err *reterr)
{
	struct tool_view *v;
	int r = tool_view_open_dir(top->dir, &v, reterr);

	if (r < 0)
		return r;
	r = tool_sample_take(v, NULL, TOOL_SAMPLE_BORROWERS | TOOL_SAMPLE_LINKS, ret, reterr);
	tool_view_close(v);
	return r;
}

/* ---- text ---- */

static void wait_ms(int64_t ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static int print_text(const struct tool_sample *before, const struct tool_sample *now,
		      enum tool_frame_sort sort, bool first)
{
	struct tool_frame *f = tool_frame_new(before, now, sort);

	if (!first)
		putchar('\n');
	for (unsigned i = 0; i < f->n; i++)
		puts(f->line[i].text);
	tool_frame_free(f);
	return tool_flush();
}

static int print_json(const struct tool_top *top, const struct tool_sample *before,
		      const struct tool_sample *now)
{
	struct json_object *o = tool_frame_json(before, now, top->sort);

	tool_json_add(o, "delay", json_object_new_double((double)top->delay_ms / 1e3));
	return tool_json_print("top", o);
}

/* A frame shows what happened between two samples, so the first frame comes after the delay. */
static int batch(const struct tool_top *top)
{
	struct tool_sample *before = NULL, *now;
	struct sio_err err;
	int status = 0;

	if (tool_top_take(top, &before, &err) < 0)
		return tool_fail(&err);
	for (unsigned i = 0; status == 0 && (top->frames == 0 || i < top->frames); i++) {
		wait_ms(top->delay_ms);
		if (tool_top_take(top, &now, &err) < 0) {
			status = tool_fail(&err);
			break;
		}
		status = tool_where.json ? print_json(top, before, now)
					 : print_text(before, now, top->sort, i == 0);
		tool_sample_free(before);
		before = now;
	}
	tool_sample_free(before);
	return status;
}

/* ---- the command ---- */

static bool once, in_batch;
static const char *delay_text, *count_text, *sort_text;
static const struct tool_option options[] = {
	{"batch", 'b', .flag = &in_batch, .text = "print text, one look after the other"},
	{"once", .flag = &once, .text = "print the text of one look: --batch --count 1"},
	{"count", 'n', .value = &count_text, .takes = "N", .kind = TOOL_ANY,
	 .text = "end after so many looks; default: never"},
	{"delay", 'd', .value = &delay_text, .takes = "SECONDS", .kind = TOOL_ANY,
	 .text = "between two looks, 0.1 to 3600; default 1"},
	{"sort", 's', .value = &sort_text, .takes = TOOL_FRAME_SORTS, .kind = TOOL_CHOICES,
	 .text = "by which of these; default name: as the topology file has them"},
	{.name = NULL}};

static bool read_delay(int64_t *ret)
{
	double seconds;
	char *end;

	if (!delay_text) {
		*ret = 1000;
		return true;
	}
	seconds = strtod(delay_text, &end);
	if (*delay_text < '0' || *delay_text > '9' || *end || !isfinite(seconds) ||
	    seconds < DELAY_LEAST || seconds > DELAY_MOST)
		return false;
	*ret = (int64_t)(seconds * 1e3 + 0.5);
	return true;
}

static bool read_count(unsigned *ret)
{
	unsigned long n;
	char *end;

	if (!count_text) {
		*ret = once || tool_where.json;
		return true;
	}
	errno = 0;
	n = strtoul(count_text, &end, 10);
	if (*count_text < '0' || *count_text > '9' || *end || errno || n == 0 || n > FRAMES_MOST)
		return false;
	*ret = (unsigned)n;
	return true;
}

static bool read_sort(enum tool_frame_sort *ret)
{
	for (unsigned i = 0; sort_text && i < TOOL_SORTS; i++) {
		if (strcmp(sort_text, tool_frame_sort_name[i]) != 0)
			continue;
		*ret = (enum tool_frame_sort)i;
		return true;
	}
	return !sort_text;
}

static int read_all(const struct tool_command *self, struct tool_top *top)
{
	if (!read_delay(&top->delay_ms))
		return tool_usage(self->name, "--delay %s: 0.1 to 3600 seconds are right",
				  delay_text);
	if (!read_count(&top->frames))
		return tool_usage(self->name, "--count %s: 1 to %lu is right", count_text,
				  FRAMES_MOST);
	if (!read_sort(&top->sort))
		return tool_usage(self->name, "--sort %s: %s is right", sort_text,
				  TOOL_FRAME_SORTS);
	if ((once || tool_where.json) && top->frames != 1)
		return tool_usage(self->name, "%s prints one look; --count 1 is right",
				  once ? "--once" : "--json");
	if (!once && !in_batch && !tool_where.json && !isatty(STDOUT_FILENO))
		return tool_usage(self->name, "standard output is no terminal; --batch or --once "
					      "is right");
	return 0;
}

/* The cluster is chosen once: another one that comes up meanwhile changes nothing. */
static int find_cluster(struct tool_top *top, struct sio_err *reterr)
{
	struct tool_hosts *h;
	int r = tool_hosts_open_only(TOOL_NO_OTHER, &h, reterr);

	if (r < 0)
		return r;
	memcpy(top->dir, h->dir, sizeof(top->dir));
	tool_hosts_close(h);
	return 0;
}

static int top_run(const struct tool_command *self, int argc, char **argv)
{
	struct tool_top top = {0};
	struct sio_err err;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	status = read_all(self, &top);
	if (status)
		return status;
	if (find_cluster(&top, &err) < 0)
		return tool_fail(&err);
	if (once || in_batch || tool_where.json)
		return batch(&top);
	if (tool_top_screen(&top, &status, &err) < 0)
		return tool_fail(&err);
	return status;
}

const struct tool_command tool_top_command = {
	.name = "top",
	.summary = "Watch hosts, links and devices: what passes, who borrows, what faults",
	.help = "Rates are differences of the counters that 'smartio stats' shows, over the time between\n"
		"two looks; \"-\": not known, since what counts was down or has begun again. A host's are its\n"
		"links'. The first look takes the delay. Keys: q ends it; s sorts by something else; p pauses\n"
		"it (nothing is asked meanwhile); arrows, page up and down scroll; h explains them.\n",
	.schemas = "top",
	.options = options,
	.run = top_run};
