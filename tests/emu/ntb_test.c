/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: what machines that are joined by them can do to each other, and cannot. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/pci_regs.h>

#include "../core/prng.h"
#include "ntbs.h"

#define ONES 0xffffffffu
#define BOTH (SIO_VNTB_RANGE_READ | SIO_VNTB_RANGE_WRITE)

static unsigned rounds;

/* Machines 0 and 1 are each other's row 0. */
static struct ntbs *two(void)
{
	struct ntbs *s = ntbs_new(2, false);

	ntbs_connect(s, 0);
	ntbs_connect(s, 1);
	return s;
}

static uint32_t window32(struct ntbs *s, unsigned machine, uint64_t offset)
{
	uint32_t value = 0x5a5a5a5a;

	assert_true(ntbs_read(s, machine, NTBS_WINDOW, offset, &value, sizeof(value)));
	return value;
}

static void window_set32(struct ntbs *s, unsigned machine, uint64_t offset, uint32_t value)
{
	ntbs_write(s, machine, NTBS_WINDOW, offset, &value, sizeof(value));
}

static uint32_t ram32(struct ntbs *s, unsigned machine, uint64_t at)
{
	uint32_t value;

	memcpy(&value, s->machine[machine].ram + at, sizeof(value));
	return value;
}

/* The oldest fault, which is taken. Return: its reason; 0: there is none. */
static uint32_t next_fault(struct ntbs *s, unsigned machine, uint32_t kind, uint64_t address)
{
	uint32_t reason;

	if (ntbs_get(s, machine, SIO_VNTB_FAULT_COUNT) == 0)
		return 0;
	assert_int_equal(ntbs_get(s, machine, SIO_VNTB_FAULT_KIND), kind);
	assert_true(ntbs_get64(s, machine, SIO_VNTB_FAULT_ADDRESS) == address);
	reason = ntbs_get(s, machine, SIO_VNTB_FAULT_REASON);
	ntbs_set(s, machine, SIO_VNTB_FAULT_COUNT, 1);
	return reason;
}

static void no_fault(struct ntbs *s)
{
	for (unsigned i = 0; i < s->n; i++)
		assert_int_equal(ntbs_get(s, i, SIO_VNTB_FAULT_COUNT), 0);
}

