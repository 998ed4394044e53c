/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: their registers, tables of peers, queues of faults, and resets. */
#include <errno.h>

#include <linux/pci_regs.h>

#include "ntb_checks.h"

static void it_says_what_it_is(void **state)
{
	struct ntbs *s = connected(3);
	uint32_t id = 0;

	(void)state;
	assert_true(ntbs_read(s, 1, SIO_VFIO_CONFIG, 0, &id, sizeof(id)));
	assert_int_equal(id, SIO_VNTB_DEVICE << 16 | SIO_VNTB_VENDOR);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_MAGIC), SIO_VNTB_MAGIC_VALUE);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_VERSION), SIO_VNTB_VERSION_VALUE);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_NODE), 8);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEERS), 2);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_ENTRIES), NTBS_ENTRIES);
	assert_int_equal(1u << ntbs_get(s, 1, SIO_VNTB_ENTRY_SHIFT), NTBS_ENTRY);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PIECES), 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_CAPABILITIES), 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_REQUESTERS), 8);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_NODE), 4);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(1) + SIO_VNTB_PEER_NODE), 12);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_SELF), 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(1) + SIO_VNTB_PEER_SELF), 1);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(1) + SIO_VNTB_PEER_HOPS), 2);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PEER(2) + SIO_VNTB_PEER_NODE), 0);
	ntbs_free(s);
}

static void accesses_are_whole_and_aligned(void **state)
{
	static const struct {
		uint64_t offset;
		size_t len;
	} bad[] = {{SIO_VNTB_MAGIC, 8},	    {SIO_VNTB_MAGIC, 2},   {SIO_VNTB_SPAD(0) + 2, 4},
		   {SIO_VNTB_START + 4, 8}, {SIO_VNTB_SPAD(0), 1}, {SIO_VNTB_SPAD(0), 16}};
	struct ntbs *s = connected(2);
	uint64_t lut = SIO_VNTB_LUT(3) + SIO_VNTB_LUT_ADDRESS;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t data[16] = {0}, ones[16];

		memset(ones, 0xff, sizeof(ones));
		ntbs_write(s, 0, NTBS_REGISTERS, bad[i].offset, ones, bad[i].len);
		assert_true(ntbs_read(s, 0, NTBS_REGISTERS, bad[i].offset, data, bad[i].len));
		assert_memory_equal(data, ones, bad[i].len);
	}
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_SPAD(0)), 0);
	/* As two halves: the high one makes it. */
	ntbs_set64(s, 0, lut, 0x1111111122222222u);
	ntbs_set(s, 0, lut, 0x33333333);
	assert_true(ntbs_get64(s, 0, lut) == 0x1111111122222222u);
	ntbs_set(s, 0, lut + 4, 0x44444444);
	assert_true(ntbs_get64(s, 0, lut) == 0x4444444433333333u);
	assert_int_equal(ntbs_get(s, 0, lut), 0x33333333);
	assert_int_equal(ntbs_get(s, 0, lut + 4), 0x44444444);
	/* What can only be read, and what is not there. */
	ntbs_set(s, 0, SIO_VNTB_NODE, 99);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_NODE), 4);
	ntbs_set(s, 0, SIO_VNTB_LUT(NTBS_ENTRIES), 1);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_LUT(NTBS_ENTRIES)), 0);
	assert_int_equal(ntbs_get(s, 0, 0x60000), 0);
	ntbs_set(s, 0, SIO_VNTB_REQUESTER(7), SIO_VNTB_REQUESTER_VALID | 0x1234);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_REQUESTER(7)), SIO_VNTB_REQUESTER_VALID | 0x1234);
	ntbs_free(s);
}

