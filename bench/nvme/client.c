/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the drive: the installed NVMe library, one queue pair, one thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BENCH_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT (void)0
#endif

#include "loop.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define FILL_CHUNK (1u << 20)

struct client {
	struct smartio_nvme *n;
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *buffer;
	unsigned fdid;
	uint32_t depth, length, blocks; /* of the queue that is open */
	uint32_t flags;			/* of queues: 0: their completions are polled for */
	struct bench_loop loop;
};

static void check(int rc, const char *what)
{
	if (rc < 0)
		bench_fail("%s: %s", what, smartio_nvme_error());
}

static inline void submit(void *ctx, uint32_t slot, uint64_t place)
{
	struct client *c = ctx;

	check(smartio_nvme_submit(c->q, SMARTIO_NVME_READ, place * c->blocks, c->blocks, c->buffer,
				  (size_t)slot * c->length, (void *)(uintptr_t)slot),
	      "submit");
}

static inline int poll(void *ctx, uint32_t *slots, unsigned max)
{
	struct smartio_nvme_completion done[BENCH_BATCH];
	struct client *c = ctx;
	int n = smartio_nvme_poll(c->q, done, max);

	check(n, "poll");
	for (int i = 0; i < n; i++) {
		if (done[i].status)
			bench_fail("read: %s", smartio_nvme_status_string(done[i].status));
		slots[i] = (uint32_t)(uintptr_t)done[i].cookie;
	}
	return n;
}

static const struct bench_loop_ops ops = {submit, poll};

/* As poll(), of a queue whose completions are waited for. */
static int await(void *ctx, uint32_t *slots, unsigned max)
{
	struct client *c = ctx;
	int n;

	while ((n = poll(ctx, slots, max)) == 0) {
		n = smartio_nvme_wait(c->q, (uint32_t)(BENCH_SILENCE_NS / 1000000));
		check(n, "wait");
		if (n == 0)
			bench_fail("no completion for 30 s");
	}
	return n;
}

static const struct bench_loop_ops waiting_ops = {submit, await};

static void close_queue(struct client *c)
{
	smartio_nvme_queue_close(c->q);
	smartio_nvme_buffer_free(c->buffer);
	c->q = NULL;
	c->buffer = NULL;
}

/* A queue pair and data memory for @depth reads of @length bytes; the last ones if they fit. */
static void open_queue(struct client *c, uint64_t depth, uint64_t length)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = (uint32_t)depth, .flags = c->flags};

	if (depth < 1 || depth > BENCH_MAX_DEPTH || length % c->ns.block_size || !length ||
	    length > 1u << 20)
		bench_fail("depth 1 to %u, length a multiple of %u up to 1 MiB are right",
			   BENCH_MAX_DEPTH, c->ns.block_size);
	if (c->q && c->depth == depth && c->length == length)
		return;
	close_queue(c);
	check(smartio_nvme_queue_open(c->n, &o, &c->q), "queue");
	check(smartio_nvme_buffer_alloc(c->n, depth * length, &c->buffer), "buffer");
	memset(smartio_nvme_buffer_data(c->buffer), 0, smartio_nvme_buffer_size(c->buffer));
	c->depth = (uint32_t)depth;
	c->length = (uint32_t)length;
	c->blocks = (uint32_t)(length / c->ns.block_size);
}

/* Pages of the drive that nobody wrote are all the same one of the kernel's, and in the cache. */
static void fill(struct client *c, uint64_t bytes)
{
	uint64_t *data = malloc(FILL_CHUNK);

	if (!data)
		bench_fail("no memory");
	open_queue(c, 32, 4096);
	for (uint64_t at = 0; at < bytes; at += FILL_CHUNK) {
		for (size_t i = 0; i < FILL_CHUNK / 8; i++)
			data[i] = (at / 8 + i) * 0x9e3779b97f4a7c15u;
		check(smartio_nvme_write(c->q, data, at, FILL_CHUNK), "write");
	}
	free(data);
	printf("{\"role\":\"client\"");
	bench_end_answer();
}

static void run(struct client *c, const struct bench_command *command)
{
	struct smartio_nvme_counters was, is;
	struct bench_usage before;

	open_queue(c, command->arg[0], command->arg[1]);
	bench_loop_init(&c->loop, c->depth, command->arg[5] / c->length);
	c->loop.from = command->arg[2];
	c->loop.until = command->arg[3];
	c->loop.stop = command->arg[4];
	smartio_nvme_queue_counters(c->q, &was);
	before = bench_usage();
	if (c->flags)
		bench_loop_run(&c->loop, c, waiting_ops);
	else
		bench_loop_run(&c->loop, c, ops);
	smartio_nvme_queue_counters(c->q, &is);
	printf("{\"role\":\"client\",");
	bench_print_histogram(&c->loop.h);
	bench_print_usage(before);
	printf(",\"submitted\":%" PRIu64 ",\"doorbells_sq\":%" PRIu64 ",\"doorbells_cq\":%" PRIu64
	       ",\"yields\":%" PRIu64 ",\"waits_polled\":%" PRIu64 ",\"waits_slept\":%" PRIu64,
	       is.submitted - was.submitted, is.doorbells_sq - was.doorbells_sq,
	       is.doorbells_cq - was.doorbells_cq, is.yields - was.yields,
	       is.waits_polled - was.waits_polled, is.waits_slept - was.waits_slept);
	bench_end_answer();
}

