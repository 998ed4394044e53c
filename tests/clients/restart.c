/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that cleans nothing up: it makes segments and interrupts under fixed ids, connects to
 * its own and to its peer's, and ends. Started again at once, it must find every id free.
 *
 * usage: restart PEER exit|terminate|abort
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sisci_api.h>

#define SEGMENTS 8
#define SIZE 8192

static void must(sci_error_t error, const char *what)
{
	if (error != SCI_ERR_OK) {
		fprintf(stderr, "%s: %s (%#x)\n", what, SCIGetErrorString(error), (unsigned)error);
		_exit(1);
	}
}

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt,
					  sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	(void)status;
	return SCI_CALLBACK_CONTINUE;
}

static void make(unsigned node)
{
	sci_remote_data_interrupt_t data_trigger;
	sci_local_data_interrupt_t data;
	sci_remote_interrupt_t trigger;
	sci_local_interrupt_t interrupt;
	sci_remote_segment_t remote;
	unsigned number;
	sci_local_segment_t segment;
	sci_map_t map;
	sci_error_t error;
	sci_desc_t sd;

	SCIOpen(&sd, 0, &error);
	must(error, "SCIOpen");
	for (unsigned id = 1; id <= SEGMENTS; id++) {
		SCICreateSegment(sd, &segment, id, SIZE, NULL, NULL, 0, &error);
		must(error, "SCICreateSegment");
		SCIMapLocalSegment(segment, &map, 0, SIZE, NULL, 0, &error);
		must(error, "SCIMapLocalSegment");
		SCIPrepareSegment(segment, 0, 0, &error);
		must(error, "SCIPrepareSegment");
		SCISetSegmentAvailable(segment, 0, 0, &error);
		must(error, "SCISetSegmentAvailable");
		SCIConnectSegment(sd, &remote, node, id, 0, NULL, NULL, 0, 0, &error);
		must(error, "SCIConnectSegment");
		SCIMapRemoteSegment(remote, &map, 0, SIZE, NULL, 0, &error);
		must(error, "SCIMapRemoteSegment");
	}
	number = 1;
	SCICreateInterrupt(sd, &interrupt, 0, &number, on_interrupt, NULL,
			   SCI_FLAG_FIXED_INTNO | SCI_FLAG_USE_CALLBACK, &error);
	must(error, "SCICreateInterrupt");
	SCIConnectInterrupt(sd, &trigger, node, 0, 1, 0, 0, &error);
	must(error, "SCIConnectInterrupt");
	SCITriggerInterrupt(trigger, 0, &error);
	must(error, "SCITriggerInterrupt");
	number = 2;
	SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL,
			   SCI_FLAG_FIXED_INTNO | SCI_FLAG_SHARED_INT, &error);
	must(error, "SCICreateInterrupt, shared");
	number = 1;
	SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	must(error, "SCICreateDataInterrupt");
	SCIConnectDataInterrupt(sd, &data_trigger, node, 0, 1, 0, 0, &error);
	must(error, "SCIConnectDataInterrupt");
	SCITriggerDataInterrupt(data_trigger, "left behind", 12, 0, &error);
	must(error, "SCITriggerDataInterrupt");
}

/* What the peer has, if it is there now: it comes and goes, too. */
static void reach(unsigned peer)
{
	sci_remote_data_interrupt_t data;
	sci_remote_segment_t segment;
	sci_remote_interrupt_t interrupt;
	sci_map_t map;
	sci_error_t error;
	sci_desc_t sd;

	SCIOpen(&sd, 0, &error);
	must(error, "SCIOpen");
	for (unsigned id = 1; id <= SEGMENTS; id++) {
		SCIConnectSegment(sd, &segment, peer, id, 0, NULL, NULL, 0, 0, &error);
		if (error == SCI_ERR_OK)
			SCIMapRemoteSegment(segment, &map, 0, SIZE, NULL, 0, &error);
	}
	SCIConnectInterrupt(sd, &interrupt, peer, 0, 1, 0, 0, &error);
	SCIConnectDataInterrupt(sd, &data, peer, 0, 1, 0, 0, &error);
	if (error == SCI_ERR_OK)
		SCITriggerDataInterrupt(data, "left behind", 12, 0, &error);
}

int main(int argc, char **argv)
{
	unsigned node;
	sci_error_t error;

	if (argc != 3) {
		fprintf(stderr, "usage: restart PEER exit|terminate|abort\n");
		return 2;
	}
	SCIInitialize(0, &error);
	must(error, "SCIInitialize");
	SCIGetLocalNodeId(0, &node, 0, &error);
	must(error, "SCIGetLocalNodeId");
	make(node);
	reach((unsigned)atoi(argv[1]));
	if (!strcmp(argv[2], "terminate"))
		SCITerminate();
	if (!strcmp(argv[2], "abort"))
		_exit(0);
	exit(0);
}
