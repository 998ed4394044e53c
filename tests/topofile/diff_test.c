/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between two files: nothing if they say the same, however it is written; else exactly
 * what was changed, and the other way round as much of it gone as was new.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/topodiff.h"
#include "topofile/topofile.h"
#include "../core/prng.h"

#define HOSTS 4
#define DEVICES 3
#define RULES 5
#define TEXT 4096

/* A cluster that can be written, and changed in one thing. */
struct model {
	struct {
		bool there;
		unsigned ram, width;
		struct {
			bool there;
			unsigned pairs;
		} device[DEVICES];
	} host[HOSTS];
	struct {
		unsigned device, node; /* host that may have it */
	} rule[RULES];
	unsigned n_rules, borrows; /* 0: no limit */
	bool open, iommu;
};

struct told {
	unsigned n, what[SIO_TOPO_WHATS][3], cables, chassis, adapters;
	char text[SIO_TOPO_CHANGE_TEXT]; /* the last */
};

static void tell(void *ctx, const struct sio_topo_change *c)
{
	struct told *t = ctx;

	t->n++;
	t->what[c->what][c->how]++;
	t->cables += sio_topology_is_cable(c);
	t->chassis += sio_topology_is_chassis(c);
	t->adapters += sio_topology_is_adapter(c);
	memcpy(t->text, c->text, sizeof(t->text));
}

static void put(char *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(char *out, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, TEXT - len, fmt, ap);
	va_end(ap);
	assert_true(strlen(out) < TEXT - 1);
}

static void write_host(const struct model *m, unsigned i, char *out)
{
	put(out,
	    "  h%u: { node: %u, ram: %uM, ram_base: %uG, iommu: %s,\n"
	    "    adapters: [{ to: sw0, window: 64M, entries: 64, width: %u, window_base: %uG }]",
	    i, 4 * i + 4, m->host[i].ram, 16 * i + 16, m->iommu ? "on" : "off", m->host[i].width,
	    16 * i + 20);
	put(out, ", devices: {");
	for (unsigned k = 0; k < DEVICES; k++)
		if (m->host[i].device[k].there)
			put(out,
			    " d%u%u: { type: nvme, vectors: 4, slot: %u, bar_base: %uG, queue_pairs: %u },",
			    i, k, k + 1, 16 * i + 24 + k, m->host[i].device[k].pairs);
	put(out, " } }\n");
}

/* @other: the same in other words and another order. */
static struct sio_topology *parse(const struct model *m, bool other)
{
	char text[TEXT] = "";
	struct sio_topology *t;
	struct sio_err err;

