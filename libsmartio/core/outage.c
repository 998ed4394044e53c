/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "core/outage.h"

struct sio_outage {
	const struct sio_topology *topology;
	bool *sw, *trunk; /* those that are out themselves */
	bool *dead;	  /* trunks that lead nowhere, for that or for a switch */
	uint8_t *distance;
};

int sio_outage_new(const struct sio_topology *t, struct sio_outage **ret)
{
	struct sio_outage *o = calloc(1, sizeof(*o));
	size_t n = t->n_switches;

	if (!o)
		return -ENOMEM;
	o->topology = t;
	o->sw = calloc(n + 1, sizeof(*o->sw));
	o->trunk = calloc(t->n_trunks + 1u, sizeof(*o->trunk));
	o->dead = calloc(t->n_trunks + 1u, sizeof(*o->dead));
	o->distance = calloc(n * n + 1, sizeof(*o->distance));
	if (!o->sw || !o->trunk || !o->dead || !o->distance) {
		sio_outage_free(o);
		return -ENOMEM;
	}
	sio_topology_distances(t, NULL, o->distance);
	*ret = o;
	return 0;
}

void sio_outage_free(struct sio_outage *o)
{
	if (!o)
		return;
	free(o->sw);
	free(o->trunk);
	free(o->dead);
	free(o->distance);
	free(o);
}

static void measure(struct sio_outage *o)
{
	const struct sio_topology *t = o->topology;

	for (unsigned i = 0; i < t->n_trunks; i++)
		o->dead[i] = o->trunk[i] || o->sw[t->trunk[i].sw[0]] || o->sw[t->trunk[i].sw[1]];
	sio_topology_distances(t, o->dead, o->distance);
}

void sio_outage_follow(struct sio_outage *o, const struct sio_outage *before,
		       const struct sio_topology *t)
{
	const struct sio_topology *was = before->topology, *is = o->topology;

	for (unsigned i = 0; i < is->n_switches; i++) {
		unsigned k = sio_topology_switch(was, is->sw[i].name);

		o->sw[i] = k < was->n_switches && before->sw[k];
	}
	for (unsigned i = 0; i < is->n_trunks; i++) {
		unsigned k = sio_topology_trunk(was, is, i);

		o->trunk[i] = k < was->n_trunks && before->trunk[k];
	}
	measure(o);
	o->topology = t;
}

static bool set(struct sio_outage *o, bool *out, bool in)
{
	if (*out == !in)
		return false;
	*out = !in;
	measure(o);
	return true;
}

bool sio_outage_switch(struct sio_outage *o, unsigned index, bool in)
{
	return set(o, &o->sw[index], in);
}

bool sio_outage_trunk(struct sio_outage *o, unsigned index, bool in)
{
	return set(o, &o->trunk[index], in);
}

bool sio_outage_switch_in(const struct sio_outage *o, unsigned index)
{
	return !o->sw[index];
}

bool sio_outage_trunk_in(const struct sio_outage *o, unsigned index)
{
	return !o->trunk[index];
}

bool sio_outage_port_in(const struct sio_outage *o, const struct sio_topo_adapter *a)
{
	return a->attach != SIO_ATTACH_SWITCH || !o->sw[a->attach_index];
}

bool sio_outage_joins(const struct sio_outage *o, const struct sio_topo_adapter *a,
		      const struct sio_topo_adapter *b)
{
	if (a->attach != SIO_ATTACH_SWITCH || b->attach != SIO_ATTACH_SWITCH)
		return true;
	return sio_outage_port_in(o, a) && sio_outage_port_in(o, b) &&
	       o->distance[a->attach_index * o->topology->n_switches + b->attach_index] !=
		       SIO_TOPO_FAR;
}

unsigned sio_outage_next(const struct sio_outage *o, unsigned from, unsigned to)
{
	const struct sio_topology *t = o->topology;
	const uint8_t *left = o->distance + (size_t)to * t->n_switches;

	for (unsigned i = 0; i < t->n_trunks; i++) {
		const unsigned *sw = t->trunk[i].sw;

		for (unsigned end = 0; end < 2; end++)
			if (!o->dead[i] && sw[end] == from && left[sw[!end]] < left[from])
				return i;
	}
	return SIO_OUTAGE_NONE;
}

unsigned sio_outage_hops(const struct sio_outage *o, const struct sio_topo_adapter *a,
			 const struct sio_topo_adapter *b)
{
	if (a->attach != SIO_ATTACH_SWITCH)
		return 1;
	return 2u + o->distance[a->attach_index * o->topology->n_switches + b->attach_index];
}
