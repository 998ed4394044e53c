/* SPDX-License-Identifier: BSD-2-Clause */
/* The table that short copies look at: whose handle it is, and nobody else's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "session/quick.h"

static struct sio_world live = {.alone = true}, simulated;
static uint8_t memory[64];

/* A handle of slot @index. */
static uintptr_t handle_of(unsigned index, unsigned generation)
{
	return (uintptr_t)generation << 32 | (uintptr_t)index << SIO_HANDLE_INDEX_SHIFT;
}

static bool finds(uintptr_t handle, const uint8_t *at, size_t bytes)
{
	uint8_t *got = NULL;
	size_t n = 0;

	return sio_quick_get(handle, &got, &n) && got == at && n == bytes;
}

static bool knows(uintptr_t handle)
{
	uint8_t *at;
	size_t bytes;

	return sio_quick_get(handle, &at, &bytes);
}

static void tells_what_was_set(void **state)
{
	uintptr_t h = handle_of(7, 3);

	(void)state;
	assert_false(knows(h));
	sio_quick_set(&live, h, memory, 64);
	assert_true(finds(h, memory, 64));
	assert_false(knows(handle_of(7, 2)));
	assert_false(knows(handle_of(8, 3)));
	sio_quick_clear(&live, handle_of(7, 2)); /* not its own */
	assert_true(finds(h, memory, 64));
	sio_quick_clear(&live, h);
	assert_false(knows(h));
}

static void the_later_of_two_has_the_place(void **state)
{
	uintptr_t first = handle_of(5, 1), later = handle_of(5 + SIO_QUICK_ENTRIES, 1);

	(void)state;
	sio_quick_set(&live, first, memory, 8);
	sio_quick_set(&live, later, memory + 8, 16);
	assert_false(knows(first));
	assert_true(finds(later, memory + 8, 16));
	sio_quick_clear(&live, first);
	assert_true(finds(later, memory + 8, 16));
	sio_quick_clear(&live, later);
	assert_false(knows(later));
}

/* A reader may have slept since it saw the handle. */
static void who_lost_its_place_does_not_get_it_back(void **state)
{
	uintptr_t first = handle_of(6, 1), later = handle_of(6 + SIO_QUICK_ENTRIES, 1);

	(void)state;
	sio_quick_set(&live, first, memory, 8);
	sio_quick_clear(&live, first);
	sio_quick_again(&live, first, memory, 8);
	assert_true(finds(first, memory, 8));
	sio_quick_clear(&live, first);
	sio_quick_set(&live, later, memory + 8, 16);
	sio_quick_again(&live, first, memory, 8);
	assert_true(finds(later, memory + 8, 16));
	sio_quick_clear(&live, later);
	sio_quick_again(&live, first, memory, 8);
	assert_false(knows(first));
}

static void no_handle_is_none(void **state)
{
	(void)state;
	sio_quick_set(&live, handle_of(SIO_QUICK_ENTRIES, 1), memory, 8);
	sio_quick_clear(&live, handle_of(SIO_QUICK_ENTRIES, 1));
	assert_true(finds(0, NULL, 0));
}

static void a_world_of_many_processes_has_none(void **state)
{
	(void)state;
	sio_quick_set(&simulated, handle_of(9, 1), memory, 8);
	assert_false(knows(handle_of(9, 1)));
}

static void a_child_forgets(void **state)
{
	(void)state;
	sio_quick_set(&live, handle_of(1, 1), memory, 8);
	sio_quick_set(&live, handle_of(SIO_QUICK_ENTRIES - 1, 1), memory, 8);
	sio_quick_forget();
	assert_false(knows(handle_of(1, 1)));
	assert_false(knows(handle_of(SIO_QUICK_ENTRIES - 1, 1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_was_set),
		cmocka_unit_test(the_later_of_two_has_the_place),
		cmocka_unit_test(who_lost_its_place_does_not_get_it_back),
		cmocka_unit_test(no_handle_is_none),
		cmocka_unit_test(a_world_of_many_processes_has_none),
		cmocka_unit_test(a_child_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
