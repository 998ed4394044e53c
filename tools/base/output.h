/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of the commands: one-line errors, aligned tables, sizes for people, JSON for programs. */
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
 * Prints "smartio: text" as one line on stderr, and keeps it for tool_json_failed(). Return:
 * TOOL_EXIT_FAILURE, to be returned.
 */
int tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same with an -errno, for programs. */
int tool_error_code(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line of progress or advice on stderr, without a prefix. */
void tool_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* From now on tool_note() prints nothing: for callers that query repeatedly. */
void tool_notes_off(void);
/* Prints a line on stderr behind @before; @keep: also for tool_json_failed(). */
void tool_say(const char *before, bool keep, const char *fmt, va_list ap);
/* Reports wrong usage of @command ("cluster up"). Return: TOOL_EXIT_USAGE. */
int tool_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define TOOL_SIZE_TEXT 24
/* Writes a size: "256M", "1.5G", "512": powers of 1024, at most one decimal, rounded down. */
const char *tool_size(uint64_t bytes, char text[TOOL_SIZE_TEXT]);

/* A table is filled row by row; columns are as wide as their widest cell. */
struct tool_table;
/*
 * @columns: titles, separated by '|'; a column whose title begins with '>' is aligned to the right.
 */
struct tool_table *tool_table_new(const char *columns);
/* Adds a cell; a row is full when it has as many cells as there are columns. */
void tool_table_cell(struct tool_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes the table, one line for each row, titles first. */
void tool_table_write(const struct tool_table *t, FILE *out);
/* Prints the table to stdout and frees it. Return: exit status. */
int tool_table_end(struct tool_table *t);
/* Has everything that was printed to stdout been written? Return: exit status. */
int tool_flush(void);
/* Frees a table without printing; NULL is fine. */
void tool_table_free(struct tool_table *t);

/*
 * Prints the one document of a command with --json (envelope/envelope.h): @schema is "device-list",
 * @data is released. Return: exit status.
 */
int tool_json_print(const char *schema, struct json_object *data);
/*
 * Returns that text without printing it; free(). The caller that prints it calls
 * tool_json_printed().
 */
char *tool_json_text(const char *schema, struct json_object *data);
/* From now on stdout is complete, or belongs to a program: no error is printed there. */
void tool_json_printed(void);
/*
 * Ends a command with --json that failed before it printed anything: prints a document with the
 * reason. @command: "device list". Return: @status.
 */
int tool_json_failed(const char *command, int status);
/* Adds to an object; NULL as the value is an allocation failure, which ends the program. */
void tool_json_add(struct json_object *o, const char *key, struct json_object *value);
void tool_json_string(struct json_object *o, const char *key, const char *value);
/* Numbers up to 2^53; larger ones are written by tool_json_hex(). */
void tool_json_number(struct json_object *o, const char *key, uint64_t value);
/* Adds an address or a counter as a string "0x...". */
void tool_json_hex(struct json_object *o, const char *key, uint64_t value);
void tool_json_bool(struct json_object *o, const char *key, bool value);
void tool_json_null(struct json_object *o, const char *key);
struct json_object *tool_json_object(void);
struct json_object *tool_json_array(void);
void tool_json_append(struct json_object *array, struct json_object *value);
/* Makes a string for an array. */
struct json_object *tool_json_word(const char *value);

/* Allocates memory, or ends the program: a short-lived command has no better way to continue. */
void *tool_alloc(size_t n, size_t size);
void *tool_grow(void *p, size_t n, size_t size);
char *tool_strdup(const char *s);

#endif
