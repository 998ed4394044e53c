/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SISCI API's data path, and requests, in phases between calls of getppid(), for a test that
 * looks which system calls are made in each.
 * usage: apipath serve exports a segment and interrupts until its input ends; prints "serving"
 *        apipath NODE         uses those of NODE; prints the names of its phases
 *        apipath NODE unset   copies there, with errors that nobody has written before
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sisci_api.h"
#include "smartio/ext.h"

#define SEGMENT 77u
#define NUMBER 77u
#define BYTES (1u << 20)
#define STORES 1000000u
#define COPIES 100000u
#define STARTS 1000u
#define TRIGGERS 1000u
#define REQUESTS 500u

static sci_desc_t sd;

static void check(sci_error_t error, const char *what)
{
	if (error == SCI_ERR_OK)
		return;
	fprintf(stderr, "apipath: %s: %s: %s\n", what, SCIGetErrorString(error),
		smartio_last_error());
	exit(1);
}

static void begin(void)
{
	sci_error_t error;

	SCIInitialize(0, &error);
	check(error, "SCIInitialize");
	SCIOpen(&sd, 0, &error);
	check(error, "SCIOpen");
}

static int serve(void)
{
	sci_local_data_interrupt_t data;
	sci_local_interrupt_t plain;
	sci_local_segment_t segment;
	unsigned number = NUMBER;
	sci_error_t error;
	char c;

	begin();
	SCICreateSegment(sd, &segment, SEGMENT, BYTES, NULL, NULL, 0, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(segment, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	SCICreateInterrupt(sd, &plain, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	check(error, "SCICreateInterrupt");
	SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	check(error, "SCICreateDataInterrupt");
	SCISetSegmentAvailable(segment, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	puts("serving");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}

/* All that the phases need. */
static struct {
	sci_remote_data_interrupt_t data;
	sci_local_data_interrupt_t own_data; /* of this program, which sends to itself */
	sci_remote_data_interrupt_t to_own_data;
	sci_remote_interrupt_t plain;
	sci_remote_segment_t remote;
	sci_local_segment_t local;
	sci_map_t remote_map, local_map;
	sci_sequence_t sequence;
	sci_dma_queue_t queue;
	volatile uint64_t *far;
	uint8_t *near;
	unsigned node;
} with;

static void get(unsigned node)
{
	unsigned number = NUMBER + 1, self;
	sci_error_t error;

	with.node = node;
	SCIConnectSegment(sd, &with.remote, node, SEGMENT, 0, NULL, NULL, 0, 0, &error);
	check(error, "SCIConnectSegment");
	with.far = SCIMapRemoteSegment(with.remote, &with.remote_map, 0, BYTES, NULL, 0, &error);
	check(error, "SCIMapRemoteSegment");
	SCICreateMapSequence(with.remote_map, &with.sequence, 0, &error);
	check(error, "SCICreateMapSequence");
	SCICreateSegment(sd, &with.local, SEGMENT + 1, BYTES, NULL, NULL, 0, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(with.local, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	with.near = SCIMapLocalSegment(with.local, &with.local_map, 0, BYTES, NULL, 0, &error);
	check(error, "SCIMapLocalSegment");
	memset(with.near, 0x5a, BYTES);
	SCICreateDMAQueue(sd, &with.queue, 0, 1, 0, &error);
	check(error, "SCICreateDMAQueue");
	SCIConnectInterrupt(sd, &with.plain, node, 0, NUMBER, 0, 0, &error);
	check(error, "SCIConnectInterrupt");
	SCIGetLocalNodeId(0, &self, 0, &error);
	check(error, "SCIGetLocalNodeId");
	SCICreateDataInterrupt(sd, &with.own_data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO,
			       &error);
	check(error, "SCICreateDataInterrupt");
	SCIConnectDataInterrupt(sd, &with.to_own_data, self, 0, number, 0, 0, &error);
	check(error, "SCIConnectDataInterrupt");
	SCIConnectDataInterrupt(sd, &with.data, node, 0, NUMBER, 0, 0, &error);
	check(error, "SCIConnectDataInterrupt");
}

/* ---- the phases ---- */

static void stores(void)
{
	sci_error_t error;

	if (SCIStartSequence(with.sequence, 0, &error) != SCI_SEQ_OK)
		exit(1);
	for (unsigned i = 0; i < STORES; i++) {
		with.far[i % (BYTES / 8)] = i;
		if (with.far[i % (BYTES / 8)] != i)
			exit(1);
		if (SCICheckSequence(with.sequence, 0, &error) != SCI_SEQ_OK)
			exit(1);
		if (i % 16 == 0) {
			SCIStoreBarrier(with.sequence, 0);
			SCIFlush(NULL, 0);
		}
	}
}

static void copies(void)
{
	sci_error_t error;

	for (unsigned i = 0; i < COPIES; i++) {
		size_t size = i % 1000 ? 64 : BYTES;

		SCIMemCpy(with.sequence, with.near, with.remote_map, 0, size,
			  i % 2 ? SCI_FLAG_ERROR_CHECK : 0, &error);
		check(error, "SCIMemCpy");
		SCIMemCpy(NULL, with.near, with.remote_map, 0, size, SCI_FLAG_BLOCK_READ, &error);
		check(error, "SCIMemCpy");
		SCIMemWrite(with.near, with.far, size, 0, &error);
		check(error, "SCIMemWrite");
		SCITransferBlock(with.local_map, 0, with.remote_map, 0, size, 0, &error);
		check(error, "SCITransferBlock");
	}
}

static void unset_errors(void)
{
	sci_error_t *error;

	for (unsigned i = 0; i < COPIES / 1000; i++) {
		error = malloc(sizeof(*error));
		if (!error)
			exit(1);
		SCIMemCpy(NULL, with.near, with.remote_map, 0, i % 2 ? 64 : 4096, 0, error);
		check(*error, "SCIMemCpy");
		free(error);
	}
}

static void start(unsigned flags)
{
	sci_error_t error;

	SCIStartDmaTransfer(with.queue, with.local, with.remote, 0, BYTES / 16, 0, NULL, NULL,
			    flags, &error);
	check(error, "SCIStartDmaTransfer");
}

static void dma_polled(void)
{
	for (unsigned i = 0; i < STARTS; i++) {
		start(0);
		while (SCIDMAQueueState(with.queue) == SCI_DMAQUEUE_POSTED)
			;
	}
}

static void dma_waited(void)
{
	sci_error_t error;

	for (unsigned i = 0; i < STARTS; i++) {
		start(i % 2 ? SCI_FLAG_DMA_WAIT : 0);
		SCIWaitForDMAQueue(with.queue, SCI_INFINITE_TIMEOUT, 0, &error);
		check(error, "SCIWaitForDMAQueue");
	}
}

static void triggers(void)
{
	sci_error_t error;

	for (unsigned i = 0; i < TRIGGERS; i++) {
		SCITriggerInterrupt(with.plain, 0, &error);
		check(error, "SCITriggerInterrupt");
	}
}

static void messages(void)
{
	unsigned value;
	sci_error_t error;

	for (value = 0; value < TRIGGERS; value++) {
		SCITriggerDataInterrupt(with.data, &value, sizeof(value), 0, &error);
		check(error, "SCITriggerDataInterrupt");
	}
}

/* One is sent more than is waited for, so that there always is one. */
static void messages_there(void)
{
	unsigned value, length;
	sci_error_t error;

	for (unsigned i = 0; i < TRIGGERS; i++) {
		length = sizeof(value);
		SCIWaitForDataInterrupt(with.own_data, &value, &length, SCI_INFINITE_TIMEOUT, 0,
					&error);
		check(error, "SCIWaitForDataInterrupt");
		if (value != i)
			exit(1);
	}
}

static void fill_own(void)
{
	unsigned value, length = sizeof(value);
	sci_error_t error;

	for (value = 0; value <= TRIGGERS; value++) {
		unsigned sent = value ? value - 1 : 0;

		SCITriggerDataInterrupt(with.to_own_data, &sent, sizeof(sent), 0, &error);
		check(error, "SCITriggerDataInterrupt");
	}
	/* The first wait takes notice of the ring. */
	SCIWaitForDataInterrupt(with.own_data, &value, &length, SCI_INFINITE_TIMEOUT, 0, &error);
	check(error, "SCIWaitForDataInterrupt");
}

static void requests(void)
{
	sci_remote_segment_t segment;
	sci_error_t error;

	for (unsigned i = 0; i < REQUESTS; i++) {
		SCIConnectSegment(sd, &segment, with.node, SEGMENT, 0, NULL, NULL,
				  SCI_INFINITE_TIMEOUT, 0, &error);
		check(error, "SCIConnectSegment");
		SCIDisconnectSegment(segment, 0, &error);
		check(error, "SCIDisconnectSegment");
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} phases[] = {
		{"stores", stores},	    {"copies", copies},
		{"dma_polled", dma_polled}, {"dma_waited", dma_waited},
		{"triggers", triggers},	    {"messages", messages},
		{"fill", fill_own},	    {"messages_there", messages_there},
		{"requests", requests},
	};
	size_t n = sizeof(phases) / sizeof(phases[0]);

	if (argc != 2 && (argc != 3 || strcmp(argv[2], "unset") != 0)) {
		fprintf(stderr, "usage: apipath serve|NODE [unset]\n");
		return 2;
	}
	if (!strcmp(argv[1], "serve"))
		return serve();
	begin();
	get((unsigned)atoi(argv[1]));
	if (argc == 3) {
		unset_errors();
		return 0;
	}
	/* Once for what is asked the first time, and once to be looked at. */
	start(SCI_FLAG_DMA_WAIT);
	for (size_t i = 0; i < n; i++) {
		getppid();
		phases[i].run();
	}
	getppid();
	for (size_t i = 0; i < n; i++)
		puts(phases[i].name);
	return 0;
}
