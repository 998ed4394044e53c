/* SPDX-License-Identifier: BSD-2-Clause */
/* One host, as the file describes it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/draft.h"
#include "topofile/value.h"

#define MAPPED_RAM (2 * SIO_GIB) /* most of a machine whose RAM others map */

enum {
	HOST_NODE,
	HOST_RAM,
	HOST_BASE,
	HOST_POOL,
	HOST_IOMMU,
	HOST_ADDRESS,
	HOST_ADAPTERS,
	HOST_DEVICES,
	HOST_KIND,
	HOST_WINDOW,
	HOST_CHASSIS,
	HOST_FIELDS
};
static const struct sio_field host_field[HOST_FIELDS] = {
	[HOST_NODE] = {.name = "node",
		       .kind = SIO_VALUE_NUMBER,
		       .offset = offsetof(struct sio_topo_host, node),
		       .min = 4,
		       .max = SIO_MAX_NODE,
		       .step = 4},
	[HOST_RAM] = {.name = "ram",
		      .kind = SIO_VALUE_SIZE,
		      .offset = offsetof(struct sio_topo_host, ram_size),
		      .min = SIO_MIB,
		      .max = SIO_DRAFT_LARGEST,
		      .step = SIO_PAGE_SIZE},
	[HOST_BASE] = {.name = "ram_base",
		       .kind = SIO_VALUE_SIZE,
		       .offset = offsetof(struct sio_topo_host, ram_base),
		       .min = SIO_MIB,
		       .max = SIO_DRAFT_HIGHEST,
		       .step = SIO_PAGE_SIZE},
	[HOST_POOL] = {.name = "pool",
		       .kind = SIO_VALUE_SIZE,
		       .offset = offsetof(struct sio_topo_host, pool_size),
		       .min = SIO_MIB,
		       .max = SIO_DRAFT_LARGEST,
		       .step = SIO_PAGE_SIZE},
	[HOST_IOMMU] = {.name = "iommu",
			.kind = SIO_VALUE_FLAG,
			.offset = offsetof(struct sio_topo_host, iommu)},
	[HOST_ADDRESS] = {.name = "address", .kind = SIO_VALUE_NODE},
	[HOST_ADAPTERS] = {.name = "adapters", .kind = SIO_VALUE_NODE},
	[HOST_DEVICES] = {.name = "devices", .kind = SIO_VALUE_NODE},
	[HOST_KIND] = {.name = "kind", .kind = SIO_VALUE_NODE},
	[HOST_WINDOW] = {.name = "window", .kind = SIO_VALUE_NODE},
	[HOST_CHASSIS] = {.name = "chassis", .kind = SIO_VALUE_NODE},
};

/* No two hosts of a name, no host named as a switch: "to" could mean either. */
static int check_host_name(struct sio_draft *d, struct sio_spot at, const char *name)
{
	const struct sio_topology *t = d->t;

	at = sio_source_missing(at);
	for (unsigned i = 0; i < t->n_hosts; i++) {
		if (strcmp(t->host[i].name, name) == 0)
			return sio_source_fail(d->source, at,
					       "given twice, first in line %u; once is right",
					       d->host[i].at.key.line);
	}
	for (unsigned i = 0; i < t->n_switches; i++) {
		if (strcmp(t->sw[i].name, name) == 0)
			return sio_source_fail(
				d->source, at,
				"a switch has this name; one that no switch has is right");
	}
	return 0;
}

