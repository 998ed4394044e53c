/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of --json (envelope/envelope.h). Where memory for it runs out, the program ends by
 * failed().
 */
#ifndef NVME_USER_TOOL_DOCUMENT_H
#define NVME_USER_TOOL_DOCUMENT_H

#include <stdint.h>
#include <json-c/json.h>

struct json_object *doc_object(void);
struct json_object *doc_array(void);
void doc_append(struct json_object *array, struct json_object *value);
void doc_add(struct json_object *o, const char *key, struct json_object *value);
/* Numbers up to 2^53; larger ones are written by doc_hex(). */
void doc_number(struct json_object *o, const char *key, uint64_t value);
void doc_hex(struct json_object *o, const char *key, uint64_t value);
void doc_string(struct json_object *o, const char *key, const char *value);
void doc_double(struct json_object *o, const char *key, double value);
void doc_bool(struct json_object *o, const char *key, int value);
/* Prints the one document: @schema is "nvme-identify", @data is released. */
void doc_print(const char *schema, struct json_object *data);

/* Keeps a text of failed() or usage() for doc_failed(). */
void doc_keep_message(const char *text);
/* Ends a command that failed: prints a document with the reason, unless it has printed one. */
void doc_failed(const char *command, int status);

#endif
