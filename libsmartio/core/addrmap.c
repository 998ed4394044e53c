/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A treap, its priorities a mix of the addresses: balanced for any order of adding. Each node knows
 * the addresses that its subtree spans and the largest gap between two regions of it, so that the
 * search for a free place passes over what is full.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/addrmap.h"

struct sio_addrmap_node {
	struct sio_region region;
	struct sio_addrmap_node *left, *right;
	uint64_t first, last; /* addresses of the regions from here down */
	uint64_t gap;	      /* the most bytes in a row between two of them */
};

typedef struct sio_addrmap_node node;

void sio_addrmap_init(struct sio_addrmap *m, const char *name)
{
	*m = (struct sio_addrmap){0};
	snprintf(m->name, sizeof(m->name), "%s", name);
}

static void free_tree(node *at)
{
	while (at) {
		node *right = at->right;

		free_tree(at->left);
		free(at);
		at = right;
	}
}

void sio_addrmap_done(struct sio_addrmap *m)
{
	free_tree(m->root);
	m->root = NULL;
	m->n = 0;
}

/* ---- the tree ---- */

static uint64_t priority(const node *at)
{
	uint64_t key = at->region.base;

	key ^= key >> 31;
	key *= 0x7fb5d329728ea185ULL;
	key ^= key >> 27;
	key *= 0x81dadef4bc2dd44dULL;
	return key ^ (key >> 33);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What @at says of its subtree, from what its children say. */
static void sum_up(node *at)
{
	at->first = at->region.base;
	at->last = sio_region_last(&at->region);
	at->gap = 0;
	if (at->left) {
		at->first = at->left->first;
		at->gap = larger(at->left->gap, at->region.base - at->left->last - 1);
	}
	if (at->right) {
		at->gap = larger(at->gap, at->right->gap);
		at->gap = larger(at->gap, at->right->first - at->last - 1);
		at->last = at->right->last;
	}
}

/* Cut the tree @at in two: what begins below @addr, and the rest. */
static void split(node *at, uint64_t addr, node **below, node **above)
{
	if (!at) {
		*below = NULL;
		*above = NULL;
		return;
	}
	if (at->region.base < addr) {
		*below = at;
		split(at->right, addr, &at->right, above);
	} else {
		*above = at;
		split(at->left, addr, below, &at->left);
	}
	sum_up(at);
}

static node *join(node *below, node *above)
{
	if (!below || !above)
		return below ? below : above;
	if (priority(below) > priority(above)) {
		below->right = join(below->right, above);
		sum_up(below);
		return below;
	}
	above->left = join(below, above->left);
	sum_up(above);
	return above;
}

static node *insert(node *at, node *fresh)
{
	if (!at || priority(fresh) > priority(at)) {
		split(at, fresh->region.base, &fresh->left, &fresh->right);
		at = fresh;
	} else if (fresh->region.base < at->region.base) {
		at->left = insert(at->left, fresh);
	} else {
		at->right = insert(at->right, fresh);
	}
	sum_up(at);
	return at;
}

/* The tree @at without what begins at @base, which is in it. */
static node *take_out(node *at, uint64_t base)
{
	if (base == at->region.base) {
		node *rest = join(at->left, at->right);

		free(at);
		return rest;
	}
	if (base < at->region.base)
		at->left = take_out(at->left, base);
	else
		at->right = take_out(at->right, base);
	sum_up(at);
	return at;
}

/* ---- looking up ---- */

/* The last region that begins at or below @addr; NULL: none. */
static const struct sio_region *last_below(const struct sio_addrmap *m, uint64_t addr)
{
	const struct sio_region *best = NULL;

	for (const node *at = m->root; at;) {
		if (at->region.base <= addr) {
			best = &at->region;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return best;
}

/* The first that begins above it; NULL: none. */
static const struct sio_region *first_above(const struct sio_addrmap *m, uint64_t addr)
{
	const struct sio_region *best = NULL;

	for (const node *at = m->root; at;) {
		if (at->region.base > addr) {
			best = &at->region;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return best;
}

const struct sio_region *sio_addrmap_find(const struct sio_addrmap *m, uint64_t addr)
{
	const struct sio_region *r = last_below(m, addr);

	return r && addr - r->base < r->size ? r : NULL;
}

const struct sio_region *sio_addrmap_overlap(const struct sio_addrmap *m, uint64_t base,
					     uint64_t size)
{
	const struct sio_region *r = sio_addrmap_find(m, base);

	if (r)
		return r;
	r = first_above(m, base);
	return r && r->base - base < size ? r : NULL;
}

/* ---- gaps ---- */

struct search {
	uint64_t from; /* the first address behind what was passed */
	bool past;     /* which is behind the last one of all, or of those that are allowed */
	uint64_t highest, len, align, found;
};

/* Do @len bytes at a multiple of @align fit from s->from to @last, both included? */
static bool fits(struct search *s, uint64_t last)
{
	uint64_t addr;

	if (last > s->highest)
		last = s->highest;
	if (s->past || __builtin_add_overflow(s->from, s->align - 1, &addr))
		return false;
	addr &= ~(s->align - 1);
	if (addr > last || last - addr < s->len - 1)
		return false;
	s->found = addr;
	return true;
}

static void pass(struct search *s, uint64_t last)
{
	s->past = last >= s->highest;
	s->from = last + 1;
}

/* The gap before the first region of @at, and those between its regions; then it is passed. */
static bool search(const node *at, struct search *s)
{
	if (!at || s->past)
		return false;
	if (larger(at->gap, at->first - s->from) < s->len) {
		pass(s, at->last);
		return false;
	}
	if (search(at->left, s))
		return true;
	if (at->region.base > s->from && fits(s, at->region.base - 1))
		return true;
	pass(s, sio_region_last(&at->region));
	return search(at->right, s);
}

int sio_addrmap_first_gap(const struct sio_addrmap *m, uint64_t lowest, uint64_t highest,
			  uint64_t len, uint64_t align, uint64_t *ret_addr)
{
	struct search s = {.from = lowest, .highest = highest, .len = len, .align = align};

	if (!search(m->root, &s) && !fits(&s, highest))
		return -ENOSPC;
	*ret_addr = s.found;
	return 0;
}

uint64_t sio_addrmap_largest_gap(const struct sio_addrmap *m, uint64_t lowest, uint64_t highest)
{
	uint64_t ends;

	if (!m->root)
		return highest - lowest + 1;
	ends = larger(m->root->first - lowest, highest - m->root->last);
	return larger(m->root->gap, ends);
}

/* ---- changes ---- */

int sio_addrmap_add(struct sio_addrmap *m, const struct sio_region *region, struct sio_err *reterr)
{
	const struct sio_region *other;
	uint64_t last;
	node *fresh;

	if (region->size == 0 || __builtin_add_overflow(region->base, region->size - 1, &last))
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " + %#" PRIx64 " is empty or past the last address",
				m->name, region->base, region->size);
	other = sio_addrmap_overlap(m, region->base, region->size);
	if (other)
		return sio_fail(reterr, -EEXIST,
				"%s: %#" PRIx64 " + %#" PRIx64 " overlaps %#" PRIx64 " + %#" PRIx64,
				m->name, region->base, region->size, other->base, other->size);
	fresh = malloc(sizeof(*fresh));
	if (!fresh)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for region %zu: " SIO_MORE_MEMORY,
				m->name, m->n + 1);
	fresh->region = *region;
	m->root = insert(m->root, fresh);
	m->n++;
	return 0;
}

int sio_addrmap_remove(struct sio_addrmap *m, uint64_t base)
{
	const struct sio_region *r = last_below(m, base);

	if (!r || r->base != base)
		return -ENOENT;
	m->root = take_out(m->root, base);
	m->n--;
	return 0;
}
