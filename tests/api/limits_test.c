/* SPDX-License-Identifier: BSD-2-Clause */
/* docs/sisci-limits.md, row by row: what cannot be here says so, and changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "topology.h"

static int absent_functions(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_address_t address = {4, 0, 0};
	sci_remote_segment_t remote = NULL;
	sci_local_interrupt_t interrupt = NULL;
	unsigned counter = 77;
	sci_error_t error;

	(void)arg;
	SCIConnectSCISpace(sd, 0, &remote, address, 4096, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(remote == NULL);
	SCIRegisterInterruptFlag(0, &interrupt, NULL, 0, NULL, NULL, SCI_FLAG_CONDITIONAL_INTERRUPT,
				 &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(interrupt == NULL);
	SCIEnableConditionalInterrupt(interrupt, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIDisableConditionalInterrupt(interrupt, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIGetConditionalInterruptTrigCounter(interrupt, &counter, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(counter == 77);
	CHECK(SCIGetCSRRegister(sd, 0, 4, 0, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCISetCSRRegister(sd, 0, 4, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(SCIGetLocalCSR(sd, 0, 0, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCISetLocalCSR(sd, 0, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIphDmaEnqueue(NULL, 64, 0, 4, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(SCIphDmaStart(NULL, NULL, NULL, 0, &error) == SCI_DMAQUEUE_ERROR);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(smartio_last_error()[0] != '\0');
	api_end(sd);
	SCISetLocalCSR(sd, 0, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	return 0;
}

static void what_cannot_be_is_not_supported(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, absent_functions, NULL)), 0);
}

static int flags_of_absent_features(void *arg)
{
	static const unsigned flags[] = {SCI_FLAG_CONDITIONAL_INTERRUPT_MAP,
					 SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP};
	sci_desc_t sd = api_begin();
	sci_local_segment_t local = NULL;
	sci_remote_segment_t remote = NULL;
	sci_map_t map = NULL;
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &local, 1, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(local, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(local, 0, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &remote, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		CHECK(!SCIMapRemoteSegment(remote, &map, 0, 4096, NULL, flags[i], &error));
		CHECK_IS(error, SCI_ERR_FLAG_NOT_IMPLEMENTED);
		CHECK(!SCIMapLocalSegment(local, &map, 0, 4096, NULL, flags[i], &error));
		CHECK_IS(error, SCI_ERR_FLAG_NOT_IMPLEMENTED);
	}
	CHECK(map == NULL);
	SCIDisconnectSegment(remote, 0, &error);
	CHECK_OK(error);
	api_remove_segment(local);
	api_end(sd);
	return 0;
}

static void flags_of_what_cannot_be_are_not_implemented(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, flags_of_absent_features, NULL)), 0);
}

static int requesters(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	SCIRegisterPCIeRequester(sd, 0, 1, 0x10, SCI_FLAG_PCIE_REQUESTER_GLOBAL, &error);
	CHECK_OK(error);
	SCIUnregisterPCIeRequester(sd, 0, 1, 0x10, 0, &error);
	CHECK_OK(error);
	SCIRegisterPCIeRequester(sd, 0, 256, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIRegisterPCIeRequester(sd, 0, 0, 256, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIRegisterPCIeRequester(sd, 3, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	SCIRegisterPCIeRequester(NULL, 0, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIUnregisterPCIeRequester(sd, 0, 0, 0, 0x80, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	api_end(sd);
	return 0;
}

static void requesters_are_registered_by_themselves(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, requesters, NULL)), 0);
}

/* ---- a device's registers ---- */

