/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include <json-c/json.h>

#include "bench.h"

static const struct {
	const char *name;
	unsigned permyriad;
} percentiles[] = {{"p50", 5000}, {"p90", 9000}, {"p99", 9900}, {"p99.9", 9990}, {"p99.99", 9999}};
#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static double rate(const struct bench *b)
{
	return b->taken ? (double)b->h.count * 1e9 / (double)b->taken : 0;
}

static void put(struct json_object *to, const char *key, uint64_t value)
{
	json_object_object_add(to, key, json_object_new_uint64(value));
}

static struct json_object *latencies(const struct histogram *h)
{
	struct json_object *o = json_object_new_object();

	put(o, "min", h->count ? h->min : 0);
	put(o, "mean", h->count ? h->sum / h->count : 0);
	for (unsigned i = 0; i < PERCENTILES; i++)
		put(o, percentiles[i].name, histogram_percentile(h, percentiles[i].permyriad));
	put(o, "max", h->max);
	return o;
}

static struct json_object *driver(const struct smartio_nvme_counters *d)
{
	struct json_object *o = json_object_new_object();

	put(o, "submitted", d->submitted);
	put(o, "completed", d->completed);
	put(o, "doorbells_sq", d->doorbells_sq);
	put(o, "doorbells_cq", d->doorbells_cq);
	put(o, "empty_polls", d->empty_polls);
	put(o, "yields", d->yields);
	put(o, "interrupts", d->interrupts);
	return o;
}

static void print_json(const struct bench *b)
{
	struct json_object *top = json_object_new_object(), *fabric;

	json_object_object_add(top, "device", json_object_new_string(b->o->device));
	json_object_object_add(top, "operation",
			       json_object_new_string(b->o->write ? "write" : "read"));
	json_object_object_add(top, "random", json_object_new_boolean(b->o->random));
	put(top, "size", b->o->size);
	put(top, "depth", b->depth);
	put(top, "completed", b->h.count);
	json_object_object_add(top, "seconds", json_object_new_double((double)b->taken / 1e9));
	json_object_object_add(top, "iops", json_object_new_double(rate(b)));
	json_object_object_add(top, "bytes_per_second",
			       json_object_new_double(rate(b) * (double)b->o->size));
	json_object_object_add(top, "latency_ns", latencies(&b->h));
	json_object_object_add(top, "driver", driver(&b->driver));
	if (b->o->counters) {
		fabric = json_object_new_object();
		for (unsigned i = 0; i < b->n_fabric; i++)
			put(fabric, b->fabric[i].name, b->fabric[i].value);
		json_object_object_add(top, "fabric", fabric);
	}
	printf("%s\n", json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY));
	json_object_put(top);
}

static void print_text(const struct bench *b)
{
	printf("%s: %s %s, %" PRIu64 " bytes, depth %u\n", b->o->device,
	       b->o->random ? "random" : "sequential", b->o->write ? "writes" : "reads", b->o->size,
	       b->depth);
	printf("  %" PRIu64 " in %.3f s: %.0f per second, %.1f MB/s\n", b->h.count,
	       (double)b->taken / 1e9, rate(b), rate(b) * (double)b->o->size / 1e6);
	printf("  latency, us (of this program; no hardware is imitated)\n");
	printf("    min %.2f  mean %.2f", (double)(b->h.count ? b->h.min : 0) / 1e3,
	       b->h.count ? (double)b->h.sum / (double)b->h.count / 1e3 : 0);
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf("  %s %.2f", percentiles[i].name,
		       (double)histogram_percentile(&b->h, percentiles[i].permyriad) / 1e3);
	printf("  max %.2f\n", (double)b->h.max / 1e3);
	printf("  driver: %" PRIu64 " submission and %" PRIu64 " completion doorbells, %" PRIu64
	       " empty polls, %" PRIu64 " yields, %" PRIu64 " interrupts\n",
	       b->driver.doorbells_sq, b->driver.doorbells_cq, b->driver.empty_polls,
	       b->driver.yields, b->driver.interrupts);
	for (unsigned i = 0; i < b->n_fabric; i++)
		printf("  counted at the drive: %-20s %" PRIu64 "\n", b->fabric[i].name,
		       b->fabric[i].value);
}

void bench_print(const struct bench *b)
{
	if (b->o->json)
		print_json(b);
	else
		print_text(b);
}
