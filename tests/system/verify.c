/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that must not be affected by what a test does meanwhile: writes stamped blocks to its
 * own range of a drive and reads them back until its input ends. Prints "running" and "on" as
 * lib/rounds.h says, and at the end "N rounds" and the longest I/O; exits with 1 on any error or
 * wrong byte.
 *
 * usage: verify DEVICE FIRST-BLOCK BLOCKS [interrupt|seldom|paths]
 * seldom: by interrupt, with a tenth of a second between rounds, where others need the processor;
 * paths: over two adapters, whichever has a path.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/rounds.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define CHUNK 64 /* blocks */

static uint64_t longest_ns;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int timed(int rc, uint64_t since)
{
	uint64_t took = now() - since;

	if (took > longest_ns)
		longest_ns = took;
	return rc;
}

static void stamp(uint64_t *data, size_t words, uint64_t block, uint64_t round)
{
	for (size_t i = 0; i < words; i++)
		data[i] = (block << 32) ^ (round * 0x9e3779b97f4a7c15ull) ^ i;
}

static int run_round(struct smartio_nvme_queue *q, uint32_t size, uint64_t first, uint64_t blocks,
		     uint64_t round)
{
	size_t bytes = (size_t)CHUNK * size;
	uint64_t *out = malloc(bytes), *in = malloc(bytes);
	int rc = out && in ? 0 : -1;
	uint64_t since;

	for (uint64_t b = first; rc == 0 && b + CHUNK <= first + blocks; b += CHUNK) {
		stamp(out, bytes / 8, b, round);
		since = now();
		rc = timed(smartio_nvme_write(q, out, b * size, bytes), since);
	}
	for (uint64_t b = first; rc == 0 && b + CHUNK <= first + blocks; b += CHUNK) {
		stamp(out, bytes / 8, b, round);
		since = now();
		rc = timed(smartio_nvme_read(q, in, b * size, bytes), since);
		if (rc == 0 && memcmp(in, out, bytes) != 0) {
			fprintf(stderr, "verify: wrong byte in blocks %llu to %llu of round %llu\n",
				(unsigned long long)b, (unsigned long long)b + CHUNK - 1,
				(unsigned long long)round);
			rc = -1;
		}
	}
	free(out);
	free(in);
	return rc;
}

int main(int argc, char **argv)
{
	struct smartio_nvme_open_options oo = {.size = sizeof(oo)};
	struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	const char *how;
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint64_t first, blocks, round = 0;
	bool seldom;
	sci_error_t err;

	how = argc == 5 ? argv[4] : "";
	seldom = strcmp(how, "seldom") == 0;
	if (strcmp(how, "paths") == 0) {
		oo.flags = SMARTIO_NVME_MULTIPATH;
		o.flags = SMARTIO_NVME_SURVIVE | SMARTIO_NVME_ALONE;
	} else if (seldom || strcmp(how, "interrupt") == 0) {
		o.flags = SMARTIO_NVME_INTERRUPT;
	} else if (argc != 4) {
		fprintf(stderr,
			"usage: verify DEVICE FIRST-BLOCK BLOCKS [interrupt|seldom|paths]\n");
		return 2;
	}
	first = strtoull(argv[2], NULL, 0);
	blocks = strtoull(argv[3], NULL, 0);
	rounds_begin();
	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK) {
		fprintf(stderr, "verify: %s\n", smartio_last_error());
		return 1;
	}
	if (smartio_nvme_open_with(argv[1], &oo, &n) < 0 ||
	    smartio_nvme_get_namespace(n, 0, &ns) < 0 || smartio_nvme_queue_open(n, &o, &q) < 0) {
		fprintf(stderr, "verify: %s\n", smartio_nvme_error());
		return 1;
	}
	do {
		if (run_round(q, ns.block_size, first, blocks, round) < 0) {
			fprintf(stderr, "verify: round %llu: %s\n", (unsigned long long)round,
				smartio_nvme_error());
			return 1;
		}
		if (round++ == 0)
			rounds_running();
		rounds_answer();
	} while (!rounds_end(seldom ? 100 : 0));
	printf("%llu rounds, the longest I/O took %llu us\n", (unsigned long long)round,
	       (unsigned long long)(longest_ns / 1000));
	smartio_nvme_queue_close(q);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}
