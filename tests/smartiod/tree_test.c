/* SPDX-License-Identifier: BSD-2-Clause */
/* The ordered table against the obvious answer: an array of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "smartiod/base/tree.h"

#define KEYS 512

static uint64_t obvious_after(const bool *have, uint64_t key)
{
	for (uint64_t k = key + 1; k <= KEYS; k++)
		if (have[k])
			return k;
	return 0;
}

static uint64_t obvious_gap(const bool *have, uint64_t key)
{
	while (key <= KEYS && have[key])
		key++;
	return key;
}

static unsigned check_sizes(const struct smartiod_tree_node *n)
{
	unsigned size;

	if (!n)
		return 0;
	size = 1 + check_sizes(n->left) + check_sizes(n->right);
	assert_int_equal(n->size, size);
	return size;
}

static void check(const struct smartiod_tree *t, const bool *have, unsigned count)
{
	assert_int_equal(t->count, count);
	assert_int_equal(check_sizes(t->root), count);
	for (uint64_t k = 0; k <= KEYS; k++) {
		const struct smartiod_tree_node *n = smartiod_tree_after(t, k);

		assert_int_equal(n ? n->key : 0, obvious_after(have, k));
		assert_int_equal(smartiod_tree_find(t, k) != NULL, have[k]);
		if (k > 0)
			assert_int_equal(smartiod_tree_gap(t, k), obvious_gap(have, k));
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

/* As programs use AUTO_ID: each takes the first free from a number on, some let theirs go. */
static void gaps_fill_from_the_start(void **state)
{
	static struct smartiod_tree_node node[KEYS + 1];
	bool have[KEYS + 1] = {false};
	struct smartiod_tree t = {.root = NULL};
	uint64_t x = 88172645463325252ULL;
	unsigned count = 0;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t k;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		k = x % 5 * 90 + 1;
		k = x >> 60 < 9 ? smartiod_tree_gap(&t, k) : k + (x >> 20) % 80;
		if (k > KEYS)
			continue;
		if (have[k])
			smartiod_tree_remove(&t, &node[k]);
		else
			smartiod_tree_add(&t, &node[k], k);
		have[k] = !have[k];
		count += have[k] ? 1 : -1;
		if (i % 30 == 0)
			check(&t, have, count);
	}
	assert_in_range(count, KEYS / 4, KEYS);
}

static void a_gap_behind_the_last_key(void **state)
{
	struct smartiod_tree_node node[2];
	struct smartiod_tree t = {.root = NULL};

	(void)state;
	assert_true(smartiod_tree_gap(&t, UINT64_MAX) == UINT64_MAX);
	smartiod_tree_add(&t, &node[0], UINT64_MAX);
	assert_true(smartiod_tree_gap(&t, UINT64_MAX) == 0);
	assert_true(smartiod_tree_gap(&t, UINT64_MAX - 1) == UINT64_MAX - 1);
	smartiod_tree_add(&t, &node[1], UINT64_MAX - 1);
	assert_true(smartiod_tree_gap(&t, UINT64_MAX - 1) == 0);
	assert_true(smartiod_tree_gap(&t, 1) == 1);
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
		cmocka_unit_test(gaps_fill_from_the_start),
		cmocka_unit_test(a_gap_behind_the_last_key),
		cmocka_unit_test(stays_shallow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
