/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCIMemCpy() to a remote segment beside the best that a CPU can do with the same memory: memcpy(),
 * a string move, streaming stores; each followed by the fence that SCIMemCpy() ends with. All take
 * turns within each round.
 *
 * usage: bench-sisci-copy serve | bench-sisci-copy measure NODE CPU ROUNDS BYTES-PER-TURN MOST
 * prints: size, and the median nanoseconds of one copy for each way
 */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "common.h"

#define SEGMENT 0x400
#define LEAST 64u
#define WAYS 4
#define MAX_ROUNDS 1001

static void serve(sci_desc_t sd, size_t bytes)
{
	sci_local_segment_t seg;
	sci_error_t error;

	SCICreateSegment(sd, &seg, SEGMENT, bytes, NULL, NULL, 0, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(seg, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	SCISetSegmentAvailable(seg, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	printf("ready\n");
	fflush(stdout);
	getchar();
	exit(0); /* with everything open: the system reclaims it */
}

static inline void fence(void)
{
#if defined(__x86_64__)
	_mm_sfence();
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static void by_memcpy(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	fence();
}

static void by_string(void *to, const void *from, size_t size)
{
#if defined(__x86_64__)
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
#else
	memcpy(to, from, size);
#endif
	fence();
}

/* Sizes are multiples of 64 here. */
static void by_stream(void *to, const void *from, size_t size)
{
#if defined(__x86_64__)
	const __m128i *in = from;
	__m128i *out = to;

	for (size_t i = 0; i < size / 16; i += 4) {
		__m128i a = _mm_loadu_si128(in + i), b = _mm_loadu_si128(in + i + 1);
		__m128i c = _mm_loadu_si128(in + i + 2), d = _mm_loadu_si128(in + i + 3);

		_mm_stream_si128(out + i, a);
		_mm_stream_si128(out + i + 1, b);
		_mm_stream_si128(out + i + 2, c);
		_mm_stream_si128(out + i + 3, d);
	}
#else
	memcpy(to, from, size);
#endif
	fence();
}

struct bench {
	sci_map_t map;
	void *to, *from;
	size_t per_turn;
};

static void copy(const struct bench *b, unsigned way, size_t size, size_t times)
{
	sci_error_t error = SCI_ERR_OK;

	for (size_t i = 0; i < times; i++)
		switch (way) {
		case 0:
			SCIMemCpy(NULL, b->from, b->map, 0, size, 0, &error);
			break;
		case 1:
			by_memcpy(b->to, b->from, size);
			break;
		case 2:
			by_string(b->to, b->from, size);
			break;
		default:
			by_stream(b->to, b->from, size);
		}
	check(error, "SCIMemCpy");
}

/* One copy first, so that none pays for what the way before it left in the caches. */
static double turn(const struct bench *b, unsigned way, size_t size)
{
	size_t times = b->per_turn / size ? b->per_turn / size : 1;
	uint64_t start;

	copy(b, way, size, 1);
	start = now_ns();
	copy(b, way, size, times);
	return (double)(now_ns() - start) / (double)times;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(sci_desc_t sd, unsigned node, unsigned rounds, size_t per_turn, size_t most)
{
	static double took[WAYS][MAX_ROUNDS];
	struct bench b = {.per_turn = per_turn};
	sci_remote_segment_t seg;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, node, SEGMENT, 0, NULL, NULL, 0, 0, &error);
	check(error, "SCIConnectSegment");
	b.to = (void *)(uintptr_t)SCIMapRemoteSegment(seg, &b.map, 0, most, NULL, 0, &error);
	check(error, "SCIMapRemoteSegment");
	b.from = aligned_alloc(4096, most);
	if (!b.from)
		fail("no memory");
	memset(b.from, 1, most);
	memset(b.to, 2, most);
	for (size_t size = LEAST; size <= most; size *= 4) {
		for (unsigned r = 0; r < rounds; r++)
			for (unsigned w = 0; w < WAYS; w++)
				took[(w + r) % WAYS][r] = turn(&b, (w + r) % WAYS, size);
		printf("%zu", size);
		for (unsigned w = 0; w < WAYS; w++) {
			qsort(took[w], rounds, sizeof(double), compare);
			printf(" %.2f", took[w][rounds / 2]);
		}
		printf("\n");
	}
	exit(0);
}

int main(int argc, char **argv)
{
	unsigned rounds;

	if (argc == 3) {
		serve(begin(), (size_t)atoll(argv[2]));
	} else if (argc == 7) {
		pin(argv[3]);
		rounds = (unsigned)atoi(argv[4]);
		if (rounds < 1 || rounds > MAX_ROUNDS)
			fail("rounds: 1 to 1001 are right");
		measure(begin(), (unsigned)atoi(argv[2]), rounds, (size_t)atoll(argv[5]),
			(size_t)atoll(argv[6]));
	}
	fprintf(stderr, "usage: bench-sisci-copy serve BYTES | measure NODE CPU ROUNDS PER-TURN "
			"MOST\n");
	return 2;
}
