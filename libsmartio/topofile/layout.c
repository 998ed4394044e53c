/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of RAM, windows and BARs in each host's physical map. What the file does not place
 * is placed where no host has anything, so that an address of one host is invalid on any other.
 * While a cluster runs, what stays in it stays where it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/layout.h"
#include "topofile/value.h"

#define FIRST_ADDRESS (4 * SIO_GIB)

#define PARTS (1 + SIO_MAX_ADAPTERS + SIO_DRAFT_DEVICES)

/* A power of 2 that is no less. */
static uint64_t round_up(uint64_t size)
{
	uint64_t power = SIO_PAGE_SIZE;

	while (power < size)
		power <<= 1;
	return power;
}

/* The number of a virtual function of its physical one; else 0. */
static unsigned function_number(const struct sio_topo_device *dev)
{
	return dev->physical ? dev->bdf & 7 : 0;
}

/*
 * Is what is in @in of @h behind the same bridges, up to the host, as what is in @was_in of @was?
 * Chassis are the same if their names are, wherever in the file they stand.
 */
static bool same_bridges(const struct sio_topo_host *was, unsigned was_in,
			 const struct sio_topo_host *h, unsigned in)
{
	while (was_in && in) {
		const struct sio_topo_chassis *a = &was->chassis[was_in - 1];
		const struct sio_topo_chassis *b = &h->chassis[in - 1];

		if (strcmp(a->name, b->name) != 0)
			return false;
		was_in = a->in;
		in = b->in;
	}
	return was_in == in;
}

/* @base, of something in @was_in, if what is in @in now is behind the same bridges. */
static uint64_t kept_base(const struct sio_topo_host *was, unsigned was_in, uint64_t base,
			  const struct sio_topo_host *h, unsigned in)
{
	return same_bridges(was, was_in, h, in) ? base : 0;
}

/* The chassis of @was whose range is that of chassis @index of @h; NULL: that gets another one. */
static const struct sio_topo_chassis *kept_range(const struct sio_topo_host *was,
						 const struct sio_topo_host *h, unsigned index)
{
	for (unsigned i = 0; was && i < was->n_chassis; i++)
		if (same_bridges(was, i + 1, h, index + 1))
			return was->chassis[i].aperture == h->chassis[index].aperture
				       ? &was->chassis[i]
				       : NULL;
	return NULL;
}

/* What host @host's map consists of. Return: how many parts. */
static unsigned list_parts(struct sio_draft *d, unsigned host, struct sio_part part[PARTS])
{
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_draft_host *draft = &d->host[host];
	const struct sio_topo_host *was = sio_draft_host_before(d, h->name);
	const struct sio_topo_device *device_was;
	unsigned n = 0;

	part[n] = (struct sio_part){.base = &h->ram_base,
				    .size = h->ram_size,
				    .align = SIO_GIB,
				    .unit = SIO_PAGE_SIZE,
				    .kept = was ? was->ram_base : 0,
				    .at = draft->base_at};
	snprintf(part[n++].path, SIO_DRAFT_PATH, "hosts.%s.ram_base", h->name);
	for (unsigned i = 0; i < h->n_adapters; i++, n++) {
		part[n] = (struct sio_part){
			.base = &h->adapter[i].window_base,
			.size = h->adapter[i].window_size,
			.align = round_up(h->adapter[i].window_size),
			.unit = h->adapter[i].window_size / h->adapter[i].lut_entries,
			.in = h->adapter[i].in,
			.kept = was && i < was->n_adapters ? kept_base(was, was->adapter[i].in,
								       was->adapter[i].window_base,
								       h, h->adapter[i].in)
							   : 0,
			.in_at = draft->adapter[i].in_at,
			.at = draft->adapter[i].base_at};
		sio_draft_adapter_path(h, i, "window_base", part[n].path);
	}
	for (unsigned i = 0; i < h->n_devices; i++) {
		const struct sio_topo_device *dev = &h->device[i];
		const uint64_t space = sio_topology_bar_space(dev);
		uint64_t size = space;

		/* Those of a drive lie together, as one BAR register of PCI's says where. */
		if (function_number(dev) > 1)
			continue;
		if (function_number(dev))
			size *= h->device[dev->physical - 1].virtual_functions;
		device_was = sio_draft_device_before(d, h->name, dev->name);
		part[n] = (struct sio_part){.base = &h->device[i].bar_base,
					    .size = size,
					    .align = space,
					    .unit = space,
					    .in = h->device[i].in,
					    .kept = device_was ? kept_base(was, device_was->in,
									   device_was->bar_base, h,
									   dev->in)
							       : 0,
					    .in_at = draft->device[i].in_at,
					    .at = draft->device[i].base_at};
		sio_draft_device_path(h, i, "bar_base", part[n++].path);
	}
	return n;
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b ? b - a < a_size : a - b < b_size;
}

