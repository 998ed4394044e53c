/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "core/graph.h"

unsigned sio_graph_host(const struct sio_graph *g, unsigned host)
{
	return g->first[host];
}

unsigned sio_graph_chassis(const struct sio_graph *g, unsigned host, unsigned index)
{
	return g->first[host] + 1 + index;
}

unsigned sio_graph_adapter(const struct sio_graph *g, unsigned host, unsigned index)
{
	return sio_graph_chassis(g, host, g->topology->host[host].n_chassis) + index;
}

unsigned sio_graph_device(const struct sio_graph *g, unsigned host, unsigned index)
{
	return sio_graph_adapter(g, host, g->topology->host[host].n_adapters) + index;
}

const char *sio_graph_name(const struct sio_graph *g, unsigned node)
{
	const struct sio_graph_node *n = &g->node[node];
	const struct sio_topology *t = g->topology;

	switch (n->kind) {
	case SIO_GRAPH_SWITCH:
		return t->sw[n->index].name;
	case SIO_GRAPH_CHASSIS:
		return t->host[n->host].chassis[n->index].name;
	case SIO_GRAPH_DEVICE:
		return t->host[n->host].device[n->index].name;
	default:
		return t->host[n->host].name;
	}
}

static unsigned nodes_of(const struct sio_topo_host *h)
{
	return 1 + h->n_chassis + h->n_adapters + h->n_devices;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static unsigned add_link(struct sio_graph *g, unsigned a, unsigned b, uint32_t width,
			 uint32_t generation)
{
	g->link[g->n_links] =
		(struct sio_graph_link){.end = {a, b}, .width = width, .generation = generation};
	return g->n_links++;
}

static struct sio_graph_node *add_node(struct sio_graph *g, enum sio_graph_kind kind, unsigned host,
				       unsigned index)
{
	struct sio_graph_node *n = &g->node[g->n_nodes++];

	*n = (struct sio_graph_node){.kind = kind,
				     .host = host,
				     .index = index,
				     .up = SIO_GRAPH_NONE,
				     .out = SIO_GRAPH_NONE};
	return n;
}

/* Below its host, or a chassis of it: @in as in the topology. */
static void add_below(struct sio_graph *g, enum sio_graph_kind kind, unsigned host, unsigned index,
		      unsigned in, uint32_t width, uint32_t generation)
{
	unsigned node = g->n_nodes;

	add_node(g, kind, host, index)->up =
		add_link(g, node, g->first[host] + in, width, generation);
}

static void add_host(struct sio_graph *g, unsigned host)
{
	const struct sio_topo_host *h = &g->topology->host[host];

	g->first[host] = g->n_nodes;
	add_node(g, SIO_GRAPH_HOST, host, 0);
	for (unsigned i = 0; i < h->n_chassis; i++) {
		const struct sio_topo_chassis *c = &h->chassis[i];

		add_below(g, SIO_GRAPH_CHASSIS, host, i, c->in, c->link_width, c->link_generation);
	}
	for (unsigned i = 0; i < h->n_adapters; i++) {
		const struct sio_topo_adapter *a = &h->adapter[i];

		add_below(g, SIO_GRAPH_ADAPTER, host, i, a->in, a->link_width, a->link_generation);
	}
	for (unsigned i = 0; i < h->n_devices; i++) {
		const struct sio_topo_device *d = &h->device[i];

		add_below(g, SIO_GRAPH_DEVICE, host, i, d->in, d->link_width, d->link_generation);
	}
}

/* The other end of @node's cable, if it is there already. */
static unsigned other_end(const struct sio_graph *g, unsigned node, unsigned cable)
{
	for (unsigned i = g->topology->n_switches; i < node; i++) {
		const struct sio_graph_node *n = &g->node[i];
		const struct sio_topo_adapter *a;

		if (n->kind != SIO_GRAPH_ADAPTER)
			continue;
		a = &g->topology->host[n->host].adapter[n->index];
		if (a->attach == SIO_ATTACH_LINK && a->attach_index == cable)
			return i;
	}
	return SIO_GRAPH_NONE;
}

static void join(struct sio_graph *g, unsigned node)
{
	struct sio_graph_node *n = &g->node[node], *peer;
	const struct sio_topo_adapter *a = &g->topology->host[n->host].adapter[n->index], *b;
	unsigned other = a->attach_index;

	if (a->attach == SIO_ATTACH_SWITCH)
		n->out = add_link(g, node, other, a->link_width, a->link_generation);
	if (a->attach != SIO_ATTACH_LINK)
		return;
	other = other_end(g, node, a->attach_index);
	if (other == SIO_GRAPH_NONE)
		return;
	peer = &g->node[other];
	b = &g->topology->host[peer->host].adapter[peer->index];
	n->out = peer->out = add_link(g, other, node, lesser(a->link_width, b->link_width),
				      lesser(a->link_generation, b->link_generation));
}

static void fill(struct sio_graph *g)
{
	const struct sio_topology *t = g->topology;

	for (unsigned i = 0; i < t->n_switches; i++)
		add_node(g, SIO_GRAPH_SWITCH, SIO_GRAPH_NONE, i);
	for (unsigned i = 0; i < t->n_trunks; i++)
		add_link(g, t->trunk[i].sw[0], t->trunk[i].sw[1], t->trunk[i].link_width,
			 t->trunk[i].link_generation);
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++)
		add_host(g, i);
	for (unsigned i = 0; i < g->n_nodes; i++)
		if (g->node[i].kind == SIO_GRAPH_ADAPTER)
			join(g, i);
}

int sio_graph_new(const struct sio_topology *t, struct sio_graph **ret)
{
	struct sio_graph *g = calloc(1, sizeof(*g));
	unsigned nodes = t->n_switches, links = t->n_trunks;

	/* A link upwards of each, and one outwards of adapters. */
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++) {
		nodes += nodes_of(&t->host[i]);
		links += nodes_of(&t->host[i]) + t->host[i].n_adapters;
	}
	if (!g)
		return -ENOMEM;
	g->topology = t;
	g->node = calloc(nodes + 1u, sizeof(*g->node));
	g->link = calloc(links + 1u, sizeof(*g->link));
	g->first = calloc(t->n_hosts + t->n_machines + 1u, sizeof(*g->first));
	if (!g->node || !g->link || !g->first) {
		sio_graph_free(g);
		return -ENOMEM;
	}
	fill(g);
	*ret = g;
	return 0;
}

void sio_graph_free(struct sio_graph *g)
{
	if (!g)
		return;
	free(g->node);
	free(g->link);
	free(g->first);
	free(g);
}
