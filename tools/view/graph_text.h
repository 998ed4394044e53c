/* SPDX-License-Identifier: BSD-2-Clause */
/* A cluster's graph as text for programs that draw it. */
#ifndef TOOLS_GRAPH_TEXT_H
#define TOOLS_GRAPH_TEXT_H

#include <stdio.h>

#include "core/graph.h"

/* Longest name of a node: "HOST:DEVICE". */
#define TOOL_GRAPH_NAME (2 * SIO_NAME_LEN)

/*
 * The name of a node: SWITCH and HOST; HOST.0 an adapter, HOST/CHASSIS, HOST:DEVICE. Return: @name.
 */
const char *tool_graph_name(const struct sio_graph *g, unsigned node, char name[TOOL_GRAPH_NAME]);
/*
 * For graphviz: each node by its name, the nodes of each host in a frame, each link with its lanes.
 * Links whose element of @down (NULL: none) is set are dashed. Return: 0; -EIO: @out failed.
 */
int tool_graph_dot(FILE *out, const struct sio_graph *g, const bool *down);
/* The same for Mermaid, whose nodes are numbered and labelled. */
int tool_graph_mermaid(FILE *out, const struct sio_graph *g, const bool *down);

#endif