static int check_node(struct sio_draft *d, unsigned host)
{
	const struct sio_topo_host *h = &d->t->host[host];
	struct sio_spot at = d->host[host].node_at;
	bool given = at.value;
	char path[SIO_DRAFT_PATH];

	snprintf(path, sizeof(path), "hosts.%s.node", h->name);
	if (h->node == SIO_MULTICAST_NODE)
		return sio_source_fail_at(d->source, at, path,
					  "the multicast group's, so no host's; another multiple "
					  "of 4 from 4 to %d is right",
					  SIO_MAX_NODE);
	for (unsigned i = 0; i < host; i++) {
		if (d->t->host[i].node != h->node)
			continue;
		if (!given)
			at = sio_source_missing(d->host[host].at);
		return sio_source_fail_at(
			d->source, at, path,
			"%u%s is host '%s' (line %u); an id that no host has, from "
			"4 to %d in steps of 4, is right",
			h->node, given ? "" : ", by its place in the file,", d->t->host[i].name,
			d->host[i].at.key.line, SIO_MAX_NODE);
	}
	return 0;
}

/* What only emulated hardware can be told. */
static int check_real(struct sio_draft *d, unsigned host, const struct sio_spot spot[HOST_FIELDS])
{
	static const int emulated[] = {HOST_RAM,   HOST_BASE,	 HOST_POOL,
				       HOST_IOMMU, HOST_CHASSIS, HOST_DEVICES};

	for (unsigned i = 0; d->t->host[host].real && i < sizeof(emulated) / sizeof(emulated[0]);
	     i++) {
		if (!spot[emulated[i]].value)
			continue;
		sio_source_enter(d->source, host_field[emulated[i]].name, 0);
		return sio_source_fail(d->source, sio_source_key(spot[emulated[i]]),
				       "of emulated hosts, and this one's adapters have 'pci'; a "
				       "real host has what its machine has");
	}
	return 0;
}

/* One of two words. */
static int read_choice(struct sio_draft *d, const char *key, struct sio_spot at, const char *no,
		       const char *yes, bool *ret)
{
	size_t mark = sio_source_enter(d->source, key, 0);
	char word[SIO_NAME_LEN];
	int rc = sio_value_name(d->source, at, word);

	if (rc < 0)
		return rc;
	if (strcmp(word, no) != 0 && strcmp(word, yes) != 0)
		return sio_source_fail(d->source, at, "%s or %s is right", no, yes);
	*ret = strcmp(word, yes) == 0;
	sio_source_leave(d->source, mark);
	return 0;
}

static int foreign_key(struct sio_draft *d, const struct sio_spot spot[HOST_FIELDS], int key,
		       const char *text)
{
	sio_source_enter(d->source, host_field[key].name, 0);
	return sio_source_fail(d->source, sio_source_key(spot[key]), "%s", text);
}

/*
 * A virtual machine has its RAM, its IOMMU and its addresses from whoever runs it. Where others map
 * its RAM, that is in one file with theirs, below the hole that PCs have under 4G.
 */
