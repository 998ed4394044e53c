/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio device list, smartio device info. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/local.h"
#include "base/output.h"
#include "core/route.h"
#include "smartio/uapi.h"
#include "topofile/types.h"
#include "view/links.h"

/* ---- device list ---- */

struct row {
	const struct tool_view_host *host;
	const struct tool_view_device *device;
	bool lent;   /* by a machine's kernel: no file says how far it is */
	bool routed; /* a path leads there, with: */
	struct sio_route route;
};

struct rows {
	/* hops are counted from this host; NULL: they are not counted */
	const struct sio_topo_host *near;
	unsigned n;
	struct row *row;
};

static void to_row(struct tool_table *t, const struct row *r, bool near)
{
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT];
	const struct tool_view_device *d = r->device;
	bool in = tool_device_is_in(d);

	tool_table_cell(t, "%s", d->topo->name);
	tool_table_cell(t, "%#x", d->topo->fdid);
	tool_table_cell(t, "%s", d->topo->type);
	/* The size of a real drive is known to its manager alone. */
	tool_table_cell(t, "%s", d->topo->size ? tool_size(d->topo->size, size) : "-");
	tool_table_cell(t, "%s", r->host->topo->name);
	tool_table_cell(t, "%s", tool_view_links(r->host, links));
	tool_table_cell(t, "%s", tool_device_state_name(d->state));
	if (in) {
		tool_table_cell(t, "%u", sio_from_le32(d->info.borrowers));
		tool_table_cell(t, "%u", sio_from_le32(d->info.quarantined));
	} else {
		tool_table_cell(t, "-");
		tool_table_cell(t, "-");
	}
	if (!near)
		return;
	if (!r->routed) {
		tool_table_cell(t, "-");
		tool_table_cell(t, r->lent ? "not known" : "no way leads there");
		return;
	}
	tool_table_cell(t, "%u", r->route.hops);
	if (r->route.adapter == SIO_GRAPH_NONE)
		tool_table_cell(t, "the same host");
	else
		tool_table_cell(t, "adapter %u", r->route.adapter);
}

static struct json_object *to_json(const struct row *r, bool near)
{
	struct json_object *o = tool_view_device_json(r->host, r->device);

	if (near && !r->lent)
		tool_json_bool(o, "reachable", r->routed);
	if (r->routed)
		tool_json_number(o, "hops", r->route.hops);
	if (r->routed && r->route.adapter != SIO_GRAPH_NONE)
		tool_json_number(o, "adapter", r->route.adapter);
	return o;
}

static int print(const struct tool_view *v, const struct rows *rows)
{
	static const char columns[] =
		"DEVICE|ID|TYPE|>SIZE|LENDER|LINKS|STATE|>BORROWERS|>QUARANTINED";
	static const char near_columns[] =
		"DEVICE|ID|TYPE|>SIZE|LENDER|LINKS|STATE|>BORROWERS|>QUARANTINED|>HOPS|BY WAY OF";
	struct json_object *o, *array;
	struct tool_table *t;

	if (!tool_where.json) {
		t = tool_table_new(rows->near ? near_columns : columns);
		for (unsigned i = 0; i < rows->n; i++)
			to_row(t, &rows->row[i], rows->near != NULL);
		return tool_table_end(t);
	}
	o = tool_json_object();
	array = tool_json_array();
	for (unsigned i = 0; i < rows->n; i++)
		tool_json_append(array, to_json(&rows->row[i], rows->near != NULL));
	tool_json_string(o, "cluster", v->topology->name);
	if (rows->near)
		tool_json_string(o, "near", rows->near->name);
	tool_json_add(o, "devices", array);
	return tool_json_print("device-list", o);
}

static void collect_of(struct rows *rows, const struct tool_view_host *h, bool lent,
		       const char *class)
{
	for (unsigned k = 0; k < h->topo->n_devices; k++) {
		if (class && strcmp(h->topo->device[k].type, class) != 0)
			continue;
		rows->row = tool_grow(rows->row, rows->n + 1, sizeof(*rows->row));
		rows->row[rows->n++] =
			(struct row){.host = h, .device = &h->device[k], .lent = lent};
	}
}

static void collect(struct rows *rows, const struct tool_view *v, const char *class)
{
	for (unsigned i = 0; i < v->n; i++)
		collect_of(rows, &v->host[i], false, class);
	for (unsigned i = 0; i < v->n_machines; i++)
		collect_of(rows, &v->machine[i].lender, true, class);
}

/*
 * Fewest hops first, then by lender and place as without hops; last the devices that no path leads
 * to.
 */
