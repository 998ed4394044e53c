/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The range of addresses that each chassis passes on, as bridges do: what is behind a chassis lies
 * in its range, and nothing else of the host does. Ranges of chassis in a chassis lie in its range.
 * What has a place already, by the file or because it is in force, stays there, and the range is
 * laid around it. All else is put in order of its alignment, which leaves no gaps.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/layout.h"
#include "topofile/value.h"

static uint64_t up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

static const char *chassis_path(const struct sio_topo_host *h, unsigned index, const char *key,
				char *out)
{
	snprintf(out, SIO_DRAFT_PATH, "hosts.%s.chassis.%s%s%s", h->name, h->chassis[index].name,
		 *key ? "." : "", key);
	return out;
}

/* ---- what the file gives ---- */

/*
 * From the lowest that the file gives to what is in it up to the highest, which is no longer than
 * its aperture, and nobody else of the host is there.
 */
int sio_layout_check_aperture(const struct sio_layout *l, unsigned host, unsigned index)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	const struct sio_topo_chassis *c = &h->chassis[index];
	const struct sio_part *low = NULL, *high = NULL;
	char size[SIO_SIZE_TEXT];

	for (unsigned i = 0; i < l->n; i++) {
		const struct sio_part *p = &l->part[i];

		if (p->host != host || !p->at.value || !sio_layout_is_behind(h, p->in, index))
			continue;
		if (!low || *p->base < *low->base)
			low = p;
		if (!high || *p->base > *high->base)
			high = p;
	}
	if (!low)
		return 0;
	if (c->aperture && *high->base + high->size - *low->base > c->aperture)
		return sio_source_fail_at(
			l->d->source, high->at, high->path,
			"too far from %s (line %u): both are behind chassis '%s', whose aperture "
			"is %s; addresses within as many bytes, or a larger aperture, are right",
			sio_part_name(low), low->at.key.line, c->name,
			sio_value_size_text(c->aperture, size));
	for (unsigned i = 0; i < l->n; i++) {
		const struct sio_part *p = &l->part[i];

		if (p->host != host || !p->at.value || sio_layout_is_behind(h, p->in, index) ||
		    *p->base >= *high->base + high->size || *p->base + p->size <= *low->base)
			continue;
		return sio_source_fail_at(
			l->d->source, p->at, p->path,
			"lies between %s (line %u) and %s (line %u), which are behind chassis "
			"'%s': it passes on all from the one to the other; an address outside is "
			"right",
			sio_part_name(low), low->at.key.line, sio_part_name(high),
			high->at.key.line, c->name);
	}
	return 0;
}

/* ---- what has no place yet ---- */

/* Something directly in a chassis: a part of the host, or a chassis. */
struct item {
	uint64_t size, align;
	struct sio_part *part;
	unsigned chassis, order;
};

#define ITEMS (SIO_MAX_ADAPTERS + SIO_DRAFT_DEVICES + SIO_MAX_CHASSIS)

static int by_align(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->align != y->align)
		return x->align < y->align ? 1 : -1;
	return x->order < y->order ? -1 : 1;
}

/* *ret_n: how many. @item has room for ITEMS. */
static int list_items(const struct sio_layout *l, unsigned host, unsigned index, struct item *item,
		      unsigned *ret_n)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	unsigned n = 0;

	for (unsigned i = 0; i < l->n; i++) {
		struct sio_part *p = &l->part[i];

		if (p->host != host || p->in != index + 1 || *p->base)
			continue;
		item[n] = (struct item){.size = p->size, .align = p->align, .part = p, .order = n};
		n++;
	}
	for (unsigned i = 0; i < h->n_chassis; i++) {
		int rc;

		if (h->chassis[i].in != index + 1 || h->chassis[i].range_size)
			continue;
		item[n] = (struct item){.chassis = i, .order = n};
		rc = sio_layout_measure(l, host, i, &item[n].size, &item[n].align);
		if (rc < 0)
			return rc;
		n += item[n].size != 0;
	}
	qsort(item, n, sizeof(*item), by_align);
	*ret_n = n;
	return 0;
}

