/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: multicast groups, whose members are in several machines. */
#include <errno.h>

#include "ntb_checks.h"

#define GROUP 3u
#define AT 0x2000u /* of members, in their machine's memory */
#define SIZE 0x1800u
#define OPEN SIO_VNTB_MEMBER_OPEN

static void member(struct ntbs *s, unsigned machine, unsigned row, uint64_t base, uint64_t size,
		   uint32_t flags)
{
	const uint64_t at = SIO_VNTB_MEMBER(row);

	ntbs_set64(s, machine, at + SIO_VNTB_MEMBER_BASE, base);
	ntbs_set64(s, machine, at + SIO_VNTB_MEMBER_SIZE, size);
	ntbs_set(s, machine, at + SIO_VNTB_MEMBER_CONTROL,
		 SIO_VNTB_MEMBER_VALID | flags | SIO_VNTB_MEMBER_GROUP(GROUP));
}

static void control(struct ntbs *s, unsigned machine, unsigned row, uint32_t value)
{
	ntbs_set(s, machine, SIO_VNTB_MEMBER(row) + SIO_VNTB_MEMBER_CONTROL, value);
}

static bool is_member(struct ntbs *s, unsigned machine, unsigned row)
{
	return ntbs_get(s, machine, SIO_VNTB_MEMBER(row) + SIO_VNTB_MEMBER_CONTROL) &
	       SIO_VNTB_MEMBER_VALID;
}

static uint32_t group(struct ntbs *s, unsigned machine, unsigned reg)
{
	return ntbs_get(s, machine, SIO_VNTB_GROUP(GROUP) + reg);
}

static uint64_t count(struct ntbs *s, unsigned machine, unsigned which)
{
	return ntbs_get64(s, machine, SIO_VNTB_COUNTER(which));
}

/* Entries 2 and 3 of the machine's window lead to the group. */
static void send_to(struct ntbs *s, unsigned machine)
{
	for (unsigned i = 0; i < 2; i++)
		ntbs_lead(s, machine, 2 + i, GROUP, i * NTBS_ENTRY, SIO_VNTB_LUT_GROUP);
}

static struct ntbs *exact(unsigned n)
{
	struct ntbs *s = ntbs_new_exact(n);

	for (unsigned i = 0; i < n; i++)
		ntbs_connect(s, i);
	return s;
}

static void write_all(struct ntbs *s, unsigned machine, uint64_t at, uint32_t value)
{
	window_set32(s, machine, 2 * NTBS_ENTRY + at, value);
}

static void each_member_has_a_copy(void **state)
{
	struct ntbs *s = exact(3);

	(void)state;
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_GROUPS), SIO_VNTB_MAX_GROUPS);
	for (unsigned i = 0; i < 3; i++)
		member(s, i, i, NTBS_RAM + AT + 0x100 * i, i == 2 ? 0x1000 : SIZE, OPEN);
	send_to(s, 0);
	assert_int_equal(group(s, 1, SIO_VNTB_GROUP_MEMBERS), 3);
	assert_int_equal(group(s, 1, SIO_VNTB_GROUP_OPEN), 3);
	assert_true(ntbs_get64(s, 2, SIO_VNTB_GROUP(GROUP)) == SIZE);
	write_all(s, 0, 0x10, 0xcafe);
	for (unsigned i = 0; i < 3; i++) /* the sender's own among them */
		assert_int_equal(ram32(s, i, AT + 0x100 * i + 0x10), 0xcafe);
	/* Beyond the end of a shorter one; across it. */
	write_all(s, 0, 0x1400, 0xbeef);
	assert_int_equal(ram32(s, 1, AT + 0x100 + 0x1400), 0xbeef);
	assert_int_equal(ram32(s, 2, AT + 0x200 + 0x1400), 0);
	ntbs_write(s, 0, NTBS_WINDOW, 2 * NTBS_ENTRY + 0xffc, "abcd", 4);
	assert_int_equal(ram32(s, 2, AT + 0x200 + 0xffc), 0x64636261);
	no_fault(s);
	/* Once where it goes out, once at each where it comes in. */
	assert_int_equal(count(s, 0, SIO_VNTB_COUNT_WRITES), 3);
	assert_int_equal(count(s, 1, SIO_VNTB_COUNT_WRITES), 3);
	assert_int_equal(count(s, 0, SIO_VNTB_COUNT_GROUP_OUT), 3);
	assert_int_equal(count(s, 1, SIO_VNTB_COUNT_GROUP_IN), 3);
	assert_int_equal(count(s, 2, SIO_VNTB_COUNT_GROUP_IN), 2);
	assert_int_equal(count(s, 2, SIO_VNTB_COUNT_GROUP_OUT), 0);
	/* Closed, and then gone. */
	control(s, 1, 1, SIO_VNTB_MEMBER_VALID | SIO_VNTB_MEMBER_GROUP(GROUP));
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_OPEN), 2);
	write_all(s, 0, 0x10, 1);
	assert_int_equal(ram32(s, 1, AT + 0x100 + 0x10), 0xcafe);
	assert_int_equal(ram32(s, 2, AT + 0x200 + 0x10), 1);
	control(s, 2, 2, 0);
	write_all(s, 0, 0x10, 2);
	assert_int_equal(ram32(s, 2, AT + 0x200 + 0x10), 1);
	assert_int_equal(ram32(s, 0, AT + 0x10), 2);
	no_fault(s);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 0);
	ntbs_free(s);
}

