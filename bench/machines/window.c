/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies into the memory of another machine, and out of it, beside copies within this machine's own
 * memory. All take turns within each round, in an order that is drawn again.
 *
 * usage: bench-machines-window serve BYTES | measure NODE ROUNDS BYTES-PER-COPY BYTES-PER-TURN
 * prints: "who ns", of BYTES-PER-TURN, a line for each way and round
 */
#include <stdbool.h>
#include <string.h>

#include "../sisci/common.h"
#include "smartio/io.h"

#define SEGMENT 0x401
#define PAGE 4096u

struct bench {
	sci_map_t map;
	uint8_t *mapped, *from, *to;
	size_t copy, times;
};

static void to_own(const struct bench *b)
{
	for (size_t i = 0; i < b->times; i++)
		call_memcpy(b->to, b->from, b->copy);
}

static void to_peer(const struct bench *b)
{
	for (size_t i = 0; i < b->times; i++)
		call_memcpy(b->mapped, b->from, b->copy);
	sio_to_fabric_barrier();
}

static void from_peer(const struct bench *b)
{
	for (size_t i = 0; i < b->times; i++)
		call_memcpy(b->to, b->mapped, b->copy);
}

static void by_sisci(const struct bench *b)
{
	sci_error_t error = SCI_ERR_OK;

	for (size_t i = 0; i < b->times; i++)
		call_sisci(b->map, 0, b->from, b->copy, &error);
	check(error, "SCIMemCpy");
}

static const struct way {
	const char *who;
	void (*copy)(const struct bench *b);
} ways[] = {{"own", to_own}, {"write", to_peer}, {"read", from_peer}, {"sisci", by_sisci}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static uint8_t *pages(size_t bytes, int value)
{
	uint8_t *p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);

	if (!p)
		fail("no memory");
	return memset(p, value, bytes);
}

static void make(sci_desc_t sd, unsigned node, struct bench *b)
{
	sci_remote_segment_t seg;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, node, SEGMENT, 0, NULL, NULL, 0, 0, &error);
	check(error, "SCIConnectSegment");
	b->mapped = (uint8_t *)(uintptr_t)SCIMapRemoteSegment(seg, &b->map, 0, b->copy, NULL, 0,
							      &error);
	check(error, "SCIMapRemoteSegment");
	b->from = pages(b->copy, 1);
	b->to = pages(b->copy, 2);
	memset(b->mapped, 3, b->copy);
}

/* What was copied is there. */
static void compare(const struct bench *b)
{
	memset(b->from, 4, b->copy);
	to_peer(b);
	from_peer(b);
	if (memcmp(b->from, b->to, b->copy) != 0)
		fail("what is read is not what was written");
}

static void measure(const struct bench *b, unsigned rounds)
{
	unsigned order[WAYS];
	uint64_t random = now_ns() | 1, since;

	for (unsigned round = 0; round < rounds; round++) {
		draw_order(&random, WAYS, order);
		for (unsigned i = 0; i < WAYS; i++) {
			const struct way *w = &ways[order[i]];

			since = now_ns();
			w->copy(b);
			printf("%s %llu\n", w->who, (unsigned long long)(now_ns() - since));
		}
	}
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	sci_desc_t sd;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(begin(), SEGMENT, strtoull(argv[2], NULL, 0));
	if (argc != 6 || strcmp(argv[1], "measure") != 0) {
		fprintf(stderr,
			"usage: serve BYTES | measure NODE ROUNDS BYTES-PER-COPY BYTES-PER-TURN\n");
		return 2;
	}
	b.copy = strtoull(argv[4], NULL, 0);
	b.times = strtoull(argv[5], NULL, 0) / b.copy;
	sd = begin();
	make(sd, (unsigned)atoi(argv[2]), &b);
	compare(&b);
	measure(&b, (unsigned)atoi(argv[3]));
	return 0;
}