/* Single reads, each after a sleep. */
static void first(struct client *c, const struct bench_command *command)
{
	open_queue(c, 32, 4096);
	bench_loop_init(&c->loop, 1, command->arg[2] / c->length);
	for (uint64_t i = 0; i < command->arg[0]; i++) {
		bench_sleep(command->arg[1]);
		bench_loop_one(&c->loop, c, ops);
	}
	printf("{\"role\":\"client\",");
	bench_print_histogram(&c->loop.h);
	bench_end_answer();
}

/* Reads that the drive has done, by its own count; they are complete by then. */
static uint64_t drive_reads(const struct client *c)
{
	struct smartio_counter counter[64];
	sci_error_t err;
	unsigned n = smartio_device_counters(c->fdid, counter, 64, &err);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(counter[i].name, "commands_read"))
			return counter[i].value;
	bench_fail("no counter commands_read: %s", smartio_last_error());
}

/* A batch whose completions are all there before the one poll; @collect: under callgrind. */
static void calm_batch(struct client *c, uint32_t n, bool collect)
{
	struct smartio_nvme_completion done[BENCH_MAX_DEPTH];
	uint64_t before = drive_reads(c);
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t lba = bench_loop_place(&c->loop) * c->blocks;

		if (collect)
			CALLGRIND_TOGGLE_COLLECT;
		rc = smartio_nvme_submit(c->q, SMARTIO_NVME_READ, lba, c->blocks, c->buffer,
					 (size_t)i * c->length, NULL);
		if (collect)
			CALLGRIND_TOGGLE_COLLECT;
		check(rc, "submit");
	}
	if (collect)
		CALLGRIND_TOGGLE_COLLECT;
	smartio_nvme_ring(c->q);
	if (collect)
		CALLGRIND_TOGGLE_COLLECT;
	while (drive_reads(c) - before < n)
		smartio_yield();
	if (collect)
		CALLGRIND_TOGGLE_COLLECT;
	rc = smartio_nvme_poll(c->q, done, n);
	if (collect)
		CALLGRIND_TOGGLE_COLLECT;
	check(rc, "poll");
	if ((uint32_t)rc != n)
		bench_fail("a poll found %d of %u completions", rc, n);
}

/* For counting instructions: warm-up batches, then @count more between the marks. */
static void calm(struct client *c, const struct bench_command *command)
{
	struct smartio_nvme_counters was, is;

	open_queue(c, command->arg[0], 4096);
	bench_loop_init(&c->loop, c->depth, command->arg[2] / c->length);
	for (unsigned i = 0; i < 8; i++)
		calm_batch(c, c->depth, false);
	smartio_nvme_queue_counters(c->q, &was);
	for (uint64_t i = 0; i < command->arg[1]; i++)
		calm_batch(c, c->depth, true);
	smartio_nvme_queue_counters(c->q, &is);
	printf("{\"role\":\"client\",\"submitted\":%" PRIu64 ",\"doorbells_sq\":%" PRIu64
	       ",\"doorbells_cq\":%" PRIu64,
	       is.submitted - was.submitted, is.doorbells_sq - was.doorbells_sq,
	       is.doorbells_cq - was.doorbells_cq);
	bench_end_answer();
}

/* How the completions of queues that are opened from now on are found. */
static void find_by(struct client *c, const struct bench_command *command)
{
	static const uint32_t flags[] = {0, SMARTIO_NVME_INTERRUPT,
					 SMARTIO_NVME_INTERRUPT | SMARTIO_NVME_HYBRID};

	if (command->arg[0] >= sizeof(flags) / sizeof(flags[0]))
		bench_fail("0 (polling), 1 (interrupts) or 2 (hybrid) is right");
	close_queue(c);
	c->flags = flags[command->arg[0]];
	printf("{\"role\":\"client\"");
	bench_end_answer();
}

static void obey(struct client *c, const struct bench_command *command)
{
	if (!strcmp(command->name, "run") && command->n == 6) {
		run(c, command); /* depth, length, from, until, stop, bytes of the drive */
	} else if (!strcmp(command->name, "first") && command->n == 3) {
		first(c, command); /* how many, nanoseconds of sleep, bytes */
	} else if (!strcmp(command->name, "calm") && command->n == 3) {
		calm(c, command); /* depth, batches, bytes */
	} else if (!strcmp(command->name, "find") && command->n == 1) {
		find_by(c, command);
	} else if (!strcmp(command->name, "open") && command->n == 2) {
		open_queue(c, command->arg[0], command->arg[1]);
		printf("{\"role\":\"client\"");
		bench_end_answer();
	} else {
		bench_expect(command, "fill", 1);
		fill(c, command->arg[0]);
	}
}

int bench_role_client(int argc, char **argv)
{
	struct client *c = calloc(1, sizeof(*c));
	struct bench_command command;
	sci_error_t err;

	if (argc != 1)
		bench_fail("DEVICE is right");
	if (!c)
		bench_fail("no memory");
	SCIInitialize(0, &err);
	if (err == SCI_ERR_OK)
		smartio_find_device(argv[0], &c->fdid, &err);
	if (err != SCI_ERR_OK)
		bench_fail("%s", smartio_last_error());
	check(smartio_nvme_open(argv[0], &c->n), "open");
	check(smartio_nvme_get_namespace(c->n, 0, &c->ns), "namespace");
	open_queue(c, 32, 4096);
	bench_ready();
	while (bench_next(&command))
		obey(c, &command);
	close_queue(c);
	smartio_nvme_close(c->n);
	SCITerminate();
	free(c);
	return 0;
}
