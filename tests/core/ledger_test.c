/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/ledger.h"
#include "fail_alloc.h"

static struct sio_ledger ledger;

static int setup(void **state)
{
	(void)state;
	sio_ledger_init(&ledger, "drive0");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sio_ledger_done(&ledger);
	return 0;
}

static int borrow(uint64_t id, bool exclusive)
{
	return sio_ledger_borrow(&ledger, id, (uint32_t)id * 4, id + 100, exclusive, NULL);
}

static int take(uint64_t id)
{
	bool fresh;

	return sio_ledger_take_registers(&ledger, id, &fresh, NULL);
}

/* What there is, what is asked for, what comes of it: every pair. */
static void who_may_borrow(void **state)
{
	static const struct {
		enum { NOBODY, SHARED, EXCLUSIVE, OPENED, ENDED, QUARANTINED } there;
		bool exclusive;
		int want;
	} table[] = {
		{NOBODY, false, 0},	 {NOBODY, true, 0},	      {SHARED, false, 0},
		{SHARED, true, -EACCES}, {EXCLUSIVE, false, -EACCES}, {EXCLUSIVE, true, -EACCES},
		{OPENED, false, 0},	 {OPENED, true, -EACCES},     {ENDED, false, 0},
		{ENDED, true, 0},	 {QUARANTINED, false, 0},     {QUARANTINED, true, 0},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		sio_ledger_done(&ledger);
		setup(state);
		if (table[i].there != NOBODY)
			assert_int_equal(borrow(1, table[i].there != SHARED), 0);
		if (table[i].there == OPENED)
			assert_int_equal(sio_ledger_release_exclusive(&ledger, 1, NULL), 0);
		if (table[i].there >= ENDED)
			assert_int_equal(sio_ledger_end(&ledger, 1), 0);
		if (table[i].there == QUARANTINED)
			sio_ledger_closed(&ledger, 1, true);
		assert_int_equal(borrow(2, table[i].exclusive), table[i].want);
		assert_int_equal(sio_ledger_find(&ledger, 2) != NULL, table[i].want == 0);
	}
}

static void refusal_names_device_and_holder(void **state)
{
	struct sio_err err;

	(void)state;
	assert_int_equal(borrow(2, true), 0);
	assert_int_equal(sio_ledger_borrow(&ledger, 3, 12, 1, false, &err), -EACCES);
	assert_non_null(strstr(err.text, "drive0"));
	assert_non_null(strstr(err.text, "node 8"));
}

static void ids_only_grow(void **state)
{
	(void)state;
	assert_int_equal(borrow(0, false), -EINVAL);
	assert_int_equal(borrow(UINT64_MAX, false), -EINVAL);
	assert_int_equal(borrow(5, false), 0);
	assert_int_equal(sio_ledger_end(&ledger, 5), 0);
	sio_ledger_closed(&ledger, 5, false);
	assert_null(sio_ledger_find(&ledger, 5));
	assert_int_equal(borrow(5, false), -EINVAL);
	assert_int_equal(borrow(4, false), -EINVAL);
	assert_int_equal(borrow(6, false), 0);
}

static void only_the_exclusive_one_opens_and_once(void **state)
{
	(void)state;
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 1, NULL), -ENOENT);
	assert_int_equal(borrow(1, true), 0);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 1, NULL), 0);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 1, NULL), -EPERM);
	assert_int_equal(borrow(2, false), 0);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 2, NULL), -EPERM);
}

static void registers_go_to_the_exclusive_one_while_it_lives(void **state)
{
	(void)state;
	assert_int_equal(borrow(1, true), 0);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 1, NULL), 0);
	assert_int_equal(borrow(2, false), 0);
	assert_int_equal(take(2), -EACCES); /* although the first has not taken them */
	assert_int_equal(take(1), 0);
	sio_ledger_drop_registers(&ledger, 1);
	assert_int_equal(take(2), -EACCES);
	assert_int_equal(sio_ledger_end(&ledger, 1), 0);
	assert_int_equal(take(1), -ENOENT);
	assert_int_equal(take(2), 0);
}

static void registers_go_to_the_first_that_maps_them(void **state)
{
	bool fresh = false;

	(void)state;
	assert_int_equal(borrow(1, false), 0);
	assert_int_equal(borrow(2, false), 0);
	assert_int_equal(sio_ledger_take_registers(&ledger, 2, &fresh, NULL), 0);
	assert_true(fresh);
	assert_int_equal(sio_ledger_take_registers(&ledger, 2, &fresh, NULL), 0);
	assert_false(fresh);
	assert_int_equal(take(1), -EACCES);
	sio_ledger_drop_registers(&ledger, 1); /* not its to drop */
	assert_int_equal(take(1), -EACCES);
	sio_ledger_drop_registers(&ledger, 2);
	assert_int_equal(take(1), 0);
	assert_int_equal(take(7), -ENOENT);
}

