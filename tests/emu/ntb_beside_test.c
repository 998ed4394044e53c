/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs beside an emulated host, which is row 0 of each machine and has rows 0 and 1. */
#include <errno.h>

#include "ntb_checks.h"

static void an_emulated_host_is_a_peer(void **state)
{
	struct ntbs *s = ntbs_new_beside(2);
	uint32_t changes;

	(void)state;
	ntbs_connect(s, 0);
	ntbs_connect(s, 1);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEERS), 2);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_NODE), 4);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_STATE), 0);
	assert_true(s->power[1] != 0 && s->power[1] == ntbs_get64(s, 0, SIO_VNTB_START));
	changes = ntbs_get(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_CHANGES);
	emu_ntb_host_power(s->ntb, 4, 7);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_STATE),
			 SIO_VNTB_PEER_UP | SIO_VNTB_PEER_READY);
	assert_int_equal(ntbs_get64(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_START), 7);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_CHANGES), changes + 1);
	/* It has neither scratchpads nor messages. */
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER_SPAD(0, 3)), ONES);
	ntbs_set(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(0), 1);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_MSG_STATUS), 0x10000u);
	/* A reset by the driver is another start, of which the host hears. */
	s->now += EMU_NTB_STARTS_NS;
	ntbs_set(s, 0, SIO_VNTB_RESET, 1);
	assert_true(s->power[1] == ntbs_get64(s, 0, SIO_VNTB_START));
	emu_ntb_link(s->ntb, 4, 0, false);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_STATE), 0);
	emu_ntb_link(s->ntb, 4, 0, true);
	emu_ntb_host_power(s->ntb, 4, 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_STATE), 0);
	ntbs_disconnect(s, 0);
	assert_int_equal(s->power[1], 0);
	ntbs_free(s);
}

static void a_pool_is_a_piece(void **state)
{
	const uint64_t own = SIO_VNTB_PIECE(0), pool = SIO_VNTB_PIECE(1), other = SIO_VNTB_PIECE(2);
	struct ntbs *s = ntbs_new_pool(2);

	(void)state;
	ntbs_connect(s, 1);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_CAPABILITIES), SIO_VNTB_CAP_MAPPED);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PIECES), 3);
	assert_int_equal(ntbs_get(s, 1, own + SIO_VNTB_PIECE_ROW), SIO_VNTB_PIECE_OWN);
	assert_int_equal(ntbs_get(s, 1, own + SIO_VNTB_PIECE_FILE), 0);
	assert_int_equal(ntbs_get64(s, 1, own + SIO_VNTB_PIECE_OFFSET), 2u << 20);
	assert_int_equal(ntbs_get(s, 1, pool + SIO_VNTB_PIECE_ROW), 0);
	assert_int_equal(ntbs_get(s, 1, pool + SIO_VNTB_PIECE_FILE), 4);
	assert_int_equal(ntbs_get64(s, 1, pool + SIO_VNTB_PIECE_BUS), 1ull << 32);
	assert_int_equal(ntbs_get64(s, 1, pool + SIO_VNTB_PIECE_SIZE), 1u << 20);
	assert_int_equal(ntbs_get64(s, 1, pool + SIO_VNTB_PIECE_OFFSET), 0);
	assert_int_equal(ntbs_get(s, 1, other + SIO_VNTB_PIECE_ROW), 1);
	assert_int_equal(ntbs_get(s, 1, other + SIO_VNTB_PIECE_FILE), 0);
	assert_int_equal(ntbs_get64(s, 1, SIO_VNTB_POOL_KEY), 0);
	emu_ntb_pool_key(s->ntb, 0x1122334455667788u);
	assert_int_equal(ntbs_get64(s, 1, SIO_VNTB_POOL_KEY), 0x1122334455667788u);
	assert_int_equal(emu_ntb_pool_file(&s->topo.host[0]), 2u << 20);
	assert_int_equal(emu_ntb_pool_file(&s->topo.machine[0]), 0);
	ntbs_free(s);
}

