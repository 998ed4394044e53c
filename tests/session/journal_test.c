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

/* ---- many ---- */

#define PAIRS 300u /* a connection, of handle 2 * i + 1, and a map of it, of the next handle */

static void connected_and_mapped(struct sio_journal *j, uint32_t handle)
{
	struct sio_msg_seg_connect connect = {.h.type = sio_to_le32(SIO_MSG_SEG_CONNECT)};
	struct sio_rep_seg_connect connected = {.handle = sio_to_le32(handle)};
	struct sio_msg_seg_map map = {.h.type = sio_to_le32(SIO_MSG_SEG_MAP),
				      .handle = sio_to_le32(handle)};
	struct sio_rep_seg_map mapped = {.map = sio_to_le32(handle + 1)};
	struct sio_journal_entry *e;

	assert_int_equal(sio_journal_prepare(SIO_MSG_SEG_CONNECT, &e), 0);
	sio_journal_done(j, e, &connect.h, &connected.h);
	assert_int_equal(sio_journal_prepare(SIO_MSG_SEG_MAP, &e), 0);
	sio_journal_done(j, e, &map.h, &mapped.h);
}

static void connection_lost(struct sio_journal *j, uint32_t handle)
{
	struct sio_evm_segment evm = {.h.type = sio_to_le32(SIO_EVM_SEGMENT_REMOTE),
				      .handle = sio_to_le32(handle),
				      .loss = sio_to_le32(1)};

	sio_journal_event(j, &evm.h);
}

/* All are told in their order, but for what was lost with its map, and what was unmapped. */
static void each_is_told_once(void **state)
{
	struct sio_journal *j = sio_journal_new();
	struct sio_msg_handle unmap = {.h.type = sio_to_le32(SIO_MSG_SEG_UNMAP)};
	struct sio_msg_restore m;
	uint64_t at = 0;

	(void)state;
	assert_non_null(j);
	for (uint32_t i = 0; i < PAIRS; i++)
		connected_and_mapped(j, 2 * i + 1);
	for (uint32_t i = 0; i < PAIRS; i += 3)
		connection_lost(j, 2 * i + 1);
	for (uint32_t i = 1; i < PAIRS; i += 3) {
		unmap.handle = sio_to_le32(2 * i + 2);
		assert_true(sio_journal_has(j, &unmap.h));
		sio_journal_done(j, NULL, &unmap.h, &unmap.h);
		assert_false(sio_journal_has(j, &unmap.h));
	}
	sio_journal_begin(j);
	for (uint32_t handle = 1; handle <= 2 * PAIRS; handle++) {
		uint32_t i = (handle - 1) / 2;

		if (i % 3 == 0 || (i % 3 == 1 && handle % 2 == 0))
			continue;
		assert_true(sio_journal_next(j, 3, &at, &m));
		assert_int_equal(sio_from_le32(m.handle), handle);
		if (i % 5 == 0) /* it is refused */
			sio_journal_gone(j, at);
	}
	assert_false(sio_journal_next(j, 3, &at, &m));
	at = 0;
	for (unsigned left = 0; sio_journal_next(j, 3, &at, &m); left++)
		assert_true((sio_from_le32(m.handle) - 1) / 2 % 5 != 0);
	sio_journal_free(j);
}

/* Rings go with their interrupt. */
static void parts_go_with_the_whole(void **state)
{
	struct sio_journal *j = sio_journal_new();
	struct sio_msg_dint_create create = {.h.type = sio_to_le32(SIO_MSG_DINT_CREATE)};
	struct sio_rep_dint_create created = {.handle = sio_to_le32(HANDLE)};
	struct sio_evm_dint_ring ring = {.h.type = sio_to_le32(SIO_EVM_DINT_RING),
					 .handle = sio_to_le32(HANDLE)};
	struct sio_msg_restore m;
	struct sio_journal_entry *e;
	uint64_t at = 0;
	unsigned told = 0;

	(void)state;
	assert_non_null(j);
	assert_int_equal(sio_journal_prepare(SIO_MSG_DINT_CREATE, &e), 0);
	sio_journal_done(j, e, &create.h, &created.h);
	for (uint32_t i = 1; i <= 3; i++) {
		ring.ring = sio_to_le32(i);
		sio_journal_event(j, &ring.h);
	}
	while (sio_journal_next(j, 1, &at, &m))
		told++;
	assert_int_equal(told, 4);
	removal.h.type = sio_to_le32(SIO_MSG_DINT_REMOVE);
	sio_journal_done(j, NULL, &removal.h, &removal.h);
	at = 0;
	assert_false(sio_journal_next(j, 1, &at, &m));
	sio_journal_free(j);
}

/* A device may still send through a mapping that was refused: each smartiod hears of it. */
static void a_refused_mapping_for_a_device_is_told_again(void **state)
{
	struct sio_msg_dma_map map = {.h.type = sio_to_le32(SIO_MSG_DMA_MAP)};
	struct sio_rep_dma_map mapped = {.map = sio_to_le32(HANDLE)};
	struct sio_msg_handle unmap = {.h.type = sio_to_le32(SIO_MSG_DMA_UNMAP),
				       .handle = sio_to_le32(HANDLE)};
	struct sio_journal *j = sio_journal_new();
	struct sio_msg_restore m;
	struct sio_journal_entry *e;
	uint64_t at;

	(void)state;
	assert_non_null(j);
	assert_int_equal(sio_journal_prepare(SIO_MSG_DMA_MAP, &e), 0);
	sio_journal_done(j, e, &map.h, &mapped.h);
	for (unsigned daemon = 0; daemon < 3; daemon++) {
		sio_journal_begin(j);
		at = 0;
		assert_true(sio_journal_next(j, 3, &at, &m));
		assert_int_equal(sio_from_le32(m.handle), HANDLE);
		sio_journal_gone(j, at);
		assert_false(sio_journal_next(j, 3, &at, &m));
		/* This one has nothing that could be given back. */
		assert_false(sio_journal_has(j, &unmap.h));
		assert_true(sio_journal_takes_own(j, &unmap.h));
	}
	sio_journal_begin(j);
	at = 0;
	assert_true(sio_journal_next(j, 3, &at, &m));
	assert_true(sio_journal_has(j, &unmap.h));
	sio_journal_gone(j, at);
	sio_journal_done(j, NULL, &unmap.h, &unmap.h);
	sio_journal_begin(j);
	at = 0;
	assert_false(sio_journal_next(j, 3, &at, &m));
	sio_journal_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lost_has_a_handle_still),
		cmocka_unit_test(the_next_smartiod_knows_nothing_of_it),
		cmocka_unit_test(what_is_lost_before_it_is_told_has_no_handle),
		cmocka_unit_test(what_is_lost_when_it_was_told_has_one),
		cmocka_unit_test(each_is_told_once),
		cmocka_unit_test(parts_go_with_the_whole),
		cmocka_unit_test(a_refused_mapping_for_a_device_is_told_again),
	};

	return cmocka_run_group_tests_name("journal", tests, setup, NULL);
}
