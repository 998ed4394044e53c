/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope.h"
#include "document.h"
#include "tool.h"

#define MESSAGES 8 /* kept; a command has one or two */

static char *message[MESSAGES];
static size_t messages;
static int printed;

static struct json_object *must(struct json_object *o)
{
	if (!o) {
		failed("no memory for JSON: " SIO_DRIVER_MORE_MEMORY);
		exit(EXIT_FAILED);
	}
	return o;
}

struct json_object *doc_object(void)
{
	return must(json_object_new_object());
}

struct json_object *doc_array(void)
{
	return must(json_object_new_array());
}

void doc_append(struct json_object *array, struct json_object *value)
{
	if (json_object_array_add(array, must(value)) < 0)
		must(NULL);
}

void doc_add(struct json_object *o, const char *key, struct json_object *value)
{
	if (json_object_object_add(o, key, must(value)) < 0)
		must(NULL);
}

void doc_number(struct json_object *o, const char *key, uint64_t value)
{
	doc_add(o, key, json_object_new_uint64(value));
}

void doc_hex(struct json_object *o, const char *key, uint64_t value)
{
	doc_add(o, key, sio_json_hex(value));
}

void doc_string(struct json_object *o, const char *key, const char *value)
{
	doc_add(o, key, sio_json_string(value));
}

void doc_double(struct json_object *o, const char *key, double value)
{
	doc_add(o, key, json_object_new_double(value));
}

void doc_bool(struct json_object *o, const char *key, int value)
{
	doc_add(o, key, json_object_new_boolean(value));
}

void doc_print(const char *schema, struct json_object *data)
{
	char *text = sio_envelope_text(schema, must(data));

	if (!text)
		must(NULL);
	printed = 1;
	fputs(text, stdout);
	free(text);
}

void doc_keep_message(const char *text)
{
	if (messages < MESSAGES && (message[messages] = strdup(text)))
		messages++;
}

void doc_failed(const char *command, int status)
{
	struct sio_envelope_error e = {.program = "smartio-nvme",
				       .command = command,
				       .exit_status = status,
				       .messages = (const char *const *)message,
				       .n_messages = messages};

	if (!printed)
		doc_print("error", sio_envelope_error(&e));
}
