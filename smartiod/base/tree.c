/* SPDX-License-Identifier: BSD-2-Clause */
/* A treap whose priorities are a mix of the keys: balanced for any order of adding. */
#include "smartiod/base/tree.h"

static uint64_t priority(uint64_t key)
{
	key ^= key >> 31;
	key *= 0x7fb5d329728ea185ULL;
	key ^= key >> 27;
	key *= 0x81dadef4bc2dd44dULL;
	return key ^ (key >> 33);
}

static uint32_t size(const struct smartiod_tree_node *node)
{
	return node ? node->size : 0;
}

/* How many keys of the tree @at are below @key. */
static uint32_t count_below(const struct smartiod_tree_node *at, uint64_t key)
{
	uint32_t n = 0;

	while (at) {
		if (at->key < key) {
			n += size(at->left) + 1;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return n;
}

/* Cut the tree @at in two: keys below @key, of which there are @n_below, and keys above. */
static void split(struct smartiod_tree_node *at, uint64_t key, uint32_t n_below,
		  struct smartiod_tree_node **below, struct smartiod_tree_node **above)
{
	uint32_t n = size(at);

	while (at) {
		if (at->key < key) {
			at->size = n_below;
			n_below -= size(at->left) + 1;
			*below = at;
			below = &at->right;
			at = at->right;
		} else {
			at->size = n - n_below;
			*above = at;
			above = &at->left;
			at = at->left;
		}
		n = size(at);
	}
	*below = NULL;
	*above = NULL;
}

static struct smartiod_tree_node *join(struct smartiod_tree_node *a, struct smartiod_tree_node *b)
{
	struct smartiod_tree_node *root = NULL, **link = &root;

	while (a && b) {
		uint32_t both = a->size + b->size;

		if (priority(a->key) > priority(b->key)) {
			*link = a;
			link = &a->right;
			a->size = both;
			a = a->right;
		} else {
			*link = b;
			link = &b->left;
			b->size = both;
			b = b->left;
		}
	}
	*link = a ? a : b;
	return root;
}

void smartiod_tree_add(struct smartiod_tree *t, struct smartiod_tree_node *node, uint64_t key)
{
	struct smartiod_tree_node **link = &t->root;
	uint64_t prio = priority(key);

	while (*link && priority((*link)->key) >= prio) {
		(*link)->size++;
		link = key < (*link)->key ? &(*link)->left : &(*link)->right;
	}
	node->key = key;
	node->size = size(*link) + 1;
	split(*link, key, count_below(*link, key), &node->left, &node->right);
	*link = node;
	t->count++;
}

void smartiod_tree_remove(struct smartiod_tree *t, struct smartiod_tree_node *node)
{
	struct smartiod_tree_node **link = &t->root;

	while (*link != node) {
		(*link)->size--;
		link = node->key < (*link)->key ? &(*link)->left : &(*link)->right;
	}
	*link = join(node->left, node->right);
	node->left = NULL;
	node->right = NULL;
	t->count--;
}

struct smartiod_tree_node *smartiod_tree_find(const struct smartiod_tree *t, uint64_t key)
{
	struct smartiod_tree_node *at = t->root;

	while (at && at->key != key)
		at = key < at->key ? at->left : at->right;
	return at;
}

struct smartiod_tree_node *smartiod_tree_after(const struct smartiod_tree *t, uint64_t key)
{
	struct smartiod_tree_node *at = t->root, *best = NULL;

	while (at) {
		if (at->key > key) {
			best = at;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return best;
}

/*
 * Of n keys from @key on, the last of which is k, none is missing exactly if k is @key + n - 1; and
 * if none is missing up to one, then none is up to those before it.
 */
uint64_t smartiod_tree_gap(const struct smartiod_tree *t, uint64_t key)
{
	const struct smartiod_tree_node *at = t->root;
	uint64_t below = count_below(at, key), passed = 0, gap = key;

	while (at) {
		/* From @key to this one, if it is not below @key. */
		uint64_t n = passed + size(at->left) + 1 - below;

		if (at->key >= key && at->key - key >= n) {
			at = at->left;
			continue;
		}
		if (at->key >= key)
			gap = at->key + 1;
		passed += size(at->left) + 1;
		at = at->right;
	}
	return gap;
}
