/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O addresses of a device, of the ranges that its kernel lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "smartiod/port_vfio/vfio_port.h"

#define LOWEST 0x10000u
#define PAGE 0x1000u

static void the_lowest_are_not_used(void **state)
{
	struct vfio_space s = {0};

	(void)state;
	vfio_space_add(&s, 0, LOWEST - 1);
	assert_int_equal(s.highest, 0);
	vfio_space_add(&s, LOWEST, 2 * LOWEST - 1);
	assert_int_equal(s.lowest, LOWEST);
	assert_int_equal(s.n_holes, 0);
	s = (struct vfio_space){0};
	vfio_space_add(&s, 0, UINT64_MAX);
	assert_int_equal(s.lowest, LOWEST);
	assert_true(s.highest == UINT64_MAX && s.n_holes == 0);
}

static void what_lies_between_two_is_a_hole(void **state)
{
	struct vfio_space s = {0};

	(void)state;
	vfio_space_add(&s, LOWEST, 0xfedfffff);
	vfio_space_add(&s, 0xfef00000, 0xffffffff);
	vfio_space_add(&s, 0x100000000, UINT64_MAX); /* nothing lies between */
	assert_int_equal(s.lowest, LOWEST);
	assert_true(s.highest == UINT64_MAX);
	assert_int_equal(s.n_holes, 1);
	assert_int_equal(s.hole[0].base, 0xfee00000);
	assert_int_equal(s.hole[0].size, 0x100000);
}

/* Nothing that is used is in a hole that there was no room for. */
static void with_too_many_holes_only_what_lies_below_is_used(void **state)
{
	struct vfio_space s = {0};

	(void)state;
	for (uint64_t i = 0; i < 2 * VFIO_HOLES; i++)
		vfio_space_add(&s, LOWEST + 2 * i * PAGE, LOWEST + (2 * i + 1) * PAGE - 1);
	assert_int_equal(s.n_holes, VFIO_HOLES);
	for (uint64_t i = 0; i < VFIO_HOLES; i++) {
		assert_int_equal(s.hole[i].base, LOWEST + (2 * i + 1) * PAGE);
		assert_int_equal(s.hole[i].size, PAGE);
	}
	assert_int_equal(s.highest, LOWEST + (2 * VFIO_HOLES + 1) * PAGE - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_are_not_used),
		cmocka_unit_test(what_lies_between_two_is_a_hole),
		cmocka_unit_test(with_too_many_holes_only_what_lies_below_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