static sci_remote_segment_t connect_registers(sci_desc_t sd, sci_smartio_device_t *device)
{
	sci_remote_segment_t bar = NULL;
	sci_error_t error;

	*device = api_borrow(sd, 0);
	SCIConnectDeviceSegment(*device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	return bar;
}

static void drop_registers(sci_remote_segment_t bar, sci_smartio_device_t device)
{
	sci_error_t error;

	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

static int asks_where_registers_lie(void *arg)
{
	sci_query_remote_segment_t of_segment = {.subcommand = SCI_Q_REMOTE_SEGMENT_IOADDR};
	sci_query_map_t of_map = {.subcommand = SCI_Q_MAP_IOADDR, .data = 77};
	sci_smartio_device_t device = NULL;
	sci_desc_t sd = api_begin();
	sci_map_t map = NULL;
	sci_error_t error;

	(void)arg;
	of_segment.segment = connect_registers(sd, &device);
	of_segment.data.ioaddr = 77;
	/* In the address map of the device's host; in this one's they have no place. */
	SCIQuery(SCI_Q_REMOTE_SEGMENT, &of_segment, 0, &error);
	CHECK_OK(error);
	CHECK(of_segment.data.ioaddr != 77 && of_segment.data.ioaddr % 4096 == 0);
	SCIMapRemoteSegment(of_segment.segment, &map, 0, 4096, NULL, 0, &error);
	CHECK_OK(error);
	of_map.map = map;
	SCIQuery(SCI_Q_MAP, &of_map, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	of_map.subcommand = SCI_Q_MAP_PHYS_ADDR;
	SCIQuery(SCI_Q_MAP, &of_map, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(of_map.data == 77);
	CHECK(SCIGetMapPhysAddr(map) == 0);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	drop_registers(of_segment.segment, device);
	api_end(sd);
	return 0;
}

static void registers_have_no_address(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, asks_where_registers_lie, NULL)), 0);
}

/* Each way to hand a copy to the engine; nothing is under way after any of them. */
static void copies_to(sci_dma_queue_t queue, sci_local_segment_t local, sci_remote_segment_t bar,
		      unsigned flags)
{
	dis_dma_vec_t vec = {.size = 64};
	uint8_t memory[64] = {0};
	sci_error_t error;

	SCIStartDmaTransfer(queue, local, bar, 0, 64, 0, NULL, NULL, flags, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCIStartDmaTransferVec(queue, local, bar, 1, &vec, NULL, NULL, flags, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCIStartDmaTransferMem(queue, memory, bar, 64, 0, NULL, NULL, flags, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	/* What is enqueued is looked at when it is posted, and stays. */
	SCIEnqueueDMATransfer(queue, local, bar, 0, 0, 64, flags, &error);
	CHECK_OK(error);
	SCIPostDMAQueue(queue, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_GATHER);
	SCIResetDMAQueue(queue, 0, &error);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_IDLE);
}

static int copies_to_registers(void *arg)
{
	sci_smartio_device_t device = NULL;
	sci_local_segment_t local = NULL;
	sci_dma_queue_t queue = NULL;
	sci_desc_t sd = api_begin();
	sci_remote_segment_t bar = connect_registers(sd, &device);
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &local, 1, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(local, 0, 0, &error);
	CHECK_OK(error);
	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	CHECK_OK(error);
	copies_to(queue, local, bar, 0);
	copies_to(queue, local, bar, SCI_FLAG_DMA_READ);
	SCIRemoveDMAQueue(queue, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(local, 0, &error);
	CHECK_OK(error);
	drop_registers(bar, device);
	api_end(sd);
	return 0;
}

/* Of a drive that is far away, and of one's own. */
static void engines_do_not_reach_registers(void **state)
{
	cluster_needs(NEEDS_ENGINE);
	for (unsigned node = 4; node <= 8; node += 4)
		assert_int_equal(
			cluster_wait(cluster_fork(*state, node, copies_to_registers, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(what_cannot_be_is_not_supported),
		API_TEST(flags_of_what_cannot_be_are_not_implemented),
		API_TEST(requesters_are_registered_by_themselves),
		API_TEST(registers_have_no_address),
		API_TEST(engines_do_not_reach_registers),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
