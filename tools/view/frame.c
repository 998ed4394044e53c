/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "view/frame.h"
#include "view/rate.h"

const char *const tool_frame_sort_name[TOOL_SORTS] = {"name", "read", "write", "faults"};

enum { READ_BYTES, WRITTEN_BYTES, READS, WRITES, INTERRUPTS, FAULTS, COMMANDS, RATES };
static const char *const counter_of[COMMANDS] = {"rd_bytes", "wr_bytes", "rd_req",
						 "wr_tlp",   "msg",	 "faults"};
static const char *const json_of[RATES] = {"read_bytes_per_second", "written_bytes_per_second",
					   "reads_per_second",	    "writes_per_second",
					   "interrupts_per_second", "faults_per_second",
					   "commands_per_second"};

/* A host, a link or a device, with its activity. */
struct row {
	const struct tool_counted *t;
	struct tool_rate rate[RATES];
	bool counted;
	uint64_t faults;	  /* if they are counted for it */
	unsigned links, links_up; /* of a host */
};

struct rows {
	unsigned n;
	struct row *row;
};

/* ---- the activity of each ---- */

static void rate_row(struct row *r, const struct tool_sample *before)
{
	const struct tool_counted *old = tool_rate_same(before, r->t);

	for (unsigned i = 0; i < COMMANDS; i++)
		r->rate[i] = tool_rate_of(old, r->t, counter_of[i]);
	r->rate[COMMANDS] = tool_rate_commands(old, r->t);
	r->counted = tool_counted_value(r->t, counter_of[FAULTS], &r->faults);
}

/* A host's activity is that of its links; its faults are counted for the whole host. */
static void add_links(struct row *host, const struct rows *links)
{
	bool first = true;

	for (unsigned i = 0; i < links->n; i++) {
		const struct row *l = &links->row[i];

		if (l->t->node != host->t->node)
			continue;
		for (unsigned k = 0; k < FAULTS; k++)
			host->rate[k] =
				first ? l->rate[k] : tool_rate_sum(host->rate[k], l->rate[k]);
		first = false;
		host->links++;
		host->links_up += l->t->presence == TOOL_PRESENT;
	}
}

/* @kinds: a bit for each TOOL_COUNTERS_*. */
static struct rows collect(const struct tool_sample *before, const struct tool_sample *now,
			   unsigned kinds)
{
	struct rows rows = {0};

	rows.row = tool_alloc(now->n, sizeof(*rows.row));
	for (unsigned i = 0; i < now->n; i++) {
		if (!(kinds & 1u << now->thing[i].kind))
			continue;
		rows.row[rows.n].t = &now->thing[i];
		rate_row(&rows.row[rows.n++], before);
	}
	return rows;
}

/* ---- their order ---- */

static double weight(const struct row *r, enum tool_frame_sort sort)
{
	switch (sort) {
	case TOOL_SORT_READ:
		return r->rate[READ_BYTES].per_second;
	case TOOL_SORT_WRITE:
		return r->rate[WRITTEN_BYTES].per_second;
	case TOOL_SORT_FAULTS:
		return r->rate[FAULTS].per_second;
	default:
		return 0;
	}
}

/* Does @a come before @b? Rows of equal weight keep their order. */
static bool heavier(const struct row *a, const struct row *b, enum tool_frame_sort sort)
{
	double x = weight(a, sort), y = weight(b, sort);

	if (x > y || x < y)
		return x > y;
	return sort == TOOL_SORT_FAULTS && a->faults > b->faults;
}

static void sort_rows(struct rows *rows, enum tool_frame_sort sort)
{
	for (unsigned i = 1; i < rows->n; i++) {
		struct row r = rows->row[i];
		unsigned at = i;

		for (; at > 0 && heavier(&r, &rows->row[at - 1], sort); at--)
			rows->row[at] = rows->row[at - 1];
		rows->row[at] = r;
	}
}

struct look {
	struct rows host, link, chassis, trunk, device;
};

