/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio route: the path between two hosts or devices, and the times that are modelled for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "core/timing.h"
#include "topofile/topofile.h"
#include "view/graph_text.h"
#include "view/links.h"

#define MEMORY_MOST 1000000u /* nanoseconds */

static const char *tags_text, *memory_text;
static const struct tool_option options[] = {
	{"tags", .value = &tags_text, .takes = "N", .kind = TOOL_ANY,
	 .text = "read requests that FROM keeps open at once, 1 to 1024; default 32"},
	{"memory", .value = &memory_text, .takes = "NS", .kind = TOOL_ANY,
	 .text = "nanoseconds from a request at TO to its first data; default 0"},
	{.name = NULL}};

/* Transfers whose times are shown; --json has all powers of 2 between. */
static const uint64_t transfer[] = {4, 64, 4096, 65536, 1 << 20, 128 << 20};
#define TRANSFERS (sizeof(transfer) / sizeof(transfer[0]))

struct way {
	const struct sio_graph *graph;
	unsigned from, to;
	struct sio_route route;
	unsigned link[SIO_ROUTE_LINKS], n_links;
	unsigned chip[SIO_ROUTE_LINKS], n_chips; /* nodes between the ends, in order */
	struct sio_timing timing;
	struct sio_timing_reader reader;
};

/* ---- what is asked ---- */

/* Reads a number of the command line; @most is the greatest that is allowed. */
static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
	char *end;

	if (!text)
		return true;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *ret >= least &&
	       *ret <= most;
}

static int read_reader(const struct tool_command *self, struct sio_timing_reader *ret)
{
	uint64_t tags = 32, memory = 0;

	if (!read_number(tags_text, 1, SIO_TIMING_TAGS, &tags))
		return tool_usage(self->name, "--tags %s: 1 to %u is right", tags_text,
				  SIO_TIMING_TAGS);
	if (!read_number(memory_text, 0, MEMORY_MOST, &memory))
		return tool_usage(self->name, "--memory %s: nanoseconds, 0 to %u, are right",
				  memory_text, MEMORY_MOST);
	*ret = (struct sio_timing_reader){.tags = (uint32_t)tags, .memory = memory * 1000};
	return 0;
}

/* A device by its name, or a host by name or node id. @v: the present state, or NULL. */
static int find_node(const struct sio_graph *g, const struct tool_view *v, const char *name,
		     unsigned *ret, struct sio_err *reterr)
{
	const struct sio_topology *t = g->topology;
	const struct sio_topo_host *h;
	struct sio_err err;
	int r;

	for (unsigned i = 0; i < t->n_hosts; i++) {
		for (unsigned k = 0; k < t->host[i].n_devices; k++) {
			if (strcmp(t->host[i].device[k].name, name) != 0)
				continue;
			if (v && i < v->n && v->host[i].device[k].state == TOOL_DEVICE_OUT)
				return sio_fail(reterr, -ENODEV, "device '%s' is out of its slot",
						name);
			*ret = sio_graph_device(g, i, k);
			return 0;
		}
	}
	r = tool_find_host(t, name, &h, &err);
	if (r < 0)
		return sio_fail(reterr, r, "'%s' is no device, and %s", name, err.text);
	*ret = sio_graph_host(g, (unsigned)(h - t->host));
	return 0;
}

static int find_way(struct way *w, const struct tool_view *v, const struct sio_routes *r,
		    char **name, struct sio_err *reterr)
{
	const struct sio_graph *g = w->graph;
	unsigned at;
	int rc;

	rc = find_node(g, v, name[0], &w->from, reterr);
	if (rc == 0)
		rc = find_node(g, v, name[1], &w->to, reterr);
	if (rc < 0)
		return rc;
	if (w->from == w->to)
		return sio_fail(reterr, -EINVAL, "'%s' and '%s' are the same; two ends are right",
				name[0], name[1]);
	if (sio_routes_find(r, w->from, w->to, &w->route) < 0)
		return sio_fail(reterr, -EHOSTUNREACH,
				"no way leads from '%s' to '%s' now; a cable between their hosts, "
				"or switches that links join, are right",
				name[0], name[1]);
	w->n_links = sio_routes_links(r, w->from, w->to, &w->route, w->link);
	at = w->from;
	for (unsigned i = 0; i + 1 < w->n_links; i++) {
		const unsigned *end = g->link[w->link[i]].end;

		at = end[0] == at ? end[1] : end[0];
		w->chip[w->n_chips++] = at;
	}
	w->timing = sio_timing_of(r, w->from, w->to, &w->route);
	return 0;
}

