/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio segment list: memory that hosts offer, and what is kept in quarantine. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/output.h"
#include "view/view.h"

/* Which segments are wanted. */
struct wanted {
	bool quarantined;		  /* only those in quarantine */
	const struct sio_topo_host *host; /* NULL: those of all hosts */
	bool has_id;
	uint32_t id;
};

struct out {
	struct json_object *hosts, *segments; /* with --json */
	struct tool_table *table;
};

static const char *state_of(uint32_t flags)
{
	if (flags & SIO_ROW_QUARANTINED)
		return "quarantined";
	return flags & SIO_ROW_AVAILABLE ? "available" : "private";
}

static const char *memory_of(const struct sio_wire_row *row)
{
	static const char *const name[] = {
		[SIO_MEMORY_NONE] = "none",   [SIO_MEMORY_HOST] = "host",
		[SIO_MEMORY_PAGES] = "pages", [SIO_MEMORY_PINNED] = "pinned",
		[SIO_MEMORY_GPU] = "gpu",     [SIO_MEMORY_DMABUF] = "dmabuf",
		[SIO_MEMORY_FILE] = "file",   [SIO_MEMORY_UNKNOWN] = "unknown",
	};
	uint32_t memory = sio_from_le32(row->memory);

	return name[memory <= SIO_MEMORY_UNKNOWN ? memory : SIO_MEMORY_UNKNOWN];
}

static void put_row(struct tool_table *t, const struct tool_view_host *h,
		    const struct sio_wire_row *row)
{
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT];
	uint32_t pid = sio_from_le32(row->pid);

	tool_table_cell(t, "%s", h->topo->name);
	tool_table_cell(t, "%s", tool_view_links(h, links));
	tool_table_cell(t, "%#x", sio_from_le32(row->id));
	tool_table_cell(t, "%s", tool_size(sio_from_le64(row->bytes), size));
	tool_table_cell(t, "%s", state_of(sio_from_le32(row->flags)));
	tool_table_cell(t, "%u", sio_from_le32(row->refs));
	if (pid)
		tool_table_cell(t, "%u", pid);
	else
		tool_table_cell(t, "-");
	tool_table_cell(t, "%s", memory_of(row));
	tool_table_cell(t, "%.40s", *row->name ? row->name : "segment");
}

static struct json_object *to_json(const struct tool_view_host *h, const struct sio_wire_row *row)
{
	struct json_object *o = tool_json_object();
	uint32_t flags = sio_from_le32(row->flags);

	tool_json_string(o, "host", h->topo->name);
	tool_json_number(o, "node", h->topo->node);
	tool_json_number(o, "id", sio_from_le32(row->id));
	tool_json_number(o, "bytes", sio_from_le64(row->bytes));
	tool_json_hex(o, "address", sio_from_le64(row->address));
	tool_json_string(o, "state", state_of(flags));
	tool_json_bool(o, "available", flags & SIO_ROW_AVAILABLE);
	tool_json_bool(o, "quarantined", flags & SIO_ROW_QUARANTINED);
	tool_json_number(o, "users", sio_from_le32(row->refs));
	tool_json_number(o, "pid", sio_from_le32(row->pid));
	tool_json_string(o, "memory", memory_of(row));
	tool_json_string(o, "kind", *row->name ? row->name : "segment");
	return o;
}

/* A host that cannot be asked gets a line that says so: it may well have segments. */
static void put_host(struct out *out, const struct tool_view_host *h)
{
	struct json_object *o;

	if (out->hosts) {
		o = tool_json_object();
		tool_view_host_json(o, h);
		tool_json_number(o, "links_up", h->links_up);
		tool_json_number(o, "links", h->topo->n_adapters);
		tool_json_append(out->hosts, o);
	} else if (!h->host->answers) {
		tool_table_cell(out->table, "%s", h->topo->name);
		for (unsigned i = 0; i < 3; i++)
			tool_table_cell(out->table, "-");
		tool_table_cell(out->table, "host: %s", tool_host_state_name(h->host->state));
		for (unsigned i = 0; i < 4; i++)
			tool_table_cell(out->table, "-");
	}
}

static bool is_wanted(const struct wanted *w, const struct sio_wire_row *row)
{
	return (!w->quarantined || sio_from_le32(row->flags) & SIO_ROW_QUARANTINED) &&
	       (!w->has_id || sio_from_le32(row->id) == w->id);
}

