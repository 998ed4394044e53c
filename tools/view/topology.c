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

/* Graphviz's program writes to our standard output. */
static int print_svg(const struct sio_graph *g, const bool *down)
{
	int r, status;
	FILE *dot;

	fflush(stdout);
	/* a dot that is missing or fails ends the pipe; its exit status says so */
	signal(SIGPIPE, SIG_IGN);
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

/* @v: the present state of @t; NULL: @t is from a file. */
static int print_graph(const struct sio_topology *t, const struct tool_view *v)
{
	struct sio_graph *g;
	bool *down;
	int r = 0;

	if (sio_graph_new(t, &g) < 0)
		return tool_error_code(-ENOMEM,
				       "no memory for the cluster's graph: " SIO_MORE_MEMORY);
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
		status = tool_json_print("topology", tool_view_json(v));
	else if (tool_picture(stdout, v) < 0 || fflush(stdout) != 0)
		status = tool_error_code(-EIO, "cannot write to standard output");
	tool_view_close(v);
	return status;
}

const struct tool_command tool_topology_command = {
	.name = "topology",
	.summary = "Draw the cluster as it is now: switches, links, hosts and devices",
	.help = "The picture is drawn with characters, or in one of these forms, dashed where a "
		"link\n"
		"is down; then of a topology file, too, whatever runs.\n",
	.schemas = "topology",
	.options = options,
	.words = {{"[TOPOLOGY]", TOOL_TOPOLOGIES}},
	.run = topology};
