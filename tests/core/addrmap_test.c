/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/addrmap.h"
#include "fail_alloc.h"
#include "prng.h"

#define SPAN 96 /* addresses under test, the last of them the map's last or not */

/* The obvious map: which region (by number, from 1) each address belongs to. */
struct naive {
	uint64_t origin;
	unsigned owner[SPAN];
	struct sio_region region[SPAN + 1];
};

static void compare(const struct sio_addrmap *m, const struct naive *n, unsigned at)
{
	const struct sio_region *r = sio_addrmap_find(m, n->origin + at);

	if (n->owner[at])
		assert_memory_equal(r, &n->region[n->owner[at]], sizeof(*r));
	else
		assert_null(r);
}

static void compare_overlap(const struct sio_addrmap *m, const struct naive *n, unsigned at,
			    unsigned len)
{
	const struct sio_region *r = sio_addrmap_overlap(m, n->origin + at, len);
	unsigned i = at;

	while (i < at + len && i < SPAN && !n->owner[i])
		i++;
	if (i < at + len && i < SPAN)
		assert_memory_equal(r, &n->region[n->owner[i]], sizeof(*r));
	else
		assert_null(r);
}

static void change(struct sio_addrmap *m, struct naive *n)
{
	unsigned at = (unsigned)prng_below(SPAN), len = 1 + (unsigned)prng_below(12), free_id = 1;
	struct sio_region region = {.base = n->origin + at, .size = len};
	int rc;

	if (prng_chance(45)) {
		rc = sio_addrmap_remove(m, region.base);
		if (!n->owner[at] || n->region[n->owner[at]].base != region.base) {
			assert_int_equal(rc, -ENOENT);
			return;
		}
		assert_int_equal(rc, 0);
		for (unsigned i = 0, id = n->owner[at]; i < SPAN; i++)
			n->owner[i] = n->owner[i] == id ? 0 : n->owner[i];
		return;
	}
	for (unsigned i = 0; i < SPAN; i++)
		free_id = n->owner[i] >= free_id ? n->owner[i] + 1 : free_id;
	if (free_id > SPAN)
		return;
	region.kind = free_id;
	region.object = &n->region[free_id];
	region.offset = prng();
	rc = sio_addrmap_add(m, &region, NULL);
	if (at + len > SPAN && n->origin + at + (len - 1) < n->origin) {
		assert_int_equal(rc, -EINVAL);
		return;
	}
	if (at + len > SPAN) { /* legal, but past what the naive map can hold */
		if (rc == 0)
			assert_int_equal(sio_addrmap_remove(m, region.base), 0);
		return;
	}
	for (unsigned i = at; i < at + len; i++) {
		if (n->owner[i]) {
			assert_int_equal(rc, -EEXIST);
			return;
		}
	}
	assert_int_equal(rc, 0);
	n->region[free_id] = region;
	for (unsigned i = at; i < at + len; i++)
		n->owner[i] = free_id;
}

static void agrees_with_a_list_of_addresses(void **state)
{
	static const uint64_t origins[] = {0, 0x100000000, UINT64_MAX - (SPAN - 1)};
	unsigned rounds = prng_start(1, 1500);

	(void)state;
	for (size_t o = 0; o < 3; o++) {
		struct naive n = {.origin = origins[o]};
		struct sio_addrmap m;

		sio_addrmap_init(&m, "map");
		for (unsigned i = 0; i < rounds; i++) {
			change(&m, &n);
			compare(&m, &n, (unsigned)prng_below(SPAN));
			compare_overlap(&m, &n, (unsigned)prng_below(SPAN),
					1 + (unsigned)prng_below(20));
		}
		for (unsigned at = 0; at < SPAN; at++)
			compare(&m, &n, at);
		sio_addrmap_done(&m);
	}
}

static void says_what_overlaps(void **state)
{
	struct sio_err err = {0};
	struct sio_addrmap m;

	(void)state;
	sio_addrmap_init(&m, "host 4");
	assert_int_equal(
		sio_addrmap_add(&m, &(struct sio_region){.base = 0x1000, .size = 0x1000}, &err), 0);
	assert_int_equal(sio_addrmap_add(&m, &(struct sio_region){.base = 0x1fff, .size = 1}, &err),
			 -EEXIST);
	assert_string_equal(err.text, "host 4: 0x1fff + 0x1 overlaps 0x1000 + 0x1000");
	assert_int_equal(sio_addrmap_add(&m, &(struct sio_region){.base = 0x5000}, &err), -EINVAL);
	assert_int_equal(
		sio_addrmap_add(&m, &(struct sio_region){.base = UINT64_MAX, .size = 2}, &err),
		-EINVAL);
	assert_int_equal(
		sio_addrmap_add(&m, &(struct sio_region){.base = UINT64_MAX, .size = 1}, &err), 0);
	assert_non_null(sio_addrmap_find(&m, UINT64_MAX));
	sio_addrmap_done(&m);
}

static void failure_to_allocate_changes_nothing(void **state)
{
	struct sio_region r = {.size = 1};
	struct sio_addrmap m;
	unsigned failures = 0;

	(void)state;
	sio_addrmap_init(&m, "map");
	for (r.base = 0; r.base < 40; r.base++) {
		size_t n = m.n;
		int rc;

		fail_alloc_at(1);
		rc = sio_addrmap_add(&m, &r, NULL);
		if (fail_alloc_count()) {
			fail_alloc_at(0);
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(m.n, n);
			assert_null(sio_addrmap_find(&m, r.base));
			failures++;
			rc = sio_addrmap_add(&m, &r, NULL);
		}
		fail_alloc_at(0);
		assert_int_equal(rc, 0);
	}
	assert_true(failures >= 3);
	assert_int_equal(m.n, 40);
	sio_addrmap_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list_of_addresses),
		cmocka_unit_test(says_what_overlaps),
		cmocka_unit_test(failure_to_allocate_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