static void only_the_holder_settles(void **state)
{
	(void)state;
	assert_int_equal(borrow(1, false), 0);
	assert_int_equal(borrow(2, false), 0);
	assert_int_equal(sio_ledger_may_settle(&ledger, 1, NULL), -EACCES);
	assert_int_equal(take(1), 0);
	assert_int_equal(sio_ledger_may_settle(&ledger, 1, NULL), 0);
	assert_int_equal(sio_ledger_may_settle(&ledger, 2, NULL), -EACCES);
	assert_int_equal(sio_ledger_may_settle(&ledger, 3, NULL), -ENOENT);
	assert_int_equal(sio_ledger_end(&ledger, 1), 0);
	assert_int_equal(sio_ledger_may_settle(&ledger, 1, NULL), -ENOENT);
	/* Nobody holds the registers now: what is in quarantine does not. */
	assert_int_equal(sio_ledger_may_reset(&ledger, 2, NULL), 0);
	assert_int_equal(take(2), 0);
}

static void who_may_reset(void **state)
{
	(void)state;
	assert_int_equal(borrow(1, true), 0);
	assert_int_equal(sio_ledger_may_reset(&ledger, 1, NULL), 0); /* exclusive */
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 1, NULL), 0);
	assert_int_equal(borrow(2, false), 0);
	assert_int_equal(sio_ledger_may_reset(&ledger, 2, NULL), 0); /* nobody holds */
	assert_int_equal(take(1), 0);
	assert_int_equal(sio_ledger_may_reset(&ledger, 1, NULL), 0); /* holder */
	assert_int_equal(sio_ledger_may_reset(&ledger, 2, NULL), -EACCES);
	assert_int_equal(sio_ledger_may_reset(&ledger, 3, NULL), -ENOENT);
}

static void quarantine_ends_by_word_only(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 4; id++)
		assert_int_equal(borrow(id, false), 0);
	assert_int_equal(sio_ledger_end(&ledger, 1), 0);
	assert_int_equal(sio_ledger_end(&ledger, 1), -ENOENT);
	assert_int_equal(sio_ledger_end(&ledger, 2), 0);
	assert_int_equal(sio_ledger_end(&ledger, 3), 0);
	sio_ledger_closed(&ledger, 1, true);
	sio_ledger_closed(&ledger, 2, true);
	sio_ledger_closed(&ledger, 4, false); /* it lives: nothing happens */
	assert_int_equal(borrow(5, false), 0);
	assert_int_equal(sio_ledger_end(&ledger, 5), 0);
	sio_ledger_closed(&ledger, 5, false); /* from the middle of the list */
	assert_null(sio_ledger_find(&ledger, 5));
	assert_int_equal(sio_ledger_count(&ledger).live, 1);
	assert_int_equal(sio_ledger_count(&ledger).quarantined, 3);
	assert_int_equal(sio_ledger_settle(&ledger, 4), 0);
	assert_int_equal(sio_ledger_settle(&ledger, 1), 1);
	assert_int_equal(sio_ledger_settle(&ledger, 1), 0);
	/* What the port has not answered for yet is not settled by "all": it was not known. */
	assert_int_equal(sio_ledger_settle(&ledger, SIO_LEDGER_ALL), 1);
	assert_non_null(sio_ledger_find(&ledger, 3));
	sio_ledger_closed(&ledger, 3, false);
	assert_int_equal(sio_ledger_count(&ledger).live, 1);
}

static void walk_goes_in_order_of_ids(void **state)
{
	uint64_t want = 1;

	(void)state;
	for (uint64_t id = 1; id <= 5; id++)
		assert_int_equal(borrow(id, false), 0);
	for (const struct sio_borrow *b = sio_ledger_after(&ledger, 0); b;
	     b = sio_ledger_after(&ledger, b->id)) {
		assert_int_equal(b->id, want);
		assert_int_equal(b->node, want * 4);
		assert_int_equal(b->session, want + 100);
		want++;
	}
	assert_int_equal(want, 6);
}

static int adopt(uint64_t id, bool exclusive)
{
	return sio_ledger_adopt(&ledger, id, 4, exclusive, NULL);
}

static void adopted_device_is_in_use(void **state)
{
	(void)state;
	assert_int_equal(adopt(5, true), 0);
	assert_int_equal(adopt(5, true), -EINVAL);
	assert_int_equal(adopt(0, false), -EINVAL);
	assert_true(sio_ledger_count(&ledger).exclusive);
	assert_int_equal(borrow(5, false), -EINVAL);
	assert_int_equal(borrow(6, false), -EACCES);
	assert_int_equal(sio_ledger_end(&ledger, 5), 0);
	sio_ledger_closed(&ledger, 5, true);
	assert_int_equal(borrow(7, true), 0);
	assert_int_equal(take(7), 0);
	assert_int_equal(sio_ledger_settle(&ledger, 5), 1);
}

