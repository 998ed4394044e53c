/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio stats: the counters of daemons, hosts, adapters and devices. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "hosts.h"
#include "output.h"

static const char *const kind_name[TOOL_COUNTERS_KINDS] = {"daemon", "host", "adapter", "device"};
static const char *const kind_plural[TOOL_COUNTERS_KINDS] = {"daemons", "hosts", "adapters",
							     "devices"};

struct out {
	struct json_object *kind[TOOL_COUNTERS_KINDS]; /* with --json */
	struct tool_table *table;
};

static void put(struct out *out, unsigned kind, const char *name, uint32_t node, uint32_t id,
		const struct sio_rep_stats *s)
{
	struct json_object *o, *counters;
	uint32_t n = sio_from_le32(s->count);

	if (n > sizeof(s->counter) / sizeof(s->counter[0]))
		n = sizeof(s->counter) / sizeof(s->counter[0]);
	if (out->table) {
		for (uint32_t i = 0; i < n; i++) {
			tool_table_cell(out->table, "%s", kind_name[kind]);
			tool_table_cell(out->table, "%s", name);
			tool_table_cell(out->table, "%.32s", s->counter[i].name);
			tool_table_cell(out->table, "%" PRIu64, sio_from_le64(s->counter[i].value));
		}
		return;
	}
	o = tool_json_object();
	counters = tool_json_object();
	for (uint32_t i = 0; i < n; i++) {
		char counter[33];

		snprintf(counter, sizeof(counter), "%.32s", s->counter[i].name);
		tool_json_number(counters, counter, sio_from_le64(s->counter[i].value));
	}
	tool_json_string(o, "name", name);
	tool_json_number(o, "node", node);
	tool_json_number(o, "id", id);
	tool_json_add(o, "counters", counters);
	tool_json_append(out->kind[kind], o);
}

static int ask(struct out *out, struct tool_host *h, unsigned kind, uint32_t id, const char *name,
	       struct sio_err *reterr)
{
	struct sio_rep_stats rep;
	int r = tool_host_counters(h, kind, id, &rep, reterr);

	if (r == 0)
		put(out, kind, name, h->topo->node, id, &rep);
	return r;
}

static int ask_host(struct out *out, struct tool_host *h, struct sio_err *reterr)
{
	char name[SIO_NAME_LEN + 16];
	int r;

	r = ask(out, h, TOOL_COUNTERS_DAEMON, 0, h->topo->name, reterr);
	if (r == 0)
		r = ask(out, h, TOOL_COUNTERS_HOST, 0, h->topo->name, reterr);
	for (unsigned i = 0; r == 0 && i < h->topo->n_adapters; i++) {
		snprintf(name, sizeof(name), "%s.%u", h->topo->name, i);
		r = ask(out, h, TOOL_COUNTERS_ADAPTER, i, name, reterr);
	}
	for (unsigned i = 0; r == 0 && i < h->topo->n_devices; i++)
		r = ask(out, h, TOOL_COUNTERS_DEVICE, h->topo->device[i].fdid,
			h->topo->device[i].name, reterr);
	return r;
}

static int finish(struct out *out)
{
	struct json_object *o;

	if (out->table)
		return tool_table_end(out->table);
	o = tool_json_object();
	for (unsigned i = 0; i < TOOL_COUNTERS_KINDS; i++)
		tool_json_add(o, kind_plural[i], out->kind[i]);
	return tool_json_end(o);
}

static int stats(const struct tool_command *self, int argc, char **argv)
{
	const char *node = NULL;
	const struct tool_option options[] = {{"node", 'n', NULL, &node}, {NULL, 0, NULL, NULL}};
	const struct sio_topo_host *only = NULL;
	struct out out = {0};
	struct tool_hosts *h;
	struct sio_err err;
	int r = 0, status = 0;

	if (tool_options_words(self, argc, argv, options, 0, &status) < 0)
		return status;
	if (tool_hosts_open(&h, &err) < 0)
		return tool_fail(&err);
	if (node)
		r = tool_find_host(h->topology, node, &only, &err);
	for (unsigned i = 0; tool_where.json && i < TOOL_COUNTERS_KINDS; i++)
		out.kind[i] = tool_json_array();
	if (!tool_where.json)
		out.table = tool_table_new("KIND|NAME|COUNTER|>VALUE");
	for (unsigned i = 0; r == 0 && i < h->n; i++) {
		if (only && h->host[i].topo != only)
			continue;
		if (h->host[i].up)
			r = ask_host(&out, &h->host[i], &err);
		else if (only)
			r = sio_fail(&err, -ENETDOWN,
				     "host '%s' is down; start it with: smartio "
				     "cluster restart-node %s",
				     only->name, only->name);
	}
	tool_hosts_close(h);
	if (r == 0)
		return finish(&out);
	tool_table_free(out.table);
	for (unsigned i = 0; i < TOOL_COUNTERS_KINDS; i++)
		json_object_put(out.kind[i]);
	return tool_fail(&err);
}

const struct tool_command tool_stats_command = {
	"stats", "[-n NODE]", "Show what daemons, hosts, adapters and devices counted",
	"  -n, --node NODE  of this host only\n\n"
	"Counted by the rules of PCIe: what devices and DMA engines do. Loads and stores of CPUs are\n"
	"not: nobody sees them.\n",
	stats};
