/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups, callbacks, transfers, memory and interrupts of a device. */
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "fault.h"

#define PAGE 4096u
#define GROUP 3u
#define PATIENCE_MS 100 /* for what a failure may have swallowed */

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
		END(SCIDisconnectSegment(all, 0, &error));
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

static sem_t heard; /* counts callbacks that came */

static void expect_callbacks(void)
{
	CHECK(sem_init(&heard, 0, 0) == 0);
}

static void callback_came(void)
{
	CHECK(sem_post(&heard) == 0);
}

static bool comes_in_time(void)
{
	struct timespec until;

	CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
	until.tv_nsec += PATIENCE_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (sem_timedwait(&heard, &until) < 0) {
		if (errno == ETIMEDOUT)
			return false;
		CHECK(errno == EINTR);
	}
	return true;
}

/*
 * It comes, however long that takes: a failure swallows it only with the session, or with the
 * connection that @by is, whose receiver had no room for it. What @by says meanwhile comes, too.
 */
static bool await_callback(sci_desc_t sd, sci_remote_data_interrupt_t by)
{
	sci_error_t error;

	for (unsigned missing = 1; missing > 0;) {
		if (comes_in_time()) {
			missing--;
			continue;
		}
		SCIProbeNode(sd, 0, 4, 0, &error);
		if (!used(error))
			return false;
		if (!by || !__atomic_load_n(&fault_failed, __ATOMIC_SEQ_CST))
			continue;
		SCITriggerDataInterrupt(by, (char[]){"x"}, 1, 0, &error);
		if (!used(error))
			return false;
		missing++;
	}
	return true;
}

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt,
					  sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	told(status);
	callback_came();
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_message(void *arg, sci_local_data_interrupt_t interrupt, void *data,
					unsigned length, sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	if (told(status))
		CHECK(length == 1 && *(char *)data == 'x');
	callback_came();
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_dma(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	(void)arg;
	(void)queue;
	told(status);
	callback_came();
	return SCI_CALLBACK_CONTINUE;
}

void use_callbacks(sci_desc_t sd)
{
	sci_remote_interrupt_t remote = NULL;
	sci_local_interrupt_t i = NULL;
	unsigned number = 0;
	sci_error_t error;

	expect_callbacks();
	SCICreateInterrupt(sd, &i, 0, &number, on_interrupt, NULL, SCI_FLAG_USE_CALLBACK, &error);
	if (!worked(error))
		return;
	SCIConnectInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (found(error)) {
		SCITriggerInterrupt(remote, 0, &error);
		if (used(error))
			await_callback(sd, NULL);
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

	expect_callbacks();
	SCICreateDataInterrupt(sd, &dint, 0, &number, on_message, NULL, SCI_FLAG_USE_CALLBACK,
			       &error);
	if (!worked(error))
		return;
	SCIConnectDataInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (found(error)) {
		SCITriggerDataInterrupt(remote, (char[]){"x"}, 1, 0, &error);
		if (used(error))
			await_callback(sd, remote);
		SCIDisconnectDataInterrupt(remote, 0, &error);
		CHECK_OK(error);
	}
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
}

/* ---- transfers ---- */

/* Its end is told by a callback, or comes with the session's. */
static void await_transfer(sci_desc_t sd, sci_dma_queue_t queue)
{
	bool came = await_callback(sd, NULL);

	while (SCIDMAQueueState(queue) == SCI_DMAQUEUE_POSTED) {
		CHECK(!came);
		smartio_yield();
	}
}

static void copy(sci_desc_t sd, sci_dma_queue_t queue, sci_local_segment_t local,
		 sci_remote_segment_t remote)
{
	sci_error_t error;

	SCIStartDmaTransfer(queue, local, remote, 0, 64, 128, NULL, NULL, SCI_FLAG_DMA_WAIT,
			    &error);
	used(error);
	expect_callbacks();
	SCIStartDmaTransfer(queue, local, remote, 0, 64, 128, on_dma, NULL,
			    SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_READ, &error);
	if (used(error))
		await_transfer(sd, queue);
}

static void copy_vectors(sci_desc_t sd, sci_dma_queue_t queue, sci_local_segment_t local,
			 sci_remote_segment_t remote)
{
	dis_dma_vec_t vec[3] = {{.size = 64, .remote_offset = 2048},
				{.size = 64, .local_offset = 64, .remote_offset = 1024},
				{.size = 8, .local_offset = 256, .remote_offset = 3072}};
	sci_error_t error;

	SCIStartDmaTransferVec(queue, local, remote, 3, vec, NULL, NULL, SCI_FLAG_DMA_WAIT, &error);
	used(error);
	expect_callbacks();
	SCIStartDmaTransferVec(queue, local, remote, 3, vec, on_dma, NULL,
			       SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_READ, &error);
	if (used(error))
		await_transfer(sd, queue);
}

/* A segment @id of node 4 that is connected, and a queue of @entries between them. */
static void with_queue(sci_desc_t sd, unsigned id, unsigned entries,
		       void (*use)(sci_desc_t sd, sci_dma_queue_t queue, sci_local_segment_t local,
				   sci_remote_segment_t remote))
{
	sci_local_segment_t seg = export_segment(sd, id, false);
	sci_remote_segment_t remote = NULL;
	sci_dma_queue_t queue = NULL;
	sci_error_t error;

	if (!seg)
		return;
	SCIConnectSegment(sd, &remote, 4, id, 0, NULL, NULL, 0, 0, &error);
	if (found(error)) {
		SCICreateDMAQueue(sd, &queue, 0, entries, 0, &error);
		if (worked(error)) {
			use(sd, queue, seg, remote);
			SCIRemoveDMAQueue(queue, 0, &error);
			CHECK_OK(error);
		}
		END(SCIDisconnectSegment(remote, 0, &error));
	}
	remove_segment(seg);
}

void use_queues(sci_desc_t sd)
{
	with_queue(sd, 5, 1, copy);
}

void use_vectors(sci_desc_t sd)
{
	with_queue(sd, 16, 3, copy_vectors);
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

	END(SCIReturnDevice(device, 0, &error));
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
		if (used(error))
			END(SCIUnmapLocalSegmentForDevice(seg, 0, device, 0, &error));
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
		do
			smartio_disconnect_device_interrupt(device, vector, &error);
		while (error == SCI_ERR_NOSPC && fault_again(error, __FILE__, __LINE__));
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
