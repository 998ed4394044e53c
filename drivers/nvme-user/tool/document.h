/* SPDX-License-Identifier: BSD-2-Clause */
/* What --json prints (envelope/envelope.h). Without memory for it we end: failed() says so. */
#ifndef NVME_USER_TOOL_DOCUMENT_H
#define NVME_USER_TOOL_DOCUMENT_H

#include <stdint.h>
#include <json-c/json.h>

struct json_object *doc_object(void);
struct json_object *doc_array(void);
void doc_append(struct json_object *array, struct json_object *value);
void doc_add(struct json_object *o, const char *key, struct json_object *value);
/* Up to 2^53; what may be larger is doc_hex()'s. */
void doc_number(struct json_object *o, const char *key, uint64_t value);
void doc_hex(struct json_object *o, const char *key, uint64_t value);
void doc_string(struct json_object *o, const char *key, const char *value);
void doc_double(struct json_object *o, const char *key, double value);
void doc_bool(struct json_object *o, const char *key, int value);
/* Print the one document: @schema is "nvme-identify", @data is released. */
void doc_print(const char *schema, struct json_object *data);

/* A text of failed() or usage(), for doc_failed(). */
void doc_keep_message(const char *text);
/* The end of a command that failed: unless it has printed a document, one that says why. */
void doc_failed(const char *command, int status);

#endif
