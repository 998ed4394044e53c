/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope.h"

/*
 * A version grows when something is removed, renamed or gets another meaning. What is added makes
 * no new version. Schemas that are not here have the first one.
 */
static const struct {
	const char *name;
	unsigned version;
} newer[] = {
	{NULL, 1},
};

unsigned sio_envelope_version(const char *schema)
{
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		if (newer[i].name && strcmp(newer[i].name, schema) == 0)
			return newer[i].version;
	return 1;
}

/* Add to @o; @value is released if that fails. Return: 0; -1: no memory. */
static int add(struct json_object *o, const char *key, struct json_object *value)
{
	if (value && json_object_object_add(o, key, value) == 0)
		return 0;
	json_object_put(value);
	return -1;
}

/* As text, with a newline at its end. */
static char *to_text(struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(
		o,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
	size_t len = text ? strlen(text) : 0;
	char *copy = text ? malloc(len + 2) : NULL;

	if (copy) {
		memcpy(copy, text, len);
		memcpy(copy + len, "\n", 2);
	}
	return copy;
}

char *sio_envelope_text(const char *schema, struct json_object *data)
{
	struct json_object *o = json_object_new_object();
	char name[64], *text = NULL;

	snprintf(name, sizeof(name), "smartio/%s", schema);
	if (!o || add(o, "schema", json_object_new_string(name)) < 0 ||
	    add(o, "version", json_object_new_uint64(sio_envelope_version(schema))) < 0)
		json_object_put(data);
	else if (add(o, "data", data) == 0)
		text = to_text(o);
	json_object_put(o);
	return text;
}

struct json_object *sio_json_hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_object_new_string(text);
}

/* Bytes of the UTF-8 character at @s; 0: there is none. */
static size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char first, last;   /* of the first byte */
		unsigned char second, until; /* of the second: none too long, no surrogate */
		size_t len;
	} form[] = {
		{0x01, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(form) / sizeof(form[0]); i++) {
		size_t n = 1;

		if (s[0] < form[i].first || s[0] > form[i].last)
			continue;
		if (form[i].len > 1 && (s[1] < form[i].second || s[1] > form[i].until))
			return 0;
		while (n < form[i].len && (s[n] & 0xc0) == 0x80)
			n++;
		return n == form[i].len ? n : 0;
	}
	return 0;
}

struct json_object *sio_json_string(const char *text)
{
	struct json_object *o;
	char *copy = strdup(text);

	if (!copy)
		return NULL;
	for (unsigned char *c = (unsigned char *)copy; *c;) {
		size_t len = utf8_length(c);

		if (!len)
			*c = '?';
		c += len ? len : 1;
	}
	o = json_object_new_string(copy);
	free(copy);
	return o;
}

static struct json_object *all_messages(const struct sio_envelope_error *e)
{
	struct json_object *array = json_object_new_array(), *text;

	for (size_t i = 0; array && i < e->n_messages; i++) {
		text = sio_json_string(e->messages[i]);
		if (text && json_object_array_add(array, text) == 0)
			continue;
		json_object_put(text);
		json_object_put(array);
		array = NULL;
	}
	return array;
}

struct json_object *sio_envelope_error(const struct sio_envelope_error *e)
{
	struct json_object *o = json_object_new_object();
	const char *name = e->error ? strerrorname_np(-e->error) : NULL;

	if (!o)
		return NULL;
	if (add(o, "program", sio_json_string(e->program)) < 0 ||
	    add(o, "command", sio_json_string(e->command)) < 0 ||
	    add(o, "exit_status", json_object_new_int(e->exit_status)) < 0 ||
	    (name ? add(o, "errno", json_object_new_string(name))
		  : json_object_object_add(o, "errno", NULL)) < 0 ||
	    add(o, "messages", all_messages(e)) < 0) {
		json_object_put(o);
		return NULL;
	}
	return o;
}
