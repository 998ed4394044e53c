/* SPDX-License-Identifier: BSD-2-Clause */
/* What the command says: one-line errors, aligned tables, sizes for people, JSON for programs. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <json-c/json.h>

#define TOOL_EXIT_FAILURE 1
#define TOOL_EXIT_USAGE 2
#define TOOL_EXIT_KILLED 137 /* as a shell names the death by SIGKILL */

/*
 * "smartio: text" as one line on stderr, kept for tool_json_failed(). Return: TOOL_EXIT_FAILURE, to
 * be returned.
 */
int tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same with an -errno, for programs. */
int tool_error_code(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A line of progress or advice on stderr, as it is. */
void tool_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line on standard error behind @before; @keep: also for tool_json_failed(). */
void tool_say(const char *before, bool keep, const char *fmt, va_list ap);
/* Wrong usage of @command ("cluster up"). Return: TOOL_EXIT_USAGE. */
int tool_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define TOOL_SIZE_TEXT 24
/* "256M", "1.5G", "512": powers of 1024, at most one decimal, cut and never rounded up. */
const char *tool_size(uint64_t bytes, char text[TOOL_SIZE_TEXT]);

/* A table grows row by row; columns are as wide as their widest cell. */
struct tool_table;
/* @columns: titles, '|' between them; a title that begins with '>' stands to the right. */
struct tool_table *tool_table_new(const char *columns);
/* The next cell; a row is full when it has as many cells as there are columns. */
void tool_table_cell(struct tool_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Write it, a line a row, titles first. */
void tool_table_write(const struct tool_table *t, FILE *out);
/* Print to stdout and free. Return: exit status. */
int tool_table_end(struct tool_table *t);
/* What was printed to stdout has reached its reader? Return: exit status. */
int tool_flush(void);
/* Free without printing; NULL is fine. */
void tool_table_free(struct tool_table *t);

/*
 * Print the one document of a command with --json (envelope/envelope.h): @schema is "device-list",
 * @data is released. Return: exit status.
 */
int tool_json_print(const char *schema, struct json_object *data);
/* The same text, not printed; free(). Whoever prints it calls tool_json_printed(). */
char *tool_json_text(const char *schema, struct json_object *data);
/* From now on stdout has what it is to have, or belongs to a program: no error goes there. */
void tool_json_printed(void);
/*
 * The end of a command with --json that failed before it printed anything: its document says why.
 * @command: "device list". Return: @status.
 */
int tool_json_failed(const char *command, int status);
/* Add to an object; a value that could not be made is an allocation failure, which ends us. */
void tool_json_add(struct json_object *o, const char *key, struct json_object *value);
void tool_json_string(struct json_object *o, const char *key, const char *value);
/* Up to 2^53; what may be larger is tool_json_hex()'s. */
void tool_json_number(struct json_object *o, const char *key, uint64_t value);
/* An address, a counter: a string "0x...". */
void tool_json_hex(struct json_object *o, const char *key, uint64_t value);
void tool_json_bool(struct json_object *o, const char *key, bool value);
void tool_json_null(struct json_object *o, const char *key);
struct json_object *tool_json_object(void);
struct json_object *tool_json_array(void);
void tool_json_append(struct json_object *array, struct json_object *value);
/* A string for an array. */
struct json_object *tool_json_word(const char *value);

/* Memory or the end: a command that runs for a moment has nothing better to do without it. */
void *tool_alloc(size_t n, size_t size);
void *tool_grow(void *p, size_t n, size_t size);
char *tool_strdup(const char *s);

#endif
