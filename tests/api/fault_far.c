/* SPDX-License-Identifier: BSD-2-Clause */
/* What another host has, through a link that goes down and comes back meanwhile. */
#include "fault.h"

#define PAGE 4096u
#define NODE 8u
#define SEGMENT 77u
#define NUMBER 77u
#define WAIT_MS 50 /* for what a failure may have swallowed */

void (*fault_link)(bool up);

static void move_link(bool up)
{
	if (fault_link)
		fault_link(up);
}

static void touch(sci_map_t map, sci_sequence_t sequence)
{
	volatile uint32_t *p = SCIGetMapPointer(map);
	uint32_t word = 7;
	sci_error_t error;

	p[0] = 7;
	CHECK(p[0] == 7 || p[0] == 0 || p[0] == 0xffffffff);
	SCIMemCpy(sequence, &word, map, 0, sizeof(word), SCI_FLAG_ERROR_CHECK, &error);
	used(error);
	SCITransferBlock(map, 0, map, 64, 16, 0, &error);
	used(error);
	if (sequence) {
		SCIStartSequence(sequence, 0, &error);
		used(error);
		SCICheckSequence(sequence, 0, &error);
		used(error);
	}
}

static void look_through(sci_remote_segment_t far)
{
	sci_sequence_t sequence = NULL;
	sci_error_t error;
	sci_map_t map;

	SCIMapRemoteSegment(far, &map, 0, PAGE, NULL, 0, &error);
	if (!used(error))
		return;
	SCICreateMapSequence(map, &sequence, 0, &error);
	used(error);
	touch(map, sequence);
	move_link(false);
	SCIWaitForRemoteSegmentEvent(far, NULL, fault_link ? WAIT_MS : 0, 0, &error);
	waited(error);
	touch(map, sequence);
	move_link(true);
	SCIWaitForRemoteSegmentEvent(far, NULL, fault_link ? WAIT_MS : 0, 0, &error);
	waited(error);
	touch(map, sequence);
	if (sequence) {
		SCIRemoveSequence(sequence, 0, &error);
		CHECK_OK(error);
	}
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

static void trigger(sci_desc_t sd)
{
	sci_remote_data_interrupt_t data = NULL;
	sci_remote_interrupt_t plain = NULL;
	sci_error_t error;

	SCIConnectInterrupt(sd, &plain, NODE, 0, NUMBER, 0, 0, &error);
	if (found(error)) {
		SCITriggerInterrupt(plain, 0, &error);
		used(error);
		SCIDisconnectInterrupt(plain, 0, &error);
		CHECK_OK(error);
	}
	SCIConnectDataInterrupt(sd, &data, NODE, 0, NUMBER, 0, 0, &error);
	if (found(error)) {
		SCITriggerDataInterrupt(data, NULL, 0, 0, &error);
		used(error);
		SCIDisconnectDataInterrupt(data, 0, &error);
		CHECK_OK(error);
	}
}

void use_far(sci_desc_t sd)
{
	sci_remote_segment_t far = NULL;
	sci_error_t error;

	SCIProbeNode(sd, 0, NODE, 0, &error);
	found(error);
	SCIConnectSegment(sd, &far, NODE, SEGMENT, 0, NULL, NULL, 0, 0, &error);
	if (found(error)) {
		look_through(far);
		push_words(sd, far, 4, 0);
		END(SCIDisconnectSegment(far, 0, &error));
	}
	trigger(sd);
}

void fault_far_begin(void)
{
	sci_local_data_interrupt_t data = NULL;
	sci_local_interrupt_t plain = NULL;
	sci_local_segment_t seg = NULL;
	unsigned number = NUMBER;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	SCICreateSegment(sd, &seg, SEGMENT, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCICreateInterrupt(sd, &plain, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
}
