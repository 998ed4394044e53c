/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address space: which region of which object is at which address. A host's physical map is one
 * (RAM, BAR pages, apertures); core/iommu.h and core/range.h are built on it. Regions never
 * overlap. Pure logic; adding allocates, looking up does not. Each call takes time logarithmic in
 * the number of regions.
 */
#ifndef CORE_ADDRMAP_H
#define CORE_ADDRMAP_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/types.h"

/* Addresses base .. base + (size - 1); size is at least 1. The last address may be the highest. */
struct sio_region {
	uint64_t base, size;
	uint32_t kind;	 /* the owner's: what @object is */
	uint32_t access; /* the owner's: who may do what */
	void *object;	 /* the owner's: what lies there */
	uint64_t offset; /* in @object, of the region's first byte */
};

struct sio_addrmap_node;

struct sio_addrmap {
	char name[SIO_NAME_LEN];       /* for texts */
	size_t n;		       /* regions */
	struct sio_addrmap_node *root; /* a search tree; pointers to regions hold until theirs go */
};

void sio_addrmap_init(struct sio_addrmap *m, const char *name);
void sio_addrmap_done(struct sio_addrmap *m);

/*
 * Adds a region. Return: 0; -EINVAL: empty or past the highest address; -EEXIST: overlaps another;
 * -ENOMEM.
 */
int sio_addrmap_add(struct sio_addrmap *m, const struct sio_region *region, struct sio_err *reterr);
/* Removes the region that begins at @base. Never allocates. Return: 0; -ENOENT. */
int sio_addrmap_remove(struct sio_addrmap *m, uint64_t base);

/* The region that holds @addr; NULL: none. */
const struct sio_region *sio_addrmap_find(const struct sio_addrmap *m, uint64_t addr);
/* The lowest region that shares an address with @size bytes (at least 1) from @base; NULL: none. */
const struct sio_region *sio_addrmap_overlap(const struct sio_addrmap *m, uint64_t base,
					     uint64_t size);

/*
 * Finds the lowest multiple of @align (a power of 2), from @lowest to @highest, both included, with
 * @len bytes (at least 1) that belong to no region. Every region lies between the two, or above
 * @highest.
 * Return: 0; -ENOSPC.
 */
int sio_addrmap_first_gap(const struct sio_addrmap *m, uint64_t lowest, uint64_t highest,
			  uint64_t len, uint64_t align, uint64_t *ret_addr);
/*
 * The most consecutive bytes that belong to no region from @lowest to @highest, between which all
 * regions lie.
 */
uint64_t sio_addrmap_largest_gap(const struct sio_addrmap *m, uint64_t lowest, uint64_t highest);

static inline uint64_t sio_region_last(const struct sio_region *r)
{
	return r->base + (r->size - 1);
}

#endif
