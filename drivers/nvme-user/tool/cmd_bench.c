/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures one queue pair, or several submission queues of one completion queue, from one thread.
 * The results are times of this program.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "sisci_api.h"
#include "smartio/ext.h"

#define BATCH 32u
#define SILENCE_MS 30000u
#define SILENCE_NS (SILENCE_MS * 1000000ull)

static uint64_t next_random(struct bench *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random;
}

/* False in *ret_taken: the queue takes none just now; the place is the next one's. */
static int submit(struct bench *b, struct bench_io *io, bool *ret_taken)
{
	const uint64_t before = b->next_place;
	uint64_t place;
	int rc;

	if (b->o->random) {
		place = next_random(b) % b->places;
	} else {
		place = b->next_place;
		b->next_place = b->next_place + 1 == b->places ? 0 : b->next_place + 1;
	}
	io->start = smartio_now_ns();
	rc = smartio_nvme_submit(io->q, b->o->write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ,
				 b->first_lba + place * b->blocks, b->blocks, b->buffer,
				 (size_t)io->index * b->o->size, io);
	*ret_taken = rc == 0;
	if (rc == -EAGAIN)
		b->next_place = before;
	return rc && rc != -EAGAIN ? failed_nvme() : EXIT_OK;
}

static int sleep_for_it(struct bench *b)
{
	int rc = smartio_nvme_wait(b->q, SILENCE_MS);

	if (rc < 0)
		return failed_nvme();
	return rc ? EXIT_OK : failed("%s has not answered for 30 s", b->o->device);
}

/* Take what has completed; a command that failed ends the measurement. */
static int take(struct bench *b)
{
	struct smartio_nvme_completion c[BATCH];
	int n = smartio_nvme_poll(b->q, c, BATCH);
	uint64_t now;

	if (n < 0)
		return failed_nvme();
	if (n == 0)
		return b->o->interrupt || b->o->hybrid ? sleep_for_it(b) : EXIT_OK;
	now = smartio_now_ns();
	if (now - b->last > b->gap)
		b->gap = now - b->last;
	b->last = now;
	for (int i = 0; i < n; i++) {
		struct bench_io *io = c[i].cookie;

		if (c[i].status && c[i].status != SMARTIO_NVME_UNSURE)
			return failed("%s of %s: %s", b->o->write ? "write" : "read", b->o->device,
				      smartio_nvme_status_string(c[i].status));
		histogram_add(&b->h, now - io->start);
		b->idle[b->n_idle++] = io;
	}
	return EXIT_OK;
}

/* @count commands, or until @deadline. */
static int phase(struct bench *b, uint64_t count, uint64_t deadline)
{
	uint64_t sent = 0;
	bool open = true;
	unsigned polls = 0;
	int rc = EXIT_OK;

	b->last = smartio_now_ns();
	while (rc == EXIT_OK && (open || b->n_idle < b->depth)) {
		while (rc == EXIT_OK && open && b->n_idle && (!count || sent < count)) {
			bool taken;

			rc = submit(b, b->idle[b->n_idle - 1], &taken);
			if (!taken)
				break;
			b->n_idle--;
			sent++;
		}
		if (rc == EXIT_OK)
			rc = take(b);
		if (++polls % 1024 == 0 && smartio_now_ns() - b->last > SILENCE_NS)
			return failed("%s has not answered for 30 s", b->o->device);
		open = !interrupted && (count ? sent < count : b->last < deadline);
		if (!count && polls % 64 == 0 && smartio_now_ns() >= deadline)
			open = false;
		if (b->progress.on && b->h.count)
			progress_show(&b->progress, b->h.count);
	}
	return rc;
}

static unsigned read_counters(struct bench *b, struct smartio_counter *c)
{
	sci_error_t err;
	unsigned n = smartio_device_counters(b->fdid, c, BENCH_COUNTERS, &err);

	if (err == SCI_ERR_OK)
		return n;
	failed("no counters of %s: %s", b->o->device, smartio_last_error());
	return 0;
}

