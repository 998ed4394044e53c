/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the keys of a device that its type declares (core/devtype.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topofile/type.h"
#include "topofile/types.h"

#define KNOWN_TEXT 128

static const struct sio_devkey *find_key(const struct sio_devtype *t, const char *name)
{
	for (unsigned i = 0; i < t->n_keys; i++)
		if (strcmp(t->key[i].name, name) == 0)
			return &t->key[i];
	return NULL;
}

static bool is_common(const char *name)
{
	for (const struct sio_field *f = sio_draft_device_field; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return true;
	return false;
}

/* "nvme, memory": the types that have key @name; NULL: all types. */
static const char *types_with(const char *name, char out[KNOWN_TEXT])
{
	size_t len = 0;

	out[0] = '\0';
	for (const struct sio_devtype *const *t = sio_device_types; *t && len < KNOWN_TEXT; t++)
		if (!name || find_key(*t, name))
			len += (size_t)snprintf(out + len, KNOWN_TEXT - len, "%s%s",
						len ? ", " : "", (*t)->name);
	return out;
}

/* Refuses keys that only other types have, with the names of these types. */
static int check_keys(struct sio_source *s, struct sio_spot at, const struct sio_devtype *type)
{
	char others[KNOWN_TEXT];

	for (yaml_node_pair_t *p = at.value->data.mapping.pairs.start;
	     p < at.value->data.mapping.pairs.top; p++) {
		yaml_node_t *key = sio_source_node(s, p->key);
		const char *name = sio_source_text(key);

		if (!name || is_common(name) || find_key(type, name) || !*types_with(name, others))
			continue;
		sio_source_enter(s, name, 0);
		return sio_source_fail(
			s, sio_source_key(sio_source_inside(at, key, sio_source_node(s, p->value))),
			"a key of %s, not of %s; a device without it is right", others,
			type->title);
	}
	return 0;
}

int sio_type_find(struct sio_source *s, struct sio_spot at, const struct sio_devtype **ret)
{
	char known[KNOWN_TEXT];
	struct sio_spot type = {.value = NULL};
	const char *text;

	if (!sio_value_is_nothing(at.value) && at.value->type != YAML_MAPPING_NODE)
		return sio_source_fail(s, at, "not a mapping; one such as { type: %s } is right",
				       sio_device_types[0]->name);
	for (yaml_node_pair_t *p = at.value->data.mapping.pairs.start;
	     at.value->type == YAML_MAPPING_NODE && p < at.value->data.mapping.pairs.top; p++) {
		yaml_node_t *key = sio_source_node(s, p->key);

		text = sio_source_text(key);
		if (text && !type.value && strcmp(text, "type") == 0)
			type = sio_source_inside(at, key, sio_source_node(s, p->value));
	}
	text = type.value ? sio_source_text(type.value) : NULL;
	for (const struct sio_devtype *const *t = sio_device_types; text && *t; t++)
		if (strcmp((*t)->name, text) == 0) {
			*ret = *t;
			return check_keys(s, at, *t);
		}
	sio_source_enter(s, "type", 0);
	if (!type.value)
		return sio_source_fail(s, sio_source_missing(at), "missing; one of %s is right",
				       types_with(NULL, known));
	return sio_source_fail(s, type, "not a type of device; one of %s is right",
			       types_with(NULL, known));
}

void sio_type_fields(const struct sio_devkey *key, unsigned n, struct sio_field *ret)
{
	static const enum sio_value_kind kind[] = {[SIO_DEVKEY_SIZE] = SIO_VALUE_SIZE,
						   [SIO_DEVKEY_NUMBER] = SIO_VALUE_NUMBER,
						   [SIO_DEVKEY_LIST] = SIO_VALUE_NODE,
						   [SIO_DEVKEY_FILE] = SIO_VALUE_NODE};

	for (unsigned i = 0; i < n; i++)
		ret[i] = (struct sio_field){
			.name = key[i].name,
			.kind = kind[key[i].kind],
			.offset = key[i].offset,
			.min = key[i].min,
			.max = key[i].max,
			.step = key[i].step,
			.choice = {key[i].choice[0], key[i].choice[1]},
		};
}
_Static_assert(SIO_DEVKEY_POWER == SIO_VALUE_POWER, "the same in both tables");

void sio_type_presets(const struct sio_devkey *key, unsigned n, void *out)
{
	for (unsigned i = 0; i < n; i++) {
		char *at = (char *)out + key[i].offset;
		uint32_t number = (uint32_t)key[i].preset;

		if (key[i].kind == SIO_DEVKEY_SIZE)
			memcpy(at, &key[i].preset, sizeof(key[i].preset));
		else if (key[i].kind == SIO_DEVKEY_NUMBER)
			memcpy(at, &number, sizeof(number));
	}
}

/* Reads the files among the keys of a device, or of an element of a list, into @out. */
static int read_files(struct sio_draft *d, const struct sio_devkey *key, unsigned n,
		      const struct sio_spot *spot, const char *device, void *out)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		const char *path = NULL;

		if (key[i].kind != SIO_DEVKEY_FILE || !spot[i].value)
			continue;
		rc = sio_draft_read_file(d, spot[i], key[i].name, device, &path);
		memcpy((char *)out + key[i].offset, &path, sizeof(path));
	}
	return rc;
}

