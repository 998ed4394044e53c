/* SPDX-License-Identifier: BSD-2-Clause */
/* Each kind of object, from its making to its end, whatever fails on the way. */
#include <stdlib.h>

#include "fault.h"

#define PAGE 4096u

bool fault_no_faults;

void remove_interrupt(sci_local_interrupt_t interrupt)
{
	sci_error_t error;

	do
		SCIRemoveInterrupt(interrupt, 0, &error);
	while ((error == SCI_ERR_BUSY && !fault_left) || fault_again(error, __FILE__, __LINE__));
}

void remove_segment(sci_local_segment_t segment)
{
	sci_error_t error;

	do
		SCIRemoveSegment(segment, 0, &error);
	while ((error == SCI_ERR_BUSY && !fault_left) || fault_again(error, __FILE__, __LINE__));
}

void push_words(sci_desc_t sd, sci_remote_segment_t far, size_t size, unsigned flags)
{
	uint32_t words[16] = {7};
	sci_dma_queue_t queue;
	sci_error_t error;

	CHECK(size <= sizeof(words));
	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	if (!worked(error))
		return;
	SCIStartDmaTransferMem(queue, words, far, size, 0, NULL, NULL, SCI_FLAG_DMA_WAIT | flags,
			       &error);
	used(error);
	SCIRemoveDMAQueue(queue, 0, &error);
	CHECK_OK(error);
}

void trigger_to_end(sci_desc_t sd, sci_local_interrupt_t interrupt, unsigned number)
{
	sci_remote_interrupt_t remote = NULL;
	sci_error_t error;

	SCIConnectInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (found(error)) {
		SCITriggerInterrupt(remote, 0, &error);
		used(error);
		SCIWaitForInterrupt(interrupt, 50, 0, &error);
		waited(error);
		SCIDisconnectInterrupt(remote, 0, &error);
		CHECK_OK(error);
	}
	remove_interrupt(interrupt);
}

static void use_segments(sci_desc_t sd)
{
	sci_remote_segment_t remote = NULL;
	sci_sequence_t sequence = NULL;
	sci_map_t map = NULL, far = NULL;
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	uint8_t *p;

	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	if (!worked(error))
		return;
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	if (worked(error))
		*p = 7;
	SCIPrepareSegment(seg, 0, 0, &error);
	worked(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	worked_as(FAULT_PUBLISHES, error);
	SCIConnectSegment(sd, &remote, 4, 1, 0, NULL, NULL, 0, 0, &error);
	if (found(error)) {
		SCIMapRemoteSegment(remote, &far, 0, PAGE, NULL, 0, &error);
		if (used(error)) {
			SCICreateMapSequence(far, &sequence, 0, &error);
			if (used(error)) {
				SCICheckSequence(sequence, 0, &error);
				CHECK_OK(error);
				SCIRemoveSequence(sequence, 0, &error);
				CHECK_OK(error);
			}
			SCIUnmapSegment(far, 0, &error);
			CHECK_OK(error);
		}
		END(SCIDisconnectSegment(remote, 0, &error));
	}
	if (map) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	remove_segment(seg);
}

static void use_interrupts(sci_desc_t sd)
{
	sci_remote_data_interrupt_t remote = NULL;
	sci_local_data_interrupt_t dint = NULL;
	unsigned number = 0, length = 0;
	sci_error_t error;

	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, 0, &error);
	if (!worked(error))
		return;
	SCIConnectDataInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (found(error)) {
		SCITriggerDataInterrupt(remote, NULL, 0, 0, &error);
		used(error);
		SCIWaitForDataInterrupt(dint, NULL, &length, 50, 0, &error);
		waited(error);
		SCIDisconnectDataInterrupt(remote, 0, &error);
		CHECK_OK(error);
		SCIWaitForDataInterrupt(dint, NULL, &length, 0, 0, &error);
		waited(error);
	}
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
}

/* Stores wake the drive by faults, or by an event descriptor. */
static void use_doorbells(sci_remote_segment_t bar, bool by_event)
{
	const volatile uint32_t *word;
	sci_error_t error;
	sci_map_t map;

	fault_no_faults = by_event;
	SCIMapRemoteSegment(bar, &map, 0, 2 * PAGE, NULL, 0, &error);
	fault_no_faults = false;
	if (!used(error))
		return;
	word = smartio_map_sleep_word(map);
	CHECK(word == smartio_map_sleep_word(map) || by_event); /* a failure may pass */
	CHECK(!word || *word < 2);
	smartio_map_wake(map);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

static void use_plain_interrupts(sci_desc_t sd)
{
	sci_local_interrupt_t i = NULL;
	unsigned number = 0;
	sci_error_t error;

	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL, 0, &error);
	if (!worked(error))
		return;
	trigger_to_end(sd, i, number);
}

static void use_device(sci_desc_t sd)
{
	sci_remote_segment_t bar = NULL, seg = NULL;
	sci_smartio_device_t device = NULL;
	sci_ioaddr_t address;
	unsigned fdid = 0;
	sci_error_t error;

	smartio_find_device(cluster_device(), &fdid, &error);
	if (!worked(error))
		return;
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	if (!worked(error))
		return;
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	if (found(error)) {
		use_doorbells(bar, false);
		use_doorbells(bar, true);
		END(SCIDisconnectSegment(bar, 0, &error));
	}
	SCICreateDeviceSegment(device, 1, PAGE, SCI_MEMTYPE_PRIVATE, SCI_MEMACCESS_DEVICE_READ, 0,
			       &error);
	worked(error);
	SCIConnectDeviceSegment(device, &seg, 1, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0, &error);
	if (found(error)) {
		SCIMapRemoteSegmentForDevice(seg, device, &address, 0, PAGE, 0, &error);
		if (used(error)) {
			END(SCIUnmapRemoteSegmentForDevice(seg, device, 0, &error));
		}
		END(SCIDisconnectSegment(seg, 0, &error));
	}
	END(SCIReturnDevice(device, 0, &error));
}

const struct fault_scenario fault_scenarios[] = {
	{.name = "segments", .use = use_segments},
	{.name = "connections", .use = use_connections},
	{.name = "memory", .use = use_own_memory},
	{.name = "shares", .use = use_shares},
	{.name = "data_interrupts", .use = use_interrupts},
	{.name = "messages_to_all", .use = use_messages_to_all},
	{.name = "interrupts", .use = use_plain_interrupts},
	{.name = "shared_interrupts", .use = use_shared_interrupts},
	{.name = "queues", .use = use_queues},
	{.name = "gathered", .use = use_gathered_dma},
	{.name = "queries", .use = use_queries},
	{.name = "far", .use = use_far},
	{.name = "device", .use = use_device},
	{.name = "multicast", .use = use_multicast},
	{.name = "callbacks", .use = use_callbacks},
	{.name = "data_callbacks", .use = use_data_callbacks},
	{.name = "vectors", .use = use_vectors},
	{.name = "memory_for_device", .use = use_memory_for_device},
	{.name = "device_interrupts", .use = use_device_interrupts},
	{.name = "multicast_exact", .use = use_exact_multicast, .exact = true},
	{.name = NULL},
};