/* What is counted between two readings of the same names. */
static int count_fabric(struct bench *b, const struct smartio_counter *before, unsigned n_before)
{
	struct smartio_counter after[BENCH_COUNTERS];
	unsigned n = read_counters(b, after);

	for (unsigned i = 0; i < n; i++) {
		uint64_t was = 0;

		for (unsigned k = 0; k < n_before; k++)
			if (!strncmp(before[k].name, after[i].name, sizeof(after[i].name)))
				was = before[k].value;
		b->fabric[i] = after[i];
		/* Some are levels, which may have gone down. */
		b->fabric[i].value -= was < after[i].value ? was : after[i].value;
	}
	b->n_fabric = n;
	return n ? EXIT_OK : EXIT_FAILED;
}

static void read_driver(const struct bench *b, struct smartio_nvme_counters *ret)
{
	struct smartio_nvme_counters c;

	smartio_nvme_queue_counters(b->q, ret);
	for (uint32_t i = 0; i < b->n_more; i++) {
		smartio_nvme_queue_counters(b->more[i], &c);
		ret->submitted += c.submitted;
		ret->completed += c.completed;
		ret->doorbells_sq += c.doorbells_sq;
		ret->aborts += c.aborts;
		ret->overdue += c.overdue;
	}
}

static int measure(struct bench *b)
{
	struct smartio_counter before[BENCH_COUNTERS];
	struct smartio_nvme_counters driver;
	unsigned n = 0;
	uint64_t start;
	double seconds = b->o->seconds > 0 ? b->o->seconds : 1;
	int rc = EXIT_OK;

	if (b->o->warmup)
		rc = phase(b, b->o->warmup, 0);
	if (rc)
		return rc;
	if (b->o->counters) {
		n = read_counters(b, before);
		if (n == 0)
			return EXIT_FAILED;
	}
	read_driver(b, &driver);
	histogram_init(&b->h);
	b->gap = 0;
	start = smartio_now_ns();
	rc = phase(b, b->o->count, start + (uint64_t)(seconds * 1e9));
	b->taken = b->last - start;
	read_driver(b, &b->driver);
	b->driver.submitted -= driver.submitted;
	b->driver.completed -= driver.completed;
	b->driver.doorbells_sq -= driver.doorbells_sq;
	b->driver.doorbells_cq -= driver.doorbells_cq;
	b->driver.empty_polls -= driver.empty_polls;
	b->driver.yields -= driver.yields;
	b->driver.interrupts -= driver.interrupts;
	b->driver.waits_polled -= driver.waits_polled;
	b->driver.waits_slept -= driver.waits_slept;
	b->driver.renewals -= driver.renewals;
	b->driver.resent -= driver.resent;
	b->driver.unsure -= driver.unsure;
	if (rc == EXIT_OK && b->o->counters)
		rc = count_fabric(b, before, n);
	return rc;
}

static int set_range(struct bench *b)
{
	const struct options *o = b->o;
	uint64_t size = b->ns.blocks * b->ns.block_size, length;

	if (o->size % b->ns.block_size || o->size / b->ns.block_size > UINT32_MAX)
		return failed("size %" PRIu64 " is not a multiple of the block size, %u", o->size,
			      b->ns.block_size);
	if (o->offset % b->ns.block_size)
		return failed("offset %" PRIu64 " is not a multiple of the block size, %u",
			      o->offset, b->ns.block_size);
	if (o->offset > size || (o->has_length && o->length > size - o->offset))
		return failed("offset %" PRIu64 " + %" PRIu64 " bytes: namespace %u of %s ends at "
			      "%" PRIu64,
			      o->offset, o->has_length ? o->length : 0, o->nsid, o->device, size);
	length = o->has_length ? o->length : size - o->offset;
	b->first_lba = o->offset / b->ns.block_size;
	b->blocks = (uint32_t)(o->size / b->ns.block_size);
	b->places = length / o->size;
	if (b->places == 0)
		return failed("%" PRIu64 " bytes from offset %" PRIu64 " on have no room for one "
			      "command of %" PRIu64 "; namespace %u of %s ends at %" PRIu64,
			      length, o->offset, o->size, o->nsid, o->device, size);
	return EXIT_OK;
}

