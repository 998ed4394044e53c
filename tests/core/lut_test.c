/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/lut.h"
#include "fail_alloc.h"
#include "prng.h"
#include "smartio/uapi.h"

#define AT(bytes)                                                                                  \
	(struct sio_window_at)                                                                     \
	{                                                                                          \
		bytes                                                                              \
	}
#define PAGE 0x1000u
#define ENTRIES 12
#define MAPPINGS 40

static struct sio_lut_target at(uint32_t node, uint64_t addr)
{
	return (struct sio_lut_target){.bus = {.node = node, .addr = addr}};
}

static int small_table(void **state)
{
	static struct sio_lut lut;

	*state = &lut;
	return sio_lut_init(&lut, "adapter 0", 4 * PAGE, 4, NULL);
}

static int drop_table(void **state)
{
	sio_lut_done(*state);
	return 0;
}

static void overlapping_mappings_share_entries(void **state)
{
	struct sio_lut *lut = *state;
	struct sio_lut_target one = at(8, 0x10800), two = at(8, 0x10900);
	struct sio_window_at a, b;

	assert_int_equal(sio_lut_map(lut, &one, 0x1000, &a, NULL), 0);
	assert_int_equal(sio_lut_map(lut, &two, 1, &b, NULL), 0);
	assert_int_equal(b.offset - a.offset, 0x100);
	assert_int_equal(lut->n_used, 2);
	assert_int_equal(sio_lut_unmap(lut, a, 0x1000, NULL), 0);
	assert_int_equal(lut->n_used, 1);
	assert_int_equal(sio_lut_unmap(lut, b, 1, NULL), 0);
	assert_int_equal(lut->n_used, 0);
}

static void nothing_is_shared_across_adapters_and_boots(void **state)
{
	struct sio_lut *lut = *state;
	struct sio_lut_target t = at(8, 0x10000);
	struct sio_window_at a, b, c;

	assert_int_equal(sio_lut_map(lut, &t, 1, &a, NULL), 0);
	t.generation = 2;
	assert_int_equal(sio_lut_map(lut, &t, 1, &b, NULL), 0);
	t.adapter = 1;
	assert_int_equal(sio_lut_map(lut, &t, 1, &c, NULL), 0);
	assert_int_equal(lut->n_used, 3);
	assert_true(a.offset != b.offset && a.offset != c.offset && b.offset != c.offset);
}

static void a_run_continues_what_is_mapped(void **state)
{
	struct sio_lut *lut = *state;
	struct sio_lut_target first = at(8, 0), second = at(8, PAGE), both = at(8, 0);
	struct sio_window_at at;

	assert_int_equal(sio_lut_map(lut, &second, 1, &at, NULL), 0);
	assert_int_equal(at.offset, 0);
	assert_int_equal(sio_lut_map(lut, &first, PAGE, &at, NULL), 0);
	assert_int_equal(at.offset, PAGE);
	/* Entry 0 has the wrong one of the two; 1 and 2 need but one new. */
	assert_int_equal(sio_lut_map(lut, &both, 2 * PAGE, &at, NULL), 0);
	assert_int_equal(at.offset, PAGE);
	assert_int_equal(lut->n_used, 3);
}

