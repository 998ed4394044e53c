/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: accesses that a peer's bus refuses for a moment, and what is sent behind them. */
#include <errno.h>

#include "ntb_checks.h"

static const uint32_t seven = 7;

static void asked(struct ntbs *s, unsigned ask, bool read, uint64_t at, uint8_t value)
{
	const struct ntbs_ask *a = &s->machine[1].ask[ask];

	assert_int_equal(s->machine[1].n_asks, ask + 1);
	assert_int_equal(a->read, read);
	assert_true(a->address == NTBS_DEVICE + at);
	if (!read)
		assert_int_equal(a->data[0], value);
}

/* A store to the device, which is refused once. */
static struct ntbs *refused(uint64_t at, uint32_t value)
{
	struct ntbs *s = connected(2);

	s->now = 1000;
	lead_to_device(s, 0, 1);
	window_set32(s, 0, at, value);
	asked(s, 0, false, at, (uint8_t)value);
	s->alarm = 0;
	ntbs_answer(s, 1, 0, -EFAULT, NULL);
	assert_true(s->alarm > s->now);
	assert_int_equal(s->machine[1].n_asks, 1);
	return s;
}

static void what_is_refused_for_a_moment_arrives(void **state)
{
	struct ntbs *s = refused(0x10, 1);
	uint32_t got = 0;

	(void)state;
	ntbs_rest(s);
	asked(s, 1, false, 0x10, 1);
	ntbs_answer(s, 1, 1, 0, NULL);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x14, &got, 4));
	s->alarm = 0;
	ntbs_answer(s, 1, 2, -EFAULT, NULL);
	ntbs_rest(s);
	asked(s, 3, true, 0x14, 0);
	ntbs_answer(s, 1, 3, 0, &seven);
	assert_int_equal(reply32(&s->machine[0]), 7);
	no_fault(s);
	ntbs_free(s);
}

/* As on a path: in the order in which they were sent, and a read behind the stores. */
static void what_is_sent_meanwhile_comes_behind(void **state)
{
	struct ntbs *s = refused(0x10, 1);
	uint32_t got = 0;

	(void)state;
	window_set32(s, 0, 0x14, 2);
	window_set32(s, 0, 0x18, 3);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x1c, &got, 4));
	assert_int_equal(s->machine[1].n_asks, 1);
	ntbs_rest(s);
	asked(s, 1, false, 0x10, 1); /* alone, for it may be refused again */
	s->alarm = 0;
	ntbs_answer(s, 1, 1, -EFAULT, NULL);
	window_set32(s, 0, 0x20, 4);
	assert_int_equal(s->machine[1].n_asks, 2);
	ntbs_rest(s);
	asked(s, 2, false, 0x10, 1);
	ntbs_answer(s, 1, 2, 0, NULL);
	assert_int_equal(s->machine[1].n_asks, 7);
	for (unsigned i = 0; i < 4; i++) {
		const struct ntbs_ask *a = &s->machine[1].ask[3 + i];

		assert_true(a->address == NTBS_DEVICE + 0x14 + 4 * i);
		assert_int_equal(a->read, i == 2);
	}
	ntbs_answer(s, 1, 3, 0, NULL);
	ntbs_answer(s, 1, 4, 0, NULL);
	ntbs_answer(s, 1, 5, 0, &seven);
	assert_int_equal(reply32(&s->machine[0]), 7);
	ntbs_answer(s, 1, 6, 0, NULL);
	no_fault(s);
	ntbs_free(s);
}

/* All that was under way is refused, as while QEMU ends a queue's commands. */
static void many_that_are_refused_keep_their_order(void **state)
{
	struct ntbs *s = connected(2);

	(void)state;
	lead_to_device(s, 0, 1);
	for (unsigned i = 0; i < 4; i++)
		window_set32(s, 0, 0x10 + 4 * i, i);
	s->alarm = 0;
	for (unsigned i = 0; i < 4; i++)
		ntbs_answer(s, 1, i, -EFAULT, NULL);
	ntbs_rest(s);
	for (unsigned i = 0; i < 4; i++) {
		asked(s, 4 + i, false, 0x10 + 4 * i, (uint8_t)i);
		ntbs_answer(s, 1, 4 + i, 0, NULL);
	}
	assert_int_equal(s->machine[1].n_asks, 8);
	no_fault(s);
	ntbs_free(s);
}

