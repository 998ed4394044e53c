/* SPDX-License-Identifier: BSD-2-Clause */
/* A cluster from a seed, as the text of a topology file (docs/topology.md). */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "run/run.h"

unsigned sim_few_entries, sim_few_requesters;

static char text[64 << 10];
static size_t used;
static uint64_t rng;

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void put(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text + used, sizeof(text) - used, fmt, ap);
	va_end(ap);
	assert(n >= 0 && used + (size_t)n < sizeof(text));
	used += (size_t)n;
}

static unsigned below(unsigned n)
{
	return (unsigned)(sim_draw(&rng) % n);
}

static unsigned draw_hosts(void)
{
	unsigned kind = below(20);

	if (kind < 15)
		return 2 + below(4);
	if (kind < 19)
		return 6 + below(7);
	return 13 + below(48);
}

/* A power of 2 from @least on, @kinds of them. */
static unsigned power(unsigned least, unsigned kinds)
{
	return least << below(kinds);
}

/* In one of the host's chassis, of which there are @n, or in a slot of its own. */
static void put_place(unsigned n)
{
	unsigned in = n ? below(n + 1) : 0;

	if (in)
		put(", in: c%u", in - 1);
}

static void adapter(const char *to, unsigned chassis)
{
	unsigned entries = power(32, 6);
	unsigned requesters = 4 + below(29);
	unsigned page = power(64, 3);
	unsigned width = power(1, 5), generation = 1 + below(5);

	if (sim_few_entries && entries > sim_few_entries)
		entries = sim_few_entries;
	if (sim_few_requesters && requesters > sim_few_requesters)
		requesters = sim_few_requesters;
	put("      - {to: %s, window: %uK, entries: %u, requesters: %u, width: %u, generation: %u",
	    to, entries * page, entries, requesters, width, generation);
	put_place(chassis);
	put("}\n");
}

/* Programs that have data on devices; not in the seeds of before. */
static bool places(void)
{
	return sim_has_workload("placer") || sim_has_workload("carrier");
}

/* Programs that have functions of one drive; not in the seeds of before. */
static void put_functions(bool some)
{
	unsigned n = sim_has_workload("functions") ? below(4) : 0;

	if (n || (some && sim_has_workload("functions")))
		put(", virtual_functions: %u", n ? n : 2);
}

static void device(unsigned host, unsigned i, unsigned chassis)
{
	unsigned size = 1 + below(4), block = below(2), pairs = 2 + below(5);

	/* So that programs have something to share. */
	if (sim_has_workload("sharer"))
		pairs = 1 + pairs / 4;
	put("      nvme%u-%u: {type: nvme, size: %uM, block: %u, queue_pairs: %u", host, i, size,
	    block ? 4096 : 512, pairs);
	if (below(4) == 0)
		put(", vectors: %u", below(4));
	if (below(4) == 0)
		put(", queue_entries: %u", power(4, 6));
	if (sim_has_workload("carrier") || pairs % 2)
		put(", cmb: %uK", sim_has_workload("carrier") ? 64 : 8);
	put_functions(host == 0 && i == 0);
	put_place(chassis);
	put("}\n");
}

static bool has_memory(unsigned host)
{
	return places() && (host == 0 || below(2));
}

static void memory(unsigned host, unsigned chassis)
{
	put("      mem%u: {type: memory, size: 1M", host);
	put_place(chassis);
	put("}\n");
}

/* For programs that have accelerators compute; not in the seeds of before. */
static bool has_accelerator(unsigned host)
{
	return sim_has_workload("offload") && (host == 0 || below(3) == 0);
}

/* Of 64 KiB to 1 MiB, or the most that the model can be. */
static void accelerator(unsigned host, unsigned chassis)
{
	unsigned size = power(64, 6), units = 1 + below(8), vectors = below(3);

	if (size > 1024)
		size = 4 << 20;
	put("      accel%u: {type: accelerator, size: %uK, units: %u, vectors: %u", host, size,
	    units, vectors);
	put_place(chassis);
	put("}\n");
}

