/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups, callbacks, vectors of transfers, memory and interrupts of a device. */
#include <unistd.h>

#include "fault.h"

#define PAGE 4096u
#define GROUP 3u
#define PAUSE_US 1000
#define PATIENCE 100 /* pauses, for what a failure may have swallowed */

/* ---- multicast ---- */

static void write_to_group(sci_remote_segment_t all, unsigned flags)
{
	uint8_t bytes[16] = {0};
	sci_error_t error;
	sci_map_t map;

	SCIMapRemoteSegment(all, &map, 0, PAGE, NULL, flags, &error);
	if (!used(error))
		return;
	SCIMemCpy(NULL, bytes, map, 0, sizeof(bytes), SCI_FLAG_ERROR_CHECK, &error);
	used(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

static void use_group(sci_desc_t sd, unsigned flags)
{
	sci_remote_segment_t all = NULL;
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	sci_map_t map;

	SCICreateSegment(sd, &seg, GROUP, PAGE, NULL, NULL, SCI_FLAG_BROADCAST, &error);
	if (!worked(error))
		return;
	SCIPrepareSegment(seg, 0, SCI_FLAG_BROADCAST, &error);
	worked(error);
	SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	if (worked(error)) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	SCISetSegmentAvailable(seg, 0, 0, &error);
	worked_as(FAULT_PUBLISHES, error);
	SCIConnectSegment(sd, &all, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP, 0, NULL, NULL, 0,
			  SCI_FLAG_BROADCAST, &error);
	if (found(error)) {
		write_to_group(all, flags);
		push_words(sd, all, 64, SCI_FLAG_BROADCAST);
		SCIDisconnectSegment(all, 0, &error);
		CHECK_OK(error);
	}
	remove_segment(seg);
}

void use_multicast(sci_desc_t sd)
{
	use_group(sd, SCI_FLAG_BROADCAST);
}

/* Each member has memory of its own, and no plain store reaches all. */
void use_exact_multicast(sci_desc_t sd)
{
	use_group(sd, SCI_FLAG_BROADCAST | SCI_FLAG_READONLY_MAP);
}

/* ---- callbacks ---- */

static unsigned heard; /* atomic: callbacks that came */

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt,
					  sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	told(status);
	__atomic_add_fetch(&heard, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_message(void *arg, sci_local_data_interrupt_t interrupt, void *data,
					unsigned length, sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	if (told(status))
		CHECK(length == 1 && *(char *)data == 'x');
	__atomic_add_fetch(&heard, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_dma(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	(void)arg;
	(void)queue;
	told(status);
	__atomic_add_fetch(&heard, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

/* Where nothing has failed it comes, however long that takes. */
static void await_callback(void)
{
	for (unsigned i = 0; __atomic_load_n(&heard, __ATOMIC_SEQ_CST) == 0; i++) {
		if (__atomic_load_n(&fault_failed, __ATOMIC_SEQ_CST) && i >= PATIENCE)
			break;
		usleep(PAUSE_US);
	}
}

void use_callbacks(sci_desc_t sd)
{
	sci_remote_interrupt_t remote = NULL;
	sci_local_interrupt_t i = NULL;
	unsigned number = 0;
	sci_error_t error;

	__atomic_store_n(&heard, 0, __ATOMIC_SEQ_CST);
	SCICreateInterrupt(sd, &i, 0, &number, on_interrupt, NULL, SCI_FLAG_USE_CALLBACK, &error);
	if (!worked(error))
		return;
	SCIConnectInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (found(error)) {
		SCITriggerInterrupt(remote, 0, &error);
		if (used(error))
			await_callback();
		SCIDisconnectInterrupt(remote, 0, &error);
		CHECK_OK(error);
	}
	remove_interrupt(i);
}

void use_data_callbacks(sci_desc_t sd)
{
	sci_remote_data_interrupt_t remote = NULL;
	sci_local_data_interrupt_t dint = NULL;
	unsigned number = 0;
	sci_error_t error;

	__atomic_store_n(&heard, 0, __ATOMIC_SEQ_CST);
	SCICreateDataInterrupt(sd, &dint, 0, &number, on_message, NULL, SCI_FLAG_USE_CALLBACK,
			       &error);
	if (!worked(error))
		return;
	SCIConnectDataInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (found(error)) {
		SCITriggerDataInterrupt(remote, (char[]){"x"}, 1, 0, &error);
		if (used(error))
			await_callback();
		SCIDisconnectDataInterrupt(remote, 0, &error);
		CHECK_OK(error);
	}
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
}

/* ---- vectors ---- */

static void transfer(sci_dma_queue_t queue, sci_local_segment_t local, sci_remote_segment_t remote)
{
	dis_dma_vec_t vec[3] = {{.size = 64, .remote_offset = 2048},
				{.size = 64, .local_offset = 64, .remote_offset = 1024},
				{.size = 8, .local_offset = 256, .remote_offset = 3072}};
	sci_error_t error;

	SCIStartDmaTransferVec(queue, local, remote, 3, vec, NULL, NULL, SCI_FLAG_DMA_WAIT, &error);
	used(error);
	__atomic_store_n(&heard, 0, __ATOMIC_SEQ_CST);
	SCIStartDmaTransferVec(queue, local, remote, 3, vec, on_dma, NULL,
			       SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_READ, &error);
	if (used(error))
		await_callback();
	while (SCIDMAQueueState(queue) == SCI_DMAQUEUE_POSTED)
		usleep(PAUSE_US);
}

void use_vectors(sci_desc_t sd)
{
	sci_local_segment_t seg = export_segment(sd, 16, false);
	sci_remote_segment_t remote = NULL;
	sci_dma_queue_t queue = NULL;
	sci_error_t error;

	if (!seg)
		return;
	SCIConnectSegment(sd, &remote, 4, 16, 0, NULL, NULL, 0, 0, &error);
	if (found(error)) {
		SCICreateDMAQueue(sd, &queue, 0, 3, 0, &error);
		if (worked(error)) {
			transfer(queue, seg, remote);
			SCIRemoveDMAQueue(queue, 0, &error);
			CHECK_OK(error);
		}
		SCIDisconnectSegment(remote, 0, &error);
		CHECK_OK(error);
	}
	remove_segment(seg);
}

/* ---- a device ---- */

static sci_smartio_device_t borrow(sci_desc_t sd)
{
	sci_smartio_device_t device = NULL;
	unsigned fdid = 0;
	sci_error_t error;

	smartio_find_device(cluster_device(), &fdid, &error);
	if (!worked(error))
		return NULL;
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	return worked(error) ? device : NULL;
}

static void give_back(sci_smartio_device_t device)
{
	sci_error_t error;

	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

void use_memory_for_device(sci_desc_t sd)
{
	sci_smartio_device_t device = borrow(sd);
	sci_local_segment_t seg;
	sci_ioaddr_t address;
	sci_error_t error;

	if (!device)
		return;
	seg = export_segment(sd, 17, false);
	if (seg) {
		SCIMapLocalSegmentForDevice(seg, 0, device, &address, 0, PAGE, 0, &error);
		if (used(error)) {
			SCIUnmapLocalSegmentForDevice(seg, 0, device, 0, &error);
			CHECK_OK(error);
		}
		remove_segment(seg);
	}
	give_back(device);
}

static void tie(sci_desc_t sd, sci_smartio_device_t device, unsigned number)
{
	sci_remote_interrupt_t to = NULL;
	unsigned vector = 0;
	sci_error_t error;

	SCIConnectInterrupt(sd, &to, 4, 0, number, 0, 0, &error);
	if (!found(error))
		return;
	smartio_connect_device_interrupt(device, &vector, to, &error);
	if (used(error)) {
		smartio_disconnect_device_interrupt(device, vector, &error);
		used(error);
	}
	SCIDisconnectInterrupt(to, 0, &error);
	CHECK_OK(error);
}

void use_device_interrupts(sci_desc_t sd)
{
	sci_smartio_device_t device = borrow(sd);
	sci_local_interrupt_t i = NULL;
	unsigned number = 0;
	sci_error_t error;

	if (!device)
		return;
	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL, 0, &error);
	if (worked(error)) {
		tie(sd, device, number);
		remove_interrupt(i);
	}
	give_back(device);
}
