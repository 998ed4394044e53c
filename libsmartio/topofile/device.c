/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of one host, as the file lists them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/draft.h"
#include "topofile/type.h"
#include "topofile/value.h"

#define FIRST_BUS 0x10u /* of slot 0; adapters sit on the buses below */

const char *sio_draft_device_path(const struct sio_topo_host *h, unsigned index, const char *key,
				  char *out)
{
	snprintf(out, SIO_DRAFT_PATH, "hosts.%s.devices.%s.%s", h->name, h->device[index].name,
		 key);
	return out;
}

/* Those of every device; its type has others beside them. */
enum { DEVICE_TYPE, DEVICE_SERIAL, DEVICE_SLOT, DEVICE_BASE, DEVICE_RESET = 5, DEVICE_IN };
const struct sio_field sio_draft_device_field[] = {
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
	{.name = NULL},
};
#define COMMON (sizeof(sio_draft_device_field) / sizeof(sio_draft_device_field[0]) - 1)
#define DEVICE_FIELDS (COMMON + SIO_DEVKEY_KEYS)

/* Virtual functions, of types that have them, in hosts that see them. */
static int check_functions(struct sio_draft *d, unsigned host, const struct sio_topo_device *dev,
			   struct sio_spot functions, struct sio_spot reset)
{
	struct sio_source *s = d->source;

	if (dev->virtual_functions == 0)
		return 0;
	if (d->t->host[host].machine) {
		sio_source_enter(s, "virtual_functions", 0);
		return sio_source_fail(s, functions,
				       "a host of kind machine gets physical functions alone; 0 is "
				       "right");
	}
	if (dev->reset == SIO_TOPO_RESET_BUS) {
		sio_source_enter(s, "reset", 0);
		return sio_source_fail(s, reset,
				       "a device with virtual functions is not alone on its bus; "
				       "function or none is right");
	}
	return 0;
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

const struct sio_topo_host *sio_draft_find_device(const struct sio_draft *d, const char *name,
						  size_t *ret_line)
{
	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		for (unsigned j = 0; j < d->t->host[i].n_devices; j++) {
			if (strcmp(d->t->host[i].device[j].name, name) == 0) {
				*ret_line = d->host[i].device[j].at.key.line;
				return &d->t->host[i];
			}
		}
	}
	return NULL;
}

static int check_device_name(struct sio_draft *d, struct sio_spot at, const char *name)
{
	const struct sio_topo_host *other;
	size_t line;

	other = sio_draft_find_device(d, name, &line);
	if (!other)
		return 0;
	return sio_source_fail(
		d->source, sio_source_key(at),
		"host '%s' has a device of this name in line %zu; a name that is given "
		"once in the cluster is right",
		other->name, line);
}

/* Key "virtual_functions", if the type has it. */
static struct sio_spot functions_spot(const struct sio_topo_device *dev,
				      const struct sio_spot *of_type)
{
	for (unsigned i = 0; i < dev->keys->n_keys; i++)
		if (strcmp(dev->keys->key[i].name, "virtual_functions") == 0)
			return of_type[i];
	return (struct sio_spot){0};
}

static int read_common(struct sio_draft *d, unsigned host, struct sio_topo_device *dev,
		       const struct sio_spot *spot)
{
	int rc = 0;

	if (spot[DEVICE_SERIAL].value)
		rc = read_serial(d->source, spot[DEVICE_SERIAL], dev->serial);
	if (rc == 0 && spot[DEVICE_RESET].value)
		rc = read_reset(d->source, spot[DEVICE_RESET], &dev->reset);
	if (rc == 0 && spot[DEVICE_IN].value)
		rc = sio_draft_read_in(d, host, spot[DEVICE_IN], &dev->in);
	return rc;
}

/* All values of @dev, whose type is known. */
static int read_values(struct sio_draft *d, unsigned host, struct sio_spot at,
		       struct sio_topo_device *dev, struct sio_spot spot[DEVICE_FIELDS])
{
	struct sio_field field[DEVICE_FIELDS];
	const struct sio_devtype *type = dev->keys;
	int rc;

	memcpy(field, sio_draft_device_field, COMMON * sizeof(field[0]));
	sio_type_fields(type->key, type->n_keys, field + COMMON);
	sio_type_presets(type->key, type->n_keys, dev);
	rc = sio_value_map(d->source, at, field, COMMON + type->n_keys, dev, spot);
	if (rc == 0)
		rc = read_common(d, host, dev, spot);
	if (rc == 0)
		rc = sio_type_read_rest(d, type, spot + COMMON, dev);
	if (rc == 0 && type->derive)
		type->derive(dev);
	if (rc == 0)
		rc = check_functions(d, host, dev, functions_spot(dev, spot + COMMON),
				     spot[DEVICE_RESET]);
	return rc;
}

static int read_device(struct sio_draft *d, unsigned host, struct sio_spot at, const char *name)
{
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_topo_device *dev = &h->device[h->n_devices];
	struct sio_draft_device *draft = &d->host[host].device[h->n_devices];
	struct sio_spot spot[DEVICE_FIELDS];
	int rc = check_device_name(d, at, name);

	if (rc < 0)
		return rc;
	*dev = (struct sio_topo_device){.dma_bits = 64,
					.reset = SIO_TOPO_RESET_FUNCTION,
					.link_width = 4,
					.link_generation = 3};
	memcpy(dev->name, name, strlen(name) + 1);
	rc = sio_type_find(d->source, at, &dev->keys);
	if (rc == 0)
		rc = read_values(d, host, at, dev, spot);
	if (rc < 0)
		return rc;
	snprintf(dev->type, sizeof(dev->type), "%s", dev->keys->name);
	*draft = (struct sio_draft_device){.at = at,
					   .slot_at = spot[DEVICE_SLOT],
					   .base_at = spot[DEVICE_BASE],
					   .serial_at = spot[DEVICE_SERIAL],
					   .in_at = spot[DEVICE_IN],
					   .functions_at = functions_spot(dev, spot + COMMON)};
	h->n_devices++;
	return 0;
}

/* Devices that stay, and whose slot nobody gave, stay in it if it is free. */
static void keep_slots(struct sio_draft *d, struct sio_topo_host *h, int *by_slot)
{
	for (unsigned i = 0; i < h->n_devices; i++) {
		const struct sio_topo_device *was =
			sio_draft_device_before(d, h->name, h->device[i].name);

		if (h->device[i].slot || !was || was->physical || by_slot[was->slot] >= 0)
			continue;
		h->device[i].slot = was->slot;
		by_slot[was->slot] = (int)i;
	}
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
	keep_slots(d, h, by_slot);
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
	int rc;

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
		size_t entry;

		rc = sio_value_key(s, key, name);
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
	rc = set_slots(d, host);
	return rc < 0 ? rc : sio_draft_add_functions(d, host);
}