static struct look look(const struct tool_sample *before, const struct tool_sample *now,
			enum tool_frame_sort sort)
{
	struct look l = {
		collect(before, now, 1u << TOOL_COUNTERS_HOST | 1u << TOOL_COUNTERS_MACHINE),
		collect(before, now, 1u << TOOL_COUNTERS_ADAPTER),
		collect(before, now, 1u << TOOL_COUNTERS_CHASSIS),
		collect(before, now, 1u << TOOL_COUNTERS_TRUNK),
		collect(before, now, 1u << TOOL_COUNTERS_DEVICE)};

	for (unsigned i = 0; i < l.host.n; i++)
		add_links(&l.host.row[i], &l.link);
	sort_rows(&l.host, sort);
	sort_rows(&l.link, sort);
	sort_rows(&l.chassis, sort);
	sort_rows(&l.trunk, sort);
	sort_rows(&l.device, sort);
	return l;
}

static void forget(struct look *l)
{
	free(l->host.row);
	free(l->link.row);
	free(l->chassis.row);
	free(l->trunk.row);
	free(l->device.row);
}

/* ---- as text ---- */

static void put_line(struct tool_frame *f, enum tool_frame_style style, char *text)
{
	f->line = tool_grow(f->line, f->n + 1, sizeof(*f->line));
	f->line[f->n++] = (struct tool_frame_line){style, text};
}

static void put_rate(struct tool_table *t, const struct tool_rate *r, bool bytes)
{
	char size[TOOL_SIZE_TEXT];

	if (!r->known)
		tool_table_cell(t, "-");
	else if (bytes)
		tool_table_cell(t, "%s", tool_size((uint64_t)(r->per_second + 0.5), size));
	else
		tool_table_cell(t, r->per_second > 0 && r->per_second < 10 ? "%.1f" : "%.0f",
				r->per_second);
}

static void put_rates(struct tool_table *t, const struct row *r)
{
	for (unsigned i = 0; i < FAULTS; i++)
		put_rate(t, &r->rate[i], i <= WRITTEN_BYTES);
}

/* For chassis and links between switches, which count no interrupts of their own. */
static void passing_cells(struct tool_table *t, const struct row *r)
{
	tool_table_cell(t, "%s", r->t->name);
	tool_table_cell(t, "%s", r->t->state);
	for (unsigned i = 0; i < INTERRUPTS; i++)
		put_rate(t, &r->rate[i], i <= WRITTEN_BYTES);
}

static void put_faults(struct tool_table *t, const struct row *r)
{
	if (!r->counted)
		tool_table_cell(t, "-");
	else if (r->rate[FAULTS].grew)
		tool_table_cell(t, "%" PRIu64 " (+%" PRIu64 ")", r->faults, r->rate[FAULTS].grew);
	else
		tool_table_cell(t, "%" PRIu64, r->faults);
}

static enum tool_frame_style style_of(const struct row *r)
{
	bool busy = r->rate[READS].grew || r->rate[WRITES].grew || r->rate[COMMANDS].grew;

	/* Whoever wants a machine starts it: one that is off is no trouble. */
	if ((r->t->presence != TOOL_PRESENT && !r->t->machine) || r->rate[FAULTS].grew ||
	    (r->t->kind == TOOL_COUNTERS_ADAPTER && r->t->attached &&
	     r->t->presence == TOOL_ABSENT))
		return TOOL_LINE_WRONG;
	return busy ? TOOL_LINE_BUSY : TOOL_LINE_PLAIN;
}

#define PASSING_COLUMNS "|>READ B/s|>WRITTEN B/s|>READS/s|>WRITES/s"
#define RATE_COLUMNS PASSING_COLUMNS "|>INTERRUPTS/s"

static void host_cells(struct tool_table *t, const struct row *r)
{
	tool_table_cell(t, "%s", r->t->name);
	tool_table_cell(t, "%" PRIu32, r->t->node);
	tool_table_cell(t, "%s", r->t->machine ? "machine" : "host");
	tool_table_cell(t, "%s", r->t->state);
	tool_table_cell(t, "%u/%u up", r->links_up, r->links);
	put_rates(t, r);
	put_faults(t, r);
}

