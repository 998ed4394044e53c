/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "core/range.h"

int sio_range_init(struct sio_range *r, const char *name, uint64_t base, uint64_t size,
		   struct sio_err *reterr)
{
	uint64_t last;

	if (size == 0 || __builtin_add_overflow(base, size - 1, &last))
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " + %#" PRIx64 " is empty or past the last address",
				name, base, size);
	*r = (struct sio_range){.base = base, .size = size};
	sio_addrmap_init(&r->taken, name);
	return 0;
}

void sio_range_done(struct sio_range *r)
{
	sio_addrmap_done(&r->taken);
	r->used = 0;
}

static uint64_t last_address(const struct sio_range *r)
{
	return r->base + (r->size - 1);
}

static int take(struct sio_range *r, uint64_t addr, uint64_t len, struct sio_err *reterr)
{
	int rc =
		sio_addrmap_add(&r->taken, &(struct sio_region){.base = addr, .size = len}, reterr);

	if (rc == 0)
		r->used += len;
	return rc;
}

/* Lay @len bytes at a multiple of @align into the hole from @first to @last, both included. */
static bool fits(uint64_t first, uint64_t last, uint64_t len, uint64_t align, uint64_t *ret_addr)
{
	uint64_t addr;

	if (__builtin_add_overflow(first, align - 1, &addr))
		return false;
	addr &= ~(align - 1);
	if (addr > last || last - addr < len - 1)
		return false;
	*ret_addr = addr;
	return true;
}

/* The hole before the taken range @i (or the end), as far as @highest. False: there is none. */
static bool hole(const struct sio_range *r, size_t i, uint64_t highest, uint64_t *ret_first,
		 uint64_t *ret_last)
{
	uint64_t first = r->base, last = last_address(r);

	if (i > 0) {
		uint64_t before = sio_region_last(&r->taken.region[i - 1]);

		if (before == last)
			return false;
		first = before + 1;
	}
	if (i < r->taken.n) {
		if (r->taken.region[i].base == first)
			return false;
		last = r->taken.region[i].base - 1;
	}
	if (last > highest)
		last = highest;
	*ret_first = first;
	*ret_last = last;
	return first <= last;
}

int sio_range_alloc(struct sio_range *r, uint64_t len, uint64_t align, uint64_t highest,
		    uint64_t *ret_addr, struct sio_err *reterr)
{
	uint64_t addr, first, last;
	int rc;

	if (len == 0 || align == 0 || (align & (align - 1)))
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " bytes at a multiple of %#" PRIx64
				"; at least 1 at a power of 2 is right",
				r->taken.name, len, align);
	for (size_t i = 0; i <= r->taken.n; i++) {
		if (!hole(r, i, highest, &first, &last) || !fits(first, last, len, align, &addr))
			continue;
		rc = take(r, addr, len, reterr);
		if (rc == 0)
			*ret_addr = addr;
		return rc;
	}
	return sio_fail(reterr, -ENOSPC,
			"%s: no %" PRIu64 " bytes in a row at a multiple of %#" PRIx64
			" up to %#" PRIx64 ": %" PRIu64 " of %" PRIu64 " are free, %" PRIu64
			" in one piece",
			r->taken.name, len, align, highest, sio_range_free_bytes(r), r->size,
			sio_range_largest(r));
}

int sio_range_reserve(struct sio_range *r, uint64_t addr, uint64_t len, struct sio_err *reterr)
{
	if (len == 0 || addr < r->base || addr > last_address(r) ||
	    last_address(r) - addr < len - 1)
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " + %#" PRIx64 " does not lie in %#" PRIx64
				" + %#" PRIx64,
				r->taken.name, addr, len, r->base, r->size);
	return take(r, addr, len, reterr);
}

int sio_range_free(struct sio_range *r, uint64_t addr)
{
	const struct sio_region *found = sio_addrmap_find(&r->taken, addr);

	if (!found || found->base != addr)
		return -ENOENT;
	r->used -= found->size;
	return sio_addrmap_remove(&r->taken, addr);
}

const struct sio_region *sio_range_find(const struct sio_range *r, uint64_t addr)
{
	return sio_addrmap_find(&r->taken, addr);
}

uint64_t sio_range_free_bytes(const struct sio_range *r)
{
	return r->size - r->used;
}

uint64_t sio_range_largest(const struct sio_range *r)
{
	uint64_t largest = 0, first, last;

	for (size_t i = 0; i <= r->taken.n; i++) {
		if (hole(r, i, SIO_RANGE_ANYWHERE, &first, &last) && last - first + 1 > largest)
			largest = last - first + 1;
	}
	return largest;
}
