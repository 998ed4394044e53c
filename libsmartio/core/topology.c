/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/topology.h"

uint64_t sio_topology_bar_space(const struct sio_topo_device *d)
{
	/* The registers, and behind them at a multiple of its size the memory. */
	if (d->units && 2 * d->size > SIO_TOPO_BAR_SPACE)
		return 2 * d->size;
	return SIO_TOPO_BAR_SPACE;
}

static uint32_t number_of(uint64_t n)
{
	return (uint32_t)(n % SIO_TOPO_NUMBERS) + 1;
}

uint32_t sio_topology_number(const char *name)
{
	size_t stem = strlen(name);
	uint64_t sum, last = 0;

	while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
		stem--;
	/* A number without zeros before it, for "d00" is another name than "d0". */
	while (name[stem] == '0' && name[stem + 1])
		stem++;
	sum = sio_hash_bytes(name, stem);
	for (name += stem; *name; name++)
		last = last * 10 + (uint64_t)(*name - '0');
	return number_of((sum ^ sum >> 32) % SIO_TOPO_NUMBERS + last % SIO_TOPO_NUMBERS);
}

uint32_t sio_topology_place_number(uint32_t bdf)
{
	/* Machines have a domain or a few; one of many may share its number with another. */
	return bdf && bdf <= SIO_TOPO_NUMBERS ? bdf : number_of(bdf);
}

const struct sio_topo_host *sio_topology_host(const struct sio_topology *t, uint32_t node)
{
	for (unsigned i = 0; i < t->n_hosts; i++) {
		if (t->host[i].node == node)
			return &t->host[i];
	}
	return NULL;
}

const struct sio_topo_host *sio_topology_host_by_name(const struct sio_topology *t,
						      const char *name)
{
	for (unsigned i = 0; i < t->n_hosts; i++) {
		if (strcmp(t->host[i].name, name) == 0)
			return &t->host[i];
	}
	return NULL;
}

const struct sio_topo_device *sio_topology_device(const struct sio_topology *t, uint32_t fdid,
						  const struct sio_topo_host **ret_host)
{
	const struct sio_topo_host *host = sio_topology_host(t, sio_topology_fdid_node(fdid));

	for (unsigned i = 0; host && i < host->n_devices; i++) {
		if (host->device[i].fdid != fdid)
			continue;
		if (ret_host)
			*ret_host = host;
		return &host->device[i];
	}
	return NULL;
}

/* Links between two adapters of different hosts; 0: not joined. */
static unsigned hops_between(const struct sio_topology *t, const struct sio_topo_adapter *a,
			     const struct sio_topo_adapter *b)
{
	uint8_t trunks;

	if (a->attach != b->attach || a->attach == SIO_ATTACH_NONE)
		return 0;
	if (a->attach_index == b->attach_index)
		return a->attach == SIO_ATTACH_SWITCH ? 2 : 1;
	if (a->attach == SIO_ATTACH_LINK || !t->distance)
		return 0;
	trunks = t->distance[a->attach_index * t->n_switches + b->attach_index];
	return trunks == SIO_TOPO_FAR ? 0 : 2u + trunks;
}

static bool comes_before(const struct sio_path *a, const struct sio_path *b)
{
	if (a->hops != b->hops)
		return a->hops < b->hops;
	if (a->adapter != b->adapter)
		return a->adapter < b->adapter;
	return a->peer_adapter < b->peer_adapter;
}

/* All paths, in order. Return: how many. */
static unsigned all_paths(const struct sio_topology *t, const struct sio_topo_host *a,
			  const struct sio_topo_host *b,
			  struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->n_adapters; i++) {
		for (unsigned j = 0; j < b->n_adapters; j++) {
			struct sio_path p = {.adapter = i, .peer_adapter = j};
			unsigned at = n;

			p.hops = hops_between(t, &a->adapter[i], &b->adapter[j]);
			if (p.hops == 0)
				continue;
			for (; at > 0 && comes_before(&p, &path[at - 1]); at--)
				path[at] = path[at - 1];
			path[at] = p;
			n++;
		}
	}
	return n;
}

const struct sio_topo_host *sio_topology_member(const struct sio_topology *t, uint32_t node)
{
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++) {
		if (t->host[i].node == node)
			return &t->host[i];
	}
	return NULL;
}

static unsigned paths_between(const struct sio_topology *t, uint32_t from, uint32_t to,
			      struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS])
{
	const struct sio_topo_host *a = sio_topology_member(t, from),
				   *b = sio_topology_member(t, to);

	return a && b && a != b ? all_paths(t, a, b, path) : 0;
}

