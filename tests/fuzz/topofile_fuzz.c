/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a topology file: either a topology that holds together, or an error that names the
 * file. Built for libFuzzer by clang, and with replay.c as an ordinary test.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "topofile/topofile.h"

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static void check_name(const char *name, size_t size)
{
	CHECK(name[0]);
	CHECK(memchr(name, '\0', size));
}

/* The parts of a host's physical map that were seen. */
struct parts {
	uint64_t base[64], size[64];
	unsigned n;
};

static void check_part(struct parts *p, uint64_t base, uint64_t size)
{
	uint64_t end;

	CHECK(base && size && base % SIO_PAGE_SIZE == 0);
	CHECK(!__builtin_add_overflow(base, size, &end) && end <= 1ull << 52);
	for (unsigned i = 0; i < p->n; i++)
		CHECK(base >= p->base[i] + p->size[i] || p->base[i] >= end);
	p->base[p->n] = base;
	p->size[p->n++] = size;
}

static void check_adapter(const struct sio_topology *t, const struct sio_topo_adapter *a)
{
	uint64_t entry = a->window_size / a->lut_entries;

	CHECK(a->window_size % a->lut_entries == 0 && entry >= SIO_PAGE_SIZE);
	CHECK((entry & (entry - 1)) == 0 && a->window_base % entry == 0);
	CHECK(a->requesters >= 2);
	CHECK(a->attach == SIO_ATTACH_SWITCH || a->attach == SIO_ATTACH_LINK);
	CHECK(a->attach_index < (a->attach == SIO_ATTACH_LINK ? t->n_links : t->n_switches));
}

/* Index of the function that is in a slot of its own. */
static unsigned physical(const struct sio_topo_host *h, unsigned i)
{
	return h->device[i].physical ? h->device[i].physical - 1 : i;
}

static void check_device(const struct sio_topology *t, const struct sio_topo_host *h, unsigned i)
{
	const struct sio_topo_device *d = &h->device[i];
	const struct sio_topo_host *host = NULL;

	check_name(d->name, sizeof(d->name));
	check_name(d->serial, 21);
	CHECK(strcmp(d->type, "nvme") == 0);
	CHECK(d->size && d->size % d->block_size == 0);
	CHECK(d->slot && d->queue_pairs && d->queue_entries >= 2 && d->dma_bits <= 64);
	CHECK(d->vectors <= 2048);
	CHECK(d->bar_base % sio_topology_bar_space(d) == 0);
	CHECK(sio_topology_device(t, d->fdid, &host) == d && host == h);
	for (unsigned j = 0; j < i; j++)
		CHECK(h->device[j].bdf != d->bdf &&
		      (h->device[j].slot != d->slot) == (physical(h, j) != physical(h, i)));
	if (d->physical)
		CHECK(d->physical <= i && physical(h, d->physical - 1) == d->physical - 1 &&
		      (d->bdf & 7) >= 1 &&
		      (d->bdf & 7) <= h->device[d->physical - 1].virtual_functions);
	else
		CHECK((d->bdf & 7) == 0);
}

/* Whoever is in a chassis is in one that is there; each is behind one before it. */
static void check_chassis(const struct sio_topo_host *h)
{
	CHECK(h->n_chassis <= SIO_MAX_CHASSIS);
	for (unsigned i = 0; i < h->n_chassis; i++) {
		check_name(h->chassis[i].name, sizeof(h->chassis[i].name));
		CHECK(h->chassis[i].in <= i && h->chassis[i].link_width);
	}
	for (unsigned i = 0; i < h->n_adapters; i++)
		CHECK(h->adapter[i].in <= h->n_chassis);
	for (unsigned i = 0; i < h->n_devices; i++)
		CHECK(h->device[i].in <= h->n_chassis && h->device[i].link_width);
}

