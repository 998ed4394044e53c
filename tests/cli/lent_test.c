/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of what is lent when a machine starts: kept, changed, refused by the line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/lent.h"

static char folder[] = "/tmp/sio-lent-XXXXXX", path[64];

static int make(void **state)
{
	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/lent", folder);
	return 0;
}

static int drop(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder); /* and nothing else is there */
}

static void put(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void is_kept(void **state)
{
	const struct tool_lent e[] = {{"0000:05:00.0", 0x8086, 0x10d3},
				      {"0001:00:1f.7", 0x1b36, 0x10},
				      {"0000:05:00.0", 0x144d, 0xa808}};
	struct tool_lent_list list;
	struct sio_err err;

	(void)state;
	assert_int_equal(tool_lent_read(path, &list, &err), 0);
	assert_int_equal(list.n, 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(tool_lent_add(&list, &e[i], &err), 0);
	assert_int_equal(tool_lent_write(path, &list, &err), 0);
	assert_int_equal(tool_lent_read(path, &list, &err), 0);
	assert_int_equal(list.n, 2); /* what lies in a place is one thing */
	assert_string_equal(list.entry[0].bdf, "0000:05:00.0");
	assert_int_equal(list.entry[0].device, 0xa808);
	assert_int_equal(list.entry[1].vendor, 0x1b36);
	assert_false(tool_lent_remove(&list, "0000:06:00.0"));
	assert_true(tool_lent_remove(&list, "0000:05:00.0"));
	assert_int_equal(list.n, 1);
	assert_string_equal(list.entry[0].bdf, "0001:00:1f.7");
}

static void rubbish_is_named(void **state)
{
	static const char *const wrong[] = {
		"rubbish\n",
		"0000:05:00.0\n",
		"0000:05:00.0 8086\n",
		"05:00.0 8086:10d3\n",
		"0000:05:00.0 8086:10d3 x\n",
		"0000:05:00.0x 8086:10d3\n",
		"../../../etc 8086:10d3\n",
		"0000:05:00.0000000000000000000000 8086:10d3\n",
	};
	struct tool_lent_list list;
	struct sio_err err;
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "# said\n\n0000:05:00.0 8086:10d3\n%s", wrong[i]);
		put(text);
		assert_int_equal(tool_lent_read(path, &list, &err), -EINVAL);
		assert_non_null(strstr(err.text, "line 4"));
	}
}

static void is_not_endless(void **state)
{
	struct tool_lent_list list = {.n = 0};
	struct tool_lent e = {.vendor = 1, .device = 2};
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < TOOL_LENT_MAX; i++) {
		snprintf(e.bdf, sizeof(e.bdf), "0000:%02x:00.0", i);
		assert_int_equal(tool_lent_add(&list, &e, &err), 0);
	}
	strcpy(e.bdf, "0001:00:00.0");
	assert_int_equal(tool_lent_add(&list, &e, &err), -ENOSPC);
	put("");
	assert_int_equal(tool_lent_write(folder, &list, &err) < 0, 1);
	assert_non_null(strstr(err.text, folder));
	snprintf(e.bdf, sizeof(e.bdf), "%s", "0000:00:00.0");
	assert_int_equal(tool_lent_add(&list, &e, &err), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(is_kept), CASE(rubbish_is_named),
					   CASE(is_not_endless)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
