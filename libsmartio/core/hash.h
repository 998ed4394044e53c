/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of objects by a 64-bit key, which several may share. The node lies inside the
 * object, so adding never fails: without memory for more buckets the existing lists get longer.
 * Also a hash of bytes. Pure logic.
 */
#ifndef CORE_HASH_H
#define CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SIO_HASH_FEW 16

struct sio_hash_node {
	struct sio_hash_node *next;
	uint64_t key;
};

struct sio_hash {
	struct sio_hash_node **bucket; /* @few or allocated; so the table stays where it is */
	size_t n_buckets, n;	       /* n_buckets: a power of 2 */
	struct sio_hash_node *few[SIO_HASH_FEW];
};

void sio_hash_init(struct sio_hash *h);
/* Frees the table; the objects belong to the caller. */
void sio_hash_done(struct sio_hash *h);
/* Adds @node behind those that have the same key. */
void sio_hash_add(struct sio_hash *h, struct sio_hash_node *node, uint64_t key);
/* @node is in it. */
void sio_hash_remove(struct sio_hash *h, struct sio_hash_node *node);
/* The first node with this key, and the next one with the key of @node; NULL: none. */
struct sio_hash_node *sio_hash_find(const struct sio_hash *h, uint64_t key);
struct sio_hash_node *sio_hash_next(const struct sio_hash_node *node);

/* The object of type @type whose member @member is @node (may be NULL). */
#define SIO_HASH_OF(node, type, member) ((type *)sio_hash_container((node), offsetof(type, member)))
static inline void *sio_hash_container(void *node, size_t offset)
{
	return node ? (char *)node - offset : NULL;
}

/* FNV-1a of @len bytes: detects accidental differences; no protection against deliberate ones. */
uint64_t sio_hash_bytes(const void *bytes, size_t len);

#endif