static void it_says_what_it_is(void **state)
{
	struct ntbs *s = ntbs_new(3, false);
	uint32_t id = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
	assert_true(ntbs_read(s, 1, EMU_VFIO_CONFIG, 0, &id, sizeof(id)));
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
	struct ntbs *s = two();
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

static uint32_t peer_state(struct ntbs *s, unsigned machine)
{
	return ntbs_get(s, machine, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_STATE);
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

static void doorbells(void **state)
{
	struct ntbs *s = two();
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
	struct ntbs *s = ntbs_new(3, false);
	unsigned *told = &s->machine[1].signals[SIO_VNTB_VECTOR_MESSAGE];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
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

static void scratchpads(void **state)
{
	struct ntbs *s = two();

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

static void the_window_leads_to_memory(void **state)
{
	struct ntbs *s = two();
	static const size_t lens[] = {1, 2, 4, 8, 3, 24};

	(void)state;
	ntbs_grant(s, 1, 9, 0, NTBS_RAM + 0x1000, 0x800, BOTH);
	ntbs_lead(s, 0, 2, 0, NTBS_RAM + 0x1000, 0);
	window_set32(s, 0, 2 * NTBS_ENTRY + 0x7fc, 0xcafe);
	assert_int_equal(ram32(s, 1, 0x17fc), 0xcafe);
	assert_int_equal(window32(s, 0, 2 * NTBS_ENTRY + 0x7fc), 0xcafe);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint8_t data[24], back[24] = {0};

		for (size_t k = 0; k < lens[i]; k++)
			data[k] = (uint8_t)prng();
		ntbs_write(s, 0, NTBS_WINDOW, 2 * NTBS_ENTRY + 8 * i, data, lens[i]);
		assert_memory_equal(s->machine[1].ram + 0x1000 + 8 * i, data, lens[i]);
		assert_true(ntbs_read(s, 0, NTBS_WINDOW, 2 * NTBS_ENTRY + 8 * i, back, lens[i]));
		assert_memory_equal(back, data, lens[i]);
	}
	no_fault(s);
	/* Behind the range: both ends hear of it. */
	assert_int_equal(window32(s, 0, 2 * NTBS_ENTRY + 0x800), ONES);
	assert_int_equal(next_fault(s, 0, SIO_VNTB_FAULT_READ, 2 * NTBS_ENTRY + 0x800),
			 SIO_VNTB_REASON_RANGE);
	assert_int_equal(
		next_fault(s, 1, SIO_VNTB_FAULT_READ | SIO_VNTB_FAULT_IN, NTBS_RAM + 0x1800),
		SIO_VNTB_REASON_RANGE);
	/* The range is taken back. */
	ntbs_set(s, 1, SIO_VNTB_RANGE(9), 0);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_RANGE(9)), 0);
	window_set32(s, 0, 2 * NTBS_ENTRY + 0x7fc, 0xdead);
	assert_int_equal(ram32(s, 1, 0x17fc), 0xcafe);
	assert_int_equal(next_fault(s, 0, 0, 2 * NTBS_ENTRY + 0x7fc), SIO_VNTB_REASON_RANGE);
	ntbs_free(s);
}

static void what_is_refused(void **state)
{
	struct ntbs *s = ntbs_new(3, false);
	uint64_t start;
	uint16_t command = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
	/* No entry; one that is no peer's; the end of one. */
	assert_int_equal(window32(s, 0, 0), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_ENTRY);
	ntbs_lead(s, 0, 0, 2, NTBS_RAM, 0);
	assert_int_equal(window32(s, 0, 0), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_ENTRY);
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, NTBS_RAM_BYTES, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_RAM, 0);
	ntbs_lead(s, 0, 1, 0, NTBS_RAM + NTBS_ENTRY, 0);
	assert_int_equal(window32(s, 0, NTBS_ENTRY - 2), ONES);
	assert_int_equal(next_fault(s, 0, 1, NTBS_ENTRY - 2), SIO_VNTB_REASON_ENTRY);
	/* A range of another peer, rights. */
	ntbs_lead(s, 2, 0, 1, NTBS_RAM, 0);
	assert_int_equal(window32(s, 2, 0), ONES);
	assert_int_equal(next_fault(s, 2, 1, 0), SIO_VNTB_REASON_RANGE);
	assert_int_equal(next_fault(s, 1, 3, NTBS_RAM), SIO_VNTB_REASON_RANGE);
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, NTBS_RAM_BYTES, SIO_VNTB_RANGE_READ);
	window_set32(s, 0, 0, 1);
	assert_int_equal(next_fault(s, 0, 0, 0), SIO_VNTB_REASON_RIGHT);
	assert_int_equal(next_fault(s, 1, SIO_VNTB_FAULT_IN, NTBS_RAM), SIO_VNTB_REASON_RIGHT);
	assert_int_equal(window32(s, 0, 0), 0);
	/* Another start. */
	start = ntbs_get64(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_START);
	ntbs_set64(s, 0, SIO_VNTB_LUT(0) + SIO_VNTB_LUT_START, start);
	assert_int_equal(window32(s, 0, 0), 0);
	ntbs_set(s, 1, SIO_VNTB_RESET, 1);
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, NTBS_RAM_BYTES, BOTH);
	assert_int_equal(window32(s, 0, 0), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_START);
	ntbs_set64(s, 0, SIO_VNTB_LUT(0) + SIO_VNTB_LUT_START, start + 1);
	assert_int_equal(window32(s, 0, 0), 0);
	/* A peer that is no bus master. */
	ntbs_write(s, 1, EMU_VFIO_CONFIG, PCI_COMMAND, &command, sizeof(command));
	assert_int_equal(window32(s, 0, 0), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_PEER);
	/* A link that is down, a peer that is off. */
	emu_ntb_link(s->ntb, 4, 0, false);
	assert_int_equal(window32(s, 0, 0), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_LINK);
	emu_ntb_link(s->ntb, 4, 0, true);
	ntbs_disconnect(s, 1);
	assert_int_equal(window32(s, 0, 0), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_LINK);
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_ERRORS), 2);
	ntbs_free(s);
}