/* The end of a start is told at once, the next one so often. */
static void who_resets_often_is_heard_of_seldom(void **state)
{
	struct ntbs *s = ntbs_new_beside(2);

	(void)state;
	ntbs_connect(s, 0);
	assert_int_equal(s->n_power, 1);
	assert_int_equal(s->alarm, 0);
	for (unsigned i = 0; i < 1000; i++)
		ntbs_set(s, 0, SIO_VNTB_RESET, 1);
	assert_int_equal(s->n_power, 2);
	assert_int_equal(s->power[1], 0);
	assert_true(s->alarm == EMU_NTB_STARTS_NS);
	/* The other one is told as ever. */
	ntbs_connect(s, 1);
	assert_int_equal(s->n_power, 3);
	assert_true(s->power[2] == ntbs_get64(s, 1, SIO_VNTB_START));
	s->now = s->alarm - 1;
	s->alarm = 0;
	emu_ntb_expire(s->ntb); /* too early: it is set again */
	assert_int_equal(s->n_power, 3);
	assert_true(s->alarm == EMU_NTB_STARTS_NS);
	s->now++;
	s->alarm = 0;
	emu_ntb_expire(s->ntb);
	assert_int_equal(s->n_power, 4);
	assert_true(s->power[1] != 0 && s->power[1] == ntbs_get64(s, 0, SIO_VNTB_START));
	assert_int_equal(s->alarm, 0);
	/* Whoever goes before the next one may be told was never there. */
	ntbs_set(s, 0, SIO_VNTB_RESET, 1);
	ntbs_disconnect(s, 0);
	assert_int_equal(s->n_power, 5);
	s->now += 2 * EMU_NTB_STARTS_NS;
	emu_ntb_expire(s->ntb);
	assert_int_equal(s->n_power, 5);
	assert_int_equal(s->power[1], 0);
	ntbs_free(s);
}

static void the_window_leads_to_an_emulated_host(void **state)
{
	struct ntbs *s = ntbs_new_beside(2);

	(void)state;
	ntbs_connect(s, 0);
	ntbs_connect(s, 1);
	ntbs_lead(s, 0, 1, 0, NTBS_HOST_RAM, 0);
	ntbs_lead(s, 0, 2, 0, NTBS_HOST_RAM + NTBS_HOST_BYTES, 0);
	ntbs_lead(s, 0, 3, 0, 0, SIO_VNTB_LUT_RANGE);
	window_set32(s, 0, NTBS_ENTRY + 16, 1);
	assert_int_equal(next_fault(s, 0, 0, NTBS_ENTRY + 16), SIO_VNTB_REASON_LINK);
	emu_ntb_host_power(s->ntb, 4, 1);
	window_set32(s, 0, NTBS_ENTRY + 16, 0x1234567);
	assert_int_equal(s->outward.node, 4);
	assert_int_equal(s->outward.machine, 8);
	assert_int_equal(s->host_ram[16], 0x67);
	s->host_ram[19] = 9;
	assert_int_equal(window32(s, 0, NTBS_ENTRY + 16), 0x9234567);
	window_set32(s, 0, 2 * NTBS_ENTRY, 5);
	assert_int_equal(s->n_messages, 1);
	no_fault(s);
	/* What it refuses the machine hears of, and reads as ones. */
	assert_int_equal(window32(s, 0, 2 * NTBS_ENTRY), ONES);
	assert_int_equal(next_fault(s, 0, SIO_VNTB_FAULT_READ, 2 * NTBS_ENTRY),
			 SIO_VNTB_REASON_RIGHT);
	assert_int_equal(window32(s, 0, 2 * NTBS_ENTRY + 8), ONES);
	assert_int_equal(next_fault(s, 0, SIO_VNTB_FAULT_READ, 2 * NTBS_ENTRY + 8),
			 SIO_VNTB_REASON_RANGE);
	assert_int_equal(window32(s, 0, 3 * NTBS_ENTRY), ONES); /* it has no such rows */
	assert_int_equal(next_fault(s, 0, SIO_VNTB_FAULT_READ, 3 * NTBS_ENTRY),
			 SIO_VNTB_REASON_RANGE);
	ntbs_free(s);
}

