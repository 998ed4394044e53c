/* SPDX-License-Identifier: BSD-2-Clause */
/* What is printed and tools/schema (argv[1]) agree; strings and large values. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "envelope/envelope.h"

static const char *schema_dir;

static struct json_object *member(struct json_object *o, const char *path)
{
	char *copy = strdup(path), *rest = copy, *key;

	assert_non_null(copy);
	while ((key = strsep(&rest, ".")))
		assert_true(json_object_object_get_ex(o, key, &o));
	free(copy);
	return o;
}

/*
 * Each file of tools/schema is of the schema that it is called after, and of the version that is
 * printed.
 */
static void each_file_is_its_schema(void **state)
{
	char path[512], name[64];
	struct dirent *entry;
	unsigned files = 0;
	DIR *dir;

	(void)state;
	dir = opendir(schema_dir);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		size_t len = strcspn(entry->d_name, ".");
		struct json_object *o;

		if (strcmp(entry->d_name + len, ".json") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", schema_dir, entry->d_name);
		snprintf(name, sizeof(name), "smartio/%.*s", (int)len, entry->d_name);
		o = json_object_from_file(path);
		assert_non_null(o);
		assert_string_equal(json_object_get_string(member(o, "properties.schema.const")),
				    name);
		assert_int_equal(json_object_get_int(member(o, "properties.version.const")),
				 sio_envelope_version(name + strlen("smartio/")));
		json_object_put(o);
		files++;
	}
	closedir(dir);
	assert_true(files > 20);
}

static void document(void **state)
{
	struct json_object *o;
	char *text;

	(void)state;
	text = sio_envelope_text("stats", json_object_new_array());
	assert_non_null(text);
	assert_int_equal(text[strlen(text) - 1], '\n');
	o = json_tokener_parse(text);
	assert_string_equal(json_object_get_string(member(o, "schema")), "smartio/stats");
	assert_int_equal(json_object_get_int(member(o, "version")), 1);
	assert_int_equal(json_object_get_type(member(o, "data")), json_type_array);
	json_object_put(o);
	free(text);
	assert_null(sio_envelope_text("stats", NULL));
}

static void large_values_are_strings(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} table[] = {{0, "0x0"},
		     {1, "0x1"},
		     {1ULL << 53 | 1, "0x20000000000001"},
		     {UINT64_MAX, "0xffffffffffffffff"}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct json_object *o = sio_json_hex(table[i].value);

		assert_string_equal(json_object_get_string(o), table[i].text);
		json_object_put(o);
	}
}

static void what_is_no_utf8_is_replaced(void **state)
{
	static const struct {
		const char *text, *want;
	} table[] = {
		{"", ""},
		{"plain\n\x7f", "plain\n\x7f"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xbe", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xbe"},
		{"\xff", "?"},
		{"\xc3", "?"},		      /* ends too early */
		{"a\xe2\x82z", "a??z"},	      /* and in the middle */
		{"\xc0\xaf", "??"},	      /* '/' in two bytes */
		{"\xe0\x80\xaf", "???"},      /* and in three */
		{"\xed\xa0\x80", "???"},      /* a surrogate */
		{"\xf4\x90\x80\x80", "????"}, /* beyond the last character */
		{"\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xf4\x8f\xbf\xbf"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct json_object *o = sio_json_string(table[i].text);

		assert_string_equal(json_object_get_string(o), table[i].want);
		json_object_put(o);
	}
}

static void error(void **state)
{
	static const char *const messages[] = {"one", "two"};
	struct sio_envelope_error e = {"smartio", "stats", 1, -2, messages, 2};
	struct json_object *o = sio_envelope_error(&e);

	(void)state;
	assert_string_equal(json_object_get_string(member(o, "errno")), "ENOENT");
	assert_int_equal(json_object_array_length(member(o, "messages")), 2);
	json_object_put(o);
	e.error = 0;
	o = sio_envelope_error(&e);
	assert_null(member(o, "errno"));
	json_object_put(o);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_file_is_its_schema),
		cmocka_unit_test(document),
		cmocka_unit_test(large_values_are_strings),
		cmocka_unit_test(what_is_no_utf8_is_replaced),
		cmocka_unit_test(error),
	};

	if (argc != 2)
		return 2;
	schema_dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
