/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator of ranges of addresses inside [base, base + size): of a host's RAM, of IOVAs, of a
 * window. First fit; a freed range is merged with the free ones beside it. Pure logic; freeing
 * never fails for lack of memory.
 */
#ifndef CORE_RANGE_H
#define CORE_RANGE_H

#include <stdint.h>

#include "core/addrmap.h"
#include "core/err.h"

#define SIO_RANGE_ANYWHERE UINT64_MAX /* for @highest */

struct sio_range {
	uint64_t base, size;
	uint64_t used; /* bytes handed out */
	struct sio_addrmap taken;
};

/* Manage @size bytes from @base. Return: 0; -EINVAL: empty, or past the highest address. */
int sio_range_init(struct sio_range *r, const char *name, uint64_t base, uint64_t size,
		   struct sio_err *reterr);
void sio_range_done(struct sio_range *r);

/*
 * Allocates @len bytes at a multiple of @align (a power of 2), no byte of them above @highest.
 * Undo with sio_range_free().
 * Return: 0; -EINVAL: @len 0 or @align no power of 2; -ENOSPC: no room; -ENOMEM.
 */
int sio_range_alloc(struct sio_range *r, uint64_t len, uint64_t align, uint64_t highest,
		    uint64_t *ret_addr, struct sio_err *reterr);
/*
 * Allocates this very range. Return: 0; -EINVAL: empty or outside; -EEXIST: some of it is
 * allocated; -ENOMEM.
 */
int sio_range_reserve(struct sio_range *r, uint64_t addr, uint64_t len, struct sio_err *reterr);
/*
 * Frees the range that begins at @addr, as a whole. Return: 0; -ENOENT: no allocated range begins
 * there.
 */
int sio_range_free(struct sio_range *r, uint64_t addr);
/* Free bytes, in all and in the largest free range. */
uint64_t sio_range_free_bytes(const struct sio_range *r);
uint64_t sio_range_largest(const struct sio_range *r);

#endif