const char *sio_part_name(const struct sio_part *p)
{
	return strchr(strchr(p->path, '.') + 1, '.') + 1;
}

/* A base that the file gives: inside the address space, aligned, and free on its host. */
static int check_given(struct sio_draft *d, const struct sio_part *part, unsigned index)
{
	const struct sio_part *p = &part[index];
	char shown[SIO_DRAFT_PATH], unit[SIO_SIZE_TEXT];

	if (*p->base > SIO_DRAFT_HIGHEST - p->size)
		return sio_source_fail_at(d->source, p->at, p->path,
					  "ends above 4096T; a lower address is right");
	if (*p->base % p->unit)
		return sio_source_fail_at(d->source, p->at, p->path,
					  "not a multiple of %s; one is right",
					  sio_value_size_text(p->unit, unit));
	for (unsigned i = 0; i < index; i++) {
		const struct sio_part *other = &part[i];

		if (!other->at.value || !overlap(*p->base, p->size, *other->base, other->size))
			continue;
		snprintf(shown, sizeof(shown), "%s", sio_part_name(other));
		return sio_source_fail_at(
			d->source, p->at, p->path,
			"overlaps %s (line %u); addresses that nothing else of the "
			"host has are right",
			shown, other->at.key.line);
	}
	return 0;
}

bool sio_layout_is_behind(const struct sio_topo_host *h, unsigned in, unsigned index)
{
	while (in && in != index + 1)
		in = h->chassis[in - 1].in;
	return in != 0;
}

/*
 * End of a chassis' range of @h that @size bytes at @base would touch; 0: of none. Something in
 * number @in may be in the ranges of that chassis and of those around it.
 */
static uint64_t range_until(const struct sio_topo_host *h, uint64_t base, uint64_t size,
			    unsigned in)
{
	for (unsigned i = 0; i < h->n_chassis; i++) {
		const struct sio_topo_chassis *c = &h->chassis[i];

		if (c->range_size && overlap(base, size, c->range_base, c->range_size) &&
		    !sio_layout_is_behind(h, in, i))
			return c->range_base + c->range_size;
	}
	return 0;
}

uint64_t sio_layout_taken(const struct sio_layout *l, uint64_t base, uint64_t size, unsigned host,
			  unsigned in)
{
	for (unsigned i = 0; i < l->n; i++) {
		const struct sio_part *p = &l->part[i];

		if (*p->base && overlap(base, size, *p->base, p->size))
			return *p->base + p->size;
	}
	for (unsigned i = 0; i < l->d->t->n_hosts; i++) {
		uint64_t end = 0;

		if (i == host || !l->dense)
			end = range_until(&l->d->t->host[i], base, size, i == host ? in : 0);
		if (end)
			return end;
	}
	return 0;
}

bool sio_layout_find(const struct sio_layout *l, uint64_t size, uint64_t align, unsigned host,
		     unsigned in, uint64_t from, uint64_t end, uint64_t *ret)
{
	uint64_t base = from, taken;

	do {
		base = (base + align - 1) & ~(align - 1);
		if (base > end || end - base < size)
			return false;
		taken = sio_layout_taken(l, base, size, host, in);
		if (taken)
			base = taken;
	} while (taken);
	*ret = base;
	return true;
}

/* Something that is in no chassis, @at in the file if it has no place. */
static int place(struct sio_layout *l, unsigned host, uint64_t size, uint64_t align,
		 const char *path, struct sio_spot at, uint64_t *ret)
{
	if (!sio_layout_find(l, size, align, host, 0, l->next, SIO_DRAFT_HIGHEST, ret))
		return sio_source_fail_at(l->d->source, sio_source_missing(at), path,
					  "no room left below 4096T; less RAM, or smaller windows "
					  "and apertures, are right");
	l->next = *ret + size;
	return 0;
}

