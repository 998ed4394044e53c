/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The document that --json prints, one for each command: {"schema": "smartio/NAME", "version": V,
 * "data": ...}. NAME says what data is, and V which version of its form; tools/schema/NAME.json
 * describes the form. A failed command prints "error" instead of data. A number beyond 2^53 loses
 * digits in readers that keep numbers as doubles, so whatever may be so large (addresses, serial
 * numbers, counters) is a string: sio_json_hex().
 */
#ifndef ENVELOPE_ENVELOPE_H
#define ENVELOPE_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>

/* The version of a schema of that name. */
unsigned sio_envelope_version(const char *schema);

/*
 * The document of @schema ("device-list") around @data, as text with a newline at its end; free().
 * @data is released in any case. NULL: no memory (@data may have been NULL for that reason).
 */
char *sio_envelope_text(const char *schema, struct json_object *data);

/* A 64-bit value as "0x1c0000000". NULL: no memory. */
struct json_object *sio_json_hex(uint64_t value);

/* A string; bytes of @text that are no UTF-8 become '?'. NULL: no memory. */
struct json_object *sio_json_string(const char *text);

/* Why a command failed. */
struct sio_envelope_error {
	const char *program; /* "smartio" */
	const char *command; /* "device list"; "": none was recognised */
	int exit_status;
	int error;		     /* -errno, as "ENOENT"; 0: null */
	const char *const *messages; /* as on standard error, without the program's name */
	size_t n_messages;
};
/* The data of schema "error". NULL: no memory. */
struct json_object *sio_envelope_error(const struct sio_envelope_error *e);

#endif
