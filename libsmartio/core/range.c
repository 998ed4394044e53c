/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>

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

int sio_range_alloc(struct sio_range *r, uint64_t len, uint64_t align, uint64_t highest,
		    uint64_t *ret_addr, struct sio_err *reterr)
{
	uint64_t last = last_address(r), addr;
	int rc;

	if (len == 0 || align == 0 || (align & (align - 1)))
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " bytes at a multiple of %#" PRIx64
				"; at least 1 at a power of 2 is right",
				r->taken.name, len, align);
	if (sio_addrmap_first_gap(&r->taken, r->base, highest < last ? highest : last, len, align,
				  &addr) == 0) {
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

uint64_t sio_range_free_bytes(const struct sio_range *r)
{
	return r->size - r->used;
}

uint64_t sio_range_largest(const struct sio_range *r)
{
	return sio_addrmap_largest_gap(&r->taken, r->base, last_address(r));
}