/* What the file says, checked host by host. */
static int take_given(struct sio_layout *l)
{
	int rc = 0;

	for (unsigned i = 0; i < l->d->t->n_hosts; i++) {
		unsigned first = l->n, n = list_parts(l->d, i, &l->part[l->n]);

		for (unsigned j = 0; rc == 0 && j < n; j++) {
			l->part[first + j].host = i;
			if (l->part[first + j].at.value)
				rc = check_given(l->d, &l->part[first], j);
		}
		l->n += n;
		for (unsigned j = 0; rc == 0 && j < l->d->t->host[i].n_chassis; j++)
			rc = sio_layout_check_aperture(l, i, j);
	}
	return rc;
}

/*
 * What is in force stays, where the file has given its place to nothing else; so do the addresses
 * that chassis pass on, also those where nothing is.
 */
static void keep(struct sio_layout *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		const struct sio_part *p = &l->part[i];

		if (p->at.value || p->kept == 0 || p->kept % p->align ||
		    p->kept > SIO_DRAFT_HIGHEST - p->size ||
		    sio_layout_taken(l, p->kept, p->size, p->host, p->in))
			continue;
		*p->base = p->kept;
	}
	for (unsigned i = 0; i < l->d->t->n_hosts; i++) {
		struct sio_topo_host *h = &l->d->t->host[i];
		const struct sio_topo_host *was = sio_draft_host_before(l->d, h->name);

		for (unsigned j = 0; j < h->n_chassis; j++) {
			const struct sio_topo_chassis *c = kept_range(was, h, j);

			h->chassis[j].range_base = c ? c->range_base : 0;
			h->chassis[j].range_size = c ? c->range_size : 0;
		}
	}
}

/* Of one host: what is in no chassis, then what each chassis passes on. */
static int place_rest(struct sio_layout *l, unsigned host)
{
	const struct sio_topo_host *h = &l->d->t->host[host];
	char path[SIO_DRAFT_PATH];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < l->n; i++) {
		struct sio_part *p = &l->part[i];

		if (p->host == host && p->in == 0 && *p->base == 0)
			rc = place(l, host, p->size, p->align, p->path, l->d->host[host].at,
				   p->base);
	}
	for (unsigned i = 0; rc == 0 && i < h->n_chassis; i++) {
		uint64_t size, align, base;

		if (h->chassis[i].in || h->chassis[i].range_size)
			continue;
		rc = sio_layout_measure(l, host, i, &size, &align);
		if (rc < 0 || size == 0)
			continue;
		snprintf(path, sizeof(path), "hosts.%s.chassis.%s", h->name, h->chassis[i].name);
		rc = place(l, host, size, align, path, l->d->host[host].chassis[i].at, &base);
		if (rc == 0)
			rc = sio_layout_put(l, host, i, base);
	}
	return rc;
}

/* Behind the first function of each drive, which has room for all. */
static void place_functions(struct sio_topo_host *h)
{
	for (unsigned i = 1; i < h->n_devices; i++)
		if (function_number(&h->device[i]) > 1)
			h->device[i].bar_base =
				h->device[i - 1].bar_base + sio_topology_bar_space(&h->device[i]);
}

int sio_draft_lay_out(struct sio_draft *d)
{
	struct sio_layout l = {.d = d, .next = FIRST_ADDRESS};
	int rc;

	l.part = calloc((size_t)d->t->n_hosts * PARTS, sizeof(*l.part));
	if (!l.part)
		return sio_source_no_memory(d->source);
	rc = take_given(&l);
	if (rc == 0) {
		keep(&l);
		for (unsigned i = 0; rc == 0 && i < d->t->n_hosts; i++)
			rc = sio_layout_ranges(&l, i);
		for (unsigned i = 0; rc == 0 && i < d->t->n_hosts; i++)
			rc = place_rest(&l, i);
	}
	for (unsigned i = 0; rc == 0 && i < d->t->n_hosts; i++)
		place_functions(&d->t->host[i]);
	free(l.part);
	return rc;
}