/* The exporter's row says where the window leads. */
static void the_exporter_may_lead_the_window(void **state)
{
	struct ntbs *s = two();

	(void)state;
	ntbs_grant(s, 1, 5, 0, NTBS_RAM + 0x2000, 0x100, BOTH);
	ntbs_lead(s, 0, 0, 0, 5ull << 48 | 0x80, SIO_VNTB_LUT_RANGE);
	window_set32(s, 0, 0x7c, 42);
	assert_int_equal(ram32(s, 1, 0x20fc), 42);
	window_set32(s, 0, 0x80, 43); /* behind its end */
	assert_int_equal(next_fault(s, 0, 0, 0x80), SIO_VNTB_REASON_RANGE);
	ntbs_grant(s, 1, 5, 0, NTBS_RAM + 0x3000, 0x100, BOTH);
	window_set32(s, 0, 0x7c, 44);
	assert_int_equal(ram32(s, 1, 0x30fc), 44);
	ntbs_lead(s, 0, 0, 0, 0xffffull << 48, SIO_VNTB_LUT_RANGE); /* no such row */
	assert_int_equal(window32(s, 0, 0), ONES);
	/* An offset that would grow into the next row. */
	ntbs_grant(s, 1, 6, 0, NTBS_RAM, 0x100, BOTH);
	ntbs_lead(s, 0, 0, 0, (6ull << 48) - 8, SIO_VNTB_LUT_RANGE);
	assert_int_equal(window32(s, 0, 8), ONES);
	ntbs_free(s);
}

/* ---- what a peer's machine does itself ---- */

static void lead_to_device(struct ntbs *s, unsigned from, unsigned to)
{
	ntbs_grant(s, to, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, from, 0, 0, NTBS_DEVICE, 0);
}

static uint32_t reply32(const struct ntbs_machine *m)
{
	uint32_t value;

	assert_int_equal(m->reply_len, sizeof(struct emu_vfio_access) + sizeof(value));
	memcpy(&value, m->reply + sizeof(struct emu_vfio_access), sizeof(value));
	return value;
}

static void registers_of_devices(void **state)
{
	struct ntbs *s = two();
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
	ntbs_answer(s, 1, 2, -EFAULT, NULL);
	assert_int_equal(reply32(&s->machine[0]), ONES);
	assert_int_equal(next_fault(s, 0, 1, 0x14), SIO_VNTB_REASON_PEER);
	assert_int_equal(next_fault(s, 1, 3, NTBS_DEVICE + 0x14), SIO_VNTB_REASON_PEER);
	window_set32(s, 0, 0x10, 99);
	ntbs_answer(s, 1, 3, -EFAULT, NULL);
	assert_int_equal(next_fault(s, 0, 0, 0x10), SIO_VNTB_REASON_PEER);
	ntbs_free(s);
}

static void who_does_not_answer_holds_nobody_for_long(void **state)
{
	struct ntbs *s = two();
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

static void many_under_way_are_refused(void **state)
{
	struct ntbs *s = ntbs_new(3, false);
	uint32_t got = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
	ntbs_grant(s, 1, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_grant(s, 1, 1, 1, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_grant(s, 2, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_DEVICE, 0);
	ntbs_lead(s, 0, 1, 1, NTBS_DEVICE, 0);
	ntbs_lead(s, 2, 0, 1, NTBS_DEVICE, 0);
	for (unsigned i = 0; i < EMU_NTB_UNDER_WAY; i++)
		window_set32(s, 0, 0, i);
	no_fault(s);
	window_set32(s, 0, 0, 1);
	assert_int_equal(next_fault(s, 0, 0, 0), SIO_VNTB_REASON_LIMIT);
	assert_true(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4)); /* at once */
	assert_int_equal(got, ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_LIMIT);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_UNDER_WAY);
	/* Another machine, and another peer, are not concerned. */
	window_set32(s, 2, 0, 1);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_UNDER_WAY + 1);
	window_set32(s, 0, NTBS_ENTRY, 1);
	assert_int_equal(s->machine[2].n_asks, 1);
	ntbs_answer(s, 1, 3, 0, NULL);
	window_set32(s, 0, 0, 1);
	assert_int_equal(s->machine[1].n_asks, EMU_NTB_UNDER_WAY + 2);
	no_fault(s);
	ntbs_free(s);
}

