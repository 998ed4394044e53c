/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes and tables as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/output.h"

static void sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} table[] = {
		{0, "0"},
		{1, "1"},
		{1023, "1023"},
		{1024, "1K"},
		{1536, "1.5K"},
		{1024 * 1024 - 1, "1023.9K"},
		{256ULL << 20, "256M"},
		{(1ULL << 30) + 1, "1G"},
		{3ULL << 29, "1.5G"},
		{UINT64_MAX, "15.9E"},
	};
	char text[TOOL_SIZE_TEXT];

	(void)state;
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal(tool_size(table[i].bytes, text), table[i].text);
}

/* What @print writes to stdout. */
static void captured(void (*print)(void), char *text, size_t size)
{
	FILE *f = tmpfile();
	int saved;
	size_t len;

	assert_non_null(f);
	fflush(stdout);
	saved = dup(1);
	assert_true(saved >= 0 && dup2(fileno(f), 1) == 1);
	print();
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	rewind(f);
	len = fread(text, 1, size - 1, f);
	text[len] = '\0';
	fclose(f);
}

static void print_table(void)
{
	struct tool_table *t = tool_table_new("NAME|>SIZE|NOTE");

	tool_table_cell(t, "a");
	tool_table_cell(t, "%d", 12345);
	tool_table_cell(t, "x\n\033[2J");
	tool_table_cell(t, "longer");
	tool_table_cell(t, "%d", 7);
	tool_table_cell(t, "%s", "");
	assert_int_equal(tool_table_end(t), 0);
}

static void aligned(void **state)
{
	char text[512];

	(void)state;
	captured(print_table, text, sizeof(text));
	assert_string_equal(text, "NAME     SIZE  NOTE\n"
				  "a       12345  x??[2J\n"
				  "longer      7  -\n");
}

static void print_nothing(void)
{
	assert_int_equal(tool_table_end(tool_table_new("A|>B")), 0);
}

static void empty_has_titles(void **state)
{
	char text[64];

	(void)state;
	captured(print_nothing, text, sizeof(text));
	assert_string_equal(text, "A  B\n");
}

static void print_json(void)
{
	struct json_object *o = tool_json_object();

	tool_json_number(o, "number", 1ULL << 53);
	tool_json_hex(o, "large", UINT64_MAX);
	tool_json_bool(o, "yes", true);
	tool_json_null(o, "none");
	tool_json_string(o, "path", "/a \"b\"");
	assert_int_equal(tool_json_print("stats", o), 0);
}

static void json(void **state)
{
	char text[512];

	(void)state;
	captured(print_json, text, sizeof(text));
	assert_non_null(strstr(text, "\"schema\": \"smartio/stats\""));
	assert_non_null(strstr(text, "\"version\": 1"));
	assert_non_null(strstr(text, "\"number\": 9007199254740992"));
	assert_non_null(strstr(text, "\"large\": \"0xffffffffffffffff\""));
	assert_non_null(strstr(text, "\"yes\": true"));
	assert_non_null(strstr(text, "\"none\": null"));
	assert_non_null(strstr(text, "\"path\": \"/a \\\"b\\\"\""));
	assert_int_equal(text[strlen(text) - 1], '\n');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(aligned),
		cmocka_unit_test(empty_has_titles),
		cmocka_unit_test(json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