static int nearer(const void *one, const void *other)
{
	const struct row *a = one, *b = other;

	if (a->routed != b->routed)
		return a->routed ? -1 : 1;
	if (a->routed && a->route.hops != b->route.hops)
		return a->route.hops < b->route.hops ? -1 : 1;
	return (a->device->topo->fdid > b->device->topo->fdid) -
	       (a->device->topo->fdid < b->device->topo->fdid);
}

/*
 * No file describes what lies between real machines; each daemon knows its own part. This machine's
 * daemon forwards the question. A row stays unrouted if no path leads there now, or nobody answers.
 */
static int ask_hops(struct rows *rows, const struct tool_view *v, struct sio_err *reterr)
{
	struct tool_view_host *asked = NULL;

	for (unsigned i = 0; i < v->n && !asked; i++)
		if (v->host[i].host->up)
			asked = (struct tool_view_host *)&v->host[i];
	if (!asked)
		return sio_fail(reterr, -ENOTCONN, "this machine's smartiod does not answer");
	for (unsigned i = 0; i < rows->n; i++) {
		struct row *row = &rows->row[i];
		struct sio_msg_hops req = {.from_node = sio_to_le32(rows->near->node),
					   .to_fdid = sio_to_le32(row->device->topo->fdid)};
		struct sio_rep_hops rep;
		struct sio_err err;

		if (tool_client_call(&asked->host->client, SIO_MSG_HOPS, &req, sizeof(req), &rep,
				     sizeof(rep), &err) < 0) {
			if (!tool_host_lost(v->hosts, asked->host, &err))
				continue;
			*reterr = err;
			return err.code;
		}
		row->routed = true;
		row->route = (struct sio_route){.hops = sio_from_le32(rep.hops),
						.adapter = SIO_GRAPH_NONE,
						.peer_adapter = SIO_GRAPH_NONE};
		if (sio_from_le32(rep.adapter) != SIO_WIRE_NO_ADAPTER) {
			row->route.adapter = sio_from_le32(rep.adapter);
			row->route.peer_adapter = sio_from_le32(rep.peer_adapter);
		}
	}
	return 0;
}

static int compute_hops(struct rows *rows, const struct tool_view *v, struct sio_err *reterr)
{
	const struct sio_topology *t = v->topology;
	struct sio_routes *routes = NULL;
	struct sio_graph *g = NULL;
	bool *down;

	if (sio_graph_new(t, &g) < 0 || sio_routes_new(g, &routes) < 0) {
		sio_graph_free(g);
		return sio_no_memory(reterr, "the cluster's graph");
	}
	down = tool_links_down(v, g);
	if (down)
		sio_routes_set(routes, down);
	for (unsigned i = 0; i < rows->n; i++) {
		struct row *row = &rows->row[i];
		const struct sio_topo_host *lender = row->host->topo;
		unsigned to;

		if (row->lent)
			continue;
		to = sio_graph_device(g, (unsigned)(lender - t->host),
				      (unsigned)(row->device->topo - lender->device));
		row->routed =
			sio_routes_find(routes, sio_graph_host(g, (unsigned)(rows->near - t->host)),
					to, &row->route) == 0;
	}
	free(down);
	sio_routes_free(routes);
	sio_graph_free(g);
	return 0;
}

static int sort_by_hops(struct rows *rows, const struct tool_view *v, const char *near,
			struct sio_err *reterr)
{
	int r = tool_find_host(v->topology, near, &rows->near, reterr);

	if (r == 0)
		r = strcmp(v->hosts->dir, TOOL_LOCAL_STATE) == 0 ? ask_hops(rows, v, reterr)
								 : compute_hops(rows, v, reterr);
	if (r == 0 && rows->n)
		qsort(rows->row, rows->n, sizeof(*rows->row), nearer);
	return r;
}

static const char *near, *class;
static const struct tool_option list_options[] = {
	{"near", .value = &near, .takes = "NODE", .kind = TOOL_NODES,
	 .text = "count the hops from this host's memory, and list the nearest first"},
	{"class", .value = &class, .takes = sio_device_type_names, .kind = TOOL_CHOICES,
	 .text = "of this class only"},
	{.name = NULL}};