static void what_is_refused(void **state)
{
	struct ntbs *s = exact(2), *fused = connected(2);

	(void)state;
	member(s, 0, 0, NTBS_RAM + AT, SIZE, 0);
	assert_true(is_member(s, 0, 0));
	member(s, 1, 0, NTBS_RAM, SIZE + 1, OPEN); /* longer than the group */
	assert_false(is_member(s, 1, 0));
	member(s, 1, 0, NTBS_RAM, 0, OPEN);
	assert_false(is_member(s, 1, 0));
	member(s, 1, 0, ~0ull - 0x10, 0x100, OPEN);
	assert_false(is_member(s, 1, 0));
	control(s, 1, 0, SIO_VNTB_MEMBER_VALID | SIO_VNTB_MEMBER_GROUP(SIO_VNTB_MAX_GROUPS));
	assert_false(is_member(s, 1, 0));
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MEMBERS), 1);
	/* What is valid stays where it is. */
	ntbs_set64(s, 0, SIO_VNTB_MEMBER(0) + SIO_VNTB_MEMBER_BASE, 0);
	assert_true(ntbs_get64(s, 0, SIO_VNTB_MEMBER(0) + SIO_VNTB_MEMBER_BASE) == NTBS_RAM + AT);
	/* The last one leaves: the next says how long the group is. */
	control(s, 0, 0, 0);
	member(s, 1, 0, NTBS_RAM, 2 * SIZE, OPEN);
	assert_true(is_member(s, 1, 0));
	/* Reads, and a group that there is not. */
	send_to(s, 0);
	assert_int_equal(window32(s, 0, 2 * NTBS_ENTRY), ONES);
	assert_int_equal(next_fault(s, 0, SIO_VNTB_FAULT_READ, 2 * NTBS_ENTRY),
			 SIO_VNTB_REASON_RIGHT);
	ntbs_lead(s, 0, 5, SIO_VNTB_MAX_GROUPS, 0, SIO_VNTB_LUT_GROUP);
	window_set32(s, 0, 5 * NTBS_ENTRY, 1);
	assert_int_equal(next_fault(s, 0, 0, 5 * NTBS_ENTRY), SIO_VNTB_REASON_ENTRY);
	/* A member at an address where nothing is. */
	control(s, 1, 0, 0);
	member(s, 1, 0, NTBS_RAM + NTBS_RAM_BYTES - 4, 0x100, OPEN);
	write_all(s, 0, 0, 1);
	no_fault(s);
	write_all(s, 0, 2, 1);
	assert_int_equal(next_fault(s, 0, 0, 2 * NTBS_ENTRY + 2), SIO_VNTB_REASON_PEER);
	assert_int_equal(next_fault(s, 1, SIO_VNTB_FAULT_IN, NTBS_RAM + NTBS_RAM_BYTES - 2),
			 SIO_VNTB_REASON_PEER);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 1);
	/* Where groups are fused machines have none. */
	assert_int_equal(ntbs_get(fused, 0, SIO_VNTB_GROUPS), 0);
	member(fused, 0, 0, NTBS_RAM, SIZE, OPEN);
	assert_false(is_member(fused, 0, 0));
	send_to(fused, 0);
	write_all(fused, 0, 0, 1);
	assert_int_equal(next_fault(fused, 0, 0, 2 * NTBS_ENTRY), SIO_VNTB_REASON_ENTRY);
	ntbs_free(fused);
	ntbs_free(s);
}