/* The switches of a cascade, and links that make a tree of them, sometimes with a ring in it. */
static void draw_cascade(unsigned switches)
{
	put("switches: [sw0");
	for (unsigned i = 1; i < switches; i++)
		put(", sw%u", i);
	put("]\nlinks:\n");
	for (unsigned i = 1; i < switches; i++) {
		unsigned to = below(i), width = power(1, 5), generation = 1 + below(5);

		put("  - {from: sw%u, to: sw%u, width: %u, generation: %u}\n", i, to, width,
		    generation);
	}
	if (below(2))
		put("  - {from: sw%u, to: sw0}\n", switches - 1);
	put("hosts:\n");
}

/* Programs that want two ways between all hosts. */
static bool has_ways(void)
{
	return sim_has_workload("ways") || sim_has_pullers();
}

/* Chassis of a host of a cascade, each in a slot or in one before it. Return: how many. */
static unsigned draw_chassis(void)
{
	unsigned n = sim_options.cascade ? below(4) : 0;

	if (n)
		put("    chassis:\n");
	for (unsigned i = 0; i < n; i++) {
		unsigned in = below(i + 1), width = power(1, 5), generation = 1 + below(5);

		put("      c%u: {width: %u, generation: %u", i, width, generation);
		if (in)
			put(", in: c%u", in - 1);
		put("}\n");
	}
	return n;
}

static void draw_adapters(unsigned adapters, unsigned switches, unsigned chassis)
{
	bool ways = has_ways();
	char to[8];

	if (sim_options.cascade) {
		/* Of two the nearer to what is in the same chassis is taken. */
		for (unsigned n = 1 + below(2); n > 0; n--) {
			snprintf(to, sizeof(to), "sw%u", below(switches));
			adapter(to, chassis);
		}
		return;
	}
	/* All are joined by the first switch, but in one cluster of eight some are not. */
	if (switches > 1 && below(8) == 0 && !ways)
		adapter("sw1", 0);
	else
		adapter("sw0", 0);
	if (adapters == 2 || ways)
		adapter("sw1", 0);
}

static void draw_host(unsigned i, unsigned hosts, unsigned switches)
{
	unsigned ram = power(4, 4);
	unsigned devices = below(3) == 0 || (i == 0 && below(4) > 0) ? 1 + below(2) : 0;
	unsigned adapters = switches > 1 && below(2) ? 2 : 1, chassis;
	bool with_memory = has_memory(i), with_accelerator = has_accelerator(i);

	/* Two drives, of two hosts or of one. */
	if (i == 0 && sim_has_workload("peers"))
		devices = 2;
	if (i == 0 && devices == 0 && (places() || sim_has_workload("functions")))
		devices = 1;
	/* Guests are there to borrow, too. */
	if (i + 1 == hosts && devices == 0 && sim_has_workload("guest"))
		devices = 1;

	/* Sixty hosts' memory is not to be this machine's. */
	if (hosts > 12)
		ram = 4;
	put("  h%u:\n    ram: %uM\n    iommu: %s\n", i, ram, below(2) ? "on" : "off");
	chassis = draw_chassis();
	put("    adapters:\n");
	draw_adapters(adapters, switches, chassis);
	if (devices || with_memory || with_accelerator)
		put("    devices:\n");
	for (unsigned k = 0; k < devices; k++)
		device(i, k, chassis);
	if (with_memory)
		memory(i, chassis);
	if (with_accelerator)
		accelerator(i, chassis);
}

const char *sim_draw_cluster(uint64_t seed, unsigned hosts)
{
	unsigned switches, drawn;

	used = 0;
	rng = seed * 0x9e3779b97f4a7c15ull + 1;
	drawn = draw_hosts();
	switches = below(3) == 0 ? 2 : 1;
	if (hosts == 0)
		hosts = drawn;
	if (sim_outliving) /* nothing leads from one to another */
		hosts = 1;
	sim_programs_choose(hosts);
	put("cluster: sim\n");
	put("payload: %u\n", power(128, 3));
	put("read_request: %u\n", power(128, 4));
	put("completion_boundary: %u\n", power(64, 2));
	if (has_ways())
		switches = 2;
	if (sim_options.cascade)
		draw_cascade(switches = 2 + below(5));
	else
		put("apart: on\nswitches: [%s]\nhosts:\n", switches == 2 ? "sw0, sw1" : "sw0");
	for (unsigned i = 0; i < hosts; i++)
		draw_host(i, hosts, switches);
	if (below(2))
		put("multicast: exact\n");
	return text;
}