/* A later borrow proves that the exclusive one opened the device, in whatever order they come. */
static void adopted_registers_are_nobody_elses(void **state)
{
	(void)state;
	assert_int_equal(adopt(9, false), 0);
	assert_int_equal(adopt(3, true), 0);
	assert_int_equal(sio_ledger_after(&ledger, 0)->id, 3);
	assert_false(sio_ledger_count(&ledger).exclusive);
	assert_int_equal(borrow(10, true), -EACCES);
	assert_int_equal(borrow(10, false), 0);
	assert_int_equal(take(10), -EACCES);
	assert_int_equal(sio_ledger_may_reset(&ledger, 10, NULL), -EACCES);
	assert_int_equal(sio_ledger_end(&ledger, 3), 0);
	assert_int_equal(take(10), -EACCES);
	assert_int_equal(sio_ledger_may_reset(&ledger, 10, NULL), -EACCES);
	assert_int_equal(sio_ledger_end(&ledger, 9), 0);
	assert_int_equal(sio_ledger_may_reset(&ledger, 10, NULL), 0);
	assert_int_equal(take(10), 0);
}

/* Whoever knows what an adopted one has is the adopted one alone, and only while it lives. */
static void adopted_one_holds_what_it_had(void **state)
{
	(void)state;
	assert_int_equal(adopt(SIO_LEDGER_ALL, false), -EINVAL);
	assert_int_equal(adopt(3, false), 0);
	assert_int_equal(borrow(4, false), 0);
	assert_int_equal(sio_ledger_may_hold(&ledger, 4, NULL), -EACCES);
	assert_int_equal(sio_ledger_may_hold(&ledger, 3, NULL), 0);
	assert_int_equal(sio_ledger_may_reset(&ledger, 3, NULL), 0);
	assert_int_equal(adopt(2, false), 0);
	assert_int_equal(sio_ledger_may_hold(&ledger, 3, NULL), -EACCES);
	assert_int_equal(sio_ledger_end(&ledger, 2), 0);
	assert_int_equal(sio_ledger_may_hold(&ledger, 3, NULL), 0);
	sio_ledger_closed(&ledger, 77, true); /* nobody */
	assert_int_equal(sio_ledger_count(&ledger).live, 2);
}

/* Whoever made an adopted entry is back: what it has is known, and it keeps nobody out any more. */
static void restored_one_is_as_it_was(void **state)
{
	(void)state;
	assert_int_equal(adopt(5, true), 0);
	sio_ledger_restore(&ledger, 4, 104, true); /* nobody's: nothing changes */
	sio_ledger_restore(&ledger, 6, 106, true);
	assert_true(sio_ledger_count(&ledger).exclusive);
	sio_ledger_restore(&ledger, 5, 105, false);
	assert_int_equal(sio_ledger_find(&ledger, 5)->session, 105);
	assert_int_equal(borrow(6, false), -EACCES);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 5, NULL), 0);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 5, NULL), -EPERM);
	assert_int_equal(borrow(6, false), 0);
	assert_int_equal(sio_ledger_end(&ledger, 5), 0);
	sio_ledger_restore(&ledger, 5, 205, false); /* too late: it has ended */
	assert_int_equal(sio_ledger_find(&ledger, 5)->session, 105);
	assert_int_equal(take(6), 0);
}

static void restored_one_has_opened_the_device(void **state)
{
	(void)state;
	assert_int_equal(adopt(5, true), 0);
	sio_ledger_restore(&ledger, 5, 105, true);
	assert_false(sio_ledger_count(&ledger).exclusive);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 5, NULL), -EPERM);
	assert_int_equal(borrow(6, false), 0);
	assert_int_equal(take(6), -EACCES); /* they are the first one's */
	assert_int_equal(take(5), 0);
}

/* A later one proves that it is open. Whoever does not know may say so once more, and no other. */
static void restored_one_may_not_have_heard(void **state)
{
	(void)state;
	assert_int_equal(adopt(5, true), 0);
	assert_int_equal(adopt(7, false), 0);
	sio_ledger_restore(&ledger, 5, 105, false);
	sio_ledger_restore(&ledger, 7, 107, false);
	assert_false(sio_ledger_count(&ledger).exclusive);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 7, NULL), -EPERM);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 5, NULL), 0);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 5, NULL), -EPERM);
	assert_int_equal(sio_ledger_may_hold(&ledger, 5, NULL), 0);
}

