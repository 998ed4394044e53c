/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "document.h"

static const struct {
	const char *name;
	unsigned permyriad;
} percentiles[] = {{"p50", 5000}, {"p90", 9000}, {"p99", 9900}, {"p99.9", 9990}, {"p99.99", 9999}};
#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static double rate(const struct bench *b)
{
	return b->taken ? (double)b->h.count * 1e9 / (double)b->taken : 0;
}

static struct json_object *latencies(const struct histogram *h)
{
	struct json_object *o = doc_object();

	doc_number(o, "min", h->count ? h->min : 0);
	doc_number(o, "mean", h->count ? h->sum / h->count : 0);
	for (unsigned i = 0; i < PERCENTILES; i++)
		doc_number(o, percentiles[i].name,
			   histogram_percentile(h, percentiles[i].permyriad));
	doc_number(o, "max", h->max);
	return o;
}

static struct json_object *driver(const struct smartio_nvme_counters *d)
{
	struct json_object *o = doc_object();

	doc_number(o, "submitted", d->submitted);
	doc_number(o, "completed", d->completed);
	doc_number(o, "doorbells_sq", d->doorbells_sq);
	doc_number(o, "doorbells_cq", d->doorbells_cq);
	doc_number(o, "empty_polls", d->empty_polls);
	doc_number(o, "yields", d->yields);
	doc_number(o, "interrupts", d->interrupts);
	doc_number(o, "waits_polled", d->waits_polled);
	doc_number(o, "waits_slept", d->waits_slept);
	doc_number(o, "renewals", d->renewals);
	doc_number(o, "resent", d->resent);
	doc_number(o, "unsure", d->unsure);
	doc_number(o, "aborts", d->aborts);
	doc_number(o, "overdue", d->overdue);
	return o;
}

static void print_json(const struct bench *b)
{
	struct json_object *top = doc_object(), *fabric;

	doc_string(top, "device", b->o->device);
	doc_string(top, "operation", b->o->write ? "write" : "read");
	doc_bool(top, "random", b->o->random);
	doc_number(top, "size", b->o->size);
	doc_number(top, "depth", b->depth);
	doc_number(top, "queues", b->n_more + 1);
	doc_number(top, "completed", b->h.count);
	doc_double(top, "seconds", (double)b->taken / 1e9);
	doc_double(top, "iops", rate(b));
	doc_double(top, "bytes_per_second", rate(b) * (double)b->o->size);
	doc_add(top, "latency_ns", latencies(&b->h));
	doc_number(top, "longest_gap_ns", b->gap);
	doc_add(top, "driver", driver(&b->driver));
	if (b->o->counters) {
		fabric = doc_object();
		for (unsigned i = 0; i < b->n_fabric; i++)
			doc_hex(fabric, b->fabric[i].name, b->fabric[i].value);
		doc_add(top, "fabric", fabric);
	}
	doc_print("nvme-bench", top);
}

static void print_text(const struct bench *b)
{
	printf("%s: %s %s, %" PRIu64 " bytes, depth %u\n", b->o->device,
	       b->o->random ? "random" : "sequential", b->o->write ? "writes" : "reads", b->o->size,
	       b->depth);
	if (b->n_more)
		printf("  in %u submission queues, which complete in one completion queue\n",
		       b->n_more + 1);
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
	if (b->o->hybrid)
		printf("  waits: %" PRIu64 " ended by polling, %" PRIu64 " slept\n",
		       b->driver.waits_polled, b->driver.waits_slept);
	printf("  longest time without a completion: %.3f ms; %" PRIu64
	       " queue pairs made anew, %" PRIu64 " commands sent again, of %" PRIu64
	       " nobody knows\n",
	       (double)b->gap / 1e6, b->driver.renewals, b->driver.resent, b->driver.unsure);
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
