/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: accesses that a peer's machine does itself, and what waits for them. */
#include <errno.h>

#include "ntb_checks.h"

static void registers_of_devices(void **state)
{
	struct ntbs *s = connected(2);
	const uint32_t value = 0x12345678;
	uint32_t got = 0;
	uint16_t read;

	(void)state;
	lead_to_device(s, 0, 1);
	window_set32(s, 0, 0x10, 99); /* posted */
	assert_int_equal(s->machine[1].n_asks, 1);
	assert_false(s->machine[1].ask[0].read);
	assert_true(s->machine[1].ask[0].address == NTBS_DEVICE + 0x10);
	assert_int_equal(s->machine[1].ask[0].data[0], 99);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x14, &got, 4));
	read = s->machine[0].id;
	assert_int_equal(s->machine[1].n_asks, 2);
	assert_true(s->alarm == s->now + EMU_NTB_PATIENCE_NS);
	/* Others of the same machine are served meanwhile. */
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_NODE), 4);
	/* Whoever ends the range sees when nothing is under way. */
	ntbs_set(s, 1, SIO_VNTB_RANGE(0), 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_RANGE(0)), SIO_VNTB_RANGE_BUSY);
	ntbs_answer(s, 1, 0, 0, NULL);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_RANGE(0)), SIO_VNTB_RANGE_BUSY);
	ntbs_answer(s, 1, 1, 0, &value);
	assert_int_equal(s->machine[0].reply_id, read);
	assert_int_equal(reply32(&s->machine[0]), value);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_RANGE(0)), 0);
	no_fault(s);
	/* The peer's bus says no. */
	lead_to_device(s, 0, 1);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x14, &got, 4));
	ntbs_refuse(s, 1, 2);
	assert_int_equal(reply32(&s->machine[0]), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0x14), SIO_VNTB_REASON_PEER);
	assert_int_equal(next_fault(s, 1, 3, NTBS_DEVICE + 0x14), SIO_VNTB_REASON_PEER);
	window_set32(s, 0, 0x10, 99);
	ntbs_refuse(s, 1, s->machine[1].n_asks - 1);
	assert_int_equal(next_fault(s, 0, 0, 0x10), SIO_VNTB_REASON_PEER);
	ntbs_free(s);
}

static void who_does_not_answer_holds_nobody_for_long(void **state)
{
	struct ntbs *s = connected(2);
	const uint32_t value = 1;
	uint32_t got = 0;

	(void)state;
	lead_to_device(s, 0, 1);
	s->now = 1000;
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	s->now += EMU_NTB_PATIENCE_NS / 2;
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 4, &got, 4));
	s->alarm = 0;
	s->now = 1000 + EMU_NTB_PATIENCE_NS;
	s->machine[0].n_replies = 0;
	emu_ntb_expire(s->ntb);
	assert_int_equal(s->machine[0].n_replies, 1);
	assert_int_equal(reply32(&s->machine[0]), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_PEER);
	assert_true(s->alarm == 1000 + EMU_NTB_PATIENCE_NS / 2 + EMU_NTB_PATIENCE_NS);
	/* The answer that comes too late is nobody's; the other one is in time. */
	s->machine[0].n_replies = 0;
	ntbs_answer(s, 1, 0, 0, &value);
	assert_int_equal(s->machine[0].n_replies, 0);
	ntbs_answer(s, 1, 1, 0, &value);
	assert_int_equal(s->machine[0].n_replies, 1);
	assert_int_equal(reply32(&s->machine[0]), 1);
	ntbs_free(s);
}

