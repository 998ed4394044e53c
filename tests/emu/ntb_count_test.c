/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: what they count, and what a view sees of them. */
#include <errno.h>

#include "ntb_checks.h"

static struct emu_ntb_view look(struct ntbs *s, unsigned machine)
{
	struct emu_ntb_view v;

	emu_ntb_look(s->machine[machine].adapter, &v);
	return v;
}

static struct emu_ntb_counts counts(struct ntbs *s, unsigned machine)
{
	return look(s, machine).counts;
}

/* Both ends of the way count the same, and this. */
static void both_have(struct ntbs *s, struct sio_pcie_count want)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct sio_pcie_count got = counts(s, i).pcie;

		assert_int_equal(got.write_tlps, want.write_tlps);
		assert_int_equal(got.write_bytes, want.write_bytes);
		assert_int_equal(got.read_requests, want.read_requests);
		assert_int_equal(got.completions, want.completions);
		assert_int_equal(got.read_bytes, want.read_bytes);
	}
}

static void what_passes_an_exact_window(void **state)
{
	struct ntbs *s = connected(2);
	uint8_t many[64] = {0};

	(void)state;
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, 0x1000, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_RAM, 0);
	both_have(s, (struct sio_pcie_count){0});
	window_set32(s, 0, 0x10, 7);
	both_have(s, (struct sio_pcie_count){.write_tlps = 1, .write_bytes = 4});
	ntbs_write(s, 0, NTBS_WINDOW, 0x40, many, sizeof(many));
	assert_int_equal(window32(s, 0, 0x10), 7);
	both_have(s, (struct sio_pcie_count){.write_tlps = 2,
					     .write_bytes = 68,
					     .read_requests = 1,
					     .completions = 1,
					     .read_bytes = 4});
	assert_int_equal(counts(s, 0).messages + counts(s, 1).messages, 0);
	assert_int_equal(counts(s, 0).faults + counts(s, 1).faults, 0);
	assert_true(look(s, 0).counted);
	assert_int_equal(look(s, 0).entries, 1);
	assert_int_equal(look(s, 0).ranges, 0);
	assert_int_equal(look(s, 1).ranges, 1);
	ntbs_free(s);
}

/* Each access to a BAR that QEMU sends; what the machine's configuration space is asked is none. */
static void what_comes_to_the_function(void **state)
{
	struct ntbs *s = connected(2);
	uint64_t before[2] = {counts(s, 0).exits, counts(s, 1).exits};
	uint32_t id;

	(void)state;
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, 0x1000, BOTH); /* four stores */
	assert_int_equal(counts(s, 1).exits - before[1], 4);
	ntbs_set(s, 0, SIO_VNTB_SPAD(1), 5);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_SPAD(1)), 5);
	window_set32(s, 0, 0x10, 7); /* though it leads nowhere */
	assert_true(ntbs_read(s, 0, SIO_VFIO_CONFIG, 0, &id, sizeof(id)));
	assert_int_equal(counts(s, 0).exits - before[0], 3);
	assert_int_equal(counts(s, 1).exits - before[1], 4);
	ntbs_free(s);
}

/* As far as it got, and a read is answered by a completion without data. */
static void what_is_refused(void **state)
{
	struct ntbs *s = connected(2);

	(void)state;
	window_set32(s, 0, 5 * NTBS_ENTRY, 1); /* no entry: it does not leave */
	both_have(s, (struct sio_pcie_count){0});
	assert_int_equal(counts(s, 0).faults, 1);
	assert_int_equal(counts(s, 1).faults, 0);
	ntbs_lead(s, 0, 0, 0, NTBS_RAM, 0); /* the peer refuses it */
	window_set32(s, 0, 0, 1);
	assert_int_equal(window32(s, 0, 0), ONES);
	both_have(s,
		  (struct sio_pcie_count){
			  .write_tlps = 1, .write_bytes = 4, .read_requests = 1, .completions = 1});
	assert_int_equal(counts(s, 0).faults, 3);
	assert_int_equal(counts(s, 1).faults, 2);
	emu_ntb_link(s->ntb, 8, 0, false); /* lost on the way */
	window_set32(s, 0, 0, 1);
	assert_int_equal(counts(s, 0).pcie.write_tlps, 2);
	assert_int_equal(counts(s, 1).pcie.write_tlps, 1);
	assert_int_equal(counts(s, 0).faults, 4);
	assert_int_equal(counts(s, 1).faults, 2);
	ntbs_free(s);
}

static void what_the_peer_does_itself(void **state)
{
	struct ntbs *s = connected(2);
	const uint32_t value = 5;
	uint32_t got;

	(void)state;
	ntbs_grant(s, 1, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_DEVICE, 0);
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x14, &got, 4));
	both_have(s, (struct sio_pcie_count){.read_requests = 1});
	ntbs_answer(s, 1, 0, 0, &value);
	both_have(s,
		  (struct sio_pcie_count){.read_requests = 1, .completions = 1, .read_bytes = 4});
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x14, &got, 4));
	ntbs_refuse(s, 1, 1); /* what is sent again is the same packet */
	both_have(s,
		  (struct sio_pcie_count){.read_requests = 2, .completions = 2, .read_bytes = 4});
	/* No answer in time; that which comes later counts for nothing. */
	assert_false(ntbs_read(s, 0, NTBS_WINDOW, 0x14, &got, 4));
	s->now += EMU_NTB_PATIENCE_NS;
	emu_ntb_expire(s->ntb);
	ntbs_answer(s, 1, s->machine[1].n_asks - 1, 0, &value);
	both_have(s,
		  (struct sio_pcie_count){.read_requests = 3, .completions = 3, .read_bytes = 4});
	/* A write counts when it is sent, whatever becomes of it. */
	window_set32(s, 0, 0x10, 1);
	ntbs_refuse(s, 1, s->machine[1].n_asks - 1);
	both_have(s, (struct sio_pcie_count){.read_requests = 3,
					     .completions = 3,
					     .read_bytes = 4,
					     .write_tlps = 1,
					     .write_bytes = 4});
	ntbs_free(s);
}