static bool is_class(const char *text)
{
	size_t len = strlen(text);

	for (const char *c = sio_device_type_names; *c; c += strcspn(c, "|"), c += *c == '|')
		if (len == strcspn(c, "|") && strncmp(c, text, len) == 0)
			return true;
	return false;
}

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct rows rows = {0};
	struct tool_view *v;
	struct sio_err err;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (class && !is_class(class))
		return tool_usage(self->name, "--class %s: %s is right", class,
				  sio_device_type_names);
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	collect(&rows, v, class);
	if (near && sort_by_hops(&rows, v, near, &err) < 0)
		status = tool_fail(&err);
	else
		status = print(v, &rows);
	free(rows.row);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_device_list_command = {
	.name = "device list",
	.summary = "List the devices that hosts lend, and who uses them",
	.help = "States: free, shared or exclusive (borrowed); out (not in its slot); host down; "
		"unknown (its\n"
		"host does not answer). Where virtual machines are, what their kernels lend comes last, as\n"
		"the hosts' daemons know it. LINKS are those of the lender: with none up, its own "
		"programs alone can\n"
		"borrow. QUARANTINED counts the borrowers that ended while the device may still "
		"use their\n"
		"memory. HOPS are the chips between NODE's memory and the device, on the way of "
		"fewest that there\n"
		"is now: 'smartio route NODE DEVICE' names them.\n",
	.schemas = "device-list",
	.options = list_options,
	.run = list};

/* ---- device info ---- */

static int print_info(const struct tool_view_host *h, const struct tool_view_device *d)
{
	struct tool_table *t = tool_table_new("PROPERTY|VALUE");
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT], in[TOOL_CHASSIS_TEXT];
	uint32_t bdf;

#define ROW(name, ...) (tool_table_cell(t, name), tool_table_cell(t, __VA_ARGS__))
	ROW("name", "%s", d->topo->name);
	ROW("id", "%#x", d->topo->fdid);
	ROW("type", "%s", d->topo->type);
	if (tool_physical_function(h, d))
		ROW("virtual function of", "%s", tool_physical_function(h, d));
	if (d->topo->virtual_functions)
		ROW("virtual functions", "%u", d->topo->virtual_functions);
	ROW("size", "%s (%" PRIu64 " bytes)", tool_size(d->topo->size, size), d->topo->size);
	ROW("lender", "%s (node %u)", h->topo->name, h->topo->node);
	ROW("lender's links", "%s", tool_view_links(h, links));
	ROW("state", "%s", tool_device_state_name(d->state));
	if (d->topo->in)
		ROW("in", "%s", tool_view_chassis(h->topo, d->topo->in, in));
	if (tool_device_is_in(d)) {
		ROW("hops to memory", "%u", d->info.hops[0]);
		bdf = sio_from_le32(d->info.bdf);
		ROW("borrowers", "%u", sio_from_le32(d->info.borrowers));
		ROW("quarantined", "%u", sio_from_le32(d->info.quarantined));
		ROW("resets seen", "%u", sio_from_le32(d->info.generation));
		ROW("kind of reset", "%s", tool_device_reset_name(d));
		ROW("since its last reset", "%s", tool_device_use_name(d));
		if (tool_device_vfio_name(h, d))
			ROW("had of VFIO by", "%s", tool_device_vfio_name(h, d));
		if (h->host->client.world == SIO_WORLD_VFIO)
			ROW("isolation",
			    "none among its borrowers: by VFIO each can reach all of it");
		ROW("slot, bdf", "%u, %02x:%02x.%u", sio_from_le32(d->info.slot), bdf >> 8 & 0xff,
		    bdf >> 3 & 0x1f, bdf & 7);
		ROW("class", "%06x", sio_from_le32(d->info.class_code));
		ROW("vendor, device", "%04x, %04x", sio_from_le32(d->info.vendor),
		    sio_from_le32(d->info.device));
		for (unsigned i = 0; i < 6; i++)
			if (sio_from_le64(d->info.bar_size[i]))
				ROW("memory (BAR)", "%u: %s", i,
				    tool_size(sio_from_le64(d->info.bar_size[i]), size));
	}
#undef ROW
	return tool_table_end(t);
}

static int info(const struct tool_command *self, int argc, char **argv)
{
	const struct tool_view_device *d = NULL;
	const struct tool_view_host *h = NULL;
	struct tool_view *v;
	struct sio_err err;
	int first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	if (!tool_view_find_lent(v, argv[first], &h, &d) &&
	    tool_view_find_device(v, argv[first], &h, &d, &err) < 0)
		status = tool_fail(&err);
	else if (tool_where.json)
		status = tool_json_print("device-info", tool_view_device_json(h, d));
	else
		status = print_info(h, d);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_device_info_command = {
	.name = "device info",
	.summary = "Tell all that is known of a device",
	.help = "DEVICE is a name of the topology file, or an id such as 0x4f4093.\n",
	.schemas = "device-info",
	.words = {{"DEVICE", TOOL_DEVICES}},
	.run = info};
