/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of one host, as they stand in the file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/draft.h"
#include "topofile/value.h"

#define MOST_VECTORS 2048u  /* of MSI-X */
#define MEMORY_VECTORS 256u /* a table of two pages */
#define UNITS 4u	    /* of an accelerator, if the file does not say */
#define NOT_GIVEN UINT32_MAX
#define FIRST_BUS 0x10u /* of slot 0; adapters sit on the buses below */

const char *sio_draft_device_path(const struct sio_topo_host *h, unsigned index, const char *key,
				  char *out)
{
	snprintf(out, SIO_DRAFT_PATH, "hosts.%s.devices.%s.%s", h->name, h->device[index].name,
		 key);
	return out;
}

enum {
	DEVICE_TYPE,
	DEVICE_SERIAL,
	DEVICE_SLOT,
	DEVICE_BASE,
	DEVICE_BLOCK,
	DEVICE_SIZE,
	DEVICE_VECTORS = 8,
	DEVICE_RESET = 10,
	DEVICE_IN,
	DEVICE_CMB = 14,
	DEVICE_UNITS,
	DEVICE_FIELDS
};
static const struct sio_field device_field[DEVICE_FIELDS] = {
	{.name = "type", .kind = SIO_VALUE_NODE},
	{.name = "serial", .kind = SIO_VALUE_NODE},
	{.name = "slot",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_device, slot),
	 .min = 1,
	 .max = SIO_DRAFT_DEVICES},
	{.name = "bar_base",
	 .kind = SIO_VALUE_SIZE,
	 .offset = offsetof(struct sio_topo_device, bar_base),
	 .min = SIO_TOPO_BAR_SPACE,
	 .max = SIO_DRAFT_HIGHEST,
	 .step = SIO_TOPO_BAR_SPACE},
	{.name = "block",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_device, block_size),
	 .min = 512,
	 .max = 4096},
	{.name = "size",
	 .kind = SIO_VALUE_SIZE,
	 .offset = offsetof(struct sio_topo_device, size),
	 .min = 4 * SIO_KIB,
	 .max = SIO_DRAFT_LARGEST,
	 .step = 4 * SIO_KIB},
	{.name = "queue_pairs",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_device, queue_pairs),
	 .min = 1,
	 .max = 65535},
	{.name = "queue_entries",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_device, queue_entries),
	 .min = 2,
	 .max = 65536},
	[DEVICE_VECTORS] = {.name = "vectors",
			    .kind = SIO_VALUE_NUMBER,
			    .offset = offsetof(struct sio_topo_device, vectors),
			    .min = 0,
			    .max = MOST_VECTORS},
	{.name = "dma_bits",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_device, dma_bits),
	 .min = 32,
	 .max = 64},
	[DEVICE_RESET] = {.name = "reset", .kind = SIO_VALUE_NODE},
	[DEVICE_IN] = {.name = "in", .kind = SIO_VALUE_NODE},
	{.name = "width",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_device, link_width),
	 .min = 1,
	 .max = 16,
	 .step = SIO_VALUE_POWER},
	{.name = "generation",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_device, link_generation),
	 .min = 1,
	 .max = 6},
	[DEVICE_CMB] = {.name = "cmb",
			.kind = SIO_VALUE_SIZE,
			.offset = offsetof(struct sio_topo_device, cmb),
			.min = 4 * SIO_KIB,
			.max = SIO_TOPO_BAR_SPACE / 2,
			.step = 4 * SIO_KIB},
	[DEVICE_UNITS] = {.name = "units",
			  .kind = SIO_VALUE_NUMBER,
			  .offset = offsetof(struct sio_topo_device, units),
			  .min = 1,
			  .max = SIO_TOPO_ACCEL_UNITS},
};

/* Types whose memory is a BAR: nothing else of a drive's keys counts. */
static const struct of_memory {
	const char *type, *name;
	uint64_t size, most; /* if the file does not say; 4 KiB at least */
	uint32_t vectors;
	bool has_units;
} of_memory[] = {
	{"memory", "a memory device", 4 * SIO_MIB, SIO_TOPO_BAR_SPACE / 2, 1, false},
	{"accelerator", "an accelerator", 16 * SIO_MIB, SIO_TOPO_ACCEL_MEMORY, 16, true},
};

static const struct of_memory *find_of_memory(const char *type)
{
	for (size_t i = 0; i < sizeof(of_memory) / sizeof(of_memory[0]); i++)
		if (strcmp(of_memory[i].type, type) == 0)
			return &of_memory[i];
	return NULL;
}