static void peers_come_and_go(void **state)
{
	const uint64_t peer = SIO_VNTB_PEER(0);
	struct ntbs *s = ntbs_new(2, false);
	unsigned *told = &s->machine[0].signals[SIO_VNTB_VECTOR_LINK], before;
	uint32_t changes;
	uint64_t start;

	(void)state;
	ntbs_connect(s, 0);
	assert_int_equal(peer_state(s, 0), SIO_VNTB_PEER_MACHINE);
	changes = ntbs_get(s, 0, peer + SIO_VNTB_PEER_CHANGES);
	before = *told;
	ntbs_connect(s, 1);
	assert_int_equal(peer_state(s, 0), SIO_VNTB_PEER_MACHINE | SIO_VNTB_PEER_UP);
	assert_int_equal(ntbs_get(s, 0, peer + SIO_VNTB_PEER_CHANGES), changes + 1);
	assert_int_equal(*told, before + 1);
	ntbs_set(s, 1, SIO_VNTB_ENABLE, 1);
	assert_int_equal(*told, before + 2);
	assert_true(peer_state(s, 0) & SIO_VNTB_PEER_READY);
	/* Its driver came: the way there is as it was. */
	assert_int_equal(ntbs_get(s, 0, peer + SIO_VNTB_PEER_CHANGES), changes + 1);
	start = ntbs_get64(s, 0, peer + SIO_VNTB_PEER_START);
	assert_true(start == ntbs_get64(s, 1, SIO_VNTB_START));
	/* Its cable. */
	assert_int_equal(emu_ntb_link(s->ntb, 8, 0, false), 0);
	assert_int_equal(emu_ntb_link(s->ntb, 8, 1, false), -ENXIO);
	assert_int_equal(emu_ntb_link(s->ntb, 12, 0, false), -ENXIO);
	assert_int_equal(peer_state(s, 0), SIO_VNTB_PEER_MACHINE);
	assert_int_equal(peer_state(s, 1), SIO_VNTB_PEER_MACHINE);
	assert_int_equal(emu_ntb_link(s->ntb, 8, 0, true), 0);
	assert_true(peer_state(s, 0) & SIO_VNTB_PEER_READY);
	assert_true(start == ntbs_get64(s, 0, peer + SIO_VNTB_PEER_START));
	/* The switch between them. */
	before = *told;
	emu_ntb_switch(s->ntb, 0, false);
	emu_ntb_switch(s->ntb, 0, false);
	assert_int_equal(peer_state(s, 0), SIO_VNTB_PEER_MACHINE);
	assert_int_equal(peer_state(s, 1), SIO_VNTB_PEER_MACHINE);
	emu_ntb_switch(s->ntb, 0, true);
	assert_true(peer_state(s, 0) & SIO_VNTB_PEER_READY);
	assert_int_equal(*told, before + 2);
	/* A reset is another start, of the peer alone. */
	ntbs_set(s, 1, SIO_VNTB_RESET, 1);
	assert_int_equal(peer_state(s, 0), SIO_VNTB_PEER_MACHINE | SIO_VNTB_PEER_UP);
	assert_true(ntbs_get64(s, 0, peer + SIO_VNTB_PEER_START) == start + 1);
	before = *told; /* also where the state stays as it is */
	ntbs_set(s, 1, SIO_VNTB_RESET, 1);
	assert_int_equal(*told, before + 1);
	assert_true(ntbs_get64(s, 0, peer + SIO_VNTB_PEER_START) == start + 2);
	before = *told;
	ntbs_disconnect(s, 1);
	assert_int_equal(*told, before + 1);
	assert_int_equal(peer_state(s, 0), SIO_VNTB_PEER_MACHINE);
	ntbs_connect(s, 1);
	assert_true(ntbs_get64(s, 0, peer + SIO_VNTB_PEER_START) > start + 2);
	ntbs_free(s);
}

static void scratchpads(void **state)
{
	struct ntbs *s = connected(2);

	(void)state;
	ntbs_set(s, 0, SIO_VNTB_PEER_SPAD(0, 63), 1234);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_SPAD(63)), 1234);
	ntbs_set(s, 1, SIO_VNTB_SPAD(0), 7);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER_SPAD(0, 0)), 7);
	emu_ntb_link(s->ntb, 8, 0, false);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER_SPAD(0, 0)), ONES);
	ntbs_set(s, 0, SIO_VNTB_PEER_SPAD(0, 0), 8);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_SPAD(0)), 7);
	ntbs_free(s);
}

