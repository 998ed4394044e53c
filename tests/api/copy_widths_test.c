/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies by registers of each width that this processor has: each size, at many places of a line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sisci/copy.h"

#define MOST 16700u /* above what the widest does without memcpy() */
#define LINE 64u

/* Bytes that no neighbour and no other place of a part has. */
static uint8_t drawn(size_t i)
{
	return (uint8_t)(i * 131u + (i >> 8) * 17u + 1u);
}

/* On the heap, as long as is asked for: a sanitizer sees what is read or written beyond. */
static void copied(sio_copy_fn *copy, size_t size, size_t to_place, size_t from_place)
{
	uint8_t *to_block = malloc(1 + to_place + size),
		*from_block = malloc(1 + from_place + size);
	uint8_t *to = to_block + 1 + to_place, *from = from_block + 1 + from_place;

	assert_non_null(to_block);
	assert_non_null(from_block);
	memset(to_block, 0, 1 + to_place + size);
	for (size_t i = 0; i < size; i++)
		from[i] = drawn(i);
	copy(to, from, size);
	for (size_t i = 0; i < size; i++)
		if (to[i] != drawn(i))
			fail_msg("byte %zu of %zu, to %zu from %zu", i, size, to_place, from_place);
	for (size_t i = 0; i <= to_place; i++)
		assert_int_equal(to_block[i], 0);
	free(from_block);
	free(to_block);
}

/* What lies behind stays as it is, too, where no sanitizer looks. */
static void nothing_behind(sio_copy_fn *copy, size_t size)
{
	uint8_t to[2 * LINE + MOST], from[MOST];

	memset(to, 0xee, sizeof(to));
	memset(from, 0x11, sizeof(from));
	copy(to + LINE, from, size);
	for (size_t i = 0; i < sizeof(to); i++)
		assert_int_equal(to[i], i < LINE || i >= LINE + size ? 0xee : 0x11);
}

static void all_sizes(sio_copy_fn *copy)
{
	for (size_t size = 0; size <= MOST; size += size < 1100 ? 1 : size < 4400 ? 7 : 61) {
		copied(copy, size, size % LINE, size * 29 % LINE);
		copied(copy, size, 0, 0);
		nothing_behind(copy, size);
	}
}

static void test_widths(void **state)
{
	(void)state;
	assert_non_null(sio_copy_by(16));
	assert_null(sio_copy_by(8));
	for (unsigned bytes = 16; bytes <= LINE; bytes *= 2) {
		sio_copy_fn *copy = sio_copy_by(bytes);

		if (copy)
			all_sizes(copy);
		else
			print_message("this processor has no registers of %u bytes\n", bytes);
	}
}

static void test_chosen(void **state)
{
	(void)state;
	all_sizes(sio_copy_middle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
