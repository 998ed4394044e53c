/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio segment list: memory that hosts offer, and what is kept in quarantine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "hosts.h"
#include "output.h"

struct out {
	struct json_object *array; /* with --json */
	struct tool_table *table;
};

static const char *state_of(uint32_t flags)
{
	if (flags & SIO_ROW_QUARANTINED)
		return "quarantined";
	return flags & SIO_ROW_AVAILABLE ? "available" : "private";
}

static void put(struct out *out, const struct tool_host *h, const struct sio_wire_row *row)
{
	uint32_t flags = sio_from_le32(row->flags), pid = sio_from_le32(row->pid);
	uint64_t bytes = sio_from_le64(row->bytes);
	char size[TOOL_SIZE_TEXT];
	struct json_object *o;

	if (out->table) {
		tool_table_cell(out->table, "%s", h->topo->name);
		tool_table_cell(out->table, "%#x", sio_from_le32(row->id));
		tool_table_cell(out->table, "%s", tool_size(bytes, size));
		tool_table_cell(out->table, "%s", state_of(flags));
		tool_table_cell(out->table, "%u", sio_from_le32(row->refs));
		if (pid)
			tool_table_cell(out->table, "%u", pid);
		else
			tool_table_cell(out->table, "-");
		tool_table_cell(out->table, "%.40s", *row->name ? row->name : "segment");
		return;
	}
	o = tool_json_object();
	tool_json_string(o, "host", h->topo->name);
	tool_json_number(o, "node", h->topo->node);
	tool_json_number(o, "id", sio_from_le32(row->id));
	tool_json_number(o, "bytes", bytes);
	tool_json_number(o, "address", sio_from_le64(row->address));
	tool_json_bool(o, "available", flags & SIO_ROW_AVAILABLE);
	tool_json_bool(o, "quarantined", flags & SIO_ROW_QUARANTINED);
	tool_json_number(o, "users", sio_from_le32(row->refs));
	tool_json_number(o, "pid", pid);
	tool_json_string(o, "kind", *row->name ? row->name : "segment");
	tool_json_append(out->array, o);
}

static int list_host(struct out *out, struct tool_host *h, bool only_quarantined,
		     struct sio_err *reterr)
{
	struct sio_wire_row *row;
	size_t n;
	int r;

	r = tool_client_list(&h->client, SIO_LIST_SEGMENTS, &row, &n, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!only_quarantined || sio_from_le32(row[i].flags) & SIO_ROW_QUARANTINED)
			put(out, h, &row[i]);
	free(row);
	return 0;
}

static int list(const struct tool_command *self, int argc, char **argv)
{
	bool quarantined = false;
	const struct tool_option options[] = {{"quarantined", 'q', &quarantined, NULL},
					      {NULL, 0, NULL, NULL}};
	struct out out = {0};
	struct tool_hosts *h;
	struct sio_err err;
	int r = 0, status = 0;

	if (tool_options_words(self, argc, argv, options, 0, &status) < 0)
		return status;
	if (tool_hosts_open(&h, &err) < 0)
		return tool_fail(&err);
	if (tool_where.json)
		out.array = tool_json_array();
	else
		out.table = tool_table_new("HOST|ID|>SIZE|STATE|>USERS|>PID|KIND");
	for (unsigned i = 0; r == 0 && i < h->n; i++)
		if (h->host[i].up)
			r = list_host(&out, &h->host[i], quarantined, &err);
	tool_hosts_close(h);
	if (r == 0)
		return out.array ? tool_json_end(out.array) : tool_table_end(out.table);
	json_object_put(out.array);
	tool_table_free(out.table);
	return tool_fail(&err);
}

const struct tool_command tool_segment_list_command = {
	"segment list", "", "List memory segments, and what is quarantined",
	"  -q, --quarantined  only those in quarantine: their program is gone, and a device may still\n"
	"                     use them until whoever owns its queues says that it does not, or a\n"
	"                     host that was lost until it is there again\n\n"
	"States: private (not offered to other hosts), available, quarantined.\n",
	list};