/* A doorbell must not go back to an older value. */
static void what_a_later_store_has_passed_is_over(void **state)
{
	struct ntbs *s = connected(2);

	(void)state;
	lead_to_device(s, 0, 1);
	window_set32(s, 0, 0x10, 1);
	window_set32(s, 0, 0x10, 2);
	s->alarm = 0;
	ntbs_answer(s, 1, 0, -EFAULT, NULL);
	ntbs_answer(s, 1, 1, 0, NULL);
	assert_int_equal(s->alarm, 0);
	window_set32(s, 0, 0x10, 3);
	asked(s, 2, false, 0x10, 3);
	ntbs_answer(s, 1, 2, 0, NULL);
	no_fault(s);
	ntbs_free(s);
}

/* Who has taken the range back is not reached any more, nor when it is granted anew. */
static void what_rests_ends_with_the_range(void **state)
{
	struct ntbs *s = refused(0x10, 1);

	(void)state;
	ntbs_grant(s, 1, 1, 0, NTBS_DEVICE + 0x10000, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, 0, 1, 0, NTBS_DEVICE + 0x10000, 0);
	window_set32(s, 0, NTBS_ENTRY + 4, 2); /* rests behind it, and has another range */
	assert_int_equal(s->machine[1].n_asks, 1);
	lead_to_device(s, 0, 1);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_RANGE(0)) & SIO_VNTB_RANGE_BUSY, 0);
	assert_int_equal(next_fault(s, 0, 0, 0x10), SIO_VNTB_REASON_RANGE);
	asked(s, 1, false, 0x10004, 2);
	ntbs_answer(s, 1, 1, 0, NULL);
	s->now += EMU_NTB_PATIENCE_NS;
	emu_ntb_expire(s->ntb);
	assert_int_equal(s->machine[1].n_asks, 2);
	ntbs_free(s);
}

static void ends_while_something_rests(void **state)
{
	uint32_t got = 0;

	(void)state;
	for (unsigned end = 0; end < 5; end++) {
		struct ntbs *s = refused(0x10, 1);

		assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x14, &got, 4));
		s->machine[0].n_replies = 0;
		switch (end) {
		case 0:
			emu_ntb_link(s->ntb, 8, 0, false);
			break;
		case 1:
			emu_ntb_switch(s->ntb, 0, false);
			break;
		case 2: /* the peer is killed */
			ntbs_disconnect(s, 1);
			break;
		case 3: /* its sender is */
			ntbs_disconnect(s, 0);
			break;
		case 4: /* nobody waits for the read so long */
			s->now += EMU_NTB_PATIENCE_NS;
			emu_ntb_expire(s->ntb);
			ntbs_answer(s, 1, 1, 0, NULL);
			break;
		}
		if (end != 3) {
			assert_int_equal(s->machine[0].n_replies, 1);
			assert_int_equal(reply32(&s->machine[0]), ONES);
		}
		s->now += EMU_NTB_PATIENCE_NS;
		emu_ntb_expire(s->ntb);
		if (end != 2)
			assert_int_equal(s->machine[1].n_asks, end == 4 ? 2 : 1);
		ntbs_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_refused_for_a_moment_arrives),
		cmocka_unit_test(what_is_sent_meanwhile_comes_behind),
		cmocka_unit_test(many_that_are_refused_keep_their_order),
		cmocka_unit_test(what_a_later_store_has_passed_is_over),
		cmocka_unit_test(what_rests_ends_with_the_range),
		cmocka_unit_test(ends_while_something_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