static void link_cells(struct tool_table *t, const struct row *r)
{
	uint64_t used, all;

	tool_table_cell(t, "%s", r->t->name);
	tool_table_cell(t, "%s%s", r->t->state, r->t->uncounted ? ", not counted" : "");
	if (tool_counted_value(r->t, "lut_used", &used) &&
	    tool_counted_value(r->t, "lut_total", &all))
		tool_table_cell(t, "%" PRIu64 " of %" PRIu64, used, all);
	else
		tool_table_cell(t, "-");
	put_rates(t, r);
	put_faults(t, r);
}

static void device_cells(struct tool_table *t, const struct row *r)
{
	char who[256] = "";
	size_t used = 0;

	for (unsigned i = 0; i < r->t->n_by && used < sizeof(who); i++)
		used += (size_t)snprintf(who + used, sizeof(who) - used,
					 r->t->by[i].n > 1 ? "%s%s x%u" : "%s%s", i ? ", " : "",
					 r->t->by[i].host, r->t->by[i].n);
	tool_table_cell(t, "%s", r->t->name);
	tool_table_cell(t, "%s", r->t->host);
	tool_table_cell(t, "%s", r->t->state);
	tool_table_cell(t, "%s", who);
	put_rate(t, &r->rate[COMMANDS], false);
	put_rates(t, r);
	put_faults(t, r);
}

/* The lines of a finished table; the first is its head. */
static void put_section(struct tool_frame *f, struct tool_table *t, const struct rows *rows)
{
	char *text = NULL, *rest, *line;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	unsigned i = 0;

	if (!out) {
		tool_error("no memory for a table: " SIO_MORE_MEMORY);
		exit(TOOL_EXIT_FAILURE);
	}
	tool_table_write(t, out);
	fclose(out);
	tool_table_free(t);
	put_line(f, TOOL_LINE_PLAIN, tool_strdup(""));
	rest = text;
	while ((line = strsep(&rest, "\n")) && (*line || rest)) {
		enum tool_frame_style style = i == 0	     ? TOOL_LINE_HEAD
					      : i <= rows->n ? style_of(&rows->row[i - 1])
							     : TOOL_LINE_PLAIN;

		put_line(f, style, tool_strdup(line));
		i++;
	}
	free(text);
}

static void put_rows(struct tool_frame *f, const char *columns, const struct rows *rows,
		     void (*cells)(struct tool_table *t, const struct row *r))
{
	struct tool_table *t = tool_table_new(columns);

	for (unsigned i = 0; i < rows->n; i++)
		cells(t, &rows->row[i]);
	put_section(f, t, rows);
}

struct sum {
	unsigned n, there;
};

/*
 * Of machines, or of all else. Links of a machine that is off are not missed, and its own devices
 * are its own matter.
 */
static void add_up(struct sum *sum, const struct rows *rows, bool machines)
{
	for (unsigned i = 0; i < rows->n; i++) {
		const struct tool_counted *t = rows->row[i].t;

		if (t->machine != machines)
			continue;
		sum->n++;
		sum->there += t->presence == TOOL_PRESENT;
	}
}

static void add_links_of_machines(struct sum *sum, const struct rows *links)
{
	for (unsigned i = 0; i < links->n; i++) {
		const struct tool_counted *t = links->row[i].t;

		sum->n += t->machine && t->attached;
		sum->there += t->machine && t->presence == TOOL_PRESENT;
	}
}

static void put_title(struct tool_frame *f, const struct tool_sample *now, const struct look *l)
{
	struct sum hosts = {0}, machines = {0}, links = {0}, devices = {0};
	uint64_t faults = 0, new_faults = 0;
	char text[256], also[64] = "";

	add_up(&hosts, &l->host, false);
	add_up(&machines, &l->host, true);
	add_up(&links, &l->link, false);
	add_up(&links, &l->trunk, false);
	add_links_of_machines(&links, &l->link);
	add_up(&devices, &l->device, false);
	for (unsigned i = 0; i < l->host.n; i++) {
		faults += l->host.row[i].faults;
		new_faults += l->host.row[i].rate[FAULTS].grew;
	}
	if (machines.n)
		snprintf(also, sizeof(also), " machines %u/%u up,", machines.there, machines.n);
	snprintf(text, sizeof(text),
		 "%s: hosts %u/%u up,%s links %u/%u up, devices %u/%u in, faults %" PRIu64
		 " (+%" PRIu64 ")",
		 now->cluster, hosts.there, hosts.n, also, links.there, links.n, devices.there,
		 devices.n, faults, new_faults);
	put_line(f, TOOL_LINE_TITLE, tool_strdup(text));
}