/* Each waits for the other: the second one gets what it read there last. */
static void two_that_wait_for_each_other(void **state)
{
	struct ntbs *s = two();
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
	struct ntbs *s = ntbs_new(3, false);
	uint32_t got = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
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
		struct ntbs *s = two();
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

static void interrupt_messages(void **state)
{
	struct ntbs *s = two();
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

static void faults_are_queued(void **state)
{
	struct ntbs *s = two();
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
		struct ntbs *s = two();
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
			ntbs_tell(&s->machine[0], EMU_VFIO_RESET, 0, NULL, 0, -1, 0);
		else
			ntbs_write(s, 0, EMU_VFIO_CONFIG, 0x80 + PCI_EXP_DEVCTL, &flr, sizeof(flr));
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
		assert_true(ntbs_read(s, 0, EMU_VFIO_CONFIG, PCI_COMMAND, &command, 2));
		assert_int_equal(command, way == 0 ? PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER : 0);
		assert_true(peer_state(s, 1) & SIO_VNTB_PEER_UP);
		ntbs_free(s);
	}
}

static void mapped_machines_say_where_memory_is(void **state)
{
	struct ntbs *s = ntbs_new(3, true);
	const uint32_t value = 0x600d;
	uint32_t got = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
	assert_int_equal(emu_ntb_pool_size(&s->topo), 6u << 20);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_CAPABILITIES), SIO_VNTB_CAP_MAPPED);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PIECES), 2);
	assert_int_equal(ntbs_get(s, 1, SIO_VNTB_PIECE(1) + SIO_VNTB_PIECE_ROW), 1);
	assert_true(ntbs_get64(s, 1, SIO_VNTB_PIECE(1) + SIO_VNTB_PIECE_BUS) == 0);
	assert_true(ntbs_get64(s, 1, SIO_VNTB_PIECE(1) + SIO_VNTB_PIECE_SIZE) == 2u << 20);
	assert_true(ntbs_get64(s, 1, SIO_VNTB_PIECE(1) + SIO_VNTB_PIECE_OFFSET) == 4u << 20);
	assert_true(ntbs_get64(s, 1, SIO_VNTB_PIECE(0) + SIO_VNTB_PIECE_OFFSET) == 0);
	/* Whoever does not map it may access it by messages; behind the file there is nothing. */
	ntbs_write(s, 1, SIO_VNTB_BAR_MAPPED, (4u << 20) + 8, &value, 4);
	memcpy(&got, s->pool + (4u << 20) + 8, 4);
	assert_int_equal(got, value);
	assert_true(ntbs_read(s, 0, SIO_VNTB_BAR_MAPPED, (4u << 20) + 8, &got, 4));
	assert_int_equal(got, value);
	assert_true(ntbs_read(s, 0, SIO_VNTB_BAR_MAPPED, 7u << 20, &got, 4));
	assert_int_equal(got, ONES);
	ntbs_free(s);
}

