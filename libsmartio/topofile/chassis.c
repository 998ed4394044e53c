/* SPDX-License-Identifier: BSD-2-Clause */
/* The expansion chassis of one host, and what is in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/timing.h"
#include "topofile/draft.h"
#include "topofile/value.h"

enum {
	BOX_IN,
	BOX_PORTS,
	BOX_LANES,
	BOX_WIDTH,
	BOX_GENERATION,
	BOX_LATENCY,
	BOX_APERTURE,
	BOX_FIELDS
};
static const struct sio_field box_field[BOX_FIELDS] = {
	[BOX_IN] = {.name = "in", .kind = SIO_VALUE_NODE},
	[BOX_PORTS] = {.name = "ports",
		       .kind = SIO_VALUE_NUMBER,
		       .offset = offsetof(struct sio_topo_chassis, ports),
		       .min = 2,
		       .max = SIO_DRAFT_PORTS},
	[BOX_LANES] = {.name = "lanes",
		       .kind = SIO_VALUE_NUMBER,
		       .offset = offsetof(struct sio_topo_chassis, lanes),
		       .min = 1,
		       .max = 16,
		       .step = SIO_VALUE_POWER},
	[BOX_WIDTH] = {.name = "width",
		       .kind = SIO_VALUE_NUMBER,
		       .offset = offsetof(struct sio_topo_chassis, link_width),
		       .min = 1,
		       .max = 16,
		       .step = SIO_VALUE_POWER},
	[BOX_GENERATION] = {.name = "generation",
			    .kind = SIO_VALUE_NUMBER,
			    .offset = offsetof(struct sio_topo_chassis, link_generation),
			    .min = 1,
			    .max = 6},
	[BOX_LATENCY] = {.name = "latency",
			 .kind = SIO_VALUE_NUMBER,
			 .offset = offsetof(struct sio_topo_chassis, latency),
			 .max = SIO_DRAFT_LATENCY},
	[BOX_APERTURE] = {.name = "aperture",
			  .kind = SIO_VALUE_SIZE,
			  .offset = offsetof(struct sio_topo_chassis, aperture),
			  .min = SIO_MIB,
			  .max = SIO_DRAFT_HIGHEST,
			  .step = SIO_MIB},
};

int sio_draft_read_in(struct sio_draft *d, unsigned host, struct sio_spot at, unsigned *ret)
{
	const struct sio_topo_host *h = &d->t->host[host];
	const char *text = sio_source_text(at.value);
	size_t mark = sio_source_enter(d->source, "in", 0);

	for (unsigned i = 0; text && i < h->n_chassis; i++) {
		if (strcmp(h->chassis[i].name, text) != 0)
			continue;
		*ret = i + 1;
		sio_source_leave(d->source, mark);
		return 0;
	}
	return sio_source_fail(
		d->source, at,
		"the host has no such chassis; a name from its 'chassis' (of another "
		"chassis: one that stands before it) is right");
}

static int read_box(struct sio_draft *d, unsigned host, struct sio_spot at, const char *name)
{
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_topo_chassis *c = &h->chassis[h->n_chassis];
	struct sio_spot spot[BOX_FIELDS];
	int rc;

	for (unsigned i = 0; i < h->n_chassis; i++) {
		if (strcmp(h->chassis[i].name, name) == 0)
			return sio_source_fail(d->source, sio_source_missing(at),
					       "given twice, first in line %u; once is right",
					       d->host[host].chassis[i].at.key.line);
	}
	*c = (struct sio_topo_chassis){.lanes = 16,
				       .link_width = 8,
				       .link_generation = 3,
				       .latency = SIO_TIMING_CHASSIS_NS};
	memcpy(c->name, name, strlen(name) + 1);
	rc = sio_value_map(d->source, at, box_field, BOX_FIELDS, c, spot);
	if (rc == 0 && spot[BOX_IN].value)
		rc = sio_draft_read_in(d, host, spot[BOX_IN], &c->in);
	if (rc < 0)
		return rc;
	if (spot[BOX_LANES].value && !spot[BOX_PORTS].value) {
		sio_source_enter(d->source, "lanes", 0);
		return sio_source_fail(d->source, sio_source_key(spot[BOX_LANES]),
				       "of each port, and the chassis has no 'ports'; both, or "
				       "none, is right");
	}
	d->host[host].chassis[h->n_chassis++] =
		(struct sio_draft_chassis){.at = at, .aperture_at = spot[BOX_APERTURE]};
	return 0;
}

int sio_draft_read_chassis(struct sio_draft *d, unsigned host, struct sio_spot at)
{
	struct sio_source *s = d->source;
	struct sio_topo_host *h = &d->t->host[host];
	size_t mark = sio_source_enter(s, "chassis", 0);

	if (at.value->type != YAML_MAPPING_NODE)
		return sio_source_fail(s, at,
				       "not a mapping; one such as box: { ports: 24, lanes: 4 } "
				       "is right");
	h->chassis = calloc(SIO_MAX_CHASSIS, sizeof(*h->chassis));
	if (!h->chassis)
		return sio_source_no_memory(s);
	for (yaml_node_pair_t *p = at.value->data.mapping.pairs.start;
	     p < at.value->data.mapping.pairs.top; p++) {
		yaml_node_t *key = sio_source_node(s, p->key);
		struct sio_spot item = sio_source_inside(at, key, sio_source_node(s, p->value));
		char name[SIO_NAME_LEN];
		int rc = sio_value_key(s, key, name);
		size_t entry;

		if (rc < 0)
			return rc;
		entry = sio_source_enter(s, name, 0);
		if (h->n_chassis == SIO_MAX_CHASSIS)
			return sio_source_fail(s, sio_source_key(item),
					       "a chassis too many; at most %d is right",
					       SIO_MAX_CHASSIS);
		rc = read_box(d, host, item, name);
		if (rc < 0)
			return rc;
		sio_source_leave(s, entry);
	}
	sio_source_leave(s, mark);
	return 0;
}

/* ---- what fits ---- */

