/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/devstate.h"

/* Each state and event: the state after it; '-': that cannot be. */
static void every_pair(void **state)
{
	static const char table[SIO_DEV_STATES][SIO_DEV_EVENTS + 1] = {
		/* LEND WANT START DONE FAIL NEW */
		[SIO_DEV_FOUND] = "UW---N",   [SIO_DEV_CLEAN] = "UW---N",
		[SIO_DEV_USED] = "UW---N",    [SIO_DEV_WANTED] = "-WR--N",
		[SIO_DEV_RUNNING] = "-R-CFR", [SIO_DEV_FAILED] = "UW---N",
	};
	static const char letters[] = "NCUWRF";

	(void)state;
	for (unsigned s = 0; s < SIO_DEV_STATES; s++)
		for (unsigned e = 0; e < SIO_DEV_EVENTS; e++) {
			enum sio_dev_state at = (enum sio_dev_state)s;
			bool can = sio_dev_step(&at, (enum sio_dev_event)e);

			assert_int_equal(can, table[s][e] != '-');
			assert_int_equal(letters[at], can ? table[s][e] : letters[s]);
		}
}

static void names(void **state)
{
	(void)state;
	for (unsigned s = 0; s < SIO_DEV_STATES; s++)
		for (unsigned o = 0; o < s; o++)
			assert_string_not_equal(sio_dev_state_name((enum sio_dev_state)s),
						sio_dev_state_name((enum sio_dev_state)o));
	assert_string_equal(sio_dev_state_name(SIO_DEV_STATES), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
