/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address space: which region of which object lies where. A host's physical map is one (RAM,
 * BAR pages, apertures); core/iommu.h and core/range.h are built on it. Regions never overlap.
 * Pure logic; adding allocates, looking up does not. Each call takes the logarithm of their number.
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

/* Return: 0; -EINVAL: empty or past the highest address; -EEXIST: overlaps another; -ENOMEM. */
int sio_addrmap_add(struct sio_addrmap *m, const struct sio_region *region, struct sio_err *reterr);
/* Take out the region that begins at @base. Never allocates. Return: 0; -ENOENT. */
int sio_addrmap_remove(struct sio_addrmap *m, uint64_t base);

/* The region that holds @addr; NULL: none. */
const struct sio_region *sio_addrmap_find(const struct sio_addrmap *m, uint64_t addr);
/* The last region that begins at or below @addr, the first that begins above it; NULL: none. */
const struct sio_region *sio_addrmap_below(const struct sio_addrmap *m, uint64_t addr);
const struct sio_region *sio_addrmap_above(const struct sio_addrmap *m, uint64_t addr);
/* The region fewest bytes away from @addr, the lower one of two; NULL: the map is empty. */
const struct sio_region *sio_addrmap_nearest(const struct sio_addrmap *m, uint64_t addr);
/* The lowest region that shares an address with @size bytes (at least 1) from @base; NULL: none. */
const struct sio_region *sio_addrmap_overlap(const struct sio_addrmap *m, uint64_t base,
					     uint64_t size);

/*
 * The lowest multiple of @align (a power of 2) with @len bytes (at least 1) that no region has,
 * from
 * @lowest to @highest, both included. Every region lies between the two, or above @highest.
 * Return: 0; -ENOSPC.
 */
int sio_addrmap_first_gap(const struct sio_addrmap *m, uint64_t lowest, uint64_t highest,
			  uint64_t len, uint64_t align, uint64_t *ret_addr);
/* The most bytes in a row that no region has from @lowest to @highest, between which all lie. */
uint64_t sio_addrmap_largest_gap(const struct sio_addrmap *m, uint64_t lowest, uint64_t highest);

static inline uint64_t sio_region_last(const struct sio_region *r)
{
	return r->base + (r->size - 1);
}

#endif
