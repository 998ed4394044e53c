/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio quota: how much of their quotas nodes and programs use. */
#include <stdio.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/output.h"
#include "core/policy.h"
#include "view/view.h"

struct out {
	struct json_object *quotas; /* with --json */
	struct tool_table *table;
};

static bool all;
static const char *node;

/* "64M", or a count. */
static const char *amount(uint32_t quota, uint64_t value, char text[TOOL_SIZE_TEXT])
{
	if (sio_quota_is_bytes(quota))
		return tool_size(value, text);
	snprintf(text, TOOL_SIZE_TEXT, "%llu", (unsigned long long)value);
	return text;
}

static const char *name_of(const struct tool_view *v, uint32_t id)
{
	const struct sio_topo_host *h = sio_topology_host(v->topology, id);

	return h ? h->name : "?";
}

static void put_row(const struct tool_view *v, struct tool_table *t, const struct tool_view_host *h,
		    const struct sio_wire_row *row)
{
	uint32_t quota = sio_from_le32(row->id), pid = sio_from_le32(row->pid);
	char text[TOOL_SIZE_TEXT];

	tool_table_cell(t, "%s", h->topo->name);
	if (pid)
		tool_table_cell(t, "program %u", pid);
	else
		tool_table_cell(t, "node %s", name_of(v, sio_from_le32(row->node)));
	tool_table_cell(t, "%.40s", row->name);
	tool_table_cell(t, "%s", amount(quota, sio_from_le64(row->owner), text));
	if (sio_from_le32(row->flags) & SIO_ROW_AVAILABLE)
		tool_table_cell(t, "%s", amount(quota, sio_from_le64(row->bytes), text));
	else
		tool_table_cell(t, "-");
}

static struct json_object *to_json(const struct tool_view *v, const struct tool_view_host *h,
				   const struct sio_wire_row *row)
{
	struct json_object *o = tool_json_object();
	uint32_t pid = sio_from_le32(row->pid), id = sio_from_le32(row->node);

	tool_json_string(o, "host", h->topo->name);
	if (pid) {
		tool_json_number(o, "pid", pid);
	} else {
		tool_json_number(o, "node", id);
		tool_json_string(o, "name", name_of(v, id));
	}
	tool_json_string(o, "quota", row->name);
	tool_json_number(o, "used", sio_from_le64(row->owner));
	if (sio_from_le32(row->flags) & SIO_ROW_AVAILABLE)
		tool_json_number(o, "most", sio_from_le64(row->bytes));
	else
		tool_json_null(o, "most");
	return o;
}

/* Without --all: only what is limited, or used. */
static bool is_wanted(const struct sio_wire_row *row)
{
	return all || sio_from_le64(row->owner) || sio_from_le32(row->flags) & SIO_ROW_AVAILABLE;
}

static int list_host(struct out *out, struct tool_view *v, struct tool_view_host *h,
		     struct sio_err *reterr)
{
	struct sio_wire_row *row = NULL;
	struct sio_err err;
	size_t n = 0;

	if (h->host->answers &&
	    tool_client_list(&h->host->client, SIO_LIST_ACCOUNTS, &row, &n, &err) < 0 &&
	    !tool_host_lost(v->hosts, h->host, &err)) {
		*reterr = err;
		return err.code;
	}
	for (size_t i = 0; i < n; i++) {
		if (sio_from_le32(row[i].id) >= SIO_QUOTAS || !is_wanted(&row[i]))
			continue;
		if (out->table)
			put_row(v, out->table, h, &row[i]);
		else
			tool_json_append(out->quotas, to_json(v, h, &row[i]));
	}
	free(row);
	return 0;
}

static int list_all(struct out *out, struct tool_view *v, struct sio_err *reterr)
{
	const struct sio_topo_host *only = NULL;
	int r = node ? tool_find_host(v->topology, node, &only, reterr) : 0;

	for (unsigned i = 0; r == 0 && i < v->n; i++)
		if (!only || v->host[i].topo == only)
			r = list_host(out, v, &v->host[i], reterr);
	return r;
}

static int finish(const struct tool_view *v, struct out *out)
{
	struct json_object *o;

	if (out->table)
		return tool_table_end(out->table);
	o = tool_json_object();
	tool_json_string(o, "cluster", v->topology->name);
	tool_json_add(o, "quotas", out->quotas);
	return tool_json_print("quota", o);
}

static const struct tool_option options[] = {
	TOOL_OPTION_NODE(&node),
	{"all", 'a', &all, .text = "also what has no limit and is not used"},
	{.name = NULL}};

static int quota(const struct tool_command *self, int argc, char **argv)
{
	struct out out = {0};
	struct tool_view *v;
	struct sio_err err;
	int first, r, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (tool_view_open_only(node, &v, &err) < 0)
		return tool_fail(&err);
	if (tool_where.json)
		out.quotas = tool_json_array();
	else
		out.table = tool_table_new("HOST|WHO|QUOTA|>USED|>MOST");
	r = list_all(&out, v, &err);
	if (r == 0) {
		status = finish(v, &out);
	} else {
		json_object_put(out.quotas);
		tool_table_free(out.table);
		status = tool_fail(&err);
	}
	tool_view_close(v);
	return status;
}

const struct tool_command tool_quota_command = {
	.name = "quota",
	.summary = "Show what nodes and programs have, of what they may have",
	.help = "Of each host: what each other node has of it, and what each of its programs has; MOST is the\n"
		"limit that the cluster's file sets (quotas), if it does.\n",
	.schemas = "quota",
	.options = options,
	.words = {{NULL}},
	.run = quota};
