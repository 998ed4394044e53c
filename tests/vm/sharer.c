/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares memory until its input ends: what one machine exports, the other writes and reads back.
 * usage: sharer export ID
 *        sharer import NODE ID
 * Prints "running" and "on" as lib/rounds.h says; an exporter when others can connect, and after a
 * pause. An importer exits with 1 when its exporter has ended, and with 3 when a byte is wrong and
 * the path is not.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rounds.h"
#include "sisci_api.h"
#include "smartio/ext.h"

#define BYTES 4096
#define WORDS 16
#define PAUSE_MS 5

static volatile int lost; /* the exporter has ended; set by the library's event thread */

static void check(sci_error_t err, const char *what)
{
	if (err == SCI_ERR_OK)
		return;
	fprintf(stderr, "sharer: %s: %s: %s\n", what, SCIGetErrorString(err), smartio_last_error());
	exit(1);
}

static int export_until_end(sci_desc_t sd, unsigned id)
{
	sci_local_segment_t segment;
	sci_error_t err;

	SCICreateSegment(sd, &segment, id, BYTES, NULL, NULL, 0, &err);
	check(err, "SCICreateSegment");
	SCIPrepareSegment(segment, 0, 0, &err);
	check(err, "SCIPrepareSegment");
	SCISetSegmentAvailable(segment, 0, 0, &err);
	check(err, "SCISetSegmentAvailable");
	rounds_running();
	while (!rounds_end(PAUSE_MS))
		rounds_answer();
	do { /* until the importers have disconnected */
		SCIRemoveSegment(segment, 0, &err);
	} while (err == SCI_ERR_BUSY && poll(NULL, 0, PAUSE_MS) == 0);
	check(err, "SCIRemoveSegment");
	return 0;
}

static sci_callback_action_t on_event(void *arg, sci_remote_segment_t segment,
				      sci_segment_cb_reason_t reason, sci_error_t status)
{
	(void)arg;
	(void)segment;
	fprintf(stderr, "event %d: %s\n", (int)reason, SCIGetErrorString(status));
	if (reason == SCI_CB_LOST || reason == SCI_CB_DISCONNECT)
		lost = 1;
	return SCI_CALLBACK_CONTINUE;
}

/*
 * Is the status of a sequence fine? Each change of it is logged, for those who look why a test
 * failed.
 */
static bool is_fine(const char *what, int status)
{
	static int before;

	if (status != before)
		fprintf(stderr, "%s: %d\n", what, status);
	before = status;
	return status == SCI_SEQ_OK;
}

/* True: all words were written and read back. False: the path has failed. */
static bool run_round(volatile uint32_t *there, sci_sequence_t sequence, uint32_t round)
{
	uint32_t got[WORDS];
	bool ones = true, same = true;
	sci_error_t err;

	if (!is_fine("start", (int)SCIStartSequence(sequence, 0, &err)))
		return false;
	for (unsigned i = 0; i < WORDS; i++)
		there[i] = round * WORDS + i;
	if (!is_fine("check", (int)SCICheckSequence(sequence, 0, &err)))
		return false;
	for (unsigned i = 0; i < WORDS; i++)
		got[i] = there[i];
	for (unsigned i = 0; i < WORDS; i++) {
		same = same && got[i] == round * WORDS + i;
		ones = ones && (got[i] == round * WORDS + i || got[i] == UINT32_MAX);
	}
	if (same)
		return true;
	is_fine("ones", -1);
	/* Reads from a machine that was killed are ones before anybody is notified of its end. */
	if (ones || lost || SCICheckSequence(sequence, 0, &err) != SCI_SEQ_OK)
		return false;
	fprintf(stderr, "sharer: round %u: word 0 is %#x, %#x is right\n", round, got[0],
		round * WORDS);
	exit(3);
}

static sci_remote_segment_t connect_to(sci_desc_t sd, unsigned node, unsigned id)
{
	sci_remote_segment_t segment;
	sci_error_t err;

	do {
		SCIConnectSegment(sd, &segment, node, id, 0, on_event, NULL, SCI_INFINITE_TIMEOUT,
				  SCI_FLAG_USE_CALLBACK, &err);
	} while (err == SCI_ERR_NO_SUCH_SEGMENT && !rounds_end(PAUSE_MS));
	check(err, "SCIConnectSegment");
	return segment;
}

static int import_until_end(sci_desc_t sd, unsigned node, unsigned id)
{
	sci_remote_segment_t segment = connect_to(sd, node, id);
	sci_sequence_t sequence;
	uint32_t rounds = 0;
	sci_error_t err;
	void *there;
	sci_map_t map;

	there = (void *)SCIMapRemoteSegment(segment, &map, 0, BYTES, NULL, 0, &err);
	check(err, "SCIMapRemoteSegment");
	SCICreateMapSequence(map, &sequence, 0, &err);
	check(err, "SCICreateMapSequence");
	while (!lost && !rounds_end(PAUSE_MS)) {
		if (!run_round(there, sequence, rounds))
			continue;
		if (rounds++ == 0)
			rounds_running();
		rounds_answer();
	}
	SCIRemoveSequence(sequence, 0, &err);
	SCIUnmapSegment(map, 0, &err);
	check(err, "SCIUnmapSegment");
	SCIDisconnectSegment(segment, 0, &err);
	check(err, "SCIDisconnectSegment");
	if (lost)
		fprintf(stderr, "sharer: the exporter is gone, after %u rounds\n", rounds);
	else
		printf("%u rounds\n", rounds);
	return lost ? 1 : 0;
}

int main(int argc, char **argv)
{
	bool import = argc == 4 && strcmp(argv[1], "import") == 0;
	sci_error_t err;
	sci_desc_t sd;
	int status;

	if (!import && (argc != 3 || strcmp(argv[1], "export") != 0)) {
		fprintf(stderr, "usage: sharer export ID\n       sharer import NODE ID\n");
		return 2;
	}
	rounds_begin();
	SCIInitialize(0, &err);
	check(err, "SCIInitialize");
	SCIOpen(&sd, 0, &err);
	check(err, "SCIOpen");
	status = import ? import_until_end(sd, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]))
			: export_until_end(sd, (unsigned)atoi(argv[2]));
	SCIClose(sd, 0, &err);
	check(err, "SCIClose");
	SCITerminate();
	return status;
}
