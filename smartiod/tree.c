/* SPDX-License-Identifier: BSD-2-Clause */
/* A treap whose priorities are a mix of the keys: balanced for any order of adding. */
#include "smartiod/tree.h"

static uint64_t priority(uint64_t key)
{
	key ^= key >> 31;
	key *= 0x7fb5d329728ea185ULL;
	key ^= key >> 27;
	key *= 0x81dadef4bc2dd44dULL;
	return key ^ (key >> 33);
}

/* Cut the tree @at in two: keys below @key and keys above. */
static void split(struct smartiod_tree_node *at, uint64_t key, struct smartiod_tree_node **below,
		  struct smartiod_tree_node **above)
{
	while (at) {
		if (at->key < key) {
			*below = at;
			below = &at->right;
			at = at->right;
		} else {
			*above = at;
			above = &at->left;
			at = at->left;
		}
	}
	*below = NULL;
	*above = NULL;
}

static struct smartiod_tree_node *join(struct smartiod_tree_node *a, struct smartiod_tree_node *b)
{
	struct smartiod_tree_node *root = NULL, **link = &root;

	while (a && b) {
		if (priority(a->key) > priority(b->key)) {
			*link = a;
			link = &a->right;
			a = a->right;
		} else {
			*link = b;
			link = &b->left;
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

	while (*link && priority((*link)->key) >= prio)
		link = key < (*link)->key ? &(*link)->left : &(*link)->right;
	node->key = key;
	split(*link, key, &node->left, &node->right);
	*link = node;
	t->count++;
}

void smartiod_tree_remove(struct smartiod_tree *t, struct smartiod_tree_node *node)
{
	struct smartiod_tree_node **link = &t->root;

	while (*link != node)
		link = node->key < (*link)->key ? &(*link)->left : &(*link)->right;
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