static int reach(struct ntbs *s, unsigned machine, uint64_t address, uint64_t len, bool *write)
{
	const struct emu_ntb_inward x = {
		.node = 4, .machine = 8 + 4 * machine, .address = address, .len = len};
	uint8_t *data = NULL;
	size_t part;
	bool read;
	int rc = emu_ntb_host_memory(s->ntb, &x, &data, &part, &read, write);

	if (rc == 0 && part < len)
		return -ERANGE;
	if (rc == 0)
		assert_ptr_equal(data, s->machine[machine].ram + (address - NTBS_RAM));
	return rc;
}

static void an_emulated_host_reaches_what_was_granted(void **state)
{
	struct ntbs *s = ntbs_new_beside(2);
	bool write;

	(void)state;
	assert_int_equal(reach(s, 0, NTBS_RAM, 0x1000, &write), -EACCES); /* it is off */
	ntbs_connect(s, 0);
	ntbs_connect(s, 1);
	assert_int_equal(reach(s, 0, NTBS_RAM, 0x1000, &write), -EACCES);
	ntbs_grant(s, 0, 0, 1, NTBS_RAM, 0x1000, BOTH); /* to the other machine */
	assert_int_equal(reach(s, 0, NTBS_RAM, 0x1000, &write), -EACCES);
	ntbs_grant(s, 0, 1, 0, NTBS_RAM + 0x1000, 0x2000, BOTH);
	ntbs_grant(s, 0, 2, 0, NTBS_RAM + 0x4000, 0x1000, SIO_VNTB_RANGE_READ);
	ntbs_grant(s, 0, 3, 0, NTBS_DEVICE, 0x1000, BOTH);
	assert_int_equal(reach(s, 0, NTBS_RAM + 0x1000, 0x2000, &write), 0);
	assert_true(write);
	assert_int_equal(reach(s, 0, NTBS_RAM + 0x1000, 0x2001, &write), -EACCES);
	assert_int_equal(reach(s, 0, NTBS_RAM + 0x4000, 0x1000, &write), 0);
	assert_false(write);
	assert_int_equal(reach(s, 0, NTBS_DEVICE, 0x1000, &write), -EFAULT); /* registers */
	emu_ntb_link(s->ntb, 8, 0, false);
	assert_int_equal(reach(s, 0, NTBS_RAM + 0x1000, 0x1000, &write), -EACCES);
	emu_ntb_link(s->ntb, 8, 0, true);
	ntbs_set(s, 0, SIO_VNTB_RANGE(1), 0);
	assert_int_equal(reach(s, 0, NTBS_RAM + 0x1000, 0x1000, &write), -EACCES);
	ntbs_free(s);
}

static void an_emulated_host_interrupts_a_machine(void **state)
{
	struct ntbs *s = ntbs_new_beside(1);
	const struct emu_ntb_inward x = {.node = 4, .machine = 8, .address = 0xfee01000, .len = 4};

	(void)state;
	ntbs_connect(s, 0);
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, true), -EACCES);
	ntbs_grant(s, 0, 5, 0, 0xfee01000, 0x31, SIO_VNTB_RANGE_WRITE | SIO_VNTB_RANGE_MESSAGE);
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x32, true), -EACCES);
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, false), 0);
	assert_int_equal(s->machine[0].n_asks, 0);
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, true), 0);
	assert_int_equal(s->machine[0].n_asks, 1);
	assert_true(s->machine[0].ask[0].address == 0xfee01000 &&
		    s->machine[0].ask[0].data[0] == 0x31);
	/* A second one meanwhile is one with it, and is sent once more when it was taken. */
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, true), 0);
	assert_int_equal(s->machine[0].n_asks, 1);
	ntbs_answer(s, 0, 0, 0, NULL);
	assert_int_equal(s->machine[0].n_asks, 2);
	ntbs_answer(s, 0, 1, 0, NULL);
	assert_int_equal(s->machine[0].n_asks, 2);
	ntbs_free(s);
}

