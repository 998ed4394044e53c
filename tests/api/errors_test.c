/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that the API lists and that no other test has a reason to provoke: windows that are full,
 * engines without a channel left, devices that are gone, the same mistakes by other calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <pthread.h>

#include <cmocka.h>

#include "../lib/cluster.h"

#define PAGE 4096u
#define SMALL PAGE
#define LARGE (1u << 20) /* more than a window */
#define LONG (4u << 20)	 /* as many of it as a vector has are under way for a while */
#define SMALL_ID 1u
#define LARGE_ID 2u
#define NOTICES 40u /* more than a segment keeps */

/* Through the adapters of one and two nothing large fits. */
#define TOPOLOGY                                                                                   \
	"cluster: errors\n"                                                                        \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  one: {ram: 64M, iommu: on, adapters: [{entries: 16, window: 64K}],\n"                   \
	"        devices: {nvme0: {type: nvme, size: 16M}}}\n"                                     \
	"  two: {ram: 64M, adapters: [{entries: 16, window: 64K}]}\n"                              \
	"  three: {ram: 64M}\n"

static int up(void **state)
{
	*state = cluster_up(TOPOLOGY);
	return *state ? 0 : -1;
}

static int audit(void **state)
{
	return cluster_audit(*state);
}

static int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static sci_local_segment_t export_segment(sci_desc_t sd, unsigned id, size_t size)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, size, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

static sci_remote_segment_t import_segment(sci_desc_t sd, unsigned node, unsigned id)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, node, id, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

static void leave_segment(sci_remote_segment_t seg)
{
	sci_error_t error;

	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
}

/* Node 12: a small segment and a large one. */
static int exports(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t small = export_segment(sd, SMALL_ID, SMALL);
	sci_local_segment_t large = export_segment(sd, LARGE_ID, LARGE);

	(void)arg;
	step_done(0);
	step_await(1);
	api_remove_segment(small);
	api_remove_segment(large);
	api_end(sd);
	return 0;
}

static void beside_exporter(void **state, int (*fn)(void *arg))
{
	pid_t exporter;

	cluster_needs(NEEDS_HOSTS);
	steps_reset();
	exporter = cluster_fork(*state, 12, exports, NULL);
	step_await(0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, fn, NULL)), 0);
	step_done(1);
	assert_int_equal(cluster_wait(exporter), 0);
}

/* ---- maps and copies ---- */