/* Of a machine that has not answered in time no other read is waited for until it does. */
static void who_does_not_answer_is_waited_for_once(void **state)
{
	struct ntbs *s = connected(3);
	const uint32_t value = 1;
	uint32_t got = 0;

	(void)state;
	lead_to_device(s, 0, 1);
	ntbs_grant(s, 2, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, 0, 1, 1, NTBS_DEVICE, 0);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	s->now += EMU_NTB_PATIENCE_NS;
	emu_ntb_expire(s->ntb);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_PEER);
	assert_true(ntbs_read(s, 0, NTBS_WINDOW, 4, &got, 4)); /* at once */
	assert_int_equal(got, ONES);
	assert_int_equal(next_fault(s, 0, 1, 4), SIO_VNTB_REASON_PEER);
	assert_int_equal(s->machine[1].n_asks, 1);
	/* Another machine is not concerned, nor are stores. */
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, NTBS_ENTRY, &got, 4));
	assert_int_equal(s->machine[2].n_asks, 1);
	window_set32(s, 0, 0, 1);
	assert_int_equal(s->machine[1].n_asks, 2);
	ntbs_answer(s, 1, 0, 0, &value);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 4, &got, 4));
	s->machine[0].n_replies = 0;
	ntbs_answer(s, 1, 2, 0, &value);
	assert_int_equal(reply32(&s->machine[0]), 1);
	ntbs_free(s);
}

static void many_under_way_are_refused(void **state)
{
	struct ntbs *s = connected(3);
	uint32_t got = 0;

	(void)state;
	ntbs_grant(s, 1, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_grant(s, 1, 1, 1, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_grant(s, 2, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_DEVICE, 0);
	ntbs_lead(s, 0, 1, 1, NTBS_DEVICE, 0);
	ntbs_lead(s, 2, 0, 1, NTBS_DEVICE, 0);
	for (unsigned i = 0; i < EMU_NTB_WRITES; i++)
		window_set32(s, 0, 0, i);
	no_fault(s);
	window_set32(s, 0, 0, 1);
	assert_int_equal(next_fault(s, 0, 0, 0), SIO_VNTB_REASON_LIMIT);
	for (unsigned i = 0; i < EMU_NTB_READS; i++)
		assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	assert_true(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4)); /* at once */
	assert_int_equal(got, ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_LIMIT);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES + EMU_NTB_READS);
	/* Another machine, and another peer, are not concerned. */
	window_set32(s, 2, 0, 1);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES + EMU_NTB_READS + 1);
	window_set32(s, 0, NTBS_ENTRY, 1);
	assert_int_equal(s->machine[2].n_asks, 1);
	ntbs_answer(s, 1, 3, 0, NULL);
	window_set32(s, 0, 0, 1);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES + EMU_NTB_READS + 2);
	no_fault(s);
	ntbs_free(s);
}

/* What one session keeps for later is limited, too: a machine with many peers is refused first. */
static void many_reads_are_refused(void **state)
{
	struct ntbs *s = connected(4);
	uint32_t got = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		ntbs_grant(s, i + 1, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
		ntbs_lead(s, 0, i, i, NTBS_DEVICE, 0);
	}
	for (unsigned i = 0; i < SIO_VFIO_LATE; i++)
		assert_false(ntbs_read(s, 0, NTBS_WINDOW, i % 3 * NTBS_ENTRY, &got, 4));
	assert_true(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	assert_int_equal(got, ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_LIMIT);
	s->now += EMU_NTB_PATIENCE_NS;
	s->machine[0].n_replies = 0;
	emu_ntb_expire(s->ntb);
	assert_int_equal(s->machine[0].n_replies, SIO_VFIO_LATE);
	ntbs_free(s);
}

/* Each waits for the other: the second one gets what it read there last. */
static void two_that_wait_for_each_other(void **state)
{
	struct ntbs *s = connected(2);
	uint32_t value = 0xabcd, got = 0;

	(void)state;
	lead_to_device(s, 0, 1);
	lead_to_device(s, 1, 0);
	assert_false(ntbs_read(s, 1, NTBS_WINDOW, 8, &got, 4));
	ntbs_answer(s, 0, 0, 0, &value);
	assert_int_equal(reply32(&s->machine[1]), 0xabcd);

	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	assert_true(ntbs_read(s, 1, NTBS_WINDOW, 8, &got, 4));
	assert_int_equal(got, 0xabcd);
	assert_true(ntbs_read(s, 1, NTBS_WINDOW, 0xc, &got, 4)); /* never read */
	assert_int_equal(got, ONES);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_STALE_READS), 2);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_STALE_READS), 0);
	/* Stores wait for nobody. */
	window_set32(s, 1, 0, 5);
	ntbs_answer(s, 1, 0, 0, &value);
	assert_int_equal(reply32(&s->machine[0]), 0xabcd);
	/* Now it need not. */
	assert_false(ntbs_read(s, 1, NTBS_WINDOW, 8, &got, 4));
	no_fault(s);
	ntbs_free(s);
}

