/* SPDX-License-Identifier: BSD-2-Clause */
/* Which links of a cluster's graph are down now. */
#ifndef TOOLS_LINKS_H
#define TOOLS_LINKS_H

#include "core/graph.h"
#include "view/view.h"

/*
 * An element for each link of @g, set if it is down; free(). NULL: unknown (@v is NULL: nothing
 * runs), or no memory.
 */
bool *tool_links_down(const struct tool_view *v, const struct sio_graph *g);

#endif