/* What one session keeps for later is limited, too: a machine with many peers is refused first. */
static void many_reads_are_refused(void **state)
{
	struct ntbs *s = ntbs_new(4, false);
	uint32_t got = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		ntbs_connect(s, i);
	for (unsigned i = 0; i < 3; i++) {
		ntbs_grant(s, i + 1, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
		ntbs_lead(s, 0, i, i, NTBS_DEVICE, 0);
	}
	for (unsigned i = 0; i < EMU_VFIO_LATE; i++)
		assert_false(ntbs_read(s, 0, NTBS_WINDOW, i % 3 * NTBS_ENTRY, &got, 4));
	assert_true(ntbs_read(s, 0, NTBS_WINDOW, 0, &got, 4));
	assert_int_equal(got, ONES);
	assert_int_equal(next_fault(s, 0, 1, 0), SIO_VNTB_REASON_LIMIT);
	s->now += EMU_NTB_PATIENCE_NS;
	s->machine[0].n_replies = 0;
	emu_ntb_expire(s->ntb);
	assert_int_equal(s->machine[0].n_replies, EMU_VFIO_LATE);
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
	struct sio_topology topo = {.n_machines = 3, .host = host, .machine = host};
	const struct emu_ntb_pool pool = {.fd = -1};
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
	assert_int_equal(emu_ntb_new(&topo, &pool, &ops, NULL, &ntb, NULL), 0);
	assert_int_equal(emu_ntb_count(ntb), 6);
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
	assert_int_equal(emu_ntb_new(&topo, &pool, &ops, NULL, &ntb, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 128 adapters"));
	topo.n_machines = 33;
	assert_int_equal(emu_ntb_new(&topo, &pool, &ops, NULL, &ntb, &err), 0);
	emu_ntb_free(ntb);
}

/* ---- against a model that looks at each byte ---- */

#define GRANTS 12u
struct model {
	struct {
		bool valid;
		uint64_t base, size;
		uint32_t rights;
		unsigned row;
	} grant[GRANTS];
	struct {
		bool valid;
		unsigned row;
		uint64_t address;
	} entry[NTBS_ENTRIES];
};

/* May machine 0 do this at row 0, machine 1? *to: where in its memory. */
static bool model_allows(const struct model *m, uint64_t offset, size_t len, bool write,
			 uint64_t *to)
{
	uint64_t first = offset / NTBS_ENTRY, last = (offset + len - 1) / NTBS_ENTRY;

	if (first != last || !m->entry[first].valid || m->entry[first].row != 0)
		return false;
	*to = m->entry[first].address + offset % NTBS_ENTRY;
	for (unsigned i = 0; i < GRANTS; i++) {
		bool all =
			m->grant[i].valid && m->grant[i].row == 0 &&
			m->grant[i].rights & (write ? SIO_VNTB_RANGE_WRITE : SIO_VNTB_RANGE_READ);

		for (size_t k = 0; all && k < len; k++) {
			uint64_t at = *to + k;

			all = at >= m->grant[i].base && at - m->grant[i].base < m->grant[i].size;
		}
		if (all)
			return true;
	}
	return false;
}

static void change(struct ntbs *s, struct model *m)
{
	unsigned i = (unsigned)prng_below(GRANTS), e = (unsigned)prng_below(NTBS_ENTRIES);
	uint64_t base = NTBS_RAM + prng_below(NTBS_RAM_BYTES), size = prng_below(2 * NTBS_ENTRY);
	uint32_t rights = (uint32_t)(prng_below(4) * SIO_VNTB_RANGE_READ);

	/* What lies behind the memory is a device's, which another test is about. */
	if (size > NTBS_RAM + NTBS_RAM_BYTES - base)
		size = NTBS_RAM + NTBS_RAM_BYTES - base;

	if (prng_chance(50)) {
		m->grant[i].valid = prng_chance(80);
		m->grant[i].base = base;
		m->grant[i].size = size;
		m->grant[i].rights = rights;
		m->grant[i].row = prng_chance(90) ? 0 : 1;
		ntbs_grant(s, 1, i, m->grant[i].row, base, size, rights);
		if (!m->grant[i].valid)
			ntbs_set(s, 1, SIO_VNTB_RANGE(i), 0);
	} else {
		m->entry[e].valid = prng_chance(90);
		m->entry[e].row = prng_chance(90) ? 0 : 1;
		m->entry[e].address = base - prng_below(NTBS_ENTRY);
		ntbs_lead(s, 0, e, m->entry[e].row, m->entry[e].address, 0);
		if (!m->entry[e].valid)
			ntbs_set(s, 0, SIO_VNTB_LUT(e), 0);
	}
}

static unsigned try_one(struct ntbs *s, const struct model *m, uint8_t *expected)
{
	static const size_t lens[] = {1, 2, 4, 8, 3, 32};
	size_t len = lens[prng_below(6)];
	uint64_t offset = prng_below((uint64_t)NTBS_ENTRY * NTBS_ENTRIES - len), to = 0;
	uint8_t data[32], ones[32];
	bool write = prng_chance(50), allowed = model_allows(m, offset, len, write, &to);

	memset(ones, 0xff, sizeof(ones));
	for (size_t k = 0; k < len; k++)
		data[k] = (uint8_t)prng_below(255); /* not all ones */
	if (write) {
		ntbs_write(s, 0, NTBS_WINDOW, offset, data, len);
		if (allowed)
			memcpy(expected + (to - NTBS_RAM), data, len);
	} else {
		assert_true(ntbs_read(s, 0, NTBS_WINDOW, offset, data, len));
		assert_memory_equal(data, allowed ? expected + (to - NTBS_RAM) : ones, len);
	}
	assert_int_equal(ntbs_get(s, 0, SIO_VNTB_FAULT_COUNT), allowed ? 0 : 1);
	ntbs_set(s, 0, SIO_VNTB_FAULT_COUNT, 1);
	while (ntbs_get(s, 1, SIO_VNTB_FAULT_COUNT))
		ntbs_set(s, 1, SIO_VNTB_FAULT_COUNT, 1);
	return allowed;
}

static void nothing_that_was_not_granted_is_reached(void **state)
{
	struct ntbs *s = ntbs_new(3, false);
	uint8_t *expected = malloc(NTBS_RAM_BYTES);
	struct model m = {0};
	unsigned n = 0, reached = 0;

	(void)state;
	assert_non_null(expected);
	for (unsigned i = 0; i < 3; i++)
		ntbs_connect(s, i);
	for (size_t i = 0; i < NTBS_RAM_BYTES; i++)
		expected[i] = s->machine[1].ram[i] = (uint8_t)prng();
	for (; n < 40 * rounds; n++) {
		if (prng_chance(20))
			change(s, &m);
		reached += try_one(s, &m, expected);
		if (n % 64 == 0)
			assert_memory_equal(s->machine[1].ram, expected, NTBS_RAM_BYTES);
	}
	assert_memory_equal(s->machine[1].ram, expected, NTBS_RAM_BYTES);
	/* Both happened. */
	assert_in_range(reached, n / 50, n - n / 50);
	assert_int_equal(s->machine[1].n_asks, 0);
	for (size_t i = 0; i < NTBS_RAM_BYTES; i++)
		assert_int_equal(s->machine[0].ram[i] | s->machine[2].ram[i], 0);
	free(expected);
	ntbs_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(accesses_are_whole_and_aligned),
		cmocka_unit_test(peers_come_and_go),
		cmocka_unit_test(doorbells),
		cmocka_unit_test(messages),
		cmocka_unit_test(scratchpads),
		cmocka_unit_test(the_window_leads_to_memory),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(the_exporter_may_lead_the_window),
		cmocka_unit_test(registers_of_devices),
		cmocka_unit_test(who_does_not_answer_holds_nobody_for_long),
		cmocka_unit_test(many_under_way_are_refused),
		cmocka_unit_test(many_reads_are_refused),
		cmocka_unit_test(rows_are_in_the_order_of_the_topology),
		cmocka_unit_test(two_that_wait_for_each_other),
		cmocka_unit_test(three_that_wait_in_a_circle),
		cmocka_unit_test(ends_in_the_middle_of_a_read),
		cmocka_unit_test(interrupt_messages),
		cmocka_unit_test(faults_are_queued),
		cmocka_unit_test(resets),
		cmocka_unit_test(mapped_machines_say_where_memory_is),
		cmocka_unit_test(nothing_that_was_not_granted_is_reached),
	};

	rounds = prng_start(5, 200);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