	put(text, "%scluster: c\nswitches: [sw0]\nhosts:\n", other ? "# other words\n\n" : "");
	for (unsigned i = 0; i < HOSTS; i++) {
		unsigned at = other ? HOSTS - 1 - i : i;

		if (m->host[at].there)
			write_host(m, at, text);
	}
	put(text, "access:\n  between_machines: %s\n  rules: [", m->open ? "open" : "closed");
	for (unsigned i = 0; i < m->n_rules; i++)
		put(text, " { segments: %u, nodes: [%u] },", m->rule[i].device,
		    4 * m->rule[i].node + 4);
	put(text, " ]\n");
	if (m->borrows)
		put(text, "quotas: { node: { borrows: %u } }\n", m->borrows);
	if (sio_topofile_parse("model", text, strlen(text), &t, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	return t;
}

static struct told diff(const struct model *a, const struct model *b)
{
	struct sio_topology *old = parse(a, false), *new = parse(b, true);
	struct told t = {.n = 0};

	sio_topology_diff(old, new, tell, &t);
	sio_topology_free(old);
	sio_topology_free(new);
	return t;
}

static struct model draw(void)
{
	struct model m = {.n_rules = (unsigned)(prng() % RULES),
			  .borrows = (unsigned)(prng() % 3),
			  .open = prng() % 2,
			  .iommu = prng() % 2};

	for (unsigned i = 0; i < HOSTS; i++) {
		m.host[i].there = i == 0 || prng() % 3;
		m.host[i].ram = 64 + (unsigned)(prng() % 3) * 64;
		m.host[i].width = 4u << prng() % 2;
		for (unsigned k = 0; k < DEVICES; k++) {
			m.host[i].device[k].there = prng() % 2;
			m.host[i].device[k].pairs = 1 + (unsigned)(prng() % 9);
		}
	}
	for (unsigned i = 0; i < m.n_rules; i++) { /* each once */
		m.rule[i].device = i;
		m.rule[i].node = 0;
	}
	return m;
}

/* One thing is another. Return: what is told of it, and how. */
static enum sio_topo_what change(struct model *m, enum sio_topo_how *ret)
{
	unsigned i = 1 + (unsigned)(prng() % (HOSTS - 1)), k = (unsigned)(prng() % DEVICES);

	*ret = SIO_TOPO_CHANGED;
	switch (prng() % 8) {
	case 0:
		m->host[i].there = !m->host[i].there;
		*ret = m->host[i].there ? SIO_TOPO_ADDED : SIO_TOPO_REMOVED;
		return SIO_TOPO_HOST;
	case 1:
		m->host[0].ram += 64;
		return SIO_TOPO_HOST;
	case 2:
		m->host[0].width = m->host[0].width == 4 ? 8 : 4;
		return SIO_TOPO_ADAPTER;
	case 3:
		m->host[0].device[k].there = !m->host[0].device[k].there;
		*ret = m->host[0].device[k].there ? SIO_TOPO_ADDED : SIO_TOPO_REMOVED;
		return SIO_TOPO_DEVICE;
	case 4:
		m->host[0].device[k].there = true;
		m->host[0].device[k].pairs++;
		return SIO_TOPO_DEVICE;
	case 5:
		m->open = !m->open;
		return SIO_TOPO_ACCESS;
	case 6:
		m->borrows = m->borrows ? 0 : 7;
		return SIO_TOPO_QUOTA;
	default:
		*ret = SIO_TOPO_ADDED;
		m->rule[m->n_rules].device = RULES + 1;
		m->rule[m->n_rules++].node = 0;
		return SIO_TOPO_RULE;
	}
}

static void what_says_the_same_does_not_differ(void **state)
{
	unsigned rounds = prng_start(7, 200);

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		struct model m = draw();
		struct told t = diff(&m, &m);

		if (t.n)
			fail_msg("%s", t.text);
	}
}

static void what_is_changed_is_told(void **state)
{
	unsigned seen[SIO_TOPO_WHATS] = {0};
	unsigned rounds = prng_start(9, 600);

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		struct model a = draw(), b = a;
		enum sio_topo_how how, back;
		enum sio_topo_what what;
		struct told there, here;

		a.host[0].device[0].there = b.host[0].device[0].there = true;
		what = change(&b, &how);
		if (what == SIO_TOPO_DEVICE && how == SIO_TOPO_CHANGED)
			for (unsigned k = 0; k < DEVICES; k++)
				a.host[0].device[k].there |= b.host[0].device[k].there;
		there = diff(&a, &b);
		here = diff(&b, &a);
		back = how == SIO_TOPO_ADDED	 ? SIO_TOPO_REMOVED
		       : how == SIO_TOPO_REMOVED ? SIO_TOPO_ADDED
						 : how;
		assert_int_equal(there.n, 1);
		assert_int_equal(there.what[what][how], 1);
		assert_int_equal(here.n, 1);
		assert_int_equal(here.what[what][back], 1);
		seen[what]++;
	}
	assert_true(seen[SIO_TOPO_HOST] && seen[SIO_TOPO_ADAPTER] && seen[SIO_TOPO_DEVICE] &&
		    seen[SIO_TOPO_ACCESS] && seen[SIO_TOPO_QUOTA] && seen[SIO_TOPO_RULE]);
}

/* Any two: as much is new one way as is gone the other way. */
static void it_is_the_same_both_ways(void **state)
{
	unsigned rounds = prng_start(11, 300);

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		struct model a = draw(), b = draw();
		struct told there = diff(&a, &b), here = diff(&b, &a);

		for (unsigned w = 0; w < SIO_TOPO_WHATS; w++) {
			assert_int_equal(there.what[w][SIO_TOPO_ADDED],
					 here.what[w][SIO_TOPO_REMOVED]);
			assert_int_equal(there.what[w][SIO_TOPO_REMOVED],
					 here.what[w][SIO_TOPO_ADDED]);
			assert_int_equal(there.what[w][SIO_TOPO_CHANGED],
					 here.what[w][SIO_TOPO_CHANGED]);
		}
	}
}

static struct sio_topology *parse_text(const char *text)
{
	struct sio_topology *t;
	struct sio_err err;

