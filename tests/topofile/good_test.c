/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/fail_alloc.h"
#include "../lib/topology_path.h"
#include "core/timing.h"
#include "topofile/topofile.h"

#define K 1024ull
#define M (1024 * K)
#define G (1024 * M)

static const char *everything, *demo, *manual; /* paths */

static struct sio_topology *read_good(const char *path)
{
	struct sio_topology *t = NULL;
	struct sio_err err = {0};

	if (sio_topofile_read(path, &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

static struct sio_topology *parse_good(const char *text)
{
	struct sio_topology *t = NULL;
	struct sio_err err = {0};

	if (sio_topofile_parse("topo.yaml", text, strlen(text), &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

static void assert_adapter(const struct sio_topo_adapter *a, enum sio_attach_kind attach,
			   unsigned index, uint32_t bdf)
{
	assert_int_equal(a->attach, attach);
	assert_int_equal(a->attach_index, index);
	assert_int_equal(a->bdf, bdf);
}

static void assert_default_adapter(const struct sio_topo_adapter *a)
{
	assert_int_equal(a->window_size, G);
	assert_int_equal(a->lut_entries, 512);
	assert_int_equal(a->requesters, 32);
	assert_int_equal(a->link_width, 8);
	assert_int_equal(a->link_generation, 3);
	assert_int_equal(a->latency, SIO_TIMING_ADAPTER_NS);
}

static void reads_the_cluster_and_its_hosts(void **state)
{
	struct sio_topology *t = read_good(everything);
	static const uint32_t nodes[] = {8, 12, 40, 248};
	static const char *const names[] = {"client", "helper", "lender", "island"};

	(void)state;
	assert_string_equal(t->name, "everything");
	assert_int_equal(t->max_payload, 512);
	assert_int_equal(t->max_read_request, 1024);
	assert_int_equal(t->read_completion_boundary, 128);
	assert_true(t->exact_multicast);
	assert_int_equal(t->n_switches, 2);
	assert_string_equal(t->sw[0].name, "east");
	assert_string_equal(t->sw[1].name, "west");
	assert_int_equal(t->n_links, 2);
	assert_int_equal(t->n_hosts, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(t->host[i].node, nodes[i]);
		assert_string_equal(t->host[i].name, names[i]);
		assert_int_equal(t->host[i].iommu, i == 2);
	}
	assert_int_equal(t->host[0].ram_size, 256 * M);
	assert_int_equal(t->host[2].ram_size, G);
	assert_int_equal(t->host[2].ram_base, 64 * G);
	assert_int_equal(t->host[3].ram_size, M);
	sio_topology_free(t);
}

static void reads_and_joins_adapters(void **state)
{
	struct sio_topology *t = read_good(everything);
	const struct sio_topo_host *client = &t->host[0], *helper = &t->host[1];
	const struct sio_topo_host *lender = &t->host[2], *island = &t->host[3];
	const struct sio_topo_adapter *a = &lender->adapter[0];

	(void)state;
	assert_int_equal(lender->n_adapters, 2);
	assert_int_equal(a->window_size, 2 * G);
	assert_int_equal(a->window_base, 256 * G);
	assert_int_equal(a->lut_entries, 1024);
	assert_int_equal(a->requesters, 16);
	assert_int_equal(a->link_width, 16);
	assert_int_equal(a->link_generation, 4);
	assert_int_equal(a->latency, 200);
	assert_adapter(a, SIO_ATTACH_SWITCH, 0, 0x100);
	assert_default_adapter(&lender->adapter[1]);
	assert_adapter(&lender->adapter[1], SIO_ATTACH_SWITCH, 1, 0x200);
	assert_int_equal(client->n_adapters, 2);
	assert_adapter(&client->adapter[0], SIO_ATTACH_SWITCH, 1, 0x100);
	assert_adapter(&client->adapter[1], SIO_ATTACH_LINK, 0, 0x200);
	assert_int_equal(helper->n_adapters, 3);
	assert_adapter(&helper->adapter[0], SIO_ATTACH_SWITCH, 0, 0x100);
	assert_adapter(&helper->adapter[1], SIO_ATTACH_LINK, 0, 0x200);
	assert_adapter(&helper->adapter[2], SIO_ATTACH_LINK, 1, 0x300);
	assert_int_equal(island->n_adapters, 1);
	assert_adapter(&island->adapter[0], SIO_ATTACH_LINK, 1, 0x100);
	sio_topology_free(t);
}

static void reads_memory_devices(void **state)
{
	struct sio_topology *t =
		parse_good("cluster: c\n"
			   "hosts:\n"
			   "  a: { devices: { m: { type: memory },\n"
			   "                  n: { type: memory, size: 8M, vectors: 0 } } }\n");
	const struct sio_topo_device *m = &t->host[0].device[0], *n = &t->host[0].device[1];

	(void)state;
	assert_string_equal(m->type, "memory");
	assert_int_equal(m->size, 4 * M);
	assert_int_equal(m->vectors, 1);
	assert_int_equal(n->size, 8 * M);
	assert_int_equal(n->vectors, 0);
	sio_topology_free(t);
}

static void reads_accelerators(void **state)
{
	struct sio_topology *t = parse_good(
		"cluster: c\n"
		"hosts:\n"
		"  a: { devices: { m: { type: accelerator },\n"
		"                  n: { type: accelerator, size: 256M, units: 8, vectors: 0 },\n"
		"                  o: { type: nvme } } }\n");
	const struct sio_topo_device *m = t->host[0].device, *n = m + 1, *o = m + 2;

	(void)state;
	assert_string_equal(m->type, "accelerator");
	assert_int_equal(m->size, 16 * M);
	assert_int_equal(m->vectors, 16);
	assert_int_equal(m->units, 4);
	assert_int_equal(n->size, 256 * M);
	assert_int_equal(n->vectors, 0);
	assert_int_equal(n->units, 8);
	assert_int_equal(o->units, 0);
	/* Its registers and its memory, each BAR aligned to its size, in the host's map. */
	assert_int_equal(sio_topology_bar_space(m), 32 * M);
	assert_int_equal(sio_topology_bar_space(n), 512 * M);
	assert_int_equal(sio_topology_bar_space(o), 16 * M);
	assert_int_equal(m->bar_base % (32 * M), 0);
	assert_int_equal(n->bar_base % (512 * M), 0);
	assert_true(n->bar_base >= m->bar_base + 32 * M);
	assert_true(o->bar_base >= n->bar_base + 512 * M || o->bar_base + 16 * M <= n->bar_base);
	sio_topology_free(t);
}

/* It is as one that the file names. */
static void the_switch_that_is_meant_is_a_switch(void **state)
{
	struct sio_topology *meant = parse_good("cluster: c\nhosts:\n  a:\n  b:\n");
	struct sio_topology *named =
		parse_good("cluster: c\nswitches: [sw0]\nhosts:\n  a:\n  b:\n");

	(void)state;
	assert_int_equal(meant->n_switches, 1);
	assert_int_equal(named->n_switches, 1);
	assert_memory_equal(meant->sw, named->sw, sizeof(*named->sw));
	sio_topology_free(meant);
	sio_topology_free(named);
}

static void reads_namespaces(void **state)
{
	struct sio_topology *t = parse_good(
		"cluster: c\n"
		"hosts:\n"
		"  a:\n"
		"    devices:\n"
		"      m: { type: nvme, namespaces: [{ size: 8M, block: 4096 }, { size: 4M, file: /m 2 }] }\n"
		"      n: { type: nvme, size: 8M, file: /n, virtual_functions: 1 }\n");
	const struct sio_topo_device *d = t->host[0].device;

	(void)state;
	assert_int_equal(d[0].n_namespaces, 2);
	assert_int_equal(d[0].namespaces[0].size, 8u << 20);
	assert_int_equal(d[0].namespaces[0].block_size, 4096);
	assert_int_equal(d[0].namespaces[1].size, 4u << 20);
	assert_int_equal(d[0].namespaces[1].block_size, 512);
	assert_int_equal(d[0].size, 12u << 20);
	assert_int_equal(d[0].block_size, 4096);
	assert_int_equal(d[1].n_namespaces, 0);
	assert_null(d[0].file);
	assert_null(d[0].namespaces[0].file);
	assert_string_equal(d[0].namespaces[1].file, "/m 2");
	assert_string_equal(d[1].file, "/n");
	assert_string_equal(d[2].file, "/n"); /* its virtual function */
	sio_topology_free(t);
}

static void reads_virtual_functions(void **state)
{
	struct sio_topology *t = parse_good(
		"cluster: c\n"
		"hosts:\n"
		"  a:\n"
		"    chassis: { box: { ports: 2, lanes: 4, width: 4 } }\n"
		"    devices:\n"
		"      m: { type: nvme, in: box, virtual_functions: 2, reset: none, queue_pairs: 4,\n"
		"           slot: 3, bar_base: 16M }\n"
		"      n: { type: nvme }\n"
		"      o: { type: nvme, virtual_functions: 1, serial: S }\n");
	const struct sio_topo_device *d = t->host[0].device;

	(void)state;
	assert_int_equal(t->host[0].n_devices, 6);
	assert_string_equal(d[3].name, "m-vf1");
	assert_string_equal(d[4].name, "m-vf2");
	assert_string_equal(d[5].name, "o-vf1");
	assert_int_equal(d[0].virtual_functions, 2);
	assert_int_equal(d[1].virtual_functions, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(d[i].physical, 0);
	for (unsigned i = 3; i < 6; i++) {
		const struct sio_topo_device *pf = &d[i < 5 ? 0 : 2];

		assert_int_equal(d[i].physical, pf - d + 1);
		assert_int_equal(d[i].virtual_functions, 0);
		assert_int_equal(d[i].fdid, sio_topology_fdid(4, sio_topology_number(d[i].name)));
		assert_int_equal(d[i].slot, pf->slot);
		assert_int_equal(d[i].bdf, pf->bdf | (i < 5 ? i - 2 : 1));
		assert_int_equal(d[i].queue_pairs, pf->queue_pairs);
		assert_int_equal(d[i].reset, SIO_TOPO_RESET_FUNCTION);
		assert_int_equal(d[i].in, pf->in);
		assert_string_equal(d[i].serial, pf->serial);
		/* BARs of its own, as any device's. */
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(d[i].bar_base, d[k].bar_base);
	}
	assert_int_equal(d[0].reset, SIO_TOPO_RESET_NONE);
	assert_int_equal(d[1].slot, 1);
	assert_int_equal(d[2].slot, 2);
	assert_string_equal(d[5].serial, "S");
	sio_topology_free(t);
}

static void reads_devices(void **state)
{
	struct sio_topology *t = read_good(everything);
	const struct sio_topo_device *fast = &t->host[2].device[0], *plain = &t->host[2].device[1];

	(void)state;
	assert_int_equal(t->host[2].n_devices, 2);
	assert_string_equal(fast->name, "fast");
	assert_string_equal(fast->type, "nvme");
	assert_int_equal(fast->size, 2 * G);
	assert_int_equal(fast->block_size, 4096);
	assert_int_equal(fast->queue_pairs, 7);
	assert_int_equal(fast->queue_entries, 64);
	assert_int_equal(fast->vectors, 5);
	assert_string_equal(fast->serial, "FAST-1");
	assert_int_equal(fast->dma_bits, 40);
	assert_int_equal(fast->reset, SIO_TOPO_RESET_BUS);
	assert_int_equal(fast->slot, 3);
	assert_int_equal(fast->bdf, 0x1300);
	assert_int_equal(fast->bar_base, 512 * M);
	assert_int_equal(fast->fdid, 0x286b20a);
	assert_string_equal(plain->name, "plain");
	assert_int_equal(plain->size, G);
	assert_int_equal(plain->block_size, 512);
	assert_int_equal(plain->queue_pairs, 31);
	assert_int_equal(plain->queue_entries, 1024);
	assert_int_equal(plain->vectors, 32);
	assert_int_equal(plain->dma_bits, 64);
	assert_int_equal(plain->reset, SIO_TOPO_RESET_FUNCTION);
	assert_int_equal(plain->slot, 1);
	assert_int_equal(plain->bdf, 0x1100);
	assert_int_equal(plain->fdid, 0x281e725);
	assert_string_equal(plain->serial, "SIO0281E725");
	sio_topology_free(t);
}

static void least_there_can_be(void **state)
{
	struct sio_topology *t = parse_good("cluster: c\nhosts: { a: }");

	(void)state;
	assert_int_equal(t->max_payload, 256);
	assert_int_equal(t->max_read_request, 512);
	assert_int_equal(t->read_completion_boundary, 64);
	assert_false(t->exact_multicast);
	assert_int_equal(t->n_hosts, 1);
	assert_int_equal(t->host[0].node, 4);
	assert_int_equal(t->host[0].ram_size, 256 * M);
	assert_false(t->host[0].iommu);
	assert_int_equal(t->host[0].n_adapters, 1);
	assert_default_adapter(&t->host[0].adapter[0]);
	assert_int_equal(t->n_switches, 1);
	assert_string_equal(t->sw[0].name, "sw0");
	sio_topology_free(t);
	/* A switch that nobody needs and nobody names is not there. */
	t = parse_good(
		"cluster: c\nhosts: { a: { adapters: [{to: b}] }, b: { adapters: [{to: a}] } }");
	assert_int_equal(t->n_switches, 0);
	assert_int_equal(t->n_links, 1);
	sio_topology_free(t);
}

/* Which adapter is joined to which, as "a0-b1 a1-b0", in the order of the links. */
static void assert_links(const char *text, const char *want)
{
	struct sio_topology *t = parse_good(text);
	char got[64] = "";
	size_t len = 0;

	for (unsigned link = 0; link < t->n_links; link++) {
		const char *sep = link ? " " : "";

		for (unsigned i = 0; i < t->n_hosts; i++) {
			for (unsigned j = 0; j < t->host[i].n_adapters; j++) {
				if (t->host[i].adapter[j].attach != SIO_ATTACH_LINK ||
				    t->host[i].adapter[j].attach_index != link)
					continue;
				len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s%u", sep,
							t->host[i].name, j);
				sep = "-";
			}
		}
	}
	assert_string_equal(got, want);
	sio_topology_free(t);
}

static void joins_the_adapters_that_are_meant(void **state)
{
	(void)state;
	assert_links("cluster: c\nhosts:\n a: { adapters: [{to: b}, {to: b}] }\n"
		     " b: { adapters: [{to: a}, {to: a}] }",
		     "a0-b0 a1-b1");
	assert_links("cluster: c\nhosts:\n a: { adapters: [{to: b}, {to: b.0}] }\n"
		     " b: { adapters: [{to: a}, {to: a}] }",
		     "a1-b0 a0-b1");
	assert_links("cluster: c\nhosts:\n a: { adapters: [{to: b}, {to: b}] }\n"
		     " b: { adapters: [{to: a.1}, {to: a.0}] }",
		     "a1-b0 a0-b1");
	assert_links("cluster: c\nhosts:\n a: { adapters: [{to: b}, {to: c}] }\n"
		     " b: { adapters: [{to: a}, {to: c}] }\n c: { adapters: [{to: b}, {to: a}] }",
		     "a0-b0 a1-c1 b1-c0");
}

struct span {
	uint64_t base, size;
	unsigned host;
};

/* Every part of every host's map. Return: how many. */
static unsigned list_spans(const struct sio_topology *t, struct span *span)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n_hosts; i++) {
		const struct sio_topo_host *h = &t->host[i];

		span[n++] = (struct span){h->ram_base, h->ram_size, i};
		for (unsigned j = 0; j < h->n_adapters; j++)
			span[n++] = (struct span){h->adapter[j].window_base,
						  h->adapter[j].window_size, i};
		for (unsigned j = 0; j < h->n_devices; j++)
			span[n++] = (struct span){h->device[j].bar_base,
						  sio_topology_bar_space(&h->device[j]), i};
	}
	return n;
}

/* What the file leaves open lies where nothing of any host lies, around what it says. */
static void lays_out_every_host_differently(void **state)
{
	static struct span span[64];
	struct sio_topology *t = parse_good(
		"cluster: c\nhosts:\n"
		"  a: { devices: { x: { type: nvme }, y: { type: nvme } } }\n"
		"  b: { ram_base: 4G, adapters: [{ window_base: 6G }, { window: 4M }] }\n"
		"  c: { ram: 3G, node: 100, devices: { z: { type: nvme, bar_base: 5G } } }\n"
		"  d: { node: 52, ram: 1052672 }\n");
	unsigned n = list_spans(t, span);

	(void)state;
	assert_int_equal(n, 12);
	for (unsigned i = 0; i < n; i++) {
		assert_true(span[i].base >= 4 * G);
		assert_int_equal(span[i].base % SIO_PAGE_SIZE, 0);
		for (unsigned j = 0; j < i; j++)
			assert_true(span[i].base >= span[j].base + span[j].size ||
				    span[j].base >= span[i].base + span[i].size);
	}
	assert_int_equal(t->host[1].ram_base, 4 * G);
	assert_int_equal(t->host[1].adapter[0].window_base, 6 * G);
	assert_int_equal(t->host[1].adapter[1].window_base % (4 * M), 0);
	assert_int_equal(t->host[3].device[0].bar_base, 5 * G);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(t->host[0].device[i].bar_base % SIO_TOPO_BAR_SPACE, 0);
	sio_topology_free(t);
}

static void hosts_may_be_alike_where_the_file_says_so(void **state)
{
	struct sio_topology *t = parse_good("cluster: c\nhosts:\n  a: &h { ram_base: 8G }\n"
					    "  b: *h\n");

	(void)state;
	assert_int_equal(t->n_hosts, 2);
	assert_int_equal(t->host[0].ram_base, 8 * G);
	assert_int_equal(t->host[1].ram_base, 8 * G);
	assert_true(t->host[0].adapter[0].window_base != t->host[1].adapter[0].window_base);
	sio_topology_free(t);
}

static void the_demo_has_what_it_shows(void **state)
{
	static const bool iommu[] = {true, false, true, false, false};
	struct sio_topology *t = read_good(demo);
	struct sio_path path;

	(void)state;
	assert_string_equal(t->name, "demo");
	assert_int_equal(t->n_hosts, 5);
	assert_string_equal(t->host[0].name, "lender");
	assert_int_equal(t->host[0].device[0].size, 512 * M);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(t->host[i].node, 4 * (i + 1));
		assert_int_equal(t->host[i].ram_size, 256 * M);
		assert_int_equal(t->host[i].iommu, iommu[i]);
		if (i > 0) {
			assert_int_equal(topology_path(t, 4, 0, 4 * (i + 1), &path), 0);
			assert_int_equal(path.hops, 2);
		}
	}
	sio_topology_free(t);
}

/* What the manual shows as a topology is one. */
static void the_manual_is_right(void **state)
{
	static const char fence[] = "```yaml\n";
	static char text[64 * 1024];
	FILE *file = fopen(manual, "r");
	unsigned n = 0;
	size_t len;

	(void)state;
	assert_non_null(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = '\0';
	for (char *at = strstr(text, fence); at; at = strstr(at, fence)) {
		char *end;

		at += sizeof(fence) - 1;
		end = strstr(at, "```");
		assert_non_null(end);
		*end = '\0';
		sio_topology_free(parse_good(at));
		at = end + 1;
		n++;
	}
	assert_int_equal(n, 4);
}

/* Whichever allocation of ours fails: -ENOMEM, and the sanitizer finds nothing lost. */
static void survives_every_failing_allocation(void **state)
{
	unsigned n = 1;
	bool failed;

	(void)state;
	do {
		struct sio_topology *t = NULL;
		struct sio_err err = {0};
		int rc;

		fail_alloc_at(n++);
		rc = sio_topofile_read(everything, &t, &err);
		failed = fail_alloc_count() > 0;
		fail_alloc_at(0);
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		assert_int_equal(err.code, rc);
		assert_int_equal(t == NULL, failed);
		sio_topology_free(t);
	} while (failed);
	assert_true(n >= 7); /* text, topology, switches, hosts twice, devices, layout */
}

static void reads_who_may_do_what(void **state)
{
	struct sio_topology *t = read_good(everything);
	const struct sio_policy *p = &t->policy;
	const struct sio_policy_rule *r = p->rule;

	(void)state;
	assert_true(p->open);
	assert_int_equal(p->n_rules, 3);
	assert_int_equal(r[0].kind, SIO_POLICY_DEVICE);
	assert_string_equal(r[0].device, "fast");
	assert_int_equal(r[0].host, 0);
	assert_true(r[0].has_nodes && !r[0].all_nodes && r[0].has_people);
	assert_int_equal(r[0].n_nodes, 2);
	assert_int_equal(r[0].node[0], 8);
	assert_int_equal(r[0].node[1], 248);
	assert_int_equal(r[0].n_users, 2);
	assert_string_equal(r[0].user[0].name, "alice");
	assert_int_equal(r[0].user[0].id, SIO_POLICY_NOBODY);
	assert_string_equal(r[0].user[1].name, "");
	assert_int_equal(r[0].user[1].id, 1000);
	assert_int_equal(r[0].n_groups, 1);
	assert_int_equal(r[1].kind, SIO_POLICY_SEGMENTS);
	assert_int_equal(r[1].host, 40);
	assert_int_equal(r[1].first, 16);
	assert_int_equal(r[1].last, 31);
	assert_true(r[1].all_nodes && !r[1].has_people);
	assert_int_equal(r[1].line, r[0].line + 1);
	assert_int_equal(r[2].kind, SIO_POLICY_INTERRUPTS);
	assert_int_equal(r[2].first, 7);
	assert_int_equal(r[2].last, 7);
	assert_true(r[2].has_nodes && r[2].n_nodes == 0);
	assert_true(p->node[SIO_QUOTA_BORROWS].set);
	assert_int_equal(p->node[SIO_QUOTA_BORROWS].most, 4);
	assert_int_equal(p->node[SIO_QUOTA_WINDOWS].most, 128);
	assert_int_equal(p->node[SIO_QUOTA_DMA].most, G);
	assert_int_equal(p->node[SIO_QUOTA_EXPORTED].most, 512 * M);
	assert_int_equal(p->program[SIO_QUOTA_BORROWS].most, 2);
	assert_int_equal(p->program[SIO_QUOTA_EXPORTED].most, 128 * M);
	sio_topology_free(t);
	t = read_good(demo);
	assert_false(t->policy.open || t->policy.n_rules || t->policy.node[0].set);
	sio_topology_free(t);
}

static void reads_hosts_that_are_real(void **state)
{
	struct sio_topology *t = parse_good(
		"cluster: lab\n"
		"hosts:\n"
		"  a: { address: 192.0.2.7:7470, adapters: [{ pci: 0000:05:00.0, to: b }] }\n"
		"  b: { address: \"[2001:db8::9]:65535\", adapters: [{ pci: 00ff:c5:1f.7, to: a }] }\n");
	const uint8_t v4[16] = {192, 0, 2, 7}, v6[16] = {0x20, 1, 0xd, 0xb8, [15] = 9};

	(void)state;
	assert_true(t->host[0].real && t->host[1].real);
	assert_false(t->host[0].address.v6);
	assert_memory_equal(t->host[0].address.ip, v4, 16);
	assert_int_equal(t->host[0].address.port, 7470);
	assert_true(t->host[1].address.v6);
	assert_memory_equal(t->host[1].address.ip, v6, 16);
	assert_int_equal(t->host[1].address.port, 65535);
	assert_string_equal(t->host[0].adapter[0].pci, "0000:05:00.0");
	assert_string_equal(t->host[1].adapter[0].pci, "00ff:c5:1f.7");
	assert_int_equal(t->n_links, 1);
	sio_topology_free(t);
}

static void emulated_hosts_may_have_addresses(void **state)
{
	struct sio_topology *t = parse_good("cluster: lab\n"
					    "hosts: { a: { address: 127.0.0.1:7470 } }\n");

	(void)state;
	assert_false(t->host[0].real);
	assert_int_equal(t->host[0].address.port, 7470);
	assert_string_equal(t->host[0].adapter[0].pci, "");
	sio_topology_free(t);
}

/* Machines are not among the hosts: they stand behind them, in the order of their nodes. */
static void machines_stand_apart(void **state)
{
	struct sio_topology *t =
		parse_good("cluster: c\n"
			   "hosts:\n"
			   "  v: { kind: machine, devices: { d: { type: nvme } } }\n"
			   "  a: { kind: emulated, devices: { e: { type: nvme } } }\n"
			   "  w: { node: 248, kind: machine }\n"
			   "  b:\n");

	(void)state;
	assert_int_equal(t->n_hosts, 2);
	assert_string_equal(t->host[0].name, "a");
	assert_string_equal(t->host[1].name, "b");
	assert_int_equal(t->host[0].node, 8);
	assert_string_equal(t->host[0].device[0].name, "e");
	assert_int_equal(t->n_machines, 2);
	assert_string_equal(t->machine[0].name, "v");
	assert_string_equal(t->machine[0].device[0].serial, "SIO004664BA");
	assert_int_equal(t->machine[0].n_adapters, 0);
	assert_string_equal(t->machine[1].name, "w");
	assert_null(sio_topology_host_by_name(t, "v"));
	sio_topology_free(t);
}

/* A pool of half of the RAM, unless the file says more; none where no machine would map it. */
static void hosts_beside_mapped_machines_have_pools(void **state)
{
	struct sio_topology *t = parse_good(
		"cluster: c\n"
		"switches: [here, there]\n"
		"hosts:\n"
		"  a: { address: 10.0.0.1:7, adapters: [{ to: here }] }\n"
		"  b: { address: 10.0.0.2:7, ram: 64M, pool: 64M, adapters: [{ to: here }, { to: there }] }\n"
		"  c: { address: 10.0.0.3:7, iommu: on, adapters: [{ to: here }] }\n"
		"  d: { address: 10.0.0.4:7, adapters: [{ to: there }] }\n"
		"  e: { address: 10.0.0.5:7, ram: 1028K, adapters: [{ to: here }] }\n"
		"  v: { kind: machine, address: 10.0.0.6:7, window: mapped, adapters: [{ to: here }] }\n"
		"  w: { kind: machine, address: 10.0.0.7:7, adapters: [{ to: there }] }\n");
	static const uint64_t pool[] = {128u << 20, 64u << 20, 0, 0, 512u << 10};

	(void)state;
	assert_int_equal(t->n_hosts, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(t->host[i].pool_size, pool[i]);
	for (unsigned i = 0; i < t->n_machines; i++)
		assert_int_equal(t->machine[i].pool_size, 0);
	sio_topology_free(t);
}

/* Machines are joined to each other, beside a cluster of emulated hosts. */
static void machines_are_joined(void **state)
{
	struct sio_topology *t = parse_good(
		"cluster: c\n"
		"switches: [vms, real]\n"
		"hosts:\n"
		"  v: { kind: machine, adapters: [{ to: vms }, { to: w.0, window: 16M, entries: 4096 }] }\n"
		"  a: { adapters: [{ to: real }] }\n"
		"  w: { kind: machine, window: exact, adapters: [{ to: v }, { to: vms }] }\n"
		"  x: { kind: machine, window: mapped, ram: 512M, adapters: [{ to: vms }] }\n"
		"  b: { adapters: [{ to: real }] }\n");
	struct sio_path path[4];

	(void)state;
	assert_int_equal(t->n_hosts, 2);
	assert_int_equal(t->n_machines, 3);
	assert_int_equal(t->machine[0].n_adapters, 2);
	assert_int_equal(t->machine[0].adapter[1].window_size, 16u << 20);
	assert_int_equal(t->machine[0].adapter[1].lut_entries, 4096);
	assert_false(t->machine[0].mapped);
	assert_false(t->machine[1].mapped);
	assert_true(t->machine[2].mapped);
	assert_int_equal(t->machine[2].ram_size, 512u << 20);
	assert_int_equal(sio_topology_paths(t, t->machine[0].node, t->machine[1].node, path, 4), 2);
	assert_int_equal(path[0].hops, 1);
	assert_int_equal(path[0].adapter, 1);
	assert_int_equal(path[0].peer_adapter, 0);
	assert_int_equal(path[1].hops, 2);
	assert_int_equal(sio_topology_paths(t, t->host[0].node, t->host[1].node, path, 4), 1);
	assert_int_equal(sio_topology_paths(t, t->host[0].node, t->machine[0].node, path, 4), 0);
	sio_topology_free(t);
}

/* Beside emulated hosts: daemons take those with addresses for hosts, pictures take all. */
static void machines_stand_beside_hosts(void **state)
{
	static const char text[] =
		"cluster: c\n"
		"hosts:\n"
		"  v: { kind: machine, address: 10.0.0.1:7, adapters: [{ pci: 0000:00:10.0 }],\n"
		"       devices: { d: { type: nvme } } }\n"
		"  a: { address: 10.0.0.2:7 }\n"
		"  w: { kind: machine, devices: { e: { type: nvme } } }\n"
		"  b: { address: 10.0.0.3:7 }\n";
	struct sio_topology *t = parse_good(text);
	struct sio_path path;

	(void)state;
	assert_int_equal(t->n_hosts, 2);
	assert_int_equal(t->n_machines, 2);
	assert_string_equal(t->machine[0].adapter[0].pci, "0000:00:10.0");
	assert_false(t->machine[0].real);
	assert_int_equal(sio_topology_paths(t, 4, 8, &path, 1), 1);
	assert_null(sio_topology_host(t, 4));
	assert_string_equal(sio_topology_member(t, 4)->name, "v");
	sio_topology_include_machines(t, false);
	assert_int_equal(t->n_hosts, 3);
	assert_int_equal(t->n_machines, 1);
	assert_string_equal(t->host[0].name, "v");
	assert_string_equal(t->host[2].name, "b");
	assert_string_equal(t->machine[0].name, "w");
	assert_true(t->host[0].real);
	assert_int_equal(t->host[0].n_devices, 0);
	assert_int_equal(sio_topology_paths(t, 4, 8, &path, 1), 1);
	sio_topology_free(t);
	t = parse_good(text);
	sio_topology_include_machines(t, true);
	assert_int_equal(t->n_hosts, 4);
	assert_int_equal(t->n_machines, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(t->host[i].node, 4 * (i + 1));
	assert_int_equal(t->host[0].n_devices, 1);
	sio_topology_free(t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_who_may_do_what),
		cmocka_unit_test(reads_hosts_that_are_real),
		cmocka_unit_test(emulated_hosts_may_have_addresses),
		cmocka_unit_test(machines_stand_apart),
		cmocka_unit_test(hosts_beside_mapped_machines_have_pools),
		cmocka_unit_test(machines_are_joined),
		cmocka_unit_test(machines_stand_beside_hosts),
		cmocka_unit_test(reads_the_cluster_and_its_hosts),
		cmocka_unit_test(reads_and_joins_adapters),
		cmocka_unit_test(the_switch_that_is_meant_is_a_switch),
		cmocka_unit_test(reads_namespaces),
		cmocka_unit_test(reads_virtual_functions),
		cmocka_unit_test(reads_devices),
		cmocka_unit_test(reads_memory_devices),
		cmocka_unit_test(reads_accelerators),
		cmocka_unit_test(least_there_can_be),
		cmocka_unit_test(joins_the_adapters_that_are_meant),
		cmocka_unit_test(lays_out_every_host_differently),
		cmocka_unit_test(hosts_may_be_alike_where_the_file_says_so),
		cmocka_unit_test(the_demo_has_what_it_shows),
		cmocka_unit_test(the_manual_is_right),
		cmocka_unit_test(survives_every_failing_allocation),
	};

	if (argc != 4) {
		fprintf(stderr, "usage: %s EVERYTHING.yaml DEMO.yaml MANUAL.md\n", argv[0]);
		return 2;
	}
	everything = argv[1];
	demo = argv[2];
	manual = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