/* What the links and the BARs in each chassis take; by index. */
struct taken {
	unsigned ports[SIO_MAX_CHASSIS];
	uint64_t bytes[SIO_MAX_CHASSIS];
};

/*
 * Counts something in chassis number @in - 1; @in 0: in the host itself. @width 0: it has no link
 * of its own, as a virtual function.
 */
static int add(struct sio_draft *d, const struct sio_topo_host *h, struct taken *taken, unsigned in,
	       uint32_t width, uint64_t bytes, struct sio_spot at, const char *path)
{
	const struct sio_topo_chassis *c = in ? &h->chassis[in - 1] : NULL;
	unsigned ports, left;

	if (!c)
		return 0;
	taken->bytes[in - 1] += bytes;
	if (c->ports == 0 || width == 0)
		return 0;
	ports = sio_topology_ports(width, c->lanes);
	left = c->ports - taken->ports[in - 1];
	if (ports > left)
		return sio_source_fail_at(
			d->source, at, path,
			"too many lanes: x%u takes %u port%s of %u lanes, and chassis '%s' has "
			"%u of %u left; fewer lanes or another chassis is right",
			width, ports, ports == 1 ? "" : "s", c->lanes, c->name, left, c->ports);
	taken->ports[in - 1] += ports;
	return 0;
}

/* Its own link towards the host comes first. */
static int add_upward(struct sio_draft *d, unsigned host, struct taken *taken, unsigned index)
{
	const struct sio_topo_host *h = &d->t->host[host];
	const struct sio_topo_chassis *c = &h->chassis[index];
	char path[SIO_DRAFT_PATH];

	snprintf(path, sizeof(path), "hosts.%s.chassis.%s.width", h->name, c->name);
	return add(d, h, taken, index + 1, c->link_width, 0,
		   sio_source_missing(d->host[host].chassis[index].at), path);
}

static int check_aperture(struct sio_draft *d, unsigned host, const struct taken *taken,
			  unsigned index)
{
	const struct sio_topo_host *h = &d->t->host[host];
	const struct sio_topo_chassis *c = &h->chassis[index];
	char path[SIO_DRAFT_PATH], size[SIO_SIZE_TEXT];

	if (c->aperture == 0 || taken->bytes[index] <= c->aperture)
		return 0;
	snprintf(path, sizeof(path), "hosts.%s.chassis.%s.aperture", h->name, c->name);
	return sio_source_fail_at(
		d->source, d->host[host].chassis[index].aperture_at, path,
		"too little: the BARs behind it, windows of adapters among them, take %s; that "
		"at least is right",
		sio_value_size_text(taken->bytes[index], size));
}

static int add_all(struct sio_draft *d, unsigned host, struct taken *taken)
{
	const struct sio_topo_host *h = &d->t->host[host];
	const struct sio_draft_host *draft = &d->host[host];
	char path[SIO_DRAFT_PATH];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < h->n_chassis; i++)
		rc = add_upward(d, host, taken, i);
	for (unsigned i = 0; rc == 0 && i < h->n_adapters; i++)
		rc = add(d, h, taken, h->adapter[i].in, h->adapter[i].link_width,
			 h->adapter[i].window_size, draft->adapter[i].in_at,
			 sio_draft_adapter_path(h, i, "in", path));
	for (unsigned i = 0; rc == 0 && i < h->n_devices; i++)
		rc = add(d, h, taken, h->device[i].in,
			 h->device[i].physical ? 0 : h->device[i].link_width,
			 sio_topology_bar_space(&h->device[i]), draft->device[i].in_at,
			 sio_draft_device_path(h, i, "in", path));
	return rc;
}

int sio_draft_check_chassis(struct sio_draft *d, unsigned host)
{
	const struct sio_topo_host *h = &d->t->host[host];
	struct taken taken = {{0}, {0}};
	char path[SIO_DRAFT_PATH];
	int rc = add_all(d, host, &taken);

	/* Each is behind one that stands before it. */
	for (unsigned i = h->n_chassis; rc == 0 && i-- > 0;) {
		const struct sio_topo_chassis *c = &h->chassis[i];

		snprintf(path, sizeof(path), "hosts.%s.chassis.%s.in", h->name, c->name);
		rc = check_aperture(d, host, &taken, i);
		if (rc == 0)
			rc = add(d, h, &taken, c->in, c->link_width,
				 c->aperture ? c->aperture : taken.bytes[i],
				 sio_source_missing(d->host[host].chassis[i].at), path);
	}
	return rc;
}