static uint64_t next_end(const struct item *item, uint64_t end)
{
	return up(end, item->align) + item->size;
}

int sio_layout_measure(const struct sio_layout *l, unsigned host, unsigned index,
		       uint64_t *ret_size, uint64_t *ret_align)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	const struct sio_topo_chassis *c = &h->chassis[index];
	char path[SIO_DRAFT_PATH], text[SIO_SIZE_TEXT];
	uint64_t size = 0, align = SIO_MIB;
	struct item item[ITEMS];
	unsigned n;
	int rc = list_items(l, host, index, item, &n);

	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < n; i++)
		size = next_end(&item[i], size);
	if (c->aperture && size > c->aperture)
		return sio_source_fail_at(
			l->d->source, l->d->host[host].chassis[index].aperture_at,
			chassis_path(h, index, "aperture", path),
			"too little: what is behind it takes %s, each part at a multiple of its "
			"size; that at least is right",
			sio_value_size_text(up(size, SIO_MIB), text));
	if (n && item[0].align > align)
		align = item[0].align;
	size = c->aperture ? c->aperture : up(size, align);
	if ((size & -size) > align)
		align = size & -size;
	*ret_size = size;
	*ret_align = align;
	return 0;
}

static int put_item(struct sio_layout *l, unsigned host, const struct item *item, uint64_t base)
{
	if (!item->part)
		return sio_layout_put(l, host, item->chassis, base);
	*item->part->base = base;
	item->part->tried = true;
	return 0;
}

int sio_layout_put(struct sio_layout *l, unsigned host, unsigned index, uint64_t base)
{
	struct sio_topo_chassis *c = &l->d->t->host[host].chassis[index];
	uint64_t size, align, end = base;
	struct item item[ITEMS];
	unsigned n;
	int rc = sio_layout_measure(l, host, index, &size, &align);

	if (rc == 0)
		rc = list_items(l, host, index, item, &n);
	for (unsigned i = 0; rc == 0 && i < n; i++) {
		end = next_end(&item[i], end);
		rc = put_item(l, host, &item[i], end - item[i].size);
	}
	if (rc < 0)
		return rc;
	c->range_base = base;
	c->range_size = size;
	return 0;
}

/* ---- around what has a place ---- */

/* From where to where the placed things behind a chassis lie; end 0: there are none. */
struct hull {
	uint64_t base, end;
};

static void widen(struct hull *hull, uint64_t base, uint64_t size)
{
	if (hull->end == 0 || base < hull->base)
		hull->base = base;
	if (base + size > hull->end)
		hull->end = base + size;
}

static struct hull hull_of(const struct sio_layout *l, unsigned host, unsigned index)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	struct hull hull = {0, 0};

	for (unsigned i = 0; i < l->n; i++)
		if (l->part[i].host == host && *l->part[i].base &&
		    sio_layout_is_behind(h, l->part[i].in, index))
			widen(&hull, *l->part[i].base, l->part[i].size);
	for (unsigned i = 0; i < h->n_chassis; i++)
		if (h->chassis[i].range_size && sio_layout_is_behind(h, i + 1, index))
			widen(&hull, h->chassis[i].range_base, h->chassis[i].range_size);
	return hull;
}

/* What else of the host leaves around @hull: @from to @to. False: it lies in it. */
static bool leaves(const struct hull *hull, uint64_t base, uint64_t end, uint64_t *from,
		   uint64_t *to)
{
	if (end <= hull->base) {
		if (end > *from)
			*from = end;
		return true;
	}
	if (base < *to)
		*to = base;
	return base >= hull->end;
}

