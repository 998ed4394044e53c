/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/pcie.h"
#include "prng.h"

#define WORDS (4096 / 4)

static const struct sio_pcie usual = {256, 512, 64};

struct request {
	unsigned first, end; /* words in its page; end: one past the last */
};

/* Requests of an access, laid word by word: a full one, or a new page, begins the next. */
static unsigned lay_requests(uint64_t addr, uint64_t len, uint32_t limit, struct request *list)
{
	uint64_t first = addr / 4, last = (addr + len - 1) / 4;
	unsigned n = 0, words = 0;

	for (uint64_t w = first; w <= last; w++) {
		if (w == first || w % WORDS == 0 || words == limit / 4) {
			list[n++] = (struct request){.first = (unsigned)(w % WORDS)};
			words = 0;
		}
		words++;
		list[n - 1].end = (unsigned)(w % WORDS) + 1;
	}
	return n;
}

/*
 * Fewest packets that carry the words of @r when each has at most @payload bytes and may end where
 * @unit divides the address, or at the end: every way is tried.
 */
static unsigned fewest(struct request r, uint32_t payload, uint32_t unit)
{
	static unsigned need[WORDS + 1];

	need[r.first] = 0;
	for (unsigned end = r.first + 1; end <= r.end; end++) {
		need[end] = WORDS + 1;
		if (end != r.end && end * 4 % unit)
			continue;
		for (unsigned begin = r.first; begin < end; begin++) {
			if ((end - begin) * 4 <= payload && need[begin] + 1 < need[end])
				need[end] = need[begin] + 1;
		}
	}
	return need[r.end];
}

static void check(const struct sio_pcie *p, uint64_t addr, uint64_t len)
{
	static struct request list[WORDS];
	struct sio_pcie_count c = {1, 1, 1, 1, 1}, want = c;
	unsigned n;

	n = lay_requests(addr, len, 4096, list);
	for (unsigned i = 0; i < n; i++)
		want.write_tlps += fewest(list[i], p->max_payload, 4);
	want.write_bytes += len;
	n = lay_requests(addr, len, p->max_read_request, list);
	want.read_requests += n;
	for (unsigned i = 0; i < n; i++)
		want.completions += fewest(list[i], p->max_payload, p->read_completion_boundary);
	want.read_bytes += len;

	sio_pcie_write(p, addr, len, &c);
	sio_pcie_read(p, addr, len, &c);
	if (memcmp(&c, &want, sizeof(c)) != 0)
		fail_msg("payload %u request %u boundary %u, %#" PRIx64 " + %" PRIu64 ": %" PRIu64
			 " writes, %" PRIu64 " reads, %" PRIu64 " completions; right: %" PRIu64
			 ", %" PRIu64 ", %" PRIu64,
			 p->max_payload, p->max_read_request, p->read_completion_boundary, addr,
			 len, c.write_tlps - 1, c.read_requests - 1, c.completions - 1,
			 want.write_tlps - 1, want.read_requests - 1, want.completions - 1);
}

static void agrees_with_the_best_of_all_ways(void **state)
{
	unsigned rounds = prng_start(5, 200);

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct sio_pcie p = {.max_payload = 128u << prng_below(4),
				     .max_read_request = 128u << prng_below(6),
				     .read_completion_boundary = 64u << prng_below(2)};

		assert_true(sio_pcie_valid(&p));
		check(&p, prng_below(1 << 20), 1 + prng_below(prng_chance(80) ? 700 : 13000));
	}
}

static void every_start_in_a_packet(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 70; at++) {
		for (uint64_t len = 1; len < 70; len++)
			check(&usual, 4096 - 32 + at, len);
	}
	/* A word more than fits, by bytes that do. */
	for (uint64_t at = 0; at < 8; at++) {
		for (uint64_t len = 246; len < 262; len++) {
			check(&usual, at, len);
			check(&usual, at, 256 + len);
		}
	}
}

static void what_a_drive_does_for_4_kib(void **state)
{
	struct sio_pcie_count c = {0};

	(void)state;
	sio_pcie_read(&usual, 0x10040, 64, &c); /* the command */
	assert_int_equal(c.read_requests, 1);
	assert_int_equal(c.completions, 1);
	assert_int_equal(c.read_bytes, 64);
	sio_pcie_write(&usual, 0x20000, 4096, &c); /* the data */
	assert_int_equal(c.write_tlps, 16);
	sio_pcie_write(&usual, 0x30010, 16, &c); /* the completion entry */
	assert_int_equal(c.write_tlps, 17);
	assert_int_equal(c.write_bytes, 4112);
	c = (struct sio_pcie_count){0};
	sio_pcie_read(&usual, 0x20000, 4096, &c); /* the data of a write */
	assert_int_equal(c.read_requests, 8);
	assert_int_equal(c.completions, 16);
}

static void ends_of_the_address_space(void **state)
{
	struct sio_pcie_count c = {0}, none = {0};

	(void)state;
	sio_pcie_write(&usual, UINT64_MAX, 0, &c);
	sio_pcie_read(&usual, 0, 0, &c);
	assert_memory_equal(&c, &none, sizeof(c));
	sio_pcie_write(&usual, UINT64_MAX - 255, 256, &c);
	assert_int_equal(c.write_tlps, 1);
	sio_pcie_read(&usual, 0, UINT64_MAX - 4095, &c);
	assert_int_equal(c.read_requests, (UINT64_MAX - 4095) / 512);
	assert_int_equal(c.completions, (UINT64_MAX - 4095) / 256);
}

static void knows_which_values_pcie_has(void **state)
{
	static const struct sio_pcie wrong[] = {{64, 512, 64},	 {256, 64, 64},	 {8192, 512, 64},
						{256, 8192, 64}, {384, 512, 64}, {256, 512, 32},
						{256, 512, 96},	 {256, 512, 256}};

	(void)state;
	assert_true(sio_pcie_valid(&usual));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(sio_pcie_valid(&wrong[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_best_of_all_ways),
		cmocka_unit_test(every_start_in_a_packet),
		cmocka_unit_test(what_a_drive_does_for_4_kib),
		cmocka_unit_test(ends_of_the_address_space),
		cmocka_unit_test(knows_which_values_pcie_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