struct tool_frame *tool_frame_new(const struct tool_sample *before, const struct tool_sample *now,
				  enum tool_frame_sort sort)
{
	struct tool_frame *f = tool_alloc(1, sizeof(*f));
	struct look l = look(before, now, sort);

	put_title(f, now, &l);
	put_rows(f, "HOST|>NODE|KIND|STATE|LINKS" RATE_COLUMNS "|>FAULTS", &l.host, host_cells);
	put_rows(f, "LINK|STATE|>ENTRIES" RATE_COLUMNS "|>FAULTS", &l.link, link_cells);
	if (l.chassis.n)
		put_rows(f, "CHASSIS|STATE" PASSING_COLUMNS, &l.chassis, passing_cells);
	if (l.trunk.n)
		put_rows(f, "BETWEEN|STATE" PASSING_COLUMNS, &l.trunk, passing_cells);
	if (l.device.n)
		put_rows(f, "DEVICE|LENDER|STATE|BORROWED BY|>COMMANDS/s" RATE_COLUMNS "|>FAULTS",
			 &l.device, device_cells);
	forget(&l);
	return f;
}

void tool_frame_free(struct tool_frame *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < f->n; i++)
		free(f->line[i].text);
	free(f->line);
	free(f);
}

/* ---- as JSON ---- */

static void add_gauge(struct json_object *o, const struct tool_counted *t, const char *name)
{
	uint64_t value;

	if (tool_counted_value(t, name, &value))
		tool_json_number(o, name, value);
}

static struct json_object *row_json(const struct row *r)
{
	struct json_object *o = tool_json_object(), *array, *by;
	unsigned n = r->t->kind == TOOL_COUNTERS_DEVICE ? RATES : COMMANDS;

	tool_json_string(o, "name", r->t->name);
	tool_json_number(o, "node", r->t->node);
	tool_json_number(o, "id", r->t->id);
	if (r->t->kind == TOOL_COUNTERS_HOST || r->t->kind == TOOL_COUNTERS_MACHINE)
		tool_json_string(o, "kind", r->t->machine ? "machine" : "host");
	tool_json_string(o, "state", r->t->state);
	if (r->t->kind == TOOL_COUNTERS_ADAPTER && r->t->machine)
		tool_json_bool(o, "traffic_counted", !r->t->uncounted);
	for (unsigned i = 0; i < n; i++)
		if (r->rate[i].known)
			tool_json_add(o, json_of[i], json_object_new_double(r->rate[i].per_second));
	if (r->counted)
		tool_json_hex(o, "faults", r->faults);
	if (r->t->kind != TOOL_COUNTERS_DEVICE)
		return o;
	tool_json_number(o, "quarantined", r->t->quarantined);
	add_gauge(o, r->t, "queue_pairs");
	add_gauge(o, r->t, "queue_pairs_max");
	array = tool_json_array();
	for (unsigned i = 0; i < r->t->n_by; i++) {
		by = tool_json_object();
		tool_json_string(by, "host", r->t->by[i].host);
		tool_json_number(by, "programs", r->t->by[i].n);
		tool_json_append(array, by);
	}
	tool_json_add(o, "borrowed_by", array);
	return o;
}

static void add_rows(struct json_object *o, const char *name, const struct rows *rows)
{
	struct json_object *array = tool_json_array();

	for (unsigned i = 0; i < rows->n; i++)
		tool_json_append(array, row_json(&rows->row[i]));
	tool_json_add(o, name, array);
}

struct json_object *tool_frame_json(const struct tool_sample *before, const struct tool_sample *now,
				    enum tool_frame_sort sort)
{
	struct json_object *o = tool_json_object();
	struct look l = look(before, now, sort);

	tool_json_string(o, "cluster", now->cluster);
	add_rows(o, "hosts", &l.host);
	add_rows(o, "links", &l.link);
	add_rows(o, "chassis", &l.chassis);
	add_rows(o, "trunks", &l.trunk);
	add_rows(o, "devices", &l.device);
	forget(&l);
	return o;
}
