/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is all of the cluster in one piece? Hosts, switches and cables join; a host with two adapters
 * joins what these lead to, though it passes nothing on.
 */
#include <stdio.h>

#include "topofile/draft.h"

/* Parts of what is joined so far: each is named by its lowest member. */
struct parts {
	unsigned of[SIO_MAX_SWITCHES + SIO_MAX_HOSTS * (1 + SIO_MAX_ADAPTERS)];
	unsigned n;
};

static void join(struct parts *p, unsigned a, unsigned b)
{
	unsigned from = p->of[a], to = p->of[b];

	for (unsigned i = 0; i < p->n; i++) {
		if (p->of[i] == from)
			p->of[i] = to;
	}
}

/* Switches, then cables, then hosts. */
static void find_parts(const struct sio_topology *t, struct parts *p)
{
	unsigned cables = t->n_switches, hosts = cables + t->n_links;

	p->n = hosts + t->n_hosts;
	for (unsigned i = 0; i < p->n; i++)
		p->of[i] = i;
	for (unsigned i = 0; i < t->n_trunks; i++)
		join(p, t->trunk[i].sw[0], t->trunk[i].sw[1]);
	for (unsigned i = 0; i < t->n_hosts; i++) {
		for (unsigned j = 0; j < t->host[i].n_adapters; j++) {
			const struct sio_topo_adapter *a = &t->host[i].adapter[j];

			join(p, hosts + i,
			     a->attach_index + (a->attach == SIO_ATTACH_LINK ? cables : 0));
		}
	}
}

int sio_draft_check_apart(struct sio_draft *d)
{
	const struct sio_topology *t = d->t;
	unsigned hosts = t->n_switches + t->n_links;
	const struct sio_topo_host *first = NULL;
	struct parts p;
	unsigned part = 0;

	if (t->apart)
		return 0;
	find_parts(t, &p);
	for (unsigned i = 0; i < t->n_hosts; i++) {
		char path[SIO_DRAFT_PATH];

		if (t->host[i].machine) /* they are joined to each other alone */
			continue;
		if (!first) {
			first = &t->host[i];
			part = p.of[hosts + i];
		} else if (p.of[hosts + i] != part) {
			snprintf(path, sizeof(path), "hosts.%s", t->host[i].name);
			return sio_source_fail_at(
				d->source, sio_source_missing(d->host[i].at), path,
				"nothing joins it with '%s'; a switch or a cable that both lead "
				"to, a link between their switches, or 'apart: on' if this is "
				"meant, is right",
				first->name);
		}
	}
	return 0;
}