static void says_what_is_in_use(void **state)
{
	struct sio_lut *lut = *state;
	struct sio_lut_target t = at(8, 0), u = at(12, 0), end = at(8, UINT64_MAX);
	struct sio_err err = {0};
	struct sio_window_at at = {99};

	assert_int_equal(sio_lut_map(lut, &t, 3 * PAGE, &at, &err), 0);
	at.offset = 99;
	assert_int_equal(sio_lut_map(lut, &u, PAGE + 1, &at, &err), -ENOSPC);
	assert_string_equal(err.text, "adapter 0: 3 of 4 entries in use (node 8: 3); node 12 "
				      "needs 2 in a row");
	assert_int_equal(err.reason, SIO_OUT_OF_LUT_ENTRIES);
	assert_int_equal(sio_lut_map(lut, &u, UINT64_MAX, &at, &err), -ENOSPC);
	assert_int_equal(err.reason, SIO_OUT_OF_WINDOW); /* larger than it ever is */
	assert_int_equal(sio_lut_map(lut, &u, 0, &at, &err), -EINVAL);
	assert_int_equal(sio_lut_map(lut, &end, 2, &at, &err), -EINVAL);
	assert_int_equal(at.offset, 99);
	assert_int_equal(sio_lut_unmap(lut, AT(3 * PAGE), 1, &err), -ENOENT);
	assert_int_equal(sio_lut_unmap(lut, AT(2 * PAGE), 2 * PAGE, &err), -ENOENT);
	assert_int_equal(sio_lut_unmap(lut, AT(4 * PAGE), 1, &err), -EINVAL);
	assert_int_equal(sio_lut_unmap(lut, AT(0), 0, &err), -EINVAL);
	assert_int_equal(sio_lut_unmap(lut, AT(PAGE), UINT64_MAX, &err), -EINVAL);
	assert_int_equal(lut->n_used, 3);
	assert_int_equal(sio_lut_map(lut, &end, 1, &at, &err), 0);
	assert_int_equal(at.offset, 3 * PAGE + PAGE - 1);
}

static void translates_what_is_mapped_alone(void **state)
{
	struct sio_lut *lut = *state;
	struct sio_lut_target t = at(8, 0x10800), found = at(0, 0);
	struct sio_window_at at;
	uint64_t length = 0;

	assert_int_equal(sio_lut_translate(lut, AT(0), &found, &length), -ENOENT);
	assert_int_equal(sio_lut_map(lut, &t, 0x1000, &at, NULL), 0);
	assert_int_equal(sio_lut_translate(lut, at, &found, &length), 0);
	assert_int_equal(found.bus.addr, 0x10800);
	assert_int_equal(length, 0x800);
	assert_int_equal(sio_lut_translate(lut, AT(at.offset + 0x900), &found, NULL), 0);
	assert_int_equal(found.bus.addr, 0x11100);
	assert_int_equal(sio_lut_translate(lut, AT(4 * PAGE - 1), &found, &length), -ENOENT);
	assert_int_equal(sio_lut_translate(lut, AT(4 * PAGE), &found, &length), -ENOENT);
	assert_int_equal(sio_lut_translate(lut, AT(UINT64_MAX), &found, &length), -ENOENT);
	/* A smaller window ends where its entries end, whatever lies behind. */
	lut->n_entries = (unsigned)(at.offset / PAGE) + 1;
	assert_int_equal(sio_lut_translate(lut, AT(at.offset + PAGE), &found, &length), -ENOENT);
	lut->n_entries = 4;
}

static void refuses_windows_that_hardware_cannot_have(void **state)
{
	struct sio_lut lut;

	(void)state;
	assert_int_equal(sio_lut_init(&lut, "x", 3 * PAGE, 2, NULL), -EINVAL);
	assert_int_equal(sio_lut_init(&lut, "x", PAGE, 0, NULL), -EINVAL);
	assert_int_equal(sio_lut_init(&lut, "x", 0, 4, NULL), -EINVAL);
	assert_int_equal(sio_lut_init(&lut, "x", 4 * PAGE + 2, 4, NULL), -EINVAL);
	fail_alloc_at(1);
	assert_int_equal(sio_lut_init(&lut, "x", 4 * PAGE, 4, NULL), -ENOMEM);
	fail_alloc_at(0);
}

struct mapping {
	struct sio_lut_target target;
	uint64_t len;
	struct sio_window_at at;
};

static uint64_t first_page(const struct mapping *m)
{
	return m->target.bus.addr / PAGE;
}

static unsigned page_count(const struct mapping *m)
{
	return (unsigned)((m->target.bus.addr + m->len - 1) / PAGE - first_page(m)) + 1;
}

/* What entry @i must hold by the list: node << 32 | page number; 0: free. */
static uint64_t held(const struct mapping *list, unsigned n, unsigned i)
{
	for (unsigned k = 0; k < n; k++) {
		uint64_t first = list[k].at.offset / PAGE;

		if (i >= first && i < first + page_count(&list[k]))
			return (uint64_t)list[k].target.bus.node << 32 |
			       (first_page(&list[k]) + (i - first));
	}
	return 0;
}

