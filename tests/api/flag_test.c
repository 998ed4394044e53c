/* SPDX-License-Identifier: BSD-2-Clause */
/* Flags that programs pass and that no other test asks for: what each does, or that it does
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u

static void maps_with_hints(sci_remote_segment_t remote, sci_local_segment_t local)
{
	static const unsigned hints[] = {
		SCI_FLAG_LOCK_OPERATION,
		SCI_FLAG_SHARED_MAP,
		SCI_FLAG_NO_MEMORY_LOOPBACK,
		SCI_FLAG_NO_MEMORY_LOOPBACK_MAP,
		SCI_FLAG_WRITE_BACK_CACHE_MAP,
		SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP,
		SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP,
		SCI_FLAG_DMOVE_MAP,
		SCI_FLAG_WRITES_DISABLE_GATHER_MAP,
		SCI_FLAG_DISABLE_128_BYTES_PACKETS,
	};
	volatile unsigned char *far;
	sci_map_t map, own;
	unsigned char *near;
	sci_error_t error;

	near = SCIMapLocalSegment(local, &own, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		far = SCIMapRemoteSegment(remote, &map, 0, PAGE, NULL, hints[i], &error);
		CHECK_OK(error);
		put8(far + i, (uint8_t)(i + 1));
		CHECK(get8(near + i) == i + 1);
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	SCIUnmapSegment(own, 0, &error);
	CHECK_OK(error);
	far = SCIMapRemoteSegment(remote, &map, 0, PAGE, NULL, 0x80000000, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK(far == NULL);
}

static int segments(void *arg)
{
	sci_remote_segment_t remote = NULL;
	sci_local_segment_t local = NULL;
	sci_desc_t sd = NULL;
	sci_error_t error;

	(void)arg;
	SCIInitialize(0, &error);
	CHECK_OK(error);
	SCIOpen(&sd, SCI_FLAG_THREAD_SAFE, &error);
	CHECK_OK(error);
	/* Whether the ids of segments mean a group is said by another flag. */
	SCICreateSegment(sd, &local, 1, PAGE, NULL, NULL, SCI_FLAG_ALLOW_UNICAST, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCICreateSegment(sd, &local, 1, PAGE, NULL, NULL, SCI_FLAG_PHYSICAL, &error);
	CHECK_IS(error, SCI_ERR_FLAG_NOT_IMPLEMENTED);
	SCICreateSegment(sd, &local, 1, PAGE, NULL, NULL, SCI_FLAG_DMA_GLOBAL, &error);
	CHECK_OK(error);
	SCIPrepareSegment(local, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(local, 0, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &remote, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	maps_with_hints(remote, local);
	SCIDisconnectSegment(remote, 0, &error);
	CHECK_OK(error);
	api_remove_segment(local);
	api_end(sd);
	return 0;
}

/* A segment that could be attached to, and a group that could not: the flag is what is wrong. */
static int attaches(void *arg)
{
	sci_local_segment_t own = NULL, other = NULL;
	sci_desc_t sd = api_begin();
	const unsigned *kind = arg;
	size_t size = 77;
	sci_error_t error;

	SCICreateSegment(sd, &own, 1, PAGE, NULL, NULL, *kind, &error);
	CHECK_OK(error);
	SCIShareSegment(own, 0, &error);
	CHECK(error == SCI_ERR_OK || *kind);
	SCIAttachLocalSegment(sd, &other, 1, &size, NULL, NULL, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_FLAG_NOT_IMPLEMENTED);
	CHECK(other == NULL && size == 77);
	if (*kind == 0) {
		SCIAttachLocalSegment(sd, &other, 1, &size, NULL, NULL, 0, &error);
		CHECK_OK(error);
		CHECK(size >= PAGE && size != 77);
		api_remove_segment(other);
	}
	api_remove_segment(own);
	api_end(sd);
	return 0;
}

static void nobody_attaches_to_a_member(void **state)
{
	static unsigned kinds[] = {0, SCI_FLAG_BROADCAST};

	assert_int_equal(cluster_wait(cluster_fork(*state, 4, attaches, &kinds[0])), 0);
	if (!cluster_is_machine())
		assert_int_equal(cluster_wait(cluster_fork(*state, 4, attaches, &kinds[1])), 0);
}

static void hints_change_nothing(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, segments, NULL)), 0);
}

/* Where memory for a device is placed, as the node that it is on says. */
static unsigned placed(sci_smartio_device_t device, unsigned id, unsigned hints, unsigned flags)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;
	unsigned node;

	SCICreateDeviceSegment(device, id, PAGE, SCI_MEMTYPE_PRIVATE, hints, flags, &error);
	CHECK_OK(error);
	SCIConnectDeviceSegment(device, &seg, id, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	node = SCIGetRemoteSegmentNodeId(seg);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	return node;
}

static int borrower(void *arg)
{
	const unsigned to_host = SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ;
	const unsigned to_device = SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE;
	const unsigned both = to_host | to_device;
	sci_smartio_device_t device = NULL;
	sci_desc_t sd = api_begin();
	unsigned fdid;
	sci_error_t error;

	(void)arg;
	CHECK(SCIGetDeviceList(sd, &fdid, 1, NULL, 0, &error) == 1);
	SCIBorrowDevice(sd, &device, fdid, SCI_FLAG_PCIE_REQUESTER_GLOBAL, &error);
	CHECK_OK(error);
	CHECK(placed(device, 1, to_host, 0) == 8);
	CHECK(placed(device, 2, to_device, 0) == 4);
	CHECK(placed(device, 3, to_host, SCI_FLAG_DEVICE_SIDE_ONLY) == 4);
	CHECK(placed(device, 4, to_device, SCI_FLAG_LOCAL_ONLY) == 8);
	CHECK(placed(device, 5, both, SCI_FLAG_DEVICE_PREFER_BANDWIDTH) == 4);
	CHECK(placed(device, 6, both, SCI_FLAG_HOST_PREFER_BANDWIDTH) == 8);
	SCICreateDeviceSegment(device, 7, PAGE, SCI_MEMTYPE_PRIVATE, both, 0x8000, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void flags_say_where_device_memory_lies(void **state)
{
	cluster_needs(NEEDS_HOSTS);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, borrower, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(hints_change_nothing),
		API_TEST(nobody_attaches_to_a_member),
		API_TEST(flags_say_where_device_memory_lies),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
