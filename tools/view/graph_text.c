/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>

#include "base/output.h"
#include "view/graph_text.h"

const char *tool_graph_name(const struct sio_graph *g, unsigned node, char name[TOOL_GRAPH_NAME])
{
	static const char mark[] = {[SIO_GRAPH_CHASSIS] = '/', [SIO_GRAPH_DEVICE] = ':'};
	const struct sio_graph_node *n = &g->node[node];
	const char *own = sio_graph_name(g, node);

	if (n->kind == SIO_GRAPH_ADAPTER)
		snprintf(name, TOOL_GRAPH_NAME, "%s.%u", own, n->index);
	else if (n->kind == SIO_GRAPH_CHASSIS || n->kind == SIO_GRAPH_DEVICE)
		snprintf(name, TOOL_GRAPH_NAME, "%s%c%s", g->topology->host[n->host].name,
			 mark[n->kind], own);
	else
		snprintf(name, TOOL_GRAPH_NAME, "%s", own);
	return name;
}

/* What it passes on, if something is behind it. */
static void put_range(FILE *out, const struct sio_topo_chassis *c, const char *gap)
{
	char size[TOOL_SIZE_TEXT];

	if (c->range_size)
		fprintf(out, "%s%#" PRIx64 " + %s", gap, c->range_base,
			tool_size(c->range_size, size));
}

/* The lines of a node's label, separated by @gap. */
static void put_label(FILE *out, const struct sio_graph *g, unsigned node, const char *gap)
{
	const struct sio_graph_node *n = &g->node[node];
	const char *name = sio_graph_name(g, node);
	const struct sio_topo_switch *sw;

	switch (n->kind) {
	case SIO_GRAPH_SWITCH:
		sw = &g->topology->sw[n->index];
		fprintf(out, "%s%sswitch", name, gap);
		if (sw->ports)
			fprintf(out, ", %u ports x%u", sw->ports, sw->lanes);
		break;
	case SIO_GRAPH_HOST:
		fprintf(out, "%s%snode %u%s", name, gap, g->topology->host[n->host].node,
			g->topology->host[n->host].machine ? ", machine" : "");
		break;
	case SIO_GRAPH_CHASSIS:
		fprintf(out, "%s%schassis", name, gap);
		put_range(out, &g->topology->host[n->host].chassis[n->index], gap);
		break;
	case SIO_GRAPH_ADAPTER:
		fprintf(out, "adapter %u", n->index);
		break;
	case SIO_GRAPH_DEVICE:
		fprintf(out, "%s%s%s", name, gap, g->topology->host[n->host].device[n->index].type);
		break;
	}
}

/* Hosts, followed by machines. */
static unsigned members(const struct sio_graph *g)
{
	return g->topology->n_hosts + g->topology->n_machines;
}

/* The nodes of host @host are those from its root to the next host's root. */
static unsigned end_of(const struct sio_graph *g, unsigned host)
{
	return host + 1 < members(g) ? g->first[host + 1] : g->n_nodes;
}

static void put_dot_node(FILE *out, const struct sio_graph *g, unsigned node, const char *indent)
{
	static const char *const shape[] = {[SIO_GRAPH_SWITCH] = "box3d",
					    [SIO_GRAPH_HOST] = "box",
					    [SIO_GRAPH_CHASSIS] = "folder",
					    [SIO_GRAPH_ADAPTER] = "cds",
					    [SIO_GRAPH_DEVICE] = "cylinder"};
	char name[TOOL_GRAPH_NAME];

	fprintf(out, "%s\"%s\" [shape=%s, label=\"", indent, tool_graph_name(g, node, name),
		shape[g->node[node].kind]);
	put_label(out, g, node, "\\n");
	fprintf(out, "\"];\n");
}

int tool_graph_dot(FILE *out, const struct sio_graph *g, const bool *down)
{
	char a[TOOL_GRAPH_NAME], b[TOOL_GRAPH_NAME];

	fprintf(out, "graph \"%s\" {\n\tnode [fontname=\"sans\"];\n\tedge [fontname=\"sans\"];\n",
		g->topology->name);
	for (unsigned i = 0; i < g->topology->n_switches; i++)
		put_dot_node(out, g, i, "\t");
	for (unsigned i = 0; i < members(g); i++) {
		fprintf(out, "\tsubgraph \"cluster_%s\" {\n", g->topology->host[i].name);
		for (unsigned k = g->first[i]; k < end_of(g, i); k++)
			put_dot_node(out, g, k, "\t\t");
		fprintf(out, "\t}\n");
	}
	for (unsigned i = 0; i < g->n_links; i++) {
		const struct sio_graph_link *l = &g->link[i];

		fprintf(out, "\t\"%s\" -- \"%s\" [label=\"x%u gen %u\"%s];\n",
			tool_graph_name(g, l->end[0], a), tool_graph_name(g, l->end[1], b),
			l->width, l->generation,
			down && down[i] ? ", style=dashed, color=red" : "");
	}
	fprintf(out, "}\n");
	return ferror(out) ? -EIO : 0;
}

static void put_mermaid_node(FILE *out, const struct sio_graph *g, unsigned node)
{
	static const char *const open[] = {[SIO_GRAPH_SWITCH] = "{{",
					   [SIO_GRAPH_HOST] = "[",
					   [SIO_GRAPH_CHASSIS] = "[[",
					   [SIO_GRAPH_ADAPTER] = "([",
					   [SIO_GRAPH_DEVICE] = "[("};
	static const char *const end[] = {[SIO_GRAPH_SWITCH] = "}}",
					  [SIO_GRAPH_HOST] = "]",
					  [SIO_GRAPH_CHASSIS] = "]]",
					  [SIO_GRAPH_ADAPTER] = "])",
					  [SIO_GRAPH_DEVICE] = ")]"};
	enum sio_graph_kind kind = g->node[node].kind;

	fprintf(out, "  n%u%s\"", node, open[kind]);
	put_label(out, g, node, "<br>");
	fprintf(out, "\"%s\n", end[kind]);
}

int tool_graph_mermaid(FILE *out, const struct sio_graph *g, const bool *down)
{
	fprintf(out, "flowchart LR\n");
	for (unsigned i = 0; i < g->topology->n_switches; i++)
		put_mermaid_node(out, g, i);
	for (unsigned i = 0; i < members(g); i++) {
		fprintf(out, "  subgraph h%u [\"%s\"]\n", i, g->topology->host[i].name);
		for (unsigned k = g->first[i]; k < end_of(g, i); k++)
			put_mermaid_node(out, g, k);
		fprintf(out, "  end\n");
	}
	for (unsigned i = 0; i < g->n_links; i++) {
		const struct sio_graph_link *l = &g->link[i];

		fprintf(out, "  n%u %s|\"x%u gen %u\"| n%u\n", l->end[0],
			down && down[i] ? "-.-" : "---", l->width, l->generation, l->end[1]);
	}
	return ferror(out) ? -EIO : 0;
}
