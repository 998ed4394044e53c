/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches of commands, ended by calls, with the program's own memory: it is registered once, and
 * from then on the drive reads and writes it where it is. A batch is submitted by as few doorbells
 * as the depth of the queue allows. Blocks at places of their own are written, read back and
 * compared.
 *
 * usage: batch DRIVE BATCHES
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "example.h"
#include "example_nvme.h"

#define BATCH 32u
#define DEPTH 8u
#define BYTES 4096u
#define WORDS (BYTES / sizeof(uint64_t))

/* What a command's cookie points to lies in here. */
struct request {
	struct smartio_nvme_call call; /* first: done() finds the request by it */
	struct smartio_nvme_piece piece;
	unsigned *left;
};

struct program {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_namespace ns;
	uint64_t *words; /* of the heap: what is written, and behind it what is read */
	struct smartio_nvme_buffer *b;
};

/* A command has ended. It could submit the next one from here. */
static void done(struct smartio_nvme_call *call, uint32_t status)
{
	struct request *r = (struct request *)(void *)call;

	if (status) {
		fprintf(stderr, "the drive: %s\n",
			status == SMARTIO_NVME_LOST ? "lost" : smartio_nvme_status_string(status));
		exit(1);
	}
	--*r->left;
}

/* A batch of @op, with the data from @offset of the buffer on. */
static void run(struct program *p, enum smartio_nvme_op op, size_t offset)
{
	const uint32_t blocks = BYTES / p->ns.block_size;
	struct smartio_nvme_command command[BATCH] = {0};
	struct request request[BATCH];
	unsigned left = BATCH, sent = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		request[i] = (struct request){
			.call = {.done = done},
			.piece = {.buffer = p->b, .offset = offset + i * BYTES, .bytes = BYTES},
			.left = &left,
		};
		command[i] = (struct smartio_nvme_command){
			.op = op,
			.lba = (uint64_t)(i * 37 % BATCH) * blocks,
			.blocks = blocks,
			.n_pieces = 1,
			.piece = &request[i].piece,
			.cookie = &request[i].call,
		};
	}
	while (left > 0) {
		int n = 0;

		if (sent < BATCH)
			n = smartio_nvme_submit_commands(p->q, command + sent, BATCH - sent);
		if (n == -EAGAIN) /* as many as the queue's depth are in flight */
			n = 0;
		must_nvme(n, "submit");
		sent += (unsigned)n;
		/* Rings the doorbell, and calls done() for each command that has ended. */
		must_nvme(smartio_nvme_poll_calls(p->q, BATCH), "poll");
	}
}

static void open_all(struct program *p, const char *drive)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = DEPTH};

	must_nvme(smartio_nvme_open_wait(drive, 10000, &p->n), drive);
	must_nvme(smartio_nvme_get_namespace(p->n, 0, &p->ns), "its namespace");
	must_nvme(smartio_nvme_queue_open(p->n, &o, &p->q), "a queue pair");
	p->words = aligned_alloc(BYTES, 2 * (size_t)BATCH * BYTES); /* whole pages */
	if (!p->words)
		exit(1);
	must_nvme(smartio_nvme_buffer_register(p->n, p->words, 2 * (size_t)BATCH * BYTES, &p->b),
		  "memory of the heap");
}

static void close_all(struct program *p)
{
	must_nvme(smartio_nvme_buffer_free(p->b), "the memory is the program's own again");
	free(p->words);
	smartio_nvme_close(p->n);
}

int main(int argc, char **argv)
{
	struct smartio_nvme_counters counters;
	struct program p = {0};
	sci_desc_t sd = begin();
	uint64_t sum = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: batch DRIVE BATCHES\n");
		return 2;
	}
	open_all(&p, argv[1]);
	for (uint64_t n = 0; n < strtoull(argv[2], NULL, 0); n++) {
		for (unsigned i = 0; i < BATCH * WORDS; i++)
			p.words[i] = n * 0x9e3779b97f4a7c15u + i;
		run(&p, SMARTIO_NVME_WRITE, 0);
		run(&p, SMARTIO_NVME_READ, (size_t)BATCH * BYTES);
		if (memcmp(p.words, p.words + BATCH * WORDS, (size_t)BATCH * BYTES) != 0) {
			fprintf(stderr, "batch %" PRIu64 " came back with other data\n", n);
			return 1;
		}
		for (unsigned i = 0; i < BATCH * WORDS; i++)
			sum += p.words[BATCH * WORDS + i];
	}
	smartio_nvme_queue_counters(p.q, &counters);
	printf("%" PRIu64 " commands, sum %" PRIu64 "\n", counters.completed, sum);
	close_all(&p);
	end(sd);
	return 0;
}
