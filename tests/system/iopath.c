/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random 4 KiB reads, and nothing else between two marks, for tests that count what they cost.
 * usage: iopath DEVICE COUNT DEPTH [calm|near]
 * Prints "open", waits for a line of input, reads COUNT blocks between two calls of getppid(),
 * prints "done", waits for a line again. calm: polls only when all completions of a batch are
 * there, and callgrind collects between the marks only, after 1,000 reads of warm-up. Of a drive
 * that does not tell how many reads it has done they must be there after a while; exit status 3:
 * they were not. near: the submission queue lies with this host, not with the lender.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define BYTES 4096
#define WARM_UP 1000
#define A_WHILE_US 100000

static struct smartio_nvme_queue *queue;
static struct smartio_nvme_buffer *buffer;
static struct smartio_nvme_namespace ns;
static uint32_t seed = 1;
static unsigned fdid;
static bool tells; /* the drive has a counter of reads */

static void fail(const char *what)
{
	fprintf(stderr, "iopath: %s: %s\n", what, smartio_nvme_error());
	exit(1);
}

static void wait_for_line(const char *say)
{
	char c;

	printf("%s\n", say);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

/* Reads that the drive has done, by its own count; they are completed by then. */
static uint64_t drive_reads(void)
{
	struct smartio_counter c[64];
	sci_error_t err;
	unsigned n = smartio_device_counters(fdid, c, 64, &err);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(c[i].name, "commands_read")) {
			tells = true;
			return c[i].value;
		}
	return 0;
}

static void await_calm(uint64_t reads_before, unsigned n)
{
	if (!tells)
		usleep(A_WHILE_US);
	while (tells && drive_reads() - reads_before < n)
		;
}

/* A batch: submit, ring, poll until all are there; @collect: callgrind counts these calls. */
static void batch(unsigned n, bool calm, bool collect)
{
	struct smartio_nvme_completion done[64];
	uint32_t blocks = BYTES / ns.block_size;
	uint64_t before = calm ? drive_reads() : 0;
	unsigned have = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t lba;
		int rc;

		seed = seed * 1664525u + 1013904223u;
		lba = (uint64_t)seed % (ns.blocks / blocks) * blocks;
		if (collect)
			CALLGRIND_TOGGLE_COLLECT;
		rc = smartio_nvme_submit(queue, SMARTIO_NVME_READ, lba, blocks, buffer,
					 (size_t)i * BYTES, NULL);
		if (collect)
			CALLGRIND_TOGGLE_COLLECT;
		if (rc < 0)
			fail("submit");
	}
	if (collect)
		CALLGRIND_TOGGLE_COLLECT;
	smartio_nvme_ring(queue);
	if (collect)
		CALLGRIND_TOGGLE_COLLECT;
	if (calm)
		await_calm(before, n);
	while (have < n) {
		int rc;

		if (collect)
			CALLGRIND_TOGGLE_COLLECT;
		rc = smartio_nvme_poll(queue, done, 64);
		if (collect)
			CALLGRIND_TOGGLE_COLLECT;
		if (rc < 0)
			fail("poll");
		if (collect && (unsigned)rc != n) {
			fprintf(stderr, "iopath: a poll found %d of %u: not calm\n", rc, n);
			exit(3);
		}
		for (int i = 0; i < rc; i++)
			if (done[i].status)
				fail("read");
		have += (unsigned)rc;
	}
}

static void reads(uint64_t count, unsigned depth, bool calm, bool collect)
{
	for (uint64_t left = count; left > 0;) {
		unsigned n = left < depth ? (unsigned)left : depth;

		batch(n, calm, collect);
		left -= n;
	}
}

int main(int argc, char **argv)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	struct smartio_nvme *n = NULL;
	bool calm = argc == 5 && !strcmp(argv[4], "calm");
	bool near = argc == 5 && !strcmp(argv[4], "near");
	unsigned depth;
	sci_error_t err;

	if (argc < 4 || (argc == 5 && !calm && !near)) {
		fprintf(stderr, "usage: iopath DEVICE COUNT DEPTH [calm|near]\n");
		return 2;
	}
	depth = (unsigned)strtoul(argv[3], NULL, 10);
	if (depth < 1 || depth > 64)
		return 2;
	o.depth = depth;
	o.sq_placement = near ? SMARTIO_NVME_PLACE_LOCAL : SMARTIO_NVME_PLACE_AUTO;
	SCIInitialize(0, &err);
	if (err == SCI_ERR_OK)
		smartio_find_device(argv[1], &fdid, &err);
	if (err != SCI_ERR_OK || smartio_nvme_open(argv[1], &n) < 0 ||
	    smartio_nvme_get_namespace(n, 0, &ns) < 0 ||
	    smartio_nvme_buffer_alloc(n, (size_t)depth * BYTES, &buffer) < 0 ||
	    smartio_nvme_queue_open(n, &o, &queue) < 0)
		fail("open");
	reads(WARM_UP, depth, calm, false);
	wait_for_line("open");
	getppid();
	reads(strtoull(argv[2], NULL, 10), depth, calm, calm);
	getppid();
	wait_for_line("done");
	smartio_nvme_queue_close(queue);
	smartio_nvme_buffer_free(buffer);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}
