/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope.h"
#include "base/output.h"
#include "core/err.h"

/* The fields of the document that tool_json_failed() prints. */
static struct {
	char **message;
	size_t n;
	int error;    /* -errno of the first message that has one */
	bool printed; /* stdout has a document already, or belongs to another program */
} failure;

struct tool_table {
	unsigned n_columns, n_cells;
	char **cell; /* titles first, then row by row */
	bool *right;
};

/* Keeps a failure's text. Without memory the line on stderr has to suffice. */
static void keep_message(const char *text)
{
	char **all = reallocarray(failure.message, failure.n + 1, sizeof(*all));

	if (!all)
		return;
	failure.message = all;
	all[failure.n] = strdup(text);
	failure.n += all[failure.n] != NULL;
}

/* Always one line: a name from a file must not move the terminal's cursor. */
void tool_say(const char *before, bool keep, const char *fmt, va_list ap)
{
	char text[2048];

	vsnprintf(text, sizeof(text), fmt, ap);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	if (keep)
		keep_message(text);
	fprintf(stderr, "%s%s\n", before, text);
}

int tool_error(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	tool_say("smartio: ", true, fmt, ap);
	va_end(ap);
	return TOOL_EXIT_FAILURE;
}

int tool_error_code(int error, const char *fmt, ...)
{
	va_list ap;

	if (!failure.error)
		failure.error = error;
	fflush(stdout);
	va_start(ap, fmt);
	tool_say("smartio: ", true, fmt, ap);
	va_end(ap);
	return TOOL_EXIT_FAILURE;
}

static bool no_notes;

void tool_notes_off(void)
{
	no_notes = true;
}

void tool_note(const char *fmt, ...)
{
	va_list ap;

	if (no_notes)
		return;
	va_start(ap, fmt);
	tool_say("", false, fmt, ap);
	va_end(ap);
}

const char *tool_size(uint64_t bytes, char text[TOOL_SIZE_TEXT])
{
	static const char unit[] = " KMGTPE";
	uint64_t whole = bytes, rest = 0;
	unsigned u = 0;

	while (whole >= 1024) {
		rest = whole % 1024;
		whole /= 1024;
		u++;
	}
	if (u == 0)
		snprintf(text, TOOL_SIZE_TEXT, "%llu", (unsigned long long)bytes);
	else if (rest * 10 / 1024 == 0)
		snprintf(text, TOOL_SIZE_TEXT, "%llu%c", (unsigned long long)whole, unit[u]);
	else
		snprintf(text, TOOL_SIZE_TEXT, "%llu.%llu%c", (unsigned long long)whole,
			 (unsigned long long)(rest * 10 / 1024), unit[u]);
	return text;
}

void *tool_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p) {
		tool_error("no memory for %zu x %zu bytes: " SIO_MORE_MEMORY, n, size);
		exit(TOOL_EXIT_FAILURE);
	}
	return p;
}

void *tool_grow(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n ? n : 1, size);
	if (!p) {
		tool_error("no memory for %zu x %zu bytes: " SIO_MORE_MEMORY, n, size);
		exit(TOOL_EXIT_FAILURE);
	}
	return p;
}

char *tool_strdup(const char *s)
{
	size_t len = strlen(s) + 1;

	return memcpy(tool_alloc(len, 1), s, len);
}

static void add_cell(struct tool_table *t, char *text)
{
	t->cell = tool_grow(t->cell, t->n_cells + 1, sizeof(*t->cell));
	t->cell[t->n_cells++] = text;
}

struct tool_table *tool_table_new(const char *columns)
{
	struct tool_table *t = tool_alloc(1, sizeof(*t));
	char *copy = tool_strdup(columns), *rest = copy, *title;

	while ((title = strsep(&rest, "|"))) {
		t->right = tool_grow(t->right, t->n_columns + 1, sizeof(*t->right));
		t->right[t->n_columns++] = *title == '>';
		add_cell(t, tool_strdup(title + (*title == '>')));
	}
	free(copy);
	return t;
}

void tool_table_cell(struct tool_table *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	add_cell(t, tool_strdup(*text ? text : "-"));
}

/* Output that did not reach its reader is a failure: a full disk must not look like success. */
int tool_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return tool_error("cannot write to standard output: %s", strerror(errno));
}

void tool_table_write(const struct tool_table *t, FILE *out)
{
	for (unsigned i = 0; i < t->n_cells; i++) {
		unsigned column = i % t->n_columns;
		bool last = column + 1 == t->n_columns;
		size_t width = 0;

		for (unsigned j = column; j < t->n_cells; j += t->n_columns)
			width = strlen(t->cell[j]) > width ? strlen(t->cell[j]) : width;
		if (last && !t->right[column])
			fprintf(out, "%s\n", t->cell[i]);
		else
			fprintf(out, "%*s%s", t->right[column] ? (int)width : -(int)width,
				t->cell[i], last ? "\n" : "  ");
	}
}

int tool_table_end(struct tool_table *t)
{
	tool_table_write(t, stdout);
	tool_table_free(t);
	return tool_flush();
}

void tool_table_free(struct tool_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->n_cells; i++)
		free(t->cell[i]);
	free(t->cell);
	free(t->right);
	free(t);
}

static struct json_object *must(struct json_object *o)
{
	if (!o) {
		tool_error("no memory for JSON: " SIO_MORE_MEMORY);
		exit(TOOL_EXIT_FAILURE);
	}
	return o;
}

struct json_object *tool_json_object(void)
{
	return must(json_object_new_object());
}

struct json_object *tool_json_array(void)
{
	return must(json_object_new_array());
}

void tool_json_add(struct json_object *o, const char *key, struct json_object *value)
{
	if (json_object_object_add(o, key, must(value)) < 0)
		must(NULL);
}

void tool_json_append(struct json_object *array, struct json_object *value)
{
	if (json_object_array_add(array, must(value)) < 0)
		must(NULL);
}

struct json_object *tool_json_word(const char *value)
{
	return must(sio_json_string(value));
}

void tool_json_string(struct json_object *o, const char *key, const char *value)
{
	tool_json_add(o, key, sio_json_string(value));
}

void tool_json_number(struct json_object *o, const char *key, uint64_t value)
{
	tool_json_add(o, key, json_object_new_uint64(value));
}

void tool_json_bool(struct json_object *o, const char *key, bool value)
{
	tool_json_add(o, key, json_object_new_boolean(value));
}

void tool_json_hex(struct json_object *o, const char *key, uint64_t value)
{
	tool_json_add(o, key, sio_json_hex(value));
}

void tool_json_null(struct json_object *o, const char *key)
{
	if (json_object_object_add(o, key, NULL) < 0)
		must(NULL);
}

char *tool_json_text(const char *schema, struct json_object *data)
{
	char *text = sio_envelope_text(schema, must(data));

	if (!text)
		must(NULL);
	return text;
}

void tool_json_printed(void)
{
	failure.printed = true;
}

int tool_json_print(const char *schema, struct json_object *data)
{
	char *text = tool_json_text(schema, data);

	tool_json_printed();
	fputs(text, stdout);
	free(text);
	return tool_flush();
}

int tool_json_failed(const char *command, int status)
{
	struct sio_envelope_error e = {.program = "smartio",
				       .command = command,
				       .exit_status = status,
				       .error = failure.error,
				       .messages = (const char *const *)failure.message,
				       .n_messages = failure.n};

	if (!failure.printed)
		tool_json_print("error", sio_envelope_error(&e));
	return status;
}
