/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emu/machine/pace.h"

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

static struct emu_pace of(const char *text)
{
	struct emu_pace p;

	assert_int_equal(emu_pace_parse(&p, text, NULL), 0);
	return p;
}

/* Turns of work until the sockets have theirs. */
static unsigned turns(struct emu_pace *p, unsigned units)
{
	unsigned n = 1;

	for (; !emu_pace_worked(p, units); n++)
		assert_true(n < 1000);
	return n;
}

static void sockets_wait_for_so_much_work(void **state)
{
	struct emu_pace p = of("20:200");

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(turns(&p, 0), EMU_PACE_TURNS);
		assert_int_equal(turns(&p, 1), EMU_PACE_TURNS);
		/* What a turn does of large transfers, and the most that it can begin with. */
		assert_int_equal(turns(&p, 256), EMU_PACE_UNITS / 256);
		assert_int_equal(turns(&p, 32 * 256), 1);
	}
	/* Looks between do not put it off. */
	for (unsigned i = 1; i < EMU_PACE_TURNS; i++) {
		assert_false(emu_pace_worked(&p, 1));
		emu_pace_found_nothing(&p);
		emu_pace_rest(&p, i);
	}
	assert_true(emu_pace_worked(&p, 1));
}

/* Rests, @ns apart, until it sleeps. */
static unsigned rests(struct emu_pace *p, uint64_t ns)
{
	static uint64_t now = 1;
	unsigned n = 0;

	while (emu_pace_rest(p, now += ns) != EMU_REST_SLEEP)
		assert_true(++n < 100000);
	return n;
}

static void only_looking_counts(void **state)
{
	struct emu_pace p = of("20:200");
	unsigned shared;

	(void)state;
	assert_int_equal(rests(&p, 1000), 20);
	assert_int_equal(rests(&p, 1000), 0);
	emu_pace_worked(&p, 1);
	assert_int_equal(rests(&p, 2000), 10);
	/* Somebody else had the processor for milliseconds: that was no looking. */
	emu_pace_look_on(&p);
	shared = rests(&p, 3000000);
	assert_in_range(shared, 2, 10);
	emu_pace_worked(&p, 1);
	assert_int_equal(rests(&p, 100), 200);
	p = of("0");
	emu_pace_worked(&p, 1);
	assert_int_equal(rests(&p, 1000), 0);
}

static void waits_for_a_store_after_a_fault(void **state)
{
	struct emu_pace p = of("0");

	(void)state;
	emu_pace_await(&p);
	assert_int_equal(rests(&p, 1000), 500);
	/* Given up: not again by itself. */
	emu_pace_look_on(&p);
	assert_int_equal(rests(&p, 1000), 0);
	/* On a busy processor, too, it yields many times before the next protection. */
	emu_pace_look_on(&p);
	emu_pace_await(&p);
	assert_in_range(rests(&p, 4000000), 50, 500);
	emu_pace_look_on(&p);
	emu_pace_await(&p);
	emu_pace_worked(&p, 1);
	assert_int_equal(rests(&p, 1000), 0);
}

/* A wait for work of @looks that find nothing. Return: how many of them before the first rest. */
static unsigned wait_for_work(struct emu_pace *p, unsigned looks)
{
	unsigned before = looks;

	for (unsigned i = 0; i < looks; i++)
		if (emu_pace_found_nothing(p) && before == looks)
			before = i;
	emu_pace_worked(p, 1);
	return before;
}

static void yields_where_that_brings_the_work(void **state)
{
	struct emu_pace p = of("20:200");
	unsigned patient = 0;

	(void)state;
	/* Work comes while looking, as from another processor: no wait yields. */
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(wait_for_work(&p, 4), 4);
	/* Nothing came before a yield: the next waits begin with one, but for a probe at times. */
	assert_int_not_equal(wait_for_work(&p, 100), 0);
	for (unsigned i = 0; i < 640; i++)
		patient += wait_for_work(&p, 40) != 0;
	assert_int_equal(patient, 10);
	/* Elsewhere again: a probe finds out, and it stays so. */
	for (unsigned i = 0; i < 64; i++)
		wait_for_work(&p, 2);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(wait_for_work(&p, 4), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(grows_where_looking_would_have_met_the_work),
		cmocka_unit_test(a_window_of_nothing),
		cmocka_unit_test(sockets_wait_for_so_much_work),
		cmocka_unit_test(only_looking_counts),
		cmocka_unit_test(waits_for_a_store_after_a_fault),
		cmocka_unit_test(yields_where_that_brings_the_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