/* Something else of the host, @p or what is in @other, is where the range has to be. */
static int in_its_way(const struct sio_layout *l, unsigned host, unsigned index,
		      const struct hull *hull, const struct sio_part *p, const char *other)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	char path[SIO_DRAFT_PATH];

	if (p && p->at.value)
		return sio_source_fail_at(
			l->d->source, p->at, p->path,
			"lies in the addresses from %#" PRIx64 " to %#" PRIx64
			" that chassis '%s' passes on; an address outside is right",
			hull->base, hull->end, h->chassis[index].name);
	return sio_source_fail_at(
		l->d->source, sio_source_missing(l->d->host[host].chassis[index].at),
		chassis_path(h, index, "", path),
		"what is behind it lies from %#" PRIx64 " to %#" PRIx64
		", and %s, which is not, lies there, too; what is in force stays while the cluster "
		"runs, and addresses beside that are right",
		hull->base, hull->end, other);
}

/* Between which addresses the range can be: nothing else of the host is there. */
static int find_room(const struct sio_layout *l, unsigned host, unsigned index,
		     const struct hull *hull, uint64_t *ret_from, uint64_t *ret_to)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	uint64_t from = SIO_MIB, to = SIO_DRAFT_HIGHEST;
	char path[SIO_DRAFT_PATH];

	for (unsigned i = 0; i < l->n; i++) {
		const struct sio_part *p = &l->part[i];

		if (p->host == host && *p->base && !sio_layout_is_behind(h, p->in, index) &&
		    !leaves(hull, *p->base, *p->base + p->size, &from, &to))
			return in_its_way(l, host, index, hull, p, sio_part_name(p));
	}
	for (unsigned i = 0; i < h->n_chassis; i++) {
		const struct hull other = hull_of(l, host, i);

		if (sio_layout_is_behind(h, i + 1, index) ||
		    sio_layout_is_behind(h, index + 1, i) || !other.end)
			continue;
		if (!leaves(hull, other.base, other.end, &from, &to))
			return in_its_way(l, host, index, hull, NULL, chassis_path(h, i, "", path));
	}
	/* What a range is in has a length, too. */
	for (unsigned in = h->chassis[index].in; in; in = h->chassis[in - 1].in) {
		const uint64_t aperture = h->chassis[in - 1].aperture;
		const struct hull around = hull_of(l, host, in - 1);

		if (aperture == 0 || around.end - around.base > aperture)
			continue;
		if (around.end > from + aperture)
			from = around.end - aperture;
		if (to > around.base + aperture)
			to = around.base + aperture;
	}
	*ret_from = from;
	*ret_to = to;
	return 0;
}

/* The lowest thing behind it that the file places; NULL: it is there because it is in force. */
static const struct sio_part *given(const struct sio_layout *l, unsigned host, unsigned index)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	const struct sio_part *low = NULL;

	for (unsigned i = 0; i < l->n; i++) {
		const struct sio_part *p = &l->part[i];

		if (p->host == host && p->at.value && sio_layout_is_behind(h, p->in, index) &&
		    (!low || *p->base < *low->base))
			low = p;
	}
	return low;
}

static int no_room_for(const struct sio_layout *l, unsigned host, unsigned index, bool kept,
		       const struct item *item)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	const struct sio_part *low = given(l, host, index);
	const char *name = h->chassis[index].name;
	char path[SIO_DRAFT_PATH], size[SIO_SIZE_TEXT];
	struct sio_spot at;

	if (item->part) {
		at = item->part->in_at;
		memcpy(path, item->part->path, sizeof(path));
		strcpy(strrchr(path, '.') + 1, "in");
	} else {
		at = sio_source_missing(l->d->host[host].chassis[item->chassis].at);
		chassis_path(h, item->chassis, "in", path);
	}
	sio_value_size_text(item->size, size);
	if (kept || !low)
		return sio_source_fail_at(
			l->d->source, at, path,
			"no room left for its %s in chassis '%s', whose addresses stay as they are "
			"while the cluster runs; %s is right",
			size, name,
			h->chassis[index].aperture
				? "a larger 'aperture', now where the host has nothing beside "
				  "it, else from the next start on,"
				: "an 'aperture' with room for it, from the next start on,");
	return sio_source_fail_at(
		l->d->source, at, path,
		"no room for its %s in chassis '%s', whose addresses lie around %s (line %u); other "
		"addresses there, or a larger aperture, are right",
		size, name, sio_part_name(low), low->at.key.line);
}