/* Try every run: fewest new entries, then the lowest. Return: offset; UINT64_MAX: none. */
static uint64_t best_place(const struct mapping *list, unsigned n, const struct mapping *m)
{
	unsigned pages = page_count(m), best = UINT_MAX;
	uint64_t place = UINT64_MAX;

	for (unsigned i = 0; i + pages <= ENTRIES; i++) {
		unsigned cost = 0;
		bool fits = true;

		for (unsigned k = 0; k < pages; k++) {
			uint64_t has = held(list, n, i + k);
			uint64_t want = (uint64_t)m->target.bus.node << 32 | (first_page(m) + k);

			cost += has == 0;
			fits = fits && (has == 0 || has == want);
		}
		if (fits && cost < best) {
			best = cost;
			place = (uint64_t)i * PAGE + m->target.bus.addr % PAGE;
		}
	}
	return place;
}

static void compare(const struct sio_lut *lut, const struct mapping *list, unsigned n)
{
	unsigned used = 0, run = 0, longest = 0;

	for (unsigned i = 0; i < ENTRIES; i++) {
		uint64_t want = held(list, n, i), in = prng_below(PAGE), left;
		struct sio_lut_target t;
		int rc = sio_lut_translate(lut, AT((uint64_t)i * PAGE + in), &t, &left);

		assert_int_equal(rc, want ? 0 : -ENOENT);
		run = want ? 0 : run + 1;
		longest = run > longest ? run : longest;
		if (!want)
			continue;
		used++;
		assert_int_equal(t.bus.node, want >> 32);
		assert_int_equal(t.bus.addr, (want & UINT32_MAX) * PAGE + in);
		assert_int_equal(left, PAGE - in);
	}
	assert_int_equal(lut->n_used, used);
	assert_int_equal(sio_lut_longest_run(lut), longest);
}

static void agrees_with_a_list_of_mappings(void **state)
{
	unsigned rounds = prng_start(4, 4000), n = 0;
	struct mapping list[MAPPINGS];
	struct sio_lut lut;

	(void)state;
	assert_int_equal(sio_lut_init(&lut, "adapter 0", ENTRIES * PAGE, ENTRIES, NULL), 0);
	while (rounds-- > 0) {
		struct mapping m = {
			.target = at(4 + 4 * (uint32_t)prng_below(2), PAGE + prng_below(6 * PAGE)),
			.len = 1 + prng_below(3 * PAGE)};

		if (n < MAPPINGS && prng_chance(55)) {
			uint64_t want = best_place(list, n, &m);
			int rc = sio_lut_map(&lut, &m.target, m.len, &m.at, NULL);

			assert_int_equal(rc, want == UINT64_MAX ? -ENOSPC : 0);
			if (rc == 0) {
				assert_int_equal(m.at.offset, want);
				list[n++] = m;
			}
		} else if (n > 0) {
			unsigned k = (unsigned)prng_below(n);

			m = list[k];
			list[k] = list[--n];
			assert_int_equal(sio_lut_unmap(&lut, m.at, m.len, NULL), 0);
		}
		compare(&lut, list, n);
	}
	while (n > 0) {
		n--;
		assert_int_equal(sio_lut_unmap(&lut, list[n].at, list[n].len, NULL), 0);
	}
	assert_int_equal(lut.n_used, 0);
	sio_lut_done(&lut);
}

int main(void)
{
#define WITH_TABLE(f) cmocka_unit_test_setup_teardown(f, small_table, drop_table)
	const struct CMUnitTest tests[] = {
		WITH_TABLE(overlapping_mappings_share_entries),
		WITH_TABLE(nothing_is_shared_across_adapters_and_boots),
		WITH_TABLE(a_run_continues_what_is_mapped),
		WITH_TABLE(says_what_is_in_use),
		WITH_TABLE(translates_what_is_mapped_alone),
		cmocka_unit_test(refuses_windows_that_hardware_cannot_have),
		cmocka_unit_test(agrees_with_a_list_of_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
