/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "histogram.h"

static struct histogram h;

static void empty_has_no_percentile(void **state)
{
	(void)state;
	histogram_init(&h);
	assert_int_equal(histogram_percentile(&h, 5000), 0);
}

static void small_values_are_exact(void **state)
{
	(void)state;
	histogram_init(&h);
	for (unsigned i = 1; i <= 100; i++)
		histogram_add(&h, i);
	assert_int_equal(histogram_percentile(&h, 0), 1);
	assert_int_equal(histogram_percentile(&h, 1), 1);
	assert_int_equal(histogram_percentile(&h, 5000), 50);
	assert_int_equal(histogram_percentile(&h, 9900), 99);
	assert_int_equal(histogram_percentile(&h, 9999), 100);
	assert_int_equal(histogram_percentile(&h, 10000), 100);
	assert_int_equal(h.min, 1);
	assert_int_equal(h.max, 100);
	assert_int_equal(h.sum, 5050);
}

/* One value alone comes back; beside a larger one within 1 %, and never too small. */
static void every_magnitude_is_kept(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (unsigned bits = 0; bits < 64; bits++) {
		for (unsigned i = 0; i < 20; i++) {
			uint64_t v, p;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			v = (1ull << bits) | (x & ((1ull << bits) - 1));
			histogram_init(&h);
			histogram_add(&h, v);
			assert_true(histogram_percentile(&h, 5000) == v);
			histogram_add(&h, UINT64_MAX);
			p = histogram_percentile(&h, 5000);
			assert_true(p >= v && p - v <= v / 100);
			assert_true(histogram_percentile(&h, 10000) == UINT64_MAX);
		}
	}
}

/* Against what sorting says. */
static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void percentiles_are_those_of_the_sorted_values(void **state)
{
	static const unsigned asked[] = {1, 100, 2500, 5000, 9000, 9900, 9990, 9999, 10000};
	static uint64_t value[5003];
	const unsigned n = sizeof(value) / sizeof(value[0]);
	uint64_t x = 1234567;

	(void)state;
	histogram_init(&h);
	for (unsigned i = 0; i < n; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		value[i] = (x >> 33) >> (x >> 60);
		histogram_add(&h, value[i]);
	}
	qsort(value, n, sizeof(value[0]), compare);
	for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		uint64_t want = value[((uint64_t)asked[i] * n + 9999) / 10000 - 1];
		uint64_t got = histogram_percentile(&h, asked[i]);

		assert_true(got >= want && got - want <= want / 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_has_no_percentile),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(every_magnitude_is_kept),
		cmocka_unit_test(percentiles_are_those_of_the_sorted_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