static void three_that_wait_in_a_circle(void **state)
{
	struct ntbs *s = connected(3);
	uint32_t got = 0;

	(void)state;
	/* 0 -> 1 -> 2 -> 0; rows: 0 has 1, 2; 1 has 0, 2; 2 has 0, 1. */
	ntbs_grant(s, 1, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_grant(s, 2, 0, 1, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_grant(s, 0, 0, 1, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_DEVICE, 0);
	ntbs_lead(s, 1, 0, 1, NTBS_DEVICE, 0);
	ntbs_lead(s, 2, 0, 0, NTBS_DEVICE, 0);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	assert_false(ntbs_read(s, 1, NTBS_WINDOW, 0, &got, 4));
	assert_true(ntbs_read(s, 2, NTBS_WINDOW, 0, &got, 4));
	assert_int_equal(got, ONES);
	assert_int_equal(ntbs_get(s, 2, SIO_VNTB_STALE_READS), 1);
	no_fault(s);
	ntbs_free(s);
}

static void ends_in_the_middle_of_a_read(void **state)
{
	uint32_t got = 0;

	(void)state;
	for (unsigned end = 0; end < 5; end++) {
		struct ntbs *s = connected(2);
		const uint32_t value = 1;

		lead_to_device(s, 0, 1);
		assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
		window_set32(s, 0, 4, 1);
		s->machine[0].n_replies = 0;
		switch (end) {
		case 0: /* the peer's cable */
			emu_ntb_link(s->ntb, 8, 0, false);
			break;
		case 1: /* its own */
			emu_ntb_link(s->ntb, 4, 0, false);
			break;
		case 4: /* the switch between them */
			emu_ntb_switch(s->ntb, 0, false);
			break;
		case 2: /* the peer is killed */
			ntbs_disconnect(s, 1);
			break;
		case 3: /* the reader is; a later one has nothing to do with it */
			ntbs_disconnect(s, 0);
			assert_int_equal(s->machine[0].n_replies, 0);
			ntbs_connect(s, 0);
			s->machine[0].n_replies = 0;
			ntbs_answer(s, 1, 0, 0, &value);
			ntbs_answer(s, 1, 1, -EFAULT, NULL);
			assert_int_equal(s->machine[0].n_replies, 0);
			no_fault(s);
			ntbs_free(s);
			continue;
		}
		assert_int_equal(s->machine[0].n_replies, 1);
		assert_int_equal(reply32(&s->machine[0]), ONES);
		assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_LINK);
		if (end != 2) {
			ntbs_answer(s, 1, 0, 0, &value);
			ntbs_answer(s, 1, 1, 0, NULL);
		}
		s->now += 2 * EMU_NTB_PATIENCE_NS;
		emu_ntb_expire(s->ntb);
		ntbs_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_of_devices),
		cmocka_unit_test(who_does_not_answer_holds_nobody_for_long),
		cmocka_unit_test(who_does_not_answer_is_waited_for_once),
		cmocka_unit_test(many_under_way_are_refused),
		cmocka_unit_test(many_reads_are_refused),
		cmocka_unit_test(two_that_wait_for_each_other),
		cmocka_unit_test(three_that_wait_in_a_circle),
		cmocka_unit_test(ends_in_the_middle_of_a_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
