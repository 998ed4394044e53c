/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library tells the next smartiod, and of which handles that one has to hear again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "session/journal.h"

#define HANDLE 7

/* One segment is made. */
static struct sio_journal *made(void)
{
	struct sio_msg_seg_create req = {.h.type = sio_to_le32(SIO_MSG_SEG_CREATE)};
	struct sio_rep_seg_create rep = {.handle = sio_to_le32(HANDLE)};
	struct sio_journal *j = sio_journal_new();
	struct sio_journal_entry *e;

	assert_non_null(j);
	assert_int_equal(sio_journal_prepare(SIO_MSG_SEG_CREATE, &e), 0);
	sio_journal_done(j, e, &req.h, &rep.h);
	return j;
}

static void is_lost(struct sio_journal *j)
{
	struct sio_evm_segment evm = {.h.type = sio_to_le32(SIO_EVM_SEGMENT_LOCAL),
				      .handle = sio_to_le32(HANDLE),
				      .loss = sio_to_le32(1)};

	sio_journal_event(j, &evm.h);
}

static struct sio_msg_handle removal;

static int setup(void **state)
{
	(void)state;
	removal.h.type = sio_to_le32(SIO_MSG_SEG_REMOVE);
	removal.handle = sio_to_le32(HANDLE);
	return 0;
}

/* The next of what is told first. */
static bool tells(struct sio_journal *j)
{
	struct sio_msg_restore m;
	uint64_t at = 0;

	if (!sio_journal_next(j, 1, &at, &m))
		return false;
	assert_int_equal(sio_from_le32(m.handle), HANDLE);
	assert_false(sio_journal_next(j, 1, &at, &m));
	return true;
}

/* Its handle is to be given back, and nothing else is to be said of it. */
static void what_is_lost_has_a_handle_still(void **state)
{
	struct sio_journal *j = made();

	(void)state;
	is_lost(j);
	assert_false(tells(j));
	assert_true(sio_journal_takes_own(j, &removal.h));
	assert_true(sio_journal_has(j, &removal.h));
	sio_journal_done(j, NULL, &removal.h, &removal.h);
	assert_false(sio_journal_has(j, &removal.h));
	sio_journal_free(j);
}

/* Nor of the handle: the next one never heard of it. */
static void the_next_smartiod_knows_nothing_of_it(void **state)
{
	struct sio_journal *j = made();

	(void)state;
	is_lost(j);
	sio_journal_begin(j);
	assert_false(tells(j));
	assert_false(sio_journal_has(j, &removal.h));
	sio_journal_free(j);
}

static void what_is_lost_before_it_is_told_has_no_handle(void **state)
{
	struct sio_journal *j = made();

	(void)state;
	sio_journal_begin(j);
	is_lost(j);
	assert_false(tells(j));
	assert_false(sio_journal_has(j, &removal.h));
	sio_journal_free(j);
}

static void what_is_lost_when_it_was_told_has_one(void **state)
{
	struct sio_journal *j = made();

	(void)state;
	sio_journal_begin(j);
	assert_true(tells(j));
	is_lost(j);
	assert_false(tells(j));
	assert_true(sio_journal_has(j, &removal.h));
	sio_journal_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lost_has_a_handle_still),
		cmocka_unit_test(the_next_smartiod_knows_nothing_of_it),
		cmocka_unit_test(what_is_lost_before_it_is_told_has_no_handle),
		cmocka_unit_test(what_is_lost_when_it_was_told_has_one),
	};

	return cmocka_run_group_tests_name("journal", tests, setup, NULL);
}
