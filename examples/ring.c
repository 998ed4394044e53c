/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of messages one way. The receiver has a ring in its memory; the sender writes a message
 * into the next slot and then that slot's sequence number, so a slot is whole when its number is
 * right. Where the receiver is, it writes into the sender's memory, now and then: so neither side
 * ever loads across the link.
 *
 * usage: ring receive SENDER-NODE MESSAGES | ring send RECEIVER-NODE MESSAGES
 */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "example.h"

#define RING 0x200   /* the receiver's segment */
#define CREDIT 0x201 /* the sender's */
#define SLOTS 256
#define BYTES 4096

struct slot {
	uint64_t payload[7];
	uint64_t number; /* of the message, from 1 on; written last */
};

struct credit {
	uint64_t taken; /* messages that the receiver is done with */
};

static void receive(sci_desc_t sd, unsigned sender, uint64_t messages)
{
	volatile struct credit *credit;
	volatile struct slot *ring;
	sci_remote_segment_t remote;
	sci_local_segment_t local;
	sci_map_t map, remote_map;
	uint64_t sum = 0;

	ring = export_segment(sd, RING, SLOTS * sizeof(struct slot), 0, &local, &map);
	remote = connect_segment(sd, sender, CREDIT, 0);
	credit = map_remote(remote, BYTES, &remote_map);
	for (uint64_t n = 1; n <= messages; n++) {
		volatile struct slot *s = &ring[n % SLOTS];

		while (s->number != n)
			sched_yield();
		/* What is read from here on is at least as new as the number. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		for (unsigned i = 0; i < 7; i++)
			sum += s->payload[i];
		if (n % (SLOTS / 4) == 0)
			credit->taken = n;
	}
	credit->taken = messages;
	printf("received %" PRIu64 ", sum %" PRIu64 "\n", messages, sum);
	disconnect_segment(remote, remote_map);
	remove_segment(local, map);
}

static void send(sci_desc_t sd, unsigned receiver, uint64_t messages)
{
	volatile struct credit *credit;
	volatile struct slot *ring;
	sci_remote_segment_t remote;
	sci_local_segment_t local;
	sci_map_t map, remote_map;
	uint64_t sum = 0;

	credit = export_segment(sd, CREDIT, BYTES, 0, &local, &map);
	remote = connect_segment(sd, receiver, RING, 0);
	ring = map_remote(remote, SLOTS * sizeof(struct slot), &remote_map);
	for (uint64_t n = 1; n <= messages; n++) {
		volatile struct slot *s = &ring[n % SLOTS];

		while (n - credit->taken > SLOTS)
			sched_yield();
		for (unsigned i = 0; i < 7; i++) {
			s->payload[i] = n * 7 + i;
			sum += n * 7 + i;
		}
		/* The payload arrives before the number that says that it is there. */
		SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
		s->number = n;
	}
	while (credit->taken != messages)
		sched_yield();
	printf("sent %" PRIu64 ", sum %" PRIu64 "\n", messages, sum);
	disconnect_segment(remote, remote_map);
	remove_segment(local, map);
}

int main(int argc, char **argv)
{
	sci_desc_t sd;

	if (argc != 4) {
		fprintf(stderr, "usage: ring receive|send PEER-NODE MESSAGES\n");
		return 2;
	}
	sd = begin();
	if (strcmp(argv[1], "receive") == 0)
		receive(sd, (unsigned)atoi(argv[2]), (uint64_t)atoll(argv[3]));
	else
		send(sd, (unsigned)atoi(argv[2]), (uint64_t)atoll(argv[3]));
	end(sd);
	return 0;
}
