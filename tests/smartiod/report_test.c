/* SPDX-License-Identifier: BSD-2-Clause */
/* What a RELOAD has to tell, of more lines than are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "smartiod/base/state.h"

#define TOLD (SMARTIOD_REPORT_LINES + 3)

static void the_first_are_kept_and_all_are_counted(void **state)
{
	static struct smartiod d;
	char want[SIO_RELOAD_TEXT];

	(void)state;
	for (unsigned i = 0; i < TOLD; i++)
		smartiod_report(&d, i % 2 ? SIO_RELOAD_STAYS : SIO_RELOAD_NOW, "change %u", i);
	assert_int_equal(d.report.n, SMARTIOD_REPORT_LINES);
	assert_int_equal(d.report.count[SIO_RELOAD_NOW] + d.report.count[SIO_RELOAD_STAYS], TOLD);
	assert_int_equal(d.report.count[SIO_RELOAD_STAYS], TOLD / 2);
	for (unsigned i = 0; i < d.report.n; i++) {
		snprintf(want, sizeof(want), "change %u", i);
		assert_string_equal(d.report.line[i].text, want);
		assert_int_equal(d.report.line[i].kind, i % 2 ? SIO_RELOAD_STAYS : SIO_RELOAD_NOW);
	}
	smartiod_report_clear(&d);
	assert_int_equal(d.report.n, 0);
	assert_null(d.report.line);
}

static void a_line_too_long_is_cut(void **state)
{
	static struct smartiod d;

	(void)state;
	smartiod_report(&d, SIO_RELOAD_NOW, "%0*d", 2 * SIO_RELOAD_TEXT, 7);
	assert_int_equal(strlen(d.report.line[0].text), SIO_RELOAD_TEXT - 1);
	smartiod_report_clear(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_are_kept_and_all_are_counted),
		cmocka_unit_test(a_line_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
