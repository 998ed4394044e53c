/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters of one host, as the file lists them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/timing.h"
#include "topofile/draft.h"
#include "topofile/value.h"

const char *sio_draft_adapter_path(const struct sio_topo_host *h, unsigned index, const char *key,
				   char *out)
{
	snprintf(out, SIO_DRAFT_PATH, "hosts.%s.adapters[%u].%s", h->name, index, key);
	return out;
}

static int read_to(struct sio_source *s, struct sio_draft_adapter *draft)
{
	size_t mark = sio_source_enter(s, "to", 0);

	if (!sio_draft_parse_end(draft->to_at, SIO_DRAFT_PORTS, draft->to, &draft->to_index))
		return sio_source_fail(s, draft->to_at, SIO_DRAFT_TO_RIGHT, SIO_MAX_ADAPTERS - 1);
	sio_source_leave(s, mark);
	return 0;
}

/* Of a virtual NTB: include/smartio/vntb.h. */
#define MACHINE_ENTRIES 4096
#define MACHINE_REQUESTERS 256

enum {
	ADAPTER_TO,
	ADAPTER_WINDOW,
	ADAPTER_BASE,
	ADAPTER_ENTRIES,
	ADAPTER_REQUESTERS,
	ADAPTER_IN = 8,
	ADAPTER_PCI,
	ADAPTER_FIELDS
};
static const struct sio_field adapter_field[ADAPTER_FIELDS] = {
	{.name = "to", .kind = SIO_VALUE_NODE},
	{.name = "window",
	 .kind = SIO_VALUE_SIZE,
	 .offset = offsetof(struct sio_topo_adapter, window_size),
	 .min = 4 * SIO_KIB,
	 .max = SIO_DRAFT_LARGEST},
	{.name = "window_base",
	 .kind = SIO_VALUE_SIZE,
	 .offset = offsetof(struct sio_topo_adapter, window_base),
	 .min = SIO_MIB,
	 .max = SIO_DRAFT_HIGHEST,
	 .step = SIO_PAGE_SIZE},
	{.name = "entries",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_adapter, lut_entries),
	 .min = 1,
	 .max = 65536},
	{.name = "requesters",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_adapter, requesters),
	 .min = 2,
	 .max = 4096},
	{.name = "width",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_adapter, link_width),
	 .min = 1,
	 .max = 16,
	 .step = SIO_VALUE_POWER},
	{.name = "generation",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_adapter, link_generation),
	 .min = 1,
	 .max = 6},
	{.name = "latency",
	 .kind = SIO_VALUE_NUMBER,
	 .offset = offsetof(struct sio_topo_adapter, latency),
	 .max = SIO_DRAFT_LATENCY},
	{.name = "in", .kind = SIO_VALUE_NODE},
	{.name = "pci", .kind = SIO_VALUE_NODE},
};

/* An entry of the window is a power of 2 of whole pages. */
static int check_window(struct sio_source *s, const struct sio_topo_adapter *a,
			const struct sio_spot spot[ADAPTER_FIELDS], struct sio_spot at)
{
	uint64_t entry = a->window_size / a->lut_entries;
	bool by_entries = !spot[ADAPTER_WINDOW].value && spot[ADAPTER_ENTRIES].value;
	char size[SIO_SIZE_TEXT];

	if (a->window_size % a->lut_entries == 0 && entry >= SIO_PAGE_SIZE &&
	    (entry & (entry - 1)) == 0)
		return 0;
	sio_source_enter(s, by_entries ? "entries" : "window", 0);
	if (by_entries)
		at = spot[ADAPTER_ENTRIES];
	else if (spot[ADAPTER_WINDOW].value)
		at = spot[ADAPTER_WINDOW];
	return sio_source_fail(s, at,
			       "%s in %" PRIu32
			       " entries is not a power of 2 of at least 4K for each; "
			       "entries times such a power is right for the window",
			       sio_value_size_text(a->window_size, size), a->lut_entries);
}

/* Adapters of a machine: all of a host's are, and each is there once. */
static int read_pci(struct sio_draft *d, unsigned host, const struct sio_spot spot[ADAPTER_FIELDS],
		    struct sio_spot at)
{
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_topo_adapter *a = &h->adapter[h->n_adapters];
	struct sio_source *s = d->source;
	int rc;

	if (h->n_adapters > 0 && h->real != !!spot[ADAPTER_PCI].value) {
		sio_source_enter(s, "pci", 0);
		return sio_source_fail(s, h->real ? sio_source_missing(at) : spot[ADAPTER_PCI],
				       "one adapter of this host has it, and one has not; all of "
				       "them, or none, is right");
	}
	if (!spot[ADAPTER_PCI].value)
		return 0;
	for (int i = 1; i < ADAPTER_PCI; i++) {
		if (!spot[i].value)
			continue;
		sio_source_enter(s, adapter_field[i].name, 0);
		return sio_source_fail(s, sio_source_key(spot[i]),
				       "of emulated adapters, and this one has 'pci'; a real one "
				       "has what its hardware has");
	}
	rc = sio_draft_read_pci(s, spot[ADAPTER_PCI], a->pci);
	for (unsigned i = 0; rc == 0 && i < h->n_adapters; i++) {
		if (strcmp(h->adapter[i].pci, a->pci) != 0)
			continue;
		sio_source_enter(s, "pci", 0);
		return sio_source_fail(s, spot[ADAPTER_PCI],
				       "adapter %u of this host, too; one of its own is right", i);
	}
	h->real = true;
	return rc;
}

