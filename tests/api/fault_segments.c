/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fault.h"

#define PAGE 4096u
#define WAIT_MS 50 /* for what a failure may have swallowed */

static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment,
				      sci_segment_cb_reason_t reason, unsigned node,
				      unsigned adapter, sci_error_t status)
{
	(void)arg;
	(void)reason;
	(void)node;
	(void)adapter;
	(void)status;
	CHECK(SCIGetLocalSegmentId(segment) == 11 || smartio_last_error()[0]);
	return SCI_CALLBACK_CONTINUE;
}

sci_local_segment_t export_segment(sci_desc_t sd, unsigned id, bool heard)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, PAGE, on_local, NULL, heard ? SCI_FLAG_USE_CALLBACK : 0,
			 &error);
	if (!worked(error))
		return NULL;
	SCIPrepareSegment(seg, 0, 0, &error);
	worked(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	worked_as(FAULT_PUBLISHES, error);
	return seg;
}

static void copy(sci_remote_segment_t far)
{
	uint8_t bytes[16] = {0};
	sci_error_t error;
	sci_map_t map;

	SCIMapRemoteSegment(far, &map, 0, PAGE, NULL, 0, &error);
	if (!used(error))
		return;
	SCITransferBlock(map, 0, map, 64, 16, 0, &error);
	used(error);
	SCIMemCpy(NULL, bytes, map, 0, sizeof(bytes), SCI_FLAG_ERROR_CHECK, &error);
	used(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

/* Two connections without waiting, one to nothing; events of both sides. */
void use_connections(sci_desc_t sd)
{
	sci_local_segment_t heard = export_segment(sd, 11, true),
			    seg = export_segment(sd, 12, false);
	sci_remote_segment_t far[3] = {NULL};
	sci_error_t error;

	for (unsigned i = 0; i < 3; i++) {
		SCIConnectSegment(sd, &far[i], 4, 11 + i, 0, NULL, NULL, 0,
				  SCI_FLAG_ASYNCHRONOUS_CONNECT, &error);
		CHECK(found(error) || !far[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		if (!far[i])
			continue;
		SCIWaitForRemoteSegmentEvent(far[i], NULL, WAIT_MS, 0, &error);
		if (waited(error) && i < 2)
			copy(far[i]);
	}
	if (seg) {
		SCIWaitForLocalSegmentEvent(seg, NULL, NULL, WAIT_MS, 0, &error);
		waited(error);
	}
	for (unsigned i = 0; i < 3; i++) {
		if (!far[i])
			continue;
		END(SCIDisconnectSegment(far[i], 0, &error));
	}
	if (heard)
		remove_segment(heard);
	if (seg)
		remove_segment(seg);
}

/* Contents are kept, whatever fails. */
void use_own_memory(sci_desc_t sd)
{
	uint32_t *p =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	if ((void *)p == MAP_FAILED)
		return;
	p[0] = 1;
	p[PAGE / 2 - 1] = 2;
	SCICreateSegment(sd, &seg, 13, 2 * PAGE, NULL, NULL, SCI_FLAG_EMPTY, &error);
	if (worked(error)) {
		for (unsigned i = 0; i < 2; i++) {
			SCIRegisterSegmentMemory(p, 2 * PAGE, seg, 0, &error);
			if (worked(error))
				break;
			CHECK(p[0] == 1 && p[PAGE / 2 - 1] == 2);
		}
		SCIRemoveSegment(seg, 0, &error);
		if (!worked(error)) {
			CHECK(p[0] == 1 && p[PAGE / 2 - 1] == 2);
			remove_segment(seg);
		}
	}
	CHECK(p[0] == 1 && p[PAGE / 2 - 1] == 2);
	munmap(p, 2 * PAGE);
}

void use_shares(sci_desc_t sd)
{
	sci_local_segment_t seg = export_segment(sd, 14, false), other = NULL;
	sci_error_t error;
	sci_map_t map;

	if (!seg)
		return;
	SCIShareSegment(seg, 0, &error);
	if (worked(error)) {
		SCIAttachLocalSegment(sd, &other, 14, NULL, NULL, NULL, 0, &error);
		CHECK(found(error) || !other);
	}
	remove_segment(seg);
	if (other) {
		SCIMapLocalSegment(other, &map, 0, PAGE, NULL, 0, &error);
		if (worked(error)) {
			SCIUnmapSegment(map, 0, &error);
			CHECK_OK(error);
		}
		remove_segment(other);
	}
}
