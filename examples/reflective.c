/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reflective memory: what one host writes, all have in their own memory. Each of @HOSTS programs
 * puts its line into the table of all, and prints the table when it is complete; nobody asks
 * anybody.
 *
 * usage: reflective MY-NUMBER HOSTS
 */
#include <stdint.h>
#include <string.h>

#include "example.h"

#define GROUP 1
#define MOST 64

struct line {
	char text[56];
	uint64_t there; /* written last */
};

static struct line line_of(unsigned number)
{
	struct line l = {.there = 0};

	snprintf(l.text, sizeof(l.text), "%u was here", number);
	return l;
}

int main(int argc, char **argv)
{
	sci_remote_segment_t all;
	sci_local_segment_t local;
	sci_map_t map, all_map;
	volatile struct line *mine, *theirs;
	unsigned me, hosts;
	struct line l;
	sci_error_t error;
	sci_desc_t sd;

	me = argc == 3 ? (unsigned)atoi(argv[1]) : MOST;
	hosts = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	if (me >= hosts || hosts > MOST) {
		fprintf(stderr, "usage: reflective MY-NUMBER HOSTS\n");
		return 2;
	}
	sd = begin();
	/* Our member of the group, to read; and the group itself, to write. */
	mine = export_segment(sd, GROUP, sizeof(struct line) * MOST, SCI_FLAG_BROADCAST, &local,
			      &map);
	all = connect_segment(sd, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP, SCI_FLAG_BROADCAST);
	theirs = map_remote(all, sizeof(struct line) * MOST, &all_map);
	l = line_of(me);
	SCIMemCpy(NULL, l.text, all_map, me * sizeof(l), sizeof(l.text), 0, &error);
	check(error, "SCIMemCpy");
	SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
	theirs[me].there = 1;
	for (unsigned i = 0; i < hosts; i++) {
		while (!mine[i].there)
			sched_yield();
		printf("%s\n", (const char *)(uintptr_t)mine[i].text);
	}
	/* Connections to a group do not keep its members from going. */
	remove_segment(local, map);
	disconnect_segment(all, all_map);
	end(sd);
	return 0;
}
