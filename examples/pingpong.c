/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping-pong through shared memory. Each side has a segment of its own and writes into the other's:
 * a store goes to the peer and nobody waits for it, a load of one's own memory crosses no link.
 *
 * usage: pingpong PEER-NODE first|second ROUNDS
 */
#include <stdint.h>
#include <string.h>

#include "example.h"

#define SEGMENT 0x100
#define BYTES 4096

int main(int argc, char **argv)
{
	sci_remote_segment_t remote;
	sci_local_segment_t local;
	sci_map_t local_map, remote_map;
	volatile uint32_t *mine, *theirs;
	uint32_t rounds;
	sci_desc_t sd;

	if (argc != 4) {
		fprintf(stderr, "usage: pingpong PEER-NODE first|second ROUNDS\n");
		return 2;
	}
	rounds = (uint32_t)atoi(argv[3]);
	sd = begin();
	mine = export_segment(sd, SEGMENT, BYTES, 0, &local, &local_map);
	remote = connect_segment(sd, (unsigned)atoi(argv[1]), SEGMENT, 0);
	theirs = map_remote(remote, BYTES, &remote_map);
	for (uint32_t round = 1; round <= rounds; round++) {
		if (strcmp(argv[2], "first") == 0)
			*theirs = round;
		while (*mine != round)
			sched_yield();
		if (strcmp(argv[2], "first") != 0)
			*theirs = round;
	}
	printf("%u rounds\n", *mine);
	disconnect_segment(remote, remote_map);
	remove_segment(local, local_map);
	end(sd);
	return 0;
}
