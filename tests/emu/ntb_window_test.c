/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: where the window leads, and that nothing else is reached through it. */
#include <errno.h>
#include <stdlib.h>

#include <linux/pci_regs.h>

#include "../core/prng.h"
#include "ntb_checks.h"

static unsigned rounds;

static void the_window_leads_to_memory(void **state)
{
	struct ntbs *s = connected(2);
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
	struct ntbs *s = connected(3);
	uint64_t start;
	uint16_t command = 0;

	(void)state;
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
	ntbs_write(s, 1, SIO_VFIO_CONFIG, PCI_COMMAND, &command, sizeof(command));
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
	struct ntbs *s = connected(2);

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

/* ---- what another function of the machine does ---- */

#define BAR 0x80000000u /* where the machine has put the window */
#define WINDOW_BYTES ((uint64_t)NTBS_ENTRY * NTBS_ENTRIES)

static struct ntbs *with_a_window(void)
{
	struct ntbs *s = connected(2);
	const uint64_t bar = BAR;

	ntbs_write(s, 0, SIO_VFIO_CONFIG, PCI_BASE_ADDRESS_0 + 4 * NTBS_WINDOW, &bar, sizeof(bar));
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, NTBS_RAM_BYTES, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_RAM + 2 * NTBS_ENTRY, 0);
	ntbs_lead(s, 0, 1, 0, NTBS_RAM, 0);
	return s;
}

static void another_function_reaches_the_peers_memory(void **state)
{
	static const size_t lens[] = {1, 4, 8, 16, 4096, 8000};
	struct ntbs *s = with_a_window();
	uint8_t data[8000], back[8000];

	(void)state;
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t at = 96, first = NTBS_ENTRY - at;

		for (size_t k = 0; k < lens[i]; k++)
			data[k] = (uint8_t)prng();
		assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR + at, NULL, data, lens[i]), 0);
		/* Each entry has led its part to another place. */
		first = first < lens[i] ? first : lens[i];
		assert_memory_equal(s->machine[1].ram + 2 * NTBS_ENTRY + at, data, first);
		assert_memory_equal(s->machine[1].ram, data + first, lens[i] - first);
		memset(back, 0, sizeof(back));
		assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR + at, back, NULL, lens[i]), 0);
		assert_memory_equal(back, data, lens[i]);
	}
	no_fault(s);
	ntbs_free(s);
}

static void where_another_function_finds_no_window(void **state)
{
	struct ntbs *s = with_a_window();
	uint16_t command = PCI_COMMAND_MASTER;
	uint8_t data[8] = {0};

	(void)state;
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR - 1, data, NULL, 4), -ENXIO);
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR + WINDOW_BYTES - 4, data, NULL, 8), -ENXIO);
	assert_int_equal(emu_ntb_reach(s->ntb, 4, UINT64_MAX, data, NULL, 8), -ENXIO);
	/* That of another machine is none; nor one whose memory is off, or whose machine is. */
	assert_int_equal(emu_ntb_reach(s->ntb, 8, BAR, data, NULL, 8), -ENXIO);
	ntbs_write(s, 0, SIO_VFIO_CONFIG, PCI_COMMAND, &command, sizeof(command));
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR, data, NULL, 8), -ENXIO);
	command |= PCI_COMMAND_MEMORY;
	ntbs_write(s, 0, SIO_VFIO_CONFIG, PCI_COMMAND, &command, sizeof(command));
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR, data, NULL, 8), 0);
	no_fault(s);
	ntbs_disconnect(s, 0);
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR, data, NULL, 8), -ENXIO);
	ntbs_free(s);
}

static void what_another_function_is_refused(void **state)
{
	struct ntbs *s = with_a_window();
	uint8_t data[2 * NTBS_ENTRY] = {7};

	(void)state;
	/* What lies behind an entry's end is the next one's: here there is none. */
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR + 2 * NTBS_ENTRY - 8, data, NULL, 16),
			 -EFAULT);
	assert_int_equal(next_fault(s, 0, SIO_VNTB_FAULT_READ, 2 * NTBS_ENTRY),
			 SIO_VNTB_REASON_ENTRY);
	ntbs_grant(s, 1, 0, 0, NTBS_RAM, NTBS_RAM_BYTES, SIO_VNTB_RANGE_READ);
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR, NULL, data, 8), -EFAULT);
	assert_int_equal(next_fault(s, 0, 0, 0), SIO_VNTB_REASON_RIGHT);
	assert_int_equal(next_fault(s, 1, SIO_VNTB_FAULT_IN, NTBS_RAM + 2 * NTBS_ENTRY),
			 SIO_VNTB_REASON_RIGHT);
	assert_int_equal(s->machine[1].ram[2 * NTBS_ENTRY], 0);
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR, data, NULL, 8), 0);
	/* A register of a device: a store is on its way, for a load nobody could wait. */
	ntbs_grant(s, 1, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, 0, 0, 0, NTBS_DEVICE, 0);
	data[0] = 7;
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR + 8, NULL, data, 4), 0);
	assert_int_equal(s->machine[1].n_asks, 1);
	assert_int_equal(s->machine[1].ask[0].address, NTBS_DEVICE + 8);
	assert_int_equal(s->machine[1].ask[0].data[0], 7);
	ntbs_answer(s, 1, 0, 0, NULL);
	assert_int_equal(emu_ntb_reach(s->ntb, 4, BAR + 8, data, NULL, 4), -EFAULT);
	assert_int_equal(next_fault(s, 0, SIO_VNTB_FAULT_READ, 8), SIO_VNTB_REASON_PEER);
	assert_int_equal(s->machine[1].n_asks, 1);
	ntbs_free(s);
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
	struct ntbs *s = connected(3);
	uint8_t *expected = malloc(NTBS_RAM_BYTES);
	struct model m = {0};
	unsigned n = 0, reached = 0;

	(void)state;
	assert_non_null(expected);
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
		cmocka_unit_test(the_window_leads_to_memory),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(the_exporter_may_lead_the_window),
		cmocka_unit_test(another_function_reaches_the_peers_memory),
		cmocka_unit_test(where_another_function_finds_no_window),
		cmocka_unit_test(what_another_function_is_refused),
		cmocka_unit_test(nothing_that_was_not_granted_is_reached),
	};

	rounds = prng_start(5, 200);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