static void links_and_ends(void **state)
{
	struct ntbs *s = exact(3);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		member(s, i, 0, NTBS_RAM + AT, SIZE, OPEN);
	send_to(s, 0);
	emu_ntb_link(s->ntb, 4 + 4, 0, false);
	write_all(s, 0, 0, 1);
	assert_int_equal(ram32(s, 1, AT), 0); /* it misses the write, the others have it */
	assert_int_equal(ram32(s, 0, AT), 1);
	assert_int_equal(ram32(s, 2, AT), 1);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 1);
	assert_int_equal(next_fault(s, 0, 0, 2 * NTBS_ENTRY), SIO_VNTB_REASON_LINK);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_ERRORS), 1);
	emu_ntb_link(s->ntb, 4 + 4, 0, true);
	write_all(s, 0, 0, 2);
	assert_int_equal(ram32(s, 1, AT), 2);
	/* A machine that is off is no member, and nothing misses it; nor after a reset. */
	ntbs_disconnect(s, 1);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MEMBERS), 2);
	ntbs_set(s, 2, SIO_VNTB_RESET, 1);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MEMBERS), 1);
	assert_false(is_member(s, 2, 0));
	write_all(s, 0, 0, 3);
	assert_int_equal(ram32(s, 2, AT), 2);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 1);
	/* The sender's reset closes its way. */
	ntbs_set(s, 0, SIO_VNTB_RESET, 1);
	assert_int_equal(group(s, 2, SIO_VNTB_GROUP_MEMBERS), 0);
	assert_true(ntbs_get64(s, 2, SIO_VNTB_GROUP(GROUP)) == 0);
	write_all(s, 0, 0, 4);
	assert_int_equal(next_fault(s, 0, 0, 2 * NTBS_ENTRY), SIO_VNTB_REASON_ENTRY);
	ntbs_free(s);
}

/* A member in a device: its machine does the write, and the sender can wait for that. */
static void members_in_devices(void **state)
{
	struct ntbs *s = exact(2);

	(void)state;
	member(s, 0, 0, NTBS_DEVICE, 0x100, OPEN);
	member(s, 1, 0, NTBS_DEVICE, 0x100, OPEN);
	send_to(s, 0);
	write_all(s, 0, 8, 0x1234);
	for (unsigned i = 0; i < 2; i++) {
		const struct ntbs_ask *ask = &s->machine[i].ask[0];

		assert_int_equal(s->machine[i].n_asks, 1);
		assert_false(ask->read);
		assert_true(ask->address == NTBS_DEVICE + 8);
		assert_memory_equal(ask->data, "\x34\x12\0\0", 4);
		assert_true(ntbs_get(s, i, SIO_VNTB_MEMBER(0)) & SIO_VNTB_MEMBER_BUSY);
	}
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 2);
	assert_int_equal(group(s, 1, SIO_VNTB_GROUP_PENDING), 0);
	ntbs_answer(s, 0, 0, 0, NULL);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 1);
	assert_false(ntbs_get(s, 0, SIO_VNTB_MEMBER(0)) & SIO_VNTB_MEMBER_BUSY);
	/* It leaves: what is under way to it is waited for by its own driver. */
	control(s, 1, 0, 0);
	assert_true(ntbs_get(s, 1, SIO_VNTB_MEMBER(0)) & SIO_VNTB_MEMBER_BUSY);
	ntbs_answer(s, 1, 0, 0, NULL);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MEMBER(0)), 0);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 0);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 0);
	/* One whose bus refuses it, until it is given up, is missed. */
	control(s, 0, 0, 0);
	member(s, 1, 0, NTBS_DEVICE, 0x100, OPEN);
	write_all(s, 0, 0, 1);
	ntbs_refuse(s, 1, 1);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 1);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 0);
	/* And one that is on its way when the machine goes. */
	write_all(s, 0, 0, 2);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 1);
	ntbs_disconnect(s, 1);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 0);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 2);
	ntbs_free(s);
}

/* Until a machine that is stopped is heard again it costs its senders one wait, for all of them. */
static void a_member_that_is_silent(void **state)
{
	struct ntbs *s = exact(3);
	uint32_t got = 0;

	(void)state;
	s->now = 1000;
	member(s, 1, 0, NTBS_DEVICE, 0x100, OPEN);
	member(s, 2, 0, NTBS_RAM + AT, 0x100, OPEN);
	send_to(s, 0);
	send_to(s, 2);
	lead_to_device(s, 0, 1);
	write_all(s, 0, 0, 1);
	assert_true(s->alarm == s->now + EMU_NTB_PATIENCE_NS);
	s->now += EMU_NTB_PATIENCE_NS;
	emu_ntb_expire(s->ntb);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 0);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 1);
	assert_int_equal(next_fault(s, 0, 0, 2 * NTBS_ENTRY), SIO_VNTB_REASON_PEER);
	assert_true(ntbs_get(s, 1, SIO_VNTB_MEMBER(0)) & SIO_VNTB_MEMBER_BUSY); /* it may come */
	/* More, and another sender's, are missed at once, and nothing more is sent there. */
	write_all(s, 0, 0, 2);
	write_all(s, 2, 0, 3);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 0);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 2);
	assert_int_equal(group(s, 2, SIO_VNTB_GROUP_MISSED), 1);
	assert_int_equal(s->machine[1].n_asks, 1);
	assert_int_equal(ram32(s, 2, AT), 3); /* the others have them */
	/* Nor is a read waited for. */
	assert_true(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	assert_int_equal(got, ONES);
	/* It answers, and what had been given up counts once. */
	ntbs_answer(s, 1, 0, -EFAULT, NULL);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 2);
	assert_false(ntbs_get(s, 1, SIO_VNTB_MEMBER(0)) & SIO_VNTB_MEMBER_BUSY);
	write_all(s, 0, 0, 4);
	assert_int_equal(s->machine[1].n_asks, 2);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 1);
	ntbs_answer(s, 1, 1, 0, NULL);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_PENDING), 0);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 2);
	ntbs_free(s);
}