/* It has come back, and says what it has one by one. */
static void registers_wait_until_all_is_said(void **state)
{
	(void)state;
	assert_int_equal(adopt(5, false), 0);
	assert_int_equal(adopt(7, false), 0);
	sio_ledger_restore(&ledger, 7, 107, false);
	sio_ledger_restore(&ledger, 5, 105, false);
	sio_ledger_known(&ledger, 5, false);
	sio_ledger_known(&ledger, 6, false); /* nobody's: nothing changes */
	assert_int_equal(take(7), -EACCES);
	assert_int_equal(sio_ledger_may_reset(&ledger, 7, NULL), -EACCES);
	assert_true(sio_ledger_hold_again(&ledger, 5));
	sio_ledger_known(&ledger, 5, true);
	assert_int_equal(take(7), -EACCES);
	sio_ledger_drop_registers(&ledger, 5);
	assert_int_equal(take(7), 0);
}

static void restored_one_that_knows_has_nothing_to_open(void **state)
{
	(void)state;
	assert_int_equal(adopt(5, true), 0);
	assert_int_equal(adopt(7, false), 0);
	sio_ledger_restore(&ledger, 5, 105, true);
	assert_int_equal(sio_ledger_release_exclusive(&ledger, 5, NULL), -EPERM);
	assert_int_equal(sio_ledger_may_hold(&ledger, 5, NULL), -EACCES); /* may be 7's */
	sio_ledger_restore(&ledger, 7, 107, false);
	assert_int_equal(sio_ledger_may_hold(&ledger, 5, NULL), 0);
}

static void who_holds_again(void **state)
{
	(void)state;
	assert_int_equal(adopt(3, false), 0);
	assert_int_equal(adopt(4, false), 0);
	assert_false(sio_ledger_hold_again(&ledger, 2)); /* nobody */
	assert_true(sio_ledger_hold_again(&ledger, 4));
	assert_true(sio_ledger_hold_again(&ledger, 4));	 /* it says so twice */
	assert_false(sio_ledger_hold_again(&ledger, 3)); /* they are another's */
	assert_int_equal(ledger.holder, 4);
	assert_int_equal(sio_ledger_end(&ledger, 4), 0);
	assert_false(sio_ledger_hold_again(&ledger, 4)); /* it has ended */
	assert_true(sio_ledger_hold_again(&ledger, 3));
	assert_int_equal(ledger.holder, 3);
}

/* Nobody else has them while the one that borrowed exclusively lives, whatever he says. */
static void only_the_first_holds_again(void **state)
{
	(void)state;
	assert_int_equal(adopt(3, true), 0);
	assert_int_equal(adopt(4, false), 0);
	assert_false(sio_ledger_hold_again(&ledger, 4));
	assert_int_equal(ledger.holder, 0);
	assert_true(sio_ledger_hold_again(&ledger, 3));
	assert_int_equal(ledger.holder, 3);
}

static void failure_to_allocate_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(borrow(1, false), 0);
	fail_alloc_at(1);
	assert_int_equal(borrow(2, false), -ENOMEM);
	assert_int_equal(adopt(3, true), -ENOMEM);
	assert_int_equal(fail_alloc_count(), 2);
	fail_alloc_at(0);
	assert_int_equal(sio_ledger_count(&ledger).live, 1);
	assert_false(sio_ledger_count(&ledger).exclusive);
	assert_int_equal(borrow(2, false), 0); /* its id was not used up */
	assert_int_equal(adopt(3, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_may_borrow, setup, teardown),
		cmocka_unit_test_setup_teardown(refusal_names_device_and_holder, setup, teardown),
		cmocka_unit_test_setup_teardown(ids_only_grow, setup, teardown),
		cmocka_unit_test_setup_teardown(only_the_exclusive_one_opens_and_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(registers_go_to_the_exclusive_one_while_it_lives,
						setup, teardown),
		cmocka_unit_test_setup_teardown(registers_go_to_the_first_that_maps_them, setup,
						teardown),
		cmocka_unit_test_setup_teardown(only_the_holder_settles, setup, teardown),
		cmocka_unit_test_setup_teardown(who_may_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(quarantine_ends_by_word_only, setup, teardown),
		cmocka_unit_test_setup_teardown(adopted_device_is_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(adopted_registers_are_nobody_elses, setup,
						teardown),
		cmocka_unit_test_setup_teardown(adopted_one_holds_what_it_had, setup, teardown),
		cmocka_unit_test_setup_teardown(restored_one_is_as_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(restored_one_has_opened_the_device, setup,
						teardown),
		cmocka_unit_test_setup_teardown(restored_one_may_not_have_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(registers_wait_until_all_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(restored_one_that_knows_has_nothing_to_open, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_holds_again, setup, teardown),
		cmocka_unit_test_setup_teardown(only_the_first_holds_again, setup, teardown),
		cmocka_unit_test_setup_teardown(failure_to_allocate_changes_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(walk_goes_in_order_of_ids, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