/* A virtual NTB is a PCI function: its window is a BAR, which the machine itself places. */
static int check_machine(struct sio_source *s, struct sio_topo_adapter *a,
			 const struct sio_spot spot[ADAPTER_FIELDS])
{
	if (spot[ADAPTER_BASE].value) {
		sio_source_enter(s, adapter_field[ADAPTER_BASE].name, 0);
		return sio_source_fail(s, sio_source_key(spot[ADAPTER_BASE]),
				       "a machine places its adapter itself; no such key is right");
	}
	if (spot[ADAPTER_PCI].value && sio_draft_read_pci(s, spot[ADAPTER_PCI], a->pci) < 0)
		return -EINVAL;
	if (a->window_size & (a->window_size - 1)) {
		sio_source_enter(s, "window", 0);
		return sio_source_fail(s, spot[ADAPTER_WINDOW],
				       "a BAR of a machine's adapter; a power of 2 is right");
	}
	if (a->lut_entries > MACHINE_ENTRIES) {
		sio_source_enter(s, "entries", 0);
		return sio_source_fail(s, spot[ADAPTER_ENTRIES],
				       "a machine's adapter has at most %d; fewer are right",
				       MACHINE_ENTRIES);
	}
	if (a->requesters > MACHINE_REQUESTERS) {
		sio_source_enter(s, "requesters", 0);
		return sio_source_fail(s, spot[ADAPTER_REQUESTERS],
				       "a machine's adapter has at most %d; fewer are right",
				       MACHINE_REQUESTERS);
	}
	return 0;
}

/* As if the file had {}. */
static void set_defaults(struct sio_draft *d, unsigned host, struct sio_spot at)
{
	unsigned index = d->t->host[host].n_adapters;

	d->t->host[host].adapter[index] =
		(struct sio_topo_adapter){.window_size = SIO_GIB,
					  .lut_entries = 512,
					  .requesters = 32,
					  .link_width = 8,
					  .link_generation = 3,
					  .latency = SIO_TIMING_ADAPTER_NS,
					  .bdf = (index + 1) << 8};
	d->host[host].adapter[index] = (struct sio_draft_adapter){.at = at, .to_index = -1};
}

void sio_draft_default_adapter(struct sio_draft *d, unsigned host)
{
	set_defaults(d, host, sio_source_missing(d->host[host].at));
	d->t->host[host].n_adapters = 1;
}

static int read_adapter(struct sio_draft *d, unsigned host, struct sio_spot at)
{
	struct sio_topo_host *h = &d->t->host[host];
	struct sio_topo_adapter *a = &h->adapter[h->n_adapters];
	struct sio_draft_adapter *draft = &d->host[host].adapter[h->n_adapters];
	struct sio_spot spot[ADAPTER_FIELDS];
	int rc;

	set_defaults(d, host, at);
	rc = sio_value_map(d->source, at, adapter_field, ADAPTER_FIELDS, a, spot);
	if (rc < 0)
		return rc;
	draft->base_at = spot[ADAPTER_BASE];
	draft->to_at = spot[ADAPTER_TO];
	draft->in_at = spot[ADAPTER_IN];
	if (draft->to_at.value) {
		rc = read_to(d->source, draft);
		if (rc < 0)
			return rc;
	}
	rc = h->machine ? 0 : read_pci(d, host, spot, at);
	if (rc == 0 && draft->in_at.value)
		rc = sio_draft_read_in(d, host, draft->in_at, &a->in);
	if (rc < 0)
		return rc;
	rc = check_window(d->source, a, spot, at);
	if (rc == 0 && h->machine)
		rc = check_machine(d->source, a, spot);
	if (rc == 0)
		h->n_adapters++;
	return rc;
}

int sio_draft_read_adapters(struct sio_draft *d, unsigned host, struct sio_spot at)
{
	struct sio_source *s = d->source;
	size_t mark = sio_source_enter(s, "adapters", 0);

	if (at.value->type != YAML_SEQUENCE_NODE)
		return sio_source_fail(s, at, "not a list; one such as [{ to: sw0 }] is right");
	for (yaml_node_item_t *i = at.value->data.sequence.items.start;
	     i < at.value->data.sequence.items.top; i++) {
		unsigned index = d->t->host[host].n_adapters;
		struct sio_spot item = sio_source_inside(at, NULL, sio_source_node(s, *i));
		size_t list = sio_source_enter(s, NULL, index);
		int rc;

		if (index == SIO_MAX_ADAPTERS)
			return sio_source_fail(s, item, "an adapter too many; at most %d is right",
					       SIO_MAX_ADAPTERS);
		rc = read_adapter(d, host, item);
		if (rc < 0)
			return rc;
		sio_source_leave(s, list);
	}
	sio_source_leave(s, mark);
	return 0;
}