static void faults_are_queued(void **state)
{
	struct ntbs *s = connected(2);
	unsigned *told = &s->machine[0].signals[SIO_VNTB_VECTOR_FAULT];

	(void)state;
	for (unsigned i = 0; i < SIO_VNTB_FAULTS + 3; i++)
		window32(s, 0, 4 * i);
	assert_int_equal(*told, 1);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_COUNT), SIO_VNTB_FAULTS);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_LOST), 3);
	for (unsigned i = 0; i < SIO_VNTB_FAULTS; i++) {
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_PEER), ONES);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_LENGTH), 4);
		assert_int_equal(next_fault(s, 0, 1, 4 * i), SIO_VNTB_REASON_ENTRY);
	}
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_COUNT), 0);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_REASON), 0);
	ntbs_set(s, 0, SIO_VNTB_FAULT_COUNT, 1);
	window32(s, 0, 0);
	assert_int_equal(*told, 2);
	ntbs_free(s);
}

static void resets(void **state)
{
	const uint16_t flr = PCI_EXP_DEVCTL_BCR_FLR;

	(void)state;
	for (unsigned way = 0; way < 3; way++) {
		struct ntbs *s = connected(2);
		uint64_t start = ntbs_get64(s, 0, SIO_VNTB_START);
		uint16_t command = 0;

		ntbs_set(s, 0, SIO_VNTB_ENABLE, 1);
		ntbs_set(s, 0, SIO_VNTB_SPAD(5), 5);
		ntbs_set(s, 0, SIO_VNTB_DB_MASK, 0);
		ntbs_set(s, 0, SIO_VNTB_MSG_MASK, 0);
		ntbs_grant(s, 0, 4000, 0, NTBS_RAM, 0x100, BOTH);
		ntbs_lead(s, 0, 1, 0, NTBS_RAM, 0);
		ntbs_set(s, 1, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, 1);
		ntbs_set(s, 1, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(0), 1);
		window32(s, 0, 0);
		if (way == 0)
			ntbs_set(s, 0, SIO_VNTB_RESET, 1);
		else if (way == 1)
			ntbs_tell(&s->machine[0], SIO_VFIO_RESET, 0, NULL, 0, -1, 0);
		else
			ntbs_write(s, 0, SIO_VFIO_CONFIG, 0x80 + PCI_EXP_DEVCTL, &flr, sizeof(flr));
		assert_true(ntbs_get64(s, 0, SIO_VNTB_START) == start + 1);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_ENABLE), 0);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_SPAD(5)), 0);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_DB_STATUS), 0);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_DB_MASK), ONES);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_MSG_STATUS), 0);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_MSG_MASK), 0xf000f);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_COUNT), 0);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_RANGE(4000)), 0);
		assert_int_equal(ntbs_get(s, 0, SIO_VNTB_LUT(1)), 0);
		assert_true(ntbs_read(s, 0, SIO_VFIO_CONFIG, PCI_COMMAND, &command, 2));
		assert_int_equal(command, way == 0 ? PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER : 0);
		assert_true(peer_state(s, 1) & SIO_VNTB_PEER_UP);
		ntbs_free(s);
	}
}

/* Of machine 1. */
static void expect_piece(struct ntbs *s, unsigned piece, uint32_t row, uint64_t offset)
{
	uint32_t at = SIO_VNTB_PIECE(piece);

	assert_int_equal(ntbs_get(s, 1, at + SIO_VNTB_PIECE_ROW), row);
	assert_true(ntbs_get64(s, 1, at + SIO_VNTB_PIECE_BUS) == 0);
	assert_true(ntbs_get64(s, 1, at + SIO_VNTB_PIECE_SIZE) == 2u << 20);
	assert_true(ntbs_get64(s, 1, at + SIO_VNTB_PIECE_OFFSET) == offset);
}

static void mapped_machines_say_where_memory_is(void **state)
{
	struct ntbs *s = ntbs_new(3, true);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
	/* A BAR can have it. */
	assert_int_equal(emu_ntb_pool_size(&s->topo), 8u << 20);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_CAPABILITIES), SIO_VNTB_CAP_MAPPED);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PIECES), 3);
	/* Its own, then the others, in the order of the rows. */
	expect_piece(s, 0, SIO_VNTB_PIECE_OWN, 2u << 20);
	expect_piece(s, 1, 0, 0);
	expect_piece(s, 2, 1, 4u << 20);
	ntbs_free(s);
}

