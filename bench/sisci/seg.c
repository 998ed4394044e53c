/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What it takes to connect to a segment of another host, map it, unmap it and disconnect.
 *
 * usage: bench-sisci-seg export FIRST COUNT           "ready"; until its input ends
 *        bench-sisci-seg connect FIRST COUNT NODE...  for each line "N": N times to segments drawn
 * at random; prints nanoseconds of one
 */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common.h"

#define BYTES 4096u

static void export_all(sci_desc_t sd, unsigned first, unsigned count)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	char byte;

	for (unsigned i = 0; i < count; i++) {
		SCICreateSegment(sd, &seg, first + i, BYTES, NULL, NULL, 0, &error);
		check(error, "SCICreateSegment");
		SCIPrepareSegment(seg, 0, 0, &error);
		check(error, "SCIPrepareSegment");
		SCISetSegmentAvailable(seg, 0, 0, &error);
		check(error, "SCISetSegmentAvailable");
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
}

static void one_cycle(sci_desc_t sd, unsigned node, unsigned id)
{
	sci_remote_segment_t seg = NULL;
	volatile uint32_t *p;
	sci_error_t error;
	sci_map_t map;

	SCIConnectSegment(sd, &seg, node, id, 0, NULL, NULL, 0, 0, &error);
	check(error, "SCIConnectSegment");
	p = SCIMapRemoteSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	check(error, "SCIMapRemoteSegment");
	*p = id;
	SCIUnmapSegment(map, 0, &error);
	check(error, "SCIUnmapSegment");
	SCIDisconnectSegment(seg, 0, &error);
	check(error, "SCIDisconnectSegment");
}

static void connect_some(sci_desc_t sd, unsigned first, unsigned count, char **nodes,
			 unsigned n_nodes)
{
	uint64_t random = 0x9e3779b97f4a7c15u, start;
	unsigned times;

	while (scanf("%u", &times) == 1) {
		start = now_ns();
		for (unsigned i = 0; i < times; i++) {
			unsigned node = (unsigned)atoi(nodes[next_random(&random) % n_nodes]);

			one_cycle(sd, node, first + (unsigned)(next_random(&random) % count));
		}
		printf("%.0f\n", (double)(now_ns() - start) / times);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	sci_desc_t sd;

	if (argc < 4 || (strcmp(argv[1], "export") == 0) != (argc == 4)) {
		fprintf(stderr, "usage: bench-sisci-seg export FIRST COUNT | connect FIRST COUNT "
				"NODE...\n");
		return 2;
	}
	/* Each segment is a descriptor. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	sd = begin();
	if (argc == 4)
		export_all(sd, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	else
		connect_some(sd, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argv + 4,
			     (unsigned)argc - 4);
	SCITerminate();
	return 0;
}