static int list_host(struct out *out, struct tool_view *v, struct tool_view_host *h,
		     const struct wanted *wanted, struct sio_err *reterr)
{
	struct sio_wire_row *row = NULL;
	struct sio_err err;
	size_t n = 0;

	if (h->host->answers &&
	    tool_client_list(&h->host->client, SIO_LIST_SEGMENTS, &row, &n, &err) < 0 &&
	    !tool_host_lost(v->hosts, h->host, &err)) {
		*reterr = err;
		return err.code;
	}
	put_host(out, h);
	for (size_t i = 0; i < n; i++) {
		if (!is_wanted(wanted, &row[i]))
			continue;
		if (out->table)
			put_row(out->table, h, &row[i]);
		else
			tool_json_append(out->segments, to_json(h, &row[i]));
	}
	free(row);
	return 0;
}

static int finish(const struct tool_view *v, struct out *out)
{
	struct json_object *o;

	if (out->table)
		return tool_table_end(out->table);
	o = tool_json_object();
	tool_json_string(o, "cluster", v->topology->name);
	tool_json_add(o, "hosts", out->hosts);
	tool_json_add(o, "segments", out->segments);
	return tool_json_print("segment-list", o);
}

/* The word after the options, if there is one: a segment's id. */
static int take_id(const char *word, struct wanted *ret, struct sio_err *reterr)
{
	char *end;
	unsigned long id = strtoul(word, &end, 0);

	if (*word < '0' || *word > '9' || *end || id > UINT32_MAX)
		return sio_fail(reterr, -EINVAL, "'%s': a segment's id such as 7 or 0x7 is right",
				word);
	ret->has_id = true;
	ret->id = (uint32_t)id;
	return 0;
}

static int list_all(struct out *out, struct tool_view *v, const struct wanted *wanted,
		    struct sio_err *reterr)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < v->n; i++)
		if (!wanted->host || v->host[i].topo == wanted->host)
			r = list_host(out, v, &v->host[i], wanted, reterr);
	return r;
}

static struct wanted wanted;
static const char *node;
static const struct tool_option options[] = {
	TOOL_OPTION_NODE(&node),
	{"quarantined", 'q', &wanted.quarantined,
	 .text = "only those in quarantine: their program is gone, and a device may still\n"
		 "use them until the owner of its queues reports that they are deleted, or a\n"
		 "host that was lost is connected again"},
	{.name = NULL}};

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct out out = {0};
	struct tool_view *v;
	struct sio_err err;
	int first, r = 0, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (first < argc && take_id(argv[first], &wanted, &err) < 0)
		return tool_usage(self->name, "%s", err.text);
	if (tool_view_open_only(node, &v, &err) < 0)
		return tool_fail(&err);
	if (node)
		r = tool_find_host(v->topology, node, &wanted.host, &err);
	if (tool_where.json) {
		out.hosts = tool_json_array();
		out.segments = tool_json_array();
	} else {
		out.table = tool_table_new("HOST|LINKS|ID|>SIZE|STATE|>USERS|>PID|MEMORY|KIND");
	}
	if (r == 0)
		r = list_all(&out, v, &wanted, &err);
	if (r == 0) {
		status = finish(v, &out);
	} else {
		json_object_put(out.hosts);
		json_object_put(out.segments);
		tool_table_free(out.table);
		status = tool_fail(&err);
	}
	tool_view_close(v);
	return status;
}

const struct tool_command tool_segment_list_command = {
	.name = "segment list",
	.summary = "List memory segments, and what is quarantined",
	.help = "States: private (not offered to other hosts), available, quarantined. LINKS are those of the\n"
		"host: with none up, no other host reaches the segment. A host that is down or does not answer\n"
		"has a line of its own.\n"
		"\n"
		"MEMORY: host (made for the segment), pages (the program's own), pinned (its own, which it has\n"
		"registered with CUDA), gpu, dmabuf (of another driver), file (of a program), none (none yet);\n"
		"unknown: smartiod was started again and its program is gone. What a program has put there it\n"
		"says itself. dmabuf and gpu are there with smartio.ko alone.\n",
	.schemas = "segment-list",
	.options = options,
	.words = {{"[ID]", TOOL_SEGMENTS}},
	.run = list};
