/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of RAM, windows and BARs in each host's physical map. What the file does not place
 * is placed where no host has anything, so that an address of one host is invalid on any other.
 * While a cluster runs, what stays in it stays where it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/draft.h"
#include "topofile/value.h"

#define FIRST_ADDRESS (4 * SIO_GIB)

/* A part of a host's map. */
struct part {
	uint64_t *base, size;
	uint64_t align;	    /* where we put it: a power of 2 */
	uint64_t unit;	    /* where the file may put it */
	struct sio_spot at; /* of the base; zero: it is ours to choose */
	uint64_t kept;	    /* the base that is in force; 0: none */
	unsigned host;
	unsigned in; /* as in the topology */
	char path[SIO_DRAFT_PATH];
};

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

/* What host @host's map consists of. Return: how many parts. */
static unsigned list_parts(struct sio_draft *d, unsigned host, struct part part[PARTS])
{
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_draft_host *draft = &d->host[host];
	const struct sio_topo_host *was = sio_draft_host_before(d, h->name);
	const struct sio_topo_device *device_was;
	unsigned n = 0;

	part[n] = (struct part){.base = &h->ram_base,
				.size = h->ram_size,
				.align = SIO_GIB,
				.unit = SIO_PAGE_SIZE,
				.kept = was ? was->ram_base : 0,
				.at = draft->base_at};
	snprintf(part[n++].path, SIO_DRAFT_PATH, "hosts.%s.ram_base", h->name);
	for (unsigned i = 0; i < h->n_adapters; i++, n++) {
		part[n] = (struct part){
			.base = &h->adapter[i].window_base,
			.size = h->adapter[i].window_size,
			.align = round_up(h->adapter[i].window_size),
			.unit = h->adapter[i].window_size / h->adapter[i].lut_entries,
			.in = h->adapter[i].in,
			.kept = was && i < was->n_adapters ? was->adapter[i].window_base : 0,
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
		part[n] = (struct part){.base = &h->device[i].bar_base,
					.size = size,
					.align = space,
					.unit = space,
					.in = h->device[i].in,
					.kept = device_was ? device_was->bar_base : 0,
					.at = draft->device[i].base_at};
		sio_draft_device_path(h, i, "bar_base", part[n++].path);
	}
	return n;
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b ? b - a < a_size : a - b < b_size;
}

/* What it is in its host: "adapters[0].window_base". */
static const char *name_of(const struct part *p)
{
	return strchr(strchr(p->path, '.') + 1, '.') + 1;
}

/* A base that the file gives: inside the address space, aligned, and free on its host. */
static int check_given(struct sio_draft *d, const struct part *part, unsigned index)
{
	const struct part *p = &part[index];
	char shown[SIO_DRAFT_PATH], unit[SIO_SIZE_TEXT];

	if (*p->base > SIO_DRAFT_HIGHEST - p->size)
		return sio_source_fail_at(d->source, p->at, p->path,
					  "ends above 4096T; a lower address is right");
	if (*p->base % p->unit)
		return sio_source_fail_at(d->source, p->at, p->path,
					  "not a multiple of %s; one is right",
					  sio_value_size_text(p->unit, unit));
	for (unsigned i = 0; i < index; i++) {
		const struct part *other = &part[i];

		if (!other->at.value || !overlap(*p->base, p->size, *other->base, other->size))
			continue;
		snprintf(shown, sizeof(shown), "%s", name_of(other));
		return sio_source_fail_at(
			d->source, p->at, p->path,
			"overlaps %s (line %u); addresses that nothing else of the "
			"host has are right",
			shown, other->at.key.line);
	}
	return 0;
}

/* ---- apertures ---- */

/* Is @p in chassis number @index of its host, or in one that is in it? */
static bool is_behind(const struct sio_topo_host *h, const struct part *p, unsigned index)
{
	unsigned in = p->in;

	while (in && in != index + 1)
		in = h->chassis[in - 1].in;
	return in != 0;
}

/*
 * A chassis passes on one range of addresses: from the lowest that the file gives to what is in it
 * up to the highest, which is no longer than its aperture, and nobody else of the host is there.
 */
static int check_aperture(struct sio_draft *d, unsigned host, const struct part *part, unsigned n,
			  unsigned index)
{
	const struct sio_topo_host *h = &d->t->host[host];
	const struct sio_topo_chassis *c = &h->chassis[index];
	const struct part *low = NULL, *high = NULL;
	char size[SIO_SIZE_TEXT];

	for (unsigned i = 0; i < n; i++) {
		const struct part *p = &part[i];

		if (!p->at.value || !is_behind(h, p, index))
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
			d->source, high->at, high->path,
			"too far from %s (line %u): both are behind chassis '%s', whose aperture "
			"is %s; addresses within as many bytes, or a larger aperture, are right",
			name_of(low), low->at.key.line, c->name,
			sio_value_size_text(c->aperture, size));
	for (unsigned i = 0; i < n; i++) {
		const struct part *p = &part[i];

		if (!p->at.value || is_behind(h, p, index) ||
		    !overlap(*p->base, p->size, *low->base, *high->base + high->size - *low->base))
			continue;
		return sio_source_fail_at(
			d->source, p->at, p->path,
			"lies between %s (line %u) and %s (line %u), which are behind chassis "
			"'%s': it passes on all from the one to the other; an address outside is "
			"right",
			name_of(low), low->at.key.line, name_of(high), high->at.key.line, c->name);
	}
	return 0;
}

/* All parts of all hosts. A base of 0 is not placed yet. */
struct layout {
	struct sio_draft *d;
	struct part *part;
	unsigned n;
	uint64_t next; /* below it everything is placed */
};

/* End of a placed part that @size bytes at @base would touch; 0: they are free on every host. */
static uint64_t taken_until(const struct layout *l, uint64_t base, uint64_t size)
{
	for (unsigned i = 0; i < l->n; i++) {
		const struct part *p = &l->part[i];

		if (*p->base && overlap(base, size, *p->base, p->size))
			return *p->base + p->size;
	}
	return 0;
}

static int place(struct layout *l, struct part *p)
{
	uint64_t base = l->next, end;

	do {
		base = (base + p->align - 1) & ~(p->align - 1);
		if (base > SIO_DRAFT_HIGHEST - p->size)
			return sio_source_fail_at(
				l->d->source, sio_source_missing(l->d->host[p->host].at), p->path,
				"no room left below 4096T; less RAM or smaller windows "
				"are right");
		end = taken_until(l, base, p->size);
		if (end)
			base = end;
	} while (end);
	*p->base = base;
	l->next = base + p->size;
	return 0;
}

/* What the file says, checked host by host. */
static int take_given(struct layout *l)
{
	int rc = 0;

	for (unsigned i = 0; i < l->d->t->n_hosts; i++) {
		unsigned n = list_parts(l->d, i, &l->part[l->n]);

		for (unsigned j = 0; rc == 0 && j < n; j++) {
			l->part[l->n + j].host = i;
			if (l->part[l->n + j].at.value)
				rc = check_given(l->d, &l->part[l->n], j);
		}
		for (unsigned j = 0; rc == 0 && j < l->d->t->host[i].n_chassis; j++)
			rc = check_aperture(l->d, i, &l->part[l->n], n, j);
		l->n += n;
	}
	return rc;
}

/* What is in force stays, where the file has given its place to nothing else. */
static void keep(struct layout *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		const struct part *p = &l->part[i];

		if (p->at.value || p->kept == 0 || p->kept % p->align ||
		    p->kept > SIO_DRAFT_HIGHEST - p->size || taken_until(l, p->kept, p->size))
			continue;
		*p->base = p->kept;
	}
}

static int place_rest(struct layout *l)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < l->n; i++) {
		if (!l->part[i].at.value && *l->part[i].base == 0)
			rc = place(l, &l->part[i]);
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
	struct layout l = {.d = d, .next = FIRST_ADDRESS};
	int rc;

	l.part = calloc((size_t)d->t->n_hosts * PARTS, sizeof(*l.part));
	if (!l.part)
		return sio_source_no_memory(d->source);
	rc = take_given(&l);
	if (rc == 0) {
		keep(&l);
		rc = place_rest(&l);
	}
	for (unsigned i = 0; rc == 0 && i < d->t->n_hosts; i++)
		place_functions(&d->t->host[i]);
	free(l.part);
	return rc;
}
