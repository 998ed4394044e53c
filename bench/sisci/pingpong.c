/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 8 bytes that go to and fro between two processes: through mapped segments of two hosts, and, by
 * the very same loop, through a file of memory that both have mapped. Each round takes other cache
 * lines, for it matters which they are. Prints nanoseconds per round trip: "row who ns".
 *
 * usage: bench-sisci-pingpong SOCKET NODE SOCKET NODE CPU CPU ROUNDS TRIPS
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define BYTES (256u << 10)
#define LINE 128u /* two cache lines: they are fetched in pairs */
#define SEGMENT 1u

struct party {
	const char *who;
	volatile uint8_t *mine, *theirs;
};

struct side {
	bool first;
	unsigned peer;
	struct party party[2];
};

/*
 * The one loop: who is first stores a number, and the other, when it has seen it, stores the same.
 * Numbers only grow, so what older rounds left in a line means nothing. Looks so often before it
 * yields that it never does, but where both have one processor.
 */
__attribute__((noinline)) static void bounce(volatile uint64_t *mine, volatile uint64_t *theirs,
					     uint64_t from, unsigned trips, bool first)
{
	for (uint64_t i = from; i < from + trips; i++) {
		if (first)
			*theirs = i;
		for (unsigned looks = 0; *mine != i;)
			if (++looks > 20000)
				sched_yield();
		if (!first)
			*theirs = i;
	}
}

/* Both sides draw the same lines. */
static void run(struct side *s, unsigned rounds, unsigned trips)
{
	uint64_t random = 0x9e3779b97f4a7c15u, number = 1, start;

	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < 2; i++) {
			/* Whoever came first in one round comes last in the next. */
			const struct party *p = &s->party[(i + r) % 2];
			size_t a = next_random(&random) % (BYTES / LINE) * LINE;
			size_t b = next_random(&random) % (BYTES / LINE) * LINE;
			volatile void *mine = p->mine + (s->first ? a : b);
			volatile void *theirs = p->theirs + (s->first ? b : a);

			bounce(mine, theirs, number, trips / 10 + 1, s->first); /* gets warm */
			number += trips / 10 + 1;
			start = now_ns();
			bounce(mine, theirs, number, trips, s->first);
			number += trips;
			if (s->first && r > 0)
				printf("pingpong %s %.2f\n", p->who,
				       (double)(now_ns() - start) / trips);
		}
	}
}

static void connect_both(struct side *s, sci_desc_t sd)
{
	sci_remote_segment_t far = NULL;
	sci_local_segment_t near = NULL;
	sci_error_t error;
	sci_map_t map;

	SCICreateSegment(sd, &near, SEGMENT, BYTES, NULL, NULL, 0, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(near, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	SCISetSegmentAvailable(near, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	s->party[0].mine = SCIMapLocalSegment(near, &map, 0, BYTES, NULL, 0, &error);
	check(error, "SCIMapLocalSegment");
	do {
		SCIConnectSegment(sd, &far, s->peer, SEGMENT, 0, NULL, NULL, 0, 0, &error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_SEGMENT || error == SCI_ERR_NO_SUCH_NODEID);
	check(error, "SCIConnectSegment");
	s->party[0].theirs = SCIMapRemoteSegment(far, &map, 0, BYTES, NULL, 0, &error);
	check(error, "SCIMapRemoteSegment");
}

static void play(struct side *s, char **place, const char *cpu, char **rounds)
{
	pin(cpu);
	setenv("SMARTIO_SOCKET", place[0], 1);
	connect_both(s, begin());
	run(s, (unsigned)atoi(rounds[0]), (unsigned)atoi(rounds[1]));
	SCITerminate();
}

int main(int argc, char **argv)
{
	volatile uint8_t *bare[2];
	struct side side[2];
	int fd, status = 0;
	pid_t child;

	if (argc != 9) {
		fprintf(stderr,
			"usage: bench-sisci-pingpong SOCKET NODE SOCKET NODE CPU CPU ROUNDS "
			"TRIPS\n");
		return 2;
	}
	fd = memfd_create("bare", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 2 * BYTES) < 0)
		fail("memfd_create");
	for (unsigned i = 0; i < 2; i++) {
		bare[i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			       (off_t)(i * BYTES));
		if ((volatile void *)bare[i] == MAP_FAILED)
			fail("mmap");
	}
	for (unsigned i = 0; i < 2; i++)
		side[i] =
			(struct side){.first = i == 0,
				      .peer = (unsigned)atoi(argv[i ? 2 : 4]),
				      .party = {{.who = "sisci"}, {"memfd", bare[i], bare[1 - i]}}};
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(&side[1], &argv[3], argv[6], &argv[7]);
		return 0;
	}
	play(&side[0], &argv[1], argv[5], &argv[7]);
	waitpid(child, &status, 0);
	return status ? 1 : 0;
}
