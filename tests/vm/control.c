/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control calls without a pause: creates, connects, maps, borrows, sends, and gives all back, until
 * its input ends. Each call must succeed, whatever smartiod goes through meanwhile.
 * usage: control SEGMENT-ID
 * Prints "running" and "on" as lib/rounds.h says; at the end the rounds, the calls and the longest
 * of these.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/rounds.h"
#include "sisci_api.h"
#include "smartio/ext.h"

#define BYTES 65536
#define WAIT_MS 60000

static struct {
	unsigned long calls;
	uint64_t longest_ns, since;
	const char *longest;
} all;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void ended(const char *call, sci_error_t err)
{
	uint64_t took = now() - all.since;

	all.calls++;
	if (took > all.longest_ns) {
		all.longest_ns = took;
		all.longest = call;
	}
	if (err == SCI_ERR_OK)
		return;
	fprintf(stderr, "control: %s: error %#x: %s\n", call, err, smartio_last_error());
	exit(1);
}

/* With the error as the last argument. */
#define CALL(name, ...)                                                                            \
	do {                                                                                       \
		sci_error_t err_ = SCI_ERR_OK;                                                     \
		all.since = now();                                                                 \
		name(__VA_ARGS__, &err_);                                                          \
		ended(#name, err_);                                                                \
	} while (0)

#define TAKE(to, name, ...)                                                                        \
	do {                                                                                       \
		sci_error_t err_ = SCI_ERR_OK;                                                     \
		all.since = now();                                                                 \
		(to) = name(__VA_ARGS__, &err_);                                                   \
		ended(#name, err_);                                                                \
	} while (0)

static void share_memory(sci_desc_t sd, unsigned id, unsigned round)
{
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_map_t map, own;
	volatile unsigned *there;
	unsigned *here;

	CALL(SCICreateSegment, sd, &local, id, BYTES, NULL, NULL, 0);
	CALL(SCIPrepareSegment, local, 0, 0);
	CALL(SCISetSegmentAvailable, local, 0, 0);
	CALL(SCIConnectSegment, sd, &remote, SCI_LOCAL_HOST, id, 0, NULL, NULL, WAIT_MS, 0);
	TAKE(there, SCIMapRemoteSegment, remote, &map, 0, BYTES, NULL, 0);
	TAKE(here, SCIMapLocalSegment, local, &own, 0, BYTES, NULL, 0);
	for (unsigned i = 0; i < BYTES / sizeof(*here); i++)
		there[i] = round ^ i;
	for (unsigned i = 0; i < BYTES / sizeof(*here); i++)
		if (here[i] != (round ^ i)) {
			fprintf(stderr, "control: a word came out changed\n");
			exit(1);
		}
	CALL(SCIUnmapSegment, own, 0);
	CALL(SCIUnmapSegment, map, 0);
	CALL(SCIDisconnectSegment, remote, 0);
	CALL(SCISetSegmentUnavailable, local, 0, 0);
	CALL(SCIRemoveSegment, local, 0);
}

static void send_message(sci_desc_t sd, unsigned round)
{
	sci_local_data_interrupt_t local;
	sci_remote_data_interrupt_t remote;
	unsigned number = 0, got = 0, len = sizeof(got);

	CALL(SCICreateDataInterrupt, sd, &local, 0, &number, NULL, NULL, 0);
	CALL(SCIConnectDataInterrupt, sd, &remote, SCI_LOCAL_HOST, 0, number, WAIT_MS, 0);
	CALL(SCITriggerDataInterrupt, remote, &round, sizeof(round), 0);
	CALL(SCIWaitForDataInterrupt, local, &got, &len, WAIT_MS, 0);
	if (got != round || len != sizeof(got)) {
		fprintf(stderr, "control: message %u came as %u\n", round, got);
		exit(1);
	}
	CALL(SCIDisconnectDataInterrupt, remote, 0);
	CALL(SCIRemoveDataInterrupt, local, 0);
}

static void use_device(sci_desc_t sd, unsigned fdid)
{
	sci_smartio_device_t device;
	sci_remote_segment_t bar;
	sci_local_segment_t local;
	sci_ioaddr_t at;
	sci_map_t map;
	volatile void *p;

	CALL(SCIBorrowDevice, sd, &device, fdid, 0);
	CALL(SCIConnectDeviceSegment, device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0);
	TAKE(p, SCIMapRemoteSegment, bar, &map, 0, 4096, NULL, SCI_FLAG_READONLY_MAP);
	if (*(volatile unsigned *)p == ~0u) {
		fprintf(stderr, "control: the registers read as ones\n");
		exit(1);
	}
	CALL(SCICreateSegment, sd, &local, 0, BYTES, NULL, NULL,
	     SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID);
	CALL(SCIPrepareSegment, local, 0, 0);
	CALL(SCIMapLocalSegmentForDevice, local, 0, device, &at, 0, BYTES, 0);
	CALL(SCIUnmapLocalSegmentForDevice, local, 0, device, 0);
	CALL(SCIRemoveSegment, local, 0);
	CALL(SCIUnmapSegment, map, 0);
	CALL(SCIDisconnectSegment, bar, 0);
	CALL(SCIReturnDevice, device, 0);
}

int main(int argc, char **argv)
{
	unsigned id = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 0) : 0, round = 0, fdid = 0;
	sci_error_t err;
	sci_desc_t sd;
	size_t n;

	if (!id) {
		fprintf(stderr, "usage: control SEGMENT-ID\n");
		return 2;
	}
	rounds_begin();
	all.since = now();
	SCIInitialize(0, &err);
	ended("SCIInitialize", err);
	CALL(SCIOpen, &sd, 0);
	TAKE(n, SCIGetDeviceList, sd, &fdid, 1, NULL, 0);
	if (n != 1) {
		fprintf(stderr, "control: no device\n");
		return 1;
	}
	do {
		share_memory(sd, id, round);
		send_message(sd, round);
		use_device(sd, fdid);
		if (round++ == 0)
			rounds_running();
		rounds_answer();
	} while (!rounds_end(0));
	SCIClose(sd, 0, &err);
	SCITerminate();
	printf("%u rounds, %lu calls, the longest took %llu ms: %s\n", round, all.calls,
	       (unsigned long long)(all.longest_ns / 1000000), all.longest);
	return 0;
}