/* A range that has something placed in it, and is being laid. */
struct attempt {
	struct sio_layout *l;
	unsigned host, index;
	bool kept;
	uint32_t laid; /* the chassis of the host that had ranges before, as bits */
};

/* What was tried is taken back. */
static void take_back(const struct attempt *a)
{
	const struct sio_topo_host *h = &a->l->d->t->host[a->host];

	for (unsigned i = 0; i < a->l->n; i++) {
		struct sio_part *p = &a->l->part[i];

		if (p->host == a->host && p->tried)
			*p->base = 0;
		if (p->host == a->host)
			p->tried = false;
	}
	for (unsigned i = 0; i < h->n_chassis; i++)
		if (!(a->laid >> i & 1))
			h->chassis[i].range_size = 0;
}

static void settle(const struct attempt *a)
{
	for (unsigned i = 0; i < a->l->n; i++)
		if (a->l->part[i].host == a->host)
			a->l->part[i].tried = false;
}

/* Puts all that has no place between @from and @end. -ENOSPC: *ret_item has no room. */
static int fill(const struct attempt *a, uint64_t from, uint64_t end, struct item *ret_item)
{
	struct item item[ITEMS];
	uint64_t base;
	unsigned n;
	int rc = list_items(a->l, a->host, a->index, item, &n);

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		if (sio_layout_find(a->l, item[i].size, item[i].align, a->host, a->index + 1, from,
				    end, &base)) {
			rc = put_item(a->l, a->host, &item[i], base);
			continue;
		}
		*ret_item = item[i];
		return -ENOSPC;
	}
	return rc;
}

/* The range begins at @base, if all that is behind it fits then. */
static int try_at(const struct attempt *a, uint64_t base, struct item *ret_item)
{
	struct sio_topo_chassis *c = &a->l->d->t->host[a->host].chassis[a->index];
	int rc = fill(a, base, base + c->aperture, ret_item);

	if (rc < 0) {
		take_back(a);
		return rc;
	}
	c->range_base = base;
	c->range_size = c->aperture;
	return 0;
}

static int too_little_around(const struct attempt *a, const struct hull *hull, uint64_t from,
			     uint64_t to)
{
	const struct sio_layout *l = a->l;
	const struct sio_topo_host *h = &l->d->t->host[a->host];
	struct sio_spot at = l->d->host[a->host].chassis[a->index].aperture_at;
	char path[SIO_DRAFT_PATH], size[SIO_SIZE_TEXT];

	chassis_path(h, a->index, "aperture", path);
	if (hull->end - hull->base > h->chassis[a->index].aperture)
		return sio_source_fail_at(
			l->d->source, at, path,
			"too little: what is behind it lies from %#" PRIx64 " to %#" PRIx64
			", which takes %s; that at least, or addresses nearer to each other, are "
			"right",
			hull->base, hull->end,
			sio_value_size_text(up(hull->end - hull->base, SIO_MIB), size));
	return sio_source_fail_at(
		l->d->source, at, path,
		"too much: what is behind it lies from %#" PRIx64 " to %#" PRIx64
		", and what else the host has, or the chassis that it is in, leaves no more than "
		"from %#" PRIx64 " to %#" PRIx64
		"; a smaller aperture, or addresses farther from those, are right",
		hull->base, hull->end, from, to);
}

