/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies that somebody reads: a program on one host sends messages of one size through a ring in a
 * segment of another host, by SCIMemCpy(), or by a call of the C library's memcpy() into the same
 * pages, followed by the fence that SCIMemCpy() ends with (and, for what a call costs, by both in a
 * function of another library). The owner of the segment, on the other processor, loads every byte
 * of each message and tells by a word in a segment of the sender's how many it has read; the sender
 * waits while the ring is full. The protocol is the same for all ways, they take turns within each
 * round, in an order that is drawn, and each round has other places within a page.
 *
 * usage: bench-sisci-read SOCKET NODE SOCKET NODE CPU CPU ROUNDS BYTES-PER-TURN MOST
 * prints: "SIZE who ns", per message, a line per size, way and round
 */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "called.h"
#include "common.h"
#include "smartio/io.h"

#define SEGMENT 0x500
#define LEAST 64u
#define LINE 64u
#define PAGE 4096u
#define RING (64u << 10) /* bytes of messages on their way, if more than one fits */
#define SLOTS 64u	 /* most */
#define MOST_TIMES 65536u
#define LEAST_TIMES 4u /* a program that sends one message sends more */
#define LOOKS 4096u

/* At the start of the reader's segment; the ring begins a page behind it. */
struct orders {
	uint64_t tail; /* messages sent, of all turns */
	uint64_t pad[7];
	uint64_t turn; /* counts; written last */
	uint64_t size, slots, times, offset;
};

struct side {
	sci_map_t far; /* of the reader's segment */
	uint8_t *ring, *memory;
	struct orders *orders;
	volatile uint64_t *read; /* messages read, of all turns */
	uint64_t sent, turn;
	size_t per_turn, slots;
	/* Of the turn. */
	size_t offset;
	uint8_t *from;
};

/* Whoever waits for long lets others run: the processor may not be ours alone. */
static inline void wait_until(const volatile uint64_t *word, uint64_t least)
{
	for (unsigned looks = 0; sio_read64(word) < least; looks++)
		if (looks > LOOKS)
			sched_yield();
	sio_from_fabric_barrier();
}

/* ---- the sender ---- */

/* Where the @n-th message of the turn goes, from the ring's start: when there is room. */
static inline size_t room(const struct side *s, size_t size, size_t n)
{
	if (n >= s->slots)
		wait_until(s->read, s->sent + n + 1 - s->slots);
	/* order() has seen to a slot at least. NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
	return s->offset + n % s->slots * size;
}

#define WAY(name, copy)                                                                            \
	static void by_##name(const struct side *s, size_t size, size_t times)                     \
	{                                                                                          \
		sci_error_t error = SCI_ERR_OK;                                                    \
                                                                                                   \
		for (size_t n = 0; n < times; n++) {                                               \
			size_t at = room(s, size, n);                                              \
                                                                                                   \
			copy;                                                                      \
			sio_write64(&s->orders->tail, s->sent + n + 1);                            \
		}                                                                                  \
		check(error, #name);                                                               \
	}

WAY(sisci, call_sisci(s->far, PAGE + at, s->from, size, &error))
WAY(memcpy, call_memcpy(s->ring + at, s->from, size); sio_to_fabric_barrier())
WAY(function, called_memcpy(NULL, s->from, s->ring, at, size, 0, &error))

static const struct way {
	const char *who;
	void (*send)(const struct side *s, size_t size, size_t times);
} ways[] = {{"sisci", by_sisci}, {"memcpy", by_memcpy}, {"function", by_function}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void order(struct side *s, size_t size, size_t times)
{
	s->slots = size && RING / size ? RING / size : 1;
	if (s->slots > SLOTS)
		s->slots = SLOTS;
	s->orders->size = size;
	s->orders->slots = s->slots;
	s->orders->times = times;
	s->orders->offset = s->offset;
	sio_to_fabric_barrier();
	sio_write64(&s->orders->turn, ++s->turn);
}

static double turn(struct side *s, const struct way *w, size_t size)
{
	size_t times = s->per_turn / size > LEAST_TIMES ? s->per_turn / size : LEAST_TIMES;
	uint64_t start = 0;

	if (times > MOST_TIMES)
		times = MOST_TIMES;
	/* Once first, so that none pays for what the way before it left in the caches. */
	for (unsigned warm = 0; warm < 2; warm++) {
		size_t n = warm ? times : times / 16 + 1;

		order(s, size, n);
		start = now_ns();
		w->send(s, size, n);
		s->sent += n;
		wait_until(s->read, s->sent);
	}
	return (double)(now_ns() - start) / (double)times;
}

static void send_all(struct side *s, unsigned rounds, size_t most)
{
	uint64_t random = 0x9e3779b97f4a7c15u ^ now_ns();
	unsigned turns[WAYS];

	for (size_t size = LEAST; size <= most; size *= 2)
		for (unsigned r = 0; r < rounds; r++) {
			s->offset = next_random(&random) % (PAGE / LINE) * LINE;
			s->from = s->memory + next_random(&random) % (PAGE / LINE) * LINE;
			draw_order(&random, WAYS, turns);
			for (unsigned w = 0; w < WAYS; w++) {
				const struct way *way = &ways[turns[w]];
				double ns = turn(s, way, size);

				if (r > 0) /* the first round warms up */
					printf("%zu %s %.2f\n", size, way->who, ns);
			}
		}
	order(s, 0, 0);
}