static void memory_is_the_machines_that_describes_it(void **state)
{
	enum { PART = 2 << 20 }; /* of each machine, in their order */
	struct ntbs *s = ntbs_new(3, true);
	uint64_t at = 0;

	(void)state;
	/* Its QEMU says where it is in its own part. */
	assert_int_equal(emu_ntb_pool_place(&s->topo, 8, 0x3000, 0x1000, &at), 0);
	assert_true(at == PART + 0x3000);
	at = 0x1000;
	assert_int_equal(emu_ntb_pool_place(&s->topo, 12, PART - 0x1000, 0x1000, &at), 0);
	assert_true(at == 3 * PART - 0x1000);
	/* All of the file, in a function's BAR. */
	at = 0;
	assert_int_equal(emu_ntb_pool_place(&s->topo, 8, 64u << 20, 4 * PART, &at), 0);
	assert_true(at == 0);
	/* Whose that is only QEMU knows; so of a machine that has no part. */
	assert_int_equal(emu_ntb_pool_place(&s->topo, 8, PART - 0x1000, 0x2000, &at), -ERANGE);
	assert_int_equal(emu_ntb_pool_place(&s->topo, 8, 64u << 20, PART, &at), -ERANGE);
	assert_int_equal(emu_ntb_pool_place(&s->topo, 16, 0, 0x1000, &at), -ERANGE);
	at = 0x1000;
	assert_int_equal(emu_ntb_pool_place(&s->topo, 8, 64u << 20, 4 * PART, &at), -ERANGE);
	ntbs_free(s);
}

static void log_nothing(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
}

/* Machines with two adapters each behind one switch, and a cable between the first two. */
static void rows_are_in_the_order_of_the_topology(void **state)
{
	static const struct emu_ntb_ops ops = {.log = log_nothing};
	static struct sio_topo_host host[34];
	struct sio_topology topo = {.max_payload = 256,
				    .max_read_request = 512,
				    .read_completion_boundary = 64,
				    .n_machines = 3,
				    .host = host,
				    .machine = host};
	struct emu_ntb *ntb;
	struct sio_err err;
	uint32_t node, adapter, self;

	(void)state;
	for (unsigned i = 0; i < 34; i++) {
		host[i].node = 4 * (i + 1);
		host[i].machine = true;
		host[i].n_adapters = 2;
		host[i].name[0] = 'm';
		for (unsigned k = 0; k < SIO_MAX_ADAPTERS; k++)
			host[i].adapter[k] = (struct sio_topo_adapter){
				.window_size = 1u << 20,
				.lut_entries = 256,
				.requesters = 2,
				.attach = SIO_ATTACH_SWITCH,
			};
	}
	assert_int_equal(emu_ntb_new(&topo, &ops, NULL, &ntb, NULL), 0);
	assert_int_equal(emu_ntb_adapters(ntb), 6);
	for (unsigned row = 0; row < 4; row++) {
		struct emu_ntb_adapter *a =
			emu_ntb_at(ntb, 3); /* the second one of the second host */
		const unsigned at = SIO_VNTB_PEER(row);

		emu_ntb_function.read(a, 0, at + SIO_VNTB_PEER_NODE, &node, 4);
		emu_ntb_function.read(a, 0, at + SIO_VNTB_PEER_ADAPTER, &adapter, 4);
		emu_ntb_function.read(a, 0, at + SIO_VNTB_PEER_SELF, &self, 4);
		assert_int_equal(node, row < 2 ? 4 : 12);
		assert_int_equal(adapter, row % 2);
		assert_int_equal(self, row < 2 ? 1 : 3); /* behind host 0's for host 2 */
	}
	emu_ntb_free(ntb);
	/* Four adapters of each of 33 others are more than there are rows. */
	topo.n_machines = 34;
	for (unsigned i = 0; i < 34; i++)
		host[i].n_adapters = 4;
	assert_int_equal(emu_ntb_new(&topo, &ops, NULL, &ntb, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 128 adapters"));
	topo.n_machines = 33;
	assert_int_equal(emu_ntb_new(&topo, &ops, NULL, &ntb, &err), 0);
	emu_ntb_free(ntb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(accesses_are_whole_and_aligned),
		cmocka_unit_test(peers_come_and_go),
		cmocka_unit_test(scratchpads),
		cmocka_unit_test(faults_are_queued),
		cmocka_unit_test(resets),
		cmocka_unit_test(mapped_machines_say_where_memory_is),
		cmocka_unit_test(memory_is_the_machines_that_describes_it),
		cmocka_unit_test(rows_are_in_the_order_of_the_topology),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