/*
 * The range has the size of its aperture, and begins at the roundest address of those where all
 * fits. -ENOSPC: *ret_item has no room.
 */
static int lay_aperture(const struct attempt *a, const struct hull *hull, uint64_t from,
			uint64_t to, struct item *ret_item)
{
	const uint64_t aperture = a->l->d->t->host[a->host].chassis[a->index].aperture;
	uint64_t low, high;
	int rc = 0;

	if (hull->end - hull->base > aperture || to - from < aperture)
		return too_little_around(a, hull, from, to);
	low = hull->end - from > aperture ? hull->end - aperture : from;
	high = to - hull->base > aperture ? hull->base : to - aperture;
	for (uint64_t align = aperture & -aperture; align; align >>= 1) {
		uint64_t base = high & ~(align - 1);

		if (base < low)
			continue;
		rc = try_at(a, base, ret_item);
		if (rc == -ENOSPC && up(low, align) != base)
			rc = try_at(a, up(low, align), ret_item);
		if (rc != -ENOSPC)
			return rc;
	}
	return rc;
}

/* The range is as long as is needed, and grows upwards. -ENOSPC: *ret_item has no room. */
static int grow(const struct attempt *a, const struct hull *hull, uint64_t to,
		struct item *ret_item)
{
	struct sio_topo_chassis *c = &a->l->d->t->host[a->host].chassis[a->index];
	struct hull all;
	int rc = fill(a, hull->base, to, ret_item);

	if (rc < 0) {
		take_back(a);
		return rc;
	}
	all = hull_of(a->l, a->host, a->index);
	c->range_base = all.base;
	c->range_size = all.end - all.base;
	return 0;
}

/*
 * Beside what other hosts' chassis pass on, which is their room; where the file gives several hosts
 * the same addresses, or one range has grown around another, in what they have not used of that.
 */
static int lay_around(const struct attempt *a, const struct hull *hull, uint64_t from, uint64_t to)
{
	const uint64_t aperture = a->l->d->t->host[a->host].chassis[a->index].aperture;
	struct item item;
	int rc = -ENOSPC;

	for (unsigned i = 0; i < 2 && rc == -ENOSPC; i++) {
		a->l->dense = i == 1;
		rc = aperture ? lay_aperture(a, hull, from, to, &item) : grow(a, hull, to, &item);
	}
	a->l->dense = false;
	return rc == -ENOSPC ? no_room_for(a->l, a->host, a->index, a->kept, &item) : rc;
}

static uint32_t laid_ranges(const struct sio_topo_host *h)
{
	uint32_t laid = 0;

	_Static_assert(SIO_MAX_CHASSIS <= 32, "a bit each");
	for (unsigned i = 0; i < h->n_chassis; i++)
		laid |= (uint32_t)(h->chassis[i].range_size != 0) << i;
	return laid;
}

/* First the ranges in it that have something placed in them. A range without has its turn later. */
static int lay_range(struct sio_layout *l, unsigned host, unsigned index)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	struct hull hull = hull_of(l, host, index);
	struct attempt a = {
		.l = l, .host = host, .index = index, .kept = h->chassis[index].range_size != 0};
	uint64_t from = 0, to = 0;
	int rc = 0;

	if (!hull.end)
		return 0;
	for (unsigned i = index + 1; rc == 0 && i < h->n_chassis; i++)
		if (h->chassis[i].in == index + 1)
			rc = lay_range(l, host, i);
	if (rc < 0)
		return rc;
	a.laid = laid_ranges(h);
	hull = hull_of(l, host, index);
	rc = find_room(l, host, index, &hull, &from, &to);
	if (rc == 0)
		rc = lay_around(&a, &hull, from, to);
	settle(&a);
	return rc;
}

int sio_layout_ranges(struct sio_layout *l, unsigned host)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < h->n_chassis; i++)
		if (h->chassis[i].in == 0)
			rc = lay_range(l, host, i);
	return rc;
}
