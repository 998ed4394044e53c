/* SPDX-License-Identifier: BSD-2-Clause */
/* The ordered table against the obvious answer: an array of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "smartiod/tree.h"

#define KEYS 512

static uint64_t obvious_after(const bool *have, uint64_t key)
{
	for (uint64_t k = key + 1; k <= KEYS; k++)
		if (have[k])
			return k;
	return 0;
}

static void check(const struct smartiod_tree *t, const bool *have, unsigned count)
{
	assert_int_equal(t->count, count);
	for (uint64_t k = 0; k <= KEYS; k++) {
		const struct smartiod_tree_node *n = smartiod_tree_after(t, k);

		assert_int_equal(n ? n->key : 0, obvious_after(have, k));
		assert_int_equal(smartiod_tree_find(t, k) != NULL, have[k]);
	}
}

static void behaves_like_an_array(void **state)
{
	static struct smartiod_tree_node node[KEYS + 1];
	bool have[KEYS + 1] = {false};
	struct smartiod_tree t = {.root = NULL};
	uint64_t x = 88172645463325252ULL;
	unsigned count = 0;

	(void)state;
	for (unsigned i = 0; i < 4000; i++) {
		uint64_t k;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		k = x % KEYS + 1;
		if (have[k])
			smartiod_tree_remove(&t, &node[k]);
		else
			smartiod_tree_add(&t, &node[k], k);
		have[k] = !have[k];
		count += have[k] ? 1 : -1;
		if (i % 50 == 0)
			check(&t, have, count);
	}
	check(&t, have, count);
}

static unsigned depth(const struct smartiod_tree_node *n)
{
	unsigned l, r;

	if (!n)
		return 0;
	l = depth(n->left);
	r = depth(n->right);
	return 1 + (l > r ? l : r);
}

/* Keys of this daemon only grow: the order that makes a plain tree a list. */
static void stays_shallow(void **state)
{
	static struct smartiod_tree_node node[8192];
	struct smartiod_tree t = {.root = NULL};

	(void)state;
	for (uint64_t k = 1; k < 8192; k++)
		smartiod_tree_add(&t, &node[k], k);
	assert_in_range(depth(t.root), 13, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behaves_like_an_array),
		cmocka_unit_test(stays_shallow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