/* ---- what is printed ---- */

static const char *const kind_name[] = {[SIO_GRAPH_SWITCH] = "switch",
					[SIO_GRAPH_HOST] = "host",
					[SIO_GRAPH_CHASSIS] = "chassis",
					[SIO_GRAPH_ADAPTER] = "adapter",
					[SIO_GRAPH_DEVICE] = "device"};

static struct json_object *node_json(const struct way *w, unsigned node)
{
	struct json_object *o = tool_json_object();
	char name[TOOL_GRAPH_NAME];

	tool_json_string(o, "name", tool_graph_name(w->graph, node, name));
	tool_json_string(o, "kind", kind_name[w->graph->node[node].kind]);
	return o;
}

static int print_json(const struct way *w)
{
	struct json_object *o = tool_json_object(), *chips = tool_json_array(), *part;
	struct json_object *links = tool_json_array(), *times = tool_json_array();

	tool_json_string(o, "cluster", w->graph->topology->name);
	tool_json_add(o, "from", node_json(w, w->from));
	tool_json_add(o, "to", node_json(w, w->to));
	tool_json_number(o, "hops", w->route.hops);
	for (unsigned i = 0; i < w->n_chips; i++) {
		part = node_json(w, w->chip[i]);
		tool_json_number(part, "latency_ps", sio_timing_chip(w->graph, w->chip[i]));
		tool_json_append(chips, part);
	}
	for (unsigned i = 0; i < w->n_links; i++) {
		const struct sio_graph_link *l = &w->graph->link[w->link[i]];

		part = tool_json_object();
		tool_json_number(part, "width", l->width);
		tool_json_number(part, "generation", l->generation);
		tool_json_append(links, part);
	}
	tool_json_add(o, "chips", chips);
	tool_json_add(o, "links", links);
	tool_json_string(o, "times", "modelled");
	tool_json_number(o, "chips_ps", w->timing.chips);
	tool_json_number(o, "tags", w->reader.tags);
	tool_json_number(o, "memory_ps", w->reader.memory);
	for (uint64_t n = transfer[0]; n <= transfer[TRANSFERS - 1]; n *= 2) {
		struct sio_pcie_count packets = {0};

		sio_pcie_write(&w->timing.rules, 0, n, &packets);
		sio_pcie_read(&w->timing.rules, 0, n, &packets);
		part = tool_json_object();
		tool_json_number(part, "bytes", n);
		tool_json_number(part, "write_ps", sio_timing_write(&w->timing, n));
		tool_json_number(part, "read_ps", sio_timing_read(&w->timing, &w->reader, n));
		tool_json_number(part, "write_packets", packets.write_tlps);
		tool_json_number(part, "read_requests", packets.read_requests);
		tool_json_number(part, "completions", packets.completions);
		tool_json_append(times, part);
	}
	tool_json_add(o, "transfers", times);
	return tool_json_print("route", o);
}

static void put_end(const struct way *w, struct tool_table *t, unsigned node)
{
	char name[TOOL_GRAPH_NAME];

	tool_table_cell(t, "%s", tool_graph_name(w->graph, node, name));
	tool_table_cell(t, "%s", kind_name[w->graph->node[node].kind]);
}

static int print_way(const struct way *w)
{
	struct tool_table *t = tool_table_new("ON THE WAY|KIND|>ADDS|LINK FROM HERE");

	for (unsigned i = 0; i <= w->n_links; i++) {
		unsigned node = i == 0 ? w->from : i == w->n_links ? w->to : w->chip[i - 1];
		const struct sio_graph_link *l =
			i < w->n_links ? &w->graph->link[w->link[i]] : NULL;

		put_end(w, t, node);
		if (i == 0 || !l)
			tool_table_cell(t, "%s", "");
		else if (w->graph->node[node].kind == SIO_GRAPH_HOST)
			tool_table_cell(t, "%s", "not known");
		else
			tool_table_cell(t, "%.0f ns",
					(double)sio_timing_chip(w->graph, node) / 1e3);
		if (l)
			tool_table_cell(t, "x%u gen %u", l->width, l->generation);
		else
			tool_table_cell(t, "%s", "");
	}
	return tool_table_end(t);
}

