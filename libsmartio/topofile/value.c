/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of keys: sizes, numbers, flags, names; mappings whose keys a table lists (value.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/types.h"
#include "topofile/value.h"

static const char units[] = "KMGT";

const char *sio_value_size_text(uint64_t size, char *out)
{
	unsigned unit = 0;

	while (size && size % 1024 == 0 && unit < sizeof(units) - 1) {
		size /= 1024;
		unit++;
	}
	snprintf(out, SIO_SIZE_TEXT, "%" PRIu64 "%.*s", size, unit ? 1 : 0,
		 unit ? &units[unit - 1] : "");
	return out;
}

bool sio_value_digits(const char *text, size_t len, uint64_t *ret)
{
	uint64_t value = 0;

	if (len == 0 || (len > 1 && text[0] == '0'))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return false;
	}
	*ret = value;
	return true;
}

static bool parse_size(const char *text, uint64_t *ret)
{
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	uint64_t value;

	if (!sio_value_digits(text, unit ? len - 1 : len, &value))
		return false;
	for (const char *u = units; unit && u <= unit; u++) {
		if (__builtin_mul_overflow(value, 1024, &value))
			return false;
	}
	*ret = value;
	return true;
}

bool sio_value_is_nothing(const yaml_node_t *node)
{
	const char *text = sio_source_text(node);

	return text && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static const char *node_kind(const yaml_node_t *node)
{
	switch (node->type) {
	case YAML_MAPPING_NODE:
		return "mapping";
	case YAML_SEQUENCE_NODE:
		return "list";
	default:
		return "single value";
	}
}

/* Why the text is no number (or size) at all. */
static int fail_number(struct sio_source *s, struct sio_spot at, const struct sio_field *f,
		       const char *right)
{
	const char *text = sio_source_text(at.value);
	size_t digits = text ? strspn(text, "0123456789") : 0, len = text ? strlen(text) : 0;
	bool unit = f->kind == SIO_VALUE_SIZE && digits + 1 == len && strchr(units, text[digits]);

	if (at.value->type != YAML_SCALAR_NODE)
		return sio_source_fail(s, at, "a %s; %s is right", node_kind(at.value), right);
	if (text && !len)
		return sio_source_fail(s, at, "empty; %s is right", right);
	if (digits > 0 && (digits == len || unit))
		return sio_source_fail(s, at, "%s; %s is right",
				       text[0] == '0' ? "begins with 0" : "too large", right);
	if (digits == 0 && len > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9')
		return sio_source_fail(s, at, "negative; %s is right", right);
	if (f->kind == SIO_VALUE_SIZE)
		return sio_source_fail(
			s, at, "not a size (digits, then K, M, G, T or nothing); %s is right",
			right);
	return sio_source_fail(s, at, "not a number; %s is right", right);
}

static const char *number_text(const struct sio_field *f, uint64_t value, char *out)
{
	if (f->kind == SIO_VALUE_SIZE)
		return sio_value_size_text(value, out);
	snprintf(out, SIO_SIZE_TEXT, "%" PRIu64, value);
	return out;
}

static bool right_step(const struct sio_field *f, uint64_t value)
{
	if (f->step == SIO_VALUE_POWER)
		return (value & (value - 1)) == 0;
	return f->step == 0 || value % f->step == 0;
}

const char *sio_value_right(const struct sio_field *f, char out[SIO_RIGHT_TEXT])
{
	char min[SIO_SIZE_TEXT], max[SIO_SIZE_TEXT], step[SIO_SIZE_TEXT];
	char steps[SIO_SIZE_TEXT + 24] = "";

	if (f->choice[0]) {
		snprintf(out, SIO_RIGHT_TEXT, "%s or %s", number_text(f, f->choice[0], min),
			 number_text(f, f->choice[1], max));
		return out;
	}
	if (f->step == SIO_VALUE_POWER)
		snprintf(steps, sizeof(steps), ", a power of 2,");
	else if (f->step)
		snprintf(steps, sizeof(steps), ", a multiple of %s,",
			 number_text(f, f->step, step));
	snprintf(out, SIO_RIGHT_TEXT, "%s to %s%s", number_text(f, f->min, min),
		 number_text(f, f->max, max), steps);
	return out;
}

static int read_number(struct sio_source *s, struct sio_spot at, const struct sio_field *f,
		       uint64_t *ret)
{
	char right[SIO_RIGHT_TEXT], step[SIO_SIZE_TEXT];
	const char *text = sio_source_text(at.value);
	uint64_t value;
	bool ok;

	sio_value_right(f, right);
	ok = text && (f->kind == SIO_VALUE_SIZE ? parse_size(text, &value)
						: sio_value_digits(text, strlen(text), &value));
	if (!ok)
		return fail_number(s, at, f, right);
	if (f->choice[0] && value != f->choice[0] && value != f->choice[1])
		return sio_source_fail(s, at, "another number; %s is right", right);
	if (!f->choice[0] && (value < f->min || value > f->max))
		return sio_source_fail(s, at, "too %s; %s is right",
				       value < f->min ? "small" : "large", right);
	if (!right_step(f, value))
		return sio_source_fail(
			s, at, "not a %s%s; %s is right",
			f->step == SIO_VALUE_POWER ? "power of 2" : "multiple of ",
			f->step == SIO_VALUE_POWER ? "" : number_text(f, f->step, step), right);
	*ret = value;
	return 0;
}

static int read_flag(struct sio_source *s, struct sio_spot at, bool *ret)
{
	static const char *const yes[] = {"on", "yes", "true"}, *const no[] = {"off", "no",
									       "false"};
	const char *text = sio_source_text(at.value);

	for (size_t i = 0; text && i < 3; i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*ret = strcmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return sio_source_fail(s, at, "neither on nor off; one of them is right");
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len >= SIO_NAME_LEN || !is_letter(text[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '-' && c != '_')
			return false;
	}
	return true;
}

#define NAME_RIGHT "a letter, then letters, digits, '-' or '_', at most 31 in all, is right"

int sio_value_name(struct sio_source *s, struct sio_spot at, char *out)
{
	const char *text = sio_source_text(at.value);

	if (!text || !is_name(text))
		return sio_source_fail(s, at, "not a name; " NAME_RIGHT);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

int sio_value_key(struct sio_source *s, yaml_node_t *key, char *out)
{
	struct sio_spot at = sio_source_spot(NULL, key);
	const char *text = sio_source_text(key);

	if (text && is_name(text)) {
		memcpy(out, text, strlen(text) + 1);
		return 0;
	}
	if (key->type == YAML_SCALAR_NODE) {
		sio_source_enter(s, (const char *)key->data.scalar.value, 0);
		at.value = NULL;
	}
	return sio_source_fail(s, at, "not a name; " NAME_RIGHT);
}

static int read_value(struct sio_source *s, struct sio_spot at, const struct sio_field *f,
		      void *out)
{
	void *to = (char *)out + f->offset;
	uint64_t number;
	int rc = 0;

	switch (f->kind) {
	case SIO_VALUE_NODE:
		break;
	case SIO_VALUE_SIZE:
		rc = read_number(s, at, f, to);
		break;
	case SIO_VALUE_NUMBER:
		rc = read_number(s, at, f, &number);
		if (rc == 0)
			*(uint32_t *)to = (uint32_t)number;
		break;
	case SIO_VALUE_FLAG:
		rc = read_flag(s, at, to);
		break;
	case SIO_VALUE_NAME:
		rc = sio_value_name(s, at, to);
		break;
	}
	return rc;
}

/* Key @key, at @at, of a mapping that knows @field. Return: its index; -EINVAL. */
static int find_field(struct sio_source *s, struct sio_spot at, yaml_node_t *key,
		      const struct sio_field *field, size_t n_fields)
{
	const char *text = sio_source_text(key);
	char known[SIO_ERR_TEXT] = "";
	size_t len = 0;

	if (key->type != YAML_SCALAR_NODE)
		return sio_source_fail(s, sio_source_spot(NULL, key),
				       "a %s as a key; a word is right", node_kind(key));
	for (size_t i = 0; i < n_fields; i++) {
		if (text && strcmp(text, field[i].name) == 0)
			return (int)i;
		if (len < sizeof(known))
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
						i ? ", " : "", field[i].name);
	}
	sio_source_enter(s, (const char *)key->data.scalar.value, 0);
	return sio_source_fail(s, sio_source_key(at), "no such key; one of %s is right", known);
}

int sio_value_map(struct sio_source *s, struct sio_spot at, const struct sio_field *field,
		  size_t n_fields, void *out, struct sio_spot *spot)
{
	memset(spot, 0, n_fields * sizeof(*spot));
	if (sio_value_is_nothing(at.value))
		return 0;
	if (at.value->type != YAML_MAPPING_NODE)
		return sio_source_fail(s, at, "a %s; a mapping with some of %s, %s, ... is right",
				       node_kind(at.value), field[0].name, field[1].name);
	for (yaml_node_pair_t *p = at.value->data.mapping.pairs.start;
	     p < at.value->data.mapping.pairs.top; p++) {
		yaml_node_t *key = sio_source_node(s, p->key);
		struct sio_spot here = sio_source_inside(at, key, sio_source_node(s, p->value));
		int i = find_field(s, here, key, field, n_fields), rc;
		size_t mark;

		if (i < 0)
			return i;
		mark = sio_source_enter(s, field[i].name, 0);
		if (spot[i].value)
			return sio_source_fail(s, sio_source_key(here),
					       "given twice, first in line %u; once is right",
					       spot[i].key.line);
		spot[i] = here;
		rc = read_value(s, spot[i], &field[i], out);
		if (rc < 0)
			return rc;
		sio_source_leave(s, mark);
	}
	return 0;
}
