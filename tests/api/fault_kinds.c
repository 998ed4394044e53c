/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared interrupts, messages to all, gathered DMA, channels, queries: what may fail in them. */
#include <stdlib.h>
#include <unistd.h>

#include "fault.h"

#define PAGE 4096u

void use_shared_interrupts(sci_desc_t sd)
{
	sci_local_interrupt_t a = NULL, b = NULL;
	unsigned number = 9;
	sci_error_t error;

	SCICreateInterrupt(sd, &a, 0, &number, NULL, NULL,
			   SCI_FLAG_FIXED_INTNO | SCI_FLAG_SHARED_INT, &error);
	if (!worked(error))
		return;
	SCICreateInterrupt(sd, &b, 0, &number, NULL, NULL,
			   SCI_FLAG_FIXED_INTNO | SCI_FLAG_SHARED_INT, &error);
	if (worked(error)) {
		END(SCIRemoveInterrupt(b, 0, &error));
	}
	trigger_to_end(sd, a, number);
}

void use_messages_to_all(sci_desc_t sd)
{
	sci_remote_data_interrupt_t all = NULL;
	sci_local_data_interrupt_t dint = NULL;
	unsigned number = 9, length = 0;
	sci_error_t error;

	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL,
			       SCI_FLAG_FIXED_INTNO | SCI_FLAG_BROADCAST, &error);
	if (!worked(error))
		return;
	SCIConnectDataInterrupt(sd, &all, DIS_BROADCAST_NODEID_GROUP_ALL, 0, number, 0,
				SCI_FLAG_BROADCAST, &error);
	if (found(error)) {
		SCITriggerDataInterrupt(all, NULL, 0, SCI_FLAG_BROADCAST, &error);
		used(error);
		SCIWaitForDataInterrupt(dint, NULL, &length, 50, 0, &error);
		waited(error);
		SCIDisconnectDataInterrupt(all, 0, &error);
		CHECK_OK(error);
	}
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
}

static void gather(sci_dma_queue_t queue, sci_local_segment_t local, sci_remote_segment_t remote)
{
	sci_error_t error;

	SCIResetDMAQueue(queue, 0, &error); /* of the transfers before */
	worked_as(FAULT_QUEUES, error);
	for (unsigned i = 0; i < 20; i++) {
		SCIEnqueueDMATransfer(queue, local, remote, 0, 64, 32, 0, &error);
		worked_as(FAULT_QUEUES, error);
	}
	SCIPostDMAQueue(queue, NULL, NULL, 0, &error);
	if (worked_as(FAULT_QUEUES, error)) {
		SCIWaitForDMAQueue(queue, SCI_INFINITE_TIMEOUT, 0, &error);
		waited(error);
	}
	SCIAbortDMAQueue(queue, 0, &error);
	CHECK_OK(error);
	SCIResetDMAQueue(queue, 0, &error);
	worked_as(FAULT_QUEUES, error);
	/* Left behind for the queue's end. */
	SCIEnqueueDMATransfer(queue, local, remote, 0, 64, 32, 0, &error);
	worked_as(FAULT_QUEUES, error);
}

static int on_block(void *arg, sci_block_transfer_t block, sci_error_t status)
{
	(void)arg;
	(void)block;
	told(status);
	return 0;
}

static void use_blocks(sci_remote_segment_t remote)
{
	sci_block_transfer_t block;
	sci_error_t error;
	sci_map_t map;

	SCIMapRemoteSegment(remote, &map, 0, PAGE, NULL, 0, &error);
	if (!used(error))
		return;
	SCITransferBlockAsync(map, 0, map, 64, 64, &block, on_block, NULL, SCI_FLAG_USE_CALLBACK,
			      &error);
	used(error);
	SCITransferBlockAsync(map, 0, map, 64, 64, &block, NULL, NULL, 0, &error);
	if (used(error)) {
		SCIWaitForBlockTransfer(block, SCI_INFINITE_TIMEOUT, 0, &error);
		used(error); /* the map may be lost while it is copied to */
	}
	do {
		SCIUnmapSegment(map, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
}

/* A push, and a pull. */
static void use_memory(sci_dma_queue_t queue, sci_remote_segment_t remote)
{
	uint8_t *memory = calloc(1, PAGE);
	sci_error_t error;

	if (!memory)
		return;
	for (unsigned i = 0; i < 2; i++) {
		SCIStartDmaTransferMem(queue, memory, remote, (i + 1) * 64, 0, NULL, NULL,
				       SCI_FLAG_DMA_WAIT | (i ? SCI_FLAG_DMA_READ : 0), &error);
		used(error);
	}
	free(memory);
}

void use_gathered_dma(sci_desc_t sd)
{
	sci_remote_segment_t remote = NULL;
	sci_local_segment_t seg = NULL;
	sci_dma_channel_t channel = NULL;
	sci_dma_queue_t queue = NULL;
	sci_error_t error;

	SCIRequestDMAChannel(sd, &channel, 0, SCI_DMA_TYPE_ADAPTER, 1, 0, &error);
	if (!worked(error))
		return;
	SCICreateSegment(sd, &seg, 15, PAGE, NULL, NULL, 0, &error);
	if (worked(error)) {
		SCIPrepareLocalSegmentForDMA(channel, seg, 0, &error);
		worked(error);
		SCISetSegmentAvailable(seg, 0, 0, &error);
		worked_as(FAULT_PUBLISHES, error);
		SCIConnectSegment(sd, &remote, 4, 15, 0, NULL, NULL, 0, 0, &error);
		if (found(error)) {
			SCICreateDMAQueue(sd, &queue, 0, 64, 0, &error);
			if (worked(error)) {
				use_memory(queue, remote);
				gather(queue, seg, remote);
				SCIRemoveDMAQueue(queue, 0, &error);
				CHECK_OK(error);
			}
			use_blocks(remote);
			END(SCIDisconnectSegment(remote, 0, &error));
		}
		remove_segment(seg);
	}
	SCIReturnDMAChannel(channel, &error);
	CHECK_OK(error);
}

void use_queries(sci_desc_t sd)
{
	unsigned value, adapters[DIS_MAX_NSCIS];
	sci_query_adapter_t adapter = {.subcommand = SCI_Q_ADAPTER_LINK_WIDTH, .data = &value};
	sci_query_dma_t dma = {.subcommand = SCI_Q_DMA_AVAILABLE, .data = &value};
	dis_nodeId_list_t nodes;
	sci_error_t error;

	(void)sd;
	SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error);
	worked(error);
	adapter.subcommand = SCI_Q_ADAPTER_LINK_UPTIME;
	SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error);
	worked(error);
	SCIQuery(SCI_Q_DMA, &dma, 0, &error);
	worked(error);
	SCIGetNodeInfoByAdapterName((char[]){"one"}, adapters, &nodes, NULL, 0, &error);
	worked(error);
}
