/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program while hardware fails: fault_program export | import NODE. Prints "ready", an event of
 * its segment in a line, and the answer to each line of its standard input in one: what the
 * sequence says (check, start), the first byte of the mapping (read), whether it was stored
 * (write N), copied by DMA (dma) or all was mapped anew (again). Ends with its standard input.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sisci_api.h"

#define BYTES 65536u

static struct {
	sci_desc_t sd;
	unsigned node;
	sci_local_segment_t local;
	sci_map_t own;
	sci_remote_segment_t segment;
	sci_map_t map;
	sci_sequence_t sequence;
	sci_dma_queue_t queue;
	volatile uint8_t *p;
} me;

static void say(const char *what, sci_error_t error)
{
	if (error == SCI_ERR_OK)
		printf("%s\n", what);
	else
		printf("error %#x\n", (unsigned)error);
	fflush(stdout);
}

static sci_callback_action_t happened(void *arg, sci_remote_segment_t segment,
				      sci_segment_cb_reason_t reason, sci_error_t status)
{
	(void)arg;
	(void)segment;
	(void)status;
	say(reason == SCI_CB_NOT_OPERATIONAL ? "event down"
	    : reason == SCI_CB_OPERATIONAL   ? "event up"
	    : reason == SCI_CB_LOST	     ? "event lost"
					     : "event other",
	    SCI_ERR_OK);
	return SCI_CALLBACK_CONTINUE;
}

static sci_error_t make_memory(unsigned id)
{
	sci_error_t error;

	SCICreateSegment(me.sd, &me.local, id, BYTES, NULL, NULL, 0, &error);
	if (error == SCI_ERR_OK)
		SCIPrepareSegment(me.local, 0, 0, &error);
	return error;
}

static sci_error_t offer(void)
{
	sci_error_t error = make_memory(1);

	if (error == SCI_ERR_OK)
		SCISetSegmentAvailable(me.local, 0, 0, &error);
	return error;
}

static sci_error_t connect_and_map(void)
{
	sci_error_t error;

	SCIConnectSegment(me.sd, &me.segment, me.node, 1, 0, happened, NULL, SCI_INFINITE_TIMEOUT,
			  SCI_FLAG_USE_CALLBACK, &error);
	if (error == SCI_ERR_OK)
		me.p = SCIMapRemoteSegment(me.segment, &me.map, 0, BYTES, NULL, 0, &error);
	if (error == SCI_ERR_OK)
		SCICreateMapSequence(me.map, &me.sequence, 0, &error);
	if (error == SCI_ERR_OK && SCIStartSequence(me.sequence, 0, &error) != SCI_SEQ_OK &&
	    error == SCI_ERR_OK)
		error = SCI_ERR_TRANSFER_FAILED;
	return error;
}

static sci_error_t again(void)
{
	sci_error_t error;

	SCIRemoveSequence(me.sequence, 0, &error);
	SCIUnmapSegment(me.map, 0, &error);
	SCIDisconnectSegment(me.segment, 0, &error);
	return connect_and_map();
}

static const char *name_of(sci_sequence_status_t status)
{
	switch (status) {
	case SCI_SEQ_OK:
		return "ok";
	case SCI_SEQ_RETRIABLE:
		return "retriable";
	case SCI_SEQ_NOT_RETRIABLE:
		return "not retriable";
	default:
		return "pending";
	}
}

static void copy_by_dma(void)
{
	sci_dma_queue_state_t state = SCI_DMAQUEUE_IDLE;
	sci_error_t error;

	SCIStartDmaTransfer(me.queue, me.local, me.segment, 0, 4096, 0, NULL, NULL, 0, &error);
	if (error == SCI_ERR_OK)
		state = SCIWaitForDMAQueue(me.queue, SCI_INFINITE_TIMEOUT, 0, &error);
	say(state == SCI_DMAQUEUE_DONE ? "copied" : "not copied", error);
}

static void serve(const char *line)
{
	sci_sequence_status_t status;
	sci_error_t error = SCI_ERR_OK;

	if (strncmp(line, "check", 5) == 0) {
		status = SCICheckSequence(me.sequence, 0, &error);
		say(name_of(status), error);
	} else if (strncmp(line, "start", 5) == 0) {
		status = SCIStartSequence(me.sequence, 0, &error);
		say(name_of(status), error);
	} else if (strncmp(line, "read", 4) == 0) {
		printf("%u\n", me.p[0]);
		fflush(stdout);
	} else if (strncmp(line, "write ", 6) == 0) {
		me.p[0] = (uint8_t)strtoul(line + 6, NULL, 10);
		say("stored", SCI_ERR_OK);
	} else if (strncmp(line, "dma", 3) == 0) {
		copy_by_dma();
	} else if (strncmp(line, "again", 5) == 0) {
		say("mapped", again());
	} else {
		say("what?", SCI_ERR_OK);
	}
}

int main(int argc, char **argv)
{
	sci_error_t error;
	char line[64];

	SCIInitialize(0, &error);
	if (error == SCI_ERR_OK)
		SCIOpen(&me.sd, 0, &error);
	if (error == SCI_ERR_OK && argc == 3) {
		me.node = (unsigned)strtoul(argv[2], NULL, 10);
		error = make_memory(2);
		if (error == SCI_ERR_OK)
			SCICreateDMAQueue(me.sd, &me.queue, 0, 1, 0, &error);
		if (error == SCI_ERR_OK)
			error = connect_and_map();
	} else if (error == SCI_ERR_OK) {
		error = offer();
	}
	say("ready", error);
	if (error != SCI_ERR_OK)
		return 1;
	while (fgets(line, sizeof(line), stdin))
		serve(line);
	return 0;
}
