/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/hash.h"
#include "fail_alloc.h"
#include "prng.h"

#define ITEMS 600u
#define KEYS 150u

struct item {
	struct sio_hash_node node;
	unsigned key;
	unsigned since; /* 0: not in the table; else ascending, as they were added */
};

/* What the table says of a key is what a look at every item says, in the order of adding. */
static void compare(const struct sio_hash *h, struct item *item, unsigned key, uint64_t spread)
{
	struct sio_hash_node *n = sio_hash_find(h, key * spread);
	unsigned last = 0, found = 0, right = 0;

	for (; n; n = sio_hash_next(n)) {
		const struct item *i = SIO_HASH_OF(n, struct item, node);

		assert_int_equal(i->key, key);
		assert_true(i->since > last);
		last = i->since;
		found++;
	}
	for (unsigned i = 0; i < ITEMS; i++)
		right += item[i].since && item[i].key == key;
	assert_int_equal(found, right);
}

static void agree(unsigned failing)
{
	static const uint64_t spreads[] = {1, 4096, 1ull << 32, 0x9e3779b97f4a7c15ULL};

	for (unsigned s = 0; s < sizeof(spreads) / sizeof(spreads[0]); s++) {
		struct item item[ITEMS] = {0};
		unsigned added = 0, in = 0;
		struct sio_hash h;

		sio_hash_init(&h);
		fail_alloc_at(failing);
		for (unsigned round = 0; round < 4000; round++) {
			struct item *i = &item[prng_below(ITEMS)];

			if (i->since && prng_chance(40)) {
				sio_hash_remove(&h, &i->node);
				i->since = 0;
				in--;
			} else if (!i->since) {
				i->key = (unsigned)prng_below(KEYS);
				i->since = ++added;
				sio_hash_add(&h, &i->node, i->key * spreads[s]);
				in++;
			}
			assert_int_equal(h.n, in);
			compare(&h, item, (unsigned)prng_below(KEYS), spreads[s]);
		}
		fail_alloc_at(0);
		/* As many buckets as objects: a look-up is short. */
		assert_true(failing ? h.n_buckets < 100 : h.n_buckets >= in);
		sio_hash_done(&h);
		assert_null(sio_hash_find(&h, 0));
	}
}

static void agrees_with_a_list(void **state)
{
	(void)state;
	prng_start(4, 1);
	agree(0);
}

static void without_memory_lists_get_longer(void **state)
{
	(void)state;
	prng_start(5, 1);
	agree(2);
}

/* The values that FNV-1a has for these: ids of devices are made of it, and stay the same. */
static void bytes_have_the_known_hash(void **state)
{
	(void)state;
	assert_true(sio_hash_bytes("", 0) == 0xcbf29ce484222325u);
	assert_true(sio_hash_bytes("a", 1) == 0xaf63dc4c8601ec8cu);
	assert_true(sio_hash_bytes("foobar", 6) == 0x85944171f73967e8u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list),
		cmocka_unit_test(without_memory_lists_get_longer),
		cmocka_unit_test(bytes_have_the_known_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
