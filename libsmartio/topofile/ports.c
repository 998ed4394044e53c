/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which ports of its switches each link takes. A link that needs several takes adjacent ones, from
 * a multiple of their number on, as the lanes of a chip's stations can be joined. Ports that the
 * file numbers come first, then the widest links; so everything that fits finds its place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/draft.h"
#include "topofile/value.h"

/* One end of a link, at a switch. */
struct user {
	unsigned sw, ports; /* it takes */
	uint32_t width;
	int given; /* -1: any port */
	unsigned *port;
	struct sio_spot at; /* where it says that it leads here */
	char path[SIO_DRAFT_PATH];
};

struct plan {
	struct sio_draft *d;
	struct user *user;
	unsigned n;
};

static void add_adapters(struct plan *p, unsigned host)
{
	struct sio_topo_host *h = &p->d->t->host[host];

	for (unsigned i = 0; i < h->n_adapters; i++) {
		struct sio_draft_adapter *draft = &p->d->host[host].adapter[i];
		struct sio_topo_adapter *a = &h->adapter[i];
		struct user *u = &p->user[p->n];

		if (a->attach != SIO_ATTACH_SWITCH)
			continue;
		*u = (struct user){.sw = a->attach_index,
				   .width = a->link_width,
				   .given = draft->to_index,
				   .port = &a->port,
				   .at = draft->to_at.value ? draft->to_at
							    : sio_source_missing(draft->at)};
		sio_draft_adapter_path(h, i, "to", u->path);
		p->n++;
	}
}

static void add_trunk(struct plan *p, unsigned index)
{
	struct sio_topo_trunk *trunk = &p->d->t->trunk[index];
	struct sio_draft_trunk *draft = &p->d->trunk[index];

	for (unsigned end = 0; end < 2; end++) {
		struct user *u = &p->user[p->n++];

		*u = (struct user){.sw = trunk->sw[end],
				   .width = trunk->link_width,
				   .given = draft->port[end],
				   .port = &trunk->port[end],
				   .at = draft->end_at[end]};
		snprintf(u->path, sizeof(u->path), "links[%u].%s", index, end ? "to" : "from");
	}
}

/* The link that has one of @u's ports if they begin at @port; NULL: none. */
static const struct user *taken_by(const struct user *const *by, const struct user *u,
				   unsigned port)
{
	for (unsigned i = port; i < port + u->ports; i++) {
		if (by[i])
			return by[i];
	}
	return NULL;
}

static void take(const struct user **by, const struct user *u, unsigned port)
{
	*u->port = port;
	for (unsigned i = port; i < port + u->ports; i++)
		by[i] = u;
}

static int take_given(struct plan *p, const struct user **by, const struct user *u)
{
	const struct sio_topo_switch *sw = &p->d->t->sw[u->sw];
	unsigned port = (unsigned)u->given;
	const struct user *other;

	if (port >= sw->ports)
		return sio_source_fail_at(p->d->source, u->at, u->path,
					  "%s has the ports 0 to %u; one of them is right",
					  sw->name, sw->ports - 1);
	if (port % u->ports || port + u->ports > sw->ports)
		return sio_source_fail_at(
			p->d->source, u->at, u->path,
			"x%u takes %u ports of %u lanes, which begin at a multiple "
			"of %u and end with port %u; a port where they fit is right",
			u->width, u->ports, sw->lanes, u->ports, sw->ports - 1);
	other = taken_by(by, u, port);
	if (other)
		return sio_source_fail_at(
			p->d->source, u->at, u->path,
			"two links on a port: '%s' (line %u) takes %u from port %u "
			"on; free ones are right",
			other->path, other->at.key.line, other->ports, *other->port);
	take(by, u, port);
	return 0;
}

static unsigned ports_left(const struct user *const *by, unsigned ports)
{
	unsigned left = 0;

	for (unsigned i = 0; i < ports; i++)
		left += !by[i];
	return left;
}

static int take_free(struct plan *p, const struct user **by, const struct user *u)
{
	const struct sio_topo_switch *sw = &p->d->t->sw[u->sw];

	for (unsigned port = 0; port + u->ports <= sw->ports; port += u->ports) {
		if (taken_by(by, u, port))
			continue;
		take(by, u, port);
		return 0;
	}
	return sio_source_fail_at(
		p->d->source, u->at, u->path,
		"too many lanes: x%u takes %u port%s of %u lanes, side by side, "
		"and %s has %u of %u left; fewer lanes or another switch is right",
		u->width, u->ports, u->ports == 1 ? "" : "s", sw->lanes, sw->name,
		ports_left(by, sw->ports), sw->ports);
}

static int number_switch(struct plan *p, unsigned sw)
{
	const struct user *by[SIO_DRAFT_PORTS] = {NULL};
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < p->n; i++) {
		if (p->user[i].sw == sw && p->user[i].given >= 0)
			rc = take_given(p, by, &p->user[i]);
	}
	for (unsigned ports = 16; rc == 0 && ports > 0; ports /= 2) {
		for (unsigned i = 0; rc == 0 && i < p->n; i++) {
			const struct user *u = &p->user[i];

			if (u->sw == sw && u->given < 0 && u->ports == ports)
				rc = take_free(p, by, u);
		}
	}
	return rc;
}

int sio_draft_number_ports(struct sio_draft *d)
{
	struct plan p = {.d = d};
	int rc = 0;

	p.user = calloc((size_t)d->t->n_hosts * SIO_MAX_ADAPTERS + 2 * (size_t)d->t->n_trunks,
			sizeof(*p.user));
	if (!p.user)
		return sio_source_no_memory(d->source);
	for (unsigned i = 0; i < d->t->n_hosts; i++)
		add_adapters(&p, i);
	for (unsigned i = 0; i < d->t->n_trunks; i++)
		add_trunk(&p, i);
	for (unsigned i = 0; i < p.n; i++)
		p.user[i].ports = sio_topology_ports(p.user[i].width, d->t->sw[p.user[i].sw].lanes);
	for (unsigned i = 0; rc == 0 && i < d->t->n_switches; i++) {
		if (d->t->sw[i].ports)
			rc = number_switch(&p, i);
	}
	free(p.user);
	return rc;
}