/* No row of the sender's table is of an adapter of its own machine. */
static void members_at_the_other_adapter(void **state)
{
	struct ntbs *s = ntbs_new_two();

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		ntbs_connect(s, i);
	member(s, 1, 0, NTBS_RAM + AT, SIZE, OPEN);
	send_to(s, 0);
	write_all(s, 0, 0, 1);
	assert_int_equal(ram32(s, 1, AT), 1);
	assert_int_equal(count(s, 0, SIO_VNTB_COUNT_GROUP_OUT), 0);
	no_fault(s);
	control(s, 1, 0, 0);
	member(s, 1, 0, NTBS_RAM + NTBS_RAM_BYTES - 4, 0x100, OPEN); /* nothing is behind that */
	write_all(s, 0, 2, 2);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 1);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_PEER), ONES);
	assert_int_equal(next_fault(s, 0, 0, 2 * NTBS_ENTRY + 2), SIO_VNTB_REASON_PEER);
	no_fault(s);
	/* A device that refuses it. */
	control(s, 1, 0, 0);
	member(s, 1, 0, NTBS_DEVICE, 0x100, OPEN);
	write_all(s, 0, 0, 3);
	ntbs_refuse(s, 1, 0);
	assert_int_equal(group(s, 0, SIO_VNTB_GROUP_MISSED), 2);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_PEER), ONES);
	assert_int_equal(next_fault(s, 0, 0, 2 * NTBS_ENTRY), SIO_VNTB_REASON_PEER);
	no_fault(s);
	ntbs_free(s);
}

/* The registers say what the view of the cluster says. */
static void counters_are_registers(void **state)
{
	struct ntbs *s = exact(2);
	struct emu_ntb_view v;

	(void)state;
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, 0x1000, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_RAM, 0);
	window_set32(s, 0, 0, 1);
	window32(s, 0, 0);
	window32(s, 0, 9 * NTBS_ENTRY); /* a fault */
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 1);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(0), 1);
	for (unsigned i = 0; i < 2; i++) {
		emu_ntb_look(s->machine[i].adapter, &v);
		assert_true(count(s, i, SIO_VNTB_COUNT_READ_REQUESTS) ==
			    v.counts.pcie.read_requests);
		assert_true(count(s, i, SIO_VNTB_COUNT_READ_BYTES) == v.counts.pcie.read_bytes);
		assert_true(count(s, i, SIO_VNTB_COUNT_WRITE_BYTES) == v.counts.pcie.write_bytes);
		assert_true(count(s, i, SIO_VNTB_COUNT_INTERRUPTS) == v.counts.interrupts);
		assert_int_equal(count(s, i, SIO_VNTB_COUNT_READ_BYTES), 4);
		assert_int_equal(count(s, i, SIO_VNTB_COUNT_WRITES), 1);
	}
	assert_int_equal(count(s, 0, SIO_VNTB_COUNT_FAULTS), 1);
	assert_int_equal(count(s, 1, SIO_VNTB_COUNT_DOORBELLS), 1);
	assert_int_equal(count(s, 1, SIO_VNTB_COUNT_MAILS), 1);
	assert_true(count(s, 0, SIO_VNTB_COUNT_CHANGES) > 0);
	ntbs_set(s, 0, SIO_VNTB_RESET, 1);
	assert_int_equal(count(s, 0, SIO_VNTB_COUNT_READ_BYTES), 4);
	ntbs_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member_has_a_copy),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(links_and_ends),
		cmocka_unit_test(members_in_devices),
		cmocka_unit_test(a_member_that_is_silent),
		cmocka_unit_test(members_at_the_other_adapter),
		cmocka_unit_test(counters_are_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
