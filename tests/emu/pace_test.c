/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emu/pace.h"

static void texts(void **state)
{
	static const char *const wrong[] = {"",
					    ":",
					    "20:",
					    "20:10",
					    "-1",
					    "20:200x",
					    " 20",
					    "20 ",
					    "1e3",
					    "100001",
					    "5:100001",
					    "20::30",
					    "18446744073709551636"};
	struct emu_pace p = {.min = 7};
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(emu_pace_parse(&p, wrong[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "MIN:MAX"));
		assert_int_equal(p.min, 7);
	}
	assert_int_equal(emu_pace_parse(&p, "20:200", NULL), 0);
	assert_int_equal(p.min, 20000);
	assert_int_equal(p.max, 200000);
	assert_int_equal(p.window, 20000);
	assert_int_equal(emu_pace_parse(&p, "0", NULL), 0);
	assert_int_equal(p.max, 0);
	assert_int_equal(emu_pace_parse(&p, "100000:100000", NULL), 0);
}

static void grows_where_looking_would_have_met_the_work(void **state)
{
	struct emu_pace p;

	(void)state;
	emu_pace_parse(&p, "20:200", NULL);
	emu_pace_slept(&p, 100000);
	assert_int_equal(p.window, 40000);
	for (unsigned i = 0; i < 10; i++)
		emu_pace_slept(&p, 199999);
	assert_int_equal(p.window, 200000);
	emu_pace_slept(&p, 200000);
	assert_int_equal(p.window, 20000);
}

static void a_window_of_nothing(void **state)
{
	struct emu_pace p;

	(void)state;
	emu_pace_parse(&p, "0:50", NULL);
	emu_pace_slept(&p, 1000);
	assert_int_equal(p.window, 10000);
	emu_pace_slept(&p, 1000000);
	assert_int_equal(p.window, 0);
	emu_pace_parse(&p, "0", NULL);
	emu_pace_slept(&p, 0);
	assert_int_equal(p.window, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(grows_where_looking_would_have_met_the_work),
		cmocka_unit_test(a_window_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
