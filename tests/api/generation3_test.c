/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of SmartIO's generation before the current one, beside calls of today. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "smartio/io.h"
#include "topology.h"

#define PAGE 4096u
#define NVME_VS 8

static void unmap_and_disconnect(sci_remote_segment_t seg, sci_map_t map)
{
	sci_error_t error;

	if (map) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
}

static void registers(sci_desc_t sd, sci_device_t device)
{
	sci_remote_segment_t bar = NULL;
	volatile uint8_t *p;
	sci_map_t map = NULL;
	sci_error_t error;

	SCIConnectDeviceMemory(sd, &bar, 0, device, 0, 0, SCI_FLAG_BAR, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(bar, &map, 0, SCIGetRemoteSegmentSize(bar), NULL,
				SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	CHECK(sio_read32(p + NVME_VS) >> 16 == 1);
	unmap_and_disconnect(bar, map);
	SCIConnectDeviceMemory(sd, &bar, 0, device, 5, 0, SCI_FLAG_BAR, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	SCIConnectDeviceMemory(sd, &bar, 0, device, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIConnectDeviceMemory(sd, &bar, 0, device, 0, 0, SCI_FLAG_BAR | SCI_FLAG_SHARED, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIConnectDeviceMemory(sd, &bar, 0, device, 0, 0, SCI_FLAG_BAR | 0x4000, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIConnectDeviceMemory(sd, &bar, 3, device, 0, 0, SCI_FLAG_BAR, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	SCIConnectDeviceMemory(NULL, &bar, 0, device, 0, 0, SCI_FLAG_BAR, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
}

/* Memory that the first call makes and the second one finds; 6 arguments, and 7. */
static void device_memory(sci_desc_t sd, sci_device_t device, unsigned kind)
{
	sci_remote_segment_t seg = NULL, again = NULL;
	sci_ioaddr_t old_way = 0, new_way = 0;
	sci_error_t error;

	/* Without a size: programs count on 260 KiB. It ends with its last connection. */
	SCIConnectDeviceMemory(sd, &seg, 0, device, 9, 0, kind, &error);
	CHECK_OK(error);
	CHECK(SCIGetRemoteSegmentSize(seg) >= 260 << 10);
	unmap_and_disconnect(seg, NULL);
	SCIConnectDeviceMemory(sd, &seg, 0, device, 9, 3 * PAGE, kind, &error);
	CHECK_OK(error);
	CHECK(SCIGetRemoteSegmentSize(seg) == 3 * PAGE);
	SCIConnectDeviceMemory(sd, &again, 0, device, 9, 0, kind, &error);
	CHECK_OK(error);
	CHECK(SCIGetRemoteSegmentSize(again) == 3 * PAGE);
	SCIMapRemoteSegmentForDevice(seg, device, &old_way, 0, 0, &error);
	CHECK_OK(error);
	CHECK(old_way != 0);
	SCIUnmapRemoteSegmentForDevice(seg, device, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegmentForDevice(seg, device, &new_way, PAGE, PAGE, 0, &error);
	CHECK_OK(error);
	CHECK(new_way != 0);
	SCIUnmapRemoteSegmentForDevice(seg, device, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegmentForDevice(seg, device, &old_way, 3 * PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	unmap_and_disconnect(again, NULL);
	unmap_and_disconnect(seg, NULL);
}

/* 7 arguments, 8, and the names of the generation before that. */
static void own_memory(sci_desc_t sd, sci_device_t device)
{
	sci_local_segment_t seg = NULL;
	sci_ioaddr_t ioaddr = 0;
	sci_error_t error;

	SCICreateSegment(sd, &seg, 77, 2 * PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(seg, 0, device, &ioaddr, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(seg, 0, device, &ioaddr, 0, 0, &error);
	CHECK_OK(error);
	CHECK(ioaddr != 0);
	SCIUnmapLocalSegmentForDevice(seg, 0, device, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(seg, 0, device, &ioaddr, 0, 2 * PAGE, 0, &error);
	CHECK_OK(error);
	SCIUnmapLocalSegmentForDevice(seg, 0, device, 0, &error);
	CHECK_OK(error);
	ioaddr = 0;
	SCIMapSegmentForDevice(seg, device, 0, &ioaddr, 0, &error);
	CHECK_OK(error);
	CHECK(ioaddr != 0);
	SCIUnmapSegmentForDevice(seg, device, 0, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegmentForDevice(seg, device, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIMapSegmentForDevice(NULL, device, 0, &ioaddr, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_remove_segment(seg);
}

static int old_program(void *arg)
{
	sci_dev_info_t info;
	sci_query_dev_t query = {.subcommand = SCI_Q_DEVICE_INFO, .data = &info};
	/* The functions themselves, too, not only calls of them. */
	void (*map)(sci_local_segment_t, unsigned, sci_smartio_device_t, sci_ioaddr_t *, size_t,
		    size_t, unsigned, sci_error_t *) = SCIMapLocalSegmentForDevice;
	sci_desc_t sd = api_begin();
	sci_device_t device = NULL;
	unsigned found[2];
	sci_error_t error;

	(void)arg;
	CHECK(map != NULL);
	CHECK(SCIGetDeviceList(sd, found, 2, NULL, 0, &error) == 1);
	query.global_devid = found[0];
	SCIQuery(SCI_Q_DEVICE, &query, 0, &error);
	CHECK_OK(error);
	CHECK(info.global_devid == found[0] && info.nodeid == 4 && info.bdf != 0);
	CHECK(!strcmp(info.user_name, cluster_device()));
	SCIBorrowDevice(sd, &device, found[0], SCI_FLAG_EXCLUSIVE, &error);
	CHECK_OK(error);
	registers(sd, device);
	device_memory(sd, device, SCI_FLAG_PRIVATE);
	device_memory(sd, device, SCI_FLAG_SHARED);
	own_memory(sd, device);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void programs_of_the_generation_before_run(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, old_program, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, old_program, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(programs_of_the_generation_before_run),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
