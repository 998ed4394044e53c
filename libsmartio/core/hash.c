/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "core/hash.h"

static size_t index_of(uint64_t key, size_t n_buckets)
{
	/* The upper half of a product depends on all bits of the key. */
	return (size_t)(key * 0x9e3779b97f4a7c15ULL >> 32) & (n_buckets - 1);
}

void sio_hash_init(struct sio_hash *h)
{
	*h = (struct sio_hash){.n_buckets = SIO_HASH_FEW};
	h->bucket = h->few;
}

void sio_hash_done(struct sio_hash *h)
{
	if (h->bucket != h->few)
		free(h->bucket);
	sio_hash_init(h);
}

static void append(struct sio_hash_node **bucket, size_t n_buckets, struct sio_hash_node *node)
{
	struct sio_hash_node **at = &bucket[index_of(node->key, n_buckets)];

	while (*at)
		at = &(*at)->next;
	node->next = NULL;
	*at = node;
}

/* Twice as many buckets, if there is memory. */
static void grow(struct sio_hash *h)
{
	size_t n_buckets = 2 * h->n_buckets;
	struct sio_hash_node **bucket = calloc(n_buckets, sizeof(struct sio_hash_node *)), *next;

	if (!bucket)
		return;
	for (size_t i = 0; i < h->n_buckets; i++) {
		for (struct sio_hash_node *n = h->bucket[i]; n; n = next) {
			next = n->next;
			append(bucket, n_buckets, n);
		}
	}
	if (h->bucket != h->few)
		free(h->bucket);
	h->bucket = bucket;
	h->n_buckets = n_buckets;
}

void sio_hash_add(struct sio_hash *h, struct sio_hash_node *node, uint64_t key)
{
	if (h->n >= h->n_buckets)
		grow(h);
	node->key = key;
	append(h->bucket, h->n_buckets, node);
	h->n++;
}

void sio_hash_remove(struct sio_hash *h, struct sio_hash_node *node)
{
	struct sio_hash_node **at = &h->bucket[index_of(node->key, h->n_buckets)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	h->n--;
}

static struct sio_hash_node *from_here(struct sio_hash_node *n, uint64_t key)
{
	while (n && n->key != key)
		n = n->next;
	return n;
}

struct sio_hash_node *sio_hash_find(const struct sio_hash *h, uint64_t key)
{
	return from_here(h->bucket[index_of(key, h->n_buckets)], key);
}

struct sio_hash_node *sio_hash_next(const struct sio_hash_node *node)
{
	return from_here(node->next, node->key);
}

uint64_t sio_hash_bytes(const void *bytes, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (const unsigned char *at = bytes; len > 0; len--)
		h = (h ^ *at++) * 0x100000001b3u;
	return h;
}