static void interrupts_of_all_kinds(void **state)
{
	struct ntbs *s = connected(2);
	const uint32_t message = 0x42;

	(void)state;
	ntbs_grant(s, 1, 0, 0, NTBS_DEVICE, message, SIO_VNTB_RANGE_WRITE | SIO_VNTB_RANGE_MESSAGE);
	ntbs_lead(s, 0, 0, 0, NTBS_DEVICE, 0);
	window_set32(s, 0, 0, message);
	both_have(s, (struct sio_pcie_count){.write_tlps = 1, .write_bytes = 4});
	assert_int_equal(counts(s, 0).messages, 1);
	assert_int_equal(counts(s, 1).messages, 1);
	assert_int_equal(counts(s, 1).doorbells, 0);
	ntbs_set(s, 1, SIO_VNTB_DB_MASK, ~1u);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 5);
	assert_int_equal(counts(s, 1).doorbells, 2);
	assert_int_equal(counts(s, 0).doorbells, 0);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(2), 9);
	assert_int_equal(counts(s, 1).mails, 1);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(2), 9); /* it is full */
	assert_int_equal(counts(s, 1).mails, 1);
	ntbs_free(s);
}

/* What the function sends to its driver: the link that changed, and what is not masked. */
static void interrupts_to_the_driver(void **state)
{
	struct ntbs *s = connected(2);
	uint64_t before = counts(s, 1).interrupts;
	unsigned signals = 0, after = 0;

	(void)state;
	for (unsigned i = 0; i < SIO_VNTB_VECTORS; i++)
		signals += s->machine[1].signals[i];
	emu_ntb_link(s->ntb, 4, 0, false);
	emu_ntb_link(s->ntb, 4, 0, true);
	ntbs_set(s, 1, SIO_VNTB_DB_MASK, ~1u);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 3);
	for (unsigned i = 0; i < SIO_VNTB_VECTORS; i++)
		after += s->machine[1].signals[i];
	assert_int_equal(after - signals, 3);
	assert_int_equal(counts(s, 1).interrupts - before, 3);
	ntbs_free(s);
}

static void beside_an_emulated_host(void **state)
{
	struct ntbs *s = ntbs_new_beside(1);

	(void)state;
	ntbs_connect(s, 0);
	emu_ntb_host_power(s->ntb, 4, 1);
	ntbs_lead(s, 0, 1, 0, NTBS_HOST_RAM, 0);
	ntbs_lead(s, 0, 2, 0, NTBS_HOST_RAM + NTBS_HOST_BYTES, 0);
	window_set32(s, 0, NTBS_ENTRY, 1);
	window32(s, 0, NTBS_ENTRY);
	window_set32(s, 0, 2 * NTBS_ENTRY, 5); /* a message */
	assert_int_equal(counts(s, 0).pcie.write_tlps, 2);
	assert_int_equal(counts(s, 0).pcie.write_bytes, 8);
	assert_int_equal(counts(s, 0).pcie.read_bytes, 4);
	assert_int_equal(counts(s, 0).messages, 1);
	assert_int_equal(window32(s, 0, 2 * NTBS_ENTRY), ONES);
	assert_int_equal(counts(s, 0).pcie.read_requests, 2);
	assert_int_equal(counts(s, 0).pcie.completions, 2);
	assert_int_equal(counts(s, 0).pcie.read_bytes, 4);
	assert_int_equal(counts(s, 0).faults, 1);
	assert_ptr_equal(emu_ntb_of(s->ntb, 8, 0), s->machine[0].adapter);
	assert_null(emu_ntb_of(s->ntb, 8, 1));
	assert_null(emu_ntb_of(s->ntb, 4, 0)); /* of no machine */
	ntbs_free(s);
}

static void states(void **state)
{
	struct ntbs *s = ntbs_new(2, false);
	uint64_t starts = look(s, 0).starts;

	(void)state;
	assert_false(look(s, 0).attached || look(s, 0).linked || look(s, 0).ready);
	ntbs_connect(s, 0);
	assert_true(look(s, 0).attached && look(s, 0).linked);
	assert_false(look(s, 0).ready);
	ntbs_set(s, 0, SIO_VNTB_ENABLE, 1);
	assert_true(look(s, 0).ready);
	assert_true(look(s, 0).starts > starts);
	emu_ntb_link(s->ntb, 4, 0, false);
	assert_true(look(s, 0).attached && !look(s, 0).linked);
	emu_ntb_link(s->ntb, 4, 0, true);
	emu_ntb_switch(s->ntb, 0, false);
	assert_false(look(s, 0).linked);
	emu_ntb_switch(s->ntb, 0, true);
	assert_true(look(s, 0).linked);
	/* What was counted stays when the machine goes. */
	ntbs_connect(s, 1);
	ntbs_set(s, 1, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 1);
	ntbs_disconnect(s, 0);
	assert_false(look(s, 0).attached || look(s, 0).linked || look(s, 0).ready);
	assert_int_equal(counts(s, 0).doorbells, 1);
	ntbs_free(s);
	s = ntbs_new(2, true);
	assert_false(look(s, 0).counted);
	ntbs_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_passes_an_exact_window),
		cmocka_unit_test(what_comes_to_the_function),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(what_the_peer_does_itself),
		cmocka_unit_test(interrupts_of_all_kinds),
		cmocka_unit_test(interrupts_to_the_driver),
		cmocka_unit_test(beside_an_emulated_host),
		cmocka_unit_test(states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