/* Others than those under way, which it would be one with. */
static void a_machine_takes_so_many_messages(void **state)
{
	struct ntbs *s = ntbs_new_beside(1);
	struct emu_ntb_inward x = {.node = 4, .machine = 8, .address = 0xfee01000, .len = 4};

	(void)state;
	ntbs_connect(s, 0);
	for (unsigned i = 0; i <= EMU_NTB_WRITES; i++) {
		ntbs_grant(s, 0, i, 0, x.address + 4 * i, 0x31,
			   SIO_VNTB_RANGE_WRITE | SIO_VNTB_RANGE_MESSAGE);
	}
	for (unsigned i = 0; i < EMU_NTB_WRITES; i++, x.address += 4)
		assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, true), 0);
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, true), -EBUSY);
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, false), 0);
	assert_int_equal(s->machine[0].n_asks, EMU_NTB_WRITES);
	ntbs_answer(s, 0, 0, 0, NULL);
	assert_int_equal(emu_ntb_host_message(s->ntb, &x, 0x31, true), 0);
	ntbs_free(s);
}

static void an_emulated_host_stores_to_a_device(void **state)
{
	struct ntbs *s = ntbs_new_beside(2);
	struct emu_ntb_inward x = {.node = 4, .machine = 8, .address = NTBS_DEVICE, .len = 0x1000};
	const uint32_t value = 0x1234567;

	(void)state;
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, NULL), -EACCES); /* it is off */
	ntbs_connect(s, 0);
	ntbs_connect(s, 1);
	ntbs_grant(s, 0, 0, 1, NTBS_DEVICE, 0x1000, BOTH); /* to the other machine */
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, NULL), -EACCES);
	ntbs_grant(s, 0, 1, 0, NTBS_DEVICE, 0x1000, SIO_VNTB_RANGE_READ);
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, NULL), -EACCES);
	ntbs_grant(s, 0, 1, 0, NTBS_DEVICE, 0x1000, BOTH);
	ntbs_grant(s, 0, 2, 0, 0xfee01000, 0x31, SIO_VNTB_RANGE_WRITE | SIO_VNTB_RANGE_MESSAGE);
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, NULL), 0);
	x.len++;
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, NULL), -EACCES);
	x.len = 4;
	x.address = NTBS_DEVICE + 8;
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, &value), 0);
	assert_int_equal(s->machine[0].n_asks, 1);
	assert_false(s->machine[0].ask[0].read);
	assert_true(s->machine[0].ask[0].address == NTBS_DEVICE + 8 &&
		    s->machine[0].ask[0].len == 4);
	assert_memory_equal(s->machine[0].ask[0].data, &value, 4);
	/* The same once more is another store, and what the machine's bus refuses is repeated. */
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, &value), 0);
	assert_int_equal(s->machine[0].n_asks, 2);
	ntbs_answer(s, 0, 0, 0, NULL);
	ntbs_answer(s, 0, 1, -EIO, NULL);
	ntbs_rest(s);
	assert_int_equal(s->machine[0].n_asks, 3);
	ntbs_answer(s, 0, 2, 0, NULL);
	for (unsigned i = 0; i < EMU_NTB_WRITES; i++)
		assert_int_equal(emu_ntb_host_store(s->ntb, &x, &value), 0);
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, &value), -EBUSY);
	ntbs_answer(s, 0, 3, 0, NULL);
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, &value), 0);
	x.address = 0xfee01000;
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, &value), -EACCES); /* no device's */
	ntbs_set(s, 0, SIO_VNTB_RANGE(1), 0);
	x.address = NTBS_DEVICE;
	assert_int_equal(emu_ntb_host_store(s->ntb, &x, &value), -EACCES);
	ntbs_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_emulated_host_is_a_peer),
		cmocka_unit_test(a_pool_is_a_piece),
		cmocka_unit_test(who_resets_often_is_heard_of_seldom),
		cmocka_unit_test(the_window_leads_to_an_emulated_host),
		cmocka_unit_test(an_emulated_host_reaches_what_was_granted),
		cmocka_unit_test(an_emulated_host_interrupts_a_machine),
		cmocka_unit_test(a_machine_takes_so_many_messages),
		cmocka_unit_test(an_emulated_host_stores_to_a_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
