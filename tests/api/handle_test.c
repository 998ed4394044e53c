/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of handles: what is refused, when an object is freed, reuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session/handle.h"

static unsigned freed;

static void count_free(void *object)
{
	freed += *(unsigned *)object;
}

static int setup(void **state)
{
	freed = 0;
	return sio_handles_new(count_free, (struct sio_handles **)state);
}

static int teardown(void **state)
{
	sio_handles_free(*state);
	return 0;
}

static void wrong_handles_are_refused(void **state)
{
	static const uintptr_t wrong[] = {0, 1, 8, 0xffffffffffffffff, 0x100000000, 0x101000000};
	unsigned object = 1;
	uintptr_t h;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		for (unsigned kind = 1; kind < 16; kind++)
			assert_null(sio_handle_get(*state, wrong[i], kind));
	assert_int_equal(sio_handle_new(*state, 3, &object, &h), 0);
	for (unsigned kind = 1; kind < 16; kind++)
		assert_ptr_equal(sio_handle_get(*state, h, kind), kind == 3 ? &object : NULL);
	/* Every other number of one bit's difference. */
	for (unsigned bit = 0; bit < 64; bit++)
		for (unsigned kind = 1; kind < 16; kind++)
			assert_null(sio_handle_get(*state, h ^ 1ull << bit, kind));
	assert_null(sio_handle_words(*state, h, 2));
	assert_non_null(sio_handle_words(*state, h, 3));
	sio_handle_put(*state, h);
	sio_handle_remove(*state, h);
	assert_int_equal(freed, 1);
}

static void the_last_reference_frees(void **state)
{
	unsigned object = 1;
	uintptr_t h;

	assert_int_equal(sio_handle_new(*state, 1, &object, &h), 0);
	assert_ptr_equal(sio_handle_get(*state, h, 1), &object);
	sio_handle_ref(*state, h);
	sio_handle_remove(*state, h);
	assert_null(sio_handle_get(*state, h, 1));
	assert_null(sio_handle_words(*state, h, 1));
	sio_handle_put(*state, h);
	assert_int_equal(freed, 0);
	sio_handle_put(*state, h);
	assert_int_equal(freed, 1);
	assert_null(sio_handle_get(*state, h, 1));
}

#define MANY 3000

static void a_used_handle_never_comes_back(void **state)
{
	static uintptr_t old[MANY], live[MANY];
	unsigned object = 1;

	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(sio_handle_new(*state, 1, &object, &live[i]), 0);
		assert_int_not_equal(live[i], 0);
		*sio_handle_words(*state, live[i], 1) = i;
	}
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(*sio_handle_words(*state, live[i], 1), i);
		old[i] = live[i];
		sio_handle_remove(*state, old[i]);
	}
	assert_int_equal(freed, MANY);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < MANY; i++) {
			assert_int_equal(sio_handle_new(*state, 1, &object, &live[i]), 0);
			assert_int_equal(*sio_handle_words(*state, live[i], 1), 0);
		}
		for (unsigned i = 0; i < MANY; i++)
			assert_null(sio_handle_get(*state, old[i], 1));
		for (unsigned i = 0; i < MANY; i++)
			sio_handle_remove(*state, live[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wrong_handles_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_reference_frees, setup, teardown),
		cmocka_unit_test_setup_teardown(a_used_handle_never_comes_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