/* As many as are asked for, with an equal part of the depth each, rounded up. */
static int open_queues(struct bench *b)
{
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo), .namespace_id = b->o->nsid};
	const uint32_t n = b->o->queues ? b->o->queues : 1;

	if (n > b->depth)
		return failed("%u submission queues need a depth of as many commands, not %u", n,
			      b->depth);
	qo.sq_placement = b->o->sq_placement;
	qo.sq_device = b->o->sq_device;
	qo.flags = b->o->interrupt || b->o->hybrid ? SMARTIO_NVME_INTERRUPT : 0;
	qo.flags |= b->o->hybrid ? SMARTIO_NVME_HYBRID : 0;
	qo.poll_us = b->o->poll_us;
	qo.depth = (b->depth + n - 1) / n;
	qo.cq_depth = n > 1 ? n * qo.depth : 0;
	if (open_pair(b->o, b->n, true, &qo, &b->q))
		return EXIT_FAILED;
	qo.flags = 0;
	qo.poll_us = 0;
	qo.cq_depth = 0;
	qo.completes_in = b->q;
	for (; b->n_more < n - 1; b->n_more++)
		if (open_pair(b->o, b->n, true, &qo, &b->more[b->n_more]))
			return EXIT_FAILED;
	return EXIT_OK;
}

static int prepare(struct bench *b)
{
	uint64_t *data;
	sci_error_t err;
	size_t bytes;

	b->depth = b->o->depth ? (uint32_t)b->o->depth : 1;
	smartio_find_device(b->o->device, &b->fdid, &err);
	if (open_queues(b))
		return EXIT_FAILED;
	if (smartio_nvme_buffer_alloc(b->n, b->depth * b->o->size, &b->buffer))
		return failed_nvme();
	b->io = calloc(b->depth, sizeof(*b->io));
	b->idle = calloc(b->depth, sizeof(struct bench_io *));
	if (!b->io || !b->idle)
		return failed("no memory for %u commands: " SIO_DRIVER_MORE_MEMORY, b->depth);
	for (uint32_t i = 0; i < b->depth; i++) {
		const uint32_t of = i % (b->n_more + 1);

		b->io[i].index = i;
		b->io[i].q = of ? b->more[of - 1] : b->q;
		b->idle[b->n_idle++] = &b->io[i];
	}
	b->random = smartio_random() | 1;
	data = smartio_nvme_buffer_data(b->buffer);
	bytes = smartio_nvme_buffer_size(b->buffer);
	for (size_t i = 0; b->o->write && i < bytes / 8; i++)
		data[i] = next_random(b);
	histogram_init(&b->h);
	return EXIT_OK;
}

int cmd_bench(const struct options *o)
{
	struct bench *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return failed("no memory for a histogram: " SIO_DRIVER_MORE_MEMORY);
	b->o = o;
	rc = open_drive(o, &b->n);
	if (rc) {
		free(b);
		return rc;
	}
	rc = find_namespace(o, b->n, &b->ns);
	if (rc == EXIT_OK)
		rc = set_range(b);
	if (rc == EXIT_OK)
		rc = prepare(b);
	if (rc == EXIT_OK) {
		catch_signals(NULL);
		progress_start(&b->progress, o, "I/Os done", 0);
		rc = measure(b);
		progress_end(&b->progress);
	}
	if (rc == EXIT_OK)
		bench_print(b);
	close_drive(b->n);
	free(b->io);
	free(b->idle);
	free(b);
	return rc;
}
