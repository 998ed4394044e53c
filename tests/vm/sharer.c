/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares memory until its input ends: what one machine exports, the other writes and reads back.
 * usage: sharer export ID
 *        sharer import NODE ID
 *        sharer copy NODE ID     the same by a DMA queue, without a map; each queue for a while
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
#define BACK 2048	/* where a copy comes back to */
#define QUEUE_ROUNDS 64 /* with one DMA queue */

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

/* ---- by a DMA queue ---- */

struct copier {
	sci_desc_t sd;
	sci_remote_segment_t there;
	sci_local_segment_t here;
	sci_map_t map;
	sci_dma_queue_t queue;
	volatile uint32_t *memory; /* of here */
};

static void copier_begin(struct copier *c)
{
	sci_error_t err;

	SCICreateSegment(c->sd, &c->here, 0, BYTES, NULL, NULL, SCI_FLAG_AUTO_ID, &err);
	check(err, "SCICreateSegment");
	SCIPrepareSegment(c->here, 0, 0, &err);
	check(err, "SCIPrepareSegment");
	c->memory = SCIMapLocalSegment(c->here, &c->map, 0, BYTES, NULL, 0, &err);
	check(err, "SCIMapLocalSegment");
	SCICreateDMAQueue(c->sd, &c->queue, 0, 1, 0, &err);
	check(err, "SCICreateDMAQueue");
}

static void copier_end(struct copier *c)
{
	sci_error_t err;

	SCIRemoveDMAQueue(c->queue, 0, &err);
	check(err, "SCIRemoveDMAQueue");
	SCIUnmapSegment(c->map, 0, &err);
	check(err, "SCIUnmapSegment");
	SCIRemoveSegment(c->here, 0, &err);
	check(err, "SCIRemoveSegment");
}

/* There and back again. A path that fails is no reason to end; a wrong word is. */
static bool copy_round(struct copier *c, uint32_t round)
{
	const size_t size = WORDS * sizeof(uint32_t);
	sci_error_t err;

	for (unsigned i = 0; i < WORDS; i++)
		c->memory[i] = round * WORDS + i;
	SCIStartDmaTransfer(c->queue, c->here, c->there, 0, size, 0, NULL, NULL, SCI_FLAG_DMA_WAIT,
			    &err);
	if (err == SCI_ERR_OK)
		SCIStartDmaTransfer(c->queue, c->here, c->there, BACK, size, 0, NULL, NULL,
				    SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_READ, &err);
	if (!is_fine("copy", (int)err))
		return false;
	for (unsigned i = 0; i < WORDS; i++)
		if (c->memory[BACK / sizeof(uint32_t) + i] != round * WORDS + i) {
			fprintf(stderr, "sharer: round %u: word %u came back as %#x\n", round, i,
				c->memory[BACK / sizeof(uint32_t) + i]);
			exit(3);
		}
	return true;
}

static int copy_until_end(sci_desc_t sd, unsigned node, unsigned id)
{
	struct copier c = {.sd = sd, .there = connect_to(sd, node, id)};
	uint32_t rounds = 0;
	sci_error_t err;

	copier_begin(&c);
	while (!lost && !rounds_end(PAUSE_MS)) {
		if (!copy_round(&c, rounds))
			continue;
		if (rounds++ == 0)
			rounds_running();
		rounds_answer();
		if (rounds % QUEUE_ROUNDS == 0) {
			copier_end(&c);
			copier_begin(&c);
		}
	}
	copier_end(&c);
	SCIDisconnectSegment(c.there, 0, &err);
	check(err, "SCIDisconnectSegment");
	printf("%u rounds\n", rounds);
	return lost ? 1 : 0;
}

int main(int argc, char **argv)
{
	bool copy = argc == 4 && strcmp(argv[1], "copy") == 0;
	bool import = argc == 4 && strcmp(argv[1], "import") == 0;
	sci_error_t err;
	sci_desc_t sd;
	int status;

	if (!import && !copy && (argc != 3 || strcmp(argv[1], "export") != 0)) {
		fprintf(stderr, "usage: sharer export ID\n       sharer import|copy NODE ID\n");
		return 2;
	}
	rounds_begin();
	SCIInitialize(0, &err);
	check(err, "SCIInitialize");
	SCIOpen(&sd, 0, &err);
	check(err, "SCIOpen");
	if (import)
		status = import_until_end(sd, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	else if (copy)
		status = copy_until_end(sd, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	else
		status = export_until_end(sd, (unsigned)atoi(argv[2]));
	SCIClose(sd, 0, &err);
	check(err, "SCIClose");
	SCITerminate();
	return status;
}
