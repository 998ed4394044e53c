/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers by a DMA queue beside memcpy() of the same bytes to the same place on one core, in
 * turns; and how much of its own core the caller needed.
 *
 * usage: bench-sisci-dma serve BYTES | measure NODE CPU ROUNDS TRANSFERS BYTES QUEUES VECTOR
 * VECTOR: what a queue is told at once is so many of the transfers; 1: SCIStartDmaTransfer()
 * prints a line per round: "dma queue ns", "dma memcpy ns" of one; "dma core PART" that the caller
 * used
 */
#include <string.h>

#include "common.h"

#define SEGMENT 0x401
#define MAX_QUEUES 8

struct bench {
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_dma_queue_t queue[MAX_QUEUES];
	unsigned n_queues, transfers, vector;
	dis_dma_vec_t vec[DIS_DMA_MAX_VECLEN]; /* all the same transfer */
	void *from, *to;
	size_t bytes;
};

static void make(struct bench *b, sci_desc_t sd, unsigned node)
{
	sci_map_t map, remote_map;
	sci_error_t error;

	SCIConnectSegment(sd, &b->remote, node, SEGMENT, 0, NULL, NULL, 0, 0, &error);
	check(error, "SCIConnectSegment");
	b->to = (void *)(uintptr_t)SCIMapRemoteSegment(b->remote, &remote_map, 0, b->bytes, NULL, 0,
						       &error);
	check(error, "SCIMapRemoteSegment");
	SCICreateSegment(sd, &b->local, SEGMENT, b->bytes, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(b->local, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error);
	check(error, "SCIPrepareSegment");
	b->from = SCIMapLocalSegment(b->local, &map, 0, b->bytes, NULL, 0, &error);
	check(error, "SCIMapLocalSegment");
	memset(b->from, 1, b->bytes);
	memset(b->to, 2, b->bytes);
	for (unsigned i = 0; i < b->n_queues; i++) {
		SCICreateDMAQueue(sd, &b->queue[i], 0, b->vector, 0, &error);
		check(error, "SCICreateDMAQueue");
	}
	for (unsigned i = 0; i < b->vector; i++)
		b->vec[i].size = (unsigned)b->bytes;
}

static void start(struct bench *b, unsigned queue)
{
	sci_error_t error;

	if (b->vector == 1)
		SCIStartDmaTransfer(b->queue[queue], b->local, b->remote, 0, b->bytes, 0, NULL,
				    NULL, 0, &error);
	else
		SCIStartDmaTransferVec(b->queue[queue], b->local, b->remote, b->vector, b->vec,
				       NULL, NULL, 0, &error);
	check(error, "starting a transfer");
}

static void finish(const struct bench *b, unsigned queue)
{
	sci_error_t error;

	if (SCIWaitForDMAQueue(b->queue[queue], SCI_INFINITE_TIMEOUT, 0, &error) !=
	    SCI_DMAQUEUE_DONE)
		fail("a transfer failed");
	check(error, "SCIWaitForDMAQueue");
}

/* As many at once as there are queues. */
static double by_queue(struct bench *b)
{
	uint64_t begun = now_ns();
	unsigned at = 0; /* the queue whose turn it is */
	unsigned starts = b->transfers / b->vector;

	for (unsigned i = 0; i < starts; i++) {
		if (i >= b->n_queues)
			finish(b, at);
		start(b, at);
		at = at + 1 < b->n_queues ? at + 1 : 0;
	}
	if (starts < b->n_queues)
		at = 0;
	for (unsigned k = 0; k < b->n_queues && k < starts; k++) {
		finish(b, at);
		at = at + 1 < b->n_queues ? at + 1 : 0;
	}
	return (double)(now_ns() - begun) / b->transfers;
}

static double by_memcpy(const struct bench *b)
{
	uint64_t begun = now_ns();

	for (unsigned i = 0; i < b->transfers; i++) {
		memcpy(b->to, b->from, b->bytes);
		__asm__ volatile("" ::: "memory");
	}
	return (double)(now_ns() - begun) / b->transfers;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whoever came first in one round comes last in the next. */
static void measure(struct bench *b, unsigned rounds)
{
	by_queue(b);
	by_memcpy(b);
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < 2; i++) {
			uint64_t cpu = cpu_ns(), wall = now_ns();

			if ((i + r) % 2) {
				printf("dma memcpy %.1f\n", by_memcpy(b));
				continue;
			}
			printf("dma queue %.1f\n", by_queue(b));
			printf("dma core %.4f\n",
			       (double)(cpu_ns() - cpu) / (double)(now_ns() - wall));
		}
	exit(0);
}

int main(int argc, char **argv)
{
	struct bench b = {.n_queues = 1};
	unsigned rounds;

	if (argc == 3) {
		serve(begin(), SEGMENT, (size_t)atoll(argv[2]));
	} else if (argc == 9) {
		pin(argv[3]);
		rounds = (unsigned)atoi(argv[4]);
		b.transfers = (unsigned)atoi(argv[5]);
		b.bytes = (size_t)atoll(argv[6]);
		b.n_queues = (unsigned)atoi(argv[7]);
		b.vector = (unsigned)atoi(argv[8]);
		if (b.n_queues < 1 || b.n_queues > MAX_QUEUES)
			fail("queues: 1 to 8");
		if (b.vector < 1 || b.vector > DIS_DMA_MAX_VECLEN || b.transfers < b.vector ||
		    b.transfers % b.vector)
			fail("transfers: 1 to 256 vectors of them");
		make(&b, begin(), (unsigned)atoi(argv[2]));
		measure(&b, rounds);
	}
	fprintf(stderr, "usage: bench-sisci-dma serve BYTES | measure NODE CPU ROUNDS TRANSFERS "
			"BYTES QUEUES VECTOR\n");
	return 2;
}
