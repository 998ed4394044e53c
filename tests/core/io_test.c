/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the copies of smartio/io.h leave, at every place in a line and of every length around some.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "prng.h"
#include "smartio/io.h"

#define LINE 64u
#define MOST (4 * LINE + 1)
#define AREA (MOST + 3 * LINE)

static void by_string(volatile void *to, const void *from, size_t len)
{
	sio_copy_string(to, from, len);
}

static void check_all(void (*copy)(volatile void *to, const void *from, size_t len))
{
	_Alignas(LINE) uint8_t to[AREA], want[AREA], from[AREA];

	for (unsigned i = 0; i < AREA; i++)
		from[i] = (uint8_t)prng();
	for (unsigned at = 0; at < LINE; at++)
		for (unsigned len = 0; len <= MOST; len++) {
			unsigned source = (unsigned)prng_below(LINE);

			memset(to, 0xa5, AREA);
			memset(want, 0xa5, AREA);
			for (unsigned i = 0; i < len; i++)
				want[LINE + at + i] = from[source + i];
			copy(to + LINE + at, from + source, len);
			sio_to_fabric_barrier();
			assert_memory_equal(to, want, AREA);
		}
}

static void test_copies(void **state)
{
	(void)state;
	prng_start(5, 1);
	check_all(sio_copy_to);
	check_all(sio_copy_stream);
	check_all(by_string);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
