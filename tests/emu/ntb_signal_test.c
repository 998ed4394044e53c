/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: doorbells, messages, and interrupt messages through the window. */
#include "ntb_checks.h"

static void doorbells(void **state)
{
	struct ntbs *s = connected(2);
	unsigned *told = &s->machine[1].signals[SIO_VNTB_VECTOR_DOORBELL];

	(void)state;
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 5);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_DB_STATUS), 5);
	assert_int_equal(told[0], 0); /* all are masked */
	ntbs_set(s, 1, SIO_VNTB_DB_MASK, ~1u);
	assert_int_equal(told[0], 1);
	assert_int_equal(told[2], 0);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 1);
	assert_int_equal(told[0], 1); /* it has not been looked at */
	ntbs_set(s, 1, SIO_VNTB_DB_STATUS, 1);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_DB_STATUS), 4);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 1u << 31 | 1);
	assert_int_equal(told[0], 2);
	ntbs_set(s, 0, SIO_VNTB_DB_ALL, 1u << 4);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_DB_STATUS), 1u << 31 | 0x15);
	emu_ntb_link(s->ntb, 4, 0, false);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 2);
	ntbs_set(s, 0, SIO_VNTB_DB_ALL, 2);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_DB_STATUS) & 2, 0);
	ntbs_free(s);
}

static void messages(void **state)
{
	struct ntbs *s = connected(3);
	unsigned *told = &s->machine[1].signals[SIO_VNTB_VECTOR_MESSAGE];

	(void)state;
	ntbs_set(s, 1, SIO_VNTB_MSG_MASK, 0);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(2), 77);
	assert_int_equal(*told, 1);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MSG_STATUS), 4);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MSG_IN(2)), 77);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MSG_SOURCE(2)), 0);
	/* Full: for everybody, and the one whom it does not concern hears nothing. */
	ntbs_set(s, 2, SIO_VNTB_PEER(1) + SIO_VNTB_PEER_MESSAGE(2), 88);
	assert_int_equal(ntbs_get(s, 2, SIO_VNTB_MSG_STATUS), 0x10000u << 2);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_MSG_STATUS), 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MSG_IN(2)), 77);
	assert_int_equal(s->machine[2].signals[SIO_VNTB_VECTOR_MESSAGE], 0); /* masked */
	ntbs_set(s, 2, SIO_VNTB_MSG_MASK, 0);
	assert_int_equal(s->machine[2].signals[SIO_VNTB_VECTOR_MESSAGE], 1);
	ntbs_set(s, 2, SIO_VNTB_MSG_STATUS, 0x10000u << 2);
	ntbs_set(s, 1, SIO_VNTB_MSG_STATUS, 4);
	ntbs_set(s, 2, SIO_VNTB_PEER(1) + SIO_VNTB_PEER_MESSAGE(2), 88);
	assert_int_equal(ntbs_get(s, 2, SIO_VNTB_MSG_STATUS), 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MSG_IN(2)), 88);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MSG_SOURCE(2)), 1);
	ntbs_disconnect(s, 1);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(0), 1);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_MSG_STATUS), 0x10000u);
	ntbs_free(s);
}

static void interrupt_messages(void **state)
{
	struct ntbs *s = connected(2);
	const uint64_t apic = 0xfee00000;

	(void)state;
	ntbs_grant(s, 1, 3, 0, apic, 0x4021, SIO_VNTB_RANGE_MESSAGE);
	ntbs_lead(s, 0, 0, 0, apic, 0);
	window_set32(s, 0, 0, 0x4021);
	assert_int_equal(s->machine[1].n_asks, 1);
	assert_true(s->machine[1].ask[0].address == apic);
	/* Nothing else. */
	window_set32(s, 0, 0, 0x4022);
	assert_int_equal(next_fault(s, 0, 0, 0), SIO_VNTB_REASON_RIGHT);
	assert_int_equal(window32(s, 0, 0), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_RIGHT);
	window_set32(s, 0, 4, 0x4021);
	assert_int_equal(next_fault(s, 0, 0, 4), SIO_VNTB_REASON_RANGE);
	ntbs_write(s, 0, NTBS_WINDOW, 0, "\x21\x40\0\0\0\0\0\0", 8);
	assert_int_equal(next_fault(s, 0, 0, 0), SIO_VNTB_REASON_RANGE);
	assert_int_equal(s->machine[1].n_asks, 1);
	ntbs_free(s);
}

/* An interrupt message is never lost: it is one with the same one that is under way. */
static void messages_that_meet_are_one(void **state)
{
	const uint32_t flags = SIO_VNTB_RANGE_WRITE | SIO_VNTB_RANGE_MESSAGE;
	struct ntbs *s = connected(2);

	(void)state;
	ntbs_grant(s, 1, 0, 0, NTBS_DEVICE, 0x4321, flags);
	ntbs_lead(s, 0, 0, 0, NTBS_DEVICE, 0);
	for (unsigned i = 0; i < EMU_NTB_WRITES + 3; i++)
		window_set32(s, 0, 0, 0x4321);
	no_fault(s);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES);
	/* The last one was the last to be joined. */
	ntbs_answer(s, 1, 0, 0, NULL);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES);
	ntbs_answer(s, 1, EMU_NTB_WRITES - 1, 0, NULL);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES + 1);
	/* Not if it was taken back meanwhile. */
	window_set32(s, 0, 0, 0x4321);
	window_set32(s, 0, 0, 0x4321);
	no_fault(s);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES + 2);
	ntbs_set(s, 1, SIO_VNTB_RANGE(0) + SIO_VNTB_RANGE_CONTROL, 0);
	ntbs_answer(s, 1, EMU_NTB_WRITES + 1, 0, NULL);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_WRITES + 2);
	ntbs_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doorbells),
		cmocka_unit_test(messages),
		cmocka_unit_test(interrupt_messages),
		cmocka_unit_test(messages_that_meet_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