static int read_item(struct sio_draft *d, struct sio_spot at, const struct sio_devkey *list,
		     const char *device, void *out)
{
	struct sio_source *s = d->source;
	struct sio_field field[SIO_DEVKEY_KEYS];
	struct sio_spot spot[SIO_DEVKEY_KEYS];
	int rc;

	sio_type_fields(list->item, list->n_items, field);
	sio_type_presets(list->item, list->n_items, out);
	rc = sio_value_map(s, at, field, list->n_items, out, spot);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < list->n_items; i++) {
		if (!list->item[i].required || spot[i].value)
			continue;
		sio_source_enter(s, list->item[i].name, 0);
		return sio_source_fail(s, sio_source_missing(at), "missing; the %s is right",
				       list->item[i].text);
	}
	return read_files(d, list->item, list->n_items, spot, device, out);
}

static int read_list(struct sio_draft *d, const struct sio_devkey *list, struct sio_spot at,
		     struct sio_topo_device *dev)
{
	struct sio_source *s = d->source;
	size_t mark = sio_source_enter(s, list->name, 0);
	uint32_t n = 0;

	if (at.value->type != YAML_SEQUENCE_NODE ||
	    (uint64_t)(at.value->data.sequence.items.top - at.value->data.sequence.items.start) <
		    list->min)
		return sio_source_fail(s, at,
				       "not a list of mappings; one such as [{ %s: ... }], of "
				       "%" PRIu64 " to %" PRIu64 ", is right",
				       list->item[0].name, list->min, list->max);
	for (yaml_node_item_t *i = at.value->data.sequence.items.start;
	     i < at.value->data.sequence.items.top; i++, n++) {
		struct sio_spot item = sio_source_inside(at, NULL, sio_source_node(s, *i));
		size_t in = sio_source_enter(s, NULL, n);
		int rc;

		if (n == list->max)
			return sio_source_fail(
				s, item, "one too many; at most %" PRIu64 " is right", list->max);
		rc = read_item(d, item, list, dev->name,
			       (char *)dev + list->offset + n * list->item_size);
		if (rc < 0)
			return rc;
		sio_source_leave(s, in);
	}
	memcpy((char *)dev + list->count, &n, sizeof(n));
	sio_source_leave(s, mark);
	return 0;
}

/* Refuses keys beside the list that each of its elements has: they are of a device without it. */
static int check_instead(struct sio_source *s, const struct sio_devtype *type,
			 const struct sio_devkey *list, const struct sio_spot *spot)
{
	for (unsigned i = 0; i < 3 && list->instead_of[i]; i++) {
		const struct sio_devkey *other = find_key(type, list->instead_of[i]);

		if (!spot[other - type->key].value)
			continue;
		sio_source_enter(s, other->name, 0);
		return sio_source_fail(s, spot[other - type->key],
				       "beside '%s'; in each of them is right", list->name);
	}
	return 0;
}

/* Refuses a file without the key that it needs, for which no preset can be right. */
static int check_needs(struct sio_source *s, const struct sio_devtype *type,
		       const struct sio_devkey *key, const struct sio_spot *spot)
{
	const struct sio_devkey *other = key->needs ? find_key(type, key->needs) : NULL;

	if (!other || spot[other - type->key].value)
		return 0;
	sio_source_enter(s, other->name, 0);
	return sio_source_fail(s, sio_source_missing(spot[key - type->key]),
			       "missing beside '%s'; the %s is right", key->name, other->text);
}

int sio_type_read_rest(struct sio_draft *d, const struct sio_devtype *type,
		       const struct sio_spot *spot, struct sio_topo_device *dev)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < type->n_keys; i++) {
		if (type->key[i].kind != SIO_DEVKEY_LIST || !spot[i].value)
			continue;
		rc = check_instead(d->source, type, &type->key[i], spot);
		if (rc == 0)
			rc = read_list(d, &type->key[i], spot[i], dev);
	}
	for (unsigned i = 0; rc == 0 && i < type->n_keys; i++)
		if (type->key[i].kind == SIO_DEVKEY_FILE && spot[i].value)
			rc = check_needs(d->source, type, &type->key[i], spot);
	return rc < 0 ? rc : read_files(d, type->key, type->n_keys, spot, dev->name, dev);
}
