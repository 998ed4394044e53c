/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What it takes to unmap a segment of another host, disconnect, connect to it and map it again, in
 * a program that has all of them mapped.
 *
 * usage: bench-sisci-seg export FIRST COUNT           "ready"; until its input ends
 *        bench-sisci-seg connect FIRST COUNT NODE...  COUNT of each node: "ready"; for each line
 * "N": N times one that is drawn at random; prints nanoseconds of one
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

struct held {
	sci_remote_segment_t seg;
	sci_map_t map;
	unsigned node, id;
};

static void take(sci_desc_t sd, struct held *h)
{
	volatile uint32_t *p;
	sci_error_t error;

	SCIConnectSegment(sd, &h->seg, h->node, h->id, 0, NULL, NULL, 0, 0, &error);
	check(error, "SCIConnectSegment");
	p = SCIMapRemoteSegment(h->seg, &h->map, 0, BYTES, NULL, 0, &error);
	check(error, "SCIMapRemoteSegment");
	*p = h->id;
}

static void leave(const struct held *h)
{
	sci_error_t error;

	SCIUnmapSegment(h->map, 0, &error);
	check(error, "SCIUnmapSegment");
	SCIDisconnectSegment(h->seg, 0, &error);
	check(error, "SCIDisconnectSegment");
}

static void exchange_some(sci_desc_t sd, unsigned first, unsigned count, char **nodes,
			  unsigned n_nodes)
{
	uint64_t random = 0x9e3779b97f4a7c15u, start;
	unsigned times, n = count * n_nodes;
	struct held *held = calloc(n, sizeof(*held));

	if (!held)
		abort();
	for (unsigned i = 0; i < n; i++) {
		held[i].node = (unsigned)atoi(nodes[i % n_nodes]);
		held[i].id = first + i / n_nodes;
		take(sd, &held[i]);
	}
	puts("ready");
	fflush(stdout);
	while (scanf("%u", &times) == 1) {
		start = now_ns();
		for (unsigned i = 0; i < times; i++) {
			struct held *h = &held[next_random(&random) % n];

			leave(h);
			take(sd, h);
		}
		printf("%.0f\n", (double)(now_ns() - start) / times);
		fflush(stdout);
	}
	free(held);
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
		exchange_some(sd, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argv + 4,
			      (unsigned)argc - 4);
	SCITerminate();
	return 0;
}
