/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio topology: the cluster as it is now, or a file's, drawn or as JSON. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/command.h"
#include "base/output.h"
#include "topofile/topofile.h"
#include "view/graph_text.h"
#include "view/links.h"
#include "view/picture.h"

static bool as_dot, as_mermaid, as_svg;
static const struct tool_option options[] = {
	{"dot", .flag = &as_dot, .text = "for graphviz: every link with its lanes"},
	{"mermaid", .flag = &as_mermaid,
	 .text = "the same for Mermaid, as Markdown viewers draw it"},
	{"svg", .flag = &as_svg, .text = "the same as a picture, drawn by graphviz's dot"},
	{.name = NULL}};

static const char *attach_name(enum sio_attach_kind kind)
{
	static const char *const name[] = {[SIO_ATTACH_NONE] = "none",
					   [SIO_ATTACH_SWITCH] = "switch",
					   [SIO_ATTACH_LINK] = "link"};

	return name[kind];
}

/* What an adapter is joined to: a switch by name, a cable by its number. */
static void add_attachment(struct json_object *o, const struct tool_view *v,
			   const struct sio_topo_adapter *a)
{
	tool_json_string(o, "attached_to", attach_name(a->attach));
	if (a->attach == SIO_ATTACH_SWITCH)
		tool_json_string(o, "switch", v->topology->sw[a->attach_index].name);
	else if (a->attach == SIO_ATTACH_LINK)
		tool_json_number(o, "cable", a->attach_index);
}

static struct json_object *host_json(const struct tool_view *v, const struct tool_view_host *h)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();
	struct json_object *devices = tool_json_array(), *a;

	tool_view_host_json(o, h);
	tool_json_number(o, "ram", h->topo->ram_size);
	tool_json_hex(o, "ram_base", h->topo->ram_base);
	tool_json_bool(o, "iommu", h->topo->iommu);
	for (unsigned i = 0; i < h->topo->n_adapters; i++) {
		a = tool_view_adapter_json(&h->adapter[i], i);
		add_attachment(a, v, h->adapter[i].topo);
		tool_json_append(adapters, a);
	}
	for (unsigned i = 0; i < h->topo->n_devices; i++)
		tool_json_append(devices, tool_view_device_json(h, &h->device[i]));
	tool_json_add(o, "adapters", adapters);
	tool_json_add(o, "devices", devices);
	return o;
}

static struct json_object *switch_json(const struct tool_view *v, unsigned index)
{
	struct json_object *o = tool_json_object();

	tool_json_string(o, "name", v->topology->sw[index].name);
	tool_json_string(o, "state",
			 !v->outage				  ? "unknown"
			 : sio_outage_switch_in(v->outage, index) ? "up"
								  : "down");
	return o;
}

static struct json_object *trunk_json(const struct tool_view *v, unsigned index)
{
	const struct sio_topo_trunk *l = &v->topology->trunk[index];
	struct json_object *o = tool_json_object(), *ends = tool_json_array();

	for (unsigned i = 0; i < 2; i++)
		tool_json_append(ends, tool_json_word(v->topology->sw[l->sw[i]].name));
	tool_json_add(o, "switches", ends);
	tool_json_string(o, "link",
			 tool_link_state_name(!v->outage		     ? TOOL_LINK_UNKNOWN
					      : tool_trunk_is_down(v, index) ? TOOL_LINK_DOWN
									     : TOOL_LINK_UP));
	tool_json_number(o, "link_width", l->link_width);
	tool_json_number(o, "link_generation", l->link_generation);
	return o;
}

static int print_json(const struct tool_view *v)
{
	struct json_object *o = tool_json_object(), *switches = tool_json_array();
	struct json_object *hosts = tool_json_array(), *trunks = tool_json_array();

	tool_json_string(o, "cluster", v->topology->name);
	tool_json_string(o, "machine_room", v->room ? "up" : "down");
	for (unsigned i = 0; i < v->topology->n_switches; i++)
		tool_json_append(switches, switch_json(v, i));
	for (unsigned i = 0; i < v->topology->n_trunks; i++)
		tool_json_append(trunks, trunk_json(v, i));
	for (unsigned i = 0; i < v->n; i++)
		tool_json_append(hosts, host_json(v, &v->host[i]));
	tool_json_add(o, "switches", switches);
	tool_json_add(o, "trunks", trunks);
	tool_json_add(o, "hosts", hosts);
	return tool_json_print("topology", o);
}

/* Graphviz's program writes to our standard output. */
static int print_svg(const struct sio_graph *g, const bool *down)
{
	int r, status;
	FILE *dot;

	fflush(stdout);
	signal(SIGPIPE, SIG_IGN); /* of a dot that is not there, or failed: its status says so */
	dot = popen("dot -Tsvg", "w");
	if (!dot)
		return tool_error_code(-errno, "dot cannot be started: %s", strerror(errno));
	r = tool_graph_dot(dot, g, down);
	status = pclose(dot);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return tool_error_code(-ENOENT, "--svg needs graphviz's program dot (package "
						"graphviz); --dot and --mermaid need nothing");
	if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return tool_error_code(-EIO, "dot could not draw the cluster");
	return 0;
}

/* @v: what is of it now; NULL: it is a file's. */
static int print_graph(const struct sio_topology *t, const struct tool_view *v)
{
	struct sio_graph *g;
	bool *down;
	int r = 0;

	if (sio_graph_new(t, &g) < 0)
		return tool_error_code(-ENOMEM, "no memory");
	down = tool_links_down(v, g);
	if (as_svg)
		r = print_svg(g, down);
	else if ((as_dot ? tool_graph_dot : tool_graph_mermaid)(stdout, g, down) < 0 ||
		 fflush(stdout) != 0)
		r = tool_error_code(-EIO, "cannot write to standard output");
	free(down);
	sio_graph_free(g);
	return r;
}

static int draw_file(const char *path)
{
	struct sio_topology *t;
	struct sio_err err;
	int status;

	if (sio_topofile_read(path, &t, &err) < 0)
		return tool_fail(&err);
	status = print_graph(t, NULL);
	sio_topology_free(t);
	return status;
}

static int topology(const struct tool_command *self, int argc, char **argv)
{
	struct tool_view *v;
	struct sio_err err;
	int first, status = 0, forms;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	forms = as_dot + as_mermaid + as_svg;
	if (forms + tool_where.json > 1)
		return tool_usage(self->name,
				  "--dot, --mermaid, --svg and --json are one or the other");
	if (first < argc && forms == 0)
		return tool_usage(self->name, "a file is drawn by --dot, --mermaid or --svg");
	if (first < argc)
		return draw_file(argv[first]);
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	if (forms)
		status = print_graph(v->topology, v);
	else if (tool_where.json)
		status = print_json(v);
	else if (tool_picture(stdout, v) < 0 || fflush(stdout) != 0)
		status = tool_error_code(-EIO, "cannot write to standard output");
	tool_view_close(v);
	return status;
}

const struct tool_command tool_topology_command = {
	.name = "topology",
	.summary = "Draw the cluster as it is now: switches, links, hosts and devices",
	.help = "The picture is drawn with characters, or in one of these forms, dashed where a link\n"
		"is down; then of a topology file, too, whatever runs.\n",
	.schemas = "topology",
	.options = options,
	.words = {{"[TOPOLOGY]", TOOL_TOPOLOGIES}},
	.run = topology};