/* A time for people. */
static void put_time(struct tool_table *t, double ps)
{
	if (ps < 1e6)
		tool_table_cell(t, "%.0f ns", ps / 1e3);
	else if (ps < 1e9)
		tool_table_cell(t, "%.2f us", ps / 1e6);
	else
		tool_table_cell(t, "%.2f ms", ps / 1e9);
}

static int print_times(const struct way *w)
{
	struct tool_table *t = tool_table_new(">BYTES|>WRITE|>GB/s|>READ|>GB/s");
	const double chips = (double)w->timing.chips / 1e3;
	char size[TOOL_SIZE_TEXT];

	printf("\nModelled, not measured: %u hop%s, %.0f ns there, %.0f ns there and back.\n"
	       "%s writes to %s, or reads there, with %u requests open at once:\n",
	       w->route.hops, w->route.hops == 1 ? "" : "s", chips, 2 * chips,
	       sio_graph_name(w->graph, w->from), sio_graph_name(w->graph, w->to), w->reader.tags);
	for (unsigned i = 0; i < TRANSFERS; i++) {
		const double bytes = (double)transfer[i];
		double ps[] = {(double)sio_timing_write(&w->timing, transfer[i]),
			       (double)sio_timing_read(&w->timing, &w->reader, transfer[i])};

		tool_table_cell(t, "%s", tool_size(transfer[i], size));
		for (unsigned k = 0; k < 2; k++) {
			put_time(t, ps[k]);
			tool_table_cell(t, "%.3f", bytes / ps[k] * 1e3);
		}
	}
	return tool_table_end(t);
}

/* ---- the command ---- */

/* @v: the present state of @topo; NULL: @topo is from a file. */
static int show(const struct tool_command *self, const struct sio_topology *topo,
		const struct tool_view *v, char **name)
{
	struct way w = {0};
	struct sio_routes *r = NULL;
	struct sio_graph *g = NULL;
	struct sio_err err;
	bool *down = NULL;
	int status;

	status = read_reader(self, &w.reader);
	if (status)
		return status;
	if (sio_graph_new(topo, &g) < 0 || sio_routes_new(g, &r) < 0) {
		sio_graph_free(g);
		return tool_error_code(-ENOMEM,
				       "no memory for the cluster's graph: " SIO_MORE_MEMORY);
	}
	down = tool_links_down(v, g);
	if (down)
		sio_routes_set(r, down);
	w.graph = g;
	if (find_way(&w, v, r, name, &err) < 0)
		status = tool_fail(&err);
	else if (tool_where.json)
		status = print_json(&w);
	else if ((status = print_way(&w)) == 0)
		status = print_times(&w);
	free(down);
	sio_routes_free(r);
	sio_graph_free(g);
	return status;
}

static int route(const struct tool_command *self, int argc, char **argv)
{
	struct sio_topology *t;
	struct tool_view *v;
	struct sio_err err;
	int first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (first + 2 < argc) {
		if (sio_topofile_read(argv[first + 2], &t, &err) < 0)
			return tool_fail(&err);
		status = show(self, t, NULL, argv + first);
		sio_topology_free(t);
		return status;
	}
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	status = show(self, v->topology, v, argv + first);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_route_command = {
	.name = "route",
	.summary = "Show the way between two hosts or devices, and times modelled for it",
	.help = "FROM and TO are names of devices, or of hosts for their memory. The way is the "
		"one of\n"
		"fewest chips that the cluster has now, or a topology file has. Times are "
		"computed from\n"
		"its links and from what each chip adds; no traffic but this is on the way.\n",
	.schemas = "route",
	.options = options,
	.words = {{"FROM", TOOL_ENDS}, {"TO", TOOL_ENDS}, {"[TOPOLOGY]", TOOL_TOPOLOGIES}},
	.run = route};
