/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/range.h"
#include "fail_alloc.h"
#include "prng.h"

#define SPAN 160

/* The obvious allocator: a number per address, 0 for free. */
struct naive {
	uint64_t base;
	unsigned owner[SPAN], next;
};

static bool is_free(const struct naive *n, unsigned at, unsigned len)
{
	for (unsigned i = at; i < at + len; i++) {
		if (i >= SPAN || n->owner[i])
			return false;
	}
	return true;
}

static void take(struct naive *n, unsigned at, unsigned len)
{
	n->next++;
	for (unsigned i = at; i < at + len; i++)
		n->owner[i] = n->next;
}

/* The first place that will do; SPAN: none. */
static unsigned first_fit(const struct naive *n, unsigned len, uint64_t align, uint64_t highest)
{
	for (unsigned at = 0; at < SPAN; at++) {
		uint64_t addr = n->base + at;

		if (addr % align == 0 && is_free(n, at, len) && addr + (len - 1) <= highest)
			return at;
	}
	return SPAN;
}

static void try_alloc(struct sio_range *r, struct naive *n)
{
	unsigned len = 1 + (unsigned)prng_below(prng_chance(80) ? 12 : 80), want;
	uint64_t align = 1u << prng_below(6), addr = 12345;
	uint64_t highest = prng_chance(60) ? SIO_RANGE_ANYWHERE : n->base + prng_below(SPAN);
	int rc = sio_range_alloc(r, len, align, highest, &addr, NULL);

	want = first_fit(n, len, align, highest);
	if (want == SPAN) {
		assert_int_equal(rc, -ENOSPC);
		assert_int_equal(addr, 12345);
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(addr, n->base + want);
	take(n, want, len);
}

static void try_reserve(struct sio_range *r, struct naive *n)
{
	unsigned at = (unsigned)prng_below(SPAN), len = 1 + (unsigned)prng_below(20);
	int rc = sio_range_reserve(r, n->base + at, len, NULL);

	if (at + len > SPAN) {
		assert_int_equal(rc, -EINVAL);
	} else if (!is_free(n, at, len)) {
		assert_int_equal(rc, -EEXIST);
	} else {
		assert_int_equal(rc, 0);
		take(n, at, len);
	}
}

static void try_free(struct sio_range *r, struct naive *n)
{
	unsigned at = (unsigned)prng_below(SPAN), id = n->owner[at];
	bool begins = id && (at == 0 || n->owner[at - 1] != id);

	assert_int_equal(sio_range_free(r, n->base + at), begins ? 0 : -ENOENT);
	for (unsigned i = at; begins && i < SPAN; i++)
		n->owner[i] = n->owner[i] == id ? 0 : n->owner[i];
}

static void compare(const struct sio_range *r, const struct naive *n)
{
	unsigned used = 0, run = 0, largest = 0;

	for (unsigned i = 0; i < SPAN; i++) {
		used += n->owner[i] != 0;
		run = n->owner[i] ? 0 : run + 1;
		largest = run > largest ? run : largest;
	}
	assert_int_equal(r->used, used);
	assert_int_equal(sio_range_free_bytes(r), SPAN - used);
	assert_int_equal(sio_range_largest(r), largest);
}

static void agrees_with_a_list_of_addresses(void **state)
{
	static const uint64_t bases[] = {0, 0x10000003, UINT64_MAX - (SPAN - 1)};
	unsigned rounds = prng_start(2, 3000);

	(void)state;
	for (size_t b = 0; b < 3; b++) {
		struct naive n = {.base = bases[b]};
		struct sio_range r;

		assert_int_equal(sio_range_init(&r, "range", n.base, SPAN, NULL), 0);
		for (unsigned i = 0; i < rounds; i++) {
			if (prng_chance(35))
				try_alloc(&r, &n);
			else if (prng_chance(15))
				try_reserve(&r, &n);
			else
				try_free(&r, &n);
			compare(&r, &n);
		}
		sio_range_done(&r);
	}
}

static void says_what_is_free(void **state)
{
	struct sio_err err = {0};
	struct sio_range r;
	uint64_t addr;

	(void)state;
	assert_int_equal(sio_range_init(&r, "lender: RAM", 0x1000, 0x4000, &err), 0);
	assert_int_equal(sio_range_reserve(&r, 0x2000, 0x1000, &err), 0);
	assert_int_equal(sio_range_alloc(&r, 0x3000, 0x1000, SIO_RANGE_ANYWHERE, &addr, &err),
			 -ENOSPC);
	assert_string_equal(err.text,
			    "lender: RAM: no 12288 bytes in a row at a multiple of 0x1000 "
			    "up to 0xffffffffffffffff: 12288 of 16384 are free, 8192 in "
			    "one piece");
	assert_int_equal(sio_range_alloc(&r, 0, 1, SIO_RANGE_ANYWHERE, &addr, &err), -EINVAL);
	assert_int_equal(sio_range_alloc(&r, 1, 3, SIO_RANGE_ANYWHERE, &addr, &err), -EINVAL);
	assert_int_equal(sio_range_alloc(&r, 1, 0, SIO_RANGE_ANYWHERE, &addr, &err), -EINVAL);
	assert_int_equal(sio_range_alloc(&r, UINT64_MAX, 1u << 31, SIO_RANGE_ANYWHERE, &addr, &err),
			 -ENOSPC);
	assert_int_equal(sio_range_reserve(&r, 0x4fff, 2, &err), -EINVAL);
	assert_int_equal(sio_range_reserve(&r, 0xfff, 1, &err), -EINVAL);
	assert_int_equal(sio_range_reserve(&r, 0x5000, 1, &err), -EINVAL);
	assert_int_equal(sio_range_reserve(&r, 0x3000, 0, &err), -EINVAL);
	assert_int_equal(sio_range_reserve(&r, 0x3000, UINT64_MAX, &err), -EINVAL);
	sio_range_done(&r);
	assert_int_equal(sio_range_init(&r, "x", 1, UINT64_MAX, &err), 0);
	assert_int_equal(sio_range_largest(&r), UINT64_MAX);
	sio_range_done(&r);
	assert_int_equal(sio_range_init(&r, "x", 2, UINT64_MAX, &err), -EINVAL);
	assert_int_equal(sio_range_init(&r, "x", 2, 0, &err), -EINVAL);
}

static void failure_to_allocate_changes_nothing(void **state)
{
	struct sio_range r;
	uint64_t addr = 77;

	(void)state;
	assert_int_equal(sio_range_init(&r, "range", 0, 64, NULL), 0);
	fail_alloc_at(1);
	assert_int_equal(sio_range_alloc(&r, 4, 1, 63, &addr, NULL), -ENOMEM);
	assert_int_equal(sio_range_reserve(&r, 4, 1, NULL), -ENOMEM);
	assert_int_equal(fail_alloc_count(), 2);
	fail_alloc_at(0);
	assert_int_equal(addr, 77);
	assert_int_equal(r.used, 0);
	assert_int_equal(sio_range_alloc(&r, 4, 1, 63, &addr, NULL), 0);
	sio_range_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list_of_addresses),
		cmocka_unit_test(says_what_is_free),
		cmocka_unit_test(failure_to_allocate_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
