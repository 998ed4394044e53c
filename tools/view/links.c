/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "view/links.h"

bool *tool_links_down(const struct tool_view *v, const struct sio_graph *g)
{
	bool *down = v ? calloc(g->n_links + 1u, sizeof(*down)) : NULL;

	/* A graph's first links are the trunks. */
	for (unsigned i = 0; down && i < g->topology->n_trunks; i++)
		down[i] = tool_trunk_is_down(v, i);
	for (unsigned i = 0; down && i < v->n; i++) {
		for (unsigned k = 0; k < v->host[i].topo->n_adapters; k++) {
			unsigned link = g->node[sio_graph_adapter(g, i, k)].out;

			if (link != SIO_GRAPH_NONE && v->host[i].adapter[k].link == TOOL_LINK_DOWN)
				down[link] = true;
		}
	}
	for (unsigned i = 0; down && i < v->n_machines; i++) {
		for (unsigned k = 0; k < v->machine[i].topo->n_adapters; k++) {
			unsigned link = g->node[sio_graph_adapter(g, v->n + i, k)].out;

			/* A link to a machine that is off is in order. */
			if (link != SIO_GRAPH_NONE && v->machine[i].up &&
			    tool_machine_link(&v->machine[i], k) == TOOL_LINK_DOWN)
				down[link] = true;
		}
	}
	return down;
}
