/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio stats: the counters of daemons, hosts, adapters and devices. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/hint.h"
#include "base/output.h"
#include "view/view.h"

static const char *const kind_name[TOOL_COUNTERS_KINDS] = {"daemon", "host", "adapter", "device"};
static const char *const kind_plural[TOOL_COUNTERS_KINDS] = {"daemons", "hosts", "adapters",
							     "devices"};

struct out {
	struct json_object *kind[TOOL_COUNTERS_KINDS]; /* with --json */
	struct tool_table *table;
};

/* What is counted, and the state of it. */
struct thing {
	unsigned kind;
	const char *name, *state;
	uint32_t node, id;
};

/* @s: NULL if it cannot be asked. */
static void put(struct out *out, const struct thing *t, const struct sio_rep_stats *s)
{
	struct json_object *o, *counters;
	uint32_t n = s ? sio_from_le32(s->count) : 0;

	if (s && n > sizeof(s->counter) / sizeof(s->counter[0]))
		n = sizeof(s->counter) / sizeof(s->counter[0]);
	if (out->table) {
		tool_table_cell(out->table, "%s", kind_name[t->kind]);
		tool_table_cell(out->table, "%s", t->name);
		tool_table_cell(out->table, "(state)");
		tool_table_cell(out->table, "%s", t->state);
		for (uint32_t i = 0; i < n; i++) {
			tool_table_cell(out->table, "%s", kind_name[t->kind]);
			tool_table_cell(out->table, "%s", t->name);
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
		tool_json_hex(counters, counter, sio_from_le64(s->counter[i].value));
	}
	tool_json_string(o, "name", t->name);
	tool_json_number(o, "node", t->node);
	tool_json_number(o, "id", t->id);
	tool_json_string(o, "state", t->state);
	tool_json_add(o, "counters", counters);
	tool_json_append(out->kind[t->kind], o);
}

static int ask(struct out *out, struct tool_view *v, struct tool_view_host *h, struct thing t,
	       struct sio_err *reterr)
{
	struct sio_rep_stats rep;
	struct sio_err err;

	t.node = h->topo->node;
	if (!h->host->up) {
		put(out, &t, NULL);
		return 0;
	}
	if (tool_host_counters(h->host, t.kind, t.id, &rep, &err) < 0) {
		/* A device that is out of its slot since we looked. */
		if (!tool_host_lost(v->hosts, h->host, &err) && err.code != -ENODEV) {
			*reterr = err;
			return err.code;
		}
		put(out, &t, NULL);
		return 0;
	}
	put(out, &t, &rep);
	return 0;
}

static int ask_host(struct out *out, struct tool_view *v, struct tool_view_host *h,
		    struct sio_err *reterr)
{
	const char *state = tool_host_state_name(h->host->state);
	char name[SIO_NAME_LEN + 16];
	int r;

	r = ask(out, v, h, (struct thing){TOOL_COUNTERS_DAEMON, h->topo->name, state, 0, 0},
		reterr);
	if (r == 0)
		r = ask(out, v, h, (struct thing){TOOL_COUNTERS_HOST, h->topo->name, state, 0, 0},
			reterr);
	for (unsigned i = 0; r == 0 && i < h->topo->n_adapters; i++) {
		snprintf(name, sizeof(name), "%s.%u", h->topo->name, i);
		state = tool_link_state_name(h->adapter[i].link);
		r = ask(out, v, h, (struct thing){TOOL_COUNTERS_ADAPTER, name, state, 0, i},
			reterr);
	}
	for (unsigned i = 0; r == 0 && i < h->topo->n_devices; i++) {
		state = tool_device_state_name(h->device[i].state);
		r = ask(out, v, h,
			(struct thing){TOOL_COUNTERS_DEVICE, h->topo->device[i].name, state, 0,
				       h->topo->device[i].fdid},
			reterr);
	}
	return r;
}

static int finish(const struct tool_view *v, struct out *out)
{
	struct json_object *o;

	if (out->table)
		return tool_table_end(out->table);
	o = tool_json_object();
	tool_json_string(o, "cluster", v->topology->name);
	for (unsigned i = 0; i < TOOL_COUNTERS_KINDS; i++)
		tool_json_add(o, kind_plural[i], out->kind[i]);
	return tool_json_print("stats", o);
}

/* The host that --node names can be asked? */
static int check_only(const struct tool_view *v, const struct tool_view_host *h,
		      struct sio_err *reterr)
{
	char hint[TOOL_HINT_TEXT];

	if (h->host->state == TOOL_HOST_SILENT)
		return sio_fail(reterr, h->host->why.code, "host '%s' cannot be asked",
				h->topo->name); /* why was said */
	if (h->host->up)
		return 0;
	return sio_fail(reterr, -ENETDOWN,
			"host '%s' is down; start it with: %s cluster restart-node %s",
			h->topo->name, tool_hint(v->hosts->dir, hint), h->topo->name);
}

static const char *node;
static const struct tool_option options[] = {TOOL_OPTION_NODE(&node), {.name = NULL}};

static int stats(const struct tool_command *self, int argc, char **argv)
{
	const struct sio_topo_host *only = NULL;
	struct out out = {0};
	struct tool_view *v;
	struct sio_err err;
	int r = 0, status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	if (node)
		r = tool_find_host(v->topology, node, &only, &err);
	for (unsigned i = 0; tool_where.json && i < TOOL_COUNTERS_KINDS; i++)
		out.kind[i] = tool_json_array();
	if (!tool_where.json)
		out.table = tool_table_new("KIND|NAME|COUNTER|>VALUE");
	for (unsigned i = 0; r == 0 && i < v->n; i++) {
		if (only && v->host[i].topo != only)
			continue;
		if (only)
			r = check_only(v, &v->host[i], &err);
		if (r == 0)
			r = ask_host(&out, v, &v->host[i], &err);
	}
	if (r == 0) {
		status = finish(v, &out);
	} else {
		tool_table_free(out.table);
		for (unsigned i = 0; i < TOOL_COUNTERS_KINDS; i++)
			json_object_put(out.kind[i]);
		status = tool_fail(&err);
	}
	tool_view_close(v);
	return status;
}

const struct tool_command tool_stats_command = {
	.name = "stats",
	.summary = "Show what daemons, hosts, adapters and devices counted",
	.help = "Counted by the rules of PCIe: what devices and DMA engines do. Loads and stores of CPUs are\n"
		"not: nobody sees them. (state) is what is, now: of an adapter, its link. What is down or out\n"
		"has no counters, as of now. With --json each counter is a string \"0x...\": it has 64 bits.\n",
	.schemas = "stats",
	.options = options,
	.run = stats};