static void check_host(const struct sio_topology *t, unsigned i)
{
	const struct sio_topo_host *h = &t->host[i];
	struct parts parts = {0};

	check_name(h->name, sizeof(h->name));
	CHECK(h->node >= 4 && h->node <= SIO_MAX_NODE && h->node % 4 == 0 &&
	      h->node != SIO_MULTICAST_NODE);
	CHECK(i == 0 || t->host[i - 1].node < h->node);
	CHECK(sio_topology_host_by_name(t, h->name) == h);
	CHECK(h->n_adapters <= SIO_MAX_ADAPTERS);
	check_chassis(h);
	check_part(&parts, h->ram_base, h->ram_size);
	for (unsigned j = 0; j < h->n_adapters; j++) {
		check_adapter(t, &h->adapter[j]);
		check_part(&parts, h->adapter[j].window_base, h->adapter[j].window_size);
	}
	for (unsigned j = 0; j < h->n_devices; j++) {
		check_device(t, h, j);
		check_part(&parts, h->device[j].bar_base, sio_topology_bar_space(&h->device[j]));
	}
}

/* A link takes ports of its switch that no other link takes. */
static void take_ports(const struct sio_topology *t, bool (*taken)[256], unsigned sw, unsigned port,
		       uint32_t width)
{
	unsigned ports = sio_topology_ports(width, t->sw[sw].lanes);

	if (t->sw[sw].ports == 0)
		return;
	CHECK(port % ports == 0 && port + ports <= t->sw[sw].ports);
	for (unsigned i = port; i < port + ports; i++) {
		CHECK(!taken[sw][i]);
		taken[sw][i] = true;
	}
}

static void check_switches(const struct sio_topology *t)
{
	static bool taken[SIO_MAX_SWITCHES][256];

	memset(taken, 0, sizeof(taken));
	CHECK(t->n_switches <= SIO_MAX_SWITCHES && t->n_trunks <= SIO_MAX_TRUNKS);
	CHECK(!t->distance == (t->n_trunks == 0));
	for (unsigned i = 0; i < t->n_trunks; i++) {
		const struct sio_topo_trunk *l = &t->trunk[i];

		CHECK(l->sw[0] != l->sw[1]);
		for (unsigned end = 0; end < 2; end++) {
			CHECK(l->sw[end] < t->n_switches);
			take_ports(t, taken, l->sw[end], l->port[end], l->link_width);
		}
	}
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++) {
		for (unsigned j = 0; j < t->host[i].n_adapters; j++) {
			const struct sio_topo_adapter *a = &t->host[i].adapter[j];

			if (a->attach == SIO_ATTACH_SWITCH)
				take_ports(t, taken, a->attach_index, a->port, a->link_width);
		}
	}
}

/* A cable has two ends, on two hosts. */
static void check_links(const struct sio_topology *t)
{
	for (unsigned link = 0; link < t->n_links; link++) {
		unsigned ends = 0, on = UINT32_MAX;

		for (unsigned i = 0; i < t->n_hosts; i++) {
			for (unsigned j = 0; j < t->host[i].n_adapters; j++) {
				if (t->host[i].adapter[j].attach != SIO_ATTACH_LINK ||
				    t->host[i].adapter[j].attach_index != link)
					continue;
				CHECK(on != i);
				on = i;
				ends++;
			}
		}
		CHECK(ends == 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sio_topology *t = NULL;
	struct sio_err err = {0};
	int rc = sio_topofile_parse("file", (const char *)data, size, &t, &err);

	if (rc < 0) {
		CHECK(!t && err.code == rc);
		CHECK(strncmp(err.text, "file:", 5) == 0);
		CHECK(strlen(err.text) < sizeof(err.text) && !strchr(err.text, '\n'));
		return 0;
	}
	CHECK(rc == 0 && t);
	check_name(t->name, sizeof(t->name));
	CHECK(t->n_hosts >= 1 && t->n_hosts <= SIO_MAX_HOSTS);
	for (unsigned i = 0; i < t->n_hosts; i++)
		check_host(t, i);
	check_links(t);
	check_switches(t);
	sio_topology_free(t);
	return 0;
}