/* Types that the machine room has models of. */
static int read_type(struct sio_source *s, struct sio_spot at, struct sio_spot type, char *out)
{
	const char *text = type.value ? sio_source_text(type.value) : NULL;

	if (text && (strcmp(text, "nvme") == 0 || find_of_memory(text))) {
		memcpy(out, text, strlen(text) + 1);
		return 0;
	}
	sio_source_enter(s, "type", 0);
	if (!type.value)
		return sio_source_fail(s, sio_source_missing(at),
				       "missing; one of nvme, memory, accelerator is right");
	return sio_source_fail(s, type,
			       "not a type of device; one of nvme, memory, accelerator is right");
}

/* A BAR has a power of 2. */
static int read_memory(struct sio_source *s, struct sio_topo_device *dev, const struct of_memory *m,
		       const struct sio_spot *spot)
{
	if (spot[DEVICE_CMB].value) {
		sio_source_enter(s, "cmb", 0);
		return sio_source_fail(s, spot[DEVICE_CMB],
				       "of %s; nvme has one, 'size' is right here", m->name);
	}
	if (!spot[DEVICE_SIZE].value)
		dev->size = m->size;
	if (dev->size > m->most || dev->size & (dev->size - 1)) {
		sio_source_enter(s, "size", 0);
		return sio_source_fail(s, spot[DEVICE_SIZE],
				       "not a size of %s; a power of 2 up to %" PRIu64 "M is right",
				       m->name, m->most >> 20);
	}
	if (dev->vectors == NOT_GIVEN)
		dev->vectors = m->vectors;
	if (dev->vectors > MEMORY_VECTORS) {
		sio_source_enter(s, "vectors", 0);
		return sio_source_fail(s, spot[DEVICE_VECTORS],
				       "more than %s has; 0 to %u is right", m->name,
				       MEMORY_VECTORS);
	}
	return 0;
}

static int read_units(struct sio_source *s, struct sio_topo_device *dev, const struct of_memory *m,
		      const struct sio_spot *spot)
{
	if (m && m->has_units) {
		if (!spot[DEVICE_UNITS].value)
			dev->units = UNITS;
		return 0;
	}
	if (!spot[DEVICE_UNITS].value)
		return 0;
	sio_source_enter(s, "units", 0);
	return sio_source_fail(s, spot[DEVICE_UNITS],
			       "of a device that computes nothing; accelerator has them");
}

static int read_serial(struct sio_source *s, struct sio_spot at, char *out)
{
	const char *text = sio_source_text(at.value);
	size_t len = text ? strlen(text) : 0, i = 0;

	while (i < len && text[i] > ' ' && text[i] <= '~')
		i++;
	if (len == 0 || len > 20 || i < len) {
		sio_source_enter(s, "serial", 0);
		return sio_source_fail(
			s, at,
			"not a serial number; 1 to 20 printable characters without space is right");
	}
	memcpy(out, text, len + 1);
	return 0;
}

static int read_reset(struct sio_source *s, struct sio_spot at, uint32_t *out)
{
	static const char *const name[] = {[SIO_TOPO_RESET_NONE] = "none",
					   [SIO_TOPO_RESET_FUNCTION] = "function",
					   [SIO_TOPO_RESET_BUS] = "bus"};
	const char *text = sio_source_text(at.value);

	for (uint32_t i = 0; text && i < sizeof(name) / sizeof(name[0]); i++)
		if (strcmp(text, name[i]) == 0) {
			*out = i;
			return 0;
		}
	sio_source_enter(s, "reset", 0);
	return sio_source_fail(s, at, "not a kind of reset; one of function, bus, none is right");
}

static int check_device_name(struct sio_draft *d, struct sio_spot at, const char *name)
{
	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		for (unsigned j = 0; j < d->t->host[i].n_devices; j++) {
			if (strcmp(d->t->host[i].device[j].name, name) == 0)
				return sio_source_fail(
					d->source, sio_source_key(at),
					"host '%s' has a device of this name in line %u; a name that is "
					"given once in the cluster is right",
					d->t->host[i].name, d->host[i].device[j].at.key.line);
		}
	}
	return 0;
}

