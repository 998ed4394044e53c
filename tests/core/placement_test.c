/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/placement.h"

enum { BORROWER, LENDER };

#define DR SIO_HINT_DEVICE_READ
#define DW SIO_HINT_DEVICE_WRITE
#define HR SIO_HINT_HOST_READ
#define HW SIO_HINT_HOST_WRITE
#define MULTI SIO_HINT_MULTIHOST
#define P2P SIO_HINT_P2P

static const struct sio_place far[] = {
	/* The borrower's, and the lender's: his device is a link away from his memory. */
	{.node = 4, .borrower = true, .device_hops = 5, .host_hops = 0},
	{.node = 8, .lender = true, .device_hops = 1, .host_hops = 4},
};

static int first(uint32_t hints, uint32_t flags)
{
	unsigned order[SIO_PLACE_SITES];
	int n = sio_placement_rank(far, 2, hints, flags, order, NULL);

	return n < 0 ? n : (int)order[0];
}

/* Every set of the four accesses. */
static void each_access_finds_its_side(void **state)
{
	static const struct {
		uint32_t hints;
		int want;
	} table[] = {
		{0, BORROWER}, /* all four: the same cost, so the caller's first */
		{DR, LENDER},
		{DW, LENDER},
		{DR | DW, LENDER},
		{HR, BORROWER},
		{HW, BORROWER},
		{HR | HW, BORROWER},
		{DR | HW, LENDER},   /* submission queue */
		{DW | HR, BORROWER}, /* completion queue */
		{DR | HR, BORROWER}, /* the same cost */
		{DW | HW, BORROWER}, /* the same cost */
		{DR | DW | HR, LENDER},
		{DR | DW | HW, LENDER},
		{DR | HR | HW, BORROWER},
		{DW | HR | HW, BORROWER},
		{DR | DW | HR | HW, BORROWER},
		/* Others of the kind weigh once more. */
		{DR | HR | MULTI, BORROWER},
		{DR | HR | P2P, LENDER},
		{DR | HW | MULTI, LENDER},
		{DW | HR | P2P, BORROWER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(first(table[i].hints, 0), table[i].want);
}

static void flags_decide(void **state)
{
	unsigned order[SIO_PLACE_SITES];

	(void)state;
	assert_int_equal(first(DW | HR, SIO_PLACE_DEVICE_SIDE_ONLY), LENDER);
	assert_int_equal(first(DR | HW, SIO_PLACE_LOCAL_ONLY), BORROWER);
	assert_int_equal(sio_placement_rank(far, 2, DR, SIO_PLACE_LOCAL_ONLY, order, NULL), 1);
	assert_int_equal(sio_placement_rank(far, 2, DR, 0, order, NULL), 2);
	assert_int_equal(order[0], LENDER);
	assert_int_equal(order[1], BORROWER);
	assert_int_equal(first(0, SIO_PLACE_DEVICE_SIDE_ONLY | SIO_PLACE_LOCAL_ONLY), -EINVAL);
	assert_int_equal(first(DW | HR, SIO_PLACE_DEVICE_PREFER_BANDWIDTH), LENDER);
	assert_int_equal(first(DR | HW, SIO_PLACE_HOST_PREFER_BANDWIDTH), BORROWER);
	/* Both: each side is preferred to the other, so nothing is. */
	assert_int_equal(
		first(DR | HW, SIO_PLACE_HOST_PREFER_BANDWIDTH | SIO_PLACE_DEVICE_PREFER_BANDWIDTH),
		LENDER);
}

/* Whatever the other side does, a preferred side wins. */
static void preference_outweighs_all(void **state)
{
	(void)state;
	for (uint32_t device = 1; device < 4; device++)
		for (uint32_t host = 4; host < 16; host += 4) {
			assert_int_equal(
				first(device | host | MULTI, SIO_PLACE_DEVICE_PREFER_BANDWIDTH),
				LENDER);
			assert_int_equal(
				first(device | host | P2P, SIO_PLACE_HOST_PREFER_BANDWIDTH),
				BORROWER);
		}
}

static void both_only_flags_agree_on_the_lender_itself(void **state)
{
	static const struct sio_place here = {.node = 4, .lender = true, .borrower = true};
	unsigned order[SIO_PLACE_SITES];

	(void)state;
	assert_int_equal(sio_placement_rank(&here, 1, DR,
					    SIO_PLACE_DEVICE_SIDE_ONLY | SIO_PLACE_LOCAL_ONLY,
					    order, NULL),
			 1);
}

static void fewer_hops_win(void **state)
{
	static const struct sio_place place[] = {
		{.node = 12, .device_hops = 2, .host_hops = 2},
		{.node = 16, .device_hops = 1, .host_hops = 2},
		{.node = 20, .device_hops = 1, .host_hops = 1},
	};
	unsigned order[SIO_PLACE_SITES];

	(void)state;
	assert_int_equal(sio_placement_rank(place, 3, 0, 0, order, NULL), 3);
	assert_int_equal(order[0], 2);
	assert_int_equal(order[1], 1);
	assert_int_equal(order[2], 0);
}

/*
 * The device and the lender's adapter are in one chassis: the borrower's memory is no further away
 * than the two ways by the lender's root together, and less than them.
 */
static void a_chassis_brings_the_borrower_nearer(void **state)
{
	static const struct sio_place deep[] = {
		{.node = 8, .lender = true, .device_hops = 4, .host_hops = 4},
		{.node = 4, .borrower = true, .device_hops = 5, .host_hops = 0},
	};
	unsigned order[SIO_PLACE_SITES];

	(void)state;
	assert_int_equal(sio_placement_rank(deep, 2, 0, 0, order, NULL), 2);
	assert_int_equal(order[0], 1); /* beside the root both cost the same */
	assert_int_equal(sio_placement_rank(deep, 2, DR | HW, 0, order, NULL), 2);
	assert_int_equal(order[0], 0);
	assert_int_equal(
		sio_placement_rank(deep, 2, DR | DW, SIO_PLACE_HOST_PREFER_BANDWIDTH, order, NULL),
		2);
	assert_int_equal(order[0], 0); /* nothing is preferred, for the host does nothing */
	assert_int_equal(sio_placement_rank(deep, 2, DR | HR, SIO_PLACE_DEVICE_PREFER_BANDWIDTH,
					    order, NULL),
			 2);
	assert_int_equal(order[0], 0);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	assert_int_equal(first(0x40, 0), -EINVAL);
	assert_int_equal(first(MULTI, 0), -EINVAL);
	assert_int_equal(first(MULTI | DR, 0), -EINVAL);
	assert_int_equal(first(P2P | HR, 0), -EINVAL);
	assert_int_equal(first(DR, 0x02000000), -EINVAL); /* a part of a flag */
	assert_int_equal(first(DR, 0x00001000), -EINVAL);
	assert_int_equal(first(DR, 0x8), -EINVAL);
}

static void more_places_than_there_are_names_for(void **state)
{
	static struct sio_place place[SIO_PLACE_SITES + 1];
	unsigned order[SIO_PLACE_SITES] = {77};
	struct sio_err err;

	(void)state;
	assert_int_equal(sio_placement_rank(place, SIO_PLACE_SITES + 1, 0, 0, order, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "places"));
	assert_int_equal(order[0], 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_access_finds_its_side),
		cmocka_unit_test(flags_decide),
		cmocka_unit_test(preference_outweighs_all),
		cmocka_unit_test(both_only_flags_agree_on_the_lender_itself),
		cmocka_unit_test(fewer_hops_win),
		cmocka_unit_test(a_chassis_brings_the_borrower_nearer),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(more_places_than_there_are_names_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