/* ---- the reader ---- */

/* Sizes are multiples of a line. */
static uint64_t read_all(const uint8_t *at, size_t size)
{
	const uint64_t *word = (const uint64_t *)(const void *)at;
	uint64_t sum[4] = {0};

	for (size_t i = 0; i < size / 8; i += 8) {
		sum[0] += word[i] + word[i + 4];
		sum[1] += word[i + 1] + word[i + 5];
		sum[2] += word[i + 2] + word[i + 6];
		sum[3] += word[i + 3] + word[i + 7];
	}
	return sum[0] + sum[1] + sum[2] + sum[3];
}

static void read_turn(struct side *s)
{
	/* The next ones come as soon as the last word is told. */
	const struct orders o = *s->orders;
	uint64_t sum = 0;

	for (size_t n = 0; n < o.times; n++) {
		wait_until(&s->orders->tail, s->sent + n + 1);
		sum += read_all(s->ring + o.offset + n % o.slots * o.size, o.size);
		/* A word for half a ring: it is the sender's line that it takes. */
		if ((n + 1) % (o.slots / 2 + 1) == 0 || n + 1 == o.times)
			sio_write64(s->read, s->sent + n + 1);
	}
	__asm__ volatile("" ::"r"(sum));
	s->sent += o.times;
}

static void read_until_end(struct side *s)
{
	for (;;) {
		wait_until(&s->orders->turn, s->turn + 1);
		s->turn = sio_read64(&s->orders->turn);
		if (s->orders->size == 0)
			return;
		read_turn(s);
	}
}

/* ---- both ---- */

static void *make(sci_desc_t sd, unsigned id, size_t bytes)
{
	sci_local_segment_t seg;
	sci_error_t error;
	sci_map_t map;
	void *at;

	SCICreateSegment(sd, &seg, id, bytes, NULL, NULL, 0, &error);
	check(error, "SCICreateSegment");
	at = SCIMapLocalSegment(seg, &map, 0, bytes, NULL, 0, &error);
	check(error, "SCIMapLocalSegment");
	SCIPrepareSegment(seg, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	memset(at, 0, bytes); /* all pages are there, and nobody has written anything yet */
	SCISetSegmentAvailable(seg, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	return at;
}

static void *reach(sci_desc_t sd, unsigned node, unsigned id, size_t bytes, sci_map_t *map)
{
	sci_remote_segment_t seg;
	sci_error_t error;
	void *at;

	do {
		SCIConnectSegment(sd, &seg, node, id, 0, NULL, NULL, 0, 0, &error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_SEGMENT || error == SCI_ERR_NO_SUCH_NODEID);
	check(error, "SCIConnectSegment");
	at = (void *)(uintptr_t)SCIMapRemoteSegment(seg, map, 0, bytes, NULL, 0, &error);
	check(error, "SCIMapRemoteSegment");
	return at;
}

static void play(struct side *s, bool sender, const char *socket, unsigned peer, const char *cpu,
		 size_t bytes)
{
	sci_map_t map;
	sci_desc_t sd;

	pin(cpu);
	setenv("SMARTIO_SOCKET", socket, 1);
	sd = begin();
	if (sender) {
		s->read = make(sd, SEGMENT, PAGE);
		s->orders = reach(sd, peer, SEGMENT + 1, bytes, &s->far);
	} else {
		s->orders = make(sd, SEGMENT + 1, bytes);
		s->read = reach(sd, peer, SEGMENT, PAGE, &map);
	}
	s->ring = (uint8_t *)s->orders + PAGE;
}

int main(int argc, char **argv)
{
	size_t most = argc == 10 ? (size_t)atoll(argv[9]) : 0, room;
	struct side s = {0};
	int status = 0;
	pid_t child;

	if (argc != 10) {
		fprintf(stderr, "usage: bench-sisci-read SOCKET NODE SOCKET NODE CPU CPU ROUNDS "
				"PER-TURN MOST\n");
		return 2;
	}
	room = (most > RING ? most : RING) + 2 * PAGE; /* the orders, and places within a page */
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(&s, false, argv[3], (unsigned)atoi(argv[2]), argv[6], room);
		read_until_end(&s);
		return 0;
	}
	s.memory = aligned_alloc(PAGE, most + PAGE);
	if (!s.memory)
		fail("no memory");
	memset(s.memory, 1, most + PAGE);
	s.per_turn = (size_t)atoll(argv[8]);
	play(&s, true, argv[1], (unsigned)atoi(argv[4]), argv[5], room);
	send_all(&s, (unsigned)atoi(argv[7]), most);
	fflush(stdout);
	waitpid(child, &status, 0);
	return status ? 1 : 0;
}
