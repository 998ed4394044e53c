/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages out of a stream, in pieces of any size, and the names in certificates. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/frame.h"
#include "wire/identity.h"

static size_t put(uint8_t *to, size_t at, uint32_t length, uint8_t first)
{
	struct sio_frame_header h = sio_frame_header(length);

	memcpy(to + at, &h, sizeof(h));
	for (uint32_t i = 0; i < length; i++)
		to[at + sizeof(h) + i] = (uint8_t)(first + i);
	return at + sizeof(h) + length;
}

/* Whole messages of every length, cut into pieces of every size. */
static void pieces_make_messages(void **state)
{
	static const uint32_t lengths[] = {1, 16, 7, SIO_WIRE_MAX, 8, 1};
	static uint8_t stream[SIO_WIRE_MAX + 200];
	static struct sio_frame f;
	size_t end = 0;

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		end = put(stream, end, lengths[i], (uint8_t)(i * 3));
	for (size_t piece = 1; piece <= end; piece = piece < 40 ? piece + 1 : piece * 2) {
		unsigned n = 0;

		for (size_t at = 0; at < end;) {
			size_t len = end - at < piece ? end - at : piece, used;
			int r = sio_frame_take(&f, stream + at, len, &used, NULL);

			assert_true(r == 0 || r == 1);
			assert_true(used <= len);
			assert_true(r == 1 || used == len);
			at += used;
			if (r == 0)
				continue;
			assert_int_equal(f.length, lengths[n]);
			assert_int_equal((uintptr_t)f.message % 8, 0);
			for (uint32_t i = 0; i < lengths[n]; i++)
				assert_int_equal(f.message[i], (uint8_t)(n * 3 + i));
			n++;
		}
		assert_int_equal(n, 6);
	}
}

static void no_bytes_are_no_message(void **state)
{
	struct sio_frame *f = calloc(1, sizeof(*f));
	size_t used = 7;

	(void)state;
	assert_non_null(f);
	assert_int_equal(sio_frame_take(f, "", 0, &used, NULL), 0);
	assert_int_equal(used, 0);
	free(f);
}

static void refuse(const uint32_t header[2], const char *why)
{
	struct sio_frame *f = calloc(1, sizeof(*f));
	struct sio_err err = {.text = ""};
	uint8_t bytes[9] = {0};
	size_t used;

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(header[i / 4] >> i % 4 * 8);
	assert_non_null(f);
	/* Not before its header is there. */
	assert_int_equal(sio_frame_take(f, bytes, 7, &used, &err), 0);
	assert_int_equal(sio_frame_take(f, bytes + 7, 2, &used, &err), -EPROTO);
	assert_non_null(strstr(err.text, why));
	free(f);
}

static void wrong_headers_are_named(void **state)
{
	(void)state;
	refuse((const uint32_t[]){0, 0}, "a message of 0 bytes; 1 to 8192 is right");
	refuse((const uint32_t[]){SIO_WIRE_MAX + 1, 0}, "a message of 8193 bytes");
	refuse((const uint32_t[]){0xffffffff, 0}, "a message of 4294967295 bytes");
	refuse((const uint32_t[]){16, 3}, "reserved word 0x3; 0 is right");
}

static void names_go_there_and_back(void **state)
{
	const struct sio_identity in = {.cluster = "lab-2", .host = "Node_A9"};
	struct sio_identity out = {.cluster = "x"};
	char text[SIO_IDENTITY_TEXT];

	(void)state;
	assert_string_equal(sio_identity_text(&in, text), "smartio:lab-2/Node_A9");
	assert_int_equal(sio_identity_parse(text, strlen(text), &out), 0);
	assert_string_equal(out.cluster, "lab-2");
	assert_string_equal(out.host, "Node_A9");
}

static void other_uris_are_none(void **state)
{
	static const char *const wrong[] = {
		"",
		"smartio",
		"smartio:",
		"smartio:a",
		"smartio:/",
		"smartio:a/",
		"smartio:/b",
		"http://a/b",
		"Smartio:a/b",
		"smartio:a/b/c",
		"smartio:1a/b",
		"smartio:a/-b",
		"smartio:a b/c",
		"smartio:a/b.c",
		"smartio:a/b@",
		"smartio:a/b[",
		"smartio:a/b{",
		"smartio:a/b:",
		"smartio:{/b",
		"smartio:[/b",
		"smartio:`/b",
		"smartio:a1234567890123456789012345678901/b", /* 32 */
		"smartio:b/a1234567890123456789012345678901",
	};
	struct sio_identity out = {.cluster = "kept"};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(sio_identity_parse(wrong[i], strlen(wrong[i]), &out), -EINVAL);
	/* What stands behind a NUL byte counts. */
	assert_int_equal(sio_identity_parse("smartio:a/b\0c", 13, &out), -EINVAL);
	assert_string_equal(out.cluster, "kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_make_messages),
		cmocka_unit_test(no_bytes_are_no_message),
		cmocka_unit_test(wrong_headers_are_named),
		cmocka_unit_test(names_go_there_and_back),
		cmocka_unit_test(other_uris_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