	if (sio_topofile_parse("text", text, strlen(text), &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

static struct told diff_texts(const char *a, const char *b)
{
	struct sio_topology *old = parse_text(a), *new = parse_text(b);
	struct told t = {.n = 0};

	sio_topology_diff(old, new, tell, &t);
	sio_topology_free(old);
	sio_topology_free(new);
	return t;
}

static void assert_told(const char *a, const char *b, const char *want)
{
	struct told t = diff_texts(a, b);

	assert_int_equal(t.n, 1);
	assert_string_equal(t.text, want);
}

#define HEAD "cluster: c\nhosts: { a: { devices: { n: { type: nvme } } }, b: , c: }\n"

static void it_says_what_and_where(void **state)
{
	(void)state;
	assert_told(HEAD, HEAD "access: { rules: [{ device: n, nodes: [b], users: [al, 7] }] }\n",
		    "line 3: rule is new: device n: nodes 8; users al, 7");
	assert_told(HEAD "access: { rules: [{ segments: 16-31, host: a, nodes: all }] }\n", HEAD,
		    "line 3: rule is gone: segments 0x10-0x1f of node 4: all nodes");
	assert_told(
		HEAD "access: { rules: [{ device: n, nodes: [b] }, { device: all, nodes: [] }] }\n",
		HEAD "access: { rules: [{ device: all, nodes: [] }, { device: n, nodes: [b] }] }\n",
		"the order of the rules is another");
	assert_told(HEAD "quotas: { program: { dma: 1M } }\n", HEAD,
		    "quotas.program.dma is without limit, was 1048576");
	assert_told(HEAD, "cluster: c\nhosts: { a: { devices: { n: { type: nvme } } }, b: }\n",
		    "host 'c' is gone");
	assert_told(
		HEAD,
		"cluster: c\nhosts: { a: { devices: { n: { type: nvme, cmb: 64K } } }, b: , c: }\n",
		"device a/n: cmb is 65536, was 0");
}

#define HOSTS_OF(a) "cluster: c\nswitches: [sw0]\nhosts: { a: { " a " } }\n"
#define ADAPTER(more) HOSTS_OF("adapters: [{ to: sw0, window: 64M, window_base: 16G, " more " }]")
#define DRIVE(more) HOSTS_OF("devices: { n: { type: nvme, slot: 1, bar_base: 16G, " more " } }")
#define CHASSIS(more) HOSTS_OF("chassis: { y: { " more " } }")
#define SWITCH(more) "cluster: c\nswitches: [{ name: sw0, " more " }]\nhosts: { a: }\n"

/* A file with one or the other value of a key; %s: where it is. */
static const struct {
	const char *format, *old, *new, *key;
} of_key[] = {
	{"cluster: %s\nhosts: { a: }\n", "c", "d", "cluster"},
	{"cluster: c\nhosts: { a: }\n%s", "", "payload: 512\n", "payload"},
	{"cluster: c\nhosts: { a: }\n%s", "", "read_request: 1024\n", "read_request"},
	{"cluster: c\nhosts: { a: }\n%s", "", "completion_boundary: 128\n", "completion_boundary"},
	{"cluster: c\nhosts: { a: }\n%s", "", "multicast: exact\n", "exact multicast"},
	{HOSTS_OF("node: %s"), "4", "8", "node"},
	{HOSTS_OF("ram_base: 16G, ram: %s"), "64M", "128M", "ram"},
	{HOSTS_OF("ram_base: %s"), "16G", "32G", "ram_base"},
	{HOSTS_OF("iommu: %s"), "off", "on", "iommu"},
	{HOSTS_OF("adapters: [{ to: sw0, window: 64M, entries: 64, window_base: %s }]"), "16G",
	 "32G", "window_base"},
	{HOSTS_OF("adapters: [{ to: sw0, window: %s, entries: 64, window_base: 16G }]"), "64M",
	 "128M", "window"},
	{ADAPTER("entries: %s"), "64", "128", "entries"},
	{ADAPTER("requesters: %s"), "8", "16", "requesters"},
	{ADAPTER("width: %s"), "4", "8", "width"},
	{ADAPTER("generation: %s"), "3", "4", "generation"},
	{ADAPTER("latency: %s"), "100", "200", "latency"},
	{"cluster: c\nswitches: [sw0, sw1]\napart: on\n"
	 "hosts: { a: { adapters: [{ to: %s }] }, b: { adapters: [{ to: sw0 }, { to: sw1 }] } }",
	 "sw0", "sw1", "to"},
	{HOSTS_OF("devices: { n: { type: nvme, bar_base: 16G, slot: %s } }"), "1", "2", "slot"},
	{HOSTS_OF("devices: { n: { type: nvme, slot: 1, bar_base: %s } }"), "16G", "32G",
	 "bar_base"},
	{"cluster: c\nswitches: [{ name: sw0, ports: 8, lanes: 8 }]\n"
	 "hosts: { a: { adapters: [{ to: sw0.%s }] } }\n",
	 "0", "1", "port"},
	{"cluster: c\nhosts: { a: { address: '10.0.0.1:7000', "
	 "adapters: [{ to: b, pci: '0000:0%s:00.0' }] }, "
	 "b: { address: '10.0.0.2:7000', adapters: [{ to: a, pci: '0000:05:00.0' }] } }\n",
	 "5", "6", "pci"},
	{DRIVE("virtual_functions: %s"), "1", "2", "virtual_functions"},
	{DRIVE("size: %s"), "64M", "128M", "size"},
	{DRIVE("size: 1M, file: /%s"), "a", "b", "file"},
	{DRIVE("block: %s"), "512", "4096", "block"},
	{DRIVE("vectors: 9, queue_pairs: %s"), "4", "5", "queue_pairs"},
	{DRIVE("queue_entries: %s"), "64", "128", "queue_entries"},
	{DRIVE("cmb: %s"), "64K", "128K", "cmb"},
	{DRIVE("vectors: %s"), "4", "5", "vectors"},
	{DRIVE("dma_bits: %s"), "64", "40", "dma_bits"},
	{DRIVE("reset: %s"), "function", "bus", "reset"},
	{DRIVE("width: %s"), "4", "8", "width"},
	{DRIVE("generation: %s"), "3", "4", "generation"},
	{DRIVE("serial: %s"), "S1", "S2", "serial"},
	{HOSTS_OF("devices: { m: { type: accelerator, slot: 1, bar_base: 16G, units: %s } }"), "2",
	 "4", "units"},
	{CHASSIS("ports: %s"), "4", "8", "ports"},
	{CHASSIS("ports: 8, lanes: %s"), "8", "16", "lanes"},
	{CHASSIS("width: %s"), "4", "8", "width"},
	{CHASSIS("generation: %s"), "3", "4", "generation"},
	{CHASSIS("aperture: %s"), "64M", "128M", "aperture"},
	{CHASSIS("latency: %s"), "100", "200", "latency"},
	{SWITCH("ports: %s"), "4", "8", "ports"},
	{SWITCH("ports: 8, lanes: %s"), "8", "16", "lanes"},
	{SWITCH("latency: %s"), "100", "200", "latency"},
};

/* Nothing else is told, and it is called by its key. */
static void every_key_is_told(void **state)
{
	char old[TEXT], new[TEXT], word[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(of_key) / sizeof(of_key[0]); i++) {
		struct told t;

		old[0] = new[0] = '\0';
		put(old, of_key[i].format, of_key[i].old);
		put(new, of_key[i].format, of_key[i].new);
		snprintf(word, sizeof(word), ": %s is ", of_key[i].key);
		t = diff_texts(old, new);
		if (t.n != 1 || !strstr(t.text, word))
			fail_msg("%s: %u told, the last: %s", of_key[i].key, t.n, t.text);
	}
}

#define TWO                                                                                        \
	"cluster: c\nswitches: [x, y, z]\napart: on\nlinks: [{ from: x, to: y }%s]\n"              \
	"hosts: { a: { adapters: [{ to: x, width: 4 }] }, b: { adapters: [{ to: y }] } }\n"

#define BOXES(more) HOSTS_OF("chassis: { y: , " more " }")

/* Whatever of them changes but what they are in, and nothing of what is in them. */
static void chassis_are_told_apart(void **state)
{
	static const struct {
		const char *format, *old, *new;
		unsigned chassis;
	} row[] = {
		{BOXES("%s"), "", "z: { in: y }", 1},
		{CHASSIS("width: %s"), "4", "8", 1},
		{CHASSIS("aperture: %s"), "64M", "128M", 1},
		{BOXES("z: { aperture: 64M%s }"), "", ", in: y", 0},
		{HOSTS_OF("chassis: { y: { aperture: 1G }, z: { aperture: 1G } }, "
			  "adapters: [{ window: 64M, window_base: 64G, in: %s }]"),
		 "y", "z", 0},
	};
	char old[TEXT], new[TEXT];

	(void)state;
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct told t, back;

		old[0] = new[0] = '\0';
		put(old, row[i].format, row[i].old);
		put(new, row[i].format, row[i].new);
		t = diff_texts(old, new);
		back = diff_texts(new, old);
		if (t.n != 1 || back.n != 1 || t.chassis != row[i].chassis ||
		    back.chassis != row[i].chassis)
			fail_msg("%s: %u and %u told, %u and %u of chassis", new, t.n, back.n,
				 t.chassis, back.chassis);
	}
}

/* Whether they are there, and what they are. */
static void adapters_are_told_apart(void **state)
{
	static const struct {
		const char *format, *old, *new;
		unsigned adapters;
	} row[] = {
		{HOSTS_OF("adapters: [{ requesters: %s }]"), "8", "9", 1},
		{HOSTS_OF("adapters: [{ window: 64M, window_base: %s }]"), "64G", "65G", 1},
		{HOSTS_OF("adapters: [{ window: 64M, window_base: 64G, entries: %s }]"), "64",
		 "128", 1},
		{HOSTS_OF("chassis: { y: { aperture: 1G }, z: { aperture: 1G } }, "
			  "adapters: [{ window: 64M, window_base: 64G, in: %s }]"),
		 "y", "z", 1},
		{HOSTS_OF("adapters: [{ width: %s }]"), "4", "8", 0},
		{CHASSIS("width: %s"), "4", "8", 0},
	};
	char old[TEXT], new[TEXT];

	(void)state;
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct told t, back;

		old[0] = new[0] = '\0';
		put(old, row[i].format, row[i].old);
		put(new, row[i].format, row[i].new);
		t = diff_texts(old, new);
		back = diff_texts(new, old);
		if (t.n != 1 || back.n != 1 || t.adapters != row[i].adapters ||
		    back.adapters != row[i].adapters)
			fail_msg("%s: %u and %u told, %u and %u of adapters", new, t.n, back.n,
				 t.adapters, back.adapters);
	}
}

/* What leads where, and nothing of what an adapter is. */
static void cables_are_told_apart(void **state)
{
	static const struct {
		const char *format, *old, *new;
		unsigned told, cables;
	} row[] = {
		{TWO, "", ", { from: y, to: z }", 1, 1},
		{TWO, ", { from: y, to: z, width: 4 }", ", { from: y, to: z, width: 8 }", 2, 2},
		{ADAPTER("width: %s"), "4", "8", 1, 1},
		{ADAPTER("generation: %s"), "3", "4", 1, 1},
		{ADAPTER("latency: %s"), "100", "200", 1, 1},
		{ADAPTER("entries: %s"), "64", "128", 1, 0},
		{ADAPTER("requesters: %s"), "8", "16", 1, 0},
		{SWITCH("ports: %s"), "4", "8", 1, 1},
		{CHASSIS("width: %s"), "4", "8", 1, 0},
		{DRIVE("width: %s"), "4", "8", 1, 0},
		{"cluster: c\nswitches: [x%s]\nhosts: { a: { adapters: [{ to: x }] } }\n", "",
		 ", y", 1, 1},
		{"cluster: c\nswitches: [x, y]\nhosts: { a: { adapters: [{ to: x }%s] } }\n", "",
		 ", { to: y }", 1, 0},
		{"cluster: c\nhosts: { a: { adapters: [{ to: %s }] }, b: { adapters: [{ to: a }] }, "
		 "c: { adapters: [{ to: d }] }, d: { adapters: [{ to: c }] } }\napart: on\n",
		 "b", "b.0", 0, 0},
	};
	char old[TEXT], new[TEXT];

	(void)state;
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct told t;

		old[0] = new[0] = '\0';
		put(old, row[i].format, row[i].old);
		put(new, row[i].format, row[i].new);
		t = diff_texts(old, new);
		if (t.n != row[i].told || t.cables != row[i].cables)
			fail_msg("%s: %u told, of which %u are of cables; the last: %s", new, t.n,
				 t.cables, t.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_says_the_same_does_not_differ),
		cmocka_unit_test(what_is_changed_is_told),
		cmocka_unit_test(it_is_the_same_both_ways),
		cmocka_unit_test(it_says_what_and_where),
		cmocka_unit_test(every_key_is_told),
		cmocka_unit_test(cables_are_told_apart),
		cmocka_unit_test(chassis_are_told_apart),
		cmocka_unit_test(adapters_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