unsigned sio_topology_paths(const struct sio_topology *t, uint32_t from, uint32_t to,
			    struct sio_path *path, unsigned max)
{
	struct sio_path all[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned n = paths_between(t, from, to, all);

	for (unsigned i = 0; i < n && i < max; i++)
		path[i] = all[i];
	return n;
}

/* One switch's row, nearest first: what is reached in one round is gone on from in the next. */
static void measure_from(const struct sio_topology *t, unsigned from, const bool *out, uint8_t *row)
{
	bool more = true;

	memset(row, SIO_TOPO_FAR, t->n_switches);
	row[from] = 0;
	for (uint8_t at = 0; more; at++) {
		more = false;
		for (unsigned i = 0; i < t->n_trunks; i++) {
			const unsigned *sw = t->trunk[i].sw;

			if (out && out[i])
				continue;
			for (unsigned end = 0; end < 2; end++) {
				if (row[sw[end]] != at || row[sw[!end]] != SIO_TOPO_FAR)
					continue;
				row[sw[!end]] = at + 1;
				more = true;
			}
		}
	}
}

void sio_topology_distances(const struct sio_topology *t, const bool *out, uint8_t *distance)
{
	for (unsigned i = 0; i < t->n_switches; i++)
		measure_from(t, i, out, distance + (size_t)i * t->n_switches);
}

int sio_topology_measure(struct sio_topology *t)
{
	if (t->n_trunks == 0)
		return 0;
	t->distance = calloc(t->n_switches, t->n_switches);
	if (!t->distance)
		return -ENOMEM;
	sio_topology_distances(t, NULL, t->distance);
	return 0;
}

/* Number @from of the array, among the hosts: these are ascending by node. */
static void take_in(struct sio_topology *t, unsigned from)
{
	const struct sio_topo_host h = t->host[from];
	unsigned to = t->n_hosts;

	while (to > 0 && t->host[to - 1].node > h.node)
		to--;
	memmove(&t->host[to + 1], &t->host[to], (from - to) * sizeof(h));
	t->host[to] = h;
	t->n_hosts++;
	t->n_machines--;
}

void sio_topology_include_machines(struct sio_topology *t, bool all)
{
	unsigned n = t->n_hosts + t->n_machines;

	for (unsigned i = t->n_hosts; i < n; i++) {
		struct sio_topo_host *h = &t->host[i];

		if (!all && !h->address.port)
			continue;
		if (!all) {
			free(h->device);
			h->device = NULL;
			h->n_devices = 0;
			h->real = true;
		}
		take_in(t, i);
	}
	t->machine = &t->host[t->n_hosts];
}

unsigned sio_topology_switch(const struct sio_topology *t, const char *name)
{
	unsigned i = 0;

	while (i < t->n_switches && strcmp(t->sw[i].name, name) != 0)
		i++;
	return i;
}

/* Whichever end the file names first. */
static bool same_ends(const struct sio_topology *t, const struct sio_topo_trunk *x,
		      const struct sio_topology *of, const struct sio_topo_trunk *y)
{
	for (unsigned turn = 0; turn < 2; turn++) {
		bool same = true;

		for (unsigned end = 0; end < 2; end++) {
			unsigned other = end ^ turn;

			same &= x->port[end] == y->port[other] &&
				strcmp(t->sw[x->sw[end]].name, of->sw[y->sw[other]].name) == 0;
		}
		if (same)
			return true;
	}
	return false;
}

unsigned sio_topology_trunk(const struct sio_topology *t, const struct sio_topology *of,
			    unsigned index)
{
	const struct sio_topo_trunk *x = &of->trunk[index];
	unsigned before = 0, i = 0;

	for (unsigned k = 0; k < index; k++)
		before += same_ends(of, &of->trunk[k], of, x);
	while (i < t->n_trunks && (!same_ends(t, &t->trunk[i], of, x) || before-- > 0))
		i++;
	return i;
}

unsigned sio_topology_ports(uint32_t width, uint32_t lanes)
{
	return width > lanes ? width / lanes : 1;
}

bool sio_topology_apart(const struct sio_topo_host *a, const struct sio_topo_host *b)
{
	return a->address.port && b->address.port &&
	       (a->address.v6 != b->address.v6 ||
		memcmp(a->address.ip, b->address.ip, sizeof(a->address.ip)) != 0);
}

int sio_topology_align(struct sio_topology *t, const struct sio_topology *to)
{
	struct sio_topo_host *host = calloc(to->n_hosts + t->n_hosts + 1u, sizeof(*host));
	unsigned n = to->n_hosts;

	if (!host)
		return -ENOMEM;
	for (unsigned i = 0; i < to->n_hosts; i++)
		host[i].node = to->host[i].node;
	for (unsigned i = 0; i < t->n_hosts; i++) {
		const struct sio_topo_host *place = sio_topology_host(to, t->host[i].node);

		host[place ? place - to->host : n++] = t->host[i];
	}
	free(t->host);
	t->host = host;
	t->n_hosts = n;
	t->machine = host + n;
	return 0;
}

void sio_topology_free(struct sio_topology *t)
{
	if (!t)
		return;
	for (unsigned i = 0; t->host && i < t->n_hosts + t->n_machines; i++) {
		free(t->host[i].device);
		free(t->host[i].chassis);
	}
	while (t->files) {
		struct sio_topo_file *file = t->files;

		t->files = file->next;
		free(file);
	}
	sio_policy_done(&t->policy);
	free(t->host);
	free(t->sw);
	free(t->trunk);
	free(t->distance);
	free(t);
}
