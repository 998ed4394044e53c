/* SPDX-License-Identifier: BSD-2-Clause */
/* What each adapter is joined to: a switch, or an adapter of another host. */
#include <stdlib.h>
#include <string.h>

#include "core/timing.h"
#include "topofile/draft.h"

#define DEFAULT_SWITCH "sw0"

/* One end of a cable. */
struct end {
	struct sio_topo_host *host;
	struct sio_topo_adapter *adapter;
	struct sio_draft_adapter *draft;
	unsigned index;
};

static struct end end_at(struct sio_draft *d, unsigned host, unsigned index)
{
	return (struct end){.host = &d->t->host[host],
			    .adapter = &d->t->host[host].adapter[index],
			    .draft = &d->host[host].adapter[index],
			    .index = index};
}

static int find_host(const struct sio_topology *t, const char *name)
{
	for (unsigned i = 0; i < t->n_hosts; i++) {
		if (strcmp(t->host[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

/* A file that names no switches has one, if an adapter leads there. */
static int add_default_switch(struct sio_draft *d)
{
	bool wanted = false;

	if (!d->no_switches || find_host(d->t, DEFAULT_SWITCH) >= 0)
		return 0;
	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		for (unsigned j = 0; j < d->t->host[i].n_adapters; j++) {
			const char *to = d->host[i].adapter[j].to;

			wanted = wanted || !to[0] || strcmp(to, DEFAULT_SWITCH) == 0;
		}
	}
	if (!wanted)
		return 0;
	d->t->sw = calloc(1, sizeof(*d->t->sw));
	if (!d->t->sw)
		return sio_source_no_memory(d->source);
	memcpy(d->t->sw[0].name, DEFAULT_SWITCH, sizeof(DEFAULT_SWITCH));
	d->t->sw[0].lanes = 16;
	d->t->sw[0].latency = SIO_TIMING_SWITCH_NS;
	d->t->n_switches = 1;
	return 0;
}

static int fail_to(struct sio_draft *d, const struct end *e, const char *wrong, const char *right)
{
	struct sio_spot at = e->draft->to_at;
	char path[SIO_DRAFT_PATH];

	if (!at.value)
		at = sio_source_missing(e->draft->at);
	return sio_source_fail_at(d->source, at,
				  sio_draft_adapter_path(e->host, e->index, "to", path),
				  "%s; %s is right", wrong, right);
}

/* To a switch, if that is what it names. Hosts are left for join_hosts(). */
static int join_switch(struct sio_draft *d, const struct end *e)
{
	char path[SIO_DRAFT_PATH];
	int sw = e->draft->to[0] ? sio_draft_find_switch(d->t, e->draft->to) : 0;

	if (!e->draft->to[0] && d->t->n_switches != 1)
		return fail_to(d, e, "missing, and there is not just one switch",
			       "the name of a switch or of a host");
	if (sw < 0) {
		int peer = find_host(d->t, e->draft->to);

		if (peer < 0)
			return fail_to(d, e, "neither a switch nor a host",
				       "the name of one, as in 'switches' or 'hosts',");
		if (e->draft->to_index >= SIO_MAX_ADAPTERS)
			return sio_source_fail_at(
				d->source, e->draft->to_at,
				sio_draft_adapter_path(e->host, e->index, "to", path),
				SIO_DRAFT_TO_RIGHT, SIO_MAX_ADAPTERS - 1);
		if (&d->t->host[peer] == e->host)
			return fail_to(d, e, "the adapter's own host",
				       "the name of a switch or of another host");
		return 0;
	}
	if (e->draft->to_index >= 0 && d->t->sw[sw].ports == 0)
		return fail_to(d, e, "the switch has no numbered ports", "its name alone");
	e->adapter->attach = SIO_ATTACH_SWITCH;
	e->adapter->attach_index = (unsigned)sw;
	return 0;
}

/* Does @a's "to" name @b's host, with @b's index or with none? */
static bool leads_to(const struct end *a, const struct end *b)
{
	return strcmp(a->draft->to, b->host->name) == 0 &&
	       (a->draft->to_index < 0 || a->draft->to_index == (int)b->index);
}

/* The adapter at the other end: the first that is free and leads back. */
static bool find_peer(struct sio_draft *d, const struct end *e, struct end *ret)
{
	int host = find_host(d->t, e->draft->to);

	for (unsigned j = 0; j < d->t->host[host].n_adapters; j++) {
		struct end peer = end_at(d, (unsigned)host, j);

		if (peer.adapter->attach == SIO_ATTACH_NONE && leads_to(e, &peer) &&
		    leads_to(&peer, e)) {
			*ret = peer;
			return true;
		}
	}
	return false;
}

static int join_hosts(struct sio_draft *d, const struct end *e)
{
	struct end peer;

	if (!find_peer(d, e, &peer))
		return fail_to(d, e, "no adapter there is free and leads back",
			       "a host with an adapter whose 'to' names this one");
	e->adapter->attach = peer.adapter->attach = SIO_ATTACH_LINK;
	e->adapter->attach_index = peer.adapter->attach_index = d->t->n_links++;
	return 0;
}

/*
 * Whoever names an adapter by its index has no choice, so it goes first; a pair of which one end
 * does so is joined then, whichever end it is.
 */
static int join_all_hosts(struct sio_draft *d, bool indexed)
{
	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		for (unsigned j = 0; j < d->t->host[i].n_adapters; j++) {
			struct end e = end_at(d, i, j);
			int rc = 0;

			if (e.adapter->attach == SIO_ATTACH_NONE &&
			    (e.draft->to_index >= 0) == indexed)
				rc = join_hosts(d, &e);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

int sio_draft_join(struct sio_draft *d)
{
	int rc = add_default_switch(d);

	for (unsigned i = 0; rc == 0 && i < d->t->n_hosts; i++) {
		for (unsigned j = 0; rc == 0 && j < d->t->host[i].n_adapters; j++) {
			struct end e = end_at(d, i, j);

			rc = join_switch(d, &e);
		}
	}
	if (rc == 0)
		rc = join_all_hosts(d, true);
	return rc < 0 ? rc : join_all_hosts(d, false);
}
