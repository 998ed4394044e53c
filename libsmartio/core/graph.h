/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric as a graph: what the cluster's links connect. Each host is a tree: its root, chassis
 * below it, devices and adapters in any of them. The fabric connects adapters, by a cable or by
 * switches. Pure data, made from a topology; threads may share it.
 */
#ifndef CORE_GRAPH_H
#define CORE_GRAPH_H

#include "core/topology.h"

enum sio_graph_kind {
	SIO_GRAPH_SWITCH,  /* of the cluster */
	SIO_GRAPH_HOST,	   /* processors, RAM and the root that joins them */
	SIO_GRAPH_CHASSIS, /* a transparent switch */
	SIO_GRAPH_ADAPTER,
	SIO_GRAPH_DEVICE,
};

#define SIO_GRAPH_NONE UINT32_MAX

struct sio_graph_node {
	enum sio_graph_kind kind;
	unsigned host;	/* its index in the topology; of a switch SIO_GRAPH_NONE */
	unsigned index; /* in the topology, or among those of its host */
	unsigned up;	/* number of the link towards its host; SIO_GRAPH_NONE: it is the root */
	unsigned out;	/* number of an adapter's link out of its host; SIO_GRAPH_NONE */
};

struct sio_graph_link {
	unsigned end[2];	    /* numbers of nodes; within a host the upper one comes second */
	uint32_t width, generation; /* what both ends can */
};

/* Nodes: switches, then for each host its root, chassis, adapters, devices. Links: trunks first. */
struct sio_graph {
	const struct sio_topology *topology;
	unsigned n_nodes, n_links;
	struct sio_graph_node *node;
	struct sio_graph_link *link;
	unsigned *first; /* number of each host's root */
};

/*
 * Makes the graph of @t, which must exist, with the same parts, as long as the graph.
 * Return: 0 and a graph to free with sio_graph_free(); -ENOMEM.
 */
int sio_graph_new(const struct sio_topology *t, struct sio_graph **ret);
/* NULL is fine. */
void sio_graph_free(struct sio_graph *g);

/* Numbers of nodes. @host: index in the topology; @index: among those of the host. */
unsigned sio_graph_host(const struct sio_graph *g, unsigned host);
unsigned sio_graph_chassis(const struct sio_graph *g, unsigned host, unsigned index);
unsigned sio_graph_adapter(const struct sio_graph *g, unsigned host, unsigned index);
unsigned sio_graph_device(const struct sio_graph *g, unsigned host, unsigned index);
/* The name of a node in the topology file; of an adapter: its host's name. */
const char *sio_graph_name(const struct sio_graph *g, unsigned node);

#endif