static int maps(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t small = import_segment(sd, 12, SMALL_ID);
	sci_remote_segment_t large = import_segment(sd, 12, LARGE_ID);
	uint8_t memory[64] = {0};
	sci_map_t map = NULL;
	sci_error_t error;
	unsigned node;

	(void)arg;
	CHECK(!SCIMapRemoteSegment(large, &map, 0, LARGE, NULL, 0, &error));
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	CHECK(!SCIMapRemoteSegment(small, &map, 1, SMALL, NULL, 0, &error));
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	CHECK(!SCIMapRemoteSegment(small, &map, 0, 0, NULL, 0, &error));
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	CHECK(map == NULL);
	/* An offset that is no page's is none of an error. */
	CHECK(SCIMapRemoteSegment(small, &map, 33, 100, NULL, 0, &error));
	CHECK_OK(error);
	SCIMemCopy(memory, map, SMALL - 32, sizeof(memory), 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMemCopy(memory, map, 1, 63, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIGetLocalNodeId(DIS_MAX_NSCIS, &node, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADAPTERNO);
	leave_segment(small);
	leave_segment(large);
	api_end(sd);
	return 0;
}

static void windows_are_full(void **state)
{
	beside_exporter(state, maps);
}

static void *maps_again(void *arg)
{
	sci_map_t map = NULL;
	sci_error_t error;

	for (unsigned i = 0; i < 50; i++) {
		CHECK(!SCIMapRemoteSegment(arg, &map, 0, LARGE, NULL, 0, &error));
		CHECK_IS(error, SCI_ERR_HW_NOSPC);
	}
	return NULL;
}

/* Each has its answer, who asked for the window and who waited for it. */
static int maps_by_threads(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t large = import_segment(sd, 12, LARGE_ID);
	pthread_t thread[3];

	(void)arg;
	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, maps_again, large) == 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	leave_segment(large);
	api_end(sd);
	return 0;
}

static void threads_are_told_of_full_windows(void **state)
{
	beside_exporter(state, maps_by_threads);
}

/* ---- DMA ---- */

static void fill_engine(sci_desc_t sd)
{
	sci_dma_queue_t *queue = calloc(1000, sizeof(*queue));
	sci_error_t error = SCI_ERR_OK;
	unsigned n = 0;

	while (n < 1000 && error == SCI_ERR_OK)
		SCICreateDMAQueue(sd, &queue[n++], 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	while (--n > 0) {
		SCIRemoveDMAQueue(queue[n - 1], 0, &error);
		CHECK_OK(error);
	}
	free(queue);
}

static int copies(void *arg)
{
	dis_dma_vec_t vec[DIS_DMA_MAX_VECLEN] = {{.size = 64}};
	sci_desc_t sd = api_begin();
	sci_remote_segment_t small = import_segment(sd, 12, SMALL_ID), gone = NULL;
	sci_remote_segment_t large = import_segment(sd, 12, LARGE_ID), own;
	sci_local_segment_t local = NULL, loop;
	sci_dma_queue_t queue = NULL;
	uint8_t memory[64] = {0};
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &local, 7, LONG, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransferVec(queue, local, small, 1, vec, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIEnqueueDMATransfer(queue, local, small, 0, 0, 64, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIPrepareSegment(local, 0, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(queue, local, large, 0, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	SCIStartDmaTransferVec(queue, local, large, 1, vec, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	SCIStartDmaTransferMem(queue, memory, large, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	/* Not connected yet: nobody has that id, and nobody was waited for. */
	SCIConnectSegment(sd, &gone, 12, 99, 0, NULL, NULL, 0, SCI_FLAG_ASYNCHRONOUS_CONNECT,
			  &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(queue, local, gone, 0, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_CONNECTED);
	SCIStartDmaTransferVec(queue, local, gone, 1, vec, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_CONNECTED);
	SCIStartDmaTransferMem(queue, memory, gone, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_CONNECTED);
	SCIEnqueueDMATransfer(queue, local, gone, 0, 0, 64, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_CONNECTED);
	leave_segment(gone);
	loop = export_segment(sd, 8, LONG);
	own = import_segment(sd, 8, 8);
	for (unsigned i = 0; i < DIS_DMA_MAX_VECLEN; i++)
		vec[i] = (dis_dma_vec_t){.size = LONG};
	SCIStartDmaTransferVec(queue, local, own, DIS_DMA_MAX_VECLEN, vec, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransferVec(queue, local, own, 1, vec, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIAbortDMAQueue(queue, 0, &error);
	CHECK_OK(error);
	SCIRemoveDMAQueue(queue, 0, &error);
	CHECK_OK(error);
	fill_engine(sd);
	leave_segment(small);
	leave_segment(large);
	leave_segment(own);
	api_remove_segment(loop);
	api_remove_segment(local);
	api_end(sd);
	return 0;
}

static void transfers_are_refused(void **state)
{
	beside_exporter(state, copies);
}

/* ---- devices ---- */

static sci_smartio_device_t borrow(sci_desc_t sd)
{
	sci_smartio_device_t device = NULL;
	unsigned fdid = 0;
	sci_error_t error;

	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	return device;
}

static void map_local(sci_desc_t sd, sci_smartio_device_t device)
{
	sci_local_segment_t seg = NULL;
	sci_ioaddr_t address = 77;
	sci_error_t error;

	SCICreateSegment(sd, &seg, 7, LARGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(seg, 0, device, &address, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIMapSegmentForDevice(seg, device, 0, &address, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(seg, 0, device, &address, 0, LARGE, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	SCIMapSegmentForDevice(seg, device, 0, &address, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	SCIMapLocalSegmentForDevice(seg, 0, device, &address, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	SCIMapLocalSegmentForDevice(seg, 0, device, &address, 1, LARGE, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIUnmapLocalSegmentForDevice(seg, 0, device, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIUnmapSegmentForDevice(seg, device, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	CHECK(address == 77);
	api_remove_segment(seg);
}

static void map_remote(sci_desc_t sd, sci_smartio_device_t device)
{
	sci_remote_segment_t large = import_segment(sd, 12, LARGE_ID);
	sci_ioaddr_t address = 77;
	sci_error_t error;

	SCIMapRemoteSegmentForDevice(large, device, &address, 0, LARGE, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	SCIMapRemoteSegmentForDevice(large, device, &address, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	SCIMapRemoteSegmentForDevice(large, device, &address, LARGE - 1, 2, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIUnmapRemoteSegmentForDevice(large, device, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	CHECK(address == 77);
	leave_segment(large);
}

static int uses_device(void *arg)
{
	sci_remote_segment_t bar = NULL, seg = NULL;
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = borrow(sd);
	sci_dma_queue_t queue = NULL;
	uint8_t memory[64] = {0};
	sci_error_t error;

	(void)arg;
	map_local(sd, device);
	map_remote(sd, device);
	/* More than any host has. */
	SCICreateDeviceSegment(device, 1, 1ul << 40, SCI_MEMTYPE_SHARED, 0, 0, &error);
	CHECK(error == SCI_ERR_NOSPC || error == SCI_ERR_HW_NOSPC);
	SCIConnectDeviceMemory(sd, &seg, 0, device, 1, 1ul << 40, SCI_FLAG_SHARED, &error);
	CHECK(error == SCI_ERR_NOSPC || error == SCI_ERR_HW_NOSPC);
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransferMem(queue, memory, bar, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCIRemoveDMAQueue(queue, 0, &error);
	CHECK_OK(error);
	leave_segment(bar);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void devices_reach_no_further(void **state)
{
	beside_exporter(state, uses_device);
}

static int loses_device(void *arg)
{
	sci_remote_segment_t far, seg = NULL;
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = borrow(sd);
	sci_local_segment_t own = export_segment(sd, 7, PAGE);
	struct smartio_device_event event;
	sci_ioaddr_t address;
	sci_error_t error;

	(void)arg;
	far = import_segment(sd, 12, SMALL_ID);
	step_done(2);
	do {
		smartio_wait_device_event(device, &event, SCI_INFINITE_TIMEOUT, &error);
		CHECK_OK(error);
	} while (event.kind != SMARTIO_DEVICE_LOST);
	SCIMapLocalSegmentForDevice(own, 0, device, &address, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIMapSegmentForDevice(own, device, 0, &address, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIMapRemoteSegmentForDevice(far, device, &address, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIConnectDeviceSegment(device, &seg, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIConnectDeviceMemory(sd, &seg, 0, device, 0, 0, SCI_FLAG_BAR, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	leave_segment(far);
	api_remove_segment(own);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_lost_device_is_not_connected(void **state)
{
	pid_t exporter, borrower;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	exporter = cluster_fork(*state, 12, exports, NULL);
	step_await(0);
	borrower = cluster_fork(*state, 8, loses_device, NULL);
	step_await(2);
	cluster_crash(*state, 4);
	assert_int_equal(cluster_wait(borrower), 0);
	step_done(1);
	assert_int_equal(cluster_wait(exporter), 0);
	assert_int_equal(cluster_restart(*state, 4, 8), 0);
}

/* ---- events ---- */

static int notifies(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, SMALL_ID, SMALL);
	sci_error_t error;

	(void)arg;
	step_done(0);
	step_await(3);
	for (unsigned i = 0; i < NOTICES; i++) {
		SCISetSegmentUnavailable(seg, 0, SCI_FLAG_NOTIFY, &error);
		CHECK_OK(error);
		SCISetSegmentAvailable(seg, 0, 0, &error);
		CHECK_OK(error);
	}
	step_done(4);
	step_await(1);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

static sci_callback_action_t hears(void *arg, sci_remote_segment_t segment,
				   sci_segment_cb_reason_t reason, sci_error_t status)
{
	unsigned *n = arg;

	(void)segment;
	CHECK_OK(status);
	CHECK(reason == SCI_CB_DISCONNECT);
	if (++*n == NOTICES)
		step_done(5);
	return SCI_CALLBACK_CONTINUE;
}

/* It asks us to leave, again and again; who hears all of it is not who did not listen. */
static int is_asked_to_leave(void *arg)
{
	sci_remote_segment_t heard = NULL, kept;
	sci_desc_t sd = api_begin();
	unsigned n = 0, seen = 0;
	sci_error_t error;

	(void)arg;
	SCIConnectSegment(sd, &heard, 12, SMALL_ID, 0, hears, &n, 0, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	SCIWaitForRemoteSegmentEvent(heard, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	kept = import_segment(sd, 12, SMALL_ID);
	step_done(3);
	step_await(4);
	step_await(5);
	SCIWaitForRemoteSegmentEvent(kept, NULL, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_IS(error, SCI_ERR_OVERFLOW);
	do {
		SCIWaitForRemoteSegmentEvent(kept, NULL, 0, 0, &error);
		seen += error == SCI_ERR_OK;
	} while (error == SCI_ERR_OK);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(seen == 32);
	leave_segment(heard);
	leave_segment(kept);
	api_end(sd);
	return 0;
}

static void events_overflow(void **state)
{
	pid_t exporter;

	cluster_needs(NEEDS_HOSTS);
	steps_reset();
	exporter = cluster_fork(*state, 12, notifies, NULL);
	step_await(0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, is_asked_to_leave, NULL)), 0);
	step_done(1);
	assert_int_equal(cluster_wait(exporter), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(windows_are_full, audit),
		cmocka_unit_test_teardown(threads_are_told_of_full_windows, audit),
		cmocka_unit_test_teardown(transfers_are_refused, audit),
		cmocka_unit_test_teardown(devices_reach_no_further, audit),
		cmocka_unit_test_teardown(a_lost_device_is_not_connected, audit),
		cmocka_unit_test_teardown(events_overflow, audit),
	};

	return cmocka_run_group_tests(tests, up, down);
}
