/* SPDX-License-Identifier: BSD-2-Clause */
/* The position in the file that is being read, and errors that name it (source.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "topofile/source.h"

#define SHOWN_NAME 80  /* bytes of a file's name in a text */
#define SHOWN_VALUE 40 /* bytes of a value in a text */

struct sio_place sio_source_place(yaml_mark_t mark)
{
	return (struct sio_place){(unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

static bool is_before(struct sio_place a, struct sio_place b)
{
	return a.line < b.line || (a.line == b.line && a.column < b.column);
}

struct sio_spot sio_source_spot(const yaml_node_t *key, yaml_node_t *value)
{
	struct sio_place at = sio_source_place(value->start_mark);
	struct sio_place k = key ? sio_source_place(key->start_mark) : at;

	/* Behind an alias: libyaml keeps the place of what it stands for alone. */
	return (struct sio_spot){.at = is_before(at, k) ? k : at, .key = k, .value = value};
}

struct sio_spot sio_source_inside(struct sio_spot owner, const yaml_node_t *key, yaml_node_t *value)
{
	struct sio_spot spot = sio_source_spot(key, value);

	if (is_before(spot.key, owner.key))
		spot.at = spot.key = owner.key;
	return spot;
}

struct sio_spot sio_source_key(struct sio_spot spot)
{
	spot.at = spot.key;
	return spot;
}

struct sio_spot sio_source_missing(struct sio_spot owner)
{
	return (struct sio_spot){.at = owner.key, .key = owner.key};
}

size_t sio_source_enter(struct sio_source *s, const char *name, unsigned index)
{
	size_t mark = s->path_len, room = sizeof(s->path) - mark;
	int n;

	if (name)
		n = snprintf(s->path + mark, room, "%s%.*s", mark ? "." : "", SHOWN_VALUE, name);
	else
		n = snprintf(s->path + mark, room, "[%u]", index);
	s->path_len += (size_t)n < room ? (size_t)n : room - 1;
	return mark;
}

void sio_source_leave(struct sio_source *s, size_t mark)
{
	s->path_len = mark;
	s->path[mark] = '\0';
}

const char *sio_source_name(const char *name)
{
	size_t len = strlen(name);

	return len > SHOWN_NAME ? name + len - SHOWN_NAME : name;
}

yaml_node_t *sio_source_node(struct sio_source *s, int item)
{
	return yaml_document_get_node(s->doc, item);
}

const char *sio_source_text(const yaml_node_t *node)
{
	const char *text;

	if (node->type != YAML_SCALAR_NODE)
		return NULL;
	text = (const char *)node->data.scalar.value;
	return strlen(text) == node->data.scalar.length ? text : NULL;
}

/* @len bytes of @text as they may be printed, cut where a character ends. */
static void show(char *out, size_t size, const char *text, size_t len)
{
	size_t n = len < size - 4 ? len : size - 4;

	while (n < len && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		out[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	memcpy(out + n, n < len ? "..." : "", n < len ? 4 : 1);
}

static void show_value(char *out, size_t size, const yaml_node_t *node)
{
	if (node->type == YAML_SCALAR_NODE)
		show(out, size, (const char *)node->data.scalar.value, node->data.scalar.length);
	else
		snprintf(out, size, "%s", node->type == YAML_MAPPING_NODE ? "{...}" : "[...]");
}

static int fail(struct sio_source *s, struct sio_spot spot, const char *path, const char *fmt,
		va_list args)
{
	char key[sizeof(s->path) + 16] = "", value[SHOWN_VALUE + 16] = "", what[SIO_ERR_TEXT];
	char shown[sizeof(s->path) + 4], text[SHOWN_VALUE + 4];

	if (!s->reterr)
		return -EINVAL;
	if (path[0]) {
		show(shown, sizeof(shown), path, strlen(path));
		snprintf(key, sizeof(key), "key '%s': ", shown);
	}
	if (spot.value && path[0]) {
		show_value(text, sizeof(text), spot.value);
		snprintf(value, sizeof(value), "value '%s': ", text);
	}
	vsnprintf(what, sizeof(what), fmt, args);
	return sio_fail(s->reterr, -EINVAL, "%s:%u:%u: %s%s%s", sio_source_name(s->name),
			spot.at.line, spot.at.column, key, value, what);
}

int sio_source_fail(struct sio_source *s, struct sio_spot spot, const char *fmt, ...)
{
	va_list args;
	int rc;

	va_start(args, fmt);
	rc = fail(s, spot, s->path, fmt, args);
	va_end(args);
	return rc;
}

int sio_source_fail_at(struct sio_source *s, struct sio_spot spot, const char *path,
		       const char *fmt, ...)
{
	va_list args;
	int rc;

	va_start(args, fmt);
	rc = fail(s, spot, path, fmt, args);
	va_end(args);
	return rc;
}

int sio_source_no_memory(struct sio_source *s)
{
	return sio_fail(s->reterr, -ENOMEM, "%s: no memory: " SIO_MORE_MEMORY,
			sio_source_name(s->name));
}