static int read_machine(struct sio_draft *d, unsigned host, const struct sio_spot spot[HOST_FIELDS])
{
	static const int foreign[] = {HOST_BASE, HOST_POOL, HOST_IOMMU, HOST_CHASSIS};
	struct sio_topo_host *h = &d->t->host[host];
	int rc = 0;

	for (unsigned i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (spot[foreign[i]].value)
			return foreign_key(d, spot, foreign[i],
					   "a host of kind machine has it from whoever runs it; no "
					   "such key is right");
	if (spot[HOST_ADAPTERS].value)
		rc = sio_draft_read_adapters(d, host, spot[HOST_ADAPTERS]);
	if (rc == 0 && spot[HOST_ADDRESS].value && h->n_adapters == 0)
		return foreign_key(d, spot, HOST_ADDRESS,
				   "the machine has no adapters, so no daemon; 'adapters' beside "
				   "it is right");
	if (rc == 0 && spot[HOST_WINDOW].value && h->n_adapters == 0)
		return foreign_key(d, spot, HOST_WINDOW,
				   "the machine has no adapters, so no window; 'adapters' beside "
				   "it is right");
	if (rc == 0 && spot[HOST_WINDOW].value)
		rc = read_choice(d, "window", spot[HOST_WINDOW], "exact", "mapped", &h->mapped);
	if (rc < 0)
		return rc;
	if (spot[HOST_RAM].value && !h->mapped)
		return foreign_key(d, spot, HOST_RAM,
				   "a host of kind machine has it from whoever runs it; with "
				   "'window: mapped' it is right");
	if (h->mapped && h->ram_size > MAPPED_RAM) {
		sio_source_enter(d->source, "ram", 0);
		return sio_source_fail(d->source, spot[HOST_RAM],
				       "a machine with 'window: mapped' has its RAM below the hole "
				       "under 4G; at most 2G is right");
	}
	return 0;
}

static int read_host_adapters(struct sio_draft *d, unsigned host,
			      const struct sio_spot spot[HOST_FIELDS])
{
	int rc = 0;

	if (spot[HOST_WINDOW].value)
		return foreign_key(d, spot, HOST_WINDOW,
				   "of machines; with 'kind: machine' it is right");
	if (spot[HOST_CHASSIS].value)
		rc = sio_draft_read_chassis(d, host, spot[HOST_CHASSIS]);
	if (rc == 0 && spot[HOST_ADAPTERS].value)
		rc = sio_draft_read_adapters(d, host, spot[HOST_ADAPTERS]);
	else if (rc == 0)
		sio_draft_default_adapter(d, host);
	return rc;
}

static int read_parts(struct sio_draft *d, unsigned host, const struct sio_spot spot[HOST_FIELDS])
{
	struct sio_topo_host *h = &d->t->host[host];
	int rc = 0;

	if (spot[HOST_KIND].value)
		rc = read_choice(d, "kind", spot[HOST_KIND], "emulated", "machine", &h->machine);
	if (rc == 0)
		rc = h->machine ? read_machine(d, host, spot) : read_host_adapters(d, host, spot);
	if (rc == 0 && spot[HOST_ADDRESS].value)
		rc = sio_draft_read_address(d, host, spot[HOST_ADDRESS]);
	if (rc == 0)
		rc = check_real(d, host, spot);
	if (rc == 0 && spot[HOST_DEVICES].value)
		rc = sio_draft_read_devices(d, host, spot[HOST_DEVICES]);
	return rc < 0 ? rc : sio_draft_check_chassis(d, host);
}

/* 4, 8, ..., but not the multicast group's. */
static uint32_t node_by_place(unsigned host)
{
	uint32_t node = (host + 1) * 4;

	return node < SIO_MULTICAST_NODE ? node : node + 4;
}

int sio_draft_add_host(struct sio_draft *d, yaml_node_t *key, yaml_node_t *value)
{
	unsigned host = d->t->n_hosts;
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_spot at = sio_source_spot(key, value), spot[HOST_FIELDS];
	char name[SIO_NAME_LEN];
	int rc = sio_value_key(d->source, key, name);
	size_t mark;

	if (rc < 0)
		return rc;
	mark = sio_source_enter(d->source, name, 0);
	if (host == d->max_hosts)
		return sio_source_fail(d->source, sio_source_key(at),
				       "a host too many; at most %d is right", SIO_MAX_HOSTS);
	rc = check_host_name(d, at, name);
	if (rc < 0)
		return rc;
	*h = (struct sio_topo_host){.node = node_by_place(host), .ram_size = 256 * SIO_MIB};
	memcpy(h->name, name, strlen(name) + 1);
	rc = sio_value_map(d->source, at, host_field, HOST_FIELDS, h, spot);
	if (rc < 0)
		return rc;
	d->host[host].at = at;
	d->host[host].node_at = spot[HOST_NODE];
	d->host[host].base_at = spot[HOST_BASE];
	d->host[host].pool_at = spot[HOST_POOL];
	d->t->n_hosts++; /* from now on it is freed with the topology */
	rc = check_node(d, host);
	if (rc == 0)
		rc = read_parts(d, host, spot);
	if (rc == 0)
		sio_source_leave(d->source, mark);
	return rc;
}
