/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordered table of objects by a 64-bit key. The node is a member of the object, so adding never
 * fails. The order is by key, so a walk is the same in every run, and it goes on safely after
 * objects were added or removed in its middle: smartiod_tree_after(tree, last key).
 */
#ifndef SMARTIOD_TREE_H
#define SMARTIOD_TREE_H

#include <stddef.h>
#include <stdint.h>

struct smartiod_tree_node {
	struct smartiod_tree_node *left, *right;
	uint64_t key;
	uint32_t size; /* nodes from here down */
};

struct smartiod_tree {
	struct smartiod_tree_node *root;
	unsigned count;
};

/* @node becomes @key; there is none yet. */
void smartiod_tree_add(struct smartiod_tree *t, struct smartiod_tree_node *node, uint64_t key);
void smartiod_tree_remove(struct smartiod_tree *t, struct smartiod_tree_node *node);
struct smartiod_tree_node *smartiod_tree_find(const struct smartiod_tree *t, uint64_t key);
/* The one with the smallest key greater than @key; NULL: none. Keys are never 0. */
struct smartiod_tree_node *smartiod_tree_after(const struct smartiod_tree *t, uint64_t key);
/* The smallest key from @key on that no node has; 0: all have one. */
uint64_t smartiod_tree_gap(const struct smartiod_tree *t, uint64_t key);

/* The object of type @type whose member @member is @node (may be NULL). */
#define SMARTIOD_OF(node, type, member) ((type *)smartiod_container((node), offsetof(type, member)))
static inline void *smartiod_container(void *node, size_t offset)
{
	return node ? (char *)node - offset : NULL;
}

#endif