static int read_device(struct sio_draft *d, unsigned host, struct sio_spot at, const char *name)
{
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_topo_device *dev = &h->device[h->n_devices];
	struct sio_draft_device *draft = &d->host[host].device[h->n_devices];
	const struct of_memory *m = NULL;
	struct sio_spot spot[DEVICE_FIELDS];
	int rc = check_device_name(d, at, name);

	if (rc < 0)
		return rc;
	*dev = (struct sio_topo_device){.size = SIO_GIB,
					.block_size = 512,
					.queue_pairs = 31,
					.queue_entries = 1024,
					.vectors = NOT_GIVEN,
					.dma_bits = 64,
					.reset = SIO_TOPO_RESET_FUNCTION,
					.link_width = 4,
					.link_generation = 3};
	memcpy(dev->name, name, strlen(name) + 1);
	rc = sio_value_map(d->source, at, device_field, DEVICE_FIELDS, dev, spot);
	if (rc == 0)
		rc = read_type(d->source, at, spot[DEVICE_TYPE], dev->type);
	if (rc == 0 && spot[DEVICE_SERIAL].value)
		rc = read_serial(d->source, spot[DEVICE_SERIAL], dev->serial);
	if (rc == 0 && spot[DEVICE_RESET].value)
		rc = read_reset(d->source, spot[DEVICE_RESET], &dev->reset);
	if (rc == 0 && spot[DEVICE_IN].value)
		rc = sio_draft_read_in(d, host, spot[DEVICE_IN], &dev->in);
	if (rc == 0)
		m = find_of_memory(dev->type);
	if (rc == 0 && m)
		rc = read_memory(d->source, dev, m, spot);
	if (rc == 0)
		rc = read_units(d->source, dev, m, spot);
	if (rc == 0 && dev->cmb & (dev->cmb - 1)) {
		sio_source_enter(d->source, "cmb", 0);
		rc = sio_source_fail(d->source, spot[DEVICE_CMB],
				     "not a size of a BAR; a power of 2 is right");
	}
	if (rc < 0)
		return rc;
	if (dev->vectors == NOT_GIVEN) /* one for each queue */
		dev->vectors =
			dev->queue_pairs < MOST_VECTORS ? dev->queue_pairs + 1 : MOST_VECTORS;
	if (dev->block_size != 512 && dev->block_size != 4096) {
		sio_source_enter(d->source, "block", 0);
		return sio_source_fail(d->source, spot[DEVICE_BLOCK],
				       "not a block size; 512 or 4096 is right");
	}
	*draft = (struct sio_draft_device){.at = at,
					   .slot_at = spot[DEVICE_SLOT],
					   .base_at = spot[DEVICE_BASE],
					   .serial_at = spot[DEVICE_SERIAL],
					   .in_at = spot[DEVICE_IN]};
	h->n_devices++;
	return 0;
}

/* Slots that are given must differ; the other devices take the lowest that are left, in order. */
static int set_slots(struct sio_draft *d, unsigned host)
{
	struct sio_topo_host *h = &d->t->host[host];
	int by_slot[SIO_DRAFT_DEVICES + 1];
	char path[SIO_DRAFT_PATH];

	for (unsigned i = 0; i <= SIO_DRAFT_DEVICES; i++)
		by_slot[i] = -1;
	for (unsigned i = 0; i < h->n_devices; i++) {
		uint32_t slot = h->device[i].slot;

		if (slot && by_slot[slot] >= 0)
			return sio_source_fail_at(
				d->source, d->host[host].device[i].slot_at,
				sio_draft_device_path(h, i, "slot", path),
				"device '%s' is in this slot; one that is free is right",
				h->device[by_slot[slot]].name);
		if (slot)
			by_slot[slot] = (int)i;
	}
	for (unsigned i = 0, slot = 1; i < h->n_devices; i++) {
		if (h->device[i].slot == 0) {
			while (by_slot[slot] >= 0)
				slot++;
			by_slot[slot] = (int)i;
			h->device[i].slot = slot;
		}
		h->device[i].bdf = (FIRST_BUS + h->device[i].slot) << 8;
	}
	return 0;
}

int sio_draft_read_devices(struct sio_draft *d, unsigned host, struct sio_spot at)
{
	struct sio_source *s = d->source;
	struct sio_topo_host *h = &d->t->host[host];
	size_t mark = sio_source_enter(s, "devices", 0);

	if (sio_value_is_nothing(at.value)) {
		sio_source_leave(s, mark);
		return 0;
	}
	if (at.value->type != YAML_MAPPING_NODE)
		return sio_source_fail(s, at,
				       "not a mapping; one such as nvme0: { type: nvme } is right");
	h->device = calloc(SIO_DRAFT_DEVICES, sizeof(*h->device));
	if (!h->device)
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
		if (h->n_devices == SIO_DRAFT_DEVICES)
			return sio_source_fail(s, sio_source_key(item),
					       "a device too many; at most %d is right",
					       SIO_DRAFT_DEVICES);
		rc = read_device(d, host, item, name);
		if (rc < 0)
			return rc;
		sio_source_leave(s, entry);
	}
	sio_source_leave(s, mark);
	return set_slots(d, host);
}
