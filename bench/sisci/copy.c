/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCIMemCpy() to a remote segment beside a call of the C library's memcpy() into the same pages,
 * followed by the fence that SCIMemCpy() ends with. For what a call costs: the same in a function
 * of another library with SCIMemCpy's parameters, and a function there that does nothing. All take
 * turns within each round; each round has other places within a page, for it matters which.
 *
 * usage: bench-sisci-copy serve BYTES | measure NODE CPU ROUNDS BYTES-PER-TURN MOST
 *        bench-sisci-copy count NODE WHO BYTES TIMES: so many copies by one way, to be counted
 * prints: "SIZE who ns", a line per size, way and round
 */
#include <stdbool.h>
#include <string.h>

#include "called.h"
#include "common.h"
#include "smartio/io.h"

#define SEGMENT 0x400
#define LEAST 64u
#define PAGE 4096u
#define MOST_TIMES 65536u

struct bench {
	sci_map_t map;
	uint8_t *mapped, *memory;
	size_t per_turn;
	/* Of the round. */
	size_t offset;
	void *to, *from;
};

static void by_sisci(const struct bench *b, size_t size, size_t times)
{
	sci_error_t error = SCI_ERR_OK;

	for (size_t i = 0; i < times; i++)
		call_sisci(b->map, b->offset, b->from, size, &error);
	check(error, "SCIMemCpy");
}

static void by_memcpy(const struct bench *b, size_t size, size_t times)
{
	for (size_t i = 0; i < times; i++) {
		call_memcpy(b->to, b->from, size);
		sio_to_fabric_barrier();
	}
}

static void by_function(const struct bench *b, size_t size, size_t times)
{
	sci_error_t error;

	for (size_t i = 0; i < times; i++)
		called_memcpy(NULL, b->from, b->mapped, b->offset, size, 0, &error);
}

static void by_nothing(const struct bench *b, size_t size, size_t times)
{
	sci_error_t error;

	for (size_t i = 0; i < times; i++)
		called_nothing(NULL, b->from, b->mapped, b->offset, size, 0, &error);
}

static const struct way {
	const char *who;
	void (*copy)(const struct bench *b, size_t size, size_t times);
} ways[] = {{"sisci", by_sisci},
	    {"memcpy", by_memcpy},
	    {"function", by_function},
	    {"nothing", by_nothing}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Once first, so that none pays for what the way before it left in the caches. */
static double turn(const struct bench *b, const struct way *w, size_t size)
{
	size_t times = b->per_turn / size ? b->per_turn / size : 1;
	uint64_t start;

	if (times > MOST_TIMES)
		times = MOST_TIMES;
	w->copy(b, size, 1);
	start = now_ns();
	w->copy(b, size, times);
	return (double)(now_ns() - start) / (double)times;
}

static void make(sci_desc_t sd, unsigned node, struct bench *b, size_t most)
{
	sci_remote_segment_t seg;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, node, SEGMENT, 0, NULL, NULL, 0, 0, &error);
	check(error, "SCIConnectSegment");
	b->mapped = (uint8_t *)(uintptr_t)SCIMapRemoteSegment(seg, &b->map, 0, most + PAGE, NULL, 0,
							      &error);
	check(error, "SCIMapRemoteSegment");
	b->memory = aligned_alloc(PAGE, most + PAGE);
	if (!b->memory)
		fail("no memory");
	memset(b->memory, 1, most + PAGE);
	memset(b->mapped, 2, most + PAGE);
	b->to = b->mapped;
	b->from = b->memory;
}

/*
 * A program whose instructions are counted: those of the copies are what is more with more TIMES.
 */
static void count(struct bench *b, const char *who, size_t size, size_t times)
{
	for (unsigned w = 0; w < WAYS; w++)
		if (!strcmp(ways[w].who, who)) {
			ways[w].copy(b, size, times);
			exit(0);
		}
	fail(who);
}

static void measure(struct bench *b, unsigned rounds, size_t most)
{
	uint64_t random = 0x9e3779b97f4a7c15u ^ now_ns();
	unsigned turns[WAYS];

	for (size_t size = LEAST; size <= most; size *= 2)
		for (unsigned r = 0; r < rounds; r++) {
			b->offset = next_random(&random) % (PAGE / 64) * 64;
			b->to = b->mapped + b->offset;
			b->from = b->memory + next_random(&random) % (PAGE / 64) * 64;
			draw_order(&random, WAYS, turns);
			for (unsigned w = 0; w < WAYS; w++) {
				const struct way *way = &ways[turns[w]];

				printf("%zu %s %.2f\n", size, way->who, turn(b, way, size));
			}
		}
	exit(0); /* with everything open: the system reclaims it */
}

int main(int argc, char **argv)
{
	struct bench b = {0};

	if (argc == 3) {
		serve(begin(), SEGMENT, (size_t)atoll(argv[2]) + PAGE);
	} else if (argc == 7) {
		pin(argv[3]);
		b.per_turn = (size_t)atoll(argv[5]);
		make(begin(), (unsigned)atoi(argv[2]), &b, (size_t)atoll(argv[6]));
		measure(&b, (unsigned)atoi(argv[4]), (size_t)atoll(argv[6]));
	} else if (argc == 6) {
		/* Under valgrind all copies take the long way, which the library tells by this. */
		unsetenv("LD_PRELOAD");
		make(begin(), (unsigned)atoi(argv[2]), &b, (size_t)atoll(argv[4]));
		count(&b, argv[3], (size_t)atoll(argv[4]), (size_t)atoll(argv[5]));
	}
	fprintf(stderr, "usage: bench-sisci-copy serve BYTES | measure NODE CPU ROUNDS PER-TURN "
			"MOST | count NODE WHO BYTES TIMES\n");
	return 2;
}
