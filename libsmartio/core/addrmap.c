/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/addrmap.h"

#define FIRST_CAP 8

void sio_addrmap_init(struct sio_addrmap *m, const char *name)
{
	*m = (struct sio_addrmap){0};
	snprintf(m->name, sizeof(m->name), "%s", name);
}

void sio_addrmap_done(struct sio_addrmap *m)
{
	free(m->region);
	m->region = NULL;
	m->n = m->cap = 0;
}

/* How many regions begin at or below @addr. */
static size_t count_below(const struct sio_addrmap *m, uint64_t addr)
{
	size_t low = 0, n = m->n;

	while (n > 0) {
		size_t half = n / 2;

		if (m->region[low + half].base <= addr) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

const struct sio_region *sio_addrmap_below(const struct sio_addrmap *m, uint64_t addr)
{
	size_t i = count_below(m, addr);

	return i > 0 ? &m->region[i - 1] : NULL;
}

const struct sio_region *sio_addrmap_above(const struct sio_addrmap *m, uint64_t addr)
{
	size_t i = count_below(m, addr);

	return i < m->n ? &m->region[i] : NULL;
}

const struct sio_region *sio_addrmap_find(const struct sio_addrmap *m, uint64_t addr)
{
	const struct sio_region *r = sio_addrmap_below(m, addr);

	return r && addr - r->base < r->size ? r : NULL;
}

const struct sio_region *sio_addrmap_nearest(const struct sio_addrmap *m, uint64_t addr)
{
	const struct sio_region *below = sio_addrmap_below(m, addr);
	const struct sio_region *above = sio_addrmap_above(m, addr);
	uint64_t gap;

	if (!below || !above)
		return below ? below : above;
	if (addr - below->base < below->size)
		return below;
	gap = addr - sio_region_last(below);
	return gap <= above->base - addr ? below : above;
}

const struct sio_region *sio_addrmap_overlap(const struct sio_addrmap *m, uint64_t base,
					     uint64_t size)
{
	const struct sio_region *r = sio_addrmap_find(m, base);

	if (r)
		return r;
	r = sio_addrmap_above(m, base);
	return r && r->base - base < size ? r : NULL;
}

static int make_room(struct sio_addrmap *m)
{
	size_t cap = m->cap ? m->cap * 2 : FIRST_CAP;
	struct sio_region *grown;

	if (m->n < m->cap)
		return 0;
	grown = reallocarray(m->region, cap, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	m->region = grown;
	m->cap = cap;
	return 0;
}

int sio_addrmap_add(struct sio_addrmap *m, const struct sio_region *region, struct sio_err *reterr)
{
	const struct sio_region *other;
	uint64_t last;
	size_t at;

	if (region->size == 0 || __builtin_add_overflow(region->base, region->size - 1, &last))
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " + %#" PRIx64 " is empty or past the last address",
				m->name, region->base, region->size);
	other = sio_addrmap_overlap(m, region->base, region->size);
	if (other)
		return sio_fail(reterr, -EEXIST,
				"%s: %#" PRIx64 " + %#" PRIx64 " overlaps %#" PRIx64 " + %#" PRIx64,
				m->name, region->base, region->size, other->base, other->size);
	if (make_room(m) < 0)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for region %zu", m->name, m->n + 1);
	at = count_below(m, region->base);
	memmove(&m->region[at + 1], &m->region[at], (m->n - at) * sizeof(*region));
	m->region[at] = *region;
	m->n++;
	return 0;
}

int sio_addrmap_remove(struct sio_addrmap *m, uint64_t base)
{
	size_t i = count_below(m, base);

	if (i == 0 || m->region[i - 1].base != base)
		return -ENOENT;
	memmove(&m->region[i - 1], &m->region[i], (m->n - i) * sizeof(*m->region));
	m->n--;
	return 0;
}
