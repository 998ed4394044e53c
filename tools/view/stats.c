/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio stats: the counters of daemons, hosts, links, DMA engines and devices. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/hint.h"
#include "base/output.h"
#include "view/openmetrics.h"
#include "view/sample.h"

static const char *const kind_name[TOOL_COUNTERS_KINDS] = {
	"daemon", "host", "adapter", "device", "engine", "chassis", "trunk", "machine"};
static const char *const kind_plural[TOOL_COUNTERS_KINDS] = {
	"daemons", "hosts", "adapters", "devices", "engines", "chassis", "trunks", "machines"};

static int print_table(const struct tool_sample *s)
{
	struct tool_table *table = tool_table_new("KIND|NAME|COUNTER|>VALUE");

	for (unsigned i = 0; i < s->n; i++) {
		const struct tool_counted *t = &s->thing[i];

		tool_table_cell(table, "%s", kind_name[t->kind]);
		tool_table_cell(table, "%s", t->name);
		tool_table_cell(table, "(state)");
		tool_table_cell(table, "%s", t->state);
		if (t->uncounted) {
			tool_table_cell(table, "%s", kind_name[t->kind]);
			tool_table_cell(table, "%s", t->name);
			tool_table_cell(table, "(traffic)");
			tool_table_cell(table, "not counted: windows are mapped");
		}
		for (unsigned k = 0; k < t->n_counters; k++) {
			tool_table_cell(table, "%s", kind_name[t->kind]);
			tool_table_cell(table, "%s", t->name);
			tool_table_cell(table, "%s", t->counter[k].name);
			tool_table_cell(table, "%" PRIu64, t->counter[k].value);
		}
	}
	return tool_table_end(table);
}

static struct json_object *thing_json(const struct tool_counted *t)
{
	struct json_object *o = tool_json_object(), *counters = tool_json_object();

	for (unsigned i = 0; i < t->n_counters; i++)
		tool_json_hex(counters, t->counter[i].name, t->counter[i].value);
	tool_json_string(o, "name", t->name);
	tool_json_number(o, "node", t->node);
	tool_json_number(o, "id", t->id);
	tool_json_string(o, "state", t->state);
	if (t->machine && t->kind == TOOL_COUNTERS_ADAPTER)
		tool_json_bool(o, "traffic_counted", !t->uncounted);
	tool_json_add(o, "counters", counters);
	return o;
}

static int print_json(const struct tool_sample *s)
{
	struct json_object *o = tool_json_object(), *kind[TOOL_COUNTERS_KINDS];

	tool_json_string(o, "cluster", s->cluster);
	for (unsigned i = 0; i < TOOL_COUNTERS_KINDS; i++) {
		kind[i] = tool_json_array();
		tool_json_add(o, kind_plural[i], kind[i]);
	}
	for (unsigned i = 0; i < s->n; i++)
		tool_json_append(kind[s->thing[i].kind], thing_json(&s->thing[i]));
	return tool_json_print("stats", o);
}

/* Can the host that --node names be asked? */
static int check_only(const struct tool_view *v, const struct tool_view_host *h,
		      struct sio_err *reterr)
{
	char hint[TOOL_HINT_TEXT];

	if (h->host->state == TOOL_HOST_SILENT)
		return sio_fail(reterr, h->host->why.code, "host '%s' cannot be asked",
				h->topo->name); /* the reason was printed */
	if (h->host->answers)
		return 0;
	return sio_fail(reterr, -ENETDOWN,
			"host '%s' is down; start it with: %s cluster restart-node %s",
			h->topo->name, tool_hint(v->hosts->dir, hint), h->topo->name);
}

static const char *node;
static bool openmetrics;
static const struct tool_option options[] = {
	{"node", 'n', .value = &node, .takes = "NODE", .kind = TOOL_RUNNABLE,
	 .text = "of this host or machine only"},
	{"openmetrics", .flag = &openmetrics,
	 .text = "print them as a Prometheus server reads them"},
	{.name = NULL}};

static int take(struct tool_view *v, struct tool_sample **ret, struct sio_err *reterr)
{
	const struct sio_topo_host *only = NULL;
	int r = node ? tool_find_node(v->topology, node, &only, reterr) : 0;

	for (unsigned i = 0; r == 0 && i < v->n; i++)
		if (v->host[i].topo == only)
			r = check_only(v, &v->host[i], reterr);
	return r < 0 ? r
		     : tool_sample_take(v, only, TOOL_SAMPLE_LINKS | TOOL_SAMPLE_ENGINES, ret,
					reterr);
}

static int stats(const struct tool_command *self, int argc, char **argv)
{
	struct tool_sample *s = NULL;
	struct tool_view *v;
	struct sio_err err;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (openmetrics && tool_where.json)
		return tool_usage(self->name, "--openmetrics and --json: one of them is right");
	if (tool_view_open_only(node, &v, &err) < 0)
		return tool_fail(&err);
	if (take(v, &s, &err) < 0) {
		status = tool_fail(&err);
	} else if (openmetrics) {
		tool_openmetrics_write(stdout, s, SMARTIO_VERSION);
		status = tool_flush();
	} else {
		status = tool_where.json ? print_json(s) : print_table(s);
	}
	tool_sample_free(s);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_stats_command = {
	.name = "stats",
	.summary = "Show what daemons, hosts, machines, links and devices counted",
	.help = "Counted by the rules of PCIe: what devices and DMA engines do. Loads and stores of CPUs are\n"
		"not: nobody sees them. (state) is what is, now: of an adapter, its link, whose traffic it\n"
		"counts. An engine is the DMA engine of an adapter; a chassis counts what passes its link towards\n"
		"the host, a trunk is a link between two switches. What is down or out has no counters, as of now.\n"
		"Adapters of machines count what passes exact windows, and say where a window is mapped, whose\n"
		"traffic nobody counts; their counters stay when a machine is off. With --json each counter is a string\n"
		"\"0x...\": it has 64 bits. --openmetrics prints OpenMetrics text, for a Prometheus server.\n",
	.schemas = "stats",
	.options = options,
	.run = stats};
